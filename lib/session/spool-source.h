/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_SYNC_H
#define HYPTRACE_SESSION_SYNC_H

#include "record/spool.h"
#include "sync/source.h"

/*
 * Clock offsets of a recording's guests, from the pages in the spools: once all
 * is drained, before the files are written.
 */

/* A spool as sync.h reads files. Free with spool_source_close. */
struct spool_source {
	struct sync_source source;
	void *priv;
};
int spool_source_open(struct spool_source *s, const struct spool *spool);
void spool_source_close(struct spool_source *s);

#endif
