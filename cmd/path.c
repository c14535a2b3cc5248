// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace path: why something happened only then, back across guest and host. */
#include "cmd.h"
#include "ask/path/path.h"
#include "ask/states/reading.h"

struct path_job {
	struct files_opts f;
	const char *at, *guest, *task;
	uint64_t cpu, hops;
	struct event_words event; /* what at says; name NULL: a time */

	const struct log *log;
	const struct inputs *in;
	struct path_ask ask; /* time UINT64_MAX: later than any */
	struct path_found found;
	struct steps *steps;
	struct path path;
	struct path_texts texts;
	uint64_t damaged;
};

#define NO_CPU UINT64_MAX

#define PATH(field) .off = offsetof(struct path_job, field)

static const struct opt path_rows[] = {
	OPT('a', "at", "MOMENT", "TIME in seconds, or [SYSTEM:]EVENT[@MACHINE][/FILTER]", opts_set_text,
	    PATH(at)),
	OPT('g', "guest", "GUEST", "whose time, or event, that is; else the host's, or anyone's",
	    opts_set_text, PATH(guest)),
	OPT('t', "task", "NAME|PID", "of a TIME: which task is meant, as it runs then or next", opts_set_text,
	    PATH(task)),
	OPT('C', "cpu", "N", "of a TIME: the task that runs on that CPU is meant", opts_set_number, PATH(cpu),
	    .max = UINT32_MAX - 1),
	OPT('n', "nth", "N", "of an EVENT: the Nth that matches (1)", opts_set_number, PATH(ask.nth),
	    .min = 1, .max = UINT64_MAX),
	OPT_DURATION('w', "within", "how far back causes are looked for (1s)", UNIT_S, 1,
		     PATH(found.window.within), .min = 1, .max = INT64_MAX),
	OPT('m', "hops", "N", "hops at most (50)", opts_set_number, PATH(hops), .min = 1, .max = 10000),
	OPT_JSON("as JSON", FILES(form)),
	OPT('c', "csv", NULL, "as CSV", set_form, FILES(form), .flags = ANSWER_CSV),
	OPT_FILES(FILES),
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
	OPT_ROWS(path_rows),
};

static bool path_check(void *opts)
{
	struct path_job *o = opts;
	bool time = o->at && isdigit((unsigned char)*o->at);
	const char *wrong = !o->at				     ? "specify --at TIME or --at EVENT"
			    : time && !o->task == (o->cpu == NO_CPU) ? "a TIME needs one of --task and --cpu"
			    : time && o->ask.nth != 1		     ? "--nth is for an EVENT"
			    : !time && (o->task || o->cpu != NO_CPU)
				    ? "--task and --cpu are for a TIME: an event has its own"
			    : time && parse_amount(o->at, duration_units, UNIT_S, &o->ask.time) == -EINVAL
				    ? "a TIME is a number of seconds"
				    : NULL;
	char why[512];
	int ret = wrong || time ? 0 : event_words_parse(&o->event, o->at, why, sizeof(why));

	if (ret)
		wrong = ret == -EINVAL ? why : errno_text(ret);
	return options_good("hyptrace path", wrong);
}

struct path_naming {
	const char *name;
	const struct steps *steps;
	const struct inputs *in;
	size_t input;
	int64_t pid; /* the task of that name; -1: none so far */
	bool several;
};

static int path_names_run(void *ctx, struct pass_run *run)
{
	struct path_naming *n = ctx;

	for (size_t i = 0; i < run->n_steps; i++) {
		const struct step *s = &run->steps[i];
		const int32_t pids[] = { s->pid, (int32_t)s->a }; /* that leaves, and that comes */

		steps_learn(n->steps, run->records, s, 1);
		for (size_t k = 0; k < 2 && s->kind == STEP_SWITCH && s->input == n->input; k++) {
			const char *comm = steps_comm(n->steps, n->input, pids[k], s->ts) ?: "";
			char text[STEPS_TASK_MAX] = "";

			if (strchr(n->name, ':'))
				steps_task(n->steps, n->in, n->input, pids[k], s->ts, text);
			if (strcmp(comm, n->name) != 0 && strcmp(text, n->name) != 0)
				continue;
			n->several |= n->pid >= 0 && n->pid != pids[k];
			n->pid = pids[k];
		}
	}
	return 0;
}

