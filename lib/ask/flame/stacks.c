// SPDX-License-Identifier: LGPL-2.1-or-later
/* The stacks of recordings: items in the order of time become frames of the tree. */
#include "ask/flame/flame-priv.h"

/* In names, from the outermost on: records have the innermost first. At most FLAME_DEPTH_MAX are kept. */
static int flame_stack_names(struct flame *f, const struct flame_item *i, const struct flame_address *a,
			     uint32_t *names, size_t *n)
{
	size_t deeper = i->n > FLAME_DEPTH_MAX ? i->n - FLAME_DEPTH_MAX : 0;
	int ret = 0;

	*n = 0;
	for (size_t k = i->n; k > deeper && !ret; k--)
		ret = flame_name_of(f, i->input, i->tgid, &a[k - 1], &names[(*n)++]);
	if (deeper && !ret)
		ret = flame_tree_name(f->tree, FLAME_DEEPER, SIZE_MAX, &names[(*n)++]);
	return ret;
}

static int flame_stack_below(struct flame *f, uint32_t *frame, const uint32_t *names, size_t n)
{
	int ret = 0;

	for (size_t k = 0; k < n && !ret; k++)
		ret = flame_tree_child(f->tree, *frame, names[k], frame);
	return ret;
}

/* Two stacks of one sample of the task, the second within the first; either may be empty. */
static int flame_stack_count(struct flame *f, const struct flame_item *i, int32_t pid, const uint32_t *outer,
			     size_t n_outer, const uint32_t *inner, size_t n_inner)
{
	const struct flame_task *t = flame_task_get(f, i->input, pid, i->cpu, i->ts);
	uint32_t frame;
	int ret = 0;

	if (!t)
		return -ENOMEM;
	frame = t->frame;
	if (!t->skip && !t->idle)
		ret = flame_stack_below(f, &frame, outer, n_outer)
			      ?: flame_stack_below(f, &frame, inner, n_inner);
	if (!ret && n_outer + n_inner)
		flame_count(f, t, frame, FLAME_SAMPLES, 1);
	return ret;
}

/*
 * True if the record before passes --event. Here, in the order of records: a filter may ask for
 * tasks' names, which are learned as the records come.
 */
static bool flame_matches(const struct flame *f, const struct flame_item *i)
{
	const struct merge_record *m = &f->run->v[i->before - 1];
	const struct merge_stream *s = merge_stream(f->t->merge, m);
	const struct flame_input *in = &f->v[s->input];
	struct filter_record r = { m->data, m->len, timeline_id(m), s->cpu };

	return !in->no_match && (!in->filter || (m->len && filter_match(in->filter, &r)));
}

static int flame_stream_flush(struct flame *f, struct flame_stream *s)
{
	bool counts = s->waits && s->waits_match;

	s->waits = false;
	return counts ? flame_stack_count(f, &s->item, s->item.pid, NULL, 0, s->names, s->n) : 0;
}

/* user_stack comes right behind kernel_stack, as the kernel writes them (__ftrace_trace_stack and what
 * follows).
 */
static int flame_of_stack(struct flame *f, const struct flame_item *i, const struct flame_address *a)
{
	struct flame_stream *s = &f->streams[i->stream];
	bool after_stack = i->before ? i->after_stack : s->stack;
	bool match = i->before ? flame_matches(f, i) : s->match;
	size_t n;
	int ret;

	f->counts.cut += i->cut;
	if (i->kind == FLAME_KERNEL_STACK) {
		ret = flame_stream_flush(f, s);
		if (ret)
			return ret;
		n = (i->n < FLAME_DEPTH_MAX ? i->n : FLAME_DEPTH_MAX) + 1;
		if (array_room(&s->names, &s->room, n, sizeof(*s->names)))
			return -ENOMEM;
		s->waits = true;
		s->waits_match = match;
		s->item = *i;
		return flame_stack_names(f, i, a, s->names, &s->n);
	}
	ret = flame_stack_names(f, i, a, f->names, &n);
	if (!ret && s->waits && after_stack && s->item.pid == i->pid) {
		s->waits = false;
		return s->waits_match ? flame_stack_count(f, i, i->pid, f->names, n, s->names, s->n) : 0;
	}
	ret = ret ?: flame_stream_flush(f, s);
	if (ret || !match)
		return ret;
	return flame_stack_count(f, i, i->pid, f->names, n, NULL, 0);
}

