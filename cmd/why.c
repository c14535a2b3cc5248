// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace why: the causes of a slow tail. */
#include "ask/why/why.h"
#include "cmd.h"

/* The options, and all that the answer needs. */
struct why_job {
	struct files_opts f;
	struct latency_question q;
	const char *tail_text, *task, *span, *desc;
	char *words[2]; /* --task's events */
	double tail;	/* 0 to 1 */
	bool asks;	/* of instances */
	bool diff;	/* for diff's command */

	const struct log *log;
	const struct inputs *in;
	struct finding_job *found; /* by a reading of others; NULL: none */
	struct why *why;
	struct why_comparison c;
	struct answer answer;
	bool text;  /* for people */
	bool none;  /* no complete instance, or no vCPU, to answer for */
	char p[24]; /* "p99" */
};

#define WHY(field) .off = offsetof(struct why_job, field)

static const struct opt why_rows_opts[] = {
	OPT('p', "preset", "NAME", "the instances: chains of events, as in hyptrace-latency(1)",
	    opts_set_text, WHY(q.preset), .words = "wakeup irq virtio timer kick hypercall abort"),
	OPT('f', "from", "EVENT", "... or pairs of events, as there: the one that begins", opts_set_text,
	    WHY(q.from)),
	OPT('t', "to", "EVENT", "... the one that ends", opts_set_text, WHY(q.to)),
	OPT('k', "key", "KEY", "... what both must have in common", opts_set_text, WHY(q.key)),
	OPT(0, "task", "NAME@GUEST", "... or a guest's task, from its wake-up until it runs", opts_set_text,
	    WHY(task)),
	OPT(0, "span", "NAME", "... or spans of that name that programs mark", opts_set_text, WHY(span)),
	OPT_SPANS_DESC(WHY(desc)),
	OPT(0, "diff", NULL, "what vCPUs lose more time to in recording B than in A: diff --causes A B",
	    opts_set_flag, WHY(diff)),
	OPT(0, "tail", "PERCENTILE", "from where on instances are slow (99)", opts_set_text, WHY(tail_text)),
	OPT_ANSWER(FILES),
};

const struct opts_table why_table = {
	.command = "why",
	.usage = "usage: hyptrace why [OPTION...] [FILE...]\n"
		 "       hyptrace why --preset NAME [OPTION...] [FILE...]\n"
		 "       hyptrace why --from EVENT --to EVENT [OPTION...] [FILE...]\n"
		 "       hyptrace why --span NAME [OPTION...] [FILE...]\n"
		 "       hyptrace why --diff [OPTION...] A [GUEST...] B [GUEST...]\n"
		 "\n"
		 "Finds what took most time from vCPUs; of chains or pairs of events, why the slowest\n"
		 "instances are slow. trace.dat or the FILEs are read; files of guests join their\n"
		 "host's.\n"
		 "\n",
	OPT_ROWS(why_rows_opts),
};

/* The wait of a guest's task as a pair of events. */
static const char *why_task_pair(struct why_job *o)
{
	const char *at = strrchr(o->task, '@');
	int len = at ? (int)(at - o->task) : 0;
	bool pid = len && strspn(o->task, "0123456789") == (size_t)len;
	const char *quote = pid ? "" : "\"", *field = pid ? "pid" : "comm";

	if (!len || !at[1])
		return "--task: NAME@GUEST, or PID@GUEST";
	o->words[0] = str_printf("sched_waking@%s/%s==%s%.*s%s", at + 1, field, quote, len, o->task, quote);
	o->words[1] =
		str_printf("sched_switch@%s/next_%s==%s%.*s%s", at + 1, field, quote, len, o->task, quote);
	o->q.from = o->words[0];
	o->q.to = o->words[1];
	o->q.key = "pid=next_pid";
	return o->q.from && o->q.to ? NULL : errno_text(-ENOMEM);
}

