// SPDX-License-Identifier: LGPL-2.1-or-later
/* Offset tables: applied to a time stamp, made, and the bytes of TIME_SHIFT and GUEST. */
#include "file/dat/offset.h"
#include "base/array.h"
#include "base/cursor.h"

#define LONE_KNOT_NS 1000000000ull
#define KNOT_BYTES   24 /* time, offset, scaling */

bool clock_in_ticks(const char *clock)
{
	return !strcmp(clock, "counter") || !strcmp(clock, "x86-tsc") || !strcmp(clock, "ppc-tb");
}

uint64_t offset_apply(const struct offset_table *t, uint32_t flags, uint64_t ts)
{
	const struct offset_point *low = t->v;
	const struct offset_point *max;
	uint64_t cor;

	if (!t->n)
		return ts;
	if (t->n == 1)
		return ts + (uint64_t)t->v[0].offset;
	/* the last offset point not later than ts, but never the very last one */
	low += array_lower_bound(t->v + 1, t->n - 2, sizeof(*t->v), u64_not_above, &ts);
	/* Between two points (or beyond them): 64-bit wrapping and rounding as stock's. */
	max = low + 1;
	cor = (uint64_t)low->offset;
	if (flags & OFFSET_INTERPOLATE) {
		int64_t delta = (int64_t)(max->time - low->time);
		int64_t rise = (int64_t)((ts - low->time) * ((uint64_t)max->offset - (uint64_t)low->offset));

		rise = (int64_t)((uint64_t)rise + (uint64_t)(delta / 2));
		if (delta && !(delta == -1 && rise == INT64_MIN))
			cor += (uint64_t)(rise / delta);
	}
	ts *= (uint64_t)low->scaling;
	return (low->frac < 64 ? ts >> low->frac : 0) + cor;
}

uint64_t offset_shift_apply(const struct offset_shift *s, uint32_t cpu, uint64_t ts)
{
	return cpu < s->n_cpus ? offset_apply(&s->cpus[cpu], s->flags, ts) : ts;
}

void offset_shift_release(struct offset_shift *s)
{
	for (uint32_t i = 0; i < s->n_cpus && s->cpus; i++)
		free(s->cpus[i].v);
	free(s->cpus);
	free(s->bounds);
	*s = (struct offset_shift){ 0 };
}

int offset_shift_fill(struct offset_shift *s, uint64_t peer, uint32_t n_cpus, const struct offset_point *v,
		      uint32_t n)
{
	*s = (struct offset_shift){ .peer = peer, .flags = OFFSET_INTERPOLATE };
	if (!n || !n_cpus)
		return -EINVAL;
	for (uint32_t i = 1; i < n; i++)
		if (v[i].time <= v[i - 1].time)
			return -EINVAL;
	s->cpus = calloc(n_cpus, sizeof(*s->cpus));
	if (!s->cpus)
		return -ENOMEM;
	s->n_cpus = n_cpus;
	for (uint32_t i = 0; i < n_cpus; i++) {
		struct offset_table *t = &s->cpus[i];

		t->n = n == 1 ? 2 : n;
		t->v = calloc(t->n, sizeof(*t->v));
		if (!t->v) {
			offset_shift_release(s);
			return -ENOMEM;
		}
		memcpy(t->v, v, n * sizeof(*v));
		if (n == 1) {
			t->v[1] = v[0];
			t->v[1].time += LONE_KNOT_NS;
		}
	}
	return 0;
}

int offset_shift_set_bounds(struct offset_shift *s, const uint64_t *bounds, uint32_t n, const char *method,
			    const char *class)
{
	uint64_t *copy = calloc(n ? n : 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (n)
		memcpy(copy, bounds, n * sizeof(*copy));
	free(s->bounds);
	s->bounds = copy;
	s->n_bounds = n;
	snprintf(s->method, sizeof(s->method), "%s", method);
	snprintf(s->class, sizeof(s->class), "%s", class);
	return 0;
}

/* The scaling of a bound: the mark, and what the words are in these tables. */
#define BOUND_MARK 0x6874626f756e0000 /* "htboun", method, class */

static const char *const methods[] = { "", "counter", "hyp windows", "kvm windows", "ping" };
static const char *const classes[] = { "none", "ping", "soft", "hard" };

static uint64_t word_index(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(words[i], word))
			return i;
	return 0;
}

/* As the last CPU's table, which no event belongs to: stock reads it like the others. */
static struct offset_table bounds_table(const struct offset_shift *s)
{
	const struct offset_table *t = &s->cpus[0];
	struct offset_table out = { .v = calloc(t->n, sizeof(*out.v)), .n = t->n };
	uint64_t mark = BOUND_MARK | word_index(methods, ARRAY_SIZE(methods), s->method) << 8 |
			word_index(classes, ARRAY_SIZE(classes), s->class);

	for (uint32_t k = 0; k < t->n && out.v; k++) {
		uint64_t bound = s->bounds[k < s->n_bounds ? k : s->n_bounds - 1];

		out.v[k] = (struct offset_point){ .time = t->v[k].time,
						  .scaling = (int64_t)mark,
						  .offset = bound > INT64_MAX ? INT64_MAX : (int64_t)bound };
	}
	return out;
}

