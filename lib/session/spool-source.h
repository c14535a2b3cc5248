/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_SOURCE_H
#define HYPTRACE_SPOOL_SOURCE_H

#include "record/spool-formats.h"
#include "sync/evidence.h"

/*
 * A recording's pages as a source of evidence (sync/evidence.h): once all is
 * drained, before the files are written.
 */
struct spool_source {
	struct sync_source source;
	struct spool_formats formats;
};
/* The spool must outlive it. 0, -ENOMEM, or an error of reading it; close it in any case. */
int spool_source_open(struct spool_source *s, const struct spool *spool);
void spool_source_close(struct spool_source *s);

#endif
