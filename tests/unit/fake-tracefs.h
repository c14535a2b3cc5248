/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fake tracefs for unit tests: plain files in a temporary directory. It shows
 * which files are written, in which order and with what; what the kernel makes
 * of it is checked in the lab.
 */
#ifndef FAKE_TRACEFS_H
#define FAKE_TRACEFS_H

#include "base/buf.h"
#include "base/files.h"
#include "base/log.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct fake {
	char root[64]; /* holds "t", the tracing directory, and what the test likes */
	char dir[80];
	int fd;
	char log[4096]; /* what was logged, a line each */
	struct log to;
};

static inline void fake_log(void *ctx, enum log_level level, const char *msg)
{
	struct fake *f = ctx;
	size_t len = strlen(f->log);

	snprintf(f->log + len, sizeof(f->log) - len, "%s%s\n", level == LOG_WARN ? "warning: " : "", msg);
}

static inline void fake_open(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	strcpy(f->root, "/tmp/hyptrace-fake-XXXXXX");
	assert_non_null(mkdtemp(f->root));
	snprintf(f->dir, sizeof(f->dir), "%s/t", f->root);
	assert_int_equal(mkdir(f->dir, 0755), 0);
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	assert_true(f->fd >= 0);
	f->to = (struct log){ fake_log, f };
}

static inline int fake_rm(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static inline void fake_close(struct fake *f)
{
	close(f->fd);
	nftw(f->root, fake_rm, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes a file and the directories that it needs. */
static inline void fake_put(struct fake *f, const char *path, const char *text)
{
	char part[256];

	for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(s - path), path);
		mkdirat(f->fd, part, 0755);
	}
	assert_int_equal(write_file_at(f->fd, path, text, strlen(text)), 0);
}

static inline const char *fake_get(struct fake *f, const char *path)
{
	static char text[1 << 17];
	struct buf b = { 0 };

	assert_int_equal(read_file_at(f->fd, path, sizeof(text) - 1, &b), 0);
	snprintf(text, sizeof(text), "%s", buf_str(&b));
	buf_release(&b);
	return text;
}

/* The first line: a value that was written without O_TRUNC over a longer one. */
static inline const char *fake_line(struct fake *f, const char *path)
{
	char *text = (char *)fake_get(f, path);

	text[strcspn(text, "\n")] = 0;
	return text;
}

#endif
