// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes trace records from the kernel's perf records. For a recorder and an agent. */
#include "base/cursor.h"
#include "record/profile/profile.h"

#include <elf.h>

#define MAPS_MAX	   (16u << 20) /* bytes of /proc/PID/maps */
#define PROFILE_FRAMES_MAX 240 /* of a stack: with both a record still fits a page; kernels stop at 127 */
#define PROFILE_PATH_MAX   1024
#define PROFILE_RECORD_MAX 4000 /* bytes */

struct profile_map {
	uint64_t from, len, offset; /* offset: in the file, bytes */
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0: not known */
	const char *path;
	size_t path_len; /* at most PROFILE_PATH_MAX count */
};

struct profile_head {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
	int32_t tgid;
};

struct profile_written_sample {
	struct profile_head head;
	char comm[16];
	/* PERF_RECORD_MISC_CPUMODE of perf: 1 kernel, 2 user, 3 hypervisor, 4 guest kernel, 5 guest user */
	uint8_t mode, unused;
	uint16_t hz; /* of a clock that comes due at a fixed rate; 0: another event's, or no u16 */
	uint64_t ip;
	uint32_t kernel, user; /* __data_loc */
};

struct profile_written_map {
	struct profile_head head;
	uint32_t unused;
	uint64_t from, len, offset;
	uint32_t build_id, path; /* __data_loc */
};

/* Copies the bytes to *at, which moves on; their __data_loc. */
static uint32_t profile_put(uint8_t *out, size_t *at, const void *data, size_t len)
{
	uint32_t loc = (uint32_t)len << 16 | (uint32_t)*at;

	if (len)
		memcpy(out + *at, data, len);
	*at += len;
	return loc;
}

/* Of "GNU" notes: name size, size, type, name, bytes; both padded to 4. */
static size_t build_id_note(struct cursor c, uint8_t id[20])
{
	while (cursor_left(&c)) {
		uint32_t name_len = cursor_u32(&c), len = cursor_u32(&c), type = cursor_u32(&c);
		const void *name = cursor_take(&c, ((size_t)name_len + 3) & ~(size_t)3);
		const void *data = cursor_take(&c, ((size_t)len + 3) & ~(size_t)3);

		if (!name || !data)
			return 0;
		if (type == NT_GNU_BUILD_ID && name_len == 4 && !memcmp(name, "GNU", 4) && len && len <= 20) {
			memcpy(id, data, len);
			return len;
		}
	}
	return 0;
}

size_t build_id_read(int fd, uint8_t id[20])
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	size_t len = 0;

	if (pread_all(fd, &e, sizeof(e), 0) != sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(p))
		return 0;
	for (unsigned int i = 0; i < e.e_phnum && !len; i++) {
		uint8_t notes[4096];
		ssize_t n;

		if (pread_all(fd, &p, sizeof(p), e.e_phoff + i * sizeof(p)) != sizeof(p))
			return 0;
		len = p.p_filesz < sizeof(notes) ? p.p_filesz : sizeof(notes);
		n = p.p_type == PT_NOTE ? pread_all(fd, notes, len, p.p_offset) : 0;
		len = n > 0 ? build_id_note(cursor_at(notes, (size_t)n), id) : 0;
	}
	return len;
}

static bool profile_task_before(const void *entry, const void *tid)
{
	return ((const struct profile_task *)entry)->tid < *(const int32_t *)tid;
}

/* Adds it if it is new. NULL: out of memory. Under the lock. */
static struct profile_task *profile_task(struct profile *p, int32_t tid)
{
	size_t i = array_lower_bound(p->tasks, p->n_tasks, sizeof(*p->tasks), profile_task_before, &tid);
	const struct profile_task task = { .tid = tid };

	if (i < p->n_tasks && p->tasks[i].tid == tid)
		return &p->tasks[i];
	return array_insert(&p->tasks, &p->n_tasks, i, &task, sizeof(task)) ? NULL : &p->tasks[i];
}