static bool why_check(void *opts)
{
	struct why_job *o = opts;
	const char *wrong;
	char *end = NULL;

	o->tail = o->tail_text ? strtod(o->tail_text, &end) / 100 : 0.99;
	o->asks = o->q.preset || o->q.from || o->q.to || o->q.key;
	wrong = o->asks + !!o->task + !!o->span > 1 ? "--task, --span, --preset and --from exclude each other"
		: o->desc && !o->span		    ? "--hypertrace-desc is for --span"
		: o->task			    ? why_task_pair(o)
						    : NULL;
	o->asks |= o->task || o->span;
	if (!wrong && ((end && (*end || end == o->tail_text)) || !(o->tail >= 0.6 && o->tail < 1)))
		wrong = "--tail: a PERCENTILE is a number from 60 to 99.999";
	else if (!wrong && o->tail_text && !o->asks)
		wrong = "--tail needs --preset, --task, --span, or --from and --to";
	return options_good("hyptrace why", wrong) && (!o->asks || o->span || !latency_question_check(&o->q));
}

#define WHY_NAMED 0.05 /* shares of so much are named in the first line, and have examples */

static const char *why_text(const struct why_job *j, const struct why_cause *cause, struct buf *out)
{
	out->len = 0;
	why_cause_text(j->why, cause, out);
	return buf_str(out) ?: "";
}

/* "p99 - p50 = 2.104ms: 61 % preempted by hog-620 on CPU 2, 22 % injection" */
static void why_print_head(struct why_job *j)
{
	struct answer *a = &j->answer;
	const struct why_comparison *c = &j->c;
	struct buf line = { 0 }, cause = { 0 };
	char text[32];
	/* a percentile with enough instances */
	size_t n = c->n_all, tail = n > WHY_TAIL_MIN ? 100 * (n - WHY_TAIL_MIN) / n : 0;

	if (c->stands_out) {
		for (size_t i = 0; i < c->n && c->v[i].share >= WHY_NAMED; i++)
			buf_printf(&line, "%s%.0f %% %s", i ? ", " : "", c->v[i].share * 100,
				   why_text(j, &c->v[i].cause, &cause));
		answer_note(a, "%s - p50 = %s: %s", j->p, answer_duration(a, c->p_tail - c->p50, text),
			    buf_str(&line) ?: "no cause has 5 %");
	} else if (!n) {
		answer_note(a,
			    j->task ? "no wake-up of task %s leads to its run"
				    : "none is complete: hyptrace latency shows how many began",
			    j->task);
	} else if (c->n_tail) {
		answer_note(a, "nothing stands out: the tail is as long as the middle");
	} else if (tail >= 60) {
		answer_note(a, "%zu instances are too few for a tail at %s: --tail %zu has enough", n, j->p,
			    tail);
	} else {
		answer_note(a, "%zu instances are too few for a tail: record for longer", n);
	}
	buf_release(&cause);
	buf_release(&line);
}

static void why_print_causes(struct why_job *j)
{
	static const struct answer_column columns[] = {
		{ "what", "waited for", ANSWER_WORD },	{ "typical_ns", "typical", ANSWER_DURATION },
		{ "tail_ns", "tail", ANSWER_DURATION }, { "share", "share", ANSWER_SHARE },
		{ "low", "from", ANSWER_SHARE },	{ "high", "to", ANSWER_SHARE },
		{ "in", "in", ANSWER_COUNT },		{ "cause", NULL, ANSWER_WORD },
		{ "pid", NULL, ANSWER_SIGNED },		{ "cpu", NULL, ANSWER_COUNT },
	};
	const struct why_comparison *c = &j->c;
	struct buf what = { 0 };
	char title[160];

	if (c->stands_out)
		snprintf(title, sizeof(title),
			 "Mean of the middle (p40 to p60: %zu of %zu) and of the tail (%s: %zu), by cause",
			 c->n_typical, c->n_all, j->p, c->n_tail);
	else
		snprintf(title, sizeof(title), "Mean of %zu instances, by cause", c->n_typical);
	answer_table(&j->answer, "causes", title, columns,
		     !j->text	     ? ARRAY_SIZE(columns)
		     : c->stands_out ? 7
				     : 2);
	for (size_t i = 0; c->n && i <= c->n; i++) {
		const struct why_row *r = &c->v[i];
		bool share = c->stands_out && i < c->n;
		const struct answer_cell cells[] = {
			CELL_WORD(why_text(j, &r->cause, &what)),
			CELL_N((uint64_t)r->typical),
			c->n_tail ? CELL_N((uint64_t)r->tail) : CELL_NONE,
			share ? CELL_SHARE(r->share) : CELL_NONE,
			share ? CELL_SHARE(r->low) : CELL_NONE,
			share ? CELL_SHARE(r->high) : CELL_NONE,
			c->n_tail ? CELL_N(r->in) : CELL_NONE,
			CELL_WORD(why_kind(r->cause.kind)->name),
			r->cause.pid != STATE_NO_TASK ? CELL_N((uint64_t)r->cause.pid) : CELL_NONE,
			r->cause.cpu != STATE_NO_CPU ? CELL_N(r->cause.cpu) : CELL_NONE,
		};
		/* people get what is more than half a percent */
		bool small =
			c->stands_out ? r->share * r->share < 25e-6 : r->typical < c->v[c->n].typical / 200;

		if (!j->text || !small)
			answer_row(&j->answer, cells);
	}
	answer_table_end(&j->answer);
	buf_release(&what);
}

