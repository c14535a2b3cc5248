/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_SYNC_H
#define HYPTRACE_SESSION_SYNC_H

#include "spool.h"
#include "sync.h"

/*
 * Clock offsets of a recording's guests, from the pages in the spools: once all
 * is drained, before the files are written.
 */

/* A spool as sync.h reads files. Free with session_sync_close. */
struct session_sync {
	struct sync_source source;
	void *priv;
};
int session_sync_open(struct session_sync *s, const struct spool *spool);
void session_sync_close(struct session_sync *s);

#endif
