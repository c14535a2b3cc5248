// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace latency: how long it takes from one event to the next, over buffers and machines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "latency/svg.h"
#include "api/handle.h"
#include "cmd.h"
#include "latency-answer.h"
#include "util/outfile.h"

#define WORST_MAX 100

struct latency_opts {
	const char *from, *to, *key, *preset, *svg;
	uint64_t worst, rows;
	enum answer_form form;
	bool quiet;
	struct strlist files;
	/* what they make */
	const struct latency_preset *found;
	char *fields[2]; /* of --key FIELD=FIELD */
	struct latency_term terms[2];
	struct latency_plan plan;
};

/* ---- command line ------------------------------------------------------------------ */

#define LATENCY(field) .off = offsetof(struct latency_opts, field)

static const struct opt latency_options[] = {
	OPT('f', "from", "EVENT", "the event that begins: [SYSTEM:]EVENT[@MACHINE][/FILTER]", opts_set_text,
	    LATENCY(from)),
	OPT('t', "to", "EVENT", "the event that ends, likewise", opts_set_text, LATENCY(to)),
	OPT('k', "key", "KEY",
	    "what both must have in common: vcpu, pid, cpu, guest,\n"
	    "a FIELD, or FIELD=FIELD (of --from, of --to)",
	    opts_set_text, LATENCY(key)),
	OPT('p', "preset", "NAME",
	    "a chain of events, stage by stage, instead of --from and --to:\n"
	    "wakeup, irq, virtio, timer, hypercall or abort",
	    opts_set_text, LATENCY(preset)),
	OPT('w', "worst", "N", "the N longest, and what happened in between", opts_set_number, LATENCY(worst),
	    .max = WORST_MAX),
	OPT('r', "rows", "N", "at most so many rows of a table (20); 0: all", opts_set_number, LATENCY(rows),
	    .max = UINT64_MAX),
	OPT(0, "svg", "FILE", "the distribution as a picture", opts_set_text, LATENCY(svg)),
	OPT('j', "json", NULL, "for programs, as JSON", set_json, LATENCY(form)),
	OPT(0, "csv", NULL, "for programs, as CSV", set_csv, LATENCY(form)),
	OPT('i', "input", "FILE", "another way to name a file", opts_add_text, LATENCY(files)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, LATENCY(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table latency_table = {
	.command = "latency",
	.usage = "usage: hyptrace latency --from EVENT --to EVENT [--key KEY] [OPTION...] [FILE...]\n"
		 "       hyptrace latency --preset NAME [OPTION...] [FILE...]\n"
		 "\n"
		 "How long it takes from one event to the next, in recordings, trace.dat or the\n"
		 "FILEs: the last --from before each --to. Files of guests join their host's.\n"
		 "\n",
	.rows = latency_options,
	.n = ARRAY_SIZE(latency_options),
};

static int latency_wrong(const char *what, const char *why)
{
	fprintf(stderr, "hyptrace: %s%s%s\n", what ? what : "", what ? ": " : "", why);
	return -EINVAL;
}

static int latency_check(const struct latency_opts *o)
{
	if (!o->preset == !(o->from || o->to))
		return latency_wrong(NULL, "say --from and --to, or --preset");
	if (o->from ? !o->to : !!o->to)
		return latency_wrong(NULL, o->from ? "--from needs --to" : "--to needs --from");
	if (o->preset && o->key)
		return latency_wrong(NULL, "--key is for --from and --to; a preset has its own");
	return 0;
}

static int latency_check_event(const char *option, const char *text, struct event_words *words)
{
	char why[256];
	int ret = event_words_parse(words, text, why, sizeof(why));

	return ret == -EINVAL ? latency_wrong(option, why) : ret;
}

/* ---- what is asked for ---------------------------------------------------------------- */

static int latency_plan_key(struct latency_opts *o)
{
	static const struct {
		const char *name;
		enum latency_by by;
	} words[] = { { "vcpu", BY_VCPU }, { "pid", BY_PID }, { "cpu", BY_CPU }, { "guest", BY_GUEST } };
	struct latency_by_how from = { .by = o->key ? BY_FIELD : BY_MACHINE }, to = from;
	const char *equals = o->key ? strchr(o->key, '=') : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(words) && o->key; i++)
		if (!strcmp(o->key, words[i].name))
			from.by = to.by = words[i].by;
	if (from.by == BY_FIELD) {
		o->fields[0] = equals ? strndup(o->key, (size_t)(equals - o->key)) : strdup(o->key);
		o->fields[1] = strdup(equals ? equals + 1 : o->key);
		if (!o->fields[0] || !o->fields[1])
			return -ENOMEM;
		if (!*o->fields[0] || !*o->fields[1])
			return latency_wrong("--key", "a field is missing beside the '='");
		from.field = o->fields[0];
		to.field = o->fields[1];
	}
	o->terms[0] = (struct latency_term){ .event = o->from, .point = 0, .next = from };
	o->terms[1] = (struct latency_term){ .event = o->to, .point = 1, .look = to };
	return 0;
}

/* Machines meet below the keys that mean the same on all, and where --from and --to name two. */
static bool latency_apart(const struct latency_opts *o, const struct event_words words[2])
{
	enum latency_by by = o->terms[0].next.by;

	if (by == BY_VCPU || by == BY_GUEST)
		return false;
	return !words[0].machine || !words[1].machine || !strcmp(words[0].machine, words[1].machine);
}

static int latency_plan_pair(struct latency_opts *o)
{
	struct event_words words[2] = { { 0 } };
	int ret = latency_check_event("--from", o->from, &words[0]);

	if (!ret)
		ret = latency_check_event("--to", o->to, &words[1]);
	if (!ret)
		ret = latency_plan_key(o);
	if (!ret)
		o->plan = (struct latency_plan){ .terms = o->terms,
						 .n_terms = 2,
						 .n_points = 2,
						 .strays = true,
						 .apart = latency_apart(o, words) };
	event_words_release(&words[0]);
	event_words_release(&words[1]);
	return ret;
}

static int latency_plan_preset(struct latency_opts *o)
{
	const struct latency_preset *p;
	struct buf names = { 0 };

	o->found = latency_preset(o->preset);
	if (o->found)
		return 0;
	for (size_t i = 0; (p = latency_preset_at(i)); i++)
		buf_printf(&names, "%s%s", i ? ", " : "there is no such preset; there are ", p->name);
	if (buf_str(&names))
		latency_wrong("--preset", buf_str(&names));
	buf_release(&names);
	return -EINVAL;
}

/* False: there is nothing to do but exit with *status. */
static bool latency_parse(struct latency_opts *o, int argc, char **argv, int *status)
{
	int ret;

	if (!command_files(&latency_table, argc, argv, o, &o->files, status))
		return false;
	ret = latency_check(o);
	if (!ret)
		ret = o->preset ? latency_plan_preset(o) : latency_plan_pair(o);
	return !ret;
}

/* ---- what is missing ---------------------------------------------------------------------- */

static void latency_missing_term(const struct latency_answer *l, const struct latency_term *t,
				 const struct log *log)
{
	size_t len = strcspn(t->event, "/");

	if (l->preset)
		log_err(log, "the files have no %.*s: record %s gives it", (int)len, t->event, t->record);
	else
		log_err(log, "the files have no event %.*s", (int)len, t->event);
}

/* Of each point one event at least must have come (of --from and --to: be known). */
static int latency_missing(const struct latency_answer *l, const struct log *log)
{
	bool missing = false;

	for (size_t p = 0; p < l->plan->n_points; p++) {
		const struct latency_term *none = NULL;
		bool any = false;

		for (size_t i = 0; i < l->plan->n_terms; i++) {
			const struct latency_term *t = &l->plan->terms[i];
			const struct latency_count *count = latency_count(l->found, i);

			if (t->point != p || t->cancels)
				continue;
			any |= l->preset ? count->seen > 0 : count->known;
			none = none ? none : t;
		}
		if (!any && none) {
			latency_missing_term(l, none, log);
			missing = true;
		}
	}
	if (missing && l->preset)
		log_err(log, "so the chain of '%s' cannot be told", l->preset->name);
	return missing ? -ENODATA : 0;
}

/* ---- the answer --------------------------------------------------------------------------------- */

static int latency_svg_write(const struct latency_answer *l, const struct latency_opts *o,
			     const struct log *log)
{
	struct outfile out;
	struct buf text = { 0 };
	char title[512];
	int ret = output_open(&out, o->svg, l->in, log);

	if (ret)
		return ret;
	if (l->preset)
		snprintf(title, sizeof(title), "%s: %s", l->preset->name, l->preset->summary);
	else
		snprintf(title, sizeof(title), "from %s to %s", o->from, o->to);
	latency_svg(&l->all, title, &text);
	ret = buf_status(&text) ?: write_all(out.fd, text.data, text.len);
	buf_release(&text);
	return outfile_close(&out, ret);
}

static int latency_print(const struct latency_answer *l, const struct latency_opts *o, const struct log *log)
{
	struct buf text = { 0 };
	struct answer a;
	int ret;

	answer_begin(&a, o->form, &text);
	ret = latency_answer_tables(l, &a);
	answer_end(&a);
	ret = ret ?: print_answer(&text, log);
	buf_release(&text);
	return ret;
}

static int latency_tell(struct latency_answer *l, const struct latency_opts *o, const struct log *log)
{
	const struct latency_worst *worst;
	const struct latency_row *rows;
	size_t n, n_worst;
	int ret = latency_missing(l, log);

	if (ret)
		return ret;
	rows = latency_rows(l->found, &n);
	for (size_t i = 0; i < n && !ret; i++)
		ret = histogram_join(&l->all, &rows[i].stages[l->plan->n_points - 1]);
	worst = latency_worst(l->found, &n_worst);
	if (!ret && n_worst)
		ret = between_read(&l->between, l->in, worst, n_worst, l->plan->n_points);
	if (!ret)
		ret = latency_print(l, o, log);
	if (!ret && o->svg)
		ret = latency_svg_write(l, o, log);
	between_free(l->between, n_worst);
	histogram_release(&l->all);
	return ret;
}

static void latency_check_clocks(const struct inputs *in, const struct log *log)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct input *f = &in->v[i];

		if (clock_in_ticks(f->time.clock) && !f->time.mult)
			log_warn(log, "%s: durations are ticks of the clock %s, not ns", f->path,
				 f->time.clock);
	}
}

