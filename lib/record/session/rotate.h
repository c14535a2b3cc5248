/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_ROTATE_H
#define HYPTRACE_SESSION_ROTATE_H

#include "record/session/session-priv.h"

/*
 * Long recordings: written piece by piece (--rotate), only the newest of them (-m), or kept in
 * memory until something happens (--flight). All of them move the start of the valid pages in the
 * spools (record/spool/spool.h) while tracing continues. Calls return 0 or -errno, log what a user has to
 * know, and do nothing unless the plan asks for them.
 */
struct rotate;

/* The buffer whose events ask for a dump (--dump-on), off; in tracefs, before the recorder has threads. */
int rotate_prepare(struct session *s);
/* That buffer, or NULL. */
struct instance *rotate_instance(const struct session *s);
/* Once all sources have their threads. */
int rotate_begin(struct session *s);
/* All is traced now. */
int rotate_started(struct session *s);
/* To be polled; readable: rotate_tick() has something to do. -1: nothing to wait for. */
int rotate_fd(const struct session *s);
/*
 * Now and then: takes a file that is ready as written, and throws away what is old. *cut: another one is due,
 * rotate_cut(). An error ends the recording, whose spools have what is not written.
 */
int rotate_tick(struct session *s, bool *cut);
/* Begins to write a file of all that is here. The spool has its names by now, the summary its counts. */
void rotate_cut(struct session *s);
/* A file is being written: it reads the spools' texts and the guests' vCPUs. */
bool rotate_is_writing(const struct session *s);
/* Bytes in the spools that count. */
uint64_t rotate_bytes(const struct session *s);
/* Tracing ends: waits for the file that is being written. What is left is the last one's. */
void rotate_end(struct session *s);
/* The last one is about to be written: removes what is more than --keep. */
void rotate_keep_last(struct session *s);
/* Takes NULL. */
void rotate_free(struct rotate *r);

#endif
