// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walks a host CPU's sched_switch records, for the pids of hypervisor records. */
#include "record/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat/format.h"
#include "dat/page.h"

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
	int next_from, next_to;
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
	free(t->page);
	free(t);
}

static bool tasks_page(struct tasks *t, bool *lost)
{
	ssize_t n = pread(t->fd, t->page, t->layout.size, t->offset);

	if (n < 0)
		t->error = -errno;
	if (n != (ssize_t)t->layout.size)
		return false;
	t->offset += n;
	t->in_page = !page_reader_init(&t->reader, &t->layout, t->page, (size_t)n);
	*lost |= !t->in_page || t->reader.missed;
	return true;
}

static int pid_at(const struct page_event *ev, unsigned int offset)
{
	int32_t pid;

	memcpy(&pid, ev->data + offset, sizeof(pid));
	return pid;
}

static bool is_switch(const struct tasks *t, const struct page_event *ev)
{
	uint16_t id;

	if (ev->len < (size_t)t->f.prev_pid + 4 || ev->len < (size_t)t->f.next_pid + 4 || ev->len < 2)
		return false;
	memcpy(&id, ev->data, sizeof(id));
	return id == t->f.id;
}

/* Finds the next sched_switch; false at the end of the pages. */
static bool find_next(struct tasks *t)
{
	struct page_event ev;
	bool lost = false;

	for (;;) {
		while (t->in_page && page_next(&t->reader, &ev) == 1) {
			if (!is_switch(t, &ev))
				continue;
			t->next_ts = ev.ts;
			t->next_from = pid_at(&ev, t->f.prev_pid);
			t->next_to = pid_at(&ev, t->f.next_pid);
			t->next_after_loss = lost;
			return true;
		}
		t->in_page = false;
		if (!tasks_page(t, &lost))
			return false;
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
	if (t->current >= 0 || !t->have_next || t->next_after_loss)
		return t->current;
	return t->next_from;
}
