// SPDX-License-Identifier: LGPL-2.1-or-later
/* The log, the cursor, byte buffers, string lists, whole files and numbers. */
#include "util/base.h"
#include "util/array.h"
#include "util/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void log_msg(const struct log *log, enum log_level level, const char *fmt, ...)
{
	char msg[4096], line[2 * sizeof(msg)];
	va_list ap;

	if (!log || !log->fn)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	log->fn(log->ctx, level, visible_line(line, sizeof(line), msg));
}

struct cursor cursor_at(const void *data, size_t len)
{
	const uint8_t *p = data ? data : (const void *)""; /* C has no NULL + 0 */

	return (struct cursor){ .p = p, .end = p + len };
}

size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

const void *cursor_take(struct cursor *c, size_t len)
{
	const uint8_t *p = c->p;

	if (c->bad || len > cursor_left(c)) {
		c->bad = true;
		return NULL;
	}
	c->p += len;
	return p;
}

#define CURSOR_INT(name, type)                                                                               \
	type name(struct cursor *c)                                                                          \
	{                                                                                                    \
		const void *p = cursor_take(c, sizeof(type));                                                \
		type v = 0;                                                                                  \
                                                                                                             \
		if (p)                                                                                       \
			memcpy(&v, p, sizeof(v));                                                            \
		return v;                                                                                    \
	}

CURSOR_INT(cursor_u8, uint8_t)
CURSOR_INT(cursor_u16, uint16_t)
CURSOR_INT(cursor_u32, uint32_t)
CURSOR_INT(cursor_u64, uint64_t)

const char *cursor_str(struct cursor *c)
{
	const char *s = (const char *)c->p;
	const uint8_t *nul = c->bad ? NULL : memchr(c->p, 0, cursor_left(c));

	if (!nul) {
		c->bad = true;
		return NULL;
	}
	c->p = nul + 1;
	return s;
}

bool cursor_line(struct cursor *c, const char **line, size_t *len)
{
	const uint8_t *nl;

	if (c->bad || c->p == c->end)
		return false;
	nl = memchr(c->p, '\n', cursor_left(c));
	*line = (const char *)c->p;
	*len = (size_t)((nl ? nl : c->end) - c->p);
	c->p = nl ? nl + 1 : c->end;
	return true;
}

int cursor_peek(const struct cursor *c)
{
	return c->bad || c->p == c->end ? -1 : *c->p;
}

bool cursor_accept(struct cursor *c, char ch)
{
	if (cursor_peek(c) != ch)
		return false;
	c->p++;
	return true;
}

void cursor_blanks(struct cursor *c)
{
	while (cursor_accept(c, ' ') || cursor_accept(c, '\t') || cursor_accept(c, '\n') ||
	       cursor_accept(c, '\r'))
		;
}

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void *buf_grow(struct buf *b, size_t len)
{
	size_t cap = b->cap ? b->cap : 256;
	uint8_t *data;

	if (b->bad)
		return NULL;
	if (len < b->cap - b->len)
		return b->data + b->len;
	while (cap - b->len <= len) {
		if (cap > SIZE_MAX / 2)
			goto fail;
		cap *= 2;
	}
	data = realloc(b->data, cap);
	if (!data)
		goto fail;
	b->data = data;
	b->cap = cap;
	return b->data + b->len;
fail:
	buf_release(b);
	b->bad = true;
	return NULL;
}

void buf_addstr(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n >= 0 && buf_room(b, (size_t)n + 1)) {
		vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	va_end(ap);
}

void buf_add_u64(struct buf *b, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	/* two at a time: a division is what takes time */
	for (; v >= 100; v /= 100) {
		unsigned int two = (unsigned int)(v % 100);

		digits[--at] = (char)('0' + two % 10);
		digits[--at] = (char)('0' + two / 10);
	}
	if (v >= 10)
		digits[--at] = (char)('0' + v % 10);
	digits[--at] = (char)('0' + (v >= 10 ? v / 10 : v));
	buf_add(b, digits + at, sizeof(digits) - at);
}

void buf_add_i64(struct buf *b, int64_t v)
{
	if (v < 0)
		buf_add(b, "-", 1);
	buf_add_u64(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void buf_add_utf8(struct buf *b, uint32_t u)
{
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
	uint8_t bytes[4];

	for (size_t i = n; i-- > 1; u >>= 6)
		bytes[i] = 0x80 | (u & 0x3f);
	bytes[0] = lead[n] | (uint8_t)u;
	buf_add(b, bytes, n);
}

const char *buf_str(struct buf *b)
{
	if (!buf_room(b, 1))
		return NULL;
	b->data[b->len] = 0;
	return (const char *)b->data;
}

int buf_status(const struct buf *b)
{
	return b->bad ? -ENOMEM : 0;
}

int strlist_take(struct strlist *l, char *s)
{
	char **v = s ? array_grow(l->v, l->n, sizeof(*v)) : NULL;

	if (!v) {
		free(s);
		return -ENOMEM;
	}
	l->v = v;
	v[l->n++] = s;
	return 0;
}

int strlist_add(struct strlist *l, const char *s)
{
	return strlist_take(l, strdup(s));
}

int strlist_add_lines(struct strlist *l, const void *text, size_t len)
{
	struct cursor c = cursor_at(text, len);
	const char *line;
	int ret = 0;

	while (!ret && cursor_line(&c, &line, &len))
		ret = strlist_take(l, strndup(line, len));
	return ret;
}

bool strlist_has(const struct strlist *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], s))
			return true;
	return false;
}

