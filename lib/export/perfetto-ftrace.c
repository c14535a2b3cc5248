// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events as Perfetto's messages of the same name, found and filled by protobuf-c's
 * descriptors: perfetto.proto is the table. Anything else is a GenericFtraceEvent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/field.h"
#include "export/perfetto-priv.h"

#define BUNDLE_EVENTS 128
#define BUNDLE_BYTES  (64u << 10)

typedef Perfetto__Protos__FtraceEvent ftrace_event;
typedef Perfetto__Protos__GenericFtraceEvent__Field generic_field;

/* Which field of a message a record's field goes to. */
struct target {
	const struct tep_format_field *from;
	const ProtobufCFieldDescriptor *to;
};

/* How one event of one file is written. */
struct plan {
	struct pf_item item;			/* number: the id */
	const ProtobufCFieldDescriptor *member; /* of FtraceEvent; NULL: generic */
	size_t n;
	struct target v[];
};

struct bundle {
	struct pf_item item; /* number: the CPU */
	bool lost;	     /* events, before the first one */
	struct arena arena;
	ftrace_event *v[BUNDLE_EVENTS];
	size_t n;
};

/* ---- plans ------------------------------------------------------------------------ */

/*
 * kvm's events differ between architectures, and Perfetto only shows them: one
 * that has other fields than Perfetto's is better off as a generic event.
 */
static bool must_fit(const struct tep_event *e)
{
	return !strcmp(e->system, "kvm");
}

static bool target_fits(const struct tep_format_field *from, const ProtobufCFieldDescriptor *to)
{
	if (to->type == PROTOBUF_C_TYPE_STRING)
		return from->flags & TEP_FIELD_IS_STRING;
	return field_is_number(from);
}

static const ProtobufCFieldDescriptor *find_member(const struct tep_event *e)
{
	const ProtobufCMessageDescriptor *d = &perfetto__protos__ftrace_event__descriptor;
	const ProtobufCFieldDescriptor *member = NULL;
	char name[128];

	/* Android's second generation has names of its own */
	if (!strcmp(e->system, "hypervisor")) {
		snprintf(name, sizeof(name), "hypervisor_%s", e->name);
		member = protobuf_c_message_descriptor_get_field_by_name(d, name);
	}
	if (!member)
		member = protobuf_c_message_descriptor_get_field_by_name(d, e->name);
	return member && member->type == PROTOBUF_C_TYPE_MESSAGE && strcmp(member->name, "generic") ? member
												    : NULL;
}

static size_t count_fields(const struct tep_event *e)
{
	size_t n = 0;

	for (const struct tep_format_field *f = e->format.fields; f; f = f->next)
		n++;
	return n;
}

static void fill_plan(struct plan *p, const struct tep_event *e, size_t n)
{
	const ProtobufCMessageDescriptor *d;

	p->member = find_member(e);
	if (!p->member)
		return;
	d = p->member->descriptor;
	for (const struct tep_format_field *f = e->format.fields; f; f = f->next) {
		const ProtobufCFieldDescriptor *to =
			protobuf_c_message_descriptor_get_field_by_name(d, f->name);

		if (to && target_fits(f, to))
			p->v[p->n++] = (struct target){ f, to };
	}
	/* a message without fields says what it says by being there */
	if ((d->n_fields && !p->n) || (must_fit(e) && p->n < n))
		p->member = NULL;
}

static const struct plan *get_plan(struct perfetto *pf, const struct timeline_record *r)
{
	struct plan *p = pf_map_find(&pf->plans, r->input, r->id, 0);
	size_t n;

	if (p)
		return p;
	n = count_fields(r->event);
	p = pf_map_add(&pf->plans, sizeof(*p) + n * sizeof(p->v[0]), r->input, r->id, 0);
	if (p)
		fill_plan(p, r->event, n);
	return p;
}

/* ---- known events ------------------------------------------------------------------- */

static void set_number(ProtobufCMessage *m, const ProtobufCFieldDescriptor *d, uint64_t v)
{
	uint8_t *at = (uint8_t *)m + d->offset;

	*(protobuf_c_boolean *)((uint8_t *)m + d->quantifier_offset) = true;
	if (d->type == PROTOBUF_C_TYPE_UINT64 || d->type == PROTOBUF_C_TYPE_INT64)
		memcpy(at, &v, sizeof(uint64_t));
	else
		memcpy(at, &(uint32_t){ (uint32_t)v }, sizeof(uint32_t));
}

