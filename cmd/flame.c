// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace flame: the stacks of recordings as folded text, and as a flame graph. */
#include "ask/flame/flame.h"
#include "ask/states/reading.h"
#include "base/decode/mark-lines.h"
#include "cmd.h"
#include "base/outfile.h"

struct flame_command {
	struct files_opts f;
	const char *svg, *speedscope, *pprof, *output, *weight, *desc;
	bool diff;
	struct flame_opts opts;

	const struct log *log;
	const struct inputs *in;
	struct reading reading;
	struct mark_desc *names;
	struct flame *flame;
	enum flame_weight w;
	int (*profile)(const struct flame_profile *p, int fd); /* of flame_write_profile() */
	uint64_t total[FLAME_SIDES];
	struct strlist notes;
};

#define FLAME(field) .off = offsetof(struct flame_command, field)

static const struct opt flame_opt_rows[] = {
	OPT('s', "svg", "OUT", "draw a flame graph into OUT, for a browser", opts_set_text, FLAME(svg)),
	OPT(0, "speedscope", "OUT", "write a profile into OUT, for speedscope", opts_set_text,
	    FLAME(speedscope)),
	OPT(0, "pprof", "OUT", "write a profile into OUT, for go tool pprof", opts_set_text, FLAME(pprof)),
	OPT('o', "output", "OUT",
	    "where the text goes; - is standard output, the default\nwithout --svg, --speedscope and --pprof",
	    opts_set_text, FLAME(output)),
	OPT('d', "diff", NULL, "of two recordings: what has become more and less", opts_set_flag,
	    FLAME(diff)),
	OPT('w', "weight", "WHAT",
	    "count, or ns: own time of functions, and time in the\nhypervisor (samples if there are any, "
	    "else ns)",
	    opts_set_text, FLAME(weight)),
	OPT('e', "event", "EVENT[:FILTER]", "only stacks that were recorded with such events", opts_set_text,
	    FLAME(opts.behind)),
	OPT(0, "spans", NULL, "what programs mark: crosvm's and hypertrace's spans, not functions",
	    opts_set_flag, FLAME(opts.spans)),
	OPT(0, "states", NULL, "where the time of vCPUs went, by state and reason", opts_set_flag,
	    FLAME(opts.states)),
	OPT_SPANS_DESC(FLAME(desc)),
	OPT('m', "machine", "NAME", "only this one: a guest's name, or host", opts_add_text,
	    FLAME(opts.machines)),
	OPT(0, "guest", "GUEST", "the same, as other commands call it", opts_add_text, FLAME(opts.machines)),
	OPT('t', "task", "NAME|PID", "only this one", opts_add_text, FLAME(opts.tasks)),
	OPT(0, "pids", NULL, "tasks as NAME-PID", opts_set_flag, FLAME(opts.pids)),
	OPT(0, "idle", NULL, "the idle task, too", opts_set_flag, FLAME(opts.idle)),
	OPT_ANSWER(FILES),
};

const struct opts_table flame_table = {
	.command = "flame",
	.usage = "usage: hyptrace flame [--svg OUT] [OPTION...] [FILE...]\n"
		 "       hyptrace flame --diff [--svg OUT] [OPTION...] BEFORE [GUEST...] AFTER [GUEST...]\n"
		 "\n"
		 "Folds the stacks of recordings, trace.dat or the FILEs: kernel_stack and user_stack,\n"
		 "function_graph, the hypervisor's functions, or its time by reason; or programs'\n"
		 "spans, or the states of vCPUs. Files of guests join their host's.\n"
		 "\n",
	OPT_ROWS(flame_opt_rows),
};

