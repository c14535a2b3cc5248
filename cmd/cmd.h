/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_H
#define HYPTRACE_CMD_H

#include "api/handle.h"
#include "ask/latency/latency.h"
#include "record/session/session.h"
#include "base/answer.h"
#include "base/escape.h"

/* Exit statuses of every command. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_PART_LOST = 3,    /* recorded, but a guest was lost on the way, or the hypervisor not read */
	EXIT_NO_PROGRAM = 127, /* as the shell has it: there is no real trace-cmd */
};

/* A command, by its row in commands.h. */
struct command_row {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is its name; returns an EXIT_ status */
	const struct opts_table *options;  /* NULL: not completed */
	const char *summary;		   /* for `hyptrace -h` */
	const char *hint;		   /* of what to do next; NULL: none */
	const char *keeps;		   /* words: options that the hint has, too; NULL: none */
	struct {
		const char *option, *hint;
	} after[3]; /* in its place, with that option */
	bool ends;  /* without memory: it prints by libtraceevent, which does not check most allocations */
	bool pages; /* its answers go through the user's pager */
	bool live;  /* arguments are the system's, not those of recordings: for completion */
	/* called as trace-cmd: true: it serves this line, argv[0] being its name. Changes the order of argv,
	 * prints nothing. NULL: the real trace-cmd serves all lines */
	bool (*takes)(int argc, char **argv);
};

#define record_table grammar_table /* lib/record/plan: the agent has it, too */
#define COMMAND(name, ...)                                                                                   \
	int cmd_##name(int argc, char **argv);                                                               \
	extern const struct opts_table name##_table;
#include "commands.h"
#undef COMMAND
#ifdef HYPTRACE_STATIC
int cmd_agent(int argc, char **argv); /* agent/main.c's main() */
#endif
bool record_takes(int argc, char **argv);
bool report_takes(int argc, char **argv);
bool list_takes(int argc, char **argv);
bool stat_takes(int argc, char **argv);

struct guest;
/*
 * Default command line of `hyptrace record` when no event is named, as words, "record" first: the hypervisor,
 * KVM and the scheduler, those of them that this tracing directory has; for a guest whose agent answers its
 * address, and the events that show which task ran and why. Both add to words: 0 or -ENOMEM.
 */
int defaults_host(struct strlist *words, int tracing);
int defaults_guest(struct strlist *words, const struct guest *g);

/* The tracing directory (HYPTRACE_TRACING_DIR, or where tracefs is); -1 with a message when it cannot be
 * opened. */
int list_open_tracing(const struct log *log);
/* The names of the events of the hypervisor's instance, path (remote_find()). */
int list_hyp_events(int tracing, const char *path, struct strlist *out);

/* From now on an allocation that fails, of whatever library, ends the program: EXIT_FAILED, a message. */
void memory_or_end(void);

/* ---- what commands share: options, messages on stderr, the end of a recording ---- */

struct mark_desc;
struct inputs;
struct outfile;
struct dat_copy;
/* -EINVAL, logged: the path is one of the inputs. */
int output_check(const char *path, const struct inputs *in, const struct log *log);
/* outfile_open, but not over one of the inputs. */
int output_open(struct outfile *out, const char *path, bool stream, const struct inputs *in,
		const struct log *log);
/*
 * Adds the name of a trace.dat of one machine of the inputs: output if that is the first that is no guest,
 * else OUTPUT-MACHINE.dat; number: 1 makes "output.001.dat", 0: none. The name must be new in made (-EEXIST),
 * and no input's. All are added before the first one is written. -errno: logged.
 */
int output_add(const char *output, const struct inputs *in, size_t machine, uint64_t number,
	       struct strlist *made, const struct log *log);
/* Writes a file of such a name. -errno: logged. */
int output_copy(const struct dat_copy *copy, const char *name, const struct log *log);
/* Prints the names if that went well (ret 0), and frees them. */
void output_made(struct strlist *made, int ret, const struct log *log);
/* All of a text into such a file. */
int output_write(const char *path, const struct buf *text, const struct inputs *in, const struct log *log);
/* "trace.dat, trace-vm.dat: QUESTION", malloc'ed; NULL: no memory. */
char *picture_title(const struct inputs *in, const char *question);
/* The description of hypertrace's events in a file; path NULL: none, and NULL. Logged. */
int desc_read(const char *path, struct mark_desc **desc, const struct log *log);

