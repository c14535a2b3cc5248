// SPDX-License-Identifier: LGPL-2.1-or-later
/* Marks in time by a trace clock: the system's own one of that name, or a trace buffer's. */
#include "clock/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dat/page.h"

#define PATH_LEN 96 /* of a file of the instance, which has a pid in its name */
#define MARK_TAG 0x63797368u
#define CPUS_MAX 1024
#define PAGE_MAX (64u << 10)
#define SIZE_KB	 "16" /* per CPU; a pass of stock's length takes 20 */
/* Of a raw_data record: the common header (8 bytes), then what was written. */
#define MARK_AT 8

struct clock_marks {
	int system; /* clock id, or -1: marks in the trace */
	struct undo *undo;
	char instance[48];
	int marker;
	struct page_layout layout;
	uint8_t *page;
	size_t n;
	int64_t ts[];
};

int clock_marks_system(const char *clock)
{
	static const struct {
		const char *name;
		int id;
	} clocks[] = {
		{ "boot", CLOCK_BOOTTIME },
		{ "mono", CLOCK_MONOTONIC },
		{ "mono_raw", CLOCK_MONOTONIC_RAW },
		{ "tai", CLOCK_TAI },
	};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (!strcmp(clock, clocks[i].name))
			return clocks[i].id;
	return -1;
}

static int poke_marker(struct clock_marks *c, const char *file, const char *value)
{
	char path[PATH_LEN];

	snprintf(path, sizeof(path), "%s/%s", c->instance, file);
	return undo_poke(c->undo, path, value);
}

static int open_marker(struct clock_marks *c, const char *clock)
{
	int dirfd = undo_dirfd(c->undo), ret;
	char marker[PATH_LEN];

	snprintf(c->instance, sizeof(c->instance), "instances/hyptrace-sync-%d", (int)getpid());
	snprintf(marker, sizeof(marker), "%s/trace_marker_raw", c->instance);
	ret = undo_mkdir(c->undo, c->instance) ?: poke_marker(c, "buffer_size_kb", SIZE_KB) ?:
	      poke_marker(c, "trace_clock", clock) ?: page_layout_read(dirfd, "events/header_page", &c->layout);
	if (ret)
		return ret;
	if (c->layout.size > PAGE_MAX)
		return -EMSGSIZE;
	c->page = malloc(c->layout.size);
	if (!c->page)
		return -ENOMEM;
	c->marker = openat(dirfd, marker, O_WRONLY | O_CLOEXEC);
	return c->marker < 0 ? -errno : 0;
}

int clock_marks_open(struct clock_marks **out, struct undo *u, const char *clock, size_t n)
{
	struct clock_marks *c = calloc(1, sizeof(*c) + n * sizeof(c->ts[0]));
	int ret = 0;

	if (!c)
		return -ENOMEM;
	c->n = n;
	c->undo = u;
	c->marker = -1;
	c->system = clock_marks_system(clock);
	if (c->system < 0)
		ret = open_marker(c, clock);
	if (ret)
		clock_marks_free(c);
	else
		*out = c;
	return ret;
}

void clock_marks_free(struct clock_marks *c)
{
	if (!c)
		return;
	fd_close(&c->marker);
	free(c->page);
	free(c);
}

void clock_marks_clear(struct clock_marks *c)
{
	memset(c->ts, 0, c->n * sizeof(c->ts[0]));
	if (c->system < 0)
		poke_marker(c, "trace", "");
}

void clock_marks_set(struct clock_marks *c, size_t i)
{
	uint32_t mark[2] = { MARK_TAG, (uint32_t)i };
	struct timespec t;

	if (c->system < 0) {
		/* one that is lost is a probe less */
		if (write(c->marker, mark, sizeof(mark)) < 0)
			return;
	} else if (!clock_gettime(c->system, &t)) {
		c->ts[i] = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	}
}

static void take_marks(struct clock_marks *c, size_t len)
{
	struct page_reader r;
	struct page_event e;
	uint32_t mark[2];

	if (page_reader_init(&r, &c->layout, c->page, len))
		return;
	while (page_next(&r, &e) == 1) {
		if (e.len < MARK_AT + sizeof(mark))
			continue;
		memcpy(mark, e.data + MARK_AT, sizeof(mark));
		if (mark[0] == MARK_TAG && mark[1] < c->n)
			c->ts[mark[1]] = (int64_t)e.ts;
	}
}

void clock_marks_collect(struct clock_marks *c)
{
	char path[PATH_LEN];
	ssize_t n;
	int fd;

	for (unsigned int cpu = 0; c->system < 0 && cpu < CPUS_MAX; cpu++) {
		snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace_pipe_raw", c->instance, cpu);
		fd = openat(undo_dirfd(c->undo), path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			return;
		if (fd < 0)
			continue;
		while ((n = read(fd, c->page, c->layout.size)) > 0)
			take_marks(c, (size_t)n);
		close(fd);
	}
}

int64_t clock_marks_get(const struct clock_marks *c, size_t i)
{
	return c->ts[i];
}
