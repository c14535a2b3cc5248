// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: counts events and adds up where time went, in one reading. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/handle.h"
#include "cmd.h"
#include "stat-priv.h"

/* ---- tables ------------------------------------------------------------------------- */

/* What a table is made of. */
enum { NEED_EXITS = 1, NEED_HYP = 2, NEED_MARKERS = 4, NEED_LONGEST = 8, NEED_VCPUS = 16, NEED_TASKS = 32 };

/* In this order. */
static const struct stat_word {
	const char *word; /* of --show; the table's key, too */
	unsigned int needs;
	stat_print *print;
} stat_words[] = {
	{ "buffers", 0, stat_buffers },
	{ "lost", 0, stat_lost },
	{ "events", 0, stat_events },
	{ "exits", NEED_EXITS, stat_exits },
	{ "guest", NEED_EXITS, stat_guest },
	{ "mmio", NEED_EXITS, stat_mmio },
	{ "ioport", NEED_EXITS, stat_ioport },
	{ "sysreg", NEED_EXITS, stat_sysreg },
	{ "hypercall", NEED_EXITS, stat_hypercall },
	{ "hyp", NEED_HYP, stat_hyp },
	{ "firmware", NEED_HYP, stat_firmware },
	{ "vcpus", NEED_VCPUS, stat_vcpus },
	{ "tasks", NEED_TASKS, stat_tasks },
	{ "steal", NEED_VCPUS | NEED_TASKS, stat_steal },
	{ "spans", NEED_MARKERS, stat_spans },
	{ "longest", NEED_EXITS | NEED_HYP | NEED_LONGEST, stat_longest },
};

/* ---- command line -------------------------------------------------------------------- */

struct stat_opts {
	bool show[ARRAY_SIZE(stat_words)], shown; /* shown: some were named */
	uint64_t per, top, rows;
	uint64_t by; /* ns */
	const char *svg, *desc;
	enum answer_form form;
	bool quiet;
	struct strlist files;
};

#define STAT(field) .off = offsetof(struct stat_opts, field)

static bool stat_word_set(struct stat_opts *o, const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(stat_words); i++) {
		if (strncmp(stat_words[i].word, word, len) || stat_words[i].word[len])
			continue;
		o->show[i] = o->shown = true;
		return true;
	}
	return false;
}

static int stat_set_show(void *ctx, const struct opt *opt, const char *arg, struct opts_error *err)
{
	for (const char *p = arg;; p++) {
		size_t len = strcspn(p, ",");

		if (!stat_word_set(ctx, p, len))
			return opts_wrong(err, opt, arg, "not a table, or a list of tables");
		p += len;
		if (!*p)
			return 0;
	}
}

static int stat_set_per(void *ctx, const struct opt *opt, const char *arg, struct opts_error *err)
{
	struct stat_opts *o = ctx;

	if (!strcmp(arg, "guest"))
		o->per = STAT_GUEST;
	else if (!strcmp(arg, "vcpu"))
		o->per = STAT_VCPU;
	else
		return opts_wrong(err, opt, arg, "neither guest nor vcpu");
	return 0;
}

/* "250us", "1.5s": a number and its unit. */
static int stat_set_by(void *ctx, const struct opt *opt, const char *arg, struct opts_error *err)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	struct stat_opts *o = ctx;
	char *end = NULL;
	double v = strspn(arg, "0123456789.") ? strtod(arg, &end) : 0;

	for (size_t i = 0; end && i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].name) && v * units[i].ns >= 1 && v * units[i].ns < 1e15) {
			o->by = (uint64_t)(v * units[i].ns + 0.5);
			return 0;
		}
	return opts_wrong(err, opt, arg, "not a time such as 10ms (ns, us, ms, s)");
}