static bool flame_check(void *opts)
{
	struct flame_command *c = opts;
	const struct flame_opts *o = &c->opts;
	const char *weight = c->weight ?: "count", *wrong;
	char why[512];

	c->opts.two_sides = c->diff;
	wrong = strcmp(weight, "count") && strcmp(weight, "ns") ? "--weight is count or ns"
		: (o->spans || o->states) && o->behind
			? "--event is for stacks, which spans and states have none of"
		: o->behind && !strcmp(weight, "ns")
			? "--event is for samples, which --weight ns does not show"
		: o->states && (o->spans || o->tasks.n) ? "--states shows vCPUs: without --spans and --task"
		: c->desc && !o->spans			? "--hypertrace-desc is for --spans"
		: c->diff && c->f.files.n < 2		? "--diff needs two recordings"
		: o->behind && filter_syntax(o->behind, why, sizeof(why)) ? why
									  : NULL;
	return options_good("hyptrace", wrong);
}

static const char *const flame_words[FLAME_WEIGHTS] = { "samples", "ns", "calls", "function entries" };

/* A note that there is no memory for is left out. */
#define flame_note(c, ...) strlist_take(&(c)->notes, str_printf(__VA_ARGS__))

/* "12 calls", or a time. */
static const char *flame_amount(enum flame_weight w, uint64_t n, char out[48])
{
	char text[16];

	if (w == FLAME_NS)
		snprintf(out, 48, "%s", duration_text(n, text));
	else
		snprintf(out, 48, "%llu %s", (unsigned long long)n, flame_words[w]);
	return out;
}

/* Weights of one recording, or of two. */
static uint64_t flame_sum(const struct flame_command *c, enum flame_weight w)
{
	const struct flame_tree *t = flame_stacks(c->flame);

	return flame_tree_total(t, 0, w) + flame_tree_total(t, 1, w);
}

/* Samples if there are any or --event asks for them, else functions' own time, else the tracer's records. */
static enum flame_weight flame_weigh(const struct flame_command *c)
{
	bool count = c->weight && !strcmp(c->weight, "count");

	if (c->weight && !count)
		return FLAME_NS;
	if (c->opts.behind || flame_sum(c, FLAME_SAMPLES))
		return FLAME_SAMPLES;
	if (flame_sum(c, FLAME_CALLS))
		return count ? FLAME_CALLS : FLAME_NS;
	return flame_sum(c, FLAME_ENTRIES) ? FLAME_ENTRIES : FLAME_SAMPLES;
}

/* Names the subject of the times. */
static const char *flame_ns_of(const struct flame_command *c)
{
	uint64_t visits = flame_counts(c->flame)->visits;

	return c->opts.spans			  ? "spans' own time"
	       : c->opts.states			  ? "vCPUs' time"
	       : !visits			  ? "functions' own time"
	       : visits >= flame_sum(c, FLAME_NS) ? "time in the hypervisor"
						  : "functions' own time, and that in the hypervisor";
}

static void flame_note_calls(struct flame_command *c)
{
	const struct flame_counts *n = flame_counts(c->flame);
	const char *what = c->opts.spans ? "spans" : "calls";
	char text[16];

	if (c->w != FLAME_NS && c->w != FLAME_CALLS && !c->opts.spans)
		return;
	if (n->asleep)
		flame_note(c, "left out: %s in which tasks did not run", duration_text(n->asleep, text));
	if (n->graph_without_switches)
		flame_note(c,
			   "there is no sched_switch, so the time in which tasks slept is their functions' "
			   "own");
	if (n->open)
		flame_note(c, "left out: %llu %s of which only the begin or the end is there",
			   (unsigned long long)n->open, what);
	if (n->others && c->opts.states)
		flame_note(c, "there are too many vCPUs and tasks, the last are left out");
	else if (n->others)
		flame_note(c, "left out: %llu begins and ends beyond 4,096 threads or names",
			   (unsigned long long)n->others);
	if (n->lost)
		flame_note(c, "left out: %llu calls in which events were lost", (unsigned long long)n->lost);
}

