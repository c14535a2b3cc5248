// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tracks of our own in a Perfetto trace, and the slices and arguments on them. */
#include "convert/export/perfetto-priv.h"

enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_CHILD_ORDERING = 11, TRACK_RANK = 12 };
enum { SLICE_ARG = 4, SLICE_TYPE = 9, SLICE_TRACK = 11, SLICE_CATEGORY = 22, SLICE_NAME = 23 };
enum { ARG_STRING = 6, ARG_NAME = 10 };
/* Of TrackDescriptor.ChildTracksOrdering. */
enum { ORDER_EXPLICIT = 3 };

#define ARGS_MAX 32

/* Track events need a sequence; names are written out, so that it has no state. */
static void put_sequence(struct perfetto *pf, size_t input)
{
	pb_number(&pf->chunk->packets, PACKET_SEQUENCE_ID, pf->machines[input] + 1);
}

uint64_t pf_track(struct perfetto *pf, size_t input, uint64_t parent, const char *name, int rank)
{
	struct buf *b = &pf->chunk->packets;
	size_t packet = pb_open(b, TRACE_PACKET), track;

	put_sequence(pf, input);
	track = pb_open(b, PACKET_TRACK_DESCRIPTOR);
	pb_number(b, TRACK_UUID, ++pf->last_uuid);
	pb_text(b, TRACK_NAME, name, strlen(name));
	if (parent)
		pb_number(b, TRACK_PARENT, parent);
	pb_number(b, TRACK_CHILD_ORDERING, ORDER_EXPLICIT);
	pb_number(b, TRACK_RANK, (uint64_t)rank);
	pb_close(b, track);
	pf_machine(pf, b, input);
	pb_close(b, packet);
	return pf->last_uuid;
}

struct pf_kept {
	size_t input;
	unsigned int number;
	enum pf_kept_kind kind;
	uint64_t value;
};

static bool kept_same(const void *numbers, size_t i, const void *wanted)
{
	const struct pf_kept *k = (const struct pf_kept *)numbers + i, *w = wanted;

	return k->input == w->input && k->number == w->number && k->kind == w->kind;
}

static uint32_t kept_hash(const struct pf_kept *k)
{
	return map_hash((uint64_t)k->number << 32 | (uint64_t)k->input << 8 | k->kind);
}

uint64_t pf_kept(const struct perfetto *pf, size_t input, unsigned int number, enum pf_kept_kind kind)
{
	const struct pf_kept wanted = { input, number, kind, 0 };
	size_t i = map_find(&pf->numbers_map, kept_hash(&wanted), kept_same, pf->numbers, &wanted);

	return i == MAP_NONE ? 0 : pf->numbers[i].value;
}

uint64_t pf_keep(struct perfetto *pf, size_t input, unsigned int number, enum pf_kept_kind kind,
		 uint64_t value)
{
	const struct pf_kept k = { input, number, kind, value };

	pf->bad |=
		map_push(&pf->numbers_map, kept_hash(&k), &pf->numbers, &pf->n_numbers, &k, sizeof(k)) != 0;
	return value;
}

uint64_t pf_parent(struct perfetto *pf, size_t input, unsigned int number, enum pf_kept_kind kind,
		   const char *name)
{
	int rank = kind < PF_CROSVM ? (int)kind : PF_CROSVM;

	return pf_kept(pf, input, number, kind)
		       ?: pf_keep(pf, input, number, kind, pf_track(pf, input, 0, name, rank));
}

void pf_put(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts, enum pf_point type,
	    const char *category, const char *name, const struct pf_args *args)
{
	struct buf *b = &pf->chunk->packets;
	size_t packet = pb_open(b, TRACE_PACKET), event;

	pb_number(b, PACKET_TIMESTAMP, ts);
	put_sequence(pf, input);
	event = pb_open(b, PACKET_TRACK_EVENT);
	if (args)
		buf_add(b, args->bytes.data, args->bytes.len);
	pb_number(b, SLICE_TYPE, (uint64_t)type);
	pb_number(b, SLICE_TRACK, track);
	if (category)
		pb_text(b, SLICE_CATEGORY, category, strlen(category));
	if (name)
		pb_text(b, SLICE_NAME, name, strlen(name));
	pb_close(b, event);
	pf_machine(pf, b, input);
	pb_close(b, packet);
}

void pf_arg_number(struct pf_args *a, const char *name, enum pf_arg_kind kind, uint64_t v)
{
	struct buf *b = &a->bytes;
	size_t arg;

	if (a->n++ >= ARGS_MAX)
		return;
	arg = pb_open(b, SLICE_ARG);
	pb_number(b, kind, v);
	pb_text(b, ARG_NAME, name, strlen(name));
	pb_close(b, arg);
}

void pf_arg_text(struct pf_args *a, const char *name, const char *text, size_t len)
{
	struct buf *b = &a->bytes;
	size_t arg;

	if (a->n++ >= ARGS_MAX)
		return;
	arg = pb_open(b, SLICE_ARG);
	pb_text(b, ARG_STRING, text, len);
	pb_text(b, ARG_NAME, name, strlen(name));
	pb_close(b, arg);
}

void pf_arg_fields(struct pf_args *a, const struct pf_record *r)
{
	for (size_t i = 0; i < r->event->n_fields; i++) {
		const struct pf_field *f = &r->event->fields[i];
		const uint8_t *data;
		uint64_t v;
		size_t n;

		if (pf_number(&f->load, r, &v))
			pf_arg_number(a, f->arg,
				      f->is_hex				       ? PF_ARG_HEX
				      : f->format->flags & TEP_FIELD_IS_SIGNED ? PF_ARG_INT
									       : PF_ARG_UINT,
				      v);
		else if (f->format->flags & TEP_FIELD_IS_STRING &&
			 field_load_bytes(&f->load, r->data, r->len, &data, &n) == 1)
			pf_arg_text(a, f->arg, (const char *)data, n);
	}
}
