// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file of QEMU's trace events: read whole, put into the order of time (its threads write past each other),
 * written. */
#include "import/qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "dat/format.h"
#include "import/qemu-priv.h"
#include "util/array.h"
#include "util/outfile.h"

#define QEMU_FILE_MAX (1u << 30) /* bytes; it is held in memory */
#define NS_PER_S      UINT64_C(1000000000)

/* Of the simple back end, version 4. */
#define SIMPLE_HEADER  UINT64_MAX
#define SIMPLE_MAGIC   UINT64_C(0xf2b177cb0aa429b4)
#define SIMPLE_VERSION 4
#define SIMPLE_DROPPED (UINT64_MAX - 1)
#define SIMPLE_IDS     65536 /* QEMU has some thousands, counted from 0 */
enum { SIMPLE_MAPPING, SIMPLE_EVENT };

struct simple_name {
	const char *name; /* NULL: not told */
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
};

/* ---- lines ---------------------------------------------------------------------------------- */

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
	e->ts = sec * NS_PER_S + usec * 1000;
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
	e->ts = (uint64_t)timegm(&tm) * NS_PER_S + v[6] * 1000;
	return e->ts < INT64_MAX && cursor_accept(c, ' ');
}

static bool line_name(struct cursor *c, struct qemu_event *e)
{
	e->name = (const char *)c->p;
	while (cursor_peek(c) >= 0 && is_word_char((char)cursor_peek(c)))
		c->p++;
	e->name_len = (size_t)((const char *)c->p - e->name);
	e->args = c->p;
	e->args_len = cursor_left(c);
	return e->name_len && e->name_len < 64 && (!e->args_len || *e->args == ' ');
}

static bool line_event(const char *line, size_t len, struct qemu_event *e)
{
	static bool (*const heads[])(struct cursor *, struct qemu_event *) = { line_head_pid, line_head_iso };

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		struct cursor c = cursor_at(line, len);

		*e = (struct qemu_event){ 0 };
		if (heads[i](&c, e))
			return line_name(&c, e);
	}
	return false;
}

static bool is_timeless(const char *line, size_t len)
{
	struct cursor c = cursor_at(line, len);
	struct qemu_event e;

	return line_name(&c, &e) && qemu_is_known(e.name, e.name_len);
}

static int log_read(struct qemu *q)
{
	struct cursor c = cursor_at(q->file.data, q->file.len);
	const char *line;
	size_t len;

	q->result->clock = "realtime";
	while (cursor_line(&c, &line, &len)) {
		struct qemu_event e;

		len -= len && line[len - 1] == '\r';
		if (line_event(line, len, &e)) {
			if (array_push(&q->events, &q->n, &e, sizeof(e)))
				return -ENOMEM;
			continue;
		}
		q->result->passed += len != 0;
		q->timeless += is_timeless(line, len);
	}
	return 0;
}

/* ---- the simple back end ------------------------------------------------------------------------ */

static bool is_simple(const struct qemu *q)
{
	struct cursor c = cursor_at(q->file.data, q->file.len);

	return cursor_u64(&c) == SIMPLE_HEADER && cursor_u64(&c) == SIMPLE_MAGIC && !c.bad;
}

static int simple_mapping(struct qemu *q, struct cursor *c)
{
	uint64_t id = cursor_u64(c);
	uint32_t len = cursor_u32(c);
	const char *name = cursor_take(c, len);

	if (!name || id >= SIMPLE_IDS)
		return -EBADMSG;
	q->names[id] = (struct simple_name){ .name = name, .len = len };
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
	if (c.bad || version != SIMPLE_VERSION) {
		log_err(q->o->log, "'%s' is version %llu of QEMU's simple back end: only 4 can be read",
			q->o->input, (unsigned long long)version);
		return -EPROTO;
	}
	while (!ret && cursor_left(&c)) {
		uint64_t type = cursor_u64(&c);

		ret = c.bad		       ? -EBADMSG
		      : type == SIMPLE_MAPPING ? simple_mapping(q, &c)
		      : type == SIMPLE_EVENT   ? simple_event(q, &c)
					       : -EBADMSG;
	}
	if (ret == -EBADMSG)
		log_warn(q->o->log, "'%s' ends with what is no whole record: what is before it was read",
			 q->o->input);
	return ret == -EBADMSG ? 0 : ret;
}

