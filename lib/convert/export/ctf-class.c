// SPDX-License-Identifier: LGPL-2.1-or-later
/* Metadata of CTF traces (traces, streams and events by the files' formats), and records as such events. */
#include "convert/export/ctf-priv.h"

/* ---- names: they come from files, and stand in CTF's metadata ------------------------------ */

const char *ctf_name(const char *name, char room[CTF_NAME])
{
	size_t n = 0;

	for (; *name && n < CTF_NAME - 16; name++)
		room[n++] = isalnum((unsigned char)*name) || strchr("_-+:. ", *name) ? *name : '_';
	if (!n || room[0] == '.')
		room[n ? 0 : n++] = '_';
	room[n] = '\0';
	return room;
}

static bt_field_class *ctf_integer(bt_trace_class *t, size_t size, bool is_signed)
{
	bt_field_class *f = is_signed ? bt_field_class_integer_signed_create(t)
				      : bt_field_class_integer_unsigned_create(t);

	if (f)
		bt_field_class_integer_set_field_value_range(f, 8 * size);
	return f;
}

/* Takes the class over. */
static int ctf_member(bt_field_class *to, const char *name, bt_field_class *f)
{
	char room[CTF_NAME];
	size_t n = 0;
	int ret = f ? 0 : -ENOMEM;

	/* letters, digits and _, not beginning with a digit; no two members may have one name */
	if (!*name || isdigit((unsigned char)*name))
		room[n++] = '_';
	for (; *name && n < CTF_NAME - 16; name++)
		room[n++] = isalnum((unsigned char)*name) ? *name : '_';
	room[n] = '\0';
	for (unsigned int i = 2; bt_field_class_structure_borrow_member_by_name_const(to, room); i++)
		snprintf(room + n, CTF_NAME - n, "_%u", i);
	if (f && bt_field_class_structure_append_member(to, room, f))
		ret = -ENOMEM;
	bt_field_class_put_ref(f);
	return ret;
}

/* items 0: as many as a record has. */
static bt_field_class *ctf_array(bt_trace_class *t, size_t item, bool is_signed, size_t items)
{
	bt_field_class *of = ctf_integer(t, item, is_signed), *array = NULL;

	if (of)
		array = items ? bt_field_class_array_static_create(t, of, items)
			      : bt_field_class_array_dynamic_create(t, of, NULL);
	bt_field_class_put_ref(of);
	return array;
}

static int ctf_field_open(bt_trace_class *t, bt_field_class *to, const struct tep_format_field *f,
			  struct ctf_field *field)
{
	*field = (struct ctf_field){ .load = field_load(f),
				     .item = field_load_item(f),
				     .is_text = f->flags & TEP_FIELD_IS_STRING,
				     .is_signed = f->flags & TEP_FIELD_IS_SIGNED };
	if (field->load.kind == FIELD_BYTES && !field->is_text)
		field->items = field->load.size / field->item.size;
	switch (field->load.kind) {
	case FIELD_NUMBER:
		return ctf_member(to, f->name, ctf_integer(t, field->load.size, field->is_signed));
	case FIELD_BYTES:
	case FIELD_LOC:
		return ctf_member(to, f->name,
				  field->is_text
					  ? bt_field_class_string_create(t)
					  : ctf_array(t, field->item.size, field->is_signed, field->items));
	default:
		return 0; /* such as a struct, of unknown content */
	}
}

/* Takes the payload over. */
static int ctf_event_class(struct ctf_event *e, bt_stream_class *stream, uint64_t id, const char *name,
			   bt_field_class *payload)
{
	char room[CTF_NAME];
	int ret = -ENOMEM;

	e->class = bt_event_class_create_with_id(stream, id);
	if (e->class && !bt_event_class_set_name(e->class, ctf_name(name, room)) &&
	    !bt_event_class_set_payload_field_class(e->class, payload))
		ret = 0;
	bt_field_class_put_ref(payload);
	return ret;
}

