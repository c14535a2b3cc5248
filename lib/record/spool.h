/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_H
#define HYPTRACE_SPOOL_H

#include "dat/page.h"
#include "util/base.h"

/*
 * A recording on disk while it runs: a directory of pages and texts from which
 * a trace.dat can be made at the end, or by `hyptrace recover` after the
 * recorder was killed.
 *
 *   session          "key<TAB>value" lines, appended; the last of a key holds.
 *                    Locked (flock) by the recorder while it lives.
 *   undo             what to put back in tracefs (undo.h)
 *   texts/NAME       header_page, formats, kallsyms, ...
 *   buffers/N        "key<TAB>value" lines of buffer N: name, clock, path ...
 *   pages/N.C        whole sub-buffers of buffer N, CPU C, in order
 *   pages.new/N.C    ... that are to replace them; rewritten/N.C: that do so (spool_rewrite_end)
 *   reserve          room kept for writing the trace.dat when the disk is full
 */
struct spool;

/*
 * Creates dir (mode 0700). -EEXIST when it is there already and holds a
 * session: it may be the only copy of a recording, and is never overwritten.
 */
int spool_create(struct spool **out, const char *dir, const struct log *log);
/* Opens one that a dead recorder left. -EBUSY: its recorder still lives. -ENOENT, -EBADMSG. */
int spool_open(struct spool **out, const char *dir, const struct log *log);
/* Frees; the directory stays. */
void spool_close(struct spool *s);
/* Frees and removes the directory. */
int spool_remove(struct spool *s);

const char *spool_dir(const struct spool *s);
char *spool_path(const struct spool *s, const char *name); /* malloc'ed */

/* Keys of the session file. value must not hold a newline: -EINVAL. */
int spool_set(struct spool *s, const char *key, const char *value);
int spool_set_number(struct spool *s, const char *key, uint64_t n);
const char *spool_get(const struct spool *s, const char *key); /* NULL: not there */
uint64_t spool_get_number(const struct spool *s, const char *key, uint64_t otherwise);
/* The key boot_id, of the running kernel; whether it still runs. */
int spool_set_boot_id(struct spool *s);
bool spool_is_this_boot(const struct spool *s);

/* Texts. */
int spool_put_text(struct spool *s, const char *name, const void *data, size_t len);
int spool_append_text(struct spool *s, const char *name, const void *data, size_t len);
/* -ENOENT when it was never put. */
int spool_get_text(const struct spool *s, const char *name, struct buf *out);

/* What the text header_page says of the host's pages. Errors as page_layout_read. */
int spool_page_layout(const struct spool *s, struct page_layout *out);

/* Buffers: numbered from 0 in the order of spool_add_buffer, which copies the strings. */
struct spool_buffer {
	const char *name; /* "" = top */
	const char *clock;
	const char *path;   /* relative to the tracing directory */
	const char *kind;   /* "host", "hyp-text", "hyp-raw" */
	uint32_t page_size; /* bytes */
	unsigned int n_cpus;
};
int spool_add_buffer(struct spool *s, const struct spool_buffer *b);
size_t spool_n_buffers(const struct spool *s);
const struct spool_buffer *spool_buffer(const struct spool *s, size_t i);
/* A new descriptor of the file of pages, for reading and writing, at its end. */
int spool_pages_fd(const struct spool *s, size_t buffer, unsigned int cpu);

/*
 * Puts other pages in the place of what is there, once and for all: each file is
 * written to a new descriptor, then spool_rewrite_end replaces all of them at once.
 * What a kill leaves before that is dropped by the next spool_rewrite_begin; after
 * it, spool_open completes it. 0, a descriptor, or -errno.
 */
int spool_rewrite_begin(struct spool *s);
int spool_rewrite_fd(const struct spool *s, size_t buffer, unsigned int cpu);
int spool_rewrite_end(struct spool *s);
bool spool_is_rewritten(const struct spool *s);

/*
 * Keeps room for the trace.dat in step with what was recorded (a quarter of
 * `recorded` bytes). -ENOSPC when the disk is full. spool_free_reserve gives it back.
 */
int spool_reserve(struct spool *s, uint64_t recorded);
void spool_free_reserve(struct spool *s);

#endif