static const struct opt stat_rows[] = {
	OPT('s', "show", "TABLE,...",
	    "these tables, not all that say something:\n"
	    "buffers lost events, exits guest mmio ioport sysreg\n"
	    "hypercall, hyp firmware, vcpus tasks steal, spans,\nlongest",
	    stat_set_show),
	OPT('p', "per", "guest|vcpu", "exits of each guest, or of each vCPU", stat_set_per),
	OPT('t', "top", "N", "how many of the longest exits and stays to show (5)", opts_set_number,
	    STAT(top), .max = STAYS_LONGEST_MAX),
	OPT('b', "by", "TIME", "time by slices of 10ms, 250us, ...", stat_set_by),
	OPT(0, "svg", "FILE", "the slices as a picture, too", opts_set_text, STAT(svg)),
	OPT('r', "rows", "N", "at most so many rows of a table (20); 0: all", opts_set_number, STAT(rows),
	    .max = UINT32_MAX),
	OPT('j', "json", NULL, "for programs: all rows, times in ns", set_json, STAT(form)),
	OPT(0, "csv", NULL, "the same; each line begins with its table", set_csv, STAT(form)),
	OPT('i', "input", "FILE", "another way to name a file", opts_add_text, STAT(files)),
	OPT(0, "hypertrace-desc", "FILE", "names of hypertrace events, which tell their spans", opts_set_text,
	    STAT(desc)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, STAT(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table stat_table = {
	.command = "stat",
	.usage = "usage: hyptrace stat [OPTION...] [FILE...]\n"
		 "\n"
		 "Counts the events of recordings, trace.dat or the FILEs, and adds up what exits, the\n"
		 "hypervisor, the firmware and programs' spans took. Files of guests join their host's.\n"
		 "\n",
	.rows = stat_rows,
	.n = ARRAY_SIZE(stat_rows),
};

static int stat_check(const struct stat_opts *o)
{
	if (!o->svg || o->by)
		return 0;
	fprintf(stderr, "hyptrace: --svg needs --by TIME\n");
	return -EINVAL;
}

/* False: there is nothing to do but exit with *status. */
static bool stat_parse(struct stat_opts *o, int argc, char **argv, int *status)
{
	return command_files(&stat_table, argc, argv, o, &o->files, status) && !stat_check(o);
}

/* ---- reading --------------------------------------------------------------------------- */

struct stat_run {
	const struct stat_opts *o;
	const struct log *log;
	struct hyptrace *files;
	struct timeline *timeline;
	struct steps *steps;
	struct hypertrace_desc *desc;
	struct stat_answer s;
	unsigned int needs;
};

static bool stat_wanted(const struct stat_opts *o, size_t word)
{
	return !o->shown || o->show[word];
}

static unsigned int stat_needs(const struct stat_opts *o)
{
	unsigned int needs = o->by ? NEED_EXITS | NEED_HYP : 0;

	for (size_t i = 0; i < ARRAY_SIZE(stat_words); i++)
		needs |= stat_wanted(o, i) ? stat_words[i].needs : 0;
	return needs;
}

/* What is needed, in the order of its dependence; all are closed by stat_release. */
static int stat_parts(struct stat_run *r)
{
	bool longest = r->needs & NEED_LONGEST;
	struct stat_answer *s = &r->s;
	struct stays *stays = longest || r->o->by ? &s->stays : NULL;
	unsigned int want =
		(r->needs & NEED_VCPUS ? STATES_VCPUS : 0) | (r->needs & NEED_TASKS ? STATES_GUEST_TASKS : 0);
	int ret = steps_open(&r->steps, s->in);

	if (!ret)
		ret = counts_open(&s->counts, s->in, r->timeline);
	if (!ret)
		ret = stays_open(&s->stays, longest ? r->o->top : 0, r->o->by);
	if (!ret && (r->needs & NEED_EXITS))
		ret = exits_open(&s->exits, s->in, r->timeline, r->steps, stays);
	if (!ret && (r->needs & NEED_HYP))
		ret = hyptime_open(&s->hyp, s->in, r->timeline, r->steps, stays);
	if (!ret && (r->needs & NEED_MARKERS))
		ret = markers_open(&s->markers, s->in, r->timeline, r->desc);
	if (!ret && want)
		ret = states_open(&s->states, s->in, r->timeline, r->steps, want, state_totals_span,
				  &s->totals);
	return ret;
}

static int stat_read(struct stat_run *r)
{
	struct pass_part parts[PASS_PARTS_MAX];
	struct stat_answer *s = &r->s;
	size_t n = 0;
	int ret = stat_parts(r);

	if (ret)
		return ret;
	parts[n++] = counts_part(s->counts);
	if (s->exits)
		parts[n++] = exits_part(s->exits);
	if (s->hyp)
		parts[n++] = hyptime_part(s->hyp);
	if (s->markers)
		parts[n++] = markers_part(s->markers);
	if (s->states)
		parts[n++] = states_part(s->states);
	ret = pass_read(r->timeline, r->steps, parts, n);
	if (ret)
		return ret;
	counts_finish(s->counts);
	stays_finish(&s->stays);
	if (s->hyp)
		hyptime_finish(s->hyp);
	if (s->markers)
		markers_finish(s->markers);
	return s->states ? states_end(s->states) : 0;
}

/* ---- printing --------------------------------------------------------------------------- */

static void stat_tables(struct stat_run *r, struct answer *answer)
{
	const struct stat_opts *o = r->o;
	struct stat_answer *s = &r->s;

	s->out = answer;
	s->rows = o->rows ? o->rows : SIZE_MAX;
	s->per = (enum stat_per)o->per;
	s->asked = o->shown;
	for (size_t i = 0; i < ARRAY_SIZE(stat_words) && !s->ret; i++)
		if (stat_wanted(o, i))
			stat_words[i].print(s);
	if (!s->ret && o->by)
		stat_slices(s);
}

static int stat_print_all(struct stat_run *r)
{
	struct stat_answer *s = &r->s;
	struct buf out = { 0 };
	struct answer answer;

	answer_begin(&answer, r->o->form, &out);
	stat_tables(r, &answer);
	answer_end(&answer);
	if (!s->ret)
		s->ret = print_answer(&out, r->log);
	buf_release(&out);
	return s->ret;
}

/* ---- all of it --------------------------------------------------------------------------- */

static int stat_open_files(struct stat_run *r)
{
	struct log *log = (struct log *)r->log;
	struct hyptrace_open_opts opts = { sizeof(opts), .log = handle_log_to, .log_ctx = log };
	const struct strlist *files = &r->o->files;
	int ret = desc_read(r->o->desc, &r->desc, r->log);

	if (!ret)
		ret = hyptrace_open(&r->files, (const char *const *)files->v, files->n, &opts);
	if (!ret)
		ret = handle_load(r->files);
	if (ret)
		return ret;
	r->s.in = handle_inputs(r->files);
	for (size_t i = 0; i < r->s.in->n; i++)
		if (clock_in_ticks(r->s.in->v[i].time.clock) && !r->s.in->v[i].time.mult)
			log_warn(r->log, "%s: times are ticks of the clock %s, not ns", r->s.in->v[i].path,
				 r->s.in->v[i].time.clock);
	return timeline_open(&r->timeline, r->s.in, NULL, NULL, r->log);
}

static void stat_release(struct stat_run *r)
{
	state_totals_release(&r->s.totals);
	states_close(r->s.states);
	markers_close(r->s.markers);
	hyptime_close(r->s.hyp);
	exits_close(r->s.exits);
	counts_close(r->s.counts);
	stays_release(&r->s.stays);
	steps_close(r->steps);
	timeline_close(r->timeline);
	hyptrace_close(r->files);
	hypertrace_desc_free(r->desc);
}

static int stat_files(const struct stat_opts *o, struct console *console, const struct log *log)
{
	struct stat_run r = { .o = o, .log = log, .needs = stat_needs(o) };
	uint64_t damaged = 0;
	int ret = stat_open_files(&r);

	if (!ret)
		ret = stat_read(&r);
	if (!ret)
		ret = stat_print_all(&r);
	if (!ret && o->svg)
		ret = stat_slices_svg(&r.s, o->svg, log);
	damaged = r.timeline ? timeline_damaged(r.timeline) : 0;
	if (!ret && damaged)
		tell_damage(log, damaged);
	stat_release(&r);
	return damaged ? EXIT_FAILED : console_status(console, ret);
}

/* Of a file: trace-cmd's stat is about what is being traced now. */
bool stat_takes(int argc, char **argv)
{
	struct stat_opts o = { 0 };
	struct opts_error err;
	bool takes = !opts_parse(&stat_table, &argc, argv, &o, &err) && (argc > 1 || o.files.n);

	strlist_release(&o.files);
	return takes;
}

int stat_look(const struct stat_look *look, struct answer *out, const struct log *log)
{
	struct stat_opts o = { .rows = look->rows, .per = look->per };
	struct opts_error err;
	struct stat_run r = { .o = &o, .log = log, .s.by_count = look->by_count };
	int ret = stat_set_show(&o, &stat_rows[0], look->tables, &err) ?: strlist_add(&o.files, look->path);

	r.needs = stat_needs(&o);
	ret = ret ?: stat_open_files(&r) ?: stat_read(&r);
	if (!ret) {
		stat_tables(&r, out);
		ret = r.s.ret;
	}
	stat_release(&r);
	strlist_release(&o.files);
	return ret;
}

int cmd_stat(int argc, char **argv)
{
	struct stat_opts o = { .top = 5, .rows = 20 };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	int status;

	memory_or_end();
	if (stat_parse(&o, argc, argv, &status)) {
		console.quiet = o.quiet;
		status = stat_files(&o, &console, &log);
	}
	strlist_release(&o.files);
	return status;
}
