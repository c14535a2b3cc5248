// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads and writes whole files, and lists directories. */
#include "base/files.h"

#include <limits.h>
#include <stdarg.h>

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

#define READ_ROOM 16384 /* the kernel gives what it makes by and by a page at a time */

int read_fd(int fd, size_t max, struct buf *out)
{
	ssize_t n;

	do {
		void *to = buf_room(out, READ_ROOM);

		n = to ? read(fd, to, READ_ROOM) : 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && ((size_t)n > max || out->len > max - (size_t)n))
			return -EFBIG;
		out->len += n > 0 ? (size_t)n : 0;
	} while (n);
	return buf_status(out);
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

int read_line_at(int dirfd, char *line, size_t size, const char *path, ...)
{
	char name[PATH_MAX];
	ssize_t n;
	va_list ap;
	int fd;

	*line = 0;
	va_start(ap, path);
	vsnprintf(name, sizeof(name), path, ap);
	va_end(ap);
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read_all(fd, line, size - 1);
	close(fd);
	line[n > 0 ? n : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	return n < 0 ? (int)n : 0;
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
	strlist_sort(out);
	return ret;
}

bool file_there(int dirfd, const char *path)
{
	return !faccessat(dirfd, path, F_OK, 0) || (errno != ENOENT && errno != ENOTDIR);
}

int open_regular(const char *path)
{
	int found = open(path, O_PATH | O_CLOEXEC), fd = -1, ret;
	char again[32];
	struct stat st;

	if (found < 0)
		return -errno;
	/* the file that was looked at: its path may be another's by now */
	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	ret = fstat(found, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (!ret && (fd = open(again, O_RDONLY | O_CLOEXEC)) < 0)
		ret = -errno;
	close(found);
	return ret ?: fd;
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
	return S_ISREG(st->st_mode) && st->st_nlink > 1 ? "it has more than one name (hard links)" : NULL;
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