static void flame_notes(struct flame_command *c)
{
	static const enum flame_weight shown[] = { FLAME_SAMPLES, FLAME_NS, FLAME_ENTRIES };
	const struct flame_counts *n = flame_counts(c->flame);
	const struct flame_tree *t = flame_stacks(c->flame);
	uint64_t others = flame_tree_others(t, 0, c->w) + flame_tree_others(t, 1, c->w);
	char text[48];

	if (n->idle[c->w])
		flame_note(c, "left out: %s of the idle task (--idle)",
			   flame_amount(c->w, n->idle[c->w], text));
	flame_note_calls(c);
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		uint64_t sum = flame_sum(c, shown[i]);
		bool calls = shown[i] == FLAME_NS && c->w == FLAME_CALLS;

		if (sum && shown[i] != c->w && !calls)
			flame_note(c,
				   shown[i] == FLAME_NS ? "not shown: %s of %s (--weight ns)"
							: "not shown: %s",
				   flame_amount(shown[i], sum, text), flame_ns_of(c));
	}
	if (n->missed)
		flame_note(c, "%llu%s events were lost: their stacks are missing",
			   (unsigned long long)n->missed, n->missed_more ? " or more" : "");
	if (n->cut)
		flame_note(c, "%llu stacks are longer than their records: what these hold is shown",
			   (unsigned long long)n->cut);
	if (others)
		flame_note(c, "in " FLAME_OTHERS ": %s, for more than %u frames are not kept",
			   flame_amount(c->w, others, text), FLAME_FRAMES_MAX);
}

static int flame_write_to(struct flame_command *c, const char *path,
			  int (*write)(struct flame_command *c, int fd))
{
	struct outfile out;
	int ret;

	if (!strcmp(path, "-")) {
		pager_start();
		return stdout_written(write(c, STDOUT_FILENO), c->log);
	}
	ret = output_open(&out, path, true, c->in, c->log);
	return ret ? ret : outfile_close(&out, write(c, out.fd));
}

struct flame_text {
	const struct flame_command *c;
	struct buf buf;
	struct answer answer;
	int fd;
	size_t flush;	/* bytes that are worth a write */
	uint64_t least; /* weight of a row; lighter stacks are added up in `others` */
	uint64_t others;
};

static int flame_folded_line(void *ctx, const char *stack, const uint64_t self[FLAME_SIDES])
{
	struct flame_text *t = ctx;

	buf_addstr(&t->buf, stack);
	buf_addstr(&t->buf, " ");
	/* the first recording as if it weighed as much as the second */
	buf_add_u64(&t->buf, t->c->diff ? flame_scaled(self[0], t->c->total[0], t->c->total[1]) : self[0]);
	if (t->c->diff) {
		buf_addstr(&t->buf, " ");
		buf_add_u64(&t->buf, self[1]);
	}
	buf_addstr(&t->buf, "\n");
	return profile_flush(&t->buf, t->fd, t->flush);
}

static int flame_answer_line(void *ctx, const char *stack, const uint64_t self[FLAME_SIDES])
{
	struct flame_text *t = ctx;
	struct answer_cell cells[] = { CELL_WORD(stack), CELL_N(self[0]), CELL_N(self[1]) };

	if (self[0] < t->least) {
		t->others += self[0];
		return 0;
	}
	answer_row(&t->answer, cells);
	return profile_flush(&t->buf, t->fd, t->flush);
}

static bool flame_in_ticks(const struct flame_command *c)
{
	return c->w == FLAME_NS && inputs_in_ticks(c->in);
}

