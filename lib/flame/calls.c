// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls as they begin and end: function_graph's by task, the hypervisor's by CPU. A call's own time is
 * the whole less what it called, less what its task slept; one in which events were lost has none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flame/flame-priv.h"

/* In the hypervisor's stack: from hyp_enter on, no function. */
#define ENTERED UINT64_MAX

/* ---- stacks ------------------------------------------------------------------------------- */

/* What was open when events were lost is not known to be so. */
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
	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 16;
		struct flame_call *v = realloc(t->calls, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		t->calls = v;
		t->room = room;
	}
	if (t->n == FLAME_DEPTH_MAX) /* no kernel's: 50, and 32 at EL2 */
		f->counts.open++;
	else
		t->calls[t->n++] = *call;
	return 0;
}

/* The innermost call is over, having taken ns; what it was called by is told. */
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

/* ---- function_graph ----------------------------------------------------------------------- */

int flame_call_entry(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_task *t = flame_task_get(f, i->input, i->pid, i->cpu);
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
	if (!ret)
		ret = flame_tree_child(f->tree, above, name, &call.frame);
	return ret ?: flame_calls_push(f, t, &call);
}

int flame_call_exit(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_task *t = flame_task_get(f, i->input, i->pid, i->cpu);
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

/* ---- the hypervisor -------------------------------------------------------------------------- */

/* Below which frame a CPU's hypervisor works for a task: its innermost call, or itself. -ENOMEM. */
static int flame_hyp_base(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu, struct flame_task **out,
			  uint32_t *frame)
{
	struct flame_task *host = flame_task_get(f, input, pid, cpu), *t;
	struct flame_task as;
	uint32_t base;
	int ret;

	*out = NULL;
	if (!host)
		return -ENOMEM;
	flame_calls_check(f, host);
	as = *host;
	base = host->n ? flame_calls_top(host)->frame : host->frame;
	if (as.skip)
		return 0;
	t = flame_task_hyp(f, input, cpu);
	if (!t)
		return -ENOMEM;
	flame_calls_check(f, t);
	if (!t->n) {
		t->host = pid;
		t->idle = as.idle;
		t->frame = base;
	}
	*out = t;
	ret = t->n ? 0 : flame_tree_named(f->tree, base, FLAME_HYP, &base);
	*frame = t->n ? flame_calls_top(t)->frame : base;
	return ret;
}

/* The outermost call of the hypervisor is over: that time is not the host function's own. */
static void flame_hyp_end(struct flame *f, struct flame_task *t, uint64_t now)
{
	uint64_t begin = flame_calls_top(t)->begin, ns = now > begin ? now - begin : 0;
	struct flame_task *host;

	flame_calls_end(f, t, ns);
	host = t->n ? NULL : flame_task_find(f, t->input, t->host, t->cpu);
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

static int flame_hyp_func(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_call call = { .func = func->addr, .begin = i->ts };
	struct flame_task *t;
	uint32_t above, name;
	int ret = flame_hyp_base(f, i->input, i->pid, i->cpu, &t, &above);

	if (ret || !t)
		return ret;
	ret = flame_name_of(f, i->input, i->pid, func, &name)
		      ?: flame_tree_child(f->tree, above, name, &call.frame);
	return ret ?: flame_calls_push(f, t, &call);
}

static int flame_hyp_ret(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_task *t = flame_hyp_task(f, i->input, i->cpu);
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
	flame_hyp_end(f, t, i->ts);
	return 0;
}

int flame_call_hyp(struct flame *f, const struct flame_item *i, const struct flame_address *func)
{
	struct flame_input *in = &f->v[i->input];
	struct flame_task *t;

	if (!in->hyp_functions) { /* the first one: reasons are no frames any longer */
		t = flame_hyp_task(f, i->input, i->cpu);
		if (!t)
			return -ENOMEM;
		flame_calls_drop_to(f, t, 0);
		in->hyp_functions = true;
	}
	return i->kind == FLAME_HYP_FUNC ? flame_hyp_func(f, i, func) : flame_hyp_ret(f, i, func);
}

/* Without functions, the time by reason is what there is. */
static int flame_hyp_enter(struct flame *f, const struct step *s)
{
	struct flame_call call = { .func = ENTERED, .begin = s->ts };
	const char *reason =
		s->a == STEP_UNKNOWN ? NULL : steps_reason(f->steps, s->input, STEP_HYP_ENTER, s->a);
	struct flame_task *t = flame_hyp_task(f, s->input, s->cpu);
	int ret;

	if (!t)
		return -ENOMEM;
	flame_calls_drop_to(f, t, 0);
	ret = flame_hyp_base(f, s->input, s->pid, s->cpu, &t, &call.frame);
	if (ret || !t)
		return ret;
	if (reason)
		ret = flame_tree_named(f->tree, call.frame, reason, &call.frame);
	return ret ?: flame_calls_push(f, t, &call);
}

static int flame_hyp_step(struct flame *f, const struct step *s)
{
	bool enters = s->kind == STEP_HYP_ENTER;
	struct flame_call *top;
	struct flame_task *t;

	if (!f->v[s->input].hyp_functions && enters)
		return flame_hyp_enter(f, s);
	t = flame_hyp_task(f, s->input, s->cpu);
	top = t ? flame_calls_top(t) : NULL;
	if (!t || !top)
		return t ? 0 : -ENOMEM;
	if (top->func == ENTERED) {
		flame_hyp_end(f, t, s->ts);
	} else if (!enters) { /* functions go on when the guest, or EL3, comes back */
		t->away = s->ts;
	} else if (t->away) {
		top->inside += s->ts > t->away ? s->ts - t->away : 0;
		t->away = 0;
	}
	return 0;
}

/* ---- who runs -------------------------------------------------------------------------------- */

static void flame_calls_leave(struct flame *f, const struct step *s)
{
	struct flame_task *t = s->pid > 0 ? flame_task_find(f, s->input, s->pid, s->cpu) : NULL;

	if (t)
		flame_calls_check(f, t);
	if (t && t->n)
		t->away = s->ts;
}

static void flame_calls_come(struct flame *f, const struct step *s)
{
	int32_t pid = s->a > 0 && s->a <= INT32_MAX ? (int32_t)s->a : -1;
	struct flame_task *t = pid > 0 ? flame_task_find(f, s->input, pid, s->cpu) : NULL;
	uint64_t ns;

	if (t)
		flame_calls_check(f, t);
	if (!t || !t->away)
		return;
	ns = s->ts > t->away ? s->ts - t->away : 0;
	t->away = 0;
	if (!t->n)
		return;
	flame_calls_top(t)->inside += ns;
	f->counts.asleep += ns;
}

int flame_call_step(struct flame *f, const struct step *s)
{
	struct flame_input *in = &f->v[s->input];

	if (in->skip)
		return 0;
	switch (s->kind) {
	case STEP_GAP:
		in->epoch++;
		return 0;
	case STEP_LOST:
		in->epoch++;
		f->counts.missed += s->a == UINT64_MAX ? 1 : s->a;
		f->counts.missed_more |= s->a == UINT64_MAX;
		return 0;
	case STEP_SWITCH:
		in->switches = true;
		flame_calls_leave(f, s);
		flame_calls_come(f, s);
		return 0;
	case STEP_HYP_ENTER:
	case STEP_HYP_EXIT:
		return flame_hyp_step(f, s);
	default:
		return 0;
	}
}
