// SPDX-License-Identifier: GPL-2.0-only
/* report -w: from sched_wakeup (or _new) of a task to the sched_switch that it begins to run at. */
#include "report-priv.h"

struct stats {
	uint64_t n, total;
	uint64_t max, max_at, min, min_at; /* ns */
};

struct waiting {
	int pid;
	uint64_t since; /* 0: not */
};

struct wakeup_event {
	int id; /* -1: none */
	struct tep_format_field *pid, *success;
};

struct wakeups {
	struct wakeup_event woken[2];
	int switch_id;
	struct tep_format_field *next_pid, *next_prio;
	struct waiting *tasks;
	size_t n;
	struct map map; /* of tasks, by pid */
	struct stats all, rt;
};

static bool waiting_is(const void *tasks, size_t i, const void *pid)
{
	return ((const struct waiting *)tasks)[i].pid == *(const int *)pid;
}

/* NULL: it was never woken. */
static struct waiting *waiting_find(const struct wakeups *w, int pid)
{
	size_t i = map_find(&w->map, map_hash((uint32_t)pid), waiting_is, w->tasks, &pid);

	return i == MAP_NONE ? NULL : &w->tasks[i];
}

static void stats_add(struct stats *s, uint64_t ns, uint64_t at)
{
	if (!s->n || ns > s->max) {
		s->max = ns;
		s->max_at = at;
	}
	if (!s->n || ns < s->min) {
		s->min = ns;
		s->min_at = at;
	}
	s->total += ns;
	s->n++;
}

static bool wakeup_number(struct tep_format_field *f, const struct tep_record *rec, int *out)
{
	unsigned long long v;

	if (!f || tep_read_number_field(f, rec->data, &v))
		return false;
	*out = (int)v;
	return true;
}

int wakeups_record(struct wakeups *w, struct tep_handle *tep, struct tep_record *rec, struct buf *out)
{
	int id = tep_data_type(tep, rec), pid, prio, success;
	struct waiting *t;

	if (id == w->switch_id) {
		uint64_t ns;

		if (!wakeup_number(w->next_prio, rec, &prio) || !wakeup_number(w->next_pid, rec, &pid))
			return 0;
		t = waiting_find(w, pid);
		if (!t || !t->since)
			return 0;
		ns = rec->ts - t->since;
		t->since = 0;
		stats_add(&w->all, ns, rec->ts);
		if (prio < 100)
			stats_add(&w->rt, ns, rec->ts);
		buf_printf(out, " Latency: %llu.%03llu usecs", (unsigned long long)ns / 1000,
			   (unsigned long long)ns % 1000);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(w->woken); i++) {
		const struct wakeup_event *e = &w->woken[i];

		if (id != e->id || (wakeup_number(e->success, rec, &success) && !success) ||
		    !wakeup_number(e->pid, rec, &pid))
			continue;
		t = waiting_find(w, pid);
		if (t)
			t->since = rec->ts;
		if (t || !pid)
			return 0;
		return map_push(&w->map, map_hash((uint32_t)pid), &w->tasks, &w->n,
				&(struct waiting){ pid, rec->ts }, sizeof(*t));
	}
	return 0;
}

static void wakeup_find(struct tep_handle *tep, const char *name, struct wakeup_event *e)
{
	struct tep_event *event = tep_find_event_by_name(tep, "sched", name);

	*e = (struct wakeup_event){ .id = -1 };
	if (!event)
		return;
	e->id = event->id;
	e->pid = tep_find_field(event, "pid");
	e->success = tep_find_field(event, "success");
}

int wakeups_open(struct wakeups **out, struct tep_handle *tep)
{
	struct tep_event *event = tep_find_event_by_name(tep, "sched", "sched_switch");
	struct wakeups *w = calloc(1, sizeof(*w));

	*out = NULL;
	if (!w)
		return -ENOMEM;
	wakeup_find(tep, "sched_wakeup", &w->woken[0]);
	wakeup_find(tep, "sched_wakeup_new", &w->woken[1]);
	if (event) {
		w->switch_id = event->id;
		w->next_pid = tep_find_field(event, "next_pid");
		w->next_prio = tep_find_field(event, "next_prio");
	}
	if (!w->woken[0].pid || !w->next_pid || !w->next_prio) {
		free(w);
		return 0;
	}
	*out = w;
	return 0;
}

static void stats_print_at(const char *what, uint64_t ns, uint64_t at, FILE *out)
{
	fprintf(out, "%s Latency: %llu.%03llu usecs at timestamp: %llu.%06llu\n", what,
		(unsigned long long)ns / 1000, (unsigned long long)ns % 1000,
		(unsigned long long)at / 1000000000, (unsigned long long)((at + 500) % 1000000000) / 1000);
}

static void stats_print(const struct stats *s, FILE *out)
{
	uint64_t mean = s->total / s->n;

	fprintf(out, "\nAverage wakeup latency: %llu.%03llu usecs\n", (unsigned long long)mean / 1000,
		(unsigned long long)mean % 1000);
	stats_print_at("Maximum", s->max, s->max_at, out);
	stats_print_at("Minimum", s->min, s->min_at, out);
	fputc('\n', out);
}

void wakeups_finish(const struct wakeups *w, FILE *out)
{
	if (w->all.n)
		stats_print(&w->all, out);
	if (!w->rt.n)
		return;
	fputs("RT task timings:\n", out);
	stats_print(&w->rt, out);
}

void wakeups_free(struct wakeups *w)
{
	if (!w)
		return;
	map_release(&w->map);
	free(w->tasks);
	free(w);
}
