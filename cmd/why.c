// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace why: the causes of a slow tail. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "ask/why/why.h"
#include "base/array.h"
#include "cmd.h"
#include "latency-answer.h"

struct why_opts {
	const char *preset, *tail_text;
	double tail; /* 0 to 1 */
	enum answer_form form;
	bool quiet;
	struct times_opts times;
	struct strlist files;
	const struct latency_preset *found;
	struct latency_plan plan;
};

/* ---- command line --------------------------------------------------------------------------------- */

#define WHY(field) .off = offsetof(struct why_opts, field)

static const struct opt why_rows_opts[] = {
	OPT('p', "preset", "NAME", "the chains of events of hyptrace-latency(1)", opts_set_text, WHY(preset),
	    .words = "wakeup irq virtio timer hypercall abort"),
	OPT(0, "tail", "PERCENTILE", "from where on instances are slow (99)", opts_set_text, WHY(tail_text)),
	OPT_JSON("for programs, as JSON", WHY(form)),
	OPT_CSV("for programs, as CSV", WHY(form)),
	OPT_INPUT(WHY(files)),
	OPT_TIMES(WHY),
	OPT_QUIET(WHY(quiet)),
	OPT_HELP,
};

const struct opts_table why_table = {
	.command = "why",
	.usage = "usage: hyptrace why --preset NAME [OPTION...] [FILE...]\n"
		 "\n"
		 "Finds the causes of the slowest instances of a chain of events: what these waited\n"
		 "for, compared with the middle of all. trace.dat or the FILEs are read; files of\n"
		 "guests join their host's.\n"
		 "\n",
	.rows = why_rows_opts,
	.n = ARRAY_SIZE(why_rows_opts),
};

/* False: there is nothing to do but exit with *status. */
static bool why_parse(struct why_opts *o, int argc, char **argv, int *status)
{
	const char *wrong = NULL;
	char *end = NULL;

	if (!command_files(&why_table, argc, argv, o, &o->files, status))
		return false;
	o->tail = o->tail_text ? strtod(o->tail_text, &end) / 100 : 0.99;
	o->found = o->preset ? latency_preset(o->preset) : NULL;
	if (!o->preset)
		wrong = "specify --preset NAME";
	else if (!o->found)
		wrong = "--preset: there are wakeup, irq, virtio, timer, hypercall and abort";
	else if ((end && (*end || end == o->tail_text)) || !(o->tail >= 0.6 && o->tail < 1))
		wrong = "--tail: a PERCENTILE is a number from 60 to 99.999";
	if (wrong)
		fprintf(stderr, "hyptrace why: %s\n", wrong);
	return !wrong;
}

/* ---- one comparison --------------------------------------------------------------------------------- */

/* All that the answer needs. */
struct why_job {
	const struct why_opts *o;
	const struct log *log;
	const struct inputs *in;
	struct latency_answer latency;
	struct why *why;
	struct why_comparison c;
	struct answer answer;
	char p[24]; /* "p99" */
};

/* The shares that the first line names. */
#define WHY_NAMED 0.05

/* "p99 - p50 = 2.104ms: 61 % preempted by hog-620 on CPU 2, 22 % injection" */
static void why_print_head(struct why_job *j)
{
	struct answer *a = &j->answer;
	const struct why_comparison *c = &j->c;
	struct buf line = { 0 }, cause = { 0 };
	char text[2][32];
	size_t n;

	why_instances(j->why, &n);
	if (j->c.stands_out) {
		buf_printf(&line, "%s - p50 = %s:", j->p, answer_duration(a, c->p_tail - c->p50, text[0]));
		for (size_t i = 0; i < c->n && c->v[i].share >= WHY_NAMED; i++) {
			cause.len = 0;
			why_cause_text(j->why, &c->v[i].cause, &cause);
			buf_printf(&line, "%s %.0f %% %s", i ? "," : "", c->v[i].share * 100, buf_str(&cause));
		}
		answer_note(a, "%s", buf_str(&line));
	} else if (!n) {
		answer_note(a, "none of these chains is complete: hyptrace latency --preset %s counts them",
			    j->o->preset);
	} else if (c->n_tail) {
		answer_note(a, "nothing stands out: the tail is as long as the middle");
	} else {
		/* the greatest percentile, a whole number, with enough of them */
		size_t tail = n > WHY_TAIL_MIN ? 100 * (n - WHY_TAIL_MIN) / n : 0;

		if (tail >= 60)
			answer_note(a, "%zu instances are too few for a tail at %s: --tail %zu has enough", n, j->p,
				    tail);
		else
			answer_note(a, "%zu instances are too few for a tail: record for longer", n);
	}
	buf_release(&cause);
	buf_release(&line);
}

