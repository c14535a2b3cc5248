/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_H
#define HYPTRACE_SPOOL_H

#include "file/dat/page.h"
#include "base/files.h"
#include "base/log.h"

/*
 * A recording on disk while it runs: a directory of pages and texts from which a trace.dat can be made at the
 * end, or by `hyptrace recover` after the recorder was killed.
 *
 *   session          "key<TAB>value" lines, appended; the last of a key holds.
 *                    Locked (flock) by the recorder while it lives.
 *   undo             what to put back in tracefs (undo.h)
 *   texts/NAME       header_page, formats, kallsyms, ...
 *   buffers/N        "key<TAB>value" lines of buffer N: name, clock, path ...
 *   pages/N.C        whole sub-buffers of buffer N, CPU C, in order
 *   pages.new/N.C    ... that are to hold instead (spool_rewrite_end): then in rewritten, joined
 *   reserve          room kept for writing the trace.dat when the disk is full
 */
struct spool;

#define SPOOL_ALIGNED "aligned" /* key of a guest's: its clock was compared with the host's */
#define SPOOL_FLIGHT  "flight"	/* ... of the host's: pid of the flight recorder that takes SIGUSR1 */

/* A recording has at most so many buffers, each of at most so many CPUs (NR_CPUS of x86 with MAXSMP). */
#define SPOOL_BUFFERS_MAX 64
#define SPOOL_CPUS_MAX	  8192

/*
 * Makes dir (mode 0700); the caller closes or removes the spool. -EEXIST when there is
 * one: it may be the only copy of a recording, or a trap. Errors are logged.
 */
int spool_create(struct spool **out, const char *dir, const struct log *log);
/*
 * Opens one that a dead recorder left. -EBUSY: its recorder still lives. -ENOENT. -EPERM: other
 * users have access (logged). -EBADMSG: no spool; excess over the limits above is logged.
 */
int spool_open(struct spool **out, const char *dir, const struct log *log);
/*
 * Opens one whose recorder lives, or is dead, to read what comes: nothing in it is locked,
 * made or changed. Errors as of spool_open, but -EBUSY.
 */
int spool_open_live(struct spool **out, const char *dir, const struct log *log);
/*
 * Of such a one, whose keys it reads anew: pages may still come. False: what there is of them is
 * all, for they are drained or their recorder is dead.
 */
bool spool_is_recording(struct spool *s);
/* Frees; the directory stays. */
void spool_close(struct spool *s);
/* Frees, and removes the directory. 0 or -errno of the last step, the directory itself. */
int spool_remove(struct spool *s);

/* The directory as it was named; the spool's. */
const char *spool_dir(const struct spool *s);
/* The directory itself, open until the spool is closed. */
int spool_dirfd(const struct spool *s);

/* Appends a key to the session file. value must not hold a newline: -EINVAL. */
int spool_set(struct spool *s, const char *key, const char *value);
int spool_set_number(struct spool *s, const char *key, uint64_t n);
/* The key's last value, the spool's; NULL: it has none. */
const char *spool_get(const struct spool *s, const char *key);
/* ... as a number; otherwise: it has none. */
uint64_t spool_get_number(const struct spool *s, const char *key, uint64_t otherwise);
/* Sets the key boot_id to the running kernel's; *same: whether that is the kernel that still runs. */
int spool_set_boot_id(struct spool *s);
int spool_is_this_boot(const struct spool *s, bool *same);

/* Texts: whole files, written anew or appended to. -EINVAL, -ENAMETOOLONG: no name for one. */
int spool_put_text(struct spool *s, const char *name, const void *data, size_t len);
int spool_append_text(struct spool *s, const char *name, const void *data, size_t len);
/* Appends it to out. -ENOENT when it was never put. */
int spool_get_text(const struct spool *s, const char *name, struct buf *out);

/* The text of what guests' clocks are so far: "NAME<TAB>OFFSET<TAB>BOUND" lines, ns (peer-clock.c). */
#define SPOOL_CLOCKS "clocks"

/* Layout of the host's pages, by the text header_page. Errors as page_layout_read(). */
int spool_page_layout(const struct spool *s, struct page_layout *out);

