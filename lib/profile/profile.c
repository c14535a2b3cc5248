// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes records of what the kernel's perf events tell. */
#include "profile/profile-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "profile/perf-ring.h"

#define MAPS_MAX (16u << 20) /* bytes of /proc/PID/maps */

/* One record being taken. */
struct profile_taker {
	struct profile *p;
	struct page_writer *w;
	struct drain_stats *st;
	uint16_t misc;
	uint64_t ts;
	int32_t tgid, tid;
};

static int profile_write(struct profile_taker *k, const void *data, size_t len)
{
	int ret = page_write(k->w, k->ts, data, len);

	k->st->events += !ret;
	return ret;
}

/* ---- maps --------------------------------------------------------------------------------- */

static int profile_write_map(struct profile_taker *k, struct profile_map *m)
{
	uint8_t out[PROFILE_RECORD_MAX];

	m->tgid = k->tgid;
	m->tid = k->tid;
	return profile_write(k, out, profile_put_map(out, k->p->first_id, m));
}

/* By the process's own root: what has that path here may be another file. */
static void profile_map_build_id(int32_t tgid, struct profile_map *m)
{
	char path[PROFILE_PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root%.*s", tgid, (int)m->path_len, m->path);
	fd = *m->path == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (fd < 0)
		return;
	m->build_id_len = (uint8_t)build_id_read(fd, m->build_id);
	close(fd);
}

/* "FROM-TO PERMS OFFSET DEVICE INODE PATH" of what can be run. */
static int profile_map_line(struct profile_taker *k, const char *text)
{
	struct profile_map m = { 0 };
	uint64_t to;
	char perms[8];
	int at = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &m.from, &to, perms, &m.offset,
		   &at) < 4 ||
	    !at || to <= m.from || !strchr(perms, 'x') || !text[at])
		return 0;
	m.len = to - m.from;
	m.path = text + at;
	m.path_len = strnlen(m.path, PROFILE_PATH_MAX);
	profile_map_build_id(k->tgid, &m);
	return profile_write_map(k, &m);
}

/* Where it may not be read, or the process is gone, addresses stay numbers. */
static int profile_maps(struct profile_taker *k)
{
	struct strlist lines = { 0 };
	char path[32];
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/maps", k->tgid);
	ret = read_lines_at(AT_FDCWD, path, MAPS_MAX, &lines) == -ENOMEM ? -ENOMEM : 0;
	for (size_t i = 0; i < lines.n && !ret; i++)
		ret = profile_map_line(k, lines.v[i]);
	strlist_release(&lines);
	return ret;
}

static int profile_take_map(struct profile_taker *k, struct cursor *c)
{
	struct profile_map m = { 0 };
	struct cursor file;
	const uint8_t *id;

	k->tgid = (int32_t)cursor_u32(c);
	k->tid = (int32_t)cursor_u32(c);
	m.from = cursor_u64(c);
	m.len = cursor_u64(c);
	m.offset = cursor_u64(c);
	id = cursor_take(c, 24); /* device and inode, or the build id behind its length */
	cursor_u64(c);		 /* protection and flags */
	file = *c;
	m.path = cursor_str(&file);
	if (c->bad || file.bad)
		return -EBADMSG;
	m.path_len = strlen(m.path);
	if (k->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && *id <= sizeof(m.build_id)) {
		m.build_id_len = *id;
		memcpy(m.build_id, id + 4, *id);
	} else {
		profile_map_build_id(k->tgid, &m);
	}
	return k->tgid > 0 ? profile_write_map(k, &m)
			   : 0; /* -1: the kernel's and its modules, as kallsyms has */
}

/* ---- samples ------------------------------------------------------------------------------ */

/* Addresses stand behind a mark of where they belong to; those of a guest have no stack. */
static void profile_chain(struct profile_sample *s, const uint64_t *v, uint64_t n)
{
	const uint64_t **to = NULL;
	size_t *count = NULL;

	for (uint64_t i = 0; i < n; i++) {
		if (v[i] >= PERF_CONTEXT_MAX) {
			bool user = v[i] == PERF_CONTEXT_USER;

			if (!user && v[i] != PERF_CONTEXT_KERNEL) {
				to = NULL;
				continue;
			}
			to = user ? &s->user : &s->kernel;
			count = user ? &s->n_user : &s->n_kernel;
			*to = v + i + 1;
			*count = 0;
		} else if (to) {
			(*count)++;
		}
	}
}

