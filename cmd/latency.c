// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace latency: how long it takes from one event to the next, over buffers and machines. */
#include "cmd.h"

#define WORST_MAX 100

struct latency_opts {
	struct files_opts f;
	struct latency_question q;
	const char *svg;
	uint64_t worst, rows;
};

#define LATENCY(field) .off = offsetof(struct latency_opts, field)

static const struct opt latency_options[] = {
	OPT('f', "from", "EVENT", "the event that begins: [SYSTEM:]EVENT[@MACHINE][/FILTER]", opts_set_text,
	    LATENCY(q.from)),
	OPT('t', "to", "EVENT", "the event that ends, likewise", opts_set_text, LATENCY(q.to)),
	OPT('k', "key", "KEY",
	    "what both must have in common: vcpu, pid, cpu, guest,\n"
	    "a FIELD, FIELD=FIELD (of --from, of --to), or none;\n"
	    "by default what these events have by their meaning",
	    opts_set_text, LATENCY(q.key)),
	OPT('p', "preset", "NAME", "a chain of events, stage by stage, instead of --from and --to",
	    opts_set_text, LATENCY(q.preset), .words = "wakeup irq virtio timer kick hypercall abort"),
	OPT('w', "worst", "N", "the N longest, and what happened in between", opts_set_number, LATENCY(worst),
	    .max = WORST_MAX),
	OPT('r', "rows", "N", "at most so many rows of a table (20); 0: all", opts_set_number, LATENCY(rows),
	    .max = UINT64_MAX),
	OPT(0, "svg", "FILE", "the distribution as a picture", opts_set_text, LATENCY(svg)),
	OPT_ANSWER(FILES),
};

const struct opts_table latency_table = {
	.command = "latency",
	.usage = "usage: hyptrace latency --from EVENT --to EVENT [--key KEY] [OPTION...] [FILE...]\n"
		 "       hyptrace latency --preset NAME [OPTION...] [FILE...]\n"
		 "\n"
		 "How long it takes from one event to the next, in recordings, trace.dat or the\n"
		 "FILEs: the last --from before each --to. Files of guests join their host's.\n"
		 "\n",
	OPT_ROWS(latency_options),
};

static int latency_wrong(const char *what, const char *why)
{
	fprintf(stderr, "hyptrace: %s%s%s\n", what ? what : "", what ? ": " : "", why);
	return -EINVAL;
}

static int latency_check_event(const char *option, const char *text, struct event_words *words)
{
	char why[256];
	int ret = event_words_parse(words, text, why, sizeof(why));

	return ret == -EINVAL ? latency_wrong(option, why) : ret;
}

static int latency_plan_key(struct latency_question *o)
{
	static const struct {
		const char *name;
		enum latency_by by;
	} words[] = { { "vcpu", BY_VCPU }, { "pid", BY_PID }, { "cpu", BY_CPU }, { "guest", BY_GUEST } };
	struct latency_key_of from, to;
	const char *equals = o->key ? strchr(o->key, '=') : NULL;

	o->by_default = !o->key;
	if (o->key && (!strcmp(o->key, "none") || !strcmp(o->key, "machine"))) /* as tables call it */
		o->key = NULL;
	from = to = (struct latency_key_of){ .by = o->key ? BY_FIELD : BY_MACHINE };
	for (size_t i = 0; i < ARRAY_SIZE(words) && o->key; i++)
		if (!strcmp(o->key, words[i].name))
			from.by = to.by = words[i].by;
	if (from.by == BY_FIELD) {
		o->fields[0] = equals ? strndup(o->key, (size_t)(equals - o->key)) : strdup(o->key);
		o->fields[1] = strdup(equals ? equals + 1 : o->key);
		if (!o->fields[0] || !o->fields[1])
			return -ENOMEM;
		if (!*o->fields[0] || !*o->fields[1])
			return latency_wrong("--key", "a field is missing next to the '='");
		from.field = o->fields[0];
		to.field = o->fields[1];
	}
	o->terms[0] = (struct latency_term){ .event = o->from, .point = 0, .next = from };
	o->terms[1] = (struct latency_term){ .event = o->to, .point = 1, .look = to };
	return 0;
}

static int latency_plan_pair(struct latency_question *o)
{
	const char *from, *to;
	enum latency_by by;
	int ret = latency_check_event("--from", o->from, &o->words[0])
			  ?: latency_check_event("--to", o->to, &o->words[1]) ?: latency_plan_key(o);

	/* machines meet below the keys that mean the same on all, and where --from and --to name two */
	by = o->terms[0].next.by;
	from = o->words[0].machine;
	to = o->words[1].machine;
	if (!ret)
		o->plan = (struct latency_plan){ .terms = o->terms,
						 .n_terms = 2,
						 .n_points = 2,
						 .strays = true,
						 .apart = by != BY_VCPU && by != BY_GUEST &&
							  (!from || !to || !strcmp(from, to)) };
	return ret;
}

