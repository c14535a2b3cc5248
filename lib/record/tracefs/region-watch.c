// SPDX-License-Identifier: LGPL-2.1-or-later
/* Instance that records when the triggers of regions switched tracing on and off. */
#include "file/dat/page.h"
#include "record/tracefs/instance.h"

#define WATCH_KB   "512"   /* of each CPU: some thousand events */
#define WATCH_LATE 1000000 /* ns, in which a start has switched all CPUs on */

/* A new instance is on, and its events are all off. */
static int watch_event(struct instance *i, const char *event, const char *filter, uint16_t *id)
{
	char path[INSTANCE_PATH];
	char *text = NULL;
	uint64_t n = 0;
	int ret;

	if (!instance_has(i, instance_file(i, path, "events/%s/enable", event)))
		return -ENOENT;
	ret = undo_read(i->undo, instance_file(i, path, "events/%s/id", event), &text);
	ret = ret ?: parse_u64(text, &n) || !n || n > UINT16_MAX ? -EBADMSG : 0;
	free(text);
	*id = (uint16_t)n;
	if (!ret && filter)
		ret = undo_write(i->undo, instance_file(i, path, "events/%s/filter", event), filter);
	return ret ? ret : undo_write(i->undo, instance_file(i, path, "events/%s/enable", event), "1");
}

int watch_open(struct watch *w, struct undo *u, const struct record_plan *plan, const char *clock)
{
	char name[sizeof(w->path) - sizeof("instances/")], second[INSTANCE_EVENT], path[INSTANCE_PATH];
	struct buffer_plan b = { .name = name };
	struct instance_opts o = { .plan = plan };
	const char *filter, *stop = instance_region_stop(plan, second, &filter);
	struct instance *i;
	int ret;

	*w = (struct watch){ 0 };
	snprintf(name, sizeof(name), "hyptrace-regions-%d", (int)getpid());
	ret = instance_open(&i, u, &b, &o);
	if (ret)
		return ret;
	ret = undo_write(u, instance_file(i, path, "trace_clock"), clock);
	ret = ret ?: undo_write(u, instance_file(i, path, "buffer_size_kb"), WATCH_KB);
	ret = ret ?: watch_event(i, plan->start_on.event, plan->start_on.filter, &w->start);
	/* an eprobe's event is only in the buffer that has it first (kernel/trace/trace_eprobe.c) */
	if (!ret && stop && stop != second) {
		ret = watch_event(i, stop, filter, &w->stop);
		ret = ret == -ENOENT ? 0 : ret;
	}
	if (!ret)
		snprintf(w->path, sizeof(w->path), "instances/%s", name);
	instance_free(i);
	return ret;
}

char *watch_text(const struct watch *w)
{
	return str_printf("%u %u %s", w->start, w->stop, w->path);
}

int watch_parse(struct watch *w, const char *text)
{
	*w = (struct watch){ 0 };
	if (sscanf(text, "%" SCNu16 " %" SCNu16 " %63s", &w->start, &w->stop, w->path) == 3 &&
	    tracefs_path_ok(w->path))
		return 0;
	*w->path = 0;
	return -EINVAL;
}

struct watch_moment {
	uint64_t ts;
	bool on;
};

struct watch_moments {
	struct watch_moment *v;
	size_t n;
	uint64_t lost; /* until then some are missing; 0: none */
};

static int watch_page(const struct watch *w, const struct page_layout *l, const void *page, size_t len,
		      struct watch_moments *m)
{
	struct page_reader r;
	struct page_event ev;
	int ret = page_reader_init(&r, l, page, len);
	bool missed = !ret && r.missed;

	while (!ret && page_next(&r, &ev) == 1) {
		struct watch_moment one = { .ts = ev.ts };
		uint16_t id;

		if (missed && ev.ts > m->lost)
			m->lost = ev.ts;
		missed = false;
		if (ev.len < sizeof(id))
			continue;
		memcpy(&id, ev.data, sizeof(id));
		one.on = id == w->start;
		if (id == w->start || id == w->stop)
			ret = array_push(&m->v, &m->n, &one, sizeof(one));
	}
	return ret;
}

static int watch_cpu(const struct watch *w, const struct undo *u, const struct page_layout *l,
		     unsigned int cpu, struct watch_moments *m)
{
	char path[INSTANCE_PATH];
	void *page = malloc(l->size);
	ssize_t n = 1;
	int fd, ret = page ? 0 : -ENOMEM;

	snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace_pipe_raw", w->path, cpu);
	fd = ret ? -1 : openat(undo_dirfd(u), path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (!ret && fd < 0)
		ret = -errno;
	while (!ret && n > 0) {
		n = read(fd, page, l->size);
		if (n > 0)
			ret = watch_page(w, l, page, (size_t)n, m);
		else if (n < 0 && errno != EAGAIN)
			ret = -errno;
	}
	fd_close(&fd);
	free(page);
	return ret == -ENODEV ? 0 : ret; /* it is offline */
}

static int watch_earlier(const void *a, const void *b)
{
	const struct watch_moment *x = a, *y = b;

	return ORDER(x->ts, y->ts) ?: ORDER(x->on, y->on);
}

int watch_read(const struct watch *w, struct undo *u, struct pauses *out, bool *whole)
{
	struct watch_moments m = { 0 };
	struct page_layout layout;
	char path[INSTANCE_PATH];
	unsigned int n = 0;
	int ret = *w->path ? undo_poke_in(u, w->path, "tracing_on", "0") : -EINVAL;

	snprintf(path, sizeof(path), "%s/per_cpu", w->path);
	ret = ret ?: page_layout_read(undo_dirfd(u), "events/header_page", &layout) ?:
		     tracefs_cpus(undo_dirfd(u), path, &n);
	for (unsigned int cpu = 0; cpu < n && !ret; cpu++)
		ret = watch_cpu(w, u, &layout, cpu, &m);
	if (!ret) {
		bool on = false, first = true;
		uint64_t off = 0;

		array_sort(m.v, m.n, sizeof(*m.v), watch_earlier);
		/*
		 * Nothing was recorded until the first start. A stop that was not seen may have been
		 * before any start: the time before it counts as off.
		 */
		for (size_t i = 0; i < m.n && !ret; i++) {
			const struct watch_moment *now = &m.v[i];

			if (now->ts < m.lost)
				continue;
			if (now->on && on && !w->stop)
				ret = pauses_add(out, now->ts - WATCH_LATE, now->ts);
			else if (now->on && !on && (!first || m.lost))
				ret = pauses_add(out, off, now->ts);
			else if (!now->on && on)
				off = now->ts;
			on = now->on;
			first &= !on;
		}
		if (m.lost && first)
			ret = pauses_add(out, 0, m.lost);
	}
	if (ret) {
		pauses_release(out);
		ret = pauses_add(out, 0, UINT64_MAX) ?: ret;
	}
	*whole = !ret && !m.lost;
	free(m.v);
	return ret;
}
