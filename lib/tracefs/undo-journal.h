/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_UNDO_JOURNAL_H
#define HYPTRACE_UNDO_JOURNAL_H

#include "util/base.h"

/*
 * The journal of undo.h: entries in memory and, one line each, in a file. The
 * file is input like any other when it is read back. Used by undo only.
 */

enum entry_op { ENTRY_WRITE, ENTRY_LIST, ENTRY_RMDIR };

struct entry {
	enum entry_op op;
	char *path;
	char *value; /* "" for ENTRY_RMDIR */
	off_t at;    /* where its line begins in the file */
};

struct journal {
	struct entry *v;
	size_t n;
	int fd; /* -1: in memory only */
	off_t end;
};

/* Creates the file in dirfd (-EEXIST) and locks it; path NULL: in memory only. */
int journal_create(struct journal *j, int dirfd, const char *path);
/* -EBADMSG with *line = the number of the line that makes no sense; -EBUSY: in use. */
int journal_load(struct journal *j, int dirfd, const char *path, size_t *line);
void journal_close(struct journal *j);

/* Writes the line to the file, then keeps the entry. */
int journal_add(struct journal *j, enum entry_op op, const char *path, const char *value);
/* Drops the newest entry, in the file too. */
void journal_pop(struct journal *j);

#endif
