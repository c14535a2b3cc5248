// SPDX-License-Identifier: LGPL-2.1-or-later
/* The steps before a moment, searched for those of a task or a CPU. */
#include "ask/path/path.h"

/* since: from when on all rows are kept if none is left. */
static void path_window_drop(struct path_window *w, size_t n, uint64_t since)
{
	if (!n)
		return;
	memmove(w->v, w->v + n, (w->n - n) * sizeof(*w->v));
	w->n -= n;
	w->cut = true;
	w->from = w->n ? w->v[0].ts : since;
}

void path_window_keep(struct path_window *w, uint64_t since)
{
	path_window_drop(w, array_lower_bound(w->v, w->n, sizeof(*w->v), u64_below, &since), since);
}

struct path_window path_window_since(const struct path_window *w, uint64_t since)
{
	size_t n = array_lower_bound(w->v, w->n, sizeof(*w->v), u64_below, &since);
	struct path_window part = *w;

	part.v += n;
	part.n -= n;
	part.cut |= n > 0;
	part.from = n && part.n ? part.v[0].ts : n ? since : w->from;
	return part;
}

int path_window_add(struct path_window *w, const struct path_row *row)
{
	static const struct path_machine empty;
	size_t max = w->max ? w->max : PATH_ROWS_MAX, room = w->room ? 2 * w->room : 1024;
	bool crowded = w->n == w->room;
	struct path_row *v;

	/* drops rows that are too old; if it is still nearly full and may not grow, the older half, too */
	if (crowded)
		path_window_keep(w, w->asked > w->within ? w->asked - w->within : 0);
	crowded = crowded && w->n >= w->room - w->room / 4;
	if (crowded && w->room >= max) {
		path_window_drop(w, w->n / 2, 0);
		w->full = true;
	} else if (crowded) {
		room = room < max ? room : max;
		v = realloc(w->v, room * sizeof(*v));
		if (!v)
			return -ENOMEM;
		w->v = v;
		w->room = room;
	}
	while (w->n_machines <= row->input)
		if (array_push(&w->machines, &w->n_machines, &empty, sizeof(empty)))
			return -ENOMEM;
	w->machines[row->input].kinds |= 1ull << row->kind;
	if (!w->n)
		w->from = row->ts;
	w->v[w->n++] = *row;
	return 0;
}

void path_window_release(struct path_window *w)
{
	free(w->machines);
	free(w->v);
	*w = (struct path_window){ 0 };
}

static bool path_row_not_after(const void *entry, const void *nr)
{
	return ((const struct path_row *)entry)->nr <= *(const uint64_t *)nr;
}

size_t path_window_after(const struct path_window *w, uint64_t nr)
{
	return array_lower_bound(w->v, w->n, sizeof(*w->v), path_row_not_after, &nr);
}

size_t path_window_at(const struct path_window *w, uint64_t ts)
{
	size_t i = w->n;

	/* from the end: times of one CPU may go back */
	while (i && w->v[i - 1].ts > ts)
		i--;
	return i;
}

/* The hypervisor's buffer, or one without steps, says nothing of what this is asked for. */
static bool path_buffer_matters(const struct path_window *w, uint16_t input, uint16_t buffer)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct path_row *r = &w->v[i];

		if (r->input == input && r->buffer == buffer && r->kind != STEP_LOST)
			return r->kind != STEP_HYP_ENTER && r->kind != STEP_HYP_EXIT &&
			       r->kind != STEP_HYP_OTHER;
	}
	return false;
}

const struct path_row *path_window_lost(const struct path_window *w, uint16_t input, uint32_t cpu,
					uint64_t from, uint64_t to)
{
	const struct path_machine *m = input < w->n_machines ? &w->machines[input] : NULL;
	const struct path_row *found = m && from < m->before.ts ? &m->before : NULL;

	if (m && m->after.ts && to > m->after.b)
		return &m->after;
	for (size_t i = 0; i < w->n; i++) {
		const struct path_row *r = &w->v[i];

		if (r->kind == STEP_LOST && r->input == input && (cpu == PATH_ANY_CPU || r->cpu == cpu) &&
		    r->b < to && r->ts > from && (!found || r->ts > found->ts) &&
		    path_buffer_matters(w, input, r->buffer))
			found = r;
	}
	return found;
}

bool path_window_has(const struct path_window *w, uint16_t input, uint8_t kind)
{
	return input < w->n_machines && w->machines[input].kinds & 1ull << kind;
}

const struct path_row *path_window_last(const struct path_window *w, size_t before, uint16_t input,
					uint32_t cpu, uint8_t kind)
{
	for (size_t i = before; i-- > 0;) {
		const struct path_row *r = &w->v[i];
		bool hyp = r->kind == STEP_HYP_ENTER || r->kind == STEP_HYP_EXIT || r->kind == STEP_HYP_OTHER;

		if (r->input == input && r->cpu == cpu &&
		    (kind == STEP_NONE ? r->kind != STEP_LOST && !hyp : r->kind == kind))
			return r;
	}
	return NULL;
}

bool path_row_switches(const struct path_row *r, uint16_t input, int32_t pid)
{
	return r->input == input && r->kind == STEP_SWITCH && (r->pid == pid || (int32_t)r->a == pid);
}

const struct path_row *path_window_switch(const struct path_window *w, size_t before, uint16_t input,
					  int32_t pid)
{
	for (size_t i = before; i-- > 0;)
		if (path_row_switches(&w->v[i], input, pid))
			return &w->v[i];
	return NULL;
}

/* The states of include/linux/sched.h that are reported: 0 is TASK_RUNNING; what is above is "preempted". */
static bool path_row_preempts(const struct path_row *out)
{
	return out->b != STEP_UNKNOWN && !(out->b & 0xff);
}

struct path_rest path_window_rest(const struct path_window *w, const struct path_row *in)
{
	struct path_rest rest = { 0 };
	int32_t pid = (int32_t)in->a;

	for (size_t i = (size_t)(in - w->v); i-- > 0 && !rest.out && !rest.born;) {
		const struct path_row *r = &w->v[i];

		if (r->input == in->input && (r->kind == STEP_WAKING || r->kind == PATH_BORN) &&
		    (int32_t)r->a == pid) {
			rest.waking = r; /* the first of several */
			rest.born = r->kind == PATH_BORN;
		} else if (path_row_switches(r, in->input, pid)) {
			rest.out = r;
		}
	}
	rest.known = rest.born || rest.waking;
	if (rest.out && !rest.born) {
		if (path_row_preempts(rest.out))
			rest.waking = NULL;
		rest.known = rest.out->pid == pid && rest.out->b != STEP_UNKNOWN &&
			     (rest.waking || path_row_preempts(rest.out));
	}
	if (rest.known)
		rest.lost = path_window_lost(w, in->input, PATH_ANY_CPU,
					     rest.waking ? rest.waking->ts : rest.out->ts, in->ts);
	return rest;
}