/* ---- the file ------------------------------------------------------------------------------------- */

static int event_order(const void *a, const void *b)
{
	const struct qemu_event *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->args < y->args ? -1 : x->args > y->args; /* as they came */
}

static int write_lost(struct qemu *q, struct pft_machine *m, struct pft_source *s, uint64_t lost)
{
	int ret;
	struct pft_cpu *c = pft_cpu(m, s, false, 0, &ret);

	q->result->lost += lost;
	return c ? page_write_lost(&c->w, lost) : ret;
}

static int write_event(struct qemu *q, struct pft *p, struct pft_machine *m, struct pft_source *s,
		       const struct qemu_event *e, struct buf *text)
{
	struct pft_item item = { .ts = e->ts, .pid = e->pid ? (int32_t)e->pid : -1 };
	struct pft_value v[PFT_VALUES];
	bool lost[2] = { 0 };
	size_t n;

	if (e->lost)
		return write_lost(q, m, s, e->lost);
	n = qemu_values(e, q->simple, &item, v, text);
	q->result->doorbells += qemu_is_doorbell(&item);
	return n ? pft_task_name(m, e->pid, "qemu", 4, true) ?: pft_event(p, m, s, 0, &item, v, n, lost)
		 : -ENOMEM;
}

static int write_events(struct qemu *q, struct pft *p)
{
	struct buf text = { 0 };
	struct pft_source *s;
	struct pft_machine *m;
	int ret;

	m = pft_machine(p, 0, &ret);
	s = m ? pft_source(p, m, 0, &ret) : NULL;
	ret = s ? qemu_describe(s) : ret;
	for (size_t i = 0; i < q->n && !ret; i++)
		ret = write_event(q, p, m, s, &q->events[i], &text);
	buf_release(&text);
	if (ret)
		log_err(q->o->log, "cannot import '%s': %s", q->o->input, errno_text(ret));
	return ret ?: pft_machine_finish(p, m, q->o->output);
}

static int qemu_write(struct qemu *q)
{
	struct pftrace_opts o = { .input = q->o->input, .output = q->o->output, .log = q->o->log };
	struct pftrace_result r = { 0 };
	struct pft p = { .o = &o, .result = &r, .clock = q->result->clock };
	int ret;

	array_sort(q->events, q->n, sizeof(*q->events), event_order);
	ret = write_events(q, &p);
	q->result->events = r.events;
	q->result->cut = r.cut;
	if (p.n_machines)
		pft_machine_free(p.machines[0]);
	return ret;
}

static int qemu_none(const struct qemu *q)
{
	if (q->timeless)
		log_err(q->o->log, "the events in '%s' have no times: start QEMU with -msg timestamp=on",
			q->o->input);
	else
		log_err(q->o->log, "'%s' has no trace events of QEMU", q->o->input);
	return q->simple || q->timeless ? -ENODATA : -EBADMSG;
}

static int qemu_open(struct qemu *q)
{
	const struct qemu_opts *o = q->o;
	struct stat in, out;
	int ret;

	if (!stat(o->input, &in) && !stat(o->output, &out) && same_file(&in, &out)) {
		log_err(o->log, "'%s' is the input: name another file with -o", o->output);
		return -EINVAL;
	}
	ret = outfile_check(o->output, o->log);
	if (ret)
		return ret;
	ret = read_file(o->input, QEMU_FILE_MAX, &q->file);
	if (ret)
		log_err(o->log, "cannot read '%s': %s", o->input, errno_text(ret));
	return ret;
}

int qemu_import(const struct qemu_opts *o, struct qemu_result *r)
{
	struct qemu q = { .o = o, .result = r };
	int ret;

	*r = (struct qemu_result){ 0 };
	ret = qemu_open(&q);
	if (ret)
		goto out;
	q.simple = is_simple(&q);
	ret = q.simple ? simple_read(&q) : log_read(&q);
	if (ret == -ENOMEM)
		log_err(o->log, "cannot import '%s': %s", o->input, errno_text(ret));
	if (ret)
		goto out;
	ret = q.n ? qemu_write(&q) : qemu_none(&q);
out:
	free(q.events);
	free(q.names);
	buf_release(&q.file);
	return ret;
}
