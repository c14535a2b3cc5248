/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FILES_H
#define HYPTRACE_FILES_H

#include "base/buf.h"
#include "base/strings.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Calls return 0 (or a count) on success, -errno otherwise, unless a comment says something else. */

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
/*
 * The first line of the file of a printed path, without its newline; what does not fit is left out.
 * "": it has none, or with -errno.
 */
int read_line_at(int dirfd, char *line, size_t size, const char *path, ...)
	__attribute__((format(printf, 4, 5)));
/* Adds the names in a directory, sorted, but for those that begin with a dot. */
int read_dir_at(int dirfd, const char *path, struct strlist *out);
/* To be read with readdir; NULL and errno. */
DIR *open_dir_at(int dirfd, const char *path);
/* False only on ENOENT; open() reports other errors. */
bool file_there(int dirfd, const char *path);
/*
 * Opens a regular file to be read. A name out of a file, of a guest or of another process may be a FIFO's or
 * a device's, which opening alone would wait for or set going: this opens neither. A descriptor, or -errno;
 * -EINVAL: no regular file.
 */
int open_regular(const char *path);
struct stat;
/* True if both are of one file. */
bool same_file(const struct stat *a, const struct stat *b);
/* Reason to distrust a file or directory that another user could have made or changed, as a text:
 * "others may write to it". NULL: no other user could. */
const char *file_distrust(const struct stat *st);
/* Creates or truncates, writes, closes. */
int write_file_at(int dirfd, const char *path, const void *data, size_t len);

/* Closes it, unless it is -1, which it is then. */
void fd_close(int *fd);

#endif
