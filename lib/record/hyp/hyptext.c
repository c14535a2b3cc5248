// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Records in the written form: their vCPU and reason; made of lines of the hypervisor's trace_pipe, of ids
 * without a format, or of Android's raw pages.
 */
#include "record/hyp/text-pattern.h"
#include "base/cursor.h"

#define LINE_MAX_LEN 16384
#define CPU_MAX	     65535
#define NSEC_PER_SEC 1000000000ull

static const struct hypevent *written_event(const struct hypevents *e, const uint8_t *data, size_t len)
{
	const size_t first = e->unknown_id - e->n;
	uint16_t id;

	if (len < sizeof(id))
		return NULL;
	memcpy(&id, data, sizeof(id));
	return id >= first && id - first < e->n ? &e->v[id - first] : NULL;
}

int hyp_record_vcpu(const struct hypevents *e, const uint8_t *data, size_t len)
{
	const struct hypevent *ev = written_event(e, data, len);
	int32_t vcpu = 0;

	if (ev && ev->vcpu_offset >= 0 && (size_t)ev->vcpu_offset + sizeof(vcpu) <= len)
		memcpy(&vcpu, data + ev->vcpu_offset, sizeof(vcpu));
	return vcpu;
}

const char *hyp_record_reason(const struct hypevents *e, const uint8_t *data, size_t len)
{
	const struct hypevent *ev = written_event(e, data, len);
	const struct event_field *f = ev && !ev->as_text ? event_format_field(&ev->fmt, "reason") : NULL;
	size_t at = f ? hyp_written_offset(&ev->fmt, f) : 0, number;

	if (!f || f->size != 1 || at >= len)
		return NULL;
	number = data[at];
	if (number < hyp_reasons_n)
		return hyp_reasons[number];
	number -= HYP_REASON_EXTRA;
	return number < e->extra_reasons.n ? e->extra_reasons.v[number] : NULL;
}

/* __data_loc: length in the upper half, offset in the record in the lower. */
static uint32_t data_loc(size_t offset, size_t len)
{
	return (uint32_t)len << 16 | (uint32_t)offset;
}

/* The host's common header, of no task. */
static void put_header(uint8_t *out, unsigned int id)
{
	const uint16_t type = (uint16_t)id;

	memset(out, 0, HYP_HEADER_SIZE);
	memcpy(out, &type, sizeof(type));
}

/* A C string; NUL bytes in the text become '?'. */
static void put_text(uint8_t *at, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		at[i] = text[i] ? (uint8_t)text[i] : '?';
	at[len] = 0;
}

/* As with the next one, the caller has the room: len + data_len + HYP_RECORD_EXTRA. */
static size_t hyp_put_unknown(const struct hypevents *e, int id, const char *text, size_t len,
			      const void *data, size_t data_len, uint8_t *out)
{
	const size_t text_at = HYP_HEADER_SIZE + 12, data_at = text_at + len + 1;
	const uint32_t body[] = { (uint32_t)id, data_loc(text_at, len + 1), data_loc(data_at, data_len) };

	put_header(out, e->unknown_id);
	memcpy(out + HYP_HEADER_SIZE, body, sizeof(body));
	put_text(out + text_at, text, len);
	if (data_len)
		memcpy(out + data_at, data, data_len);
	return data_at + data_len;
}

struct hyptext {
	struct hypevents *e;
	char line[LINE_MAX_LEN]; /* begun in an earlier chunk */
	size_t have;
	bool skip; /* the line is too long: nothing counts until its end */
	uint64_t bad;
	uint64_t *lost; /* by CPU */
	size_t n_lost;
	int (*rec)(void *ctx, const struct hyprecord *r);
	void *ctx;
	uint8_t out[HYP_RECORD_MAX];
};

struct hyptext *hyptext_new(struct hypevents *e)
{
	struct hyptext *t = calloc(1, sizeof(*t));

	if (t)
		t->e = e;
	return t;
}

void hyptext_free(struct hyptext *t)
{
	if (t)
		free(t->lost);
	free(t);
}

uint64_t hyptext_bad_lines(const struct hyptext *t)
{
	return t->bad;
}

uint64_t hyptext_pending_lost(const struct hyptext *t, unsigned int cpu)
{
	return cpu < t->n_lost ? t->lost[cpu] : 0;
}

static bool line_cpu(struct cursor *c, unsigned int *cpu)
{
	uint64_t v;

	if (!cursor_decimal(c, &v) || v > CPU_MAX)
		return false;
	*cpu = (unsigned int)v;
	return true;
}

