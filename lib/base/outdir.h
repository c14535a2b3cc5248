/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_OUTDIR_H
#define HYPTRACE_OUTDIR_H

#include "base/log.h"

/*
 * A directory that a command writes: export's --parquet.
 *
 * It is written as .NAME.part beside its end, which those who look for data pass over, and renamed when all
 * of it is on the disk. What a killed run of the caller's has left in .NAME.part is removed.
 *
 * Refused: a DIR that is there, whatever it is; a .NAME.part that is no directory of the caller's alone, or
 * that another run writes.
 */
struct outdir {
	int fd;		  /* for the *at calls */
	const char *path; /* as it was asked for, the caller's */
	int parent;
	char *name, *part; /* in parent */
	const struct log *log;
};

/* -errno, which the log explains; nothing is held then. */
int outdir_open(struct outdir *o, const char *path, const struct log *log);
/*
 * ret: how the writing went. 0: the directory is in place. Else nothing is left, and the log says why;
 * returns ret or what failed in the end.
 */
int outdir_close(struct outdir *o, int ret);

#endif