int latency_question_check(struct latency_question *o)
{
	const struct latency_preset *p;
	struct buf names = { 0 };

	if (!o->preset == !(o->from || o->to))
		return latency_wrong(NULL, "say --from and --to, or --preset");
	if (o->from ? !o->to : !!o->to)
		return latency_wrong(NULL, o->from ? "--from needs --to" : "--to needs --from");
	if (o->preset && o->key)
		return latency_wrong(NULL, "--key is for --from and --to; a preset has its own");
	if (!o->preset)
		return latency_plan_pair(o);
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

void latency_question_open(struct latency_question *o, const struct inputs *in)
{
	struct latency_key_of begin, end;

	if (o->found)
		latency_preset_plan(o->found, in, &o->plan);
	if (o->found || !o->by_default)
		return;
	o->key = latency_default_key(in, &o->words[0], &o->words[1], &begin, &end);
	if (!o->key)
		return;
	o->terms[0].next = begin;
	o->terms[1].look = end;
	o->plan.apart &= strcmp(o->key, "vcpu") != 0;
}

void latency_question_release(struct latency_question *o)
{
	for (size_t i = 0; i < 2; i++) {
		free(o->fields[i]);
		event_words_release(&o->words[i]);
	}
}

/* True if the files' KVM is x86's, and the event one that only arm64's has. */
static bool latency_other_arch(const struct inputs *in, const char *event)
{
	static const char *const arm64[] = { "vgic_", "kvm_timer_", "kvm_guest_fault" };
	bool x86 = false, arm = false;

	for (size_t i = 0; i < in->n && !x86; i++) {
		struct tep_event *exit =
			in->v[i].tep ? tep_find_event_by_name(in->v[i].tep, "kvm", "kvm_exit") : NULL;

		x86 = exit && tep_find_field(exit, "exit_reason");
	}
	for (size_t i = 0; i < ARRAY_SIZE(arm64); i++)
		arm |= !strncmp(event, arm64[i], strlen(arm64[i]));
	return x86 && arm;
}

bool latency_answer_missing(const struct latency_answer *l, const struct log *log)
{
	bool missing = false;

	for (size_t p = 0; p < l->q->plan.n_points; p++) {
		const struct latency_term *none = NULL;
		bool any = false;

		for (size_t i = 0; i < l->q->plan.n_terms; i++) {
			const struct latency_term *t = &l->q->plan.terms[i];
			const struct latency_count *count = &l->found.counts[i];

			if (t->point != p || t->cancels)
				continue;
			any |= l->q->found ? count->seen > 0 : count->known;
			if (!none || latency_other_arch(l->in, none->event))
				none = t;
		}
		if (any || !none)
			continue;
		missing = true;
		if (l->q->found)
			log_err(log, "the files have no %.*s: record %s gives it",
				(int)strcspn(none->event, "/"), none->event, none->record);
		else
			log_err(log, "the files have no event %.*s", (int)strcspn(none->event, "/"),
				none->event);
	}
	if (missing && l->q->found)
		log_err(log, "so preset '%s' has no complete chain", l->q->found->name);
	return missing;
}

static int latency_tell(struct latency_answer *l, const struct latency_opts *o, const struct log *log)
{
	struct buf text = { 0 };
	struct answer a;
	size_t n_worst = l->found.n_worst;
	int ret = 0;

	if (latency_answer_missing(l, log))
		return -ENODATA;
	for (size_t i = 0; i < l->found.n_rows && !ret; i++)
		ret = histogram_join(&l->all, &l->found.rows[i].stages[l->q->plan.n_points - 1]);
	if (!ret && n_worst)
		ret = between_read(&l->between, l->in, l->found.worst, n_worst, l->q->plan.n_points);
	if (!ret) {
		answer_begin(&a, o->f.form, &text);
		a.ticks = inputs_in_ticks(l->in);
		ret = latency_answer_tables(l, &a);
		answer_end(&a);
		ret = ret ?: print_answer(&text, log);
		buf_release(&text);
	}
	if (!ret && o->svg) {
		struct buf picture = { 0 };
		char question[512], *title;

		if (l->q->found)
			snprintf(question, sizeof(question), "how long is %s: %s?", l->q->found->name,
				 l->q->found->summary);
		else
			snprintf(question, sizeof(question), "how long from %s to %s?", l->q->from, l->q->to);
		title = picture_title(l->in, question);
		if (title)
			latency_svg(&l->all, title, &picture);
		ret = title ? output_write(o->svg, &picture, l->in, log) : -ENOMEM;
		free(title);
		buf_release(&picture);
	}
	between_free(l->between, n_worst);
	histogram_release(&l->all);
	return ret;
}

static bool latency_check(void *opts)
{
	return !latency_question_check(&((struct latency_opts *)opts)->q);
}

static int latency_files(void *opts, const struct log *log)
{
	struct latency_opts *o = opts;
	struct latency *found = NULL;
	struct latency_answer l = { .q = &o->q, .rows = o->rows ? (size_t)o->rows : SIZE_MAX };
	uint64_t damaged = 0;
	int ret = command_files(&o->f, o->worst ? 0 : COMMAND_NO_TEXTS, &l.in, log);

	if (!ret) {
		latency_question_open(&o->q, l.in);
		o->q.plan.worst = (size_t)o->worst;
		ret = latency_open(&found, l.in, &o->q.plan, log) ?: latency_read(found, log, &damaged);
	}
	if (!ret) {
		l.found = latency_result(found);
		ret = latency_tell(&l, o, log);
		merge_damage_join(&damaged, l.in->damaged); /* of --worst's texts */
	}
	latency_close(found);
	return log_damage(log, damaged) ?: ret;
}

int cmd_latency(int argc, char **argv)
{
	struct latency_opts o = { .rows = 20 };
	int status = command_read(&latency_table, argc, argv, &o, latency_check, latency_files);

	latency_question_release(&o.q);
	return status;
}