const struct ctf_event *ctf_event_of(struct ctf *c, const struct merge_stream *at, unsigned int id,
				     const struct known_event *k)
{
	struct ctf_event **slot = &c->v[at->input].buffers[at->buffer].events[id], *e = *slot;
	bt_trace_class *t = c->v[at->input].class;
	bt_field_class *payload;
	char name[2 * CTF_NAME];
	int ret;

	if (e)
		return e;
	payload = bt_field_class_structure_create(t);
	e = arena_alloc(&c->kept, sizeof(*e) + (size_t)k->event->format.nr_fields * sizeof(e->v[0]));
	ret = e && payload ? 0 : -ENOMEM;
	for (const struct tep_format_field *f = k->event->format.fields; f && !ret; f = f->next)
		ret = ctf_field_open(t, payload, f, &e->v[e->n++]);
	if (ret) {
		bt_field_class_put_ref(payload);
		return NULL;
	}
	snprintf(name, sizeof(name), "%s:%s", k->event->system, k->event->name);
	if (!ctf_event_class(e, c->v[at->input].buffers[at->buffer].class, id, name, payload))
		*slot = e;
	return *slot;
}

const struct ctf_event *ctf_event_raw(struct ctf *c, const struct merge_stream *at)
{
	struct ctf_buffer *b = &c->v[at->input].buffers[at->buffer];
	bt_trace_class *t = c->v[at->input].class;
	bt_field_class *payload;
	struct ctf_event *e;

	if (b->raw)
		return b->raw;
	e = arena_alloc(&c->kept, sizeof(*e));
	payload = e ? bt_field_class_structure_create(t) : NULL;
	if (!payload || ctf_member(payload, "data", ctf_array(t, 1, false, 0))) {
		bt_field_class_put_ref(payload);
		return NULL;
	}
	if (!ctf_event_class(e, b->class, c->in->v[at->input].n_known, "raw", payload))
		b->raw = e;
	return b->raw;
}

static int ctf_context(bt_trace_class *t, const char *name, bool is_signed, bt_field_class **out)
{
	*out = bt_field_class_structure_create(t);
	return *out ? ctf_member(*out, name, ctf_integer(t, 4, is_signed)) : -ENOMEM;
}

static int ctf_buffer_open(struct ctf *c, struct ctf_input *in, struct ctf_buffer *b, const struct input *of)
{
	bt_field_class *pid = NULL, *cpu = NULL;
	int ret = -ENOMEM;

	b->events = calloc(of->n_known + 1, sizeof(*b->events));
	b->class = bt_stream_class_create(in->class);
	if (!b->events || !b->class || bt_stream_class_set_default_clock_class(b->class, c->clock) ||
	    ctf_context(in->class, "pid", true, &pid) || ctf_context(in->class, "cpu_id", false, &cpu))
		goto out;
	/* the same in all graphs */
	bt_stream_class_set_assigns_automatic_event_class_id(b->class, BT_FALSE);
	bt_stream_class_set_assigns_automatic_stream_id(b->class, BT_FALSE);
	bt_stream_class_set_supports_packets(b->class, BT_TRUE, BT_TRUE, BT_TRUE);
	bt_stream_class_set_supports_discarded_events(b->class, BT_TRUE, BT_TRUE);
	if (!bt_stream_class_set_event_common_context_field_class(b->class, pid) &&
	    !bt_stream_class_set_packet_context_field_class(b->class, cpu))
		ret = 0;
out:
	bt_field_class_put_ref(pid);
	bt_field_class_put_ref(cpu);
	return ret;
}

int ctf_stream_open(struct ctf *c)
{
	struct ctf_stream *s = &c->stream;
	const struct input *in = &c->in->v[s->at->input];
	struct ctf_input *to = &c->v[s->at->input];
	const char *buffer = reader_info(in->reader)->buffers[s->at->buffer].name;
	char room[CTF_NAME], name[CTF_NAME + 16];

	s->stream = bt_stream_create_with_id(to->buffers[s->at->buffer].class, to->trace, s->index);
	snprintf(name, sizeof(name), "%s-%u", ctf_name(*buffer ? buffer : "top", room), s->at->cpu);
	return s->stream && !bt_stream_set_name(s->stream, name) ? 0 : -ENOMEM;
}