static int latency_opened(struct latency_opts *o, struct hyptrace *files, const struct log *log)
{
	struct latency_answer l = { .preset = o->found,
				    .from = o->from,
				    .to = o->to,
				    .key = o->key,
				    .rows = o->rows ? (size_t)o->rows : SIZE_MAX };
	uint64_t damaged = 0;
	int ret = handle_load(files);

	if (ret)
		return ret;
	l.in = handle_inputs(files);
	latency_check_clocks(l.in, log);
	if (o->found)
		latency_preset_plan(o->found, l.in, &o->plan);
	o->plan.worst = (size_t)o->worst;
	l.plan = &o->plan;
	ret = latency_open(&l.found, l.in, l.plan, log);
	if (!ret)
		ret = latency_read(l.found, log, &damaged);
	if (!ret)
		ret = latency_tell(&l, o, log);
	latency_close(l.found);
	if (damaged)
		tell_damage(log, damaged);
	return ret ? ret : damaged ? -EBADMSG : 0;
}

static int latency_files(struct latency_opts *o, struct console *console, struct log *log)
{
	struct hyptrace_open_opts open_opts = { sizeof(open_opts), .log = handle_log_to, .log_ctx = log };
	struct hyptrace *files = NULL;
	int ret = hyptrace_open(&files, (const char *const *)o->files.v, o->files.n, &open_opts);

	if (!ret)
		ret = latency_opened(o, files, log);
	hyptrace_close(files);
	return console_status(console, ret);
}

int cmd_latency(int argc, char **argv)
{
	struct latency_opts o = { .rows = 20 };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	int status;

	memory_or_end();
	if (latency_parse(&o, argc, argv, &status)) {
		console.quiet = o.quiet;
		status = latency_files(&o, &console, &log);
	}
	free(o.fields[0]);
	free(o.fields[1]);
	strlist_release(&o.files);
	return status;
}