/* "   80.929138": seconds, then exactly six digits. */
static bool text_time(struct cursor *c, uint64_t *ns)
{
	uint64_t sec, usec;

	while (c->p < c->end && *c->p == ' ')
		c->p++;
	if (!cursor_decimal(c, &sec) || !cursor_accept(c, '.') || cursor_decimal(c, &usec) != 6)
		return false;
	return !__builtin_mul_overflow(sec, (uint64_t)NSEC_PER_SEC, ns) &&
	       !__builtin_add_overflow(*ns, usec * 1000, ns);
}

static int emit(struct hyptext *t, struct hyprecord *r, size_t len)
{
	int ret;

	r->data = t->out;
	r->len = len;
	if (r->cpu < t->n_lost) {
		r->lost = t->lost[r->cpu];
		t->lost[r->cpu] = 0;
	}
	ret = t->rec(t->ctx, r);
	return ret < 0 ? ret : 0;
}

static int emit_unknown(struct hyptext *t, struct hyprecord *r, int id, const char *text, size_t len)
{
	t->bad++;
	if (len > HYP_TEXT_MAX)
		len = HYP_TEXT_MAX;
	return emit(t, r, hyp_put_unknown(t->e, id, text, len, NULL, 0, t->out));
}

/* -EBADMSG: the text is not what this event prints. */
static int fill_fields(struct hyptext *t, const struct hypevent *ev, const char *text, size_t len)
{
	struct pattern_reason reason;
	int n;

	if (!ev->from_text)
		return -EBADMSG;
	put_header(t->out, ev->id);
	memset(t->out + HYP_HEADER_SIZE, 0, ev->body_len);
	if (!hyptext_pattern_match(ev->pattern, &ev->fmt, text, len, t->out, &reason) ||
	    (reason.text && t->e->raw))
		return -EBADMSG;
	if (reason.text) {
		n = hypevents_reason(t->e, reason.text, reason.len);
		if (n < 0)
			return n == -ENOMEM ? n : -EBADMSG;
		t->out[hyp_written_offset(&ev->fmt, &ev->fmt.fields[reason.field])] = (uint8_t)n;
	}
	if (ev->vcpu_offset >= 0)
		memcpy(t->out + HYP_PID_OFFSET, t->out + ev->vcpu_offset, 4);
	return 0;
}

/* "[003]\t   80.929138: ..." */
static int event_line(struct hyptext *t, struct cursor c)
{
	struct hyprecord r = { 0 };
	struct cursor unknown;
	uint64_t id;
	const char *text, *space, *args;
	size_t len, name_len, args_len;
	const struct hypevent *ev;
	int ret;
	if (!cursor_word(&c, "[") || !line_cpu(&c, &r.cpu) || !cursor_word(&c, "]\t") ||
	    !text_time(&c, &r.ts) || !cursor_word(&c, ": ")) {
		t->bad++;
		return 0;
	}
	unknown = c;
	if (cursor_word(&unknown, "UNKNOWN id=") && cursor_decimal(&unknown, &id) && !cursor_left(&unknown) &&
	    id <= UINT16_MAX) /* and nothing else */
		return emit(t, &r, hyp_put_unknown(t->e, (int)id, "", 0, NULL, 0, t->out));
	/* after the time: "hyp_enter reason=hvc vcpu=0". */
	text = (const char *)c.p;
	len = cursor_left(&c);
	space = memchr(text, ' ', len);
	name_len = space ? (size_t)(space - text) : len;
	args = space ? space + 1 : text + len;
	args_len = (size_t)(text + len - args);
	ev = hypevents_by_name(t->e, text, name_len);
	if (!ev)
		return emit_unknown(t, &r, -1, text, len);
	if (ev->as_text) {
		const size_t text_at = HYP_HEADER_SIZE + 4;
		uint32_t loc;

		if (args_len > HYP_TEXT_MAX) { /* the rest counts as not understood */
			t->bad++;
			args_len = HYP_TEXT_MAX;
		}
		loc = data_loc(text_at, args_len + 1);
		put_header(t->out, ev->id);
		memcpy(t->out + HYP_HEADER_SIZE, &loc, sizeof(loc));
		put_text(t->out + text_at, args, args_len);
		return emit(t, &r, text_at + args_len + 1);
	}
	ret = fill_fields(t, ev, args, args_len);
	if (ret == -EBADMSG)
		return emit_unknown(t, &r, (int)ev->fmt.id, text, len);
	return ret ? ret : emit(t, &r, HYP_HEADER_SIZE + ev->body_len);
}

