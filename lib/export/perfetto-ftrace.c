// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bundles of a CPU's events: as Perfetto has them, else as GenericFtraceEvents. */
#include <stdlib.h>
#include <string.h>

#include "export/perfetto-priv.h"

#define BUNDLE_EVENTS 128
#define BUNDLE_BYTES  (64u << 10)

enum { BUNDLE_CPU = 1, BUNDLE_EVENT = 2, BUNDLE_LOST = 3 };
enum { EVENT_TIMESTAMP = 1, EVENT_PID = 2, EVENT_GENERIC = 327 };
enum { GENERIC_NAME = 1, GENERIC_FIELD = 2 };
enum { FIELD_NAME = 1, FIELD_STR = 3, FIELD_INT = 4, FIELD_UINT = 5 };

/* ---- known events ------------------------------------------------------------------- */

/* Of the type in Perfetto's message, which may be narrower than the event's field. */
static uint64_t known_value(enum pf_type to, uint64_t v)
{
	return to == PF_64 ? v : to == PF_INT32 ? (uint64_t)(int32_t)v : (uint32_t)v;
}

static void known_field(struct buf *b, const struct pf_field *f, const struct pf_record *r)
{
	const uint8_t *data;
	uint64_t v;
	size_t n;

	if (f->to != PF_TEXT) {
		if (field_load_number(&f->load, r->data, r->len, &v))
			pb_number(b, f->number, known_value(f->to, v));
	} else if (field_load_bytes(&f->load, r->data, r->len, &data, &n) == 1) {
		pb_text(b, f->number, (const char *)data, n);
	}
}

static void known_event(struct buf *b, const struct pf_record *r)
{
	size_t message = pb_open(b, r->event->number);

	for (size_t i = 0; i < r->event->n_known; i++)
		known_field(b, r->event->known[i], r);
	pb_close(b, message);
}

/* ---- others ------------------------------------------------------------------------- */

/* "1,2,3" */
static void array_text(struct buf *b, const struct pf_field *f, const uint8_t *data, size_t n)
{
	size_t size = field_item_size(f->format), text = pb_open(b, FIELD_STR);
	struct field_load item = { .size = (uint32_t)size, .swap = f->load.swap };

	for (size_t i = 0; i + size <= n; i += size) {
		if (i)
			buf_add(b, ",", 1);
		buf_add_u64(b, field_word(&item, data + i));
	}
	pb_close(b, text);
}

static void generic_number(struct buf *b, const struct pf_field *f, uint64_t v)
{
	const char *symbol = f->is_code ? tep_find_function(f->format->event->tep, v) : NULL;

	if (symbol)
		pb_text(b, FIELD_STR, symbol, strlen(symbol));
	else
		pb_number(b, f->format->flags & TEP_FIELD_IS_SIGNED ? FIELD_INT : FIELD_UINT, v);
}

static void generic_field(struct buf *b, const struct pf_field *f, const struct pf_record *r)
{
	size_t field = pb_open(b, GENERIC_FIELD), n;
	const uint8_t *data;
	uint64_t v;

	pb_text(b, FIELD_NAME, f->name, strlen(f->name));
	if (f->load.kind == FIELD_NUMBER) {
		if (field_load_number(&f->load, r->data, r->len, &v))
			generic_number(b, f, v);
	} else if (field_load_bytes(&f->load, r->data, r->len, &data, &n) == 1) {
		if (f->format->flags & TEP_FIELD_IS_STRING)
			pb_text(b, FIELD_STR, (const char *)data, n);
		else
			array_text(b, f, data, n);
	}
	pb_close(b, field);
}

/* A record that no format describes: that it was there, and its number. */
static void unknown_field(struct buf *b, const struct pf_record *r)
{
	size_t field = pb_open(b, GENERIC_FIELD);

	pb_text(b, FIELD_NAME, "id", 2);
	pb_number(b, FIELD_UINT, r->id);
	pb_close(b, field);
}

static void generic_event(struct buf *b, const struct pf_record *r)
{
	const char *name = r->event ? r->event->name : "unknown event";
	size_t message = pb_open(b, EVENT_GENERIC);

	pb_text(b, GENERIC_NAME, name, strlen(name));
	for (size_t i = 0; r->event && i < r->event->n_fields; i++)
		generic_field(b, &r->event->fields[i], r);
	if (!r->event)
		unknown_field(b, r);
	pb_close(b, message);
}

/* ---- bundles ------------------------------------------------------------------------ */

static void bundle_event(struct buf *b, const struct pf_record *r)
{
	size_t event = pb_open(b, BUNDLE_EVENT);

	pb_number(b, EVENT_TIMESTAMP, r->ts);
	pb_number(b, EVENT_PID, r->pid > 0 ? (uint64_t)r->pid : 0); /* Perfetto takes no event without one */
	if (r->event && r->event->number && r->how == PF_KNOWN)
		known_event(b, r);
	else
		generic_event(b, r);
	pb_close(b, event);
}

/* As many records of a CPU as go into one bundle, from r on; returns the next one, or NULL. */
static const struct pf_record *put_bundle(const struct perfetto *pf, struct buf *b, const struct pf_record *r)
{
	size_t packet = pb_open(b, TRACE_PACKET), bundle = pb_open(b, PACKET_FTRACE_EVENTS), n = 0;
	const struct pf_record *first = r;

	pb_number(b, BUNDLE_CPU, r->cpu);
	do {
		if (r->how != PF_LEFT_OUT)
			bundle_event(b, r);
		r = r->next;
	} while (r && !r->lost && ++n < BUNDLE_EVENTS && b->len - bundle < BUNDLE_BYTES);
	if (first->lost)
		pb_number(b, BUNDLE_LOST, true);
	pb_close(b, bundle);
	pf_machine(pf, b, first->input);
	pb_close(b, packet);
	return r;
}

static void queue_records(struct pf_queue *queues, struct pf_record *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct pf_record *r = &v[i];
		struct pf_queue *q = &queues[r->input * PF_CPUS + r->cpu];

		r->next = NULL;
		if (r->how == PF_LEFT_OUT && !r->lost)
			continue;
		*(q->first ? &q->last->next : &q->first) = r;
		q->last = r;
	}
}

void pf_ftrace_write(const struct perfetto *pf, struct pf_chunk *c)
{
	memset(c->queues, 0, pf->n_cpus * sizeof(*c->queues));
	queue_records(c->queues, c->late, c->n_late);
	queue_records(c->queues, c->v, c->n);
	for (size_t i = 0; i < pf->n_cpus; i++)
		for (const struct pf_record *r = c->queues[i].first; r;)
			r = put_bundle(pf, &c->packets, r);
}
