// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs for events' texts at work: one piece after the other, each with its number or
 * its string of a record. */
#include "read/text.h"

/*
 * Loads a number of 1, 2, 4 or 8 bytes; of any other size it is 0, as to libtraceevent. Bytes after the
 * record's end are zeros.
 */
static uint64_t text_load(const struct text_record *r, size_t at, size_t n)
{
	uint64_t v = 0;

	if (!n || n > sizeof(v) || n & (n - 1))
		return 0;
	if (at + sizeof(v) <= r->len)
		memcpy(&v, r->data + at, sizeof(v));
	else if (at < r->len)
		memcpy(&v, r->data + at, r->len - at);
	return v & UINT64_MAX >> (64 - 8 * n);
}

/* The offset of a place's bytes in a record; *len: their number, 0 when the record does not have them. */
static size_t text_at(const struct text_place *p, const struct text_record *r, uint32_t *len)
{
	uint32_t offset, n;
	uint64_t loc;

	*len = p->size;
	if (!p->dynamic)
		return p->offset;
	*len = 0;
	if (p->offset + p->size > r->size)
		return 0;
	loc = text_load(r, p->offset, p->size);
	offset = loc & UINT16_MAX;
	n = p->size == 2 ? r->size - offset : loc >> 16 & UINT16_MAX;
	if (offset + n <= r->size)
		*len = n;
	if (offset > r->size)
		offset = 0;
	return offset + (p->relative ? p->offset + p->size : 0);
}

static uint64_t text_eval_of_two(enum text_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case TEXT_NOT:
		return !b;
	case TEXT_INVERT:
		return ~b;
	case TEXT_OR:
		return a | b;
	case TEXT_LOGICAL_OR:
		return a || b;
	case TEXT_AND:
		return a & b;
	case TEXT_LOGICAL_AND:
		return a && b;
	case TEXT_LESS:
		return a < b;
	case TEXT_LESS_EQUAL:
		return a <= b;
	case TEXT_GREATER:
		return a > b;
	case TEXT_GREATER_EQUAL:
		return a >= b;
	case TEXT_EQUAL:
		return a == b;
	case TEXT_UNEQUAL:
		return a != b;
	case TEXT_SHIFT_LEFT: /* by as many bits as the processor takes */
		return a << (b & 63);
	case TEXT_SHIFT_RIGHT:
		return a >> (b & 63);
	case TEXT_SUBTRACT:
		return a - b;
	case TEXT_ADD:
		return a + b;
	case TEXT_DIVIDE:
		return b ? a / b : 0;
	case TEXT_MODULO:
		return b ? a % b : 0;
	case TEXT_MULTIPLY:
		return a * b;
	default:
		return 0;
	}
}

uint64_t text_eval(const struct text_expr *e, const struct text_record *r)
{
	uint32_t len, at;
	uint64_t index;

	switch (e->op) {
	case TEXT_CONST:
		return e->value;
	case TEXT_LOAD:
		return e->at.offset + e->at.size > r->size ? 0 : text_load(r, e->at.offset, e->at.size);
	case TEXT_LOAD_RAW:
		return text_load(r, e->at.offset, e->at.size);
	case TEXT_LENGTH:
		text_at(&e->at, r, &len);
		return len;
	case TEXT_INDEX:
	case TEXT_INDEX_DYNAMIC:
		index = text_eval(e->a, r);
		at = (uint32_t)text_at(&e->at, r, &len);
		at += (uint32_t)(e->at.dynamic ? index : index * e->item);
		return at > r->size || e->item > r->size - at ? 0 : text_load(r, at, e->item);
	case TEXT_CHOICE:
		return text_eval(text_eval(e->a, r) ? e->b : e->c, r);
	case TEXT_MASK:
		return text_eval(e->a, r) & e->value;
	default:
		return text_eval_of_two(e->op, text_eval(e->a, r), text_eval(e->b, r));
	}
}

/* Of an integer with as many bits: what printf sees of a number. */
static uint64_t text_cut(uint64_t v, uint8_t bits)
{
	return v << (64 - bits) >> (64 - bits);
}

