/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_FORMATS_H
#define HYPTRACE_SPOOL_FORMATS_H

#include "record/hyp/hypevents.h"
#include "record/spool/spool.h"
#include "file/dat/writer.h"

/*
 * The event formats of a spool as its file will have them: the texts of tracefs
 * (system-metadata.h), then the hypervisor's, rewritten (remote-events.h).
 */
struct spool_formats {
	struct dat_system *systems; /* "ftrace" first, when there */
	size_t n_systems;
	struct dat_text *texts; /* all of them; the systems point into it */
	size_t n_texts;

	/* private */
	struct buf kept;
	struct buf *fixed; /* one for each text of tracefs: what it became; most are empty */
	size_t n_fixed, n_plain;
	struct buf *hyp_texts;
	size_t n_hyp_texts;
	struct hypevents hyp;
};

/*
 * *f is to be released also after an error. -ENOENT: none were kept; -EBADMSG. The log names formats
 * that are left out, because they are longer or deeper than any kernel's.
 */
int spool_formats_load(struct spool_formats *f, const struct spool *spool, const struct log *log);
void spool_formats_release(struct spool_formats *f);

#endif
