// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pairs the begins and ends that programs mark. */
#include "spans/marks.h"

#define LANES_ALL  ((1u << MARKS_OPEN) - 1)
#define ANY_BUFFER UINT32_MAX

static bool mark_source_same(const void *sources, size_t i, const void *mark)
{
	const struct mark_source *s = (const struct mark_source *)sources + i;
	const struct mark *p = mark;

	return s->source == p->source && s->machine == p->machine;
}

/* *index: MARKS_NO_SOURCE: there are too many, or another buffer has its marks. */
static int mark_source_of(struct marks *m, const struct mark *p, size_t *index)
{
	const struct mark_source new = { .source = p->source, .machine = p->machine, .buffer = p->buffer };
	uint32_t hash = map_hash(p->source * 31 + p->machine);

	*index = map_find(&m->by_source, hash, mark_source_same, m->v, p);
	if (*index != MAP_NONE) {
		*index = m->v[*index].buffer == p->buffer ? *index : MARKS_NO_SOURCE;
		return 0;
	}
	if (m->n == MARKS_SOURCES)
		return 0;
	*index = m->n;
	return map_push(&m->by_source, hash, &m->v, &m->n, &new, sizeof(new));
}

/* The mark at that place is open no more. */
static void mark_give(struct marks *m, const struct mark_place *at, enum span_end end, const struct mark *by,
		      struct span *done)
{
	const struct mark *begin = &m->v[at->source].open[at->lane];

	m->v[at->source].is_open &= ~(1u << at->lane);
	*done = (struct span){ .from = begin->ts,
			       .to = end == SPAN_PAIRED ? by->ts : begin->ts,
			       .why = begin->name,
			       .first = begin->row,
			       .last = by->row,
			       .detail = begin->tag,
			       .machine = begin->machine,
			       .cpu = begin->cpu,
			       .pid = begin->pid,
			       .kind = SPAN_MARK,
			       .end = end };
}

/* Without a free lane so many ends were lost that the first one's is taken for lost, too. */
static unsigned int mark_lane_free(const struct mark_source *s)
{
	return s->is_open == LANES_ALL ? 0 : (unsigned int)__builtin_ctz(~s->is_open);
}

/* The latest that the end may belong to. */
static bool mark_lane_of(const struct mark_source *s, const struct mark *end, bool own, unsigned int *lane)
{
	bool found = false;

	for (unsigned int i = 0; i < MARKS_OPEN; i++) {
		const struct mark *b = &s->open[i];

		if (!(s->is_open & 1u << i) || b->id != end->id ||
		    ((!own || b->id == MARK_NO_ID) && b->name != end->name))
			continue;
		if (!found || b->ts > s->open[*lane].ts)
			*lane = i;
		found = true;
	}
	return found;
}

/* Finds the begin, in its source or in another one of the same process. */
static bool mark_begin_of(const struct marks *m, const struct mark *end, struct mark_place *at)
{
	if (mark_lane_of(&m->v[at->source], end, true, &at->lane))
		return true;
	for (size_t i = 0; i < m->n && end->id != MARK_NO_ID; i++)
		if (m->v[i].machine == end->machine && m->v[i].buffer == end->buffer &&
		    mark_lane_of(&m->v[i], end, false, &at->lane)) {
			at->source = i;
			return true;
		}
	return false;
}

int marks_take(struct marks *m, const struct mark *p, struct mark_place *at, struct span *done)
{
	struct mark_source *s;
	int ret = mark_source_of(m, p, &at->source);

	if (ret || at->source == MARKS_NO_SOURCE)
		return ret;
	s = &m->v[at->source];
	if (p->begins) {
		at->lane = mark_lane_free(s);
		ret = s->is_open >> at->lane & 1;
		if (ret)
			mark_give(m, at, SPAN_LOST, p, done);
		s->open[at->lane] = *p;
		s->is_open |= 1u << at->lane;
		return ret;
	}
	if (mark_begin_of(m, p, at)) {
		bool back = p->ts < m->v[at->source].open[at->lane].ts;

		mark_give(m, at, back ? SPAN_LOST : SPAN_PAIRED, p, done);
		return 1;
	}
	at->lane = mark_lane_free(s);
	*done = (struct span){
		.from = p->ts, .to = p->ts, .why = p->name, .kind = SPAN_MARK, .end = SPAN_BEGUN
	};
	return 1;
}

/* The next one that is open, of that buffer by its name alone. */
static bool marks_open_next(struct marks *m, uint32_t buffer, enum span_end end, struct mark_place *at,
			    struct span *done)
{
	for (; at->source < m->n; at->source++, at->lane = 0) {
		const struct mark_source *s = &m->v[at->source];

		if (buffer != ANY_BUFFER && s->buffer != buffer)
			continue;
		for (; s->is_open && at->lane < MARKS_OPEN; at->lane++) {
			const struct mark *b = &s->open[at->lane];

			if (!(s->is_open & 1u << at->lane) || (buffer != ANY_BUFFER && b->id != MARK_NO_ID))
				continue;
			mark_give(m, at, end, b, done);
			return true;
		}
	}
	return false;
}

bool marks_lost(struct marks *m, uint32_t buffer, struct mark_place *at, struct span *done)
{
	return marks_open_next(m, buffer, SPAN_LOST, at, done);
}

bool marks_finish(struct marks *m, struct mark_place *at, struct span *done)
{
	return marks_open_next(m, ANY_BUFFER, SPAN_UNENDED, at, done);
}

void marks_release(struct marks *m)
{
	free(m->v);
	map_release(&m->by_source);
	*m = (struct marks){ 0 };
}

uint64_t mark_name(const char *name, size_t len)
{
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3;
	return h;
}

enum mark_kind mark_line(const char *text, size_t len, struct mark_text *out)
{
	len = strnlen(text, len);
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (crosvm_line_parse(text, len, &out->crosvm))
		return MARK_CROSVM;
	return mark_event_parse(text, len, &out->event) ? MARK_GUEST : MARK_NONE;
}

/* Other fields than numbers are not read. */
static struct field_load marks_number(struct tep_event *e, const char *name)
{
	struct field_load l = field_load(tep_find_field(e, name));

	return l.kind == FIELD_NUMBER ? l : (struct field_load){ 0 };
}

struct marks_fields marks_fields(struct tep_event *e)
{
	struct marks_fields f = { .client = marks_number(e, "client"),
				  .guest = field_load(tep_find_field(e, "guest")) };
	char name[16];

	for (; f.n_args < MARK_ARGS_MAX; f.n_args++) {
		snprintf(name, sizeof(name), "arg%zu", f.n_args + 1);
		f.arg[f.n_args] = marks_number(e, name);
		if (f.arg[f.n_args].kind != FIELD_NUMBER)
			break;
	}
	return f;
}

bool marks_load(const struct marks_fields *f, const void *record, size_t len, struct mark_event *out,
		const char **guest, size_t *guest_len)
{
	const uint8_t *text;

	*out = (struct mark_event){ .has_client = f->client.kind == FIELD_NUMBER, .n_args = f->n_args };
	if (out->has_client && !field_load_number(&f->client, record, len, &out->client))
		return false;
	for (size_t i = 0; i < f->n_args; i++)
		if (!field_load_number(&f->arg[i], record, len, &out->arg[i]))
			return false;
	field_load_bytes(&f->guest, record, len, &text, guest_len);
	*guest = (const char *)text;
	*guest_len = strnlen(*guest, *guest_len);
	return f->n_args > 0;
}
