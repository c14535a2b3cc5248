// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events as Perfetto's messages of the same name: protobuf-c's descriptors of perfetto.proto
 * are the table. What a record of an event becomes is found here once, from the file's format.
 */
#include <stdio.h>
#include <string.h>
#include <traceevent/trace-seq.h>

#include "analysis/mark-fields.h"
#include "export/perfetto-priv.h"
#include "perfetto.pb-c.h"

typedef ProtobufCFieldDescriptor member;

#define WORDS_MAX 4096

/* ---- Perfetto's message -------------------------------------------------------------- */

/*
 * kvm's events differ between architectures, and Perfetto only shows them: one
 * that has other fields than Perfetto's is better off as a generic event.
 */
static bool must_fit(const struct tep_event *e)
{
	return !strcmp(e->system, "kvm");
}

static const member *find_member(struct perfetto *pf, const struct tep_event *e)
{
	const ProtobufCMessageDescriptor *d = &perfetto__protos__ftrace_event__descriptor;
	const member *m = NULL;

	/* Android's second generation has names of its own */
	if (!strcmp(e->system, "hypervisor"))
		m = protobuf_c_message_descriptor_get_field_by_name(
			d, arena_printf(&pf->arena, "hypervisor_%s", e->name));
	if (!m)
		m = protobuf_c_message_descriptor_get_field_by_name(d, e->name);
	return m && m->type == PROTOBUF_C_TYPE_MESSAGE && strcmp(m->name, "generic") ? m : NULL;
}

/* Whether a field of the message can hold the event's. */
static bool member_fits(struct pf_field *f, const member *to)
{
	switch (to->type) {
	case PROTOBUF_C_TYPE_STRING:
		f->to = PF_TEXT;
		return f->format->flags & TEP_FIELD_IS_STRING;
	case PROTOBUF_C_TYPE_INT32:
		f->to = PF_INT32;
		break;
	case PROTOBUF_C_TYPE_UINT32:
		f->to = PF_UINT32;
		break;
	default:
		f->to = PF_64;
	}
	return f->load.kind == FIELD_NUMBER;
}

static void know_field(struct pf_event *e, struct pf_field *f, unsigned int number)
{
	size_t k = e->n_known++;

	f->number = number;
	for (; k && e->known[k - 1]->number > number; k--)
		e->known[k] = e->known[k - 1];
	e->known[k] = f;
}

static void find_message(struct perfetto *pf, struct pf_event *e)
{
	const member *m = find_member(pf, e->event);
	const ProtobufCMessageDescriptor *message = m ? m->descriptor : NULL;

	for (size_t i = 0; m && i < e->n_fields; i++) {
		struct pf_field *f = &e->fields[i];
		const member *to = protobuf_c_message_descriptor_get_field_by_name(message, f->format->name);

		if (to && member_fits(f, to))
			know_field(e, f, to->id);
	}
	/* a message without fields says what it says by being there */
	if (m && (e->n_known || !message->n_fields) && !(must_fit(e->event) && e->n_known < e->n_fields))
		e->number = m->id;
}

/* ---- its fields ---------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names))
		names++;
	return *names;
}

static void event_field(struct perfetto *pf, struct pf_event *e, const struct tep_format_field *f)
{
	static const char *const code[] = {
		"ip", "parent_ip", "func", "function", "caller", "call_site", NULL
	};
	static const char *const hex[] = { "esr", "addr", "from", "to", "func_id", "device", NULL };
	struct arena *a = &pf->kept;
	char arg[128];

	snprintf(arg, sizeof(arg), "%s.%s", e->event->name, f->name);
	e->fields[e->n_fields++] = (struct pf_field){ .format = f,
						      .load = field_load(f),
						      .name = arena_text(a, f->name, strlen(f->name)),
						      .arg = arena_text(a, arg, sizeof(arg)),
						      .is_code = is_one_of(f->name, code),
						      .is_hex = is_one_of(f->name, hex) };
}

static void event_fields(struct perfetto *pf, struct pf_event *e)
{
	size_t n = 0;

	for (const struct tep_format_field *f = e->event->format.fields; f; f = f->next)
		n++;
	e->fields = arena_alloc(&pf->kept, n * sizeof(*e->fields) + 1);
	e->known = arena_alloc(&pf->kept, n * sizeof(*e->known) + 1);
	if (!e->fields || !e->known)
		return;
	for (const struct tep_format_field *f = e->event->format.fields; f; f = f->next)
		event_field(pf, e, f);
}

static struct field_load find_load(const struct pf_event *e, const char *name)
{
	return field_load(tep_find_field(e->event, name));
}

static void find_loads(struct pf_event *e)
{
	e->reason = find_load(e, "reason");
	e->vcpu = find_load(e, "vcpu");
	e->pc = find_load(e, "vcpu_pc");
	e->esr = find_load(e, e->role == PF_KVM_FAULT ? "hsr" : "esr");
	e->address = find_load(e, "ipa");
	e->text = find_load(e, "buf");
	if (!strcmp(e->event->name, "host_smc"))
		e->call = find_load(e, "id");
	if (e->call.kind != FIELD_NUMBER)
		e->call = find_load(e, "func_id");
}

static void find_marks(struct perfetto *pf, struct pf_event *e)
{
	struct marks_fields *f = e->role == PF_MARK ? arena_alloc(&pf->kept, sizeof(*f)) : NULL;

	if (f)
		*f = marks_fields(e->event);
	e->marks = f;
}

/* ---- events -------------------------------------------------------------------------- */