/* Prints the usage text of the table. */
void command_usage(const struct opts_table *t, FILE *out);
/* After opts_parse gave ret, not 0: prints the usage or the error, returns what to exit with. */
int command_stopped(const struct opts_table *t, int ret, const struct opts_error *err);
/*
 * Options into opts; argv[1] up to argv[*argc - 1] are the other words then, from `least` to `most` of them.
 * False: there is nothing to do but exit with *status.
 */
bool command_words(const struct opts_table *t, int *argc, char **argv, void *opts, int least, int most,
		   int *status);
struct hyptrace;
/* Files that a command reads: those of guests, their clocks, and the part that is read; OPT_TIMES are the
 * rows, AT(FIELD) a field of the command's options. */
struct times_opts {
	bool no_guests;	       /* open only the files that are named */
	bool no_sync;	       /* leave clocks of guests as their files have them */
	uint64_t hz;	       /* ticks per second of the files' clocks; 0: what the files say */
	struct time_part time; /* the part that is read */
};
/* The options that commands on files share, at the begin of their own; FILES: a field of it. */
struct files_opts {
	enum answer_form form;
	bool quiet;
	struct times_opts times;
	struct strlist files;
	struct hyptrace *handle; /* command_files() */
};
#define FILES(field) .off = offsetof(struct files_opts, field)
/*
 * Runs such a command: opts begins with struct files_opts, whose files are all words that are no options
 * (none: trace.dat). check: prints why options do not go together, and returns false (NULL: they do). run: 0,
 * an EXIT_ status, or -errno, which is printed unless it has logged an error; the log's ctx is the struct
 * console. Closes opts' handle. Returns what to exit with.
 */
int command_read(const struct opts_table *t, int argc, char **argv, void *opts, bool (*check)(void *opts),
		 int (*run)(void *opts, const struct log *log));
/* For its check: prints what is wrong with the options. True: nothing is, NULL. */
bool options_good(const char *who, const char *wrong);
/* FROM,TO into a struct time_part. */
opt_set set_part;
#define OPT_TIME(...)                                                                                        \
	OPT(0, "time", "FROM,TO", "only this part: seconds; +2s: from the begin, -1s: from the end",         \
	    set_part, __VA_ARGS__)
#define OPT_NO_SYNC(...)                                                                                     \
	OPT(0, "no-sync", NULL, "leave guests' clocks as the files have them", opts_set_flag, __VA_ARGS__)
#define OPT_NO_GUESTS(...)                                                                                   \
	OPT(0, "no-guests", NULL, "only the files that are named, not their guests'", opts_set_flag,         \
	    __VA_ARGS__)
#define OPT_TIMES(AT)                                                                                        \
	OPT_NO_GUESTS(AT(times.no_guests)), OPT_TIME(AT(times.time)), OPT_NO_SYNC(AT(times.no_sync)),        \
		OPT(0, "ts2secs", "HZ", "rate of the files' clocks", opts_set_number, AT(times.hz),          \
		    .min = 1, .max = UINT64_MAX)
/* Before commands run: files of guests that are not named stay unopened, as trace-cmd has it. */
void guests_want(bool wanted);
enum {
	COMMAND_UNLOADED = 1 << 16, /* the caller has settings to make before it loads formats and plugins */
	COMMAND_NO_TEXTS = 1 << 17, /* it prints no events: plugins are not loaded */
	COMMAND_TICKS_ONLY = 1 << 18, /* --ts2secs leaves recordings whose clock counts ns as they are */
	COMMAND_FLAGS = COMMAND_UNLOADED | COMMAND_NO_TEXTS | COMMAND_TICKS_ONLY
};
/*
 * Opens a command's files with their formats and plugins, adds those of their guests, and corrects times as
 * *times has it (NULL: neither).
 * flags: HYPTRACE_ and COMMAND_. 0 or -errno, logged; hyptrace_close(*files), which may be NULL, in any case.
 */
int command_open(struct hyptrace **files, const struct strlist *paths, unsigned int flags,
		 const struct times_opts *times, const struct log *log);