/* For programs: the numbers of the first line. */
static void why_print_numbers(struct why_job *j)
{
	static const struct answer_column columns[] = {
		{ "instances", NULL, ANSWER_COUNT },   { "typical", NULL, ANSWER_COUNT },
		{ "tail", NULL, ANSWER_COUNT },	       { "percentile", NULL, ANSWER_REAL },
		{ "p50_ns", NULL, ANSWER_DURATION },   { "tail_ns", NULL, ANSWER_DURATION },
		{ "typical_mean_ns", NULL, ANSWER_DURATION }, { "tail_mean_ns", NULL, ANSWER_DURATION },
	};
	const struct why_comparison *c = &j->c;
	bool tail = c->n_tail;
	const struct answer_cell cells[] = { CELL_N(why_seen(j->why)),
					     CELL_N(c->n_typical),
					     CELL_N(c->n_tail),
					     CELL_SHARE(j->o->tail * 100),
					     CELL_N(c->p50),
					     tail ? CELL_N(c->p_tail) : CELL_NONE,
					     CELL_N((uint64_t)c->typical),
					     tail ? CELL_N((uint64_t)c->tail) : CELL_NONE };

	answer_table(&j->answer, "instances", NULL, columns, ARRAY_SIZE(columns));
	answer_row(&j->answer, cells);
	answer_table_end(&j->answer);
}

static void why_print_causes(struct why_job *j)
{
	static const struct answer_column columns[] = {
		{ "what", "waited for", ANSWER_WORD },	   { "typical_ns", "typical", ANSWER_DURATION },
		{ "tail_ns", "tail", ANSWER_DURATION },	   { "share", "share", ANSWER_SHARE },
		{ "low", "from", ANSWER_SHARE },	   { "high", "to", ANSWER_SHARE },
		{ "in", "in", ANSWER_COUNT },		   { "cause", NULL, ANSWER_WORD },
		{ "pid", NULL, ANSWER_SIGNED },		   { "cpu", NULL, ANSWER_COUNT },
	};
	const struct why_comparison *c = &j->c;
	bool text = j->answer.form == ANSWER_TEXT, tail = j->c.stands_out;
	struct buf what = { 0 };
	char title[160];

	if (tail)
		snprintf(title, sizeof(title),
			 "Mean of the middle (p40 to p60: %zu of %zu) and of the tail (%s: %zu), by cause",
			 c->n_typical, (size_t)why_seen(j->why), j->p, c->n_tail);
	else
		snprintf(title, sizeof(title), "Mean of %zu instances, by cause", c->n_typical);
	answer_table(&j->answer, "causes", title, columns, text ? tail ? 7 : 2 : ARRAY_SIZE(columns));
	for (size_t i = 0; i < c->n; i++) {
		const struct why_row *r = &c->v[i];
		struct answer_cell cells[ARRAY_SIZE(columns)] = { { 0 } };

		/* people get what is more than a thousandth */
		if (text && (tail ? r->share * r->share < 1e-6 : r->typical < c->typical / 1000))
			continue;
		what.len = 0;
		why_cause_text(j->why, &r->cause, &what);
		cells[0] = CELL_WORD(buf_str(&what));
		cells[1] = CELL_N((uint64_t)r->typical);
		if (c->n_tail) {
			cells[2] = CELL_N((uint64_t)r->tail);
			cells[6] = CELL_N(r->in);
		}
		if (tail) {
			cells[3] = CELL_SHARE(r->share);
			cells[4] = CELL_SHARE(r->low);
			cells[5] = CELL_SHARE(r->high);
		}
		cells[7] = CELL_WORD(why_kind_name(r->cause.kind));
		if (r->cause.pid != STATE_NO_TASK)
			cells[8] = CELL_N((uint64_t)r->cause.pid);
		if (r->cause.cpu != STATE_NO_CPU)
			cells[9] = CELL_N(r->cause.cpu);
		answer_row(&j->answer, cells);
	}
	answer_table_end(&j->answer);
	buf_release(&what);
}