/* The options by which this command reads its files, and the files; part: --time, too. */
static void why_files(struct why_job *j, bool part, struct buf *out)
{
	const struct times_opts *t = &j->f.times;
	char from[32], to[32];

	if (t->hz)
		buf_printf(out, " --ts2secs %" PRIu64, t->hz);
	buf_addstr(out, t->no_guests ? " --no-guests" : "");
	buf_addstr(out, t->no_sync ? " --no-sync" : "");
	if (part && j->in->to)
		buf_printf(out, " --time %s,%s", answer_time(&j->answer, j->in->from, from),
			   j->in->to == UINT64_MAX ? "" : answer_time(&j->answer, j->in->to, to));
	for (size_t i = 0; i < j->f.files.n; i++)
		shell_word(out, j->f.files.v[i]);
}

/* The commands that show an instance: path leads to the last event by which a task comes to its CPU. */
static void why_commands(struct why_job *j, const struct why_instance *one, struct buf *path,
			 struct buf *report)
{
	const struct chain_event *at = &one->chain.v[one->n_points - 1];
	char from[32], to[32];

	if (j->in->v[at->input].guest && j->q.preset && strcmp(j->q.preset, "wakeup") != 0)
		at--;
	buf_printf(path, "hyptrace path --at %s", answer_time(&j->answer, at->ts, from));
	if (j->in->v[at->input].guest) {
		buf_addstr(path, " --guest");
		shell_word(path, j->in->v[at->input].machine);
	}
	buf_printf(path, " --cpu %u", at->cpu);
	why_files(j, false, path);
	buf_printf(report, "hyptrace report --time %s,%s", answer_time(&j->answer, one->from, from),
		   answer_time(&j->answer, one->to + 1, to));
	why_files(j, false, report);
}

/* Of the causes with the greatest shares, the instances that have most of them; each instance once. */
static void why_print_examples(struct why_job *j)
{
	static const struct answer_column columns[] = {
		{ "n", NULL, ANSWER_COUNT },   COLUMN_TOOK,
		{ "from", NULL, ANSWER_TIME }, { "to", NULL, ANSWER_TIME },
		{ "what", NULL, ANSWER_WORD }, { "what_ns", NULL, ANSWER_DURATION },
		{ "path", NULL, ANSWER_WORD }, { "report", NULL, ANSWER_WORD },
	};
	const struct why_comparison *c = &j->c;
	struct answer *a = &j->answer;
	char part[32], took[32];
	size_t n = 0;

	if (j->text && c->stands_out)
		buf_addstr(a->out, "\nExamples\n");
	else if (!j->text)
		answer_table(a, "examples", NULL, columns, ARRAY_SIZE(columns));
	for (const struct why_row *r = c->v; r < c->v + c->n && n < 3 && r->share >= WHY_NAMED; r++) {
		const struct why_instance *one = r->example;
		struct buf path = { 0 }, report = { 0 }, what = { 0 };
		bool shown = !one;

		for (const struct why_row *before = c->v; before < r; before++)
			shown |= before->example == one;
		if (shown)
			continue;
		n++;
		why_commands(j, one, &path, &report);
		why_text(j, &r->cause, &what);
		if (j->text) {
			answer_note(a, "%zu. %s of %s: %s", n, answer_duration(a, r->example_ns, part),
				    answer_duration(a, one->to - one->from, took), buf_str(&what));
			answer_note(a, "   %s", buf_str(&path));
			answer_note(a, "   %s", buf_str(&report));
		} else {
			answer_row(a,
				   (struct answer_cell[]){
					   CELL_N(n), CELL_N(one->to - one->from), CELL_N(one->from),
					   CELL_N(one->to), CELL_WORD(buf_str(&what)), CELL_N(r->example_ns),
					   CELL_WORD(buf_str(&path)), CELL_WORD(buf_str(&report)) });
		}
		buf_release(&path);
		buf_release(&report);
		buf_release(&what);
	}
	if (!j->text)
		answer_table_end(a);
}

