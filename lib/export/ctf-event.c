// SPDX-License-Identifier: LGPL-2.1-or-later
/* A record's fields as those of a CTF event. */
#include <errno.h>
#include <string.h>

#include "export/ctf-priv.h"

bool ctf_event_fits(const struct ctf_event *e, const struct merge_record *m)
{
	const uint8_t *data;
	size_t n;

	for (size_t i = 0; i < e->n; i++) {
		const struct field_load *l = &e->v[i].load;

		if (l->kind == FIELD_NUMBER && !field_inside(l, m->len))
			return false;
		if ((l->kind == FIELD_BYTES || l->kind == FIELD_LOC) &&
		    field_load_bytes(l, m->data, m->len, &data, &n) != 1)
			return false;
	}
	return true;
}

static void ctf_set_integer(bt_field *to, const struct field_load *l, const uint8_t *p, bool is_signed)
{
	uint64_t v = field_word(l, p);

	if (is_signed)
		bt_field_integer_signed_set_value(to, (int64_t)v);
	else
		bt_field_integer_unsigned_set_value(to, v);
}

static int ctf_set_array(bt_field *to, const struct ctf_field *f, const uint8_t *data, size_t n)
{
	uint64_t items = f->items ? f->items : n / f->item.size;

	if (!f->items && bt_field_array_dynamic_set_length(to, items))
		return -ENOMEM;
	for (uint64_t i = 0; i < items; i++)
		ctf_set_integer(bt_field_array_borrow_element_field_by_index(to, i), &f->item,
				data + i * f->item.size, f->is_signed);
	return 0;
}

static int ctf_set_text(bt_field *to, const uint8_t *data, size_t n)
{
	bt_field_string_clear(to);
	n = strnlen((const char *)data, n);
	return n && bt_field_string_append_with_length(to, (const char *)data, n) ? -ENOMEM : 0;
}

static int ctf_set_field(bt_field *to, const struct ctf_field *f, const struct merge_record *m)
{
	const uint8_t *data;
	size_t n;

	if (f->load.kind == FIELD_NUMBER) {
		ctf_set_integer(to, &f->load, m->data + f->load.offset, f->is_signed);
		return 0;
	}
	field_load_bytes(&f->load, m->data, m->len, &data, &n);
	return f->is_text ? ctf_set_text(to, data, n) : ctf_set_array(to, f, data, n);
}

static void ctf_set_pid(bt_event *event, int pid)
{
	bt_field *context = bt_event_borrow_common_context_field(event);

	bt_field_integer_signed_set_value(bt_field_structure_borrow_member_field_by_index(context, 0), pid);
}

int ctf_event_fill(const struct ctf_event *e, const struct merge_record *m, int pid, bt_event *event)
{
	bt_field *payload = bt_event_borrow_payload_field(event);
	uint64_t at = 0;
	int ret = 0;

	ctf_set_pid(event, pid);
	for (size_t i = 0; i < e->n && !ret; i++)
		if (e->v[i].load.kind != FIELD_NONE)
			ret = ctf_set_field(bt_field_structure_borrow_member_field_by_index(payload, at++),
					    &e->v[i], m);
	return ret;
}

int ctf_event_fill_raw(const struct merge_record *m, bt_event *event)
{
	static const struct ctf_field bytes = { .item = { .kind = FIELD_NUMBER, .size = 1 } };
	bt_field *payload = bt_event_borrow_payload_field(event);

	ctf_set_pid(event, -1);
	return ctf_set_array(bt_field_structure_borrow_member_field_by_index(payload, 0), &bytes, m->data,
			     m->len);
}
