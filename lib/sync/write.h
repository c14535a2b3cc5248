/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_WRITE_H
#define HYPTRACE_SYNC_WRITE_H

#include "file/dat/reader.h"

/*
 * Writes the file at path anew with these options in place of those that it has
 * (the writer's own left out): same version, compression, texts and pages. What
 * was there is kept as PATH.orig, unless there is one already. -errno: path is
 * as it was.
 */
int sync_rewrite(const struct reader *r, const char *path, const struct dat_option *options, size_t n,
		 const struct log *log);

#endif
