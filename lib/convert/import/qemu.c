// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file of QEMU's trace events: read whole, put into the order of time (its threads write past each other),
 * written. */
#include <time.h>

#include "convert/import/pftrace-priv.h"
#include "file/wire/hypertrace-ring.h"
#include "base/outfile.h"

#define QEMU_FILE_MAX (1u << 30) /* bytes; it is held in memory */

/* Of the simple back end, version 4. */
#define SIMPLE_VERSION 4
#define SIMPLE_DROPPED (UINT64_MAX - 1)
#define SIMPLE_IDS     65536 /* QEMU has some thousands, counted from 0 */
enum { SIMPLE_MAPPING, SIMPLE_EVENT };

struct simple_name {
	const char *name; /* NULL: unknown */
	size_t len;
};

/* One import. */
struct qemu {
	const struct qemu_opts *o;
	struct qemu_result *result;
	struct buf file;
	bool simple;
	struct qemu_event *events;
	size_t n;
	struct simple_name *names; /* by id */
	uint64_t timeless;	   /* lines of known events that have no time */
	struct ring *rings;	   /* of the guest's marks; NULL: not wanted */
	char *guest;
};

/* So many digits, from least to most of them. */
static bool line_digits(struct cursor *c, size_t least, size_t most, uint64_t *v)
{
	size_t n = 0;

	*v = 0;
	for (; n < most && cursor_peek(c) >= '0' && cursor_peek(c) <= '9'; n++)
		*v = *v * 10 + (uint64_t)(cursor_u8(c) - '0');
	return n >= least;
}

/* "14224@1795225005.615729:" */
static bool line_head_pid(struct cursor *c, struct qemu_event *e)
{
	uint64_t pid, sec, usec;

	if (!line_digits(c, 1, 7, &pid) || !cursor_accept(c, '@') || !line_digits(c, 1, 10, &sec) ||
	    !cursor_accept(c, '.') || !line_digits(c, 6, 6, &usec) || !cursor_accept(c, ':'))
		return false;
	e->pid = (uint32_t)pid;
	e->ts = sec * UNIT_S + usec * 1000;
	return true;
}

/* "2026-11-21T02:23:57.441296Z " */
static bool line_head_iso(struct cursor *c, struct qemu_event *e)
{
	static const char between[] = "--T::.";
	uint64_t v[7];
	struct tm tm;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		size_t digits = i == 0 ? 4 : i == 6 ? 6 : 2;

		if (!line_digits(c, digits, digits, &v[i]) || !cursor_accept(c, i == 6 ? 'Z' : between[i]))
			return false;
	}
	if (v[0] < 1970 || !v[1] || v[1] > 12 || !v[2] || v[2] > 31 || v[3] > 23 || v[4] > 59 || v[5] > 60)
		return false;
	tm = (struct tm){ .tm_year = (int)v[0] - 1900,
			  .tm_mon = (int)v[1] - 1,
			  .tm_mday = (int)v[2],
			  .tm_hour = (int)v[3],
			  .tm_min = (int)v[4],
			  .tm_sec = (int)v[5] };
	e->ts = (uint64_t)timegm(&tm) * UNIT_S + v[6] * 1000;
	return e->ts < INT64_MAX && cursor_accept(c, ' ');
}

static bool line_name(struct cursor *c, struct qemu_event *e)
{
	e->name = (const char *)c->p;
	e->name_len = word_len(e->name, cursor_left(c), "");
	cursor_take(c, e->name_len);
	e->args = c->p;
	e->args_len = cursor_left(c);
	return e->name_len && e->name_len < 64 && (!e->args_len || *e->args == ' ');
}

static bool line_event(const char *line, size_t len, struct qemu_event *e)
{
	struct cursor pid = cursor_at(line, len), iso = pid;

	*e = (struct qemu_event){ 0 };
	if (line_head_pid(&pid, e))
		return line_name(&pid, e);
	return line_head_iso(&iso, e) && line_name(&iso, e);
}

static int log_read(struct qemu *q)
{
	struct cursor c = cursor_at(q->file.data, q->file.len);
	const char *line;
	size_t len;

	q->result->clock = "realtime";
	while (cursor_line(&c, &line, &len)) {
		struct qemu_event e;
		struct cursor bare;

		len -= len && line[len - 1] == '\r';
		if (line_event(line, len, &e)) {
			if (array_push(&q->events, &q->n, &e, sizeof(e)))
				return -ENOMEM;
			continue;
		}
		q->result->passed += len != 0;
		bare = cursor_at(line, len);
		q->timeless += line_name(&bare, &e) && qemu_kind_of(e.name, e.name_len);
	}
	return 0;
}