/* The same of the files of such opts, their handle; *in: its inputs, NULL if that failed. */
int command_files(struct files_opts *o, unsigned int flags, const struct inputs **in, const struct log *log);
/* --json and --csv, by the row's flags: into an enum answer_form, which is ANSWER_TEXT until one is given. */
opt_set set_form;
/* A vsock port into a uint32_t; without an argument the agent's own. */
opt_set set_agent_port;
/* Of a command's struct opts_table: its rows, and how many they are. */
#define OPT_ROWS(v) .rows = v, .n = ARRAY_SIZE(v)
/* Rows that many commands have; ...: the field of the command's options, .off = offsetof() */
#define OPT_INPUT(...)	    OPT('i', "input", "FILE", "another way to name a file", opts_add_text, __VA_ARGS__)
#define OPT_JSON(help, ...) OPT('j', "json", NULL, help, set_form, .flags = ANSWER_JSON, __VA_ARGS__)
#define OPT_CSV(help, ...)  OPT(0, "csv", NULL, help, set_form, .flags = ANSWER_CSV, __VA_ARGS__)
#define OPT_QUIET(...)	    OPT('q', "quiet", NULL, "errors only", opts_set_flag, __VA_ARGS__)
#define OPT_SPANS_DESC(...)                                                                                  \
	OPT(0, "hypertrace-desc", "FILE", "names of hypertrace events, which define their spans",            \
	    opts_set_text, __VA_ARGS__)
#define OPT_HELP	    OPT('h', "help", NULL, "this text", opts_help)
/* The last rows of commands that read files: of their fields files, times and quiet. */
#define OPT_FILES(AT) OPT_INPUT(AT(files)), OPT_TIMES(AT), OPT_QUIET(AT(quiet)), OPT_HELP
/* Of those that answer a question: before them --json and --csv, of the field form. */
#define OPT_ANSWER(AT)                                                                                       \
	OPT_JSON("for programs, as JSON: all rows, times in ns", AT(form)),                                  \
		OPT_CSV("for programs, as CSV; each line begins with its table", AT(form)), OPT_FILES(AT)
/*
 * Writes an answer, or a part of it, to standard output, and releases it. 0 or -errno, logged; ends the
 * program when the reader has closed the pipe.
 */
int print_answer(struct buf *text, const struct log *log);
/* After writing to standard output gave ret: the same of errors, but -EBADMSG, which the reader has logged.
 * Returns ret. */
int stdout_written(int ret, const struct log *log);
struct live;
/*
 * live_open (ask/live/live.h), which waits up to ten seconds for a recording that is being started, and
 * begins ten seconds before what is newest. 0 or -errno, logged.
 */
int live_wait(struct live **out, const char *output, const struct log *log);
/* Logs damaged places that the readers skipped, if there are any: -EBADMSG then, else 0. */
int log_damage(const struct log *log, uint64_t places);

/* Messages "hyptrace: ..." on stderr; ctx is a struct console. */
struct console {
	bool quiet;    /* errors only */
	bool progress; /* a line of progress stands on the terminal: wipe it first */
	int percent;   /* ... of writing */
	bool error;    /* an error was printed */
};
void console_log(void *ctx, enum log_level level, const char *msg);
/* Exit status for ret, 0 or -errno; prints the error unless one was printed before. */
int console_status(struct console *console, int ret);
/* "3.4M", "812K" into out; returns out. */
const char *size_text(uint64_t bytes, char *out, size_t size);

/* Live progress on a terminal (callbacks of session_opts; ctx is a struct console). */
void progress_recording(void *ctx, const struct session_summary *so_far);
void progress_writing(void *ctx, uint64_t done, uint64_t total);
void progress_reading(void *ctx, uint64_t done, uint64_t total);
void progress_end(struct console *console);
/* The lines at the end: what was recorded, what was lost and what would help. */
void print_summary(const struct session_summary *sum, const char *output, const struct log *log);

/*
 * Standard output and standard error of every command. Whatever is printed, by libtraceevent too, goes
 * through here: what a terminal would obey is shown instead (base/escape.h), but for our own codes.
 */

/* Colours, and what wipes a line of progress. */
enum terminal_code { CODE_PLAIN, CODE_LABEL, CODE_TIME, CODE_NAME, CODE_LOST, CODE_WIPE };
void terminal_code(FILE *out, enum terminal_code code);

