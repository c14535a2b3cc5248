/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_H
#define HYPTRACE_SESSION_H

#include "record/plan/plan.h"
#include "record/spool/spool.h"

/*
 * One recording from beginning to end: prepare, arm (the hypervisor first, its start blocks; then the host),
 * run, stop in reverse, write the file, put tracefs back. Also finishes what a killed recorder left.
 */

struct session_buffer {
	char name[64];	/* "" = top */
	uint64_t bytes; /* of pages */
	uint64_t events;
	uint64_t lost;
	bool lost_more;	  /* than `lost`: some losses are known without their number */
	uint64_t taken;	  /* places where another reader took events of the hypervisor's */
	uint64_t bad;	  /* hypervisor records or lines, a guest's pages, that made no sense */
	uint64_t size_kb; /* buffer size per CPU; 0 = unknown */
	bool profile;	  /* samples (--profile) */
	bool joined;	  /* taken over, with the size that it had */
	bool guest;	  /* a guest's, in a file of its own */
	bool unread;	  /* the hypervisor's: a CPU gave nothing that could be read */
	int guest_lost;	  /* -errno: it was lost before the end; what it sent is kept */
};

#define SESSION_BUFFERS_MAX SPOOL_BUFFERS_MAX

struct session_summary {
	struct session_buffer buffers[SESSION_BUFFERS_MAX];
	size_t n_buffers;
	uint64_t file_bytes;
	double seconds;	    /* tracing was on */
	int command_status; /* as waitpid gives it, when has_command_status */
	bool has_command_status;
	bool disk_full;	   /* ended early for that */
	int not_restored;  /* entries of tracefs that could not be put back */
	char output[4096]; /* the file, written or not */
	char kept[4096];   /* the spool, when it could not be made into a file; else "" */
};

struct session_opts {
	const char *tracing_dir; /* NULL: where tracefs is mounted */
	const char *root; /* prefix of /proc and /sys: guests' processes, symbols; NULL: this machine's */
	/* Readable when the recording is to end: a signalfd of the caller's. -1: only the command ends it. */
	int stop_fd;
	/* Readable (and read): --flight writes what it has. A signalfd, too; -1: none. */
	int dump_fd;
	/* Called twice a second while recording. */
	void (*progress)(void *ctx, const struct session_summary *so_far);
	/* While the file is written. */
	void (*writing)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
	const struct log *log;
};

/* 0, or -errno: nothing was recorded, or (summary->kept) what was recorded lies in the spool. */
int session_record(const struct record_plan *plan, const struct session_opts *o,
		   struct session_summary *summary);

/*
 * Finishes the spool in dir: stops and drains what still traces, puts tracefs
 * back (when the machine has not been rebooted since), writes the file to
 * output or, when NULL, to where the recording was to go, and removes the spool.
 */
int session_recover(const char *dir, const char *output, const struct session_opts *o,
		    struct session_summary *summary);

#define SESSION_MEMORY "/dev/shm" /* a tmpfs: spools of flight recorders */

/*
 * Asks the flight recorder whose files are in that directory for the next one, as SIGUSR1 does. *file: its
 * path, malloc'ed; it is there once it is complete. -ENOENT: there is no such recorder.
 */
int flight_ask(const char *dir, char **file);

#endif
