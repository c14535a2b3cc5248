// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tracks of our own in a Perfetto trace, and the slices and arguments on them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/field.h"
#include "export/perfetto-priv.h"

/* Of TrackEvent.Type and TrackDescriptor.ChildTracksOrdering. */
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };
enum { ORDER_EXPLICIT = 3 };

/* Track events need a sequence; names are written out, so that it has no state. */
static int track_put(struct perfetto *pf, size_t input, pf_packet *p)
{
	p->has_trusted_packet_sequence_id = true;
	p->trusted_packet_sequence_id = pf->machines[input] + 1;
	return pf_put(&pf->out, pf->machines[input], p);
}

int pf_track(struct perfetto *pf, size_t input, uint64_t parent, const char *name, int rank, uint64_t *uuid)
{
	Perfetto__Protos__TrackDescriptor d = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	pf_packet p = PF_PACKET_INIT;

	*uuid = ++pf->last_uuid;
	d.has_uuid = true;
	d.uuid = *uuid;
	d.name = (char *)name;
	d.has_parent_uuid = parent != 0;
	d.parent_uuid = parent;
	d.has_child_ordering = true;
	d.child_ordering = ORDER_EXPLICIT;
	d.has_sibling_order_rank = true;
	d.sibling_order_rank = rank;
	p.track_descriptor = &d;
	return track_put(pf, input, &p);
}

struct parent {
	struct pf_item item;
	uint64_t uuid;
};

int pf_parent(struct perfetto *pf, size_t input, unsigned int number, enum pf_parent kind, const char *name,
	      uint64_t *uuid)
{
	struct parent *p = pf_map_find(&pf->parents, input, number, kind);
	int ret = 0;

	if (!p) {
		p = pf_map_add(&pf->parents, sizeof(*p), input, number, kind);
		if (!p)
			return -ENOMEM;
		ret = pf_track(pf, input, 0, name, kind < PF_CROSVM ? (int)kind : PF_CROSVM, &p->uuid);
	}
	*uuid = p->uuid;
	return ret;
}

static int track_event(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts, int type,
		       const char *category, const char *name, const struct pf_args *args)
{
	Perfetto__Protos__TrackEvent e = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	pf_packet p = PF_PACKET_INIT;

	e.has_type = true;
	e.type = type;
	e.has_track_uuid = true;
	e.track_uuid = track;
	e.name = (char *)name;
	if (category) {
		e.n_categories = 1;
		e.categories = (char **)&category;
	}
	if (args) {
		e.n_debug_annotations = args->n;
		e.debug_annotations = (Perfetto__Protos__DebugAnnotation **)args->v;
	}
	p.has_timestamp = true;
	p.timestamp = ts;
	p.track_event = &e;
	return track_put(pf, input, &p);
}

int pf_begin(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts, const char *category,
	     const char *name, const struct pf_args *args)
{
	return track_event(pf, input, track, ts, SLICE_BEGIN, category, name, args);
}

int pf_end(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts)
{
	return track_event(pf, input, track, ts, SLICE_END, NULL, NULL, NULL);
}

int pf_instant(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts, const char *category,
	       const char *name, const struct pf_args *args)
{
	return track_event(pf, input, track, ts, INSTANT, category, name, args);
}

/* ---- args ------------------------------------------------------------------------- */

static Perfetto__Protos__DebugAnnotation *arg_add(struct pf_args *a, const char *name)
{
	Perfetto__Protos__DebugAnnotation *d;

	if (a->n == PF_ARGS_MAX)
		return NULL;
	d = arena_alloc(a->arena, sizeof(*d));
	if (!d)
		return NULL;
	perfetto__protos__debug_annotation__init(d);
	d->name = arena_text(a->arena, name, strlen(name));
	a->v[a->n++] = d;
	return d;
}

void pf_arg_u64(struct pf_args *a, const char *name, uint64_t v)
{
	Perfetto__Protos__DebugAnnotation *d = arg_add(a, name);

	if (d) {
		d->has_uint_value = true;
		d->uint_value = v;
	}
}

void pf_arg_i64(struct pf_args *a, const char *name, int64_t v)
{
	Perfetto__Protos__DebugAnnotation *d = arg_add(a, name);

	if (d) {
		d->has_int_value = true;
		d->int_value = v;
	}
}

void pf_arg_hex(struct pf_args *a, const char *name, uint64_t v)
{
	Perfetto__Protos__DebugAnnotation *d = arg_add(a, name);

	if (d) {
		d->has_pointer_value = true;
		d->pointer_value = v;
	}
}

void pf_arg_text(struct pf_args *a, const char *name, const char *text, size_t len)
{
	Perfetto__Protos__DebugAnnotation *d = arg_add(a, name);

	if (d)
		d->string_value = arena_text(a->arena, text, len);
}

/* Addresses and syndromes are read in hexadecimal. */
static bool is_hex(const char *name)
{
	static const char *const names[] = { "esr", "addr", "from", "to", "func_id", "device" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

void pf_arg_fields(struct pf_args *a, const struct timeline_record *r)
{
	size_t len = (size_t)r->tep.size, n;
	const uint8_t *data;
	char name[128];
	uint64_t v;

	for (const struct tep_format_field *f = r->event->format.fields; f; f = f->next) {
		snprintf(name, sizeof(name), "%s.%s", r->event->name, f->name);
		if (field_is_number(f) && field_number(f, r->tep.data, len, &v)) {
			if (is_hex(f->name))
				pf_arg_hex(a, name, v);
			else if (f->flags & TEP_FIELD_IS_SIGNED)
				pf_arg_i64(a, name, (int64_t)v);
			else
				pf_arg_u64(a, name, v);
		} else if (f->flags & TEP_FIELD_IS_STRING &&
			   field_bytes(f, r->tep.data, len, &data, &n) == 1) {
			pf_arg_text(a, name, (const char *)data, n);
		}
	}
}

const char *pf_word(struct arena *a, const struct timeline_record *r, const char *key)
{
	struct tep_record rec = r->tep;
	const char *at, *word = NULL;
	struct trace_seq s;

	trace_seq_init(&s);
	tep_print_event(r->in->tep, &s, &rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	at = strstr(s.buffer, key);
	if (at) {
		at += strlen(key);
		word = arena_text(a, at, strcspn(at, " "));
	}
	trace_seq_destroy(&s);
	return word;
}
