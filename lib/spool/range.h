/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_RANGE_H
#define HYPTRACE_SPOOL_RANGE_H

#include "spool/spool.h"

/*
 * Which bytes of a spool's pages count. A recording that is written piece by piece,
 * or of which only the newest is kept, moves their beginning on (the spool's file
 * "range") and gives back the room before it; the files of pages grow on.
 */
struct spool_range {
	uint64_t from, to; /* whole pages; to, of the recording itself: UINT64_MAX, up to the end */
};

/* A descriptor to read a CPU's pages with (pread), and which of them count, within the file. Or -errno. */
int spool_pages_open(const struct spool *s, size_t buffer, unsigned int cpu, struct spool_range *out);

/* Whether any were thrown away, or may be. */
bool spool_has_ranges(const struct spool *s);
/* From where on they count now, while a recorder moves that on (spool_open_live). */
uint64_t spool_pages_from(const struct spool *s, size_t buffer, unsigned int cpu);

/*
 * ranges: of each CPU of each buffer, in their order. number: of the file that they are
 * to become; 0: there is only one. All at once, as a kill finds it. 0 or -errno.
 */
int spool_set_ranges(struct spool *s, uint64_t number, const struct spool_range *ranges);
/* Gives back the room of a CPU's pages before `from`. -EOPNOTSUPP: the file system cannot. */
int spool_forget(struct spool *s, size_t buffer, unsigned int cpu, uint64_t from);
/* Whether it can; nothing is changed. 0 or -errno. */
int spool_can_forget(struct spool *s);

/*
 * The path of the file that number is of: 3 and trace.dat make trace.003.dat; 0: as it
 * is. NULL: out of memory, or the spool names no output. The caller frees it.
 */
char *spool_numbered(const struct spool *s, uint64_t number);
/* ... of the spool's own number. */
char *spool_output(const struct spool *s);

/*
 * A spool that is a part of another: the same keys, buffers and pages, and texts but for those that are
 * put into the part. Its ranges are its own, and so are pages rewritten. In the directory
 * WHOLE.part, which holds nothing that is not in the whole. Errors as spool_create; spool_remove() it before
 * the whole is closed.
 */
int spool_part(struct spool **out, const struct spool *whole, const struct log *log);
bool spool_is_part(const struct spool *s);
/* Removes the part that a killed recorder left. */
void spool_remove_part(const struct spool *whole);

#endif
