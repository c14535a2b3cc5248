/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_NEW_SPOOL_H
#define HYPTRACE_NEW_SPOOL_H

#include "record/spool.h"
#include "tracefs/plan.h"

/*
 * Makes the spool OUTPUT.spool for one file of a recording and sets the keys that
 * a host's and a guest's have in common: boot_id, version, compression. *out is
 * set even when only a key could not be: the caller removes it. 0 or -errno.
 */
int new_spool(struct spool **out, const char *output, const struct record_plan *plan, const struct log *log);

#endif