/* "CPU:3 [LOST 12 EVENTS]" */
static int lost_line(struct hyptext *t, struct cursor c)
{
	unsigned int cpu;
	uint64_t n;

	if (!line_cpu(&c, &cpu) || !cursor_word(&c, " [LOST ") || !cursor_decimal(&c, &n) ||
	    !cursor_word(&c, " EVENTS]") || cursor_left(&c)) {
		t->bad++;
		return 0;
	}
	if (array_reach(&t->lost, &t->n_lost, (size_t)cpu + 1, sizeof(*t->lost)))
		return -ENOMEM;
	if (__builtin_add_overflow(t->lost[cpu], n, &t->lost[cpu]))
		t->lost[cpu] = UINT64_MAX;
	return 0;
}

/* Part of a line; `whole`: its end came. */
static int take_part(struct hyptext *t, const char *part, size_t len, bool whole)
{
	bool skip = t->skip;
	size_t have = t->have;
	struct cursor c;

	if (!skip && have + len > LINE_MAX_LEN) {
		t->bad++;
		skip = true;
	}
	t->skip = skip && !whole;
	t->have = 0;
	if (skip)
		return 0;
	if (!whole || have)
		memcpy(t->line + have, part, len);
	if (!whole)
		t->have = have + len;
	c = cursor_at(have ? t->line : part, have + len);
	if (!whole || !cursor_left(&c))
		return 0;
	return cursor_word(&c, "CPU:") ? lost_line(t, c) : event_line(t, c);
}

int hyptext_feed(struct hyptext *t, const void *data, size_t len,
		 int (*rec)(void *ctx, const struct hyprecord *r), void *ctx)
{
	const char *p = data, *end = p + len;
	int ret = 0;

	t->rec = rec;
	t->ctx = ctx;
	while (!ret && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		ret = take_part(t, p, (size_t)((nl ? nl : end) - p), nl);
		p = nl ? nl + 1 : end;
	}
	return ret;
}

static bool is_dynamic(const struct event_field *f)
{
	return !strncmp(f->type, "__data_loc", 10) && f->size == 4;
}

/* Offsets in __data_loc count from the record's start, which has moved. */
static void move_dynamic(const struct event_format *f, uint8_t *out)
{
	const uint32_t moved = HYP_HEADER_SIZE - hyp_kernel_header(f);

	for (size_t i = 0; i < f->n_fields; i++) {
		uint8_t *at = out + hyp_written_offset(f, &f->fields[i]);
		uint32_t loc;

		if (!is_dynamic(&f->fields[i]))
			continue;
		memcpy(&loc, at, sizeof(loc));
		loc = (loc & 0xffff0000) | ((loc + moved) & 0xffff);
		memcpy(at, &loc, sizeof(loc));
	}
}

ssize_t hypraw_record(const struct hypevents *e, const void *data, size_t len, uint8_t *out, size_t size)
{
	const struct hypevent *ev;
	uint16_t id;

	if (len < sizeof(id))
		return -EBADMSG;
	if (size < HYP_RECORD_EXTRA || len > size - HYP_RECORD_EXTRA)
		return -EMSGSIZE;
	memcpy(&id, data, sizeof(id));
	ev = hypevents_by_hyp_id(e, id);
	if (ev) {
		size_t header = hyp_kernel_header(&ev->fmt), body = ev->body_len;

		if (len < header || len - header < body)
			return -EBADMSG;
		/* a record may be longer than its fields where one of them has no fixed size */
		for (size_t i = 0; i < ev->fmt.n_fields; i++)
			if (!ev->fmt.fields[i].size || is_dynamic(&ev->fmt.fields[i]))
				body = len - header;
		put_header(out, ev->id);
		memcpy(out + HYP_HEADER_SIZE, (const uint8_t *)data + header, body);
		if (ev->vcpu_offset >= 0)
			memcpy(out + HYP_PID_OFFSET, out + ev->vcpu_offset, 4);
		move_dynamic(&ev->fmt, out);
		return (ssize_t)(HYP_HEADER_SIZE + body);
	}
	return (ssize_t)hyp_put_unknown(e, id, "", 0, (const uint8_t *)data + 2, len - 2, out);
}