static int64_t text_extend(uint64_t v, uint8_t bits)
{
	return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* In hexadecimal. width: at least as many digits, up to TEXT_WIDTH_MAX. */
static void text_put_hex(struct buf *out, uint64_t v, int width)
{
	int n = (67 - __builtin_clzll(v | 1)) / 4;
	char *at = buf_room(out, TEXT_WIDTH_MAX);

	n = n < width ? width : n;
	if (!at)
		return;
	for (int i = n; i-- > 0; v >>= 4)
		at[i] = "0123456789abcdef"[v & 15];
	out->len += (size_t)n;
}

/* As %-10.4s would: the first bytes of s. */
static void text_put_fitted(struct buf *out, const struct text_spec *spec, const char *s, size_t len,
			    const struct text_record *r)
{
	size_t count = spec->count ? text_eval(spec->count, r) : 0;
	size_t width = spec->c.width_is_arg ? count : (size_t)spec->c.width;
	size_t precision = spec->c.precision_is_arg ? count : (size_t)spec->c.precision, pad;

	len = len < precision ? len : precision;
	pad = len < width ? width - len : 0;
	if (!spec->c.left && pad)
		buf_printf(out, "%*s", (int)pad, "");
	buf_add(out, s, len);
	if (spec->c.left && pad)
		buf_printf(out, "%*s", (int)pad, "");
}

/* The bytes of the record up to a NUL, at most max. */
static void text_put_bytes(struct buf *out, const struct text_spec *spec, size_t at, size_t max,
			   const struct text_record *r)
{
	size_t left = at < r->len ? r->len - at : 0;
	const char *s = left ? (const char *)r->data + at : "";

	text_put_fitted(out, spec, s, strnlen(s, left < max ? left : max), r);
}

/* Of a value that no name is of. */
static void text_put_nameless(struct buf *out, int64_t value)
{
	buf_addstr(out, "0x");
	text_put_hex(out, (uint64_t)value, 1);
}

static void text_put_flags(struct buf *out, const struct text_spec *spec, const struct text_string *s,
			   const struct text_record *r)
{
	int64_t value = (int64_t)text_eval(s->value, r);
	bool some = false;

	for (size_t i = 0; i < s->n; i++) {
		const struct text_name *name = &s->names[i];

		if (!value && name->value < 0) {
			text_put_fitted(out, spec, name->s, name->len, r);
			break;
		}
		if (name->value <= 0 || (value & name->value) != name->value)
			continue;
		if (some)
			buf_add(out, s->s, s->len);
		text_put_fitted(out, spec, name->s, name->len, r);
		some = true;
		value &= ~name->value;
	}
	if (!value)
		return;
	if (some)
		buf_add(out, s->s, s->len);
	text_put_nameless(out, value);
}

static void text_put_symbol(struct buf *out, const struct text_spec *spec, const struct text_string *s,
			    const struct text_record *r)
{
	int64_t value = (int64_t)text_eval(s->value, r);

	for (size_t i = 0; i < s->n; i++)
		if (s->names[i].value == value) {
			text_put_fitted(out, spec, s->names[i].s, s->names[i].len, r);
			return;
		}
	text_put_nameless(out, value);
}

/* "0-3,7" */
static void text_put_cpus(struct buf *out, size_t at, uint32_t len, const struct text_record *r)
{
	const char *sep = "";
	int64_t first = -1;

	for (int64_t i = 0; i <= (int64_t)len * 8; i++) {
		bool is = i < (int64_t)len * 8 && text_load(r, at + (size_t)i / 8, 1) >> i % 8 & 1;

		if (is && first < 0)
			first = i;
		if (is || first < 0)
			continue;
		buf_addstr(out, sep);
		buf_add_u64(out, (uint64_t)first);
		if (i - 1 > first) {
			buf_addstr(out, "-");
			buf_add_u64(out, (uint64_t)i - 1);
		}
		sep = ",";
		first = -1;
	}
}

static void text_put_mask(struct buf *out, const struct text_spec *spec, const struct text_string *s,
			  const struct text_record *r)
{
	struct buf mask = { 0 };
	uint32_t len;
	size_t at = text_at(&s->at, r, &len);

	if (s->kind == TEXT_STRING_CPUS)
		text_put_cpus(&mask, at, len, r);
	/* the highest bits first, a comma between 32 and 32 */
	for (uint32_t i = len; s->kind != TEXT_STRING_CPUS && i-- > 0;) {
		text_put_hex(&mask, text_load(r, at + i, 1), 2);
		if (i && i % 4 == 0)
			buf_addstr(&mask, ",");
	}
	out->bad |= mask.bad;
	text_put_fitted(out, spec, (const char *)mask.data, mask.len, r);
	buf_release(&mask);
}

/* libtraceevent knows which format lies at an address. */
static void text_put_printk(struct buf *out, const struct text_string *s, const struct text_record *r,
			    struct text_scratch *own)
{
	uint64_t address = text_load(r, s->at.offset, s->at.size);

	memcpy(own->room.data + s->at.offset, &address, sizeof(address));
	if (own->room.used < s->at.offset + sizeof(address))
		own->room.used = s->at.offset + sizeof(address);
	trace_seq_reset(&own->seq);
	tep_print_field_content(&own->seq, own->room.data, (int)own->room.used, s->field);
	buf_add(out, own->seq.buffer, own->seq.len);
}

static void text_put_string(struct buf *out, const struct text_spec *spec, const struct text_string *s,
			    const struct text_record *r, struct text_scratch *own)
{
	uint32_t len;
	size_t at;

	while (s->kind == TEXT_STRING_CHOICE)
		s = text_eval(s->value, r) ? s->yes : s->no;
	switch (s->kind) {
	case TEXT_STRING_CONST:
		text_put_fitted(out, spec, s->s, s->len, r);
		break;
	case TEXT_STRING_FIELD:
		text_put_bytes(out, spec, s->at.offset, s->at.size, r);
		break;
	case TEXT_STRING_REST:
		text_put_bytes(out, spec, s->at.offset, r->size - s->at.offset, r);
		break;
	case TEXT_STRING_DYNAMIC:
		at = text_at(&s->at, r, &len);
		if (len)
			text_put_bytes(out, spec, at, SIZE_MAX, r);
		break;
	case TEXT_STRING_PRINTK:
		out->bad |= padded_init(&own->room) < 0;
		if (!out->bad)
			text_put_printk(out, s, r, own);
		break;
	case TEXT_STRING_FLAGS:
		text_put_flags(out, spec, s, r);
		break;
	case TEXT_STRING_SYMBOL:
		text_put_symbol(out, spec, s, r);
		break;
	case TEXT_STRING_BITMASK:
	case TEXT_STRING_CPUS:
		text_put_mask(out, spec, s, r);
		break;
	default:
		break;
	}
}

static void text_put_integer(struct buf *out, const struct text_spec *spec, uint64_t v,
			     const struct text_record *r)
{
	int count = spec->count ? (int)text_eval(spec->count, r) : 0;

	v = strchr("di", spec->c.letter) ? (uint64_t)text_extend(v, spec->bits) : text_cut(v, spec->bits);
	if (spec->c.width_is_arg && spec->c.precision_is_arg)
		buf_printf(out, spec->format, count, count, v);
	else if (spec->count)
		buf_printf(out, spec->format, count, v);
	else
		buf_printf(out, spec->format, v);
}

static void text_put_function(struct buf *out, const struct text_piece *p, uint64_t address,
			      struct tep_handle *tep)
{
	const char *name = tep_find_function(tep, address);

	buf_addstr(out, name ? name : "0x");
	if (!name) {
		text_put_hex(out, address, 1);
	} else if (p->offset) {
		buf_addstr(out, "+0x");
		text_put_hex(out, address - tep_find_function_address(tep, address), 1);
	}
}

/* As stock's plugin writes prev_state. */
static void text_put_state(struct buf *out, const char *letters, uint64_t state)
{
	bool some = false;

	for (size_t i = 0; letters[i]; i++) {
		if (!(state >> i & 1))
			continue;
		if (some)
			buf_add(out, "|", 1);
		buf_add(out, &letters[i], 1);
		some = true;
	}
	if (!some)
		buf_add(out, "R", 1);
}

/* A row of our plugin's: a name or else the number. */
static void text_put_named(struct buf *out, const struct text_piece *p, uint64_t value,
			   const struct tep_event *event)
{
	const struct text_name *known = value < TEXT_NAMES ? &p->string->names[value] : NULL;
	const char *name = known ? known->s : p->row->name(event, value);

	if (known && name) {
		buf_add(out, name, known->len);
	} else if (name) {
		buf_addstr(out, name);
	} else if (p->row->kind == EVENT_TEXT_NAME) {
		buf_add_u64(out, value);
	} else {
		buf_add(out, "0x", 2);
		text_put_hex(out, value, 1);
	}
}

static void text_put_guest(struct buf *out, uint64_t pc, const struct text_record *r, struct tep_event *event)
{
	struct tep_record record = { .data = (void *)r->data,
				     .size = (int)r->len,
				     .record_size = (int)r->len };
	unsigned long long start = pc;
	const char *func = tep_plugin_kvm_get_func(event, &record, &start);

	if (!func)
		return;
	buf_addstr(out, " (");
	buf_addstr(out, func);
	if (pc != start) {
		buf_addstr(out, "+0x");
		text_put_hex(out, pc - start, 1);
	}
	buf_addstr(out, ")");
}

static void text_put_piece(struct buf *out, const struct text_piece *p, const struct text_record *r,
			   const struct text_program *program, const char *comm, struct text_scratch *own)
{
	uint64_t v;

	buf_add(out, p->before, p->before_len);
	switch (p->kind) {
	case TEXT_NOTHING:
		break;
	case TEXT_DECIMAL:
		buf_add_digits(out, text_cut(text_eval(p->value, r), p->spec.bits), (size_t)p->spec.c.width);
		break;
	case TEXT_SIGNED:
		buf_add_i64(out, text_extend(text_eval(p->value, r), p->spec.bits));
		break;
	case TEXT_HEX:
		text_put_hex(out, text_cut(text_eval(p->value, r), p->spec.bits), p->spec.c.width);
		break;
	case TEXT_INTEGER:
		text_put_integer(out, &p->spec, text_eval(p->value, r), r);
		break;
	case TEXT_STRING:
		text_put_string(out, &p->spec, p->string, r, own);
		break;
	case TEXT_POINTER:
		v = text_eval(p->value, r);
		buf_addstr(out, v ? "0x" : "(nil)");
		if (v)
			text_put_hex(out, v, 1);
		break;
	case TEXT_FUNCTION:
		text_put_function(out, p, text_eval(p->value, r), program->event->tep);
		break;
	case TEXT_STATE:
		text_put_state(out, p->letters, text_eval(p->value, r));
		break;
	case TEXT_NAMED:
		text_put_named(out, p, text_cut(text_eval(p->value, r), p->spec.bits), program->event);
		break;
	case TEXT_TASK:
		if ((int32_t)text_eval(p->value, r) > 0 && comm && strcmp(comm, "<...>")) {
			buf_addstr(out, " (");
			buf_addstr(out, comm);
			buf_addstr(out, ")");
		}
		break;
	case TEXT_GUEST:
		text_put_guest(out, text_eval(p->value, r), r, program->event);
		break;
	}
}

static void text_make(const struct text_program *p, const struct text_record *r, const char *comm,
		      struct text_scratch *own, struct buf *out)
{
	out->bad |= p->handler && padded_init(&own->room);
	if (p->handler && !out->bad) {
		struct tep_record record = padded_record(&own->room, r->data, r->len);

		if ((uint32_t)record.size < p->least)
			record.size = (int)p->least;
		trace_seq_reset(&own->seq);
		if (!p->handler(&own->seq, &record, p->event, p->event->context) || own->seq.len) {
			buf_add(out, own->seq.buffer, own->seq.len);
			return;
		}
	}
	if (r->size < p->needs) {
		buf_addstr(out, "[record too short]");
		return;
	}
	for (const struct text_piece *piece = p->pieces; piece < p->pieces + p->n; piece++)
		text_put_piece(out, piece, r, p, comm, own);
}

void text_print(const struct text_program *p, const void *data, size_t len, const char *comm,
		struct text_scratch *own, struct buf *out)
{
	const struct text_record r = { data, len, len < p->least ? p->least : (uint32_t)len };
	const uint64_t v[] = { text_load(&r, 0, 8), text_load(&r, 8, 8), text_load(&r, 16, 8) };
	const uint64_t odd = 0x9e3779b97f4a7c15; /* spreads what differs over the highest bits */
	struct text_kept *k = &own->kept[(((v[0] * odd + v[1]) * odd + v[2]) * odd) >> (64 - TEXT_KEPT_BITS)];
	size_t from = out->len, made;

	if (k->p == p && k->comm == comm && k->len == len && !memcmp(k->v, v, sizeof(v))) {
		buf_add(out, k->text, sizeof(k->text)); /* faster than as many as it has */
		out->len = out->bad ? 0 : from + k->text_len;
		return;
	}
	text_make(p, &r, comm, own, out);
	made = out->len - from;
	if (len > sizeof(v) || out->bad || !made || made > sizeof(k->text))
		return;
	*k = (struct text_kept){ .p = p, .comm = comm, .len = (uint8_t)len, .text_len = (uint8_t)made };
	memcpy(k->v, v, sizeof(v));
	memcpy(k->text, out->data + from, made);
}