/* Reads /proc/TID/comm. It exists for threads, too, though they are not listed. */
static void profile_task_ask(struct profile_task *task)
{
	read_line_at(AT_FDCWD, task->comm, sizeof(task->comm), "/proc/%d/comm", task->tid);
}

/* The task's name; "" when it is gone and the name is unknown. 0 or -ENOMEM. */
static int profile_task_name(struct profile *p, int32_t tid, char comm[16])
{
	struct profile_task *task;

	if (tid <= 0) {
		snprintf(comm, 16, "%s", tid ? "" : "swapper");
		return 0;
	}
	pthread_mutex_lock(&p->lock);
	task = profile_task(p, tid);
	if (task && !*task->comm)
		profile_task_ask(task);
	if (task)
		memcpy(comm, task->comm, sizeof(task->comm));
	pthread_mutex_unlock(&p->lock);
	return task ? 0 : -ENOMEM;
}

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

static int profile_write_map(struct profile_taker *k, const struct profile_map *m)
{
	struct profile_written_map w = { .head = { (uint16_t)(k->p->first_id + 1), 0, 0, k->tid, k->tgid },
					 .from = m->from,
					 .len = m->len,
					 .offset = m->offset };
	uint8_t out[PROFILE_RECORD_MAX];
	size_t at = sizeof(w);

	w.build_id = profile_put(out, &at, m->build_id, m->build_id_len);
	w.path = profile_put(out, &at, m->path,
			     m->path_len < PROFILE_PATH_MAX ? m->path_len : PROFILE_PATH_MAX);
	out[at++] = 0;
	w.path += 1u << 16; /* its end */
	memcpy(out, &w, sizeof(w));
	return profile_write(k, out, at);
}