/* ---- examples ----------------------------------------------------------------------------------------- */

static void why_files(const struct why_job *j, struct buf *out)
{
	for (size_t i = 0; i < j->o->files.n; i++)
		output_quote(out, j->o->files.v[i]);
}

/* The last event of the instance that a chain of causes leads to: a task of a guest comes to its CPU, or a vCPU
 * or a worker to the host's. */
static const struct chain_event *why_moment(const struct why_job *j, const struct why_instance *one)
{
	size_t k = one->n_points - 1;

	if (j->in->v[one->chain.v[k].input].guest && strcmp(j->o->preset, "wakeup") != 0)
		k -= k > 0;
	return &one->chain.v[k];
}

static void why_example(struct why_job *j, size_t nr, const struct why_row *r)
{
	size_t n;
	const struct why_instance *one = &why_instances(j->why, &n)[r->example];
	const struct chain_event *at = why_moment(j, one);
	const struct input *in = &j->in->v[at->input];
	struct buf path = { 0 }, report = { 0 }, what = { 0 };
	char from[32], to[32], took[2][32];

	buf_printf(&path, "hyptrace path --at %s", answer_time(&j->answer, at->ts, from));
	if (in->guest) {
		buf_addstr(&path, " --guest");
		output_quote(&path, in->machine);
	}
	buf_printf(&path, " --cpu %u", at->cpu);
	why_files(j, &path);
	buf_printf(&report, "hyptrace report --time %s,%s", answer_time(&j->answer, one->from, from),
		   answer_time(&j->answer, one->to + 1, to));
	why_files(j, &report);
	why_cause_text(j->why, &r->cause, &what);
	if (j->answer.form == ANSWER_TEXT) {
		answer_note(&j->answer, "%zu. %s of %s: %s", nr, answer_duration(&j->answer, r->example_ns, took[0]),
			    answer_duration(&j->answer, one->to - one->from, took[1]), buf_str(&what));
		answer_note(&j->answer, "   %s", buf_str(&path));
		answer_note(&j->answer, "   %s", buf_str(&report));
	} else {
		const struct answer_cell cells[] = { CELL_N(nr),
						     CELL_N(one->to - one->from),
						     CELL_N(one->from),
						     CELL_N(one->to),
						     CELL_WORD(buf_str(&what)),
						     CELL_N(r->example_ns),
						     CELL_WORD(buf_str(&path)),
						     CELL_WORD(buf_str(&report)) };

		answer_row(&j->answer, cells);
	}
	buf_release(&path);
	buf_release(&report);
	buf_release(&what);
}

/* Of the causes with the greatest shares, the instances that have most of them; each instance once. */
static void why_print_examples(struct why_job *j)
{
	static const struct answer_column columns[] = {
		{ "n", NULL, ANSWER_COUNT },	      COLUMN_TOOK,
		{ "from", NULL, ANSWER_TIME },	      { "to", NULL, ANSWER_TIME },
		{ "what", NULL, ANSWER_WORD },	      { "what_ns", NULL, ANSWER_DURATION },
		{ "path", NULL, ANSWER_WORD },	      { "report", NULL, ANSWER_WORD },
	};
	const struct why_comparison *c = &j->c;
	bool text = j->answer.form == ANSWER_TEXT;
	size_t n = 0;

	if (text && j->c.stands_out)
		buf_addstr(j->answer.out, "\nExamples\n");
	else if (!text)
		answer_table(&j->answer, "examples", NULL, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < c->n && n < 3 && j->c.stands_out; i++) {
		bool shown = c->v[i].cause.kind == WHY_OTHERS || c->v[i].share < WHY_NAMED;

		for (size_t k = 0; k < i; k++)
			shown |= c->v[k].example == c->v[i].example;
		if (!shown)
			why_example(j, ++n, &c->v[i]);
	}
	if (!text)
		answer_table_end(&j->answer);
}