/*
 * From here on stdout and stderr are these streams, both descriptors are open, and a
 * reader that closes early is an error like others, no signal. 0 or -errno.
 */
int terminal_open(void);
/*
 * Ends the output, and the pager. Returns what to exit with: status, or EXIT_FAILED with a message when not
 * all could be written. Someone who quits the pager has seen enough.
 */
int terminal_end(int status);
/*
 * Output a page at a time, as git has it: when stdout is a terminal, it goes through $HYPTRACE_PAGER, $PAGER
 * or less; "cat" or an empty one means none. LESS=FRX and LV=-c unless they are set. It starts with the first
 * output after pager_want(true), or by pager_start(), which returns whether stdout is a terminal, perhaps
 * through the pager now. When the pager is quit, the program ends.
 */
void pager_want(bool wanted);
bool pager_start(void);
/* Ends the program as SIGPIPE does, without a message, when the reader of our output is gone. */
void terminal_reader_gone(void) __attribute__((noreturn));

/* ---- latency.c, latency-tables.c: for latency, view and why ------------------------------------------ */

/* The chains that a command line asks for. */
struct latency_question {
	const char *from, *to, *key, *preset;
	/* what they make */
	bool by_default; /* no key was given: the events' meaning chooses it; key NULL: none is common to both
			  */
	const struct latency_preset *found; /* NULL: --from, --to */
	char *fields[2];		    /* of --key FIELD=FIELD */
	struct event_words words[2];
	struct latency_term terms[2];
	struct latency_plan plan;
};

/* -EINVAL: a message was printed; -ENOMEM. To be released in any case. */
int latency_question_check(struct latency_question *o);
/* The plan for these files. */
void latency_question_open(struct latency_question *o, const struct inputs *in);
void latency_question_release(struct latency_question *o);

/* Question and result of hyptrace latency. */
struct latency_answer {
	const struct inputs *in;
	const struct latency_question *q;
	size_t rows; /* at most, for people */
	struct latency_result found;
	struct between *between; /* of each of the worst */
	struct histogram all;	 /* of all rows, whole chains */
};

#define LATENCY_ROW_NAME 128
/* The row's key as tables show it, in out. */
const char *latency_row_name(const struct latency_answer *l, const struct latency_row *row,
			     char out[LATENCY_ROW_NAME]);

/* True, logged: of one point no event came at all, or (of --from and --to) is known: there are no chains. */
bool latency_answer_missing(const struct latency_answer *l, const struct log *log);
/* -ENOMEM: of what was kept for it. */
int latency_answer_tables(const struct latency_answer *l, struct answer *a);

/* ---- for the page of hyptrace view ------------------------------------------------------------------ */

struct reading;
struct stat_run;
struct finding_job;

/*
 * Answers of other commands as JSON, for the page of hyptrace view. in: loaded. *damaged: its value or the
 * number of damaged places that the reading met, the greater one. 0 or -errno.
 */

/* All tables of stat --json, by a reading that it joins before, and leaves after: stat.c. Leaving takes NULL.
 */
int stat_join(struct stat_run **out, struct reading *of);
int stat_json(struct stat_run *r, struct buf *out);
void stat_leave(struct stat_run *r);
/* Findings of why --json, which the reading found; files and times: for its commands: why.c. */
int why_json(const struct inputs *in, const struct strlist *files, const struct times_opts *times,
	     struct finding_job *found, struct buf *out);
/* Stacks of flame --json, the light ones added up: flame.c. -ENODATA: there are none. */
int flame_json(const struct inputs *in, struct buf *out, uint64_t *damaged);
/* Tables of diff --json: diff.c. sides: of diff_sides(). Errors are logged. */
int diff_json(const struct buf sides[2], const struct times_opts *times, struct buf *out, uint64_t *damaged,
	      const struct log *log);
/*
 * The names of the two recordings' files, joined by commas: the second recording begins with the second
 * file that is no guest's. Returns an EXIT_ status; messages are printed.
 */
int diff_sides(const struct strlist *named, struct buf sides[2], const struct log *log);
/* The names of a side, apart. -ENOMEM. */
int diff_files(const char *names, struct strlist *out);

#endif