static int profile_take_sample(struct profile_taker *k, struct cursor *c)
{
	struct profile_sample s = { .mode = k->misc & PERF_RECORD_MISC_CPUMODE_MASK };
	uint8_t out[PROFILE_RECORD_MAX];
	const uint64_t *chain;
	uint64_t n;
	int ret;

	s.ip = cursor_u64(c);
	k->tgid = s.tgid = (int32_t)cursor_u32(c);
	k->tid = s.tid = (int32_t)cursor_u32(c);
	k->ts = cursor_u64(c);
	cursor_u64(c); /* the CPU */
	n = cursor_u64(c);
	chain = n <= UINT16_MAX ? cursor_take(c, n * sizeof(*chain)) : NULL;
	if (c->bad || !chain)
		return -EBADMSG;
	profile_chain(&s, chain, n);
	ret = profile_tasks_name(k->p->tasks, s.tgid, s.comm); /* so that the process is known, too */
	if (!ret && s.tid != s.tgid)
		ret = profile_tasks_name(k->p->tasks, s.tid, s.comm);
	if (!ret && s.n_user && s.tgid > 0 && profile_tasks_maps_due(k->p->tasks, s.tgid))
		ret = profile_maps(k);
	return ret ?: profile_write(k, out, profile_put_sample(out, k->p->first_id, &s));
}

/* ---- the others ------------------------------------------------------------------------------ */

static int profile_take_name(struct profile_taker *k, struct cursor *c)
{
	char comm[16] = { 0 };
	const char *name;
	int32_t tid;

	cursor_u32(c);
	tid = (int32_t)cursor_u32(c);
	name = cursor_str(c);
	if (!name)
		return -EBADMSG;
	memcpy(comm, name, strnlen(name, sizeof(comm) - 1));
	return profile_tasks_named(k->p->tasks, tid, comm, k->misc & PERF_RECORD_MISC_COMM_EXEC);
}

static int profile_take_fork(struct profile_taker *k, struct cursor *c)
{
	int32_t tid, parent;

	cursor_u64(c);
	tid = (int32_t)cursor_u32(c);
	parent = (int32_t)cursor_u32(c);
	return c->bad ? -EBADMSG : profile_tasks_forked(k->p->tasks, tid, parent);
}

/* count 0: not known. */
static int profile_take_lost(struct profile_taker *k, uint64_t count)
{
	k->st->lost += count ? count : 1;
	return page_write_lost(k->w, count);
}

static int profile_take_any(struct profile_taker *k, uint32_t type, struct cursor *c)
{
	switch (type) {
	case PERF_RECORD_SAMPLE:
		return profile_take_sample(k, c);
	case PERF_RECORD_MMAP2:
		return profile_take_map(k, c);
	case PERF_RECORD_COMM:
		return profile_take_name(k, c);
	case PERF_RECORD_FORK:
		return profile_take_fork(k, c);
	case PERF_RECORD_LOST:
		cursor_u64(c);
		/* fallthrough */
	case PERF_RECORD_LOST_SAMPLES:
		return profile_take_lost(k, cursor_u64(c));
	case PERF_RECORD_THROTTLE: /* it stands still until the next tick */
		return profile_take_lost(k, 0);
	default:
		return 0;
	}
}

int profile_take(struct profile *p, const struct perf_event_header *h, size_t len, struct page_writer *w,
		 struct drain_stats *st)
{
	struct profile_taker k = { .p = p, .w = w, .st = st, .misc = h->misc };
	struct cursor c = cursor_at(h + 1, len - sizeof(*h)), end = c;
	int ret = -EBADMSG;

	if (h->type != PERF_RECORD_SAMPLE && cursor_left(&c) >= PERF_RING_TRAILER) {
		c.end -= PERF_RING_TRAILER;
		end.p = c.end + 8;
		k.ts = cursor_u64(&end);
	}
	if (h->type == PERF_RECORD_SAMPLE || end.p > c.end)
		ret = profile_take_any(&k, h->type, &c);
	if (ret != -EBADMSG && ret != -EMSGSIZE)
		return ret;
	st->bad++; /* no kernel writes that */
	return profile_take_lost(&k, 0);
}

int profile_read(struct profile *p, unsigned int cpu, struct page_writer *w, struct drain_stats *st)
{
	struct perf_ring *ring = cpu < p->n_rings ? p->rings[cpu] : NULL;
	const struct perf_event_header *h;
	int ret = 0;

	while (ring && !ret && (h = perf_ring_next(ring)))
		ret = profile_take(p, h, h->size, w, st);
	return ret;
}
