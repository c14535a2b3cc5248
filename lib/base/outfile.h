/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_OUTFILE_H
#define HYPTRACE_OUTFILE_H

#include "base/files.h"
#include "base/log.h"

/*
 * A file that a command writes: -o, --perfetto, --plot, and the files of sync --write.
 *
 * It is written as NAME.part beside its end, and renamed when all of it is on the disk: until then what was
 * there stays as it is. The new file has the mode, and as far as the caller may give it the owner, of the one
 * that it replaces. A symbolic link is followed and stays one.
 *
 * Refused: directories and block devices; links of users other than the caller and
 * root; in directories like /tmp also files of others; and a NAME.part that is no
 * regular file of the caller's (one that is was left by a killed run, and is removed).
 */
struct outfile {
	int fd; /* to write to, and to read again what was written; a directory's: for the *at calls */
	const char *path; /* as it was asked for, the caller's */
	int dir;
	char *name, *part; /* in dir, where the links end; part NULL: a device or FIFO, written in place */
	const struct log *log;
};

/*
 * stream: what is written needs no seeking, so it may be a character device or FIFO,
 * too. -errno, which the log explains; nothing is held then.
 */
int outfile_open(struct outfile *o, const char *path, bool stream, const struct log *log);
/* Would outfile_open() refuse it? Makes nothing. For what takes long to be written. */
int outfile_check(const char *path, const struct log *log);
/*
 * ret: how the writing went. 0: the file is in place. Else it is as it was, and the log says why, unless
 * the writer has said it already (-EINVAL, -ENOTSUP, or -EBADMSG of what it read). Returns ret, or what
 * failed in the end.
 */
int outfile_close(struct outfile *o, int ret);

/*
 * A directory that a command writes: export's --parquet.
 *
 * It is written as .NAME.part beside its end, which those who look for data pass over, and renamed when all
 * of it is on the disk. What a killed run of the caller's has left in .NAME.part is removed.
 *
 * Refused: a DIR that is there, whatever it is; a .NAME.part that is no directory of the caller's alone, or
 * that another run writes. -errno, which the log explains; nothing is held then.
 */
int outdir_open(struct outfile *o, const char *path, const struct log *log);
/*
 * ret: how the writing went. 0: the directory is in place. Else nothing is left, and the log says why;
 * returns ret or what failed in the end.
 */
int outdir_close(struct outfile *o, int ret);

#endif
