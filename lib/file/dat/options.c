// SPDX-License-Identifier: LGPL-2.1-or-later
/* The options of a trace.dat that its writer is given, and the readers' side of our own. */
#include "file/dat/options.h"
#include "base/array.h"
#include "base/cursor.h"

#include <sys/utsname.h>

void dat_options_release(struct dat_options *o)
{
	for (size_t i = 0; i < o->n; i++)
		free((void *)o->v[i].data);
	free(o->v);
	*o = (struct dat_options){ 0 };
}

int dat_options_add(struct dat_options *o, uint16_t id, const void *data, size_t len)
{
	struct dat_option *v;
	void *copy;

	if (len > INT32_MAX)
		return -EINVAL;
	v = array_next(&o->v, o->n, sizeof(*v));
	copy = v ? malloc(len ? len : 1) : NULL;
	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, data, len);
	*v = (struct dat_option){ .id = id, .data = copy, .len = (uint32_t)len };
	o->n++;
	return 0;
}

int dat_options_add_text(struct dat_options *o, uint16_t id, const char *text)
{
	return dat_options_add(o, id, text, strlen(text) + 1);
}

/* Takes the text out of b, and b with it. */
static int add_text_of(struct dat_options *o, uint16_t id, struct buf *b)
{
	const char *text = buf_str(b);
	int ret = text ? dat_options_add_text(o, id, text) : -ENOMEM;

	buf_release(b);
	return ret;
}

int dat_options_add_clock(struct dat_options *o, const char *text)
{
	struct buf b = { 0 };

	buf_printf(&b, strchr(text, '[') ? "%s" : "[%s]", text);
	return add_text_of(o, DAT_TRACECLOCK, &b);
}

int dat_options_add_tsc2nsec(struct dat_options *o, uint32_t mult, uint32_t shift, uint64_t offset)
{
	struct {
		uint32_t mult, shift;
		uint64_t offset;
	} data = { mult, shift, offset };

	return dat_options_add(o, DAT_TSC2NSEC, &data, sizeof(data));
}

int dat_options_add_traceid(struct dat_options *o, uint64_t id)
{
	return dat_options_add(o, DAT_TRACEID, &id, sizeof(id));
}

int dat_options_add_uname(struct dat_options *o)
{
	struct buf b = { 0 };
	struct utsname u;

	if (uname(&u) < 0)
		return -errno;
	buf_printf(&b, "%s %s %s %s", u.sysname, u.nodename, u.release, u.machine);
	return add_text_of(o, DAT_UNAME, &b);
}

int dat_options_add_date(struct dat_options *o, int64_t offset_us)
{
	char text[32];

	snprintf(text, sizeof(text), "%s0x%llx", offset_us < 0 ? "-" : "",
		 (unsigned long long)(offset_us < 0 ? -(uint64_t)offset_us : (uint64_t)offset_us));
	return dat_options_add_text(o, DAT_DATE, text);
}

int dat_options_add_procmaps(struct dat_options *o, int pid, const char *command, const char *maps,
			     size_t len)
{
	struct cursor c = cursor_at(maps, len);
	struct buf all = { 0 }, list = { 0 };
	unsigned int n = 0;
	const char *line;
	size_t line_len;
	int ret = 0;

	/* "start-end perms offset dev inode   /path": -> "start end /path\n" when there is a path */
	while (cursor_line(&c, &line, &line_len)) {
		unsigned long long start, end;
		char text[4096]; /* the longest line that stock reads */
		int path = 0;

		/* a longer line would cost the whole option; what we write is shorter */
		if (line_len >= sizeof(text))
			continue;
		memcpy(text, line, line_len);
		text[line_len] = '\0';
		if (sscanf(text, "%llx-%llx %*s %*s %*s %*s %n", &start, &end, &path) != 2 || !path ||
		    text[path] != '/')
			continue;
		buf_printf(&list, "%llx %llx %s\n", start, end, text + path);
		n++;
	}
	if (n) {
		/* stock reads one word, and drops the whole option if it is missing */
		buf_printf(&all, "%x %x %s\n", (unsigned int)pid, n, *command ? command : "-");
		buf_add(&all, list.data, list.len);
		ret = list.bad ? -ENOMEM : add_text_of(o, DAT_PROCMAPS, &all);
	}
	buf_release(&all);
	buf_release(&list);
	return ret;
}

