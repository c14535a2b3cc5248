/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_TRUST_H
#define HYPTRACE_SPOOL_TRUST_H

#include "util/base.h"

/*
 * Whether an open directory and all in it, two levels deep, belong to the effective
 * user alone: plain files with one name and directories, which nobody else may write to
 * (a group's right by an ACL shows in the mode). From then on nobody else can change what
 * a name in it leads to. -EPERM: they do not, which is logged; dir: its name for that.
 */
int spool_trust(int dirfd, const char *dir, const struct log *log);

#endif
