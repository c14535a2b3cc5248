/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_UNDO_H
#define HYPTRACE_UNDO_H

#include "base/files.h"
#include "base/log.h"

/* ---- dir.c ---- */

/*
 * The tracing directory: `given` (unless NULL or ""), or where tracefs is mounted, or /sys/kernel/tracing, on
 * which it is mounted then. malloc'ed; NULL with a message when there is none or it may not be read.
 */
char *tracefs_dir(const char *given, const struct log *log);

/*
 * The same by the text of /proc/self/mountinfo: the first mount of the whole of tracefs, else "tracing" below
 * the first debugfs. malloc'ed; NULL: neither, or out of memory.
 */
char *tracefs_mounted(const char *mountinfo, size_t len);

/* True if a path lies below the tracing directory: relative, no "." or ".." parts, no control characters. */
bool tracefs_path_ok(const char *path);

/* n: CPUs with a directory in a buffer's per_cpu (path), which are all possible ones; 0 with an error. */
int tracefs_cpus(int dirfd, const char *path, unsigned int *n);

/*
 * Events read and lost of a CPU by its stats file: overwritten unread, or without room in a buffer that does
 * not overwrite. Both are 0 with an error.
 */
int tracefs_counts(int dirfd, const char *stats, uint64_t *events, uint64_t *lost);

/* ---- undo.c ---- */

/*
 * Every change to tracefs goes through here: the old state is written to a journal on disk *before* the
 * change, so that the end of a recording, an error half-way, and `hyptrace recover` after a kill -9 all put
 * tracefs back in the same way: newest change first.
 *
 * Journal: one record per line, tab-separated, values percent-escaped
 * (%, tab, newline, bytes outside 0x20..0x7e):
 *   write  PATH VALUE   open for writing without O_TRUNC, write VALUE
 *   list   PATH VALUE   make VALUE (lines) the content of a list file
 *   rmdir  PATH         remove an instance
 * Paths are relative to the tracing directory. A last line without its newline
 * was cut by the death of the writer: its change was never made.
 *
 * What is changed below an instance that undo_mkdir made is not journalled: it
 * goes with the instance. (undo_at_end is the exception.)
 *
 * A buffer is changed by one undo at a time: what is journalled takes the lock of
 * the file's buffer (locks.c) first, and keeps it until undo_free(). Where
 * another process holds it, the call logs its pid and returns -EBUSY.
 */
struct undo;

/*
 * journal: path of the journal file in dirfd, created (-EEXIST when there is one: it
 * may be needed for a recovery); NULL keeps it in memory only. The file is locked
 * while open. tracing_dir: where tracefs is mounted, e.g. /sys/kernel/tracing.
 */
int undo_open(struct undo **u, const char *tracing_dir, int dirfd, const char *journal,
	      const struct log *log);
/*
 * Reads the journal of a session that died. Fails with -EBADMSG on a line that makes no sense (an absolute
 * path, "..", an unknown word ...) before anything is changed, with -EBUSY while that session lives or
 * another records one of the journal's buffers.
 */
int undo_load(struct undo **u, const char *tracing_dir, int dirfd, const char *journal,
	      const struct log *log);
/* Frees without undoing. */
void undo_free(struct undo *u);

/* The tracing directory, open until undo_free(). */
int undo_dirfd(const struct undo *u);
/* Takes the lock of the buffer that path is or lies in, before the first change. 0 too when it is held. */
int undo_lock(struct undo *u, const char *path);

/*
 * Reads path's current value (first line for plain values; a bracketed choice such as "local [boot]
 * mono" gives what is in brackets; "7 (unloaded)" gives the number, "7 (expanded: 1408)" the second
 * one, which the buffer gets at its first use by anyone and cannot lose again; "none" of a filter
 * gives "0"), journals it, writes value. No write and no journal entry when it already has that
 * value. "X" (per-CPU sizes or events that differ) journals each of them. -errno of the write, so
 * that the caller can explain EINVAL or EBUSY; a refused write leaves no entry, and a refused filter
 * (whose file keeps the error's text) is put back at once.
 */
int undo_write(struct undo *u, const char *path, const char *value);
/* The value that undo_write() would journal (malloc'ed). */
int undo_read(struct undo *u, const char *path, char **value);
/* Journals path's current value, to be put back at this point. */
int undo_save(struct undo *u, const char *path);
/*
 * For list files (set_event, set_ftrace_filter, set_event_pid, trigger ...): journals the whole content
 * (comment lines dropped; even when nothing is to change now, for it may change by other ways), clears, and
 * writes the lines of value ("" = just clear). Stops at the first line that is refused.
 */
