// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs for events' texts at work: one piece after the other. */

#include "text-priv.h"

/* At least width digits. */
static void text_put_decimal(struct buf *out, uint64_t v, int width)
{
	uint64_t least = 1;

	while (--width > 0)
		least *= 10;
	for (; v < least && least > 1; least /= 10)
		buf_addstr(out, "0");
	buf_add_u64(out, v);
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

static void text_put_address(struct buf *out, uint64_t address)
{
	buf_addstr(out, address ? "0x" : "(nil)");
	if (address)
		text_put_hex(out, address, 1);
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

static void text_put_comm(struct buf *out, uint64_t pid, const char *comm)
{
	if ((int32_t)pid <= 0 || !comm || !strcmp(comm, "<...>"))
		return;
	buf_addstr(out, " (");
	buf_addstr(out, comm);
	buf_addstr(out, ")");
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
	buf_add(out, p->before, p->before_len);
	switch (p->kind) {
	case TEXT_NOTHING:
		break;
	case TEXT_DECIMAL:
		text_put_decimal(out, text_cut(text_eval(p->value, r), p->spec.bits), p->spec.c.width);
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
		text_put_address(out, text_eval(p->value, r));
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
		text_put_comm(out, text_eval(p->value, r), comm);
		break;
	case TEXT_GUEST:
		text_put_guest(out, text_eval(p->value, r), r, program->event);
		break;
	}
}

/* Whether the handler has printed it. */
static bool text_handled(const struct text_program *p, const void *data, size_t len, struct text_scratch *own,
			 struct buf *out)
{
	struct tep_record record = padded_record(&own->room, data, len);

	if ((uint32_t)record.size < p->least)
		record.size = (int)p->least;
	trace_seq_reset(&own->seq);
	if (p->handler(&own->seq, &record, p->event, p->event->context) && !own->seq.len)
		return false;
	buf_add(out, own->seq.buffer, own->seq.len);
	return true;
}

void text_print(const struct text_program *p, const void *data, size_t len, const char *comm,
		struct text_scratch *own, struct buf *out)
{
	const struct text_record r = { data, len, len < p->least ? p->least : (uint32_t)len };

	if (p->handler && text_handled(p, data, len, own, out))
		return;
	if (r.size < p->needs) {
		buf_addstr(out, "[record too short]");
		return;
	}
	for (const struct text_piece *piece = p->pieces; piece < p->pieces + p->n; piece++)
		text_put_piece(out, piece, &r, p, comm, own);
}
