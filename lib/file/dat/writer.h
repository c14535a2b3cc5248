/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WRITER_H
#define HYPTRACE_WRITER_H

#include "base/buf.h"
#include "base/log.h"

/*
 * Writes a trace.dat (trace-cmd.dat.v7(5), .v6(5)) from pages on disk and the
 * texts of tracefs. Knows nothing about how they were recorded.
 */

struct dat_cpu {
	int fd;		  /* file of whole pages, or -1: empty */
	uint64_t offset;  /* of the first byte in fd; 0 normally */
	uint64_t size;	  /* bytes; a multiple of the page size */
	const char *stat; /* CPUSTAT text ("CPU: 0\nentries: ..."), or NULL */
};

struct dat_buffer {
	const char *name;  /* "" is the top buffer, which comes first when there is one */
	const char *clock; /* "boot" */
	uint32_t page_size;
	uint32_t n_cpus;
	struct dat_cpu *cpus;
	/*
	 * Called with each page, in order, before it is written (may change it), or
	 * NULL. -errno stops the write.
	 */
	int (*fix_page)(void *ctx, unsigned int cpu, void *page, size_t size);
	void *fix_ctx;
};

struct dat_system {
	const char *name;
	size_t n;
	const struct dat_text {
		const char *data;
		size_t len;
	} * formats;
};

/* A text as a zstd frame. */
struct dat_zipped {
	const uint8_t *data;
	size_t len;
	uint32_t plain; /* bytes of the text */
};

struct dat_option {
	uint16_t id;
	const void *data;
	uint32_t len;
};

/* Option ids of trace-cmd.dat.v7(5). */
enum {
	DAT_DONE = 0,
	DAT_DATE = 1,
	DAT_CPUSTAT = 2,
	DAT_BUFFER = 3,
	DAT_TRACECLOCK = 4,
	DAT_UNAME = 5,
	DAT_HOOK = 6,
	DAT_OFFSET = 7,
	DAT_CPUCOUNT = 8,
	DAT_VERSION = 9,
	DAT_PROCMAPS = 10,
	DAT_TRACEID = 11,
	DAT_TIME_SHIFT = 12,
	DAT_GUEST = 13,
	DAT_TSC2NSEC = 14,
	DAT_STRINGS = 15,
	DAT_HEADER_INFO = 16,
	DAT_FTRACE_EVENTS = 17,
	DAT_EVENT_FORMATS = 18,
	DAT_KALLSYMS = 19,
	DAT_PRINTK = 20,
	DAT_CMDLINES = 21,
	DAT_BUFFER_TEXT = 22,
};

/* True if the writer makes these options itself, which dat_write then refuses: BUFFER, CPUSTAT, CPUCOUNT,
 * sections. */
bool dat_writes_option(uint16_t id);

/* Appends an option as both versions, and spools, have it: u16 id, u32 length, bytes. */
void dat_add_option(struct buf *out, uint16_t id, const void *data, uint32_t len);

struct dat_file {
	int version;		 /* 6 or 7 */
	const char *compression; /* "zstd" or NULL, "none" (7 only; 6 is always uncompressed) */
	uint32_t page_size;	 /* of the host */
	struct dat_text header_page, header_event;
	const struct dat_text *ftrace; /* formats of events/ftrace/ */
	size_t n_ftrace;
	const struct dat_system *systems;
	size_t n_systems;
	struct dat_text kallsyms, printk, cmdlines; /* may be empty */
	/* In place of kallsyms, only where the file is compressed: called after all pages. NULL: none. */
	int (*symbols)(void *ctx, struct dat_zipped *z);
	void *symbols_ctx;
	struct dat_buffer *buffers;
	size_t n_buffers;
	const struct dat_option *options; /* written as given, in addition to the writer's own */
	size_t n_options;
	/*
	 * The writer itself writes BUFFER (all buffers), CPUSTAT, CPUCOUNT, and the section options of v7;
	 * options.h makes most others. The caller gives TRACEID, TRACECLOCK, TSC2NSEC, UNAME, VERSION, DATE,
	 * PROCMAPS, GUEST, TIME_SHIFT. Stock warns about ids that it does not know, and reads on.
	 */
	void (*progress)(void *ctx, uint64_t done, uint64_t total); /* bytes of pages, or NULL */
	void *progress_ctx;
};

/* True if the file will be compressed. */
bool dat_zips(const struct dat_file *f);

/*
 * Writes to fd (a new, seekable file, from its start). On error what was written is of no use. -ENOSPC and
 * the like from the disk; -EIO when a source ends early; -ENOTSUP for an unknown version or compression, or
 * page sizes that differ in version 6; -EINVAL for what no file can hold: a page size that is no power of two
 * from 4 KiB to 1 MiB, sizes that are no multiple of it, two buffers of one name, options that the writer
 * makes itself, no header texts. These two are logged.
 */
int dat_write(const struct dat_file *f, int fd, const struct log *log);

/* ---- out.c: for those that write a file, or a part of one, by themselves ---- */

/*
 * The file being written: small writes gathered, places patched afterwards. The first error stays in err and
 * makes every later call do nothing: check it once after a run of writes.
 */
struct dat_out {
	int fd;
	int err;      /* -errno of the first failure, or 0 */
	uint64_t pos; /* of the next byte, from the start of the file */
	uint8_t *buf; /* the last `used` bytes before pos, not yet in the file */
	size_t used;
};

/* Writes to fd, which stays the caller's; pos begins at 0. -ENOMEM. */
int dat_out_init(struct dat_out *o, int fd);
/* Frees the buffer without writing it: see dat_out_flush(). */
void dat_out_release(struct dat_out *o);
/* Append bytes, and integers in native byte order. */
void dat_out_write(struct dat_out *o, const void *data, size_t len);
void dat_out_u16(struct dat_out *o, uint16_t v);
void dat_out_u32(struct dat_out *o, uint32_t v);
void dat_out_u64(struct dat_out *o, uint64_t v);
/* The file's first bytes: "tracing", version, byte order, size of long, page size. */
void dat_out_magic(struct dat_out *o, int version, uint32_t page_size);
/* Zeros up to a multiple of align, a power of two. */
void dat_out_align(struct dat_out *o, uint32_t align);
/* Overwrites `size` bytes written earlier, 4 or 8, at `at`. */
void dat_out_patch(struct dat_out *o, uint64_t at, uint64_t v, size_t size);
/* Everything into the file; returns err. */
int dat_out_flush(struct dat_out *o);

#endif