/* By the process's own root: what has that path here may be another file. */
static void profile_map_build_id(int32_t tgid, struct profile_map *m)
{
	char path[PROFILE_PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root%.*s", tgid, (int)m->path_len, m->path);
	fd = *m->path == '/' ? open_regular(path) : -1;
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
	id = cursor_take(c, 24); /* device and inode, or the length of the build id and the build id */
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

static int profile_take_sample(struct profile_taker *k, struct cursor *c)
{
	struct profile_written_sample w = { .mode = k->misc & PERF_RECORD_MISC_CPUMODE_MASK, .hz = k->p->hz };
	struct profile_frames {
		const uint64_t *v; /* from the innermost on */
		size_t n;
	} kernel = { 0 }, user = { 0 }, *to = NULL;
	uint8_t out[PROFILE_RECORD_MAX];
	const uint64_t *chain;
	size_t at = sizeof(w);
	bool due = false;
	uint64_t n;
	int ret;

	w.ip = cursor_u64(c);
	k->tgid = (int32_t)cursor_u32(c);
	k->tid = (int32_t)cursor_u32(c);
	k->ts = cursor_u64(c);
	cursor_u64(c); /* the CPU */
	n = cursor_u64(c);
	chain = n <= UINT16_MAX ? cursor_take(c, n * sizeof(*chain)) : NULL;
	if (c->bad || !chain)
		return -EBADMSG;
	/* a mark before addresses states whether they are the kernel's, the user's or a guest's */
	for (uint64_t i = 0; i < n; i++) {
		if (chain[i] >= PERF_CONTEXT_MAX) {
			to = chain[i] == PERF_CONTEXT_USER     ? &user
			     : chain[i] == PERF_CONTEXT_KERNEL ? &kernel
							       : NULL;
			if (to)
				*to = (struct profile_frames){ .v = chain + i + 1 };
		} else if (to && to->n < PROFILE_FRAMES_MAX) {
			to->n++;
		}
	}
	ret = profile_task_name(k->p, k->tgid, w.comm); /* so that the process is known, too */
	if (!ret && k->tid != k->tgid)
		ret = profile_task_name(k->p, k->tid, w.comm);
	w.comm[sizeof(w.comm) - 1] = 0;
	if (!ret && user.n && k->tgid > 0) {
		struct profile_task *task;

		pthread_mutex_lock(&k->p->lock);
		task = profile_task(k->p, k->tgid);
		due = task && !task->maps; /* once for a process */
		if (task)
			task->maps = true;
		pthread_mutex_unlock(&k->p->lock);
	}
	if (due) {
		struct strlist lines = { 0 };
		char path[32];

		/* addresses stay numbers if it may not be read, or the process is gone */
		snprintf(path, sizeof(path), "/proc/%d/maps", k->tgid);
		ret = read_lines_at(AT_FDCWD, path, MAPS_MAX, &lines) == -ENOMEM ? -ENOMEM : 0;
		for (size_t i = 0; i < lines.n && !ret; i++)
			ret = profile_map_line(k, lines.v[i]);
		strlist_release(&lines);
	}
	w.head = (struct profile_head){ (uint16_t)k->p->first_id, 0, 0, k->tid, k->tgid };
	w.kernel = profile_put(out, &at, kernel.v, kernel.n * sizeof(*kernel.v));
	w.user = profile_put(out, &at, user.v, user.n * sizeof(*user.v));
	memcpy(out, &w, sizeof(w));
	return ret ?: profile_write(k, out, at);
}

/* A task's new name; after an exec the maps of the new program follow as records. */
static int profile_take_name(struct profile_taker *k, struct cursor *c)
{
	struct profile_task *task;
	const char *name;
	int32_t tid;

	cursor_u32(c);
	tid = (int32_t)cursor_u32(c);
	name = cursor_str(c);
	if (!name)
		return -EBADMSG;
	pthread_mutex_lock(&k->p->lock);
	task = profile_task(k->p, tid);
	if (task && k->ts >= task->named) {
		snprintf(task->comm, sizeof(task->comm), "%s", name);
		task->named = k->ts;
		task->maps |= (k->misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
	}
	pthread_mutex_unlock(&k->p->lock);
	return task ? 0 : -ENOMEM;
}

/* A task begins as another one is. */
static int profile_take_fork(struct profile_taker *k, struct cursor *c)
{
	struct profile_task *parent, *task;
	char comm[16] = "";
	int32_t tid, of;

	cursor_u64(c);
	tid = (int32_t)cursor_u32(c);
	of = (int32_t)cursor_u32(c);
	if (c->bad)
		return -EBADMSG;
	pthread_mutex_lock(&k->p->lock);
	parent = profile_task(k->p, of);
	if (parent)
		memcpy(comm, parent->comm, sizeof(comm));
	task = parent ? profile_task(k->p, tid) : NULL;
	if (task && k->ts >= task->named) {
		memcpy(task->comm, comm, sizeof(comm));
		task->named = k->ts;
		task->maps = false;
		if (!*comm)
			profile_task_ask(task);
	}
	pthread_mutex_unlock(&k->p->lock);
	return task ? 0 : -ENOMEM;
}

/* count 0: not known. */
static int profile_take_lost(struct profile_taker *k, uint64_t count)
{
	k->st->lost += count ? count : 1;
	return page_write_lost(k->w, count);
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
	if (h->type == PERF_RECORD_SAMPLE || end.p > c.end) {
		switch (h->type) {
		case PERF_RECORD_SAMPLE:
			ret = profile_take_sample(&k, &c);
			break;
		case PERF_RECORD_MMAP2:
			ret = profile_take_map(&k, &c);
			break;
		case PERF_RECORD_COMM:
			ret = profile_take_name(&k, &c);
			break;
		case PERF_RECORD_FORK:
			ret = profile_take_fork(&k, &c);
			break;
		case PERF_RECORD_LOST:
			cursor_u64(&c);
			/* fallthrough */
		case PERF_RECORD_LOST_SAMPLES:
			ret = profile_take_lost(&k, cursor_u64(&c));
			break;
		case PERF_RECORD_THROTTLE: /* it stands still until the next tick */
			ret = profile_take_lost(&k, 0);
			break;
		default:
			ret = 0;
		}
	}
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
