// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs of records as packets, compressed as Perfetto's own are: bundles of a CPU's events. */
#ifdef HYPTRACE_ISAL
#include <isa-l.h>
#else
#include <zlib.h>
#endif

#include "convert/export/perfetto-priv.h"

#define BUNDLE_EVENTS 128
#define BUNDLE_BYTES  (64u << 10)

/* Bytes that n become at most: in stored blocks. */
static size_t zip_room(size_t n)
{
	return n + n / 1024 + 64;
}

#if defined(HYPTRACE_ISAL) && defined(__x86_64__)
/*
 * ISA-L leaves values in the upper halves of AVX's registers. As long as they are there, instructions of SSE,
 * of which all else here is made, wait for them: a seventh of an export's time.
 */
static void clear_uppers(void) __attribute__((target("avx")));
static void clear_uppers(void)
{
	__builtin_ia32_vzeroupper();
}
#endif

/* Compresses the packets at the fastest level, as that is up to half of an export's work. 0: an error. */
static size_t zip(struct pf_writer *w, uint8_t *to)
{
	unsigned long room = zip_room(w->packets.len);
#ifdef HYPTRACE_ISAL
	struct isal_zstream z;
	bool good;

	isal_deflate_stateless_init(&z);
	w->zip = w->zip ?: malloc(ISAL_DEF_LVL1_DEFAULT);
	z.level = 1;
	z.level_buf = w->zip;
	z.level_buf_size = ISAL_DEF_LVL1_DEFAULT;
	z.gzip_flag = IGZIP_ZLIB;
	z.end_of_stream = 1;
	z.next_in = w->packets.data;
	z.avail_in = (uint32_t)w->packets.len;
	z.next_out = to;
	z.avail_out = (uint32_t)room;
	good = w->zip && isal_deflate_stateless(&z) == COMP_OK;
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		clear_uppers();
#endif
	return good ? z.total_out : 0;
#else
	return compress2(to, &room, w->packets.data, w->packets.len, 1) == Z_OK ? room : 0;
#endif
}

static void known_event(struct buf *b, const struct pf_record *r)
{
	size_t message = pb_open(b, r->event->number);

	for (size_t i = 0; i < r->event->n_known; i++) {
		const struct pf_field *f = r->event->known[i];
		const uint8_t *data;
		uint64_t v;
		size_t n;

		if (f->to != PF_TEXT) {
			/* of the type in Perfetto's message, which may be narrower than the event's field */
			if (field_load_number(&f->load, r->data, r->len, &v))
				pb_number(b, f->number,
					  f->to == PF_64      ? v
					  : f->to == PF_INT32 ? (uint64_t)(int32_t)v
							      : (uint32_t)v);
		} else if (field_load_bytes(&f->load, r->data, r->len, &data, &n) == 1) {
			pb_text(b, f->number, (const char *)data, n);
		}
	}
	pb_close(b, message);
}

static void generic_field(struct buf *b, const struct pf_field *f, const struct pf_record *r)
{
	size_t field = pb_open(b, GENERIC_FIELD), size = field_item_size(f->format), text, n;
	struct field_load item = { .size = (uint32_t)size };
	const uint8_t *data;
	uint64_t v;

	pb_bytes(b, GENERIC_FIELD_NAME, f->name, f->name_len);
	if (f->load.kind == FIELD_NUMBER) {
		bool there = field_load_number(&f->load, r->data, r->len, &v);
		const char *symbol = there && f->is_code ? tep_find_function(f->format->event->tep, v) : NULL;

		if (symbol)
			pb_text(b, GENERIC_STR, symbol, strlen(symbol));
		else if (there)
			pb_number(b, f->format->flags & TEP_FIELD_IS_SIGNED ? GENERIC_INT : GENERIC_UINT, v);
	} else if (field_load_bytes(&f->load, r->data, r->len, &data, &n) == 1) {
		if (f->format->flags & TEP_FIELD_IS_STRING) {
			pb_text(b, GENERIC_STR, (const char *)data, n);
		} else { /* "1,2,3" */
			text = pb_open(b, GENERIC_STR);
			for (size_t i = 0; i + size <= n; i += size) {
				buf_add(b, ",", i > 0);
				buf_add_u64(b, field_word(&item, data + i));
			}
			pb_close(b, text);
		}
	}
	pb_close(b, field);
}

