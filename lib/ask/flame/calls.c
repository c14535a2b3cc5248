// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls as they begin and end: function_graph's by task, the hypervisor's by CPU, or visits to it. A call's
 * own time is the whole less what it called, less what its task slept; one in which events were lost has
 * none.
 */
#include "ask/flame/flame-priv.h"

/* Calls that were open when events were lost may have ended. */
static void flame_calls_check(struct flame *f, struct flame_task *t)
{
	uint32_t epoch = f->v[t->input].epoch;

	if (t->epoch == epoch)
		return;
	f->counts.lost += t->n;
	t->n = 0;
	t->away = 0;
	t->epoch = epoch;
}

static struct flame_call *flame_calls_top(const struct flame_task *t)
{
	return t->n ? &t->calls[t->n - 1] : NULL;
}

static void flame_calls_drop_to(struct flame *f, struct flame_task *t, size_t n)
{
	f->counts.open += t->n - n;
	t->n = n;
}

static int flame_calls_push(struct flame *f, struct flame_task *t, const struct flame_call *call)
{
	if (t->n < FLAME_DEPTH_MAX)
		return array_push(&t->calls, &t->n, call, sizeof(*call));
	f->counts.open++; /* no kernel's: 50, and 32 at EL2 */
	return 0;
}

/* The innermost call is over, having taken ns, which its caller counts as not its own. */
static void flame_calls_end(struct flame *f, struct flame_task *t, uint64_t ns)
{
	struct flame_call *call = flame_calls_top(t), *by;

	flame_count(f, t, call->frame, FLAME_NS, ns > call->inside ? ns - call->inside : 0);
	flame_count(f, t, call->frame, FLAME_CALLS, 1);
	t->n--;
	by = flame_calls_top(t);
	if (by)
		by->inside += ns;
}

int flame_call_entry(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_task *t = flame_task_get(f, i->input, i->pid, i->cpu, i->ts);
	struct flame_call call = { .func = func->addr, .begin = i->ts, .depth = (uint32_t)i->number };
	const struct flame_call *by;
	uint32_t above, name;
	int ret;

	if (!t || t->skip)
		return t ? 0 : -ENOMEM;
	flame_calls_check(f, t);
	while (t->n && t->calls[t->n - 1].depth >= call.depth)
		flame_calls_drop_to(f, t, t->n - 1);
	by = flame_calls_top(t);
	above = by ? by->frame : t->frame;
	ret = flame_name_of(f, i->input, i->pid, func, &name);
	if (!ret && call.depth > (by ? by->depth + 1 : 0))
		ret = flame_tree_named(f->tree, above, FLAME_UNKNOWN, &above);
	return ret ?: flame_tree_child(f->tree, above, name, &call.frame) ?: flame_calls_push(f, t, &call);
}

int flame_call_exit(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_task *t = flame_task_get(f, i->input, i->pid, i->cpu, i->ts);
	struct flame_call *call;
	uint64_t ns = i->ns;

	if (!t || t->skip)
		return t ? 0 : -ENOMEM;
	flame_calls_check(f, t);
	while (t->n && t->calls[t->n - 1].depth > i->number)
		flame_calls_drop_to(f, t, t->n - 1);
	call = flame_calls_top(t);
	if (call && call->depth == i->number && call->func == func->addr) {
		if (ns == FLAME_NO_TIME)
			ns = i->ts > call->begin ? i->ts - call->begin : 0;
		flame_calls_end(f, t, ns);
		return 0;
	}
	f->counts.open++;
	if (call && call->depth == i->number)
		flame_calls_drop_to(f, t, t->n - 1);
	call = flame_calls_top(t);
	if (call && ns != FLAME_NO_TIME)
		call->inside += ns;
	return 0;
}

/* The frame below which a CPU's hypervisor works for a task: its innermost call's, or the task's; 0: it is
 * not wanted. -ENOMEM. */
