// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pids of hypervisor records: a walk along the host CPU's sched_switch records. */
#include "record/drain/spool-to-dat.h"

struct tasks {
	int fd;
	off_t offset;
	uint8_t *page;
	struct page_layout layout;
	struct page_reader reader;
	bool in_page;
	struct tasks_format f;
	int current;	/* since the last switch; -1: not known */
	bool have_next; /* the switch that ends it */
	uint64_t next_ts;
	int32_t next_from, next_to;
	bool next_after_loss; /* events were lost before it: `current` may have ended unseen */
	int error;
};

int tasks_format_parse(const char *text, size_t len, struct tasks_format *out)
{
	struct event_format f;
	const struct event_field *prev, *next;
	int ret = event_format_parse(text, len, &f);

	if (ret)
		return ret;
	prev = event_format_field(&f, "prev_pid");
	next = event_format_field(&f, "next_pid");
	if (prev && next && prev->size == 4 && next->size == 4)
		*out = (struct tasks_format){ .id = f.id,
					      .prev_pid = prev->offset,
					      .next_pid = next->offset };
	else
		ret = -EBADMSG;
	event_format_release(&f);
	return ret;
}

int tasks_new(struct tasks **out, int fd, uint64_t from, uint32_t page_size, const struct tasks_format *f)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (t)
		t->page = malloc(page_size);
	if (!t || !t->page) {
		free(t);
		close(fd);
		return -ENOMEM;
	}
	t->fd = fd;
	t->offset = (off_t)from;
	t->f = *f;
	t->layout = page_layout_default;
	t->layout.size = page_size;
	t->current = -1;
	*out = t;
	return 0;
}

void tasks_free(struct tasks *t)
{
	if (!t)
		return;
	close(t->fd);
	free(t->page);
	free(t);
}

/* Finds the next sched_switch; false at the end of the pages. */
static bool find_next(struct tasks *t)
{
	struct page_event ev;
	bool lost = false;
	ssize_t n;

	for (;;) {
		while (t->in_page && page_next(&t->reader, &ev) == 1) {
			uint16_t id = 0;

			if (ev.len < (size_t)t->f.prev_pid + 4 || ev.len < (size_t)t->f.next_pid + 4)
				continue;
			memcpy(&id, ev.data, sizeof(id));
			if (id != t->f.id)
				continue;
			t->next_ts = ev.ts;
			memcpy(&t->next_from, ev.data + t->f.prev_pid, sizeof(t->next_from));
			memcpy(&t->next_to, ev.data + t->f.next_pid, sizeof(t->next_to));
			t->next_after_loss = lost;
			return true;
		}
		t->in_page = false;
		n = pread(t->fd, t->page, t->layout.size, t->offset);
		if (n < 0)
			t->error = -errno;
		if (n != (ssize_t)t->layout.size)
			return false;
		t->offset += n;
		t->in_page = !page_reader_init(&t->reader, &t->layout, t->page, (size_t)n);
		lost |= !t->in_page || t->reader.missed;
	}
}

int tasks_error(const struct tasks *t)
{
	return t->error;
}

int tasks_pid(struct tasks *t, uint64_t ts)
{
	if (!t->have_next)
		t->have_next = find_next(t);
	while (t->have_next && t->next_ts <= ts) {
		t->current = t->next_to;
		t->have_next = find_next(t);
		if (t->have_next && t->next_after_loss && t->next_from != t->current)
			t->current = -1; /* some switch between is lost */
	}
	return t->current >= 0 || !t->have_next || t->next_after_loss ? t->current : t->next_from;
}

struct hyp_pids {
	struct tasks **tasks; /* per CPU */
	unsigned int n_cpus;
	struct page_layout layout;
};

static int fill_pids(void *ctx, unsigned int cpu, void *page, size_t size)
{
	struct hyp_pids *p = ctx;
	struct page_reader r;
	struct page_event ev;

	if (cpu >= p->n_cpus || !p->tasks[cpu] || page_reader_init(&r, &p->layout, page, size))
		return 0;
	while (page_next(&r, &ev) == 1) {
		int32_t pid;

		if (ev.len < HYP_HEADER_SIZE)
			continue;
		memcpy(&pid, ev.data + HYP_PID_OFFSET, sizeof(pid));
		if (pid)
			continue;
		pid = tasks_pid(p->tasks[cpu], ev.ts);
		/* the record lies in `page`, which is ours to change */
		if (pid > 0)
			memcpy((uint8_t *)page + (ev.data - (uint8_t *)page) + HYP_PID_OFFSET, &pid,
			       sizeof(pid));
	}
	return tasks_error(p->tasks[cpu]);
}

int hyp_pids_open(struct hyp_pids **out, const struct spool *spool, const struct dat_file *file,
		  struct dat_buffer *b)
{
	static const char name[] = "name: sched_switch\n";
	const char *key = spool_get(spool, "sched_buffer");
	struct tasks_format tf;
	const struct spool_buffer *host;
	struct hyp_pids *p;
	uint64_t n;
	int ret = -ENOENT;

	*out = NULL;
	for (size_t s = 0; s < file->n_systems && key; s++)
		for (size_t i = 0; !strcmp(file->systems[s].name, "sched") && i < file->systems[s].n; i++) {
			const struct dat_text *t = &file->systems[s].formats[i];

			if (ret == -ENOENT && t->len > strlen(name) && !memcmp(t->data, name, strlen(name)))
				ret = tasks_format_parse(t->data, t->len, &tf);
		}
	if (ret || parse_u64(key, &n))
		return ret == -ENOMEM ? ret : 0;
	host = spool_buffer(spool, n);
	if (!host || strcmp(host->clock, b->clock))
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*out = p;
	p->layout = page_layout_default;
	p->layout.size = b->page_size;
	p->tasks = calloc(b->n_cpus, sizeof(*p->tasks));
	if (!p->tasks)
		return -ENOMEM;
	for (; p->n_cpus < b->n_cpus && p->n_cpus < host->n_cpus; p->n_cpus++) {
		struct spool_range range;
		int fd = spool_pages_open(spool, n, p->n_cpus, &range);

		ret = fd < 0 ? fd : tasks_new(&p->tasks[p->n_cpus], fd, range.from, host->page_size, &tf);
		if (ret)
			return ret;
	}
	b->fix_page = fill_pids;
	b->fix_ctx = p;
	return 0;
}

void hyp_pids_close(struct hyp_pids *p)
{
	if (!p)
		return;
	for (unsigned int c = 0; c < p->n_cpus; c++)
		tasks_free(p->tasks[c]);
	free(p->tasks);
	free(p);
}