/* Buffers: numbered from 0 in the order of spool_add_buffer, which copies the strings. */
struct spool_buffer {
	const char *name; /* "" = top */
	const char *clock;
	const char *path;   /* relative to the tracing directory */
	const char *kind;   /* "host", "profile", "hyp-text", "hyp-raw", "guest" */
	uint32_t page_size; /* bytes */
	unsigned int n_cpus;
};
int spool_add_buffer(struct spool *s, const struct spool_buffer *b);
size_t spool_n_buffers(const struct spool *s);
/* Buffer i, the spool's, until another is added; NULL: there are not so many. */
const struct spool_buffer *spool_buffer(const struct spool *s, size_t i);
/*
 * Makes n_cpus of each buffer the number of its files of pages, which a recorder makes from CPU 0 on, but at
 * least 1: so that no file is made for CPUs that a spool only claims to have.
 */
void spool_drop_missing_cpus(struct spool *s);
/*
 * A new descriptor of the file of pages, made if need be, for reading and writing, behind its last whole
 * page. Or -errno.
 */
int spool_pages_fd(const struct spool *s, size_t buffer, unsigned int cpu);

/*
 * Puts other pages in the place of what is there, once and for all: each file is written to a new descriptor,
 * then spool_rewrite_end makes all of them hold at once. What a kill leaves before that is dropped by the
 * next spool_rewrite_begin. Once for each purpose, of buffers of its own. 0, a descriptor, or -errno.
 */
#define SPOOL_REPAIRED "rewritten" /* record/drain/repair.c */
#define SPOOL_JOINED   "joined"	   /* record/marks/rings.h */
int spool_rewrite_begin(struct spool *s);
int spool_rewrite_fd(const struct spool *s, size_t buffer, unsigned int cpu);
int spool_rewrite_end(struct spool *s, const char *purpose);
bool spool_is_rewritten(const struct spool *s, const char *purpose);

/*
 * Keeps room for the trace.dat in step with what was recorded (a quarter of
 * `recorded` bytes). -ENOSPC when the disk is full. spool_free_reserve gives it back.
 */
int spool_reserve(struct spool *s, uint64_t recorded);
void spool_free_reserve(struct spool *s);

/*
 * Range of a spool's pages that counts. A recording that is written piece by piece, or of which only
 * the newest is kept, moves its start (the spool's file "range") and frees the space before it; the
 * files of pages keep growing.
 */
struct spool_range {
	uint64_t from, to; /* whole pages; to, of the recording itself: UINT64_MAX, up to the end */
};

/* A descriptor to read a CPU's pages with (pread), and which of them count, within the file. Or -errno. */
int spool_pages_open(const struct spool *s, size_t buffer, unsigned int cpu, struct spool_range *out);

/*
 * Reads each page of a CPU that counts, and up to `before` ones before them, and calls take for it. 1 of
 * take: the page was changed, and is written back; another result ends the walk and is returned. 0 or -errno.
 */
typedef int spool_page_fn(void *ctx, void *page, size_t size);
int spool_pages_walk(const struct spool *s, size_t buffer, unsigned int cpu, size_t before,
		     spool_page_fn *take, void *ctx);

/* True if any were thrown away, or may be. */
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
/* Tries that in a directory, which stays as it is. 0 or -errno. -EOPNOTSUPP: it cannot. */
int spool_can_forget(int dirfd);

/*
 * The path of the file that number is of: 3 and trace.dat make trace.003.dat; 0: as it
 * is. NULL: out of memory, or the spool names no output. The caller frees it.
 */
char *spool_numbered(const struct spool *s, uint64_t number);
/* ... of the spool's own number. */
char *spool_output(const struct spool *s);
/* ... of the file that its recorder begins next: it notes a number only some time after the last one is
 * written. */
char *spool_next_output(const struct spool *s);

/*
 * A spool that is a part of another: the same keys, buffers and pages, and texts but for those that are put
 * into the part. Its ranges are its own, and so are pages rewritten. In the directory WHOLE.part, which holds
 * nothing that is not in the whole. Errors as spool_create; spool_remove() it before the whole is closed.
 */
int spool_part(struct spool **out, const struct spool *whole, const struct log *log);
bool spool_is_part(const struct spool *s);
/* Removes the part that a killed recorder left. */
void spool_remove_part(const struct spool *whole);

#endif
