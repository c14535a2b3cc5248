/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_H
#define HYPTRACE_CMD_H

#include <stdio.h>

#include "session/session.h"
#include "util/opts.h"

/* Exit statuses of every command. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_PART_LOST = 3,    /* recorded, but a guest was lost on the way, or the hypervisor not read */
	EXIT_NO_PROGRAM = 127, /* as the shell has it: there is no real trace-cmd (cmd/shim.c) */
};

/* One row per command: dispatch, `hyptrace -h` and the index of man pages come from it. */
struct command_row {
	const char *name;
	int (*run)(int argc, char **argv);
	const struct opts_table *table; /* for completion; NULL: not completed */
	const char *summary;
	/* by the name of trace-cmd: whether it serves such a line, argv[0] being its name; changes the order
	 * of argv, prints nothing. NULL: trace-cmd's own business */
	bool (*takes)(int argc, char **argv);
};

extern const struct command_row command_rows[];
extern const size_t command_rows_n;

/* Each is a whole command; argv[0] is its name. They return an EXIT_ status. */
#ifdef HYPTRACE_STATIC
int cmd_agent(int argc, char **argv); /* agent/main.c's main() */
#endif
int cmd_adb(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_flame(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_latency(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_path(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_recover(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_sql(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_sync(int argc, char **argv);
int cmd_top(int argc, char **argv);
extern const struct opts_table adb_table, diff_table, doctor_table, export_table, flame_table, import_table,
	latency_table, list_table, path_table, recover_table, sql_table, stat_table, sync_table, top_table;
bool record_takes(int argc, char **argv);
bool report_takes(int argc, char **argv);
bool list_takes(int argc, char **argv);
bool stat_takes(int argc, char **argv);

/* hyptrace as trace-cmd: whether `row` (NULL: no command of ours) serves the line; runs the agent or the real
 * trace-cmd instead of this program, and returns what to exit with when it cannot; the folder of the link. */
bool shim_serves(const struct command_row *row, int argc, char **argv);
int shim_pass_on(int argc, char **argv);
int shim_print_dir(void);

/*
 * For a shell: the words that the last of argv[0..argc-1], what was typed behind "hyptrace", can become by
 * the n commands, one a line; none: a file's name. Tells no errors.
 */
int complete_line(const struct command_row *rows, size_t n, int argc, char **argv);

/*
 * From now on an allocation that fails, of whatever library, ends the program with a message and
 * EXIT_FAILED: for commands that print by libtraceevent, most of whose allocations nobody checks.
 */
void memory_or_end(void);

/* ---- what commands share: options, messages on stderr, the end of a recording ---- */

struct hypertrace_desc;
struct inputs;
struct outfile;
/* outfile_open for a stream, but not over one of the inputs: -EINVAL (logged). */
int output_open(struct outfile *out, const char *path, const struct inputs *in, const struct log *log);
/* The description of hypertrace's events in a file; path NULL: none, and NULL. Logged. */
int desc_read(const char *path, struct hypertrace_desc **desc, const struct log *log);

/* Prints the usage text of the table. */
void command_usage(const struct opts_table *t, FILE *out);
/* After opts_parse gave ret, not 0: prints the usage or the error, returns what to exit with. */
int command_stopped(const struct opts_table *t, int ret, const struct opts_error *err);
/*
 * Options into opts, all other words into files, which gets trace.dat when it is empty. False: there is
 * nothing to do but exit with *status. True: *status is EXIT_USAGE, for who finds that options do not go
 * together.
 */
bool command_files(const struct opts_table *t, int argc, char **argv, void *opts, struct strlist *files,
		   int *status);
/* --json and --csv: into an enum answer_form, which is ANSWER_TEXT until one of them is said. */
opt_set set_json, set_csv;
/*
 * An answer, or a part of it, to standard output. 0 or -errno, which is told; ends the program when nobody
 * reads it any more.
 */
int print_answer(const struct buf *text, const struct log *log);
struct live;
/*
 * live_open (live/live.h), which waits up to ten seconds for a recording that is being started, and
 * begins ten seconds before what is newest. 0 or -errno, logged.
 */
int live_wait(struct live **out, const char *output, const struct log *log);
/* What the file's readers left out. */
void tell_damage(const struct log *log, uint64_t places);

/* Messages "hyptrace: ..." on stderr; ctx is a struct console. */
struct console {
	bool quiet;    /* errors only */
	bool progress; /* a line of progress stands on the terminal: wipe it first */
	int percent;   /* ... of writing */
	bool error;    /* one was told */
};
void console_log(void *ctx, enum log_level level, const char *msg);
struct log console_as_log(struct console *console);
/* What to exit with after ret, 0 or -errno; says what it is unless an error was told. */
int console_status(struct console *console, int ret);
/* "3.4M", "812K" into out; returns out. */
const char *size_text(uint64_t bytes, char *out, size_t size);

/* Live progress on a terminal (callbacks of session_opts; ctx is a struct console). */
void progress_recording(void *ctx, const struct session_summary *so_far);
void progress_writing(void *ctx, uint64_t done, uint64_t total);
void progress_end(struct console *console);
/* The lines at the end: what was recorded, what was lost and what would help. */
void print_summary(const struct session_summary *sum, const char *output, const struct log *log);

#endif
