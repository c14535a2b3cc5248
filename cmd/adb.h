/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_ADB_H
#define HYPTRACE_ADB_H

#include "util/base.h"

/* A phone, as Android's adb reaches it. */
struct adb {
	const char *serial; /* NULL: adb's choice */
	int stop_fd;	    /* of stop_signals(); */
	const struct log *log;
};

/*
 * Runs adb with these words (NULL-ended), which prints on our streams, or into *out (at most
 * 64 KiB). At a signal the line on_stop is run in the phone's shell, as often as one comes;
 * NULL: adb is ended. Returns its exit status (128 + signal), or -errno: -EINTR if it was ended.
 */
int adb_run(const struct adb *a, const char *const *words, const char *on_stop, struct buf *out);
/* The same for `adb shell`. */
int adb_shell(const struct adb *a, const char *line, const char *on_stop, struct buf *out);
/* Adds a blank and the word, so that the phone's shell takes it for one. */
void adb_quote(struct buf *line, const char *word);

#endif