/* Makes the stack of a sample where its CPU was as it came due. */
static int flame_sample_place(struct flame *f, const struct flame_item *i, int32_t *pid, size_t *n)
{
	struct flame_task *hyp = flame_task_hyp(f, i->input, i->cpu);
	const char *name, *reason = NULL;
	const struct span *visit = NULL;
	enum flame_place place;
	int ret;

	if (!hyp || flame_places_open(hyp))
		return -ENOMEM;
	place = flame_place(f, i, hyp, &visit);
	if (*n && (place == PLACE_UNKNOWN || place == PLACE_HOST))
		return 0;
	*n = 0;
	if (place == PLACE_HYP || place == PLACE_GUEST)
		*pid = visit->vcpu ?: *pid; /* another task may have the CPU by now */
	if (place == PLACE_HYP)
		reason = steps_why(f->steps, f->v[i->input].in, i->input, visit->why);
	if (place == PLACE_UNKNOWN && i->number >= SAMPLE_GUEST_KERNEL)
		place = PLACE_GUEST;
	name = (const char *const[]){ FLAME_UNKNOWN, FLAME_HYP, FLAME_IN_GUEST, FLAME_IN_HOST,
				      FLAME_UNDECIDED }[place];
	ret = flame_tree_name(f->tree, name, SIZE_MAX, &f->names[(*n)++]);
	return ret || !reason ? ret : flame_tree_name(f->tree, reason, SIZE_MAX, &f->names[(*n)++]);
}

/* A stack in the event's own field. */
static int flame_of_field(struct flame *f, const struct flame_item *i, const struct flame_address *a)
{
	const struct merge_record *m = &f->run->v[i->at];
	bool sample = i->kind == FLAME_SAMPLE;
	int32_t pid = i->pid;
	char comm[16] = { 0 };
	const uint8_t *data;
	int ret = 0;
	size_t n;

	f->counts.cut += i->cut;
	if (!flame_matches(f, i))
		return 0;
	/* a sample has the name of its task at its time */
	if (sample && i->pid > 0 &&
	    field_load_bytes(&f->v[i->input].events[timeline_id(m)].comm, m->data, m->len, &data, &n) == 1)
		memcpy(comm, data, n < sizeof(comm) - 1 ? n : sizeof(comm) - 1);
	if (*comm)
		ret = flame_task_called(f, i->input, i->pid, i->cpu, i->ts, comm);
	ret = ret ?: flame_stack_names(f, i, a, f->names, &n);
	if (!ret && sample)
		ret = flame_sample_place(f, i, &pid, &n);
	return ret ?: flame_stack_count(f, i, pid, f->names, n, NULL, 0);
}

/* A function below the one that called it. */
static int flame_of_function(struct flame *f, const struct flame_item *i, const struct flame_address *a)
{
	const struct flame_task *t = flame_task_get(f, i->input, i->pid, i->cpu, i->ts);
	uint32_t names[2], frame;
	int ret;

	if (!t || t->skip)
		return t ? 0 : -ENOMEM;
	frame = t->frame;
	ret = flame_name_of(f, i->input, i->pid, &a[0], &names[0])
		      ?: flame_name_of(f, i->input, i->pid, &a[1], &names[1]);
	if (!ret && !t->idle)
		ret = flame_stack_below(f, &frame, names, 2);
	if (!ret)
		flame_count(f, t, frame, FLAME_ENTRIES, i->number);
	return ret;
}

static int flame_item_take(struct flame *f, const struct flame_item *i, const struct flame_address *a)
{
	struct flame_stream *s = &f->streams[i->stream];

	f->now = i->ts;
	switch (i->kind) {
	case FLAME_KERNEL_STACK:
	case FLAME_USER_STACK:
		return flame_of_stack(f, i, a);
	case FLAME_ARRAY:
	case FLAME_SAMPLE:
		return flame_of_field(f, i, a);
	case FLAME_ENTRY:
		return i->n ? flame_call_entry(f, i, a) : 0;
	case FLAME_EXIT:
		f->v[i->input].graph = true;
		return i->n ? flame_call_exit(f, i, a) : 0;
	case FLAME_FUNCTION:
		return i->n == 2 ? flame_of_function(f, i, a) : 0;
	case FLAME_HYP_FUNC:
	case FLAME_HYP_RET:
		if (!i->n)
			return 0;
		f->v[i->input].hyp_functions = true; /* reasons are no frames any longer */
		return i->kind == FLAME_HYP_FUNC ? flame_hyp_func(f, i, a) : flame_hyp_ret(f, i, a);
	case FLAME_TAIL:
		s->stack = i->after_stack;
		s->match = flame_matches(f, i);
	}
	return 0;
}