/* ---- notes --------------------------------------------------------------------------------------- */

/* What the tail (without one: all) has of that kind, as a share of its time. */
static double why_part_of(const struct why_job *j, enum why_kind kind)
{
	double sum = 0, all = j->c.n_tail ? j->c.tail : j->c.typical;

	for (size_t i = 0; i < j->c.n; i++)
		if (j->c.v[i].cause.kind == kind)
			sum += j->c.n_tail ? j->c.v[i].tail : j->c.v[i].typical;
	return all > 0 ? sum / all : 0;
}

static void why_print_notes(struct why_job *j)
{
	struct answer *a = &j->answer;
	double undecided = why_part_of(j, WHY_UNDECIDED), unknown = why_part_of(j, WHY_UNKNOWN),
	       outside = why_part_of(j, WHY_OUTSIDE);
	size_t n;

	why_instances(j->why, &n);
	if (undecided >= WHY_NAMED)
		answer_note(a, "undecided: nearer to a border than the clocks' bounds; record with --tsync counter "
			       "for the least (hyptrace sync shows them)");
	if (unknown >= WHY_NAMED)
		answer_note(a, "not recorded: events were lost, or a buffer began later or ended earlier: record "
			       "with -b 8192 -e kvm -e sched");
	if (outside >= WHY_NAMED)
		answer_note(a, "out of the guest: only sched_switch shows more: record -e sched");
	if (why_left_out(j->why))
		answer_note(a, "%zu instances are left out: they have too many stretches; --time has a part",
			    why_left_out(j->why));
	if (n < why_seen(j->why))
		answer_note(a, "of %llu instances %zu were taken, evenly", (unsigned long long)why_seen(j->why), n);
	if (!strcmp(j->o->preset, "timer"))
		answer_note(a, "timer: since it fired");
}

/* ---- all of it -------------------------------------------------------------------------------------- */

static int why_answer(struct why_job *j)
{
	struct buf out = { 0 };
	int ret;

	snprintf(j->p, sizeof(j->p), "p%.6g", j->o->tail * 100);
	answer_begin(&j->answer, j->o->form, &out);
	j->answer.ticks = inputs_in_ticks(j->in);
	why_print_head(j);
	if (j->answer.form != ANSWER_TEXT)
		why_print_numbers(j);
	if (j->c.n || j->answer.form != ANSWER_TEXT) {
		why_print_causes(j);
		why_print_examples(j);
	}
	why_print_notes(j);
	answer_end(&j->answer);
	ret = print_answer(&out, j->log);
	buf_release(&out);
	return ret;
}

static int why_files_read(struct why_opts *o, struct console *console, const struct log *log)
{
	struct hyptrace *files = NULL;
	struct why_job j = { .o = o, .log = log };
	uint64_t damaged = 0;
	int ret = command_open(&files, &o->files, 0, &o->times, log);

	if (ret)
		goto out;
	j.in = handle_inputs(files);
	ret = why_open(&j.why, j.in, o->found);
	if (ret)
		goto out;
	latency_preset_plan(o->found, j.in, &o->plan);
	why_listen(j.why, &o->plan);
	j.latency = (struct latency_answer){ .in = j.in, .preset = o->found, .plan = &o->plan };
	ret = latency_open(&j.latency.found, j.in, &o->plan, log) ?:
	      latency_read(j.latency.found, log, &damaged);
	if (!ret && latency_answer_missing(&j.latency, log))
		ret = -ENODATA;
	ret = ret ?: why_cut(j.why, j.latency.found, o->tail) ?: why_compare(j.why, &j.c) ?: why_answer(&j);
	if (damaged)
		log_damage(log, damaged);
	if (!ret && damaged)
		ret = -EBADMSG;
out:
	why_close(j.why);
	latency_close(j.latency.found);
	hyptrace_close(files);
	return console_status(console, ret);
}

int cmd_why(int argc, char **argv)
{
	struct why_opts o = { 0 };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	int status;

	memory_or_end();
	if (why_parse(&o, argc, argv, &status)) {
		console.quiet = o.quiet;
		status = why_files_read(&o, &console, &log);
	}
	strlist_release(&o.files);
	return status;
}