int undo_list(struct undo *u, const char *path, const char *value);
/* As undo_list, but leaves what is there and adds one line. */
int undo_add(struct undo *u, const char *path, const char *line);
/* As undo_list, but changes nothing: its entries will be switched by other files. */
int undo_keep_list(struct undo *u, const char *path);
/* The line that the last failing undo_list or undo_add could not write, or NULL. */
const char *undo_refused(const struct undo *u);
/* mkdir of an instance (path relative, "instances/x"); -EEXIST leaves it and journals nothing. */
int undo_mkdir(struct undo *u, const char *path);
/*
 * Writes without journal, in a buffer that is locked by then; "" opens with O_TRUNC
 * and writes nothing (clears `trace`). From any thread.
 */
int undo_poke(struct undo *u, const char *path, const char *value);
/* The same for a file of a directory, "instances/x". */
int undo_poke_in(struct undo *u, const char *dir, const char *file, const char *value);
/*
 * Journals that `value` must be written to path at the end, whatever it is now; below an instance of ours,
 * too: triggers with variables must go before it.
 */
int undo_at_end(struct undo *u, const char *path, const char *value);
/* undo_poke of what at_end removes (malloc'ed, freed by it; NULL: -ENOMEM), which is journalled first. */
int undo_poke_until_end(struct undo *u, const char *path, const char *value, char *at_end);
/*
 * Makes an event by a line of dynamic_events (record/plan/dynamic.c), which goes at the end. There must be
 * none of that name: the kernel would add the line to it, and in the end both would go. -ENOENT: this kernel
 * has no dynamic_events; -EINVAL: no such line; or the kernel's -errno. Only a failing journal is logged.
 */
int undo_make_event(struct undo *u, const char *line);

/*
 * Puts everything back, newest first, going on after a failure. Returns the number of entries that could not
 * be put back (each is logged with its path): the journal keeps the first of them and all that are older, to
 * be put back again. Else it is empty. It is cut entry by entry, so that a death half-way loses nothing.
 * Close trace_pipe_raw readers first: the kernel refuses to change a tracer or to remove an instance that is
 * being read.
 */
int undo_all(struct undo *u);
/* The same, and frees it; its journal (NULL: in memory), if all is back, is removed. u NULL: 0. */
int undo_end(struct undo *u, const char *journal);
/* A mark to go back to: undo_to undoes what came after it. */
size_t undo_mark(const struct undo *u);
int undo_to(struct undo *u, size_t mark);
/* Forgets what came after the mark: the kernel refused the change that undo_at_end was for. */
void undo_drop(struct undo *u, size_t mark);

/* ---- for the files of undo only ---- */

/*
 * One recording per buffer, and one undo: a process that changes a buffer holds a flock on its
 * directory in tracefs, and on the top directory for all that is not in an instance. The lock ends
 * with the process. A link in /run/hyptrace from the buffer to the journal marks a buffer that a
 * dead process has not put back; no other process may change it until then.
 */
struct locks {
	struct lock {
		char *dir; /* relative to the tracing directory */
		int fd;
	} * v;
	size_t n;
};

/*
 * Takes the lock of the buffer that this path (relative to the tracing directory) is or lies in, unless it is
 * held. journal_fd: by which the caller puts it back, -1: it is in memory only. -EBUSY, with a message:
 * another process has the lock, or has died before it put the buffer back. -ENOENT: no such buffer.
 */
int locks_take(struct locks *l, int dirfd, const char *path, int journal_fd, const struct log *log);
/* undone: all of them are as they were before. */
void locks_release(struct locks *l, bool undone);

/*
 * tracefs files that hold a list: what they show is not always what they take.
 *
 * The content of a list file in the form that can be written back, one entry a line. Left out: comment lines
 * ("#### all functions enabled ####", "no pid"), functions with a command (they outlive O_TRUNC), and events
 * that are on only in soft mode, for a trigger's sake.
 */
int list_read(int dirfd, const char *path, struct buf *out);
/*
 * Makes lines the content of the file. Stops at a line that the kernel refuses: its copy is then in
 * *refused (the caller frees it); with go_on, continues and returns the first error.
 */
int list_write(int dirfd, const char *path, const char *lines, bool go_on, char **refused);
/* One write(2) of the line, with the newline that echo would add. 0 or -errno. */
int write_line(int fd, const char *line);

#endif
