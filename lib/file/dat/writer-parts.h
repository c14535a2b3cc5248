/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_DAT_PARTS_H
#define HYPTRACE_DAT_PARTS_H

#include "file/dat/out.h"
#include "file/dat/writer.h"

#include <zstd.h>

/*
 * Shared by the writers of the two versions of a trace.dat. Version 6 strings the parts together,
 * version 7 wraps each in a section.
 */

/* One write of a file. */
struct dat_writer {
	const struct dat_file *f;
	const struct log *log;
	struct dat_out out;
	ZSTD_CCtx *zip;	 /* NULL: not compressed */
	uint8_t *pages;	 /* room for one chunk of pages */
	uint8_t *zipped; /* ... and for what it compresses to */
	size_t zipped_cap;
	uint64_t done, total; /* bytes of pages, for progress */
};

/* Place of a CPU's pages. */
struct dat_place {
	uint64_t offset, size; /* bytes in the file */
};

/* "tracing", version, byte order, size of long, page size. */
void dat_put_magic(struct dat_out *o, int version, uint32_t page_size);

/* Appends the bytes of section `id` (DAT_HEADER_INFO ... DAT_CMDLINES) as both versions have them. -ENOMEM */
int dat_part(const struct dat_file *f, uint16_t id, struct buf *out);

/* The caller's options and the CPUSTATs. */
void dat_add_options(struct buf *out, const struct dat_file *f);

/*
 * Copies one CPU's pages to the next page-aligned place, compressed when w->zip
 * is set, and appends `pad` empty pages. An empty CPU takes no room.
 */
int dat_put_cpu(struct dat_writer *w, const struct dat_buffer *b, unsigned int cpu, uint64_t pad,
		struct dat_place *place);

/* Room for one chunk of the largest pages: all the memory that the pages take, which the caller frees.
 * -ENOMEM. */
int dat_pages_init(struct dat_writer *w);

/* The largest page size of any buffer, bytes; 0: there is no buffer. */
uint32_t dat_max_page(const struct dat_file *f);

#endif
