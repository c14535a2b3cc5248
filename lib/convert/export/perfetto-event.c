// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events as Perfetto's messages of the same name, their fields matched once, from the file's format; and
 * spans that programs mark (spans/marks.h). Slices of one track must nest: those that overlap in a source go
 * to lanes, which are tracks of the same name.
 */
#include "convert/export/perfetto-priv.h"

static void find_message(struct pf_event *e)
{
	const struct perfetto_event *m = perfetto_event_written(e->event->system, e->event->name);
	const char *fields = m ? m->fields : "";
	struct perfetto_field to;
	bool fits;

	/* a field of the message that can hold the event's */
	while (perfetto_field_next(&fields, &to))
		for (size_t i = 0; i < e->n_fields; i++) {
			struct pf_field *f = &e->fields[i];
			size_t k;

			if (strcmp(f->format->name, to.name))
				continue;
			f->to = to.kind >= PERFETTO_CHARS ? PF_TEXT
				: to.size == 8		  ? PF_64
				: to.is_signed		  ? PF_INT32
							  : PF_UINT32;
			if (f->to == PF_TEXT ? !(f->format->flags & TEP_FIELD_IS_STRING)
					     : f->load.kind != FIELD_NUMBER)
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

static void event_fields(struct perfetto *pf, size_t input, struct pf_event *e)
{
	static const char code[] = "ip parent_ip func function caller call_site";
	static const char hex[] = "esr addr from to func_id device";
	struct arena *a = &pf->kept;
	char arg[128];
	size_t n = (size_t)e->event->format.nr_fields;

	e->fields = arena_alloc(a, n * sizeof(*e->fields) + 1);
	e->known = arena_alloc(a, n * sizeof(*e->known) + 1);
	if (!e->fields || !e->known)
		return;
	for (const struct tep_format_field *f = e->event->format.fields; f; f = f->next) {
		struct pf_field *field = &e->fields[e->n_fields++];

		*field = (struct pf_field){ .format = f,
					    .load = field_load(f),
					    .name = arena_text(a, f->name, strlen(f->name)),
					    .is_code = words_have(code, f->name),
					    .is_hex = words_have(hex, f->name) };
		field->name_len = strlen(field->name);
		snprintf(arg, sizeof(arg), "%s.%s", e->event->name, f->name);
		if (e->role == PF_OF_HYP)
			field->arg = pf_label(pf, input, PF_LABEL_ARG, arg);
	}
}

static struct field_load find_load(const struct pf_event *e, const char *name)
{
	return field_load(tep_find_field(e->event, name));
}

static enum pf_role event_role(const struct known_event *k)
{
	const char *system = k->event->system, *name = k->event->name;

	if (k->hyp)
		return PF_OF_HYP;
	if (!strcmp(system, "kvm"))
		return !strcmp(name, "kvm_exit")	  ? PF_KVM_EXIT
		       : !strcmp(name, "kvm_guest_fault") ? PF_KVM_FAULT
							  : PF_PLAIN;
	if (!strcmp(system, MARK_SYSTEM) && !strcmp(name, MARK_EVENT))
		return PF_MARK;
	return !strcmp(system, "ftrace") && !strcmp(name, "print") ? PF_PRINT : PF_PLAIN;
}

const struct pf_event *pf_event(struct perfetto *pf, size_t input, unsigned int id)
{
	const struct known_event *k = input_event(&pf->job->in->v[input], id);
	struct marks_fields *marks;
	struct pf_event *e;

	if (!k || pf->events[input][id])
		return k ? pf->events[input][id] : NULL;
	e = pf->events[input][id] = arena_alloc(&pf->kept, sizeof(*e));
	if (!e)
		return NULL;
	e->event = k->event;
	e->name = arena_text(&pf->kept, k->event->name, strlen(k->event->name));
	e->role = event_role(k);
	event_fields(pf, input, e);
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

/* A thread, or a guest's client: by the index of its source. */
struct pf_marker {
	char *client;			/* the kept arena's; NULL: a thread */
	uint64_t tracks[2][MARKS_OPEN]; /* crosvm's, hypertrace's; 0: not made yet */
};

/* Slice or instant of a mark. */
struct pf_mark {
	struct mark mark;
	enum pf_kept_kind kind;
	const char *name, *whole; /* of a slice, of an instant */
	const char *client;	  /* as a pf_marker's */
};

static uint64_t marker_track(struct perfetto *pf, const struct mark_place *at, enum pf_kept_kind kind)
{
	const struct mark_source *s = &pf->marks.v[at->source];
	struct pf_marker *m = &pf->markers[at->source];
	uint64_t *track = &m->tracks[kind == PF_GUEST_MARK][at->lane], parent;
	int number = (int)(s->source ^ s->source >> 32);
	struct tep_handle *tep = pf->job->in->v[s->machine].tep;
	const char *comm;

	if (!*track) {
		/* the task's name by the file's table */
		comm = tep_is_pid_registered(tep, number) ? tep_data_comm_from_pid(tep, number) : NULL;
		parent = pf_parent(pf, s->machine, 0, kind, kind == PF_CROSVM ? "crosvm" : "hypertrace");
		*track = pf_track(
			pf, s->machine, parent,
			m->client ?: arena_printf(&pf->arena, "%s %d", comm ? comm : "thread", number),
			number);
	}
	return *track;
}

static void marker_put(struct perfetto *pf, const struct pf_record *r, struct pf_mark *p,
		       struct pf_args *args)
{
	struct mark_place at;
	struct span done;
	uint64_t track;
	enum pf_word category = p->kind == PF_CROSVM ? PF_WORD_CROSVM : PF_WORD_HYPERTRACE;
	int ret;

	p->mark.ts = r->ts;
	p->mark.machine = (uint32_t)r->input;
	p->mark.buffer = gaps_buffer(&pf->gaps, r->stream);
	p->mark.cpu = r->cpu;
	p->mark.pid = r->pid;
	if (p->mark.id == MARK_NO_ID && gaps_any(&pf->gaps, r->stream)) {
		p->mark.begins = false;
		p->mark.name = 0;
	}
	ret = marks_take(&pf->marks, &p->mark, &at, &done);
	if (ret >= 0 && pf->marks.n > pf->n_markers) {
		const struct pf_marker new = { .client = p->client ? arena_printf(&pf->kept, "%s", p->client)
								   : NULL };

		ret = array_push(&pf->markers, &pf->n_markers, &new, sizeof(new)) ?: ret;
	}
	pf->bad |= ret < 0;
	if (ret < 0 || at.source == MARKS_NO_SOURCE)
		return;
	track = marker_track(pf, &at, p->kind);
	if (ret && done.end == SPAN_BEGUN)
		pf_put(pf, r->input, track, r->ts, PF_MOMENT, category, PF_FULL(p->whole), args);
	else if (ret)
		pf_put_end(pf, r->input, track, r->ts);
	if (p->mark.begins)
		pf_put(pf, r->input, track, r->ts, PF_BEGIN, category, PF_FULL(p->name), args);
}

void pf_marker_lost(struct perfetto *pf, const struct merge_record *m)
{
	struct mark_place at = { 0 };
	struct span lost;

	while (marks_lost(&pf->marks, gaps_buffer(&pf->gaps, m->stream), &at, &lost))
		pf_put_end(pf, lost.machine, marker_track(pf, &at, PF_GUEST_MARK), m->ts);
}

static void crosvm_mark(struct perfetto *pf, const struct pf_record *r, const struct crosvm_line *line)
{
	const char *name = arena_text(&pf->arena, line->name.p, line->name.len);
	struct pf_mark mark = { .mark = { .source = (uint32_t)r->pid,
					  .name = mark_name(line->name.p, line->name.len),
					  .id = line->id,
					  .begins = line->enter },
				.kind = PF_CROSVM,
				.name = name,
				.whole = name };
	struct crosvm_part left = line->args, expr, value;
	struct pf_args *args = pf_args(pf);

	if (line->category.p)
		pf_arg_text(args, PF_WORD(CATEGORY), line->category.p, line->category.len);
	pf_arg_number(args, PF_WORD(ID), PF_ARG_UINT, line->id);
	while (left.p && crosvm_arg(&left, &expr, &value))
		pf_arg_text(args, PF_FULL(arena_text(&pf->arena, expr.p, expr.len)), value.p, value.len);
	marker_put(pf, r, &mark, args);
}

/* client: NULL: a thread marks. */
static void perfetto_mark(struct perfetto *pf, const struct pf_record *r, uint64_t source, const char *client,
			  const struct mark_event *e)
{
	struct pf_mark mark = { .mark = { .source = source, .id = MARK_NO_ID },
				.kind = PF_GUEST_MARK,
				.client = client };
	const char *name = mark_event_name(pf->desc, e);
	struct pf_args *args = pf_args(pf);
	struct buf value = { 0 };
	char number[24];
	size_t len;
	int way;

	if (!name && e->n_args)
		name = arena_printf(&pf->arena, "%llu", (unsigned long long)e->arg[0]);
	if (e->has_client)
		pf_arg_number(args, PF_WORD(CLIENT), PF_ARG_UINT, e->client);
	if (e->has_cpu)
		pf_arg_number(args, PF_WORD(CPU), PF_ARG_HEX, e->cpu);
	for (size_t i = 1; i < e->n_args; i++) {
		const char *arg;

		value.len = 0;
		arg = mark_event_arg(pf->desc, e, i, &value);
		snprintf(number, sizeof(number), "arg%zu", i + 1);
		if (buf_str(&value))
			pf_arg_text(args, PF_FULL(arg ? arg : number), buf_str(&value), value.len);
	}
	buf_release(&value);
	mark.whole = arena_text(&pf->arena, name ? name : MARK_EVENT, 256);
	len = mark_span_name(mark.whole, &way);
	len = len < 63 ? len : 63;
	mark.name = arena_printf(&pf->arena, "%.*s", (int)len, mark.whole);
	mark.mark.begins = way > 0;
	if (way) /* else it ends nothing, for nothing has that name */
		mark.mark.name = mark_name(mark.name, len);
	marker_put(pf, r, &mark, args);
}

void pf_marker_record(struct perfetto *pf, const struct pf_record *r)
{
	struct mark_event e;
	struct mark_text text;
	const uint8_t *data;
	const char *guest;
	size_t n;

	if (r->event->role == PF_MARK) {
		/* a guest's program moves from vCPU to vCPU, and is the same client */
		if (r->event->marks && marks_load(r->event->marks, r->data, r->len, &e, &guest, &n))
			perfetto_mark(pf, r, mark_client_source(e.client, guest, n),
				      arena_printf(&pf->arena, "%.*s client %llu", (int)n, guest,
						   (unsigned long long)e.client),
				      &e);
		return;
	}
	if (field_load_bytes(&r->event->text, r->data, r->len, &data, &n) != 1)
		return;
	switch (mark_line((const char *)data, n, &text)) {
	case MARK_CROSVM:
		crosvm_mark(pf, r, &text.crosvm);
		break;
	case MARK_GUEST:
		perfetto_mark(pf, r, (uint32_t)r->pid, NULL, &text.event);
		break;
	default:
		break;
	}
}