static int flame_write_answer(struct flame_text *t)
{
	static const char *const keys[FLAME_WEIGHTS] = { "samples", "ns", "calls", "entries" };
	const struct flame_command *c = t->c;
	bool ticks = flame_in_ticks(c);
	const char *key = ticks ? "ticks" : keys[c->w];
	const struct answer_column columns[] = { { "stack", "stack", ANSWER_WORD },
						 { c->diff ? "a" : key, "before", ANSWER_COUNT },
						 { "b", "after", ANSWER_COUNT } };
	int ret;

	answer_begin(&t->answer, c->f.form, &t->buf);
	t->answer.ticks = ticks;
	answer_table(&t->answer, key, NULL, columns, c->diff ? 3 : 2);
	ret = flame_fold(flame_stacks(c->flame), c->w, flame_answer_line, t);
	if (t->others)
		answer_row(&t->answer, (struct answer_cell[]){ CELL_WORD(FLAME_OTHERS), CELL_N(t->others) });
	answer_table_end(&t->answer);
	for (size_t i = 0; i < c->notes.n; i++)
		answer_note(&t->answer, "%s", c->notes.v[i]);
	answer_end(&t->answer);
	if (c->f.form == ANSWER_JSON)
		buf_addstr(&t->buf, "\n");
	return ret;
}

static int flame_write_text(struct flame_command *c, int fd)
{
	struct flame_text t = { .c = c, .fd = fd, .flush = PROFILE_FLUSH };
	int ret = c->f.form != ANSWER_TEXT ? flame_write_answer(&t)
					   : flame_fold(flame_stacks(c->flame), c->w, flame_folded_line, &t);

	ret = ret ?: profile_flush(&t.buf, fd, 1);
	buf_release(&t.buf);
	return ret;
}

/* Names the files and the question; malloc'ed. */
static char *flame_title(const struct flame_command *c)
{
	static const char *const questions[FLAME_WEIGHTS] = { "which functions ran?",
							      "which functions took the time?",
							      "which functions were called?",
							      "which functions were entered?" };
	bool visits = c->w == FLAME_NS && flame_counts(c->flame)->visits;

	return picture_title(c->in, c->diff	     ? "what became more and less?"
				    : c->opts.spans  ? "which spans took the time?"
				    : c->opts.states ? "where did the time of vCPUs go?"
				    : visits	     ? flame_ns_of(c)
						     : questions[c->w]);
}

static int flame_write_svg(struct flame_command *c, int fd)
{
	struct buf about = { 0 }, out = { 0 };
	char *title = flame_title(c);
	struct flame_picture p = { flame_stacks(c->flame), c->w, title, NULL, c->diff };
	uint64_t hidden;
	char text[48];
	int ret;

	if (c->w == FLAME_NS)
		buf_printf(&about, "%s: ", flame_ns_of(c));
	buf_addstr(&about, flame_amount(c->w, c->total[0], text));
	if (c->diff)
		buf_printf(&about, " before, %s after", flame_amount(c->w, c->total[1], text));
	for (size_t i = 0; i < c->notes.n; i++)
		if (!strncmp(c->notes.v[i], "left out: ", 10) || strstr(c->notes.v[i], "lost"))
			buf_printf(&about, "; %s", c->notes.v[i]);
	p.about = buf_str(&about);
	ret = p.title && p.about ? flame_svg(&p, &out, &hidden) : -ENOMEM;
	ret = ret ?: write_all(fd, out.data, out.len);
	if (!ret && hidden)
		log_info(c->log, "%llu frames are too narrow to be drawn", (unsigned long long)hidden);
	buf_release(&about);
	free(title);
	buf_release(&out);
	return ret;
}

static int flame_write_profile(struct flame_command *c, int fd)
{
	char *title = flame_title(c);
	struct flame_profile p = { flame_stacks(c->flame), c->w, title, flame_in_ticks(c), c->diff };
	int ret = title ? c->profile(&p, fd) : -ENOMEM;

	free(title);
	return ret;
}