static int flame_after(void *ctx, struct pass_run *run)
{
	const struct flame_items *own = run->own;
	struct flame *f = ctx;
	size_t step = 0;
	int ret = 0;

	f->run = run->records;
	for (size_t i = 0; i < own->n && !ret; i++) {
		for (; step < run->n_steps && run->steps[step].at <= own->v[i].at && !ret; step++)
			ret = flame_call_step(f, &run->steps[step]);
		ret = ret ?: flame_item_take(f, &own->v[i], own->addresses + own->v[i].first);
	}
	for (; step < run->n_steps && !ret; step++)
		ret = flame_call_step(f, &run->steps[step]);
	return ret;
}

/* A file that has no such event has no stacks after one; an error only if no file has. */
static int flame_filters_open(struct flame *f)
{
	char why[1024] = "";
	size_t n = 0;

	for (size_t i = 0; f->opts.behind && i < f->n; i++) {
		struct flame_input *in = &f->v[i];
		int ret = filter_open(&in->filter, in->in->tep, f->opts.behind, why, sizeof(why));

		if (ret == -ENOMEM)
			return ret;
		in->no_match = ret;
		n += !ret;
	}
	if (!f->opts.behind || n)
		return 0;
	log_err(f->log, "'%s': %s", f->opts.behind, why);
	return -EINVAL;
}

static int flame_open_inputs(struct flame *f, const struct inputs *in)
{
	size_t side = 0;
	bool host = false;
	int ret = 0;

	f->v = calloc(in->n + 1, sizeof(*f->v));
	f->maps = calloc(in->n + 1, sizeof(*f->maps));
	if (!f->v || !f->maps)
		return -ENOMEM;
	while (f->n < in->n && !ret) {
		struct flame_input *to = &f->v[f->n];
		const struct input *of = &in->v[f->n];
		char *name;

		if (!of->guest && host)
			side = f->opts.two_sides;
		host = host || !of->guest;
		to->side = side;
		f->n++;
		to->in = of;
		/* hosts of two recordings are compared with each other, however their files are called */
		name = f->opts.two_sides && !of->guest
			       ? strdup("host")
			       : str_printf("%s%s", of->guest ? FLAME_GUEST : "", of->machine);
		if (!name)
			return -ENOMEM;
		to->skip = !flame_listed(&f->opts.machines, of->machine) &&
			   !flame_listed(&f->opts.machines, name); /* as it is printed */
		ret = flame_tree_named(f->tree, FLAME_ROOT, name, &to->frame);
		free(name);
		ret = ret ?: flame_symbols_read(&to->symbols, reader_info(of->reader)) ?: flame_events_open(to);
		if (ret)
			return ret;
		to->symbol_names = calloc(to->symbols.n + 1, sizeof(*to->symbol_names));
		if (!to->symbol_names)
			return -ENOMEM;
	}
	return ret ?: flame_maps_read(f->maps, in);
}

int flame_join(struct flame **out, struct reading *r, const struct flame_opts *opts, const struct log *log)
{
	struct flame *f = *out = calloc(1, sizeof(*f));
	int ret = 0;

	if (!f)
		return -ENOMEM;
	*f = (struct flame){ .t = r->timeline,
			     .steps = r->steps,
			     .log = log,
			     .opts = *opts,
			     .n_streams = merge_streams(r->timeline->merge) };
	f->streams = calloc(f->n_streams + 1, sizeof(*f->streams));
	f->names = calloc(FLAME_DEPTH_MAX + 1, sizeof(*f->names));
	if (!f->streams || !f->names)
		ret = -ENOMEM;
	ret = ret ?: flame_tree_new(&f->tree, opts->frames_max ? opts->frames_max : FLAME_FRAMES_MAX);
	ret = ret ?: flame_open_inputs(f, r->in) ?: flame_filters_open(f);
	if (!ret && opts->spans)
		ret = reading_markers(r);
	else if (!ret && opts->states)
		ret = reading_states(r, STATES_VCPUS, state_totals_span, &f->totals);
	if (ret)
		return ret;
	for (size_t i = 0; i < f->n_streams; i++)
		f->streams[i].match = !opts->behind; /* nothing comes before its first record */
	f->spans = opts->spans ? r->markers : NULL;
	f->states = opts->states ? r->states : NULL;
	f->totals = (struct state_totals){ .st = f->states, .with_causes = true };
	if (f->spans)
		markers_listen(r->markers, flame_span, f);
	else if (!f->states)
		reading_add(r,
			    (struct pass_part){ .ctx = f,
						.steps = STEP_SET(STEP_SWITCH) | STEP_SET(STEP_HYP_ENTER) |
							 STEP_SET(STEP_HYP_EXIT) | STEP_SET(STEP_HYP_OTHER),
						.work = flame_items_work,
						.after = flame_after,
						.release = flame_items_free });
	return 0;
}