static enum pf_role event_role(const struct known_event *k)
{
	const char *system = k->event->system, *name = k->event->name;

	if (k->hyp)
		return !strcmp(name, "hyp_enter")  ? PF_HYP_ENTER
		       : !strcmp(name, "hyp_exit") ? PF_HYP_EXIT
						   : PF_HYP_OTHER;
	if (!strcmp(system, "kvm"))
		return !strcmp(name, "kvm_exit")	  ? PF_KVM_EXIT
		       : !strcmp(name, "kvm_guest_fault") ? PF_KVM_FAULT
							  : PF_PLAIN;
	if (!strcmp(system, MARKS_SYSTEM) && !strcmp(name, HYPERTRACE_EVENT))
		return PF_MARK;
	return !strcmp(system, "ftrace") && !strcmp(name, "print") ? PF_PRINT : PF_PLAIN;
}

static struct pf_event *pf_event_new(struct perfetto *pf, const struct known_event *k)
{
	struct pf_event *e = arena_alloc(&pf->kept, sizeof(*e));

	if (!e)
		return NULL;
	e->event = k->event;
	e->name = arena_text(&pf->kept, k->event->name, strlen(k->event->name));
	e->role = event_role(k);
	event_fields(pf, e);
	find_loads(e);
	find_marks(pf, e);
	find_message(pf, e);
	return e;
}

const struct pf_event *pf_event(struct perfetto *pf, size_t input, unsigned int id)
{
	const struct known_event *k = input_event(&pf->job->in->v[input], id);
	struct pf_event **e;

	if (!k)
		return NULL;
	e = &pf->events[input][id];
	if (!*e)
		*e = pf_event_new(pf, k);
	return *e;
}

/* ---- names and words of their texts ------------------------------------------------------------ */

struct word {
	struct pf_item item; /* number: the number; kind: the event's id */
	bool there;
	char text[];
};

static struct word *word_new(struct perfetto *pf, const struct pf_record *r, const char *key,
			     unsigned int number)
{
	struct tep_record rec = padded_record(&pf->padded, r->data, r->len);
	const char *at, *text = "";
	struct trace_seq s;
	struct word *w;

	trace_seq_init(&s);
	tep_print_event(r->event->event->tep, &s, &rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	at = strstr(s.buffer, key);
	if (at) {
		at += strlen(key);
		text = arena_text(&pf->arena, at, strcspn(at, " "));
	}
	w = pf_map_add(&pf->words, sizeof(*w) + strlen(text) + 1, r->input, number, r->id);
	if (w) {
		w->there = at;
		strcpy(w->text, text);
	}
	pf->bad |= !w;
	trace_seq_destroy(&s);
	return w;
}

const char *pf_word(struct perfetto *pf, const struct pf_record *r, const char *key, uint64_t number)
{
	struct word *w = pf_map_find(&pf->words, r->input, (unsigned int)number, r->id);

	if (!w && pf->words.n < WORDS_MAX)
		w = word_new(pf, r, key, (unsigned int)number);
	return w && w->there ? w->text : NULL;
}

const char *pf_comm(const struct perfetto *pf, size_t input, int tid)
{
	struct tep_handle *tep = pf->job->in->v[input].tep;

	return tep_is_pid_registered(tep, tid) ? tep_data_comm_from_pid(tep, tid) : NULL;
}