static void set_field(struct arena *a, ProtobufCMessage *m, const struct target *t,
		      const struct timeline_record *r)
{
	size_t len = (size_t)r->tep.size, n;
	const uint8_t *data;
	uint64_t v;

	if (t->to->type != PROTOBUF_C_TYPE_STRING) {
		if (field_number(t->from, r->tep.data, len, &v))
			set_number(m, t->to, v);
	} else if (field_bytes(t->from, r->tep.data, len, &data, &n) == 1) {
		*(char **)((uint8_t *)m + t->to->offset) = arena_text(a, data, n);
	}
}

static void set_known(struct arena *a, ftrace_event *e, const struct plan *p, const struct timeline_record *r)
{
	const ProtobufCMessageDescriptor *d = p->member->descriptor;
	ProtobufCMessage *m = arena_alloc(a, d->sizeof_message);

	if (!m)
		return;
	protobuf_c_message_init(d, m);
	for (size_t i = 0; i < p->n; i++)
		set_field(a, m, &p->v[i], r);
	*(ProtobufCMessage **)((uint8_t *)e + p->member->offset) = m;
}

/* ---- others ------------------------------------------------------------------------- */

/* Addresses of code, which a name says more about. */
static bool is_code(const char *name)
{
	static const char *const names[] = { "ip", "parent_ip", "func", "function", "caller", "call_site" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void set_value(struct arena *a, generic_field *g, const struct tep_format_field *f, uint64_t v)
{
	const char *symbol = is_code(f->name) ? tep_find_function(f->event->tep, v) : NULL;

	if (symbol) {
		g->str_value = arena_text(a, symbol, strlen(symbol));
	} else if (f->flags & TEP_FIELD_IS_SIGNED) {
		g->has_int_value = true;
		g->int_value = (int64_t)v;
	} else {
		g->has_uint_value = true;
		g->uint_value = v;
	}
}

/* "1,2,3" */
static char *array_text(struct arena *a, const struct tep_format_field *f, const uint8_t *data, size_t n)
{
	size_t size = field_item_size(f);
	struct buf text = { 0 };
	char *out;

	for (size_t i = 0; i + size <= n; i += size)
		buf_printf(&text, "%s%llu", i ? "," : "",
			   tep_read_number(f->event->tep, data + i, (int)size));
	out = arena_printf(a, "%s", buf_str(&text) ? buf_str(&text) : "");
	buf_release(&text);
	return out;
}

static void set_generic_field(struct arena *a, generic_field *g, const struct tep_format_field *f,
			      const struct timeline_record *r)
{
	size_t len = (size_t)r->tep.size, n;
	const uint8_t *data;
	uint64_t v;

	perfetto__protos__generic_ftrace_event__field__init(g);
	g->name = arena_text(a, f->name, strlen(f->name));
	if (field_is_number(f)) {
		if (field_number(f, r->tep.data, len, &v))
			set_value(a, g, f, v);
	} else if (field_bytes(f, r->tep.data, len, &data, &n) == 1) {
		g->str_value =
			f->flags & TEP_FIELD_IS_STRING ? arena_text(a, data, n) : array_text(a, f, data, n);
	}
}

static void set_generic(struct arena *a, ftrace_event *e, const struct timeline_record *r)
{
	size_t n = count_fields(r->event);
	Perfetto__Protos__GenericFtraceEvent *g = arena_alloc(a, sizeof(*g));
	generic_field *fields = arena_alloc(a, n * sizeof(*fields) + 1);
	generic_field **v = arena_alloc(a, n * sizeof(generic_field *) + 1);

	if (!g || !fields || !v)
		return;
	perfetto__protos__generic_ftrace_event__init(g);
	g->event_name = arena_text(a, r->event->name, strlen(r->event->name));
	g->field = v;
	for (const struct tep_format_field *f = r->event->format.fields; f; f = f->next) {
		set_generic_field(a, &fields[g->n_field], f, r);
		v[g->n_field] = &fields[g->n_field];
		g->n_field++;
	}
	e->generic = g;
}

/* A record that no format describes: that it was there, and its number. */
static void set_unknown(struct arena *a, ftrace_event *e, const struct timeline_record *r)
{
	Perfetto__Protos__GenericFtraceEvent *g = arena_alloc(a, sizeof(*g));
	generic_field *field = arena_alloc(a, sizeof(*field));
	generic_field **v = arena_alloc(a, sizeof(generic_field *));

	if (!g || !field || !v)
		return;
	perfetto__protos__generic_ftrace_event__init(g);
	perfetto__protos__generic_ftrace_event__field__init(field);
	g->event_name = (char *)"unknown event";
	g->n_field = 1;
	g->field = v;
	v[0] = field;
	field->name = (char *)"id";
	field->has_uint_value = true;
	field->uint_value = r->id;
	e->generic = g;
}

/* ---- bundles ------------------------------------------------------------------------ */

static struct bundle *get_bundle(struct perfetto *pf, size_t input, unsigned int cpu)
{
	struct bundle *b = pf_map_find(&pf->bundles, input, cpu, 0);

	return b ? b : pf_map_add(&pf->bundles, sizeof(*b), input, cpu, 0);
}

/* What waited for its end comes late (perfetto-hyp.c); few do, and not by much. */
static void bundle_sort(struct bundle *b)
{
	for (size_t i = 1; i < b->n; i++) {
		ftrace_event *e = b->v[i];
		size_t k = i;

		for (; k && b->v[k - 1]->timestamp > e->timestamp; k--)
			b->v[k] = b->v[k - 1];
		b->v[k] = e;
	}
}

static int bundle_flush(void *perfetto, void *bundle)
{
	struct perfetto *pf = perfetto;
	struct bundle *b = bundle;
	Perfetto__Protos__FtraceEventBundle m = PERFETTO__PROTOS__FTRACE_EVENT_BUNDLE__INIT;
	pf_packet p = PF_PACKET_INIT;
	int ret;

	if (b->arena.bad)
		return -ENOMEM;
	if (!b->n && !b->lost)
		return 0;
	bundle_sort(b);
	m.has_cpu = true;
	m.cpu = b->item.number;
	m.n_event = b->n;
	m.event = b->v;
	m.has_lost_events = b->lost;
	m.lost_events = b->lost;
	p.ftrace_events = &m;
	ret = pf_put(&pf->out, pf->machines[b->item.input], &p);
	arena_reset(&b->arena);
	b->n = 0;
	b->lost = false;
	return ret;
}

int pf_ftrace_lost(struct perfetto *pf, size_t input, unsigned int cpu)
{
	struct bundle *b = get_bundle(pf, input, cpu);
	int ret = b ? bundle_flush(pf, b) : -ENOMEM;

	if (b)
		b->lost = true;
	return ret;
}

int pf_ftrace_add(struct perfetto *pf, const struct timeline_record *r, bool generic)
{
	const struct plan *plan = r->event ? get_plan(pf, r) : NULL;
	struct bundle *b = get_bundle(pf, r->input, r->cpu);
	ftrace_event *e;

	if (!b || (r->event && !plan))
		return -ENOMEM;
	e = arena_alloc(&b->arena, sizeof(*e));
	if (!e)
		return -ENOMEM;
	perfetto__protos__ftrace_event__init(e);
	e->has_timestamp = true;
	e->timestamp = r->ts;
	e->has_pid = true; /* Perfetto takes no event without one */
	e->pid = r->pid > 0 ? (uint32_t)r->pid : 0;
	if (plan && plan->member && !generic)
		set_known(&b->arena, e, plan, r);
	else if (r->event)
		set_generic(&b->arena, e, r);
	else
		set_unknown(&b->arena, e, r);
	b->v[b->n++] = e;
	if (b->n < BUNDLE_EVENTS && b->arena.used < BUNDLE_BYTES)
		return b->arena.bad ? -ENOMEM : 0;
	return bundle_flush(pf, b);
}

int pf_ftrace_finish(struct perfetto *pf)
{
	return pf_map_each(&pf->bundles, bundle_flush, pf);
}

static void bundle_release(void *bundle)
{
	arena_release(&((struct bundle *)bundle)->arena);
}

void pf_ftrace_release(struct perfetto *pf)
{
	pf_map_release(&pf->bundles, bundle_release);
	pf_map_release(&pf->plans, NULL);
}