static void generic_event(struct buf *b, const struct pf_record *r)
{
	const char *name = r->event ? r->event->name : "unknown event";
	size_t message = pb_open(b, EVENT_GENERIC);

	pb_text(b, GENERIC_NAME, name, strlen(name));
	for (size_t i = 0; r->event && i < r->event->n_fields; i++)
		generic_field(b, &r->event->fields[i], r);
	if (!r->event) { /* no format describes it: that it was there, and its number */
		size_t field = pb_open(b, GENERIC_FIELD);

		pb_text(b, GENERIC_FIELD_NAME, "id", 2);
		pb_number(b, GENERIC_UINT, r->id);
		pb_close(b, field);
	}
	pb_close(b, message);
}

/* As many records of a CPU as go into one bundle, from r on; returns the next one, or NULL. */
static const struct pf_record *put_bundle(const struct perfetto *pf, struct buf *b, const struct pf_record *r)
{
	size_t packet = pb_open(b, TRACE_PACKET), bundle = pb_open(b, PACKET_FTRACE_EVENTS), n = 0;
	const struct pf_record *first = r;

	pb_number(b, BUNDLE_CPU, r->cpu);
	do {
		if (r->how != PF_LEFT_OUT) {
			size_t event = pb_open(b, BUNDLE_EVENT);

			pb_number(b, EVENT_TIMESTAMP, r->ts);
			/* Perfetto takes no event without one */
			pb_number(b, EVENT_PID, r->pid > 0 ? (uint64_t)r->pid : 0);
			if (r->event && r->event->number && r->how == PF_KNOWN)
				known_event(b, r);
			else
				generic_event(b, r);
			pb_close(b, event);
		}
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
		struct pf_queue *q = &queues[r->input * PERFETTO_CPUS + r->cpu];

		r->next = NULL;
		if (r->how == PF_LEFT_OUT && !r->lost)
			continue;
		*(q->first ? &q->last->next : &q->first) = r;
		q->last = r;
	}
}

void pf_ftrace_write(const struct perfetto *pf, const struct pf_chunk *c, struct buf *packets)
{
	memset(c->queues, 0, pf->n_cpus * sizeof(*c->queues));
	queue_records(c->queues, c->late, c->n_late);
	queue_records(c->queues, c->v, c->n);
	for (size_t i = 0; i < pf->n_cpus; i++)
		for (const struct pf_record *r = c->queues[i].first; r;)
			r = put_bundle(pf, packets, r);
}

bool pf_chunk_begin(struct pf_chunk *c, size_t n_cpus, size_t n)
{
	c->queues = c->queues ?: calloc(n_cpus + 1, sizeof(*c->queues));
	c->n = c->n_late = c->n_slices = 0;
	c->args.len = c->packets.len = 0;
	arena_reset(&c->kept);
	return c->queues && !array_room(&c->v, &c->cap, n, sizeof(*c->v));
}

void pf_chunk_late(struct pf_chunk *c, const struct pf_record *r)
{
	struct pf_record late = *r;
	uint8_t *data = arena_alloc(&c->kept, r->len + 1);

	if (!data)
		return;
	memcpy(data, r->data, r->len);
	late.data = data;
	c->kept.bad |= array_push(&c->late, &c->n_late, &late, sizeof(late)) != 0;
}

void pf_chunk_free(void *chunk)
{
	struct pf_chunk *c = chunk;

	if (!c)
		return;
	free(c->late);
	free(c->v);
	free(c->queues);
	free(c->slices);
	step_batch_release(&c->steps);
	arena_release(&c->kept);
	buf_release(&c->args);
	buf_release(&c->packets);
	free(c);
}

int pf_writer_zip(struct pf_writer *w, struct buf *out)
{
	size_t packet, bytes, n;

	if (w->packets.bad || !w->packets.len)
		return buf_status(&w->packets);
	packet = pb_open(out, TRACE_PACKET);
	bytes = pb_open(out, PACKET_COMPRESSED);
	n = buf_room(out, zip_room(w->packets.len)) ? zip(w, out->data + out->len) : 0;
	if (!n)
		return -ENOMEM;
	out->len += n;
	pb_close(out, bytes);
	pb_close(out, packet);
	return buf_status(out);
}