static int strings_in_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void strlist_release(struct strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct strlist){ 0 };
}

/* read, or pread at *offset. */
static ssize_t read_loop(int fd, void *data, size_t len, const uint64_t *offset)
{
	size_t done = 0;

	while (done < len) {
		uint8_t *to = (uint8_t *)data + done;
		ssize_t n = offset ? pread(fd, to, len - done, (off_t)(*offset + done))
				   : read(fd, to, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* write, or pwrite at *offset. */
static int write_loop(int fd, const void *data, size_t len, const uint64_t *offset)
{
	size_t done = 0;

	while (done < len) {
		const uint8_t *from = (const uint8_t *)data + done;
		ssize_t n = offset ? pwrite(fd, from, len - done, (off_t)(*offset + done))
				   : write(fd, from, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

ssize_t read_all(int fd, void *data, size_t len)
{
	return read_loop(fd, data, len, NULL);
}

ssize_t pread_all(int fd, void *data, size_t len, uint64_t offset)
{
	return read_loop(fd, data, len, &offset);
}

int write_all(int fd, const void *data, size_t len)
{
	return write_loop(fd, data, len, NULL);
}

int pwrite_all(int fd, const void *data, size_t len, uint64_t offset)
{
	return write_loop(fd, data, len, &offset);
}

int read_fd(int fd, size_t max, struct buf *out)
{
	uint8_t chunk[16384];
	ssize_t n;

	while ((n = read_all(fd, chunk, sizeof(chunk))) > 0) {
		if ((size_t)n > max || out->len > max - (size_t)n) {
			n = -EFBIG;
			break;
		}
		buf_add(out, chunk, (size_t)n);
	}
	return n < 0 ? (int)n : buf_status(out);
}

int read_file_at(int dirfd, const char *path, size_t max, struct buf *out)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = read_fd(fd, max, out);
	close(fd);
	return ret;
}

int read_file(const char *path, size_t max, struct buf *out)
{
	return read_file_at(AT_FDCWD, path, max, out);
}

int read_lines_at(int dirfd, const char *path, size_t max, struct strlist *out)
{
	struct buf text = { 0 };
	int ret = read_file_at(dirfd, path, max, &text) ?: strlist_add_lines(out, text.data, text.len);

	buf_release(&text);
	return ret;
}

DIR *open_dir_at(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0) {
		error = errno;
		close(fd);
		errno = error;
	}
	return d;
}

int read_dir_at(int dirfd, const char *path, struct strlist *out)
{
	DIR *d = open_dir_at(dirfd, path);
	struct dirent *de;
	int ret = 0;

	if (!d)
		return -errno;
	while (!ret && (errno = 0, de = readdir(d)))
		if (de->d_name[0] != '.')
			ret = strlist_add(out, de->d_name);
	if (!ret && errno)
		ret = -errno;
	closedir(d);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), strings_in_order);
	return ret;
}

bool file_there(int dirfd, const char *path)
{
	return !faccessat(dirfd, path, F_OK, 0) || (errno != ENOENT && errno != ENOTDIR);
}

bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

const char *file_distrust(const struct stat *st)
{
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return "it is neither a file nor a directory";
	if (st->st_uid != geteuid())
		return "it belongs to another user";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "others may write to it";
	if (S_ISREG(st->st_mode) && st->st_nlink > 1)
		return "it has more than one name (hard links)";
	return NULL;
}

int write_file_at(int dirfd, const char *path, const void *data, size_t len)
{
	int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write_all(fd, data, len);
	return close(fd) < 0 && !ret ? -errno : ret;
}

void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int parse_u64(const char *s, uint64_t *out)
{
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	unsigned long long v;
	char *end;

	if (hex)
		s += 2;
	/* strtoull takes blanks and signs; a number begins with a digit */
	if (hex ? !strchr("0123456789abcdefABCDEF", *s) || !*s : *s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, hex ? 16 : 10);
	if (errno)
		return -errno;
	if (*end)
		return -EINVAL;
	*out = v;
	return 0;
}

int hex_value(int ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch |= 0x20;
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static int signals_fd(const sigset_t *set)
{
	int fd;

	if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return signals_fd(&set);
}

int dump_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return signals_fd(&set);
}

static uint64_t clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t boot_ns(void)
{
	return clock_now(CLOCK_BOOTTIME);
}

uint64_t mono_ns(void)
{
	return clock_now(CLOCK_MONOTONIC);
}

const char *errno_text(int error)
{
	return error == -EBADMSG ? "it is damaged, or not what it should be" : strerror(-error);
}

char *str_printf(const char *fmt, ...)
{
	char *s;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : s;
}

size_t path_stem(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

	return dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
}