void offset_shift_encode(const struct offset_shift *s, struct buf *out)
{
	bool bounds = s->n_bounds && s->n_cpus && s->cpus[0].n;
	struct offset_table extra = bounds ? bounds_table(s) : (struct offset_table){ 0 };
	uint32_t n_cpus = s->n_cpus + bounds;

	out->bad |= bounds && !extra.v;
	buf_add(out, &s->peer, sizeof(s->peer));
	buf_add(out, &s->flags, sizeof(s->flags));
	buf_add(out, &n_cpus, sizeof(n_cpus));
	for (uint32_t i = 0; i < n_cpus && !out->bad; i++) {
		const struct offset_table *t = i < s->n_cpus ? &s->cpus[i] : &extra;

		buf_add(out, &t->n, sizeof(t->n));
		for (uint32_t k = 0; k < t->n; k++)
			buf_add(out, &t->v[k].time, 8);
		for (uint32_t k = 0; k < t->n; k++)
			buf_add(out, &t->v[k].offset, 8);
		for (uint32_t k = 0; k < t->n; k++)
			buf_add(out, &t->v[k].scaling, 8);
	}
	/* the fractions of all come last: files of trace-cmd 2.9 have none */
	for (uint32_t i = 0; i < n_cpus && !out->bad; i++) {
		const struct offset_table *t = i < s->n_cpus ? &s->cpus[i] : &extra;

		for (uint32_t k = 0; k < t->n; k++)
			buf_add(out, &t->v[k].frac, 8);
	}
	free(extra.v);
}

/* Takes the bounds' table away again. */
static int take_bounds(struct offset_shift *s)
{
	const struct offset_table *t = s->n_cpus > 1 ? &s->cpus[s->n_cpus - 1] : NULL;
	uint64_t mark = t && t->n ? (uint64_t)t->v[0].scaling : 0;

	if ((mark & ~0xffffull) != BOUND_MARK)
		return 0;
	s->bounds = calloc(t->n, sizeof(*s->bounds));
	if (!s->bounds)
		return -ENOMEM;
	s->n_bounds = t->n;
	for (uint32_t k = 0; k < t->n; k++)
		s->bounds[k] = t->v[k].offset >= 0 && t->v[k].offset < INT64_MAX ? (uint64_t)t->v[k].offset
										 : UINT64_MAX;
	mark = (mark >> 8 & 0xff) < ARRAY_SIZE(methods) ? mark : BOUND_MARK;
	strcpy(s->method, methods[mark >> 8 & 0xff]);
	strcpy(s->class, classes[(mark & 0xff) < ARRAY_SIZE(classes) ? mark & 0xff : 0]);
	free(t->v);
	s->n_cpus--;
	return 0;
}

static int decode_table(struct cursor *c, struct offset_table *t)
{
	uint32_t n = cursor_u32(c);

	if (c->bad || n > cursor_left(c) / KNOT_BYTES)
		return -EBADMSG;
	t->v = calloc(n ? n : 1, sizeof(*t->v));
	if (!t->v)
		return -ENOMEM;
	t->n = n;
	for (uint32_t k = 0; k < n; k++)
		t->v[k].time = cursor_u64(c);
	for (uint32_t k = 0; k < n; k++)
		t->v[k].offset = (int64_t)cursor_u64(c);
	for (uint32_t k = 0; k < n; k++)
		t->v[k].scaling = (int64_t)cursor_u64(c);
	return 0;
}

static int decode_shift(struct cursor *c, struct offset_shift *s)
{
	uint32_t n;

	s->peer = cursor_u64(c);
	s->flags = cursor_u32(c);
	n = cursor_u32(c);
	if (c->bad || n > cursor_left(c) / 4)
		return -EBADMSG;
	s->cpus = calloc(n ? n : 1, sizeof(*s->cpus));
	if (!s->cpus)
		return -ENOMEM;
	s->n_cpus = n;
	for (uint32_t i = 0; i < n; i++) {
		int ret = decode_table(c, &s->cpus[i]);

		if (ret)
			return ret;
	}
	if (cursor_left(c))
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; k < s->cpus[i].n; k++)
				s->cpus[i].v[k].frac = cursor_u64(c);
	for (uint32_t i = 0; i < n; i++) {
		struct offset_table *t = &s->cpus[i];
		uint32_t kept = 0;

		qsort(t->v, t->n, sizeof(*t->v), compare_u64);
		for (uint32_t k = 0; k < t->n; k++)
			if (!k || t->v[k].time != t->v[kept - 1].time)
				t->v[kept++] = t->v[k];
		t->n = kept;
	}
	return c->bad ? -EBADMSG : take_bounds(s);
}

int offset_shift_decode(const void *data, size_t len, struct offset_shift *s)
{
	struct cursor c = cursor_at(data, len);
	int ret;

	*s = (struct offset_shift){ 0 };
	ret = decode_shift(&c, s);
	if (ret)
		offset_shift_release(s);
	return ret;
}

void offset_guest_release(struct offset_guest *g)
{
	free(g->name);
	free(g->vcpus);
	*g = (struct offset_guest){ 0 };
}

void offset_guest_encode(const struct offset_guest *g, struct buf *out)
{
	buf_add(out, g->name, strlen(g->name) + 1);
	buf_add(out, &g->trace_id, sizeof(g->trace_id));
	buf_add(out, &g->n, sizeof(g->n));
	buf_add(out, g->vcpus, g->n * sizeof(*g->vcpus));
}

int offset_guest_decode(const void *data, size_t len, struct offset_guest *g)
{
	struct cursor c = cursor_at(data, len);
	const char *name = cursor_str(&c);
	int ret;

	*g = (struct offset_guest){ 0 };
	g->trace_id = cursor_u64(&c);
	g->n = cursor_u32(&c);
	ret = c.bad || g->n > cursor_left(&c) / sizeof(*g->vcpus) ? -EBADMSG : 0;
	g->name = ret ? NULL : strdup(name);
	g->vcpus = ret ? NULL : calloc(g->n ? g->n : 1, sizeof(*g->vcpus));
	if (!g->name || !g->vcpus) {
		offset_guest_release(g);
		return ret ?: -ENOMEM;
	}
	memcpy(g->vcpus, c.p, g->n * sizeof(*g->vcpus));
	return 0;
}
