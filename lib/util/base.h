/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_BASE_H
#define HYPTRACE_BASE_H

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/*
 * What every module uses: bounds-checked reading of foreign bytes, the log
 * callback, whole reads and writes, growing byte buffers and string lists.
 *
 * Errors: 0 (or a count) on success, -errno otherwise, unless a call says
 * something else. Nothing here prints or exits.
 */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---- log ---------------------------------------------------------------- */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/*
 * Where a module says what it did or what is in the way: one line without a
 * newline, lower case, no full stop. Passed down by the command; a NULL log or
 * a NULL fn drops the message.
 */
struct log {
	void (*fn)(void *ctx, enum log_level level, const char *msg);
	void *ctx;
};

/*
 * The message, at most 4095 bytes of it, goes to log->fn; see struct log. What names in it
 * would do to a terminal or to the line is shown instead (visible.h).
 */
void log_msg(const struct log *log, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_err(log, ...)   log_msg(log, LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...)  log_msg(log, LOG_WARN, __VA_ARGS__)
#define log_info(log, ...)  log_msg(log, LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_msg(log, LOG_DEBUG, __VA_ARGS__)

/* ---- cursor: bytes that somebody else wrote ------------------------------ */

/*
 * A place in a byte range. A read past the end returns zeros or NULL and sets
 * `bad`, which stays set: check it once after a run of reads.
 */
struct cursor {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

/* A cursor over len bytes, which stay the caller's; and how many are left. */
struct cursor cursor_at(const void *data, size_t len);
size_t cursor_left(const struct cursor *c);
/* The next len bytes (owned by the range), or NULL and bad. */
const void *cursor_take(struct cursor *c, size_t len);
/* Native-endian integers: ring-buffer pages and the files made from them. */
uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
/* A NUL-ended string inside the range, or NULL and bad. */
const char *cursor_str(struct cursor *c);
/*
 * The next line without its '\n' (the last one may lack it). Returns false at
 * the end of the range. The line is not NUL-ended.
 */
bool cursor_line(struct cursor *c, const char **line, size_t *len);

/* The next byte, which stays; -1: at the end, or bad. */
int cursor_peek(const struct cursor *c);
/* Steps over ch if it comes next. */
bool cursor_accept(struct cursor *c, char ch);
/* Steps over spaces, tabs and ends of lines. */
void cursor_blanks(struct cursor *c);

/* ---- growing bytes ------------------------------------------------------- */

/* Zero-initialised = empty. A failed allocation sets bad and drops the data. */
struct buf {
	uint8_t *data;
	size_t len, cap;
	bool bad;
};

/* Frees the data; *b is empty again. */
void buf_release(struct buf *b);
/* Room for len more bytes and one behind b->len, which the caller moves on; NULL: no memory, b is bad. */
void *buf_grow(struct buf *b, size_t len);
static inline void *buf_room(struct buf *b, size_t len)
{
	return len < b->cap - b->len ? b->data + b->len : buf_grow(b, len);
}
/* Append bytes, a string, printf's text, a number in decimal. */
static inline void buf_add(struct buf *b, const void *data, size_t len)
{
	void *at = len ? buf_room(b, len) : NULL;

	if (!at)
		return;
	memcpy(at, data, len);
	b->len += len;
}
void buf_addstr(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_add_u64(struct buf *b, uint64_t v);
void buf_add_i64(struct buf *b, int64_t v);
/* The UTF-8 of a code point up to U+10FFFF. */
void buf_add_utf8(struct buf *b, uint32_t u);
/* NUL-ends the data (the NUL is not counted in len); "" when empty, NULL when bad. */
const char *buf_str(struct buf *b);
/* -ENOMEM when an earlier call failed, else 0. */
int buf_status(const struct buf *b);

/* ---- string lists -------------------------------------------------------- */

/* Zero-initialised = empty; owns copies of its strings. */
struct strlist {
	char **v;
	size_t n;
};

int strlist_add(struct strlist *l, const char *s); /* 0 or -ENOMEM */
/* The same of a malloc'ed string, which is the list's then; NULL: -ENOMEM. */
int strlist_take(struct strlist *l, char *s);
/* Each line of a text, without its newline. */
int strlist_add_lines(struct strlist *l, const void *text, size_t len);
bool strlist_has(const struct strlist *l, const char *s);
void strlist_release(struct strlist *l);

/* ---- files --------------------------------------------------------------- */

/* Read until len bytes, end of file (short count) or an error. Retry EINTR. offset in bytes. */
ssize_t read_all(int fd, void *data, size_t len);
ssize_t pread_all(int fd, void *data, size_t len, uint64_t offset);
/* Write everything or return -errno. Retry EINTR. */
int write_all(int fd, const void *data, size_t len);
int pwrite_all(int fd, const void *data, size_t len, uint64_t offset);
/* The rest of a file (tracefs files report size 0), at most max bytes: -EFBIG beyond. */
int read_fd(int fd, size_t max, struct buf *out);
/* The whole of one. */
int read_file(const char *path, size_t max, struct buf *out);
int read_file_at(int dirfd, const char *path, size_t max, struct buf *out);
/* The lines of such a file. */
int read_lines_at(int dirfd, const char *path, size_t max, struct strlist *out);
/* Adds the names in a directory, sorted, but for those that begin with a dot. */
int read_dir_at(int dirfd, const char *path, struct strlist *out);
/* To be read with readdir; NULL and errno. */
DIR *open_dir_at(int dirfd, const char *path);
/* False only where there certainly is none: whoever opens it learns why he cannot. */
bool file_there(int dirfd, const char *path);
struct stat;
/* Whether both tell of one file. */
bool same_file(const struct stat *a, const struct stat *b);
/* Why another user could have made or changed a file or directory: "others may write to it". NULL: none
 * could. */
const char *file_distrust(const struct stat *st);
/* Creates or truncates, writes, closes. */
int write_file_at(int dirfd, const char *path, const void *data, size_t len);

/* Closes it, unless it is -1, which it is then. */
void fd_close(int *fd);

/* Strict decimal (or 0x... hexadecimal) number: the whole string, no sign. -EINVAL, -ERANGE. */
int parse_u64(const char *s, uint64_t *out);

/* The value of a hexadecimal digit; -1: it is none. */
int hex_value(int ch);

/* A descriptor that becomes readable at SIGINT, SIGTERM or SIGHUP, which are blocked. -errno. */
int stop_signals(void);
/* ... at SIGUSR1. */
int dump_signal(void);

/* Now, ns of CLOCK_BOOTTIME, which the trace clock "boot" is. */
uint64_t boot_ns(void);
/* ... of CLOCK_MONOTONIC, for waiting. */
uint64_t mono_ns(void);

/* strerror for people: what -EBADMSG means here is in no manual of theirs. */
const char *errno_text(int error);

/* malloc'ed printf; NULL when out of memory. */
char *str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Bytes of a path before its last name's extension: 7 of "d.1/out.dat"; without one, all. */
size_t path_stem(const char *path);

#endif