/* ---- pauses ---- */

int pauses_add(struct pauses *p, uint64_t from, uint64_t to)
{
	struct pause one = { from, to };

	if (p->n && one.from < p->v[p->n - 1].to)
		one.from = p->v[p->n - 1].to;
	return one.from > to ? 0 : array_push(&p->v, &p->n, &one, sizeof(one));
}

void pauses_release(struct pauses *p)
{
	free(p->v);
	*p = (struct pauses){ 0 };
}

void pauses_encode(const struct pauses *p, const char *clock, struct buf *out)
{
	buf_add(out, clock, strlen(clock) + 1);
	for (size_t i = 0; i < p->n; i++) {
		buf_add(out, &p->v[i].from, sizeof(p->v[i].from));
		buf_add(out, &p->v[i].to, sizeof(p->v[i].to));
	}
}

int pauses_decode(const void *data, size_t len, struct pauses *out)
{
	size_t name = strnlen(data, len);
	struct cursor c = cursor_at((const uint8_t *)data + name + 1, name < len ? len - name - 1 : 0);
	int ret = name < len && !(cursor_left(&c) % sizeof(struct pause)) ? 0 : -EBADMSG;

	*out = (struct pauses){ 0 };
	while (!ret && cursor_left(&c)) {
		uint64_t from = cursor_u64(&c), to = cursor_u64(&c);
		bool sorted = from <= to && (!out->n || from >= out->v[out->n - 1].to);

		ret = sorted ? pauses_add(out, from, to) : -EBADMSG;
	}
	if (ret)
		pauses_release(out);
	return ret;
}

bool pauses_between(const struct pauses *p, uint64_t a, uint64_t b, size_t *next)
{
	while (*next < p->n && p->v[*next].to < a)
		++*next;
	return *next < p->n && p->v[*next].from <= b;
}

/* ---- wall ---- */

/* Times from 2116 on, and errors of years, make no sense; no sum of those below overflows. */
#define TIMES_MAX  (1ULL << 62)
#define ERRORS_MAX (1ULL << 60)
/* The kernel lets its clock drift by 500 ppm at most, and its maxerror grow by that (kernel/time/ntp.c). */
#define DRIFT_DIVISOR 2000

int wall_decode(const void *data, size_t len, struct wall *out)
{
	*out = (struct wall){ .n = len / sizeof(out->v[0]) };
	if (len % sizeof(out->v[0]) || !out->n || out->n > ARRAY_SIZE(out->v))
		goto bad;
	memcpy(out->v, data, len);
	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].trace >= TIMES_MAX || out->v[i].utc >= TIMES_MAX ||
		    out->v[i].slack >= ERRORS_MAX)
			goto bad;
	if (out->v[out->n - 1].trace >= out->v[0].trace)
		return 0;
bad:
	*out = (struct wall){ 0 };
	return -EBADMSG;
}

static uint64_t wall_error(const struct wall_sample *s, uint64_t distance)
{
	return s->max_error < ERRORS_MAX ? s->max_error + distance / DRIFT_DIVISOR : WALL_NO_ERROR;
}

uint64_t wall_at(const struct wall *w, uint64_t trace, uint64_t *bound)
{
	const struct wall_sample *a = &w->v[0], *b = &w->v[w->n - 1];
	int64_t first = (int64_t)(a->utc - a->trace), last = (int64_t)(b->utc - b->trace);
	uint64_t from_a, from_b, span = b->trace - a->trace;
	/* a clock that was set between the samples may have been so at any time */
	uint64_t moved = (uint64_t)(first > last ? first - last : last - first);

	*bound = UINT64_MAX;
	if (trace < a->trace || trace > b->trace)
		return trace + (uint64_t)(trace < a->trace ? first : last);
	from_a = wall_error(a, trace - a->trace);
	from_b = wall_error(b, b->trace - trace);
	if (w->n > 1 && (from_a != WALL_NO_ERROR || from_b != WALL_NO_ERROR))
		*bound = (a->slack > b->slack ? a->slack : b->slack) + moved +
			 (from_a < from_b ? from_a : from_b);
	if (span)
		first += (int64_t)((__int128)(last - first) * (int64_t)(trace - a->trace) / (int64_t)span);
	return trace + (uint64_t)first;
}