/* All outputs that are wanted; text where there is no other, or by an option of its own. */
static int flame_write(struct flame_command *c)
{
	const struct {
		const char *path;
		int (*profile)(const struct flame_profile *p, int fd); /* NULL: a picture */
	} outputs[] = { { c->svg, NULL },
			{ c->speedscope, profile_speedscope },
			{ c->pprof, profile_pprof } };
	bool text = c->output || c->f.form != ANSWER_TEXT || !(c->svg || c->speedscope || c->pprof);
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(outputs) && !ret; i++) {
		c->profile = outputs[i].profile;
		if (outputs[i].path)
			ret = flame_write_to(c, outputs[i].path,
					     c->profile ? flame_write_profile : flame_write_svg);
	}
	return !ret && text ? flame_write_to(c, c->output ?: "-", flame_write_text) : ret;
}

/* -ENODATA: there are no stacks. */
static int flame_read(struct flame_command *c)
{
	struct reading *r = &c->reading;
	int ret = desc_read(c->desc, &c->names, c->log) ?: reading_open(r, c->in, c->names, c->log);

	ret = ret ?: flame_join(&c->flame, r, &c->opts, c->log) ?: reading_run(r) ?: flame_end(c->flame);
	if (ret)
		return ret;
	c->w = flame_weigh(c);
	for (size_t side = 0; side < FLAME_SIDES; side++)
		c->total[side] = flame_tree_total(flame_stacks(c->flame), side, c->w);
	flame_notes(c);
	return c->total[0] || c->total[1] ? 0 : -ENODATA;
}

static void flame_release(struct flame_command *c)
{
	flame_close(c->flame);
	mark_desc_free(c->names);
	reading_close(&c->reading);
	strlist_release(&c->notes);
}

int flame_json(const struct inputs *in, struct buf *out, uint64_t *damaged)
{
	struct flame_command c = { .in = in, .f.form = ANSWER_JSON };
	struct flame_text t = { .c = &c, .flush = SIZE_MAX };
	int ret = flame_read(&c);

	merge_damage_join(damaged, reading_damaged(&c.reading));
	t.least = (uint64_t)(FLAME_NARROWEST * (double)c.total[0]);
	ret = ret ?: flame_write_answer(&t);
	buf_add(out, t.buf.data, t.buf.len);
	ret = ret ?: buf_status(&t.buf);
	buf_release(&t.buf);
	flame_release(&c);
	return ret;
}

static int flame_run(void *opts, const struct log *log)
{
	struct flame_command *c = opts;
	const struct flame_opts *o = &c->opts;
	size_t hosts = 0;
	int ret = command_files(&c->f, COMMAND_NO_TEXTS, &c->in, log);

	c->log = log;
	/* each file that is no guest's begins a recording */
	for (size_t i = 0; c->in && i < c->in->n; i++)
		hosts += !c->in->v[i].guest;
	if (!ret && c->diff && (hosts != 2 || c->in->v[0].guest))
		ret = log_fail(
			log, -EINVAL,
			"--diff needs two recordings, each a host's file followed by those of its guests; "
			"here are %zu hosts' files",
			hosts);
	ret = ret ?: flame_read(c);
	if (ret == -ENODATA)
		log_err(log, o->behind || o->spans || o->states || o->machines.n || o->tasks.n || c->in->to
				     ? "nothing in these files is what the options ask for: --event, "
				       "--spans, --states, --machine, --task, --time"
				     : "no stacks in these files; record with --profile 99 or -T");
	ret = ret ?: flame_write(c);
	for (size_t i = 0; i < c->notes.n && !ret && c->f.form == ANSWER_TEXT; i++)
		log_info(log, "%s", c->notes.v[i]);
	ret = ret ?: log_damage(log, reading_damaged(&c->reading));
	flame_release(c);
	return ret ? EXIT_FAILED : EXIT_OK;
}

int cmd_flame(int argc, char **argv)
{
	struct flame_command c = { 0 };
	int status = command_read(&flame_table, argc, argv, &c, flame_check, flame_run);

	strlist_release(&c.opts.machines);
	strlist_release(&c.opts.tasks);
	return status;
}