/* A PID, a NAME, or both as answers and reports print them: "sshd-812"; of a vCPU "Guest:1". */
static int path_ask_task(struct path_job *j)
{
	const char *task = j->task, *dash = task ? strrchr(task, '-') : NULL;
	struct path_naming n = { .name = task, .in = j->in, .input = j->ask.input, .pid = -1 };
	struct reading r;
	uint64_t pid;
	int ret;

	j->ask.pid = -1;
	j->ask.cpu = j->cpu == NO_CPU ? -1 : (int64_t)j->cpu;
	if (!task)
		return 0;
	if (!parse_u64(task, &pid) && pid && pid <= INT32_MAX) {
		j->ask.pid = (int64_t)pid;
		return 0;
	}
	/* in the records: the file's table of names lacks some, and has the last of others only */
	ret = reading_open(&r, j->in, NULL, NULL);
	n.steps = r.steps;
	reading_add(&r, (struct pass_part){ .ctx = &n,
					    .steps = STEP_SET(STEP_SWITCH),
					    .after = path_names_run,
					    .learns = true });
	ret = ret ?: reading_run(&r);
	reading_close(&r);
	if (ret)
		return ret;
	if (n.pid < 0 && dash && !parse_u64(dash + 1, &pid) && pid && pid <= INT32_MAX)
		n.pid = (int64_t)pid;
	if (n.pid < 0 || n.several)
		return log_fail(j->log, -EINVAL,
				n.several ? "%s has several tasks named '%s': specify a PID"
					  : "%s has no task named '%s'",
				j->in->v[j->ask.input].path, task);
	j->ask.pid = n.pid;
	return 0;
}

static int path_search_files(struct path_job *j)
{
	struct timeline *t;
	int ret = timeline_open(&t, j->in, NULL, NULL, j->log);

	if (ret)
		return ret;
	ret = steps_open(&j->steps, j->in) ?: path_read(&j->found, j->in, t, j->steps, &j->ask, j->log);
	j->damaged = merge_damaged(t->merge);
	timeline_close(t);
	if (!ret && !j->found.found) {
		const struct path_window *w = &j->found.window;
		const struct path_machine *m =
			j->ask.input < w->n_machines ? &w->machines[j->ask.input] : NULL;
		uint64_t from = m ? m->before.ts : 0, to = m ? m->after.b : 0;
		const struct answer units = { .ticks = inputs_in_ticks(j->in) };
		char begin[32], end[32];

		if (j->ask.event)
			log_err(j->log, "%llu events match '%s'", (unsigned long long)j->found.matches,
				j->at);
		else if (to && (j->ask.time < from || j->ask.time > to))
			log_err(j->log, "%s is not recorded at %s: it is from %s to %s",
				j->in->v[j->ask.input].machine, j->at, answer_time(&units, from, begin),
				answer_time(&units, to, end));
		else if (!to)
			log_err(j->log,
				"only sched_switch shows the task at %s; record with: hyptrace record -e "
				"sched",
				j->at);
		else
			log_err(j->log, "no events say who ran at %s", j->at);
		ret = -ENOENT;
	}
	return ret ?: path_find(&j->path, &j->found.window, j->in, &j->found.moment);
}

static int path_answer(struct path_job *j)
{
	const struct path_answer answer = { j->in, j->steps, &j->found.moment, &j->path, &j->texts };
	struct timeline *t = NULL;
	struct buf out = { 0 };
	/* the first reading has reported damage */
	int ret = path_texts_want(&j->texts, &j->found.moment, &j->path)
			  ?: timeline_open(&t, j->in, NULL, NULL, NULL);

	ret = ret ?: path_texts(j->in, t, &j->texts);
	/* a page that could be read before may fail now */
	merge_damage_join(&j->damaged, t ? merge_damaged(t->merge) : 0);
	if (!ret) {
		path_answer_write(&answer, j->f.form, &out);
		ret = print_answer(&out, j->log);
	}
	timeline_close(t);
	path_texts_release(&j->texts);
	return ret;
}

static int path_files(void *opts, const struct log *log)
{
	struct path_job *j = opts;
	const char *wanted = j->guest || j->event.name ? j->guest : "host"; /* as answers call it */
	int ret = command_files(&j->f, 0, &j->in, log);

	j->log = log;
	j->path.max = j->hops;
	if (!ret) {
		size_t i = 0;

		while (wanted && i < j->in->n &&
		       strcmp(j->in->v[i].guest ? j->in->v[i].machine : "host", wanted))
			i++;
		j->ask.input = !wanted ? SIZE_MAX : i < j->in->n ? i : 0;
		j->ask.event = j->event.name ? &j->event : NULL;
		if (!j->event.name && inputs_in_ticks(j->in) && parse_u64(j->at, &j->ask.time))
			ret = log_fail(log, -EINVAL,
				       "times of these files are ticks: give --at in ticks, without a unit");
		else if (j->guest && i == j->in->n)
			ret = log_fail(log, -EINVAL, "none of the files is of a guest '%s'", j->guest);
	}
	if (!ret && !j->ask.event)
		ret = path_ask_task(j);
	ret = ret ?: path_search_files(j) ?: path_answer(j);
	merge_damage_join(&j->damaged, j->in ? j->in->damaged : 0);
	ret = log_damage(log, j->damaged) ?: ret;
	steps_close(j->steps);
	path_release(&j->path);
	path_window_release(&j->found.window);
	return ret;
}

int cmd_path(int argc, char **argv)
{
	struct path_job j = { .cpu = NO_CPU,
			      .hops = 50,
			      .ask = { .nth = 1, .time = UINT64_MAX },
			      .found.window.within = UNIT_S };
	int status = command_read(&path_table, argc, argv, &j, path_check, path_files);

	event_words_release(&j.event);
	return status;
}