/* -EBADMSG: nothing can come behind it. */
static int simple_event(struct qemu *q, struct cursor *c)
{
	enum { HEADER = 24 };
	struct qemu_event e = { 0 };
	uint64_t id = cursor_u64(c);
	uint32_t len;

	e.ts = cursor_u64(c);
	len = cursor_u32(c);
	e.pid = cursor_u32(c);
	e.args = c->bad || len < HEADER ? NULL : cursor_take(c, len - HEADER);
	if (!e.args)
		return -EBADMSG;
	e.args_len = len - HEADER;
	if (id == SIMPLE_DROPPED) {
		struct cursor count = cursor_at(e.args, e.args_len);

		e.lost = cursor_u64(&count);
		return e.lost ? array_push(&q->events, &q->n, &e, sizeof(e)) : 0;
	}
	if (id >= SIMPLE_IDS || !q->names[id].name) {
		q->result->bad++;
		return 0;
	}
	e.name = q->names[id].name;
	e.name_len = q->names[id].len;
	return array_push(&q->events, &q->n, &e, sizeof(e));
}

static int simple_read(struct qemu *q)
{
	struct cursor c = cursor_at(q->file.data + 16, q->file.len - 16);
	uint64_t version = cursor_u64(&c);
	int ret = 0;

	q->result->clock = "mono";
	q->names = calloc(SIMPLE_IDS, sizeof(*q->names));
	if (!q->names)
		return -ENOMEM;
	if (c.bad || version != SIMPLE_VERSION)
		return log_fail(q->o->log, -EPROTO,
				"'%s' is version %llu of QEMU's simple back end: only 4 can be read",
				q->o->input, (unsigned long long)version);
	while (!ret && cursor_left(&c)) {
		uint64_t type = cursor_u64(&c);

		if (type == SIMPLE_MAPPING && !c.bad) {
			uint64_t id = cursor_u64(&c);
			uint32_t len = cursor_u32(&c);
			const char *name = cursor_take(&c, len);

			ret = name && id < SIMPLE_IDS ? 0 : -EBADMSG;
			if (!ret)
				q->names[id] = (struct simple_name){ .name = name, .len = len };
		} else {
			ret = type == SIMPLE_EVENT && !c.bad ? simple_event(q, &c) : -EBADMSG;
		}
	}
	if (ret == -EBADMSG)
		log_warn(q->o->log, "'%s' ends with what is no whole record: what is before it was read",
			 q->o->input);
	return ret == -EBADMSG ? 0 : ret;
}

/*
 * Numbers doorbells from the last one back: each is within 32,768 of the one of its client that comes after
 * it, of whose number it has 16 bits. -ENOMEM.
 */
static int qemu_number_marks(struct qemu *q)
{
	uint64_t *newest = calloc(HYPERTRACE_CLIENTS_MAX, sizeof(*newest)); /* 0: not known yet */
	struct pft_value v[PFT_VALUES];
	struct buf text = { 0 };

	if (!newest)
		return -ENOMEM;
	for (size_t i = q->n; i--;) {
		struct pft_item item = { 0 };
		uint64_t *number;
		int16_t back;

		if (q->events[i].lost || !qemu_values(&q->events[i], q->simple, &item, v, &text) ||
		    !qemu_is_doorbell(&item))
			continue;
		number = &newest[v[DOORBELL_CLIENT].v];
		if (!*number)
			*number = ring_newest(q->rings, (uint32_t)v[DOORBELL_CLIENT].v);
		back = (int16_t)(*number - v[DOORBELL_SEQ].v);
		if ((int64_t)*number <= back)
			continue;
		*number -= (uint64_t)(int64_t)back;
		q->events[i].mark = *number;
	}
	buf_release(&text);
	free(newest);
	return 0;
}