void flame_close(struct flame *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		flame_symbols_release(&f->v[i].symbols);
		flame_maps_release(&f->maps[i]);
		filter_free(f->v[i].filter);
		free(f->v[i].symbol_names);
		free(f->v[i].events);
	}
	for (size_t i = 0; f->streams && i < f->n_streams; i++)
		free(f->streams[i].names);
	for (size_t i = 0; i < f->n_tasks; i++) {
		free(f->tasks[i]->calls);
		free(f->tasks[i]->places);
		free(f->tasks[i]);
	}
	free(f->tasks);
	map_release(&f->by_key);
	state_totals_release(&f->totals);
	flame_tree_free(f->tree);
	buf_release(&f->text);
	free(f->streams);
	free(f->names);
	free(f->maps);
	free(f->v);
	free(f);
}

/* *frame: of the vCPU, below its guest or, where nothing names that, its host; 0: it is not wanted. */
static int vcpu_frame(struct flame *f, const struct state_owner *o, uint32_t *frame)
{
	const struct flame_input *host = &f->v[o->input];
	uint32_t machine = host->skip ? 0 : host->frame;
	char name[32];
	int ret = 0;

	if (o->guest_name) {
		f->text.len = 0;
		buf_printf(&f->text, FLAME_GUEST "%s", o->guest_name);
		machine = 0;
		if (!buf_str(&f->text))
			ret = -ENOMEM;
		else if (flame_listed(&f->opts.machines, o->guest_name) ||
			 flame_listed(&f->opts.machines, buf_str(&f->text)))
			ret = flame_tree_named(f->tree, FLAME_ROOT, buf_str(&f->text), &machine);
	}
	snprintf(name, sizeof(name), o->vcpu == STATE_NO_CPU ? "thread %d" : "vCPU %u",
		 o->vcpu == STATE_NO_CPU ? (unsigned int)o->pid : o->vcpu);
	*frame = 0;
	return ret || !machine ? ret : flame_tree_named(f->tree, machine, name, frame);
}

int flame_end(struct flame *f)
{
	int ret = 0;

	/* the sums of states become frames: machine, vCPU, state, reason */
	for (size_t i = 0; i < f->totals.n && !ret; i++) {
		const struct state_total *t = &f->totals.v[i];
		uint32_t frame = 0;

		ret = t->owner ? vcpu_frame(f, t->owner, &frame) : 0;
		for (size_t k = 0; frame && k < t->n_causes && !ret; k++) {
			const struct state_cause *cause = &t->causes[k];
			const struct state_span like = { .owner = t->owner,
							 .why = cause->why,
							 .reason = cause->reason };
			const char *reason = states_reason(f->states, &like);
			size_t side = f->v[t->owner->input].side;
			uint32_t at;

			ret = flame_tree_named(f->tree, frame, state_name(cause->state), &at);
			if (!ret && reason)
				ret = flame_tree_named(f->tree, at, reason, &at);
			if (ret)
				break;
			flame_tree_add(f->tree, at, side, FLAME_NS, cause->sum.ns);
			flame_tree_add(f->tree, at, side, FLAME_CALLS, cause->sum.n);
		}
	}
	if (f->states)
		f->counts.others = states_left_out(f->states);
	if (f->spans) {
		f->counts.open = f->spans->cut.begins + f->spans->cut.ends;
		f->counts.others = f->spans->cut.others;
	}
	for (size_t i = 0; i < f->n_streams && !ret; i++)
		ret = flame_stream_flush(f, &f->streams[i]);
	for (size_t i = 0; i < f->n_tasks; i++) {
		const struct flame_task *t = f->tasks[i];

		if (t->epoch == f->v[t->input].epoch)
			f->counts.open += t->n + (t->visit.open && !f->v[t->input].hyp_functions);
		else
			f->counts.lost += t->n;
	}
	for (size_t i = 0; i < f->n; i++)
		f->counts.graph_without_switches |= f->v[i].graph && !f->v[i].switches;
	return ret;
}

const struct flame_tree *flame_stacks(const struct flame *f)
{
	return f->tree;
}

const struct flame_counts *flame_counts(const struct flame *f)
{
	return &f->counts;
}