static int ctf_input_open(struct ctf *c, bt_self_component *self, size_t i)
{
	const struct input *of = &c->in->v[i];
	size_t n = reader_info(of->reader)->n_buffers;
	struct ctf_input *in = &c->v[i];
	char room[CTF_NAME];
	int ret = 0;

	in->buffers = calloc(n + 1, sizeof(*in->buffers));
	in->class = bt_trace_class_create(self);
	in->trace = in->class ? bt_trace_create(in->class) : NULL;
	if (!in->buffers || !in->trace || bt_trace_set_name(in->trace, ctf_name(of->machine, room)) ||
	    bt_trace_set_environment_entry_string(in->trace, "tracer_name", "hyptrace") ||
	    bt_trace_set_environment_entry_string(in->trace, "machine", ctf_name(of->machine, room)) ||
	    bt_trace_set_environment_entry_string(in->trace, "guest", of->guest ? "yes" : "no"))
		return -ENOMEM;
	for (size_t b = 0; b < n && !ret; b++)
		ret = ctf_buffer_open(c, in, &in->buffers[b], of);
	return ret;
}

int ctf_classes_open(struct ctf *c, bt_self_component *self)
{
	uint8_t uuid[16] = "hyptrace";
	uint64_t id = 0;
	int ret = 0;

	/* all traces have the host's clock, by which readers may merge them: it has one UUID for one
	 * recording */
	for (size_t i = 0; i < c->in->n && !id; i++)
		id = c->in->v[i].guest ? 0 : c->in->v[i].trace_id;
	memcpy(uuid + 8, &id, sizeof(id));
	c->clock = bt_clock_class_create(self);
	c->v = calloc(c->in->n + 1, sizeof(*c->v));
	if (!c->v || !c->clock || bt_clock_class_set_name(c->clock, "host") ||
	    bt_clock_class_set_description(c->clock, "the host's trace clock, ns"))
		return -ENOMEM;
	bt_clock_class_set_uuid(c->clock, uuid);
	bt_clock_class_set_origin_is_unix_epoch(c->clock, BT_FALSE);
	for (size_t i = 0; i < c->in->n && !ret; i++)
		ret = ctf_input_open(c, self, i);
	return ret;
}

void ctf_classes_release(struct ctf *c)
{
	for (size_t i = 0; c->v && i < c->in->n; i++) {
		const struct input *of = &c->in->v[i];

		for (size_t n = 0; c->v[i].buffers && n < reader_info(of->reader)->n_buffers; n++) {
			struct ctf_buffer *b = &c->v[i].buffers[n];

			for (size_t k = 0; b->events && k < of->n_known; k++)
				if (b->events[k])
					bt_event_class_put_ref(b->events[k]->class);
			if (b->raw)
				bt_event_class_put_ref(b->raw->class);
			bt_stream_class_put_ref(b->class);
			free(b->events);
		}
		free(c->v[i].buffers);
		bt_trace_put_ref(c->v[i].trace);
		bt_trace_class_put_ref(c->v[i].class);
	}
	bt_clock_class_put_ref(c->clock);
	free(c->v);
}

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
	for (size_t i = 0; i < e->n && !ret; i++) {
		const struct ctf_field *f = &e->v[i];
		const uint8_t *data;
		bt_field *to;
		size_t n;

		if (f->load.kind == FIELD_NONE)
			continue;
		to = bt_field_structure_borrow_member_field_by_index(payload, at++);
		if (f->load.kind == FIELD_NUMBER) {
			ctf_set_integer(to, &f->load, m->data + f->load.offset, f->is_signed);
			continue;
		}
		field_load_bytes(&f->load, m->data, m->len, &data, &n);
		if (!f->is_text) {
			ret = ctf_set_array(to, f, data, n);
			continue;
		}
		bt_field_string_clear(to);
		n = strnlen((const char *)data, n);
		if (n && bt_field_string_append_with_length(to, (const char *)data, n))
			ret = -ENOMEM;
	}
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