/* Reads the chains, or pairs, and cuts them. */
static int why_cut_chains(struct why_job *j, uint64_t *damaged)
{
	struct latency_question *q = &j->q;
	struct latency_answer l = { .in = j->in, .q = q };
	struct latency *found = NULL;
	int ret;

	latency_question_open(q, j->in);
	q->plan.each = why_chain;
	q->plan.ctx = j->why;
	ret = latency_open(&found, j->in, &q->plan, j->log) ?: latency_read(found, j->log, damaged);
	if (!ret) {
		l.found = latency_result(found);
		ret = latency_answer_missing(&l, j->log) ? -ENODATA : why_cut(j->why, l.found.vcpus);
	}
	latency_close(found);
	return ret;
}

/* Reads the marks, and cuts their spans. */
static int why_cut_marks(struct why_job *j, uint64_t *damaged)
{
	struct mark_desc *desc;
	struct vcpu_map *vcpus = NULL;
	int ret = desc_read(j->desc, &desc, j->log);

	if (!ret) {
		ret = why_marks(j->why, j->span, desc, j->log, damaged);
		if (ret == -ENOENT)
			log_err(j->log, "no span is called '%s': hyptrace stat --show spans lists them",
				j->span);
	}
	ret = ret ?: vcpu_map_open(&vcpus, j->in) ?: why_cut(j->why, vcpus);
	vcpu_map_close(vcpus);
	mark_desc_free(desc);
	return ret;
}

static int why_print_tail(struct why_job *j, uint64_t *damaged)
{
	const struct why_comparison *c = &j->c;
	int ret = why_open(&j->why, j->in, j->q.found);

	ret = ret ?: j->span ? why_cut_marks(j, damaged) : why_cut_chains(j, damaged);
	ret = ret ?: why_compare(j->why, j->tail, &j->c);
	j->none = !c->n_all;
	if (ret == -E2BIG)
		log_err(j->log,
			"the instances have too many stretches for memory: --time FROM,TO reads a part");
	if (!ret) {
		why_print_head(j);
		if (c->n || !j->text) {
			why_print_causes(j);
			why_print_examples(j);
		}
		for (const struct why_row *r = c->v, *total = r + c->n; r < total; r++) {
			const char *advice = why_kind(r->cause.kind)->advice;

			if (advice && r->tail + r->typical >= WHY_NAMED * (total->tail + total->typical))
				answer_note(&j->answer, "%s: %s", why_kind(r->cause.kind)->name, advice);
		}
		if (c->n_all < c->seen)
			answer_note(&j->answer, "of %llu instances %zu were taken, evenly",
				    (unsigned long long)c->seen, c->n_all);
	}
	why_close(j->why);
	return ret;
}

#define WHY_FINDINGS 10

