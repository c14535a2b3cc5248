// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs for events' texts at work: one piece after the other. */
#include <errno.h>
#include <stdlib.h>

#include "text-priv.h"

/* ---- pieces -------------------------------------------------------------------------- */

/* As stock's plugin writes prev_state. */
static void text_put_state(struct text_pen *pen, const char *letters, uint64_t state)
{
	bool some = false;

	for (size_t i = 0; letters[i]; i++) {
		if (!(state >> i & 1))
			continue;
		if (some)
			text_put(pen, "|", 1);
		text_put(pen, &letters[i], 1);
		some = true;
	}
	if (!some)
		text_put(pen, "R", 1);
}

static void text_put_raw_bytes(struct text_pen *pen, const struct text_piece *p, const struct text_record *r)
{
	uint32_t len;
	size_t at = text_at(&p->at, r, &len);

	text_puts(pen, "ARRAY[");
	for (uint32_t i = 0; i < len; i++) {
		if (i)
			text_puts(pen, ", ");
		text_put_byte(pen, (uint8_t)text_load(r, at + i, 1), false);
	}
	text_puts(pen, "]");
}

/* A row of our plugin's: a name or else the number. */
static void text_put_named(struct text_pen *pen, const struct text_piece *p, uint64_t value,
			   const struct tep_event *event)
{
	const struct text_name *known = value < TEXT_NAMES ? &p->string->names[value] : NULL;
	const char *name = known ? known->s : p->row->name(event, value);

	if (known && name) {
		text_put(pen, name, known->len);
	} else if (name) {
		text_puts(pen, name);
	} else if (p->row->kind == EVENT_TEXT_NAME) {
		text_put_decimal(pen, value);
	} else {
		text_put(pen, "0x", 2);
		text_put_hex(pen, value);
	}
}

static void text_put_comm(struct text_pen *pen, uint64_t pid, const char *comm)
{
	if ((int32_t)pid <= 0 || !comm || !strcmp(comm, "<...>"))
		return;
	text_puts(pen, " (");
	text_puts(pen, comm);
	text_puts(pen, ")");
}

static void text_put_guest(struct text_pen *pen, uint64_t pc, const struct text_record *r,
			   struct tep_event *event)
{
	struct tep_record record = { .data = (void *)r->data,
				     .size = (int)r->len,
				     .record_size = (int)r->len };
	unsigned long long start = pc;
	const char *func = tep_plugin_kvm_get_func(event, &record, &start);

	if (!func)
		return;
	text_puts(pen, " (");
	text_puts(pen, func);
	if (pc != start) {
		text_puts(pen, "+0x");
		text_put_hex(pen, pc - start);
	}
	text_puts(pen, ")");
}

static void text_put_piece(struct text_pen *pen, const struct text_piece *p, const struct text_record *r,
			   const struct text_program *program, const char *comm, struct text_scratch *own)
{
	text_put(pen, p->before, p->before_len);
	switch (p->kind) {
	case TEXT_NOTHING:
		break;
	case TEXT_DECIMAL:
		text_put_decimal(pen, text_cut(text_eval(p->value, r), p->spec.bits));
		break;
	case TEXT_SIGNED:
		text_put_signed(pen, text_extend(text_eval(p->value, r), p->spec.bits));
		break;
	case TEXT_HEX:
		text_put_hex_wide(pen, text_cut(text_eval(p->value, r), p->spec.bits), p->spec.width);
		break;
	case TEXT_INTEGER:
		text_put_integer(pen, &p->spec, text_eval(p->value, r), r);
		break;
	case TEXT_STRING:
		text_put_string(pen, &p->spec, p->string, r, own);
		break;
	case TEXT_RAW_BYTES:
		text_put_raw_bytes(pen, p, r);
		break;
	case TEXT_STATE:
		text_put_state(pen, p->letters, text_eval(p->value, r));
		break;
	case TEXT_NAMED:
		text_put_named(pen, p, text_cut(text_eval(p->value, r), p->spec.bits), program->event);
		break;
	case TEXT_TASK:
		text_put_comm(pen, text_eval(p->value, r), comm);
		break;
	case TEXT_GUEST:
		text_put_guest(pen, text_eval(p->value, r), r, program->event);
		break;
	default:
		text_put_pointer(pen, p, r, program->event->tep);
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
	struct text_pen pen = { .out = out };

	if (p->handler && text_handled(p, data, len, own, out))
		return;
	if (!buf_room(out, 1))
		return;
	pen.p = (char *)out->data + out->len;
	pen.end = (char *)out->data + out->cap;
	if (r.size < p->needs) {
		buf_addstr(out, "[record too short]");
		return;
	}
	for (const struct text_piece *piece = p->pieces; piece < p->pieces + p->n; piece++)
		text_put_piece(&pen, piece, &r, p, comm, own);
	if (!out->bad)
		out->len = (size_t)(pen.p - (char *)out->data);
}