static int flame_hyp_base(struct flame *f, struct flame_task *t, int32_t pid, uint64_t ts, uint32_t *frame)
{
	struct flame_task *host = flame_task_get(f, t->input, pid, t->cpu, ts);

	*frame = 0;
	if (!host)
		return -ENOMEM;
	flame_calls_check(f, host);
	if (host->skip)
		return 0;
	if (t->n) {
		*frame = flame_calls_top(t)->frame;
		return 0;
	}
	t->host = host;
	t->idle = host->idle;
	t->frame = host->n ? flame_calls_top(host)->frame : host->frame;
	return flame_tree_named(f->tree, t->frame, FLAME_HYP, frame);
}

/* The time in the hypervisor is not the host function's own. */
static void flame_hyp_inside(const struct flame_task *t, uint64_t ns)
{
	const struct flame_task *host = t->host;

	if (host && host->n && host->epoch == t->epoch && flame_calls_top(host)->frame == t->frame)
		flame_calls_top(host)->inside += ns;
}

static struct flame_task *flame_hyp_task(struct flame *f, uint32_t input, uint32_t cpu)
{
	struct flame_task *t = flame_task_hyp(f, input, cpu);

	if (t)
		flame_calls_check(f, t);
	return t;
}

int flame_hyp_func(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_call call = { .func = func->addr, .begin = i->ts };
	struct flame_task *t = flame_hyp_task(f, i->input, i->cpu);
	uint32_t above, name;
	int ret = t ? flame_hyp_base(f, t, i->pid, i->ts, &above) : -ENOMEM;

	if (ret || !above)
		return ret;
	ret = flame_name_of(f, i->input, i->pid, func, &name)
		      ?: flame_tree_child(f->tree, above, name, &call.frame);
	return ret ?: flame_calls_push(f, t, &call);
}

int flame_hyp_ret(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_task *t = flame_hyp_task(f, i->input, i->cpu);
	uint64_t begin, ns;
	size_t n;

	if (!t)
		return -ENOMEM;
	for (n = t->n; n && t->calls[n - 1].func != func->addr;)
		n--;
	if (!n) {
		f->counts.open += !f->opts.tasks.n; /* else it may be of one that is not wanted */
		return 0;
	}
	flame_calls_drop_to(f, t, n);
	begin = flame_calls_top(t)->begin;
	ns = i->ts > begin ? i->ts - begin : 0;
	flame_calls_end(f, t, ns);
	if (!t->n)
		flame_hyp_inside(t, ns);
	return 0;
}

static int flame_hyp_visit(struct flame *f, const struct flame_task *t, const struct span *v)
{
	const char *reason = steps_why(f->steps, f->v[t->input].in, t->input, v->why);
	uint32_t frame = t->within;
	int ret;

	if (v->end == SPAN_BEGUN || !frame)
		return 0;
	if (v->end != SPAN_PAIRED) {
		f->counts.open++;
		return 0;
	}
	ret = reason ? flame_tree_named(f->tree, frame, reason, &frame) : 0;
	if (ret)
		return ret;
	flame_count(f, t, frame, FLAME_NS, v->to - v->from);
	flame_count(f, t, frame, FLAME_CALLS, 1);
	f->counts.visits += t->skip || t->idle ? 0 : v->to - v->from;
	flame_hyp_inside(t, v->to - v->from);
	return 0;
}

/* Ends the knowledge of the task, or of visits, after lost events of the stream that showed it. */
static int flame_hyp_lost(struct flame *f, const struct step *s)
{
	struct flame_task *t = flame_task_hyp(f, s->input, s->cpu);

	if (t && t->runs_by == s->stream)
		t->switched = false;
	if (t && t->places && t->stream == s->stream)
		flame_visits_forget(t);
	return t ? 0 : -ENOMEM;
}