static int why_print_findings(struct why_job *j, uint64_t *damaged)
{
	static const struct answer_column columns[] = {
		{ "n", NULL, ANSWER_COUNT },	      { "what", NULL, ANSWER_WORD },
		{ "lost_ns", NULL, ANSWER_DURATION }, { "count", NULL, ANSWER_COUNT },
		{ "vcpu", NULL, ANSWER_WORD },	      { "share", NULL, ANSWER_SHARE },
		{ "report", NULL, ANSWER_WORD },      { "from", NULL, ANSWER_TIME },
		{ "to", NULL, ANSWER_TIME },
	};
	struct findings f = { 0 };
	int ret = j->found ? findings_end(j->found, &f) : findings_read(&f, j->in, j->log, damaged);
	bool out = false;
	char lost[32], number[8];

	j->none = !f.wall;
	for (size_t i = 0; i < f.n; i++)
		out |= f.v[i].share >= WHY_NAMED;
	if (!ret && !f.wall)
		answer_note(&j->answer,
			    f.apart ? "the buffers that show vCPUs have no time in common"
				    : "the files have no entries and exits of vCPUs: record -e kvm -e sched");
	else if (!ret && !out)
		answer_note(&j->answer, "nothing stands out: nothing took 5 %% of a vCPU's time");
	if (!j->text)
		answer_table(&j->answer, "findings", NULL, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < f.n + f.n_context; i++) {
		const struct finding *one = &f.v[i];
		struct buf next = { 0 };

		if (i < f.n && i >= WHY_FINDINGS)
			continue;
		buf_addstr(&next, one->next ?: "");
		why_files(j, true, &next);
		if (i < f.n && !j->text) {
			answer_row(&j->answer,
				   (struct answer_cell[]){
					   CELL_N(i + 1), CELL_WORD(one->what), CELL_N(one->lost),
					   CELL_N(one->n), CELL_WORD(one->vcpu), CELL_SHARE(one->share),
					   CELL_WORD(buf_str(&next)),
					   one->example.to ? CELL_N(one->example.from) : CELL_NONE,
					   one->example.to ? CELL_N(one->example.to) : CELL_NONE });
		} else {
			snprintf(number, sizeof(number), i < f.n ? "%zu. " : "", i + 1);
			answer_note(&j->answer, "%s%s: %s in %llu stretches, %.1f %% of %s", number,
				    one->what, answer_duration(&j->answer, one->lost, lost),
				    (unsigned long long)one->n, one->share * 100, one->vcpu);
			if (i < f.n)
				answer_note(&j->answer, "   %s", buf_str(&next));
		}
		buf_release(&next);
	}
	if (!j->text)
		answer_table_end(&j->answer);
	free(f.v);
	return ret;
}

static int why_answer(struct why_job *j, struct buf *out, uint64_t *damaged)
{
	int ret;

	j->text = j->f.form == ANSWER_TEXT;
	answer_begin(&j->answer, j->f.form, out);
	j->answer.ticks = inputs_in_ticks(j->in);
	ret = j->asks ? why_print_tail(j, damaged) : why_print_findings(j, damaged);
	answer_end(&j->answer);
	return ret;
}

int why_json(const struct inputs *in, const struct strlist *files, const struct times_opts *times,
	     struct finding_job *found, struct buf *out)
{
	struct why_job j = { .f = { .form = ANSWER_JSON, .files = *files, .times = *times },
			     .in = in,
			     .found = found };

	return why_answer(&j, out, NULL);
}

static int why_run(void *opts, const struct log *log)
{
	struct why_job *j = opts;
	struct buf out = { 0 };
	uint64_t damaged = 0;
	int ret = command_files(&j->f, COMMAND_NO_TEXTS, &j->in, log);

	j->log = log;
	snprintf(j->p, sizeof(j->p), "p%.6g", j->tail * 100);
	ret = ret ?: why_answer(j, &out, &damaged) ?: print_answer(&out, log);
	buf_release(&out);
	return log_damage(log, damaged) ?: ret ?: j->none ? EXIT_FAILED : 0;
}

int cmd_why(int argc, char **argv)
{
	struct why_job j = { 0 };
	int status;

	for (int i = 1; i < argc; i++)
		if (strlen(argv[i]) > 2 && !strncmp("--diff", argv[i], strlen(argv[i]))) { /* or shortened */
			argv[i] = (char[]){ "--causes" };
			return cmd_diff(argc, argv);
		}
	status = command_read(&why_table, argc, argv, &j, why_check, why_run);
	free(j.words[0]);
	free(j.words[1]);
	latency_question_release(&j.q);
	return status;
}