/* rings: GUEST=FILE */
static int qemu_open_marks(struct qemu *q)
{
	const char *rings = q->o->rings, *path = strchr(rings, '=');
	int ret;

	q->guest = strndup(rings, strcspn(rings, "="));
	ret = !q->guest ? -ENOMEM : path ? ring_open(&q->rings, path + 1) : -EINVAL;
	ret = ret ?: qemu_number_marks(q);
	if (ret)
		log_err(q->o->log, "cannot read the marks of '%s': %s", rings, errno_text(ret));
	else if (ring_why(q->rings))
		log_warn(q->o->log, "the memory of %s, '%s': %s", q->guest, path + 1, ring_why(q->rings));
	return ret;
}

static int event_order(const void *a, const void *b)
{
	const struct qemu_event *x = a, *y = b;

	return ORDER(x->ts, y->ts) ?: ORDER(x->args, y->args); /* as they came */
}

/* All in one stream of one machine. */
static int qemu_write(struct qemu *q)
{
	struct pftrace_opts o = { .input = q->o->input, .output = q->o->output, .log = q->o->log };
	struct pftrace_result r = { 0 };
	struct pft p = { .o = &o, .result = &r, .clock = q->result->clock };
	struct buf text = { 0 };
	struct pft_source *s;
	struct pft_machine *m;
	int ret;

	array_sort(q->events, q->n, sizeof(*q->events), event_order);
	ret = q->o->rings ? qemu_open_marks(q) : 0;
	if (ret)
		return ret;
	m = pft_machine(&p, 0, &ret);
	s = m ? pft_source(&p, m, 0, &ret) : NULL;
	ret = s ? qemu_describe(s) : ret;
	for (size_t i = 0; i < q->n && !ret; i++) {
		const struct qemu_event *e = &q->events[i];
		struct pft_item item = { .ts = e->ts, .pid = e->pid ? (int32_t)e->pid : -1 };
		struct ring_event mark;
		struct pft_value v[PFT_VALUES];
		bool lost[2] = { 0 };
		size_t n;

		if (e->lost) {
			struct pft_cpu *c = pft_cpu(m, s, false, 0, &ret);

			q->result->lost += e->lost;
			ret = c ? page_write_lost(&c->w, e->lost) : ret;
			continue;
		}
		n = qemu_values(e, q->simple, &item, v, &text);
		q->result->doorbells += qemu_is_doorbell(&item);
		if (e->mark && ring_find(q->rings, (uint32_t)v[DOORBELL_CLIENT].v, e->mark, &mark)) {
			n = qemu_mark_values(&mark, q->guest, &item, v);
			q->result->marks++;
		}
		ret = n ? pft_task_name(m, e->pid, "qemu", 4, true)
				      ?: pft_event(&p, m, s, 0, &item, v, n, lost)
			: -ENOMEM;
	}
	buf_release(&text);
	if (ret)
		log_err(q->o->log, "cannot import '%s': %s", q->o->input, errno_text(ret));
	ret = ret ?: pft_machine_finish(&p, m, q->o->output);
	q->result->events = r.events;
	q->result->cut = r.cut;
	if (p.n_machines)
		pft_machine_free(p.machines[0]);
	return ret;
}

int qemu_import(const struct qemu_opts *o, struct qemu_result *r)
{
	struct qemu q = { .o = o, .result = r };
	struct cursor c;
	int ret;

	*r = (struct qemu_result){ 0 };
	ret = outfile_check(o->output, o->log);
	if (ret)
		return ret;
	ret = read_file(o->input, QEMU_FILE_MAX, &q.file);
	if (ret) {
		log_err(o->log, "cannot read '%s': %s", o->input, errno_text(ret));
		goto out;
	}
	c = cursor_at(q.file.data, q.file.len);
	q.simple = cursor_u64(&c) == SIMPLE_HEADER && cursor_u64(&c) == SIMPLE_MAGIC && !c.bad;
	ret = q.simple ? simple_read(&q) : log_read(&q);
	if (ret == -ENOMEM)
		log_err(o->log, "cannot import '%s': %s", o->input, errno_text(ret));
	if (!ret && q.n)
		ret = qemu_write(&q);
	else if (!ret && q.timeless)
		ret = log_fail(o->log, -ENODATA,
			       "the events in '%s' have no times: start QEMU with -msg timestamp=on",
			       o->input);
	else if (!ret)
		ret = log_fail(o->log, q.simple ? -ENODATA : -EBADMSG, "'%s' has no trace events of QEMU",
			       o->input);
out:
	free(q.events);
	free(q.names);
	ring_close(q.rings);
	free(q.guest);
	buf_release(&q.file);
	return ret;
}
