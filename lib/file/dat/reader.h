/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_READER_H
#define HYPTRACE_READER_H

#include "file/dat/page.h"
#include "file/dat/writer.h"

/*
 * Reads a trace.dat of version 6 or 7 (trace-cmd.dat.v6(5), .v7(5)): its texts, options and pages, compressed
 * with zstd or not. Everything in the file is foreign: all lengths and offsets are checked.
 *
 * The metadata that a guest's agent sends is such a file too, one that ends before its buffers.
 */
struct reader;

struct reader_format {
	const char *system; /* "ftrace", "kvm" */
	struct dat_text text;
};

struct reader_option {
	uint16_t id;
	struct dat_text data;
};

struct reader_cpu {
	unsigned int cpu;
	uint64_t offset, size; /* in the file, bytes; compressed ones with their table */
};

struct reader_buffer {
	const char *name;  /* "" = top */
	const char *clock; /* "boot"; "" if the file has none */
	uint32_t page_size;
	size_t n_cpus;
	struct reader_cpu *cpus;
};

struct reader_info {
	int version;
	const char *compression; /* "none", "zstd" ... */
	uint32_t page_size;
	struct dat_text header_page, header_event, printk, cmdlines;
	struct dat_text kallsyms;  /* by reader_symbols() */
	struct reader *reader;	   /* that still has to read them; NULL: none */
	struct page_layout layout; /* by header_page */
	struct reader_format *formats;
	size_t n_formats;
	struct reader_option *options; /* all but BUFFER and those that only lead to sections */
	size_t n_options;
	struct reader_buffer *buffers;
	size_t n_buffers;
};

/*
 * fd stays the caller's and must stay open. -EBADMSG: no trace.dat, or one that contradicts itself
 * (the log has the place); -ENOTSUP (logged): another version, byte order, or compression; -ESPIPE
 * (logged): a pipe or a socket; -ENOMEM; else the read call's error (-EIO).
 */
int reader_open(struct reader **out, int fd, const struct log *log);
/* Has what reader_symbols() logs begin with the path, which must outlive r. */
void reader_name(struct reader *r, const char *path);
/*
 * The kernel's symbols, some MB, which version 7's files give when they are asked for: one thread at a time.
 * Errors as of reader_open(), all of them logged.
 */
int reader_symbols(const struct reader_info *info, struct dat_text *out);
/* Frees it and all that its info points to. Takes NULL. */
void reader_close(struct reader *r);
/* Owned by r. */
const struct reader_info *reader_info(const struct reader *r);
/* The first option with this id, or NULL. */
const struct reader_option *reader_option(const struct reader *r, uint16_t id);

struct cursor;
/* The next task of the info's cmdlines, lines "PID NAME"; others are passed over. False: the end. */
bool reader_task(struct cursor *lines, uint64_t *pid, const char **name, size_t *len);

/* One CPU's pages from first to last; several can be open at once. */
struct reader_pages;
/*
 * buffer and cpu: indices in the lists. 0, -EINVAL: no such index, -ENOMEM, -EBADMSG, or the read
 * call's error. Close it before the reader.
 */
int reader_pages_open(struct reader_pages **out, const struct reader *r, size_t buffer, size_t cpu);
/* 1: *page (page_size bytes, until the next call); 0: the end; -EBADMSG: damaged; -ENOMEM, -EIO ... */
int reader_pages_next(struct reader_pages *p, const uint8_t **page);
/* The next page is the one with byte `at` of all pages, unpacked: 1; 0: there is none; or as above. */
int reader_pages_seek(struct reader_pages *p, uint64_t at);
#define READER_LAST UINT64_MAX /* the last page; of compressed ones the first of the last chunk */
/* The page after the last one, if it was read with it; else NULL. */
const uint8_t *reader_pages_ahead(const struct reader_pages *p);
/* From now on, until a seek, threads that have time (errands_help()) unpack what follows beforehand. */
void reader_pages_beside(struct reader_pages *p);
/* Bytes of the file that were read for them, at most the CPU's size. Any thread. */
uint64_t reader_pages_done(const struct reader_pages *p);
void reader_pages_close(struct reader_pages *p);

/*
 * Pages are read, and unpacked, some at a time. Holding the block of the page that was read last
 * keeps the page beyond the next call, and even beyond reader_pages_close(). Any thread may drop it.
 */
struct reader_block;
struct reader_block *reader_block_hold(struct reader_pages *p);
/* NULL is fine. */
void reader_block_drop(struct reader_block *b);
/* True if data lies in it: at which byte of the CPU's pages, unpacked. */
bool reader_block_has(const struct reader_block *b, const uint8_t *data, uint64_t *at);

/* ---- copy.c ---- */

struct dat_source {
	const char *name; /* for messages */
	const struct reader *reader;
	bool gap; /* events may be missing before it: a loss of an unknown number on each CPU */
};

/*
 * A trace.dat made of others: version, compression, texts, CPUs and options of the first one, the names of
 * tasks and the records of all, one after the other. Pages are written unchanged where all their records are
 * wanted, and losses stay with the record that follows them.
 */
struct dat_copy {
	const struct dat_source *v; /* one, or pieces of one recording in their order */
	size_t n;
	const struct dat_option *options; /* in place of the file's; NULL: those of the file */
	size_t n_options;
	/* Below 0: a record at that time of a CPU comes before those that are wanted; 0: it is one of them;
	 * above 0: it comes after them. NULL: all are. */
	int (*wanted)(void *ctx, unsigned int cpu, uint64_t ts);
	void *ctx;
	/* For copies of parts one after the other: pages that all come before, by buffers and CPUs of the
	 * first source; zeros at first. NULL: none. */
	uint64_t *passed;
};

/*
 * Writes to fd, as dat_write() does, with pages in an unnamed file beside path meanwhile. -EINVAL (logged):
 * sources are no pieces of one recording, or overlap; -ENOTSUP (logged): an edge lies in a page of a 32-bit
 * kernel; else as dat_write() and the readers.
 */
int dat_copy(const struct dat_copy *c, int fd, const char *path, const struct log *log);

#endif
