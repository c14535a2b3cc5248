// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events as Perfetto's messages of the same name. The fields of a record are matched with those of the
 * message once, from the file's format.
 */
#include <stdio.h>
#include <string.h>

#include "base/decode/perfetto-events.h"
#include "convert/export/perfetto-priv.h"

/* ---- Perfetto's message -------------------------------------------------------------- */

/* Whether a field of the message can hold the event's. */
static bool member_fits(struct pf_field *f, const struct perfetto_field *to)
{
	if (to->kind >= PERFETTO_CHARS) {
		f->to = PF_TEXT;
		return f->format->flags & TEP_FIELD_IS_STRING;
	}
	f->to = to->size == 8 ? PF_64 : to->is_signed ? PF_INT32 : PF_UINT32;
	return f->load.kind == FIELD_NUMBER;
}

static void find_message(struct pf_event *e)
{
	const struct perfetto_event *m = perfetto_event_written(e->event->system, e->event->name);
	const char *fields = m ? m->fields : "";
	struct perfetto_field to;
	bool fits;

	while (perfetto_field_next(&fields, &to))
		for (size_t i = 0; i < e->n_fields; i++) {
			struct pf_field *f = &e->fields[i];
			size_t k;

			if (strcmp(f->format->name, to.name) || !member_fits(f, &to))
				continue;
			f->number = to.number;
			for (k = e->n_known++; k && e->known[k - 1]->number > to.number; k--)
				e->known[k] = e->known[k - 1];
			e->known[k] = f;
		}
	/* kvm's events differ between architectures, and Perfetto only shows them: one that has other
	 * fields than Perfetto's is better off as a generic event */
	fits = strcmp(e->event->system, "kvm") != 0 || e->n_known == e->n_fields;
	/* a message without fields reports by its presence alone */
	if (m && (e->n_known || !*m->fields) && fits)
		e->number = m->number;
}

/* ---- its fields ---------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names))
		names++;
	return *names;
}

static void event_fields(struct perfetto *pf, struct pf_event *e)
{
	static const char *const code[] = {
		"ip", "parent_ip", "func", "function", "caller", "call_site", NULL
	};
	static const char *const hex[] = { "esr", "addr", "from", "to", "func_id", "device", NULL };
	struct arena *a = &pf->kept;
	char arg[128];
	size_t n = 0;

	for (const struct tep_format_field *f = e->event->format.fields; f; f = f->next)
		n++;
	e->fields = arena_alloc(a, n * sizeof(*e->fields) + 1);
	e->known = arena_alloc(a, n * sizeof(*e->known) + 1);
	if (!e->fields || !e->known)
		return;
	for (const struct tep_format_field *f = e->event->format.fields; f; f = f->next) {
		snprintf(arg, sizeof(arg), "%s.%s", e->event->name, f->name);
		e->fields[e->n_fields++] = (struct pf_field){ .format = f,
							      .load = field_load(f),
							      .name = arena_text(a, f->name, strlen(f->name)),
							      .arg = arena_text(a, arg, sizeof(arg)),
							      .is_code = is_one_of(f->name, code),
							      .is_hex = is_one_of(f->name, hex) };
	}
}

static struct field_load find_load(const struct pf_event *e, const char *name)
{
	return field_load(tep_find_field(e->event, name));
}

/* ---- events -------------------------------------------------------------------------- */

static enum pf_role event_role(const struct known_event *k)
{
	const char *system = k->event->system, *name = k->event->name;

	if (k->hyp)
		return PF_OF_HYP;
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
	struct marks_fields *marks;

	if (!e)
		return NULL;
	e->event = k->event;
	e->name = arena_text(&pf->kept, k->event->name, strlen(k->event->name));
	e->role = event_role(k);
	event_fields(pf, e);
	e->pc = find_load(e, "vcpu_pc");
	e->esr = find_load(e, e->role == PF_KVM_FAULT ? "hsr" : "esr");
	e->address = find_load(e, "ipa");
	e->text = find_load(e, "buf");
	if (!strcmp(e->event->name, "host_smc"))
		e->call = find_load(e, "id");
	if (e->call.kind != FIELD_NUMBER)
		e->call = find_load(e, "func_id");
	marks = e->role == PF_MARK ? arena_alloc(&pf->kept, sizeof(*marks)) : NULL;
	if (marks)
		*marks = marks_fields(e->event);
	e->marks = marks;
	find_message(e);
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

const char *pf_comm(const struct perfetto *pf, size_t input, int tid)
{
	struct tep_handle *tep = pf->job->in->v[input].tep;

	return tep_is_pid_registered(tep, tid) ? tep_data_comm_from_pid(tep, tid) : NULL;
}
