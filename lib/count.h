/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COUNT_H
#define HYPTRACE_COUNT_H

#include "spool.h"

/*
 * Counts the events in a spool's buffer, and those that its pages say were lost
 * before them; a loss of unknown number counts as 1. For buffers whose kernel
 * cannot be asked: a guest's, or one that is recovered. 0 or -errno.
 */
int count_buffer(const struct spool *s, size_t buffer, uint64_t *events, uint64_t *lost);

#endif
