// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace path: why something happened only then, back across guest and host. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/handle.h"
#include "cmd.h"
#include "path-print.h"

struct path_opts {
	const char *at, *guest, *task, *window;
	uint64_t cpu, nth, hops;
	enum answer_form form;
	bool quiet;
	struct strlist files;
	/* what at says */
	struct event_words event; /* name NULL: time */
	uint64_t time, within;	  /* ns */
};

#define NO_CPU UINT64_MAX

/* ---- command line -------------------------------------------------------------------------------- */

#define PATH(field) .off = offsetof(struct path_opts, field)

static const struct opt path_rows[] = {
	OPT('a', "at", "MOMENT", "TIME in seconds, or [SYSTEM:]EVENT[@MACHINE][/FILTER]", opts_set_text,
	    PATH(at)),
	OPT('g', "guest", "GUEST", "whose time, or event, that is; else the host's, or anyone's",
	    opts_set_text, PATH(guest)),
	OPT('t', "task", "NAME|PID", "of a TIME: which task is meant, as it runs then or next", opts_set_text,
	    PATH(task)),
	OPT('C', "cpu", "N", "of a TIME: the task that runs on that CPU is meant", opts_set_number, PATH(cpu),
	    .max = UINT32_MAX - 1),
	OPT('n', "nth", "N", "of an EVENT: the Nth that matches (1)", opts_set_number, PATH(nth), .min = 1,
	    .max = UINT64_MAX),
	OPT('w', "within", "SECONDS", "how far back causes are looked for (1)", opts_set_text, PATH(window)),
	OPT('m', "hops", "N", "hops at most (50)", opts_set_number, PATH(hops), .min = 1, .max = 10000),
	OPT('j', "json", NULL, "as JSON", set_json, PATH(form)),
	OPT('c', "csv", NULL, "as CSV", set_csv, PATH(form)),
	OPT('i', "input", "FILE", "another way to name a file", opts_add_text, PATH(files)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, PATH(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table path_table = {
	.command = "path",
	.usage = "usage: hyptrace path --at EVENT [OPTION...] [FILE...]\n"
		 "       hyptrace path --at TIME --task TASK|--cpu N [OPTION...] [FILE...]\n"
		 "\n"
		 "Tells why a task ran only then: the chain of causes back from that moment,\n"
		 "across guest and host, until nothing waited. trace.dat or the FILEs are read;\n"
		 "files of guests join their host's.\n"
		 "\n",
	.rows = path_rows,
	.n = ARRAY_SIZE(path_rows),
};

/* "63.565" as ns. -EINVAL. */
static int path_parse_seconds(const char *text, uint64_t *ns)
{
	uint64_t s = 0, unit = 100000000, part = 0;
	const char *p = text;

	for (; isdigit((unsigned char)*p) && p - text < 10; p++)
		s = s * 10 + (uint64_t)(*p - '0');
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p) && unit; p++, unit /= 10)
			part += unit * (uint64_t)(*p - '0');
	*ns = s * 1000000000 + part;
	return *p ? -EINVAL : 0;
}

static int path_check_at(struct path_opts *o, char *why, size_t size)
{
	bool time = o->at && isdigit((unsigned char)*o->at);
	const char *wrong = NULL;

	if (!o->at)
		wrong = "say --at TIME or --at EVENT";
	else if (time && !o->task == (o->cpu == NO_CPU))
		wrong = "a TIME needs --task or --cpu, to say who is meant";
	else if (time && o->nth != 1)
		wrong = "--nth is for an EVENT";
	else if (!time && (o->task || o->cpu != NO_CPU))
		wrong = "--task and --cpu are for a TIME: an event has its own";
	else if (path_parse_seconds(o->window, &o->within) || !o->within)
		wrong = "--within is a number of seconds above 0";
	else if (time && path_parse_seconds(o->at, &o->time))
		wrong = "a TIME is seconds, with nine digits behind the point at most";
	if (wrong)
		snprintf(why, size, "%s", wrong);
	else if (!time)
		return event_words_parse(&o->event, o->at, why, size);
	return wrong ? -EINVAL : 0;
}

/* False: there is nothing to do but exit with *status. */
static bool path_parse(struct path_opts *o, int argc, char **argv, int *status)
{
	char why[512];
	int ret;

	if (!command_files(&path_table, argc, argv, o, &o->files, status))
		return false;
	ret = path_check_at(o, why, sizeof(why));
	if (ret)
		fprintf(stderr, "hyptrace: %s\n", ret == -EINVAL ? why : errno_text(ret));
	return !ret;
}

/* ---- who is meant --------------------------------------------------------------------------------- */

struct path_job {
	const struct path_opts *o;
	const struct log *log;
	struct hyptrace *files;
	const struct inputs *in;
	struct path_ask ask;
	struct path_found found;
	struct path path;
	uint64_t damaged;
};

static int path_ask_machine(struct path_job *j)
{
	const struct path_opts *o = j->o;

	j->ask.input = o->event.name ? SIZE_MAX : 0;
	for (size_t i = j->in->n; i-- > 0;) {
		const struct input *in = &j->in->v[i];

		if (o->guest ? in->guest && !strcmp(in->machine, o->guest) : !o->event.name && !in->guest)
			j->ask.input = i;
		else if (o->guest && !i && j->ask.input == (o->event.name ? SIZE_MAX : 0)) {
			log_err(j->log, "none of the files is of a guest '%s'", o->guest);
			return -EINVAL;
		}
	}
	return 0;
}

static int path_ask_task(struct path_job *j)
{
	const struct input *in = &j->in->v[j->ask.input];
	struct tep_cmdline *c;
	uint64_t pid;

	j->ask.pid = -1;
	j->ask.cpu = j->o->cpu == NO_CPU ? -1 : (int64_t)j->o->cpu;
	if (!j->o->task)
		return 0;
	if (!parse_u64(j->o->task, &pid) && pid && pid <= INT32_MAX) {
		j->ask.pid = (int64_t)pid;
		return 0;
	}
	c = tep_data_pid_from_comm(in->tep, j->o->task, NULL);
	if (!c || tep_data_pid_from_comm(in->tep, j->o->task, c)) {
		log_err(j->log,
			c ? "%s has several tasks named '%s': say a PID" : "%s has no task named '%s'",
			in->path, j->o->task);
		return -EINVAL;
	}
	j->ask.pid = tep_cmdline_pid(in->tep, c);
	return 0;
}

static int path_asked(struct path_job *j)
{
	int ret;

	j->ask.event = j->o->event.name ? &j->o->event : NULL;
	j->ask.nth = j->o->nth;
	j->ask.time = j->o->time;
	ret = path_ask_machine(j);
	return ret || j->ask.event ? ret : path_ask_task(j);
}

/* ---- answering ------------------------------------------------------------------------------------- */

static int path_open_timeline(struct path_job *j, struct timeline **t)
{
	/* what is damaged is told at the first reading */
	return timeline_open(t, j->in, NULL, NULL, j->found.found ? NULL : j->log);
}

static int path_search_files(struct path_job *j)
{
	struct timeline *t;
	int ret = path_open_timeline(j, &t);

	if (ret)
		return ret;
	j->found.window.within = j->o->within;
	ret = path_read(&j->found, j->in, t, &j->ask, j->log);
	j->damaged = timeline_damaged(t);
	timeline_close(t);
	if (!ret && !j->found.found) {
		if (j->ask.event)
			log_err(j->log, "%llu events match '%s'", (unsigned long long)j->found.matches,
				j->o->at);
		else
			log_err(j->log, "no events say who ran at %s", j->o->at);
		ret = -ENOENT;
	}
	if (!ret)
		ret = path_find(&j->path, &j->found.window, j->in, &j->found.moment);
	return ret;
}

static int path_write(const struct path_answer *a, const struct path_opts *o, const struct log *log)
{
	struct buf out = { 0 };
	int ret;

	path_print(a, o->form, &out);
	ret = print_answer(&out, log);
	buf_release(&out);
	return ret;
}

static int path_tell(struct path_job *j)
{
	struct path_answer a = { .in = j->in, .moment = &j->found.moment, .path = &j->path };
	struct path_text *texts = path_texts_of(&j->path, a.moment, &a.n_texts);
	struct timeline *t = NULL;
	struct steps *steps = NULL;
	int ret = texts ? path_open_timeline(j, &t) : -ENOMEM;

	if (!ret)
		ret = path_texts(j->in, t, texts, a.n_texts);
	if (!ret)
		ret = steps_open(&steps, j->in);
	/* a page that could be read before may fail now */
	if (t && timeline_damaged(t) > j->damaged)
		j->damaged = timeline_damaged(t);
	a.texts = texts;
	a.steps = steps;
	if (!ret)
		ret = path_write(&a, j->o, j->log);
	steps_close(steps);
	timeline_close(t);
	path_texts_release(texts, a.n_texts);
	return ret;
}

static int path_files(const struct path_opts *o, struct console *console, struct log *log)
{
	struct hyptrace_open_opts opts = { sizeof(opts), .log = handle_log_to, .log_ctx = log };
	struct path_job j = { .o = o, .log = log, .path.max = o->hops };
	int ret = hyptrace_open(&j.files, (const char *const *)o->files.v, o->files.n, &opts);

	if (!ret)
		ret = handle_load(j.files);
	if (!ret) {
		j.in = handle_inputs(j.files);
		ret = path_asked(&j);
	}
	if (!ret)
		ret = path_search_files(&j);
	if (!ret)
		ret = path_tell(&j);
	if (j.damaged)
		tell_damage(log, j.damaged);
	path_release(&j.path);
	path_window_release(&j.found.window);
	hyptrace_close(j.files);
	return j.damaged ? EXIT_FAILED : console_status(console, ret);
}

int cmd_path(int argc, char **argv)
{
	struct path_opts o = { .cpu = NO_CPU, .nth = 1, .window = "1", .hops = 50 };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	int status;

	memory_or_end();
	if (path_parse(&o, argc, argv, &status)) {
		console.quiet = o.quiet;
		status = path_files(&o, &console, &log);
	}
	event_words_release(&o.event);
	strlist_release(&o.files);
	return status;
}
