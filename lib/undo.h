/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_UNDO_H
#define HYPTRACE_UNDO_H

#include "base.h"

/*
 * Every change to tracefs goes through here: the old state is written to a
 * journal on disk *before* the change, so that the end of a recording, an error
 * half-way, and `hyptrace recover` after a kill -9 all put tracefs back in the
 * same way: newest change first.
 *
 * Journal: one record per line, tab-separated, values percent-escaped
 * (%, tab, newline, bytes outside 0x20..0x7e):
 *   write  PATH VALUE   open for writing without O_TRUNC, write VALUE
 *   list   PATH VALUE   open with O_TRUNC (clears the list), then write VALUE line by line
 *   rmdir  PATH         remove an instance
 *   enable PATH VALUE   0/1 into an event's enable file
 * Paths are relative to the tracing directory.
 */
struct undo;

/*
 * journal: path of the journal file, created; NULL keeps it in memory only.
 * tracing_dir: where tracefs is mounted, e.g. /sys/kernel/tracing.
 */
int undo_open(struct undo **u, const char *tracing_dir, const char *journal, const struct log *log);
/* Reads the journal of a session that died. Fails with -EBADMSG on a line that makes no sense. */
int undo_load(struct undo **u, const char *tracing_dir, const char *journal, const struct log *log);
/* Frees without undoing. */
void undo_free(struct undo *u);

const char *undo_dir(const struct undo *u); /* the tracing directory */
int undo_dirfd(const struct undo *u);

/*
 * Reads path's current value (first line for plain values; a bracketed choice
 * such as "local [boot] mono" gives what is in brackets; "7 (unloaded)" or
 * "7 (expanded: 1408)" gives the number), journals it, writes value. No write and no
 * journal entry when it already has that value. -errno of the write, so that
 * the caller can say what EINVAL or EBUSY means here.
 */
int undo_write(struct undo *u, const char *path, const char *value);
/*
 * For list files (set_event, set_ftrace_filter, set_event_pid ...): journals the
 * whole content (comment lines dropped), clears, and writes the lines of value ("" = just clear).
 */
int undo_list(struct undo *u, const char *path, const char *value);
/* mkdir of an instance (path relative, "instances/x"); -EEXIST leaves it and journals nothing. */
int undo_mkdir(struct undo *u, const char *path);
/* Writes without journal (a command such as clearing `trace`). */
int undo_poke(struct undo *u, const char *path, const char *value);
/* Journals that `value` must be written to path at the end, whatever it is now. */
int undo_at_end(struct undo *u, const char *path, const char *value);

/*
 * Puts everything back, newest first, going on after a failure. Returns the
 * number of entries that could not be put back (each is logged with its path),
 * or -errno. The journal is then empty.
 */
int undo_all(struct undo *u);
/* A mark to go back to: undo_to undoes what came after it. */
size_t undo_mark(const struct undo *u);
int undo_to(struct undo *u, size_t mark);

#endif