/* Visits: without functions, the time by reason is what there is. */
static int flame_hyp_reasons(struct flame *f, const struct step *s)
{
	struct flame_task *t = flame_hyp_task(f, s->input, s->cpu);
	bool functions = f->v[s->input].hyp_functions;
	struct span done;
	int32_t pid;
	int ret = 0;

	if (!t)
		return -ENOMEM;
	if (s->kind == STEP_LOST && s->stream != t->stream)
		return 0;
	if (step_visit(&t->visit, s, 0, &done))
		ret = flame_visit_keep(t, &done) ?: functions ? 0 : flame_hyp_visit(f, t, &done);
	if (s->kind == STEP_HYP_ENTER)
		t->stream = s->stream;
	if (ret || functions || s->kind != STEP_HYP_ENTER)
		return ret;
	/* who has the CPU; pid 0 of the hypervisor's records is idle only where sched_switch says so */
	pid = s->pid ? s->pid : t->switched && !f->v[s->input].switches_end ? t->runs : -1;
	return flame_hyp_base(f, t, pid, s->ts, &t->within);
}

/* Functions go on when the guest, or EL3, comes back. */
static int flame_hyp_away(struct flame *f, const struct step *s)
{
	struct flame_task *t = flame_hyp_task(f, s->input, s->cpu);
	struct flame_call *top = t ? flame_calls_top(t) : NULL;

	if (!t || !top)
		return t ? 0 : -ENOMEM;
	if (s->kind == STEP_HYP_EXIT) {
		t->away = s->ts;
	} else if (s->kind == STEP_HYP_ENTER && t->away) {
		top->inside += s->ts > t->away ? s->ts - t->away : 0;
		t->away = 0;
	}
	return 0;
}

static int flame_calls_switch(struct flame *f, const struct step *s)
{
	int32_t pid = s->a > 0 && s->a <= INT32_MAX ? (int32_t)s->a : -1;
	struct flame_task *left = s->pid > 0 ? flame_task_find(f, s->input, s->pid, s->cpu) : NULL, *came,
			  *hyp;
	uint64_t ns;

	if (left)
		flame_calls_check(f, left);
	if (left && left->n)
		left->away = s->ts;
	came = pid > 0 ? flame_task_find(f, s->input, pid, s->cpu) : NULL;
	if (came)
		flame_calls_check(f, came);
	ns = came && came->away && s->ts > came->away ? s->ts - came->away : 0;
	if (came)
		came->away = 0;
	if (came && came->n) {
		flame_calls_top(came)->inside += ns;
		f->counts.asleep += ns;
	}
	hyp = flame_task_hyp(f, s->input, s->cpu);
	if (!hyp)
		return -ENOMEM;
	hyp->switched = s->a <= INT32_MAX;
	hyp->runs = (int32_t)s->a;
	hyp->runs_by = s->stream;
	return 0;
}

int flame_call_step(struct flame *f, const struct step *s)
{
	struct flame_input *in = &f->v[s->input];
	bool over = true;

	if (in->skip)
		return 0;
	switch (s->kind) {
	case STEP_GAP:
		in->epoch++;
		return flame_hyp_lost(f, s);
	case STEP_END:
		/* a CPU has no more records; after the last one's, the buffer says no more who runs */
		f->streams[s->stream].over = true;
		for (uint32_t i = 0; i < f->n_streams; i++) {
			const struct merge_stream *of = merge_stream_at(f->t->merge, i);

			over &= of->input != s->input || of->buffer != s->buffer || f->streams[i].over;
		}
		in->switches_end |= over && s->buffer == in->switch_buffer;
		return 0;
	case STEP_LOST:
		in->epoch++;
		f->counts.missed += s->a == UINT64_MAX ? 1 : s->a;
		f->counts.missed_more |= s->a == UINT64_MAX;
		return flame_hyp_lost(f, s) ?: flame_hyp_reasons(f, s);
	case STEP_SWITCH:
		in->switches = true;
		in->switch_buffer = s->buffer;
		return flame_calls_switch(f, s);
	case STEP_HYP_ENTER:
	case STEP_HYP_EXIT:
	case STEP_HYP_OTHER:
		return flame_hyp_reasons(f, s) ?: in->hyp_functions ? flame_hyp_away(f, s) : 0;
	default:
		return 0;
	}
}
