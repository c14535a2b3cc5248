// SPDX-License-Identifier: LGPL-2.1-or-later
/* The reading half of hyptrace.h: a handle on files, their events and spans by time, and the events' fields.
 */
#include "api/handle-priv.h"
#include "ask/states/exit-sums.h"
#include "base/decode/esr.h"
#include "sync/align.h"

#define SPAN_STEPS                                                                                           \
	(STEP_SET(STEP_HYP_ENTER) | STEP_SET(STEP_HYP_EXIT) | STEP_SET(STEP_HYP_OTHER) |                     \
	 STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT))

struct handle_spans {
	struct timeline *t;
	struct steps *steps;
	struct merge_run run;
	struct step_batch batch;
	size_t next;	      /* step of the batch */
	struct visit *visits; /* by stream */
	struct exit_threads threads;
	bool ended;
	size_t last; /* then: of the visits, and after them of the threads */
};

static void handle_spans_close(struct handle_spans *s)
{
	if (!s)
		return;
	free(s->visits);
	step_batch_release(&s->batch);
	merge_run_release(&s->run);
	exit_threads_release(&s->threads);
	steps_close(s->steps);
	timeline_close(s->t);
	free(s);
}

/* Begins the iteration of hyptrace_next_span over loaded files. */
static int handle_spans_open(struct handle_spans **out, const struct inputs *in, const struct log *log)
{
	struct handle_spans *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	ret = timeline_open(&s->t, in, NULL, NULL, log) ?: steps_open(&s->steps, in) ?: gaps_open(&s->threads.gaps, s->t);
	if (!ret) {
		s->visits = calloc(merge_streams(s->t->merge) + 1, sizeof(*s->visits));
		ret = s->visits ? 0 : -ENOMEM;
	}
	if (ret)
		handle_spans_close(s);
	else
		*out = s;
	return ret;
}

/* 1: *done, of *kind, in the order of their ends; then those without one. */
static int spans_next(struct handle_spans *s, enum hyptrace_span_kind *kind, struct span *done)
{
	const size_t n = merge_streams(s->t->merge);

	while (!s->ended) {
		int ret;

		while (s->next < s->batch.n) {
			const struct step *step = &s->batch.v[s->next++];

			/* each ignores the other's steps; both take losses, which end no exit */
			ret = exit_threads_step(&s->threads, step, 0, done);
			*kind = ret ? HYPTRACE_EXIT : HYPTRACE_VISIT;
			if (ret || step_visit(&s->visits[step->stream], step, 0, done))
				return ret ?: 1;
		}
		ret = merge_take(s->t->merge, &s->run);
		if (ret == 1) {
			s->next = 0;
			ret = steps_fill(s->steps, s->t, &s->run, SPAN_STEPS, &s->batch);
		} else {
			s->ended = !ret;
		}
		if (ret < 0)
			return ret;
	}
	while (s->last < n + s->threads.n) {
		size_t i = s->last++;

		*kind = i < n ? HYPTRACE_VISIT : HYPTRACE_EXIT;
		if (i < n ? visit_finish(&s->visits[i], done) : exit_finish(&s->threads.v[i - n].side, done))
			return 1;
	}
	return 0;
}

unsigned int hyptrace_version(void)
{
	return HYPTRACE_VERSION_NUMBER;
}

static size_t tagged_size(const void *theirs)
{
	size_t size;

	memcpy(&size, theirs, sizeof(size));
	return size;
}

int tagged_read(void *ours, size_t size, const void *theirs)
{
	size_t their_size = theirs ? tagged_size(theirs) : sizeof(size_t);

	if (their_size < sizeof(size_t))
		return -EINVAL;
	for (size_t i = size; i < their_size; i++)
		if (((const char *)theirs)[i])
			return -E2BIG;
	if (theirs)
		memcpy(ours, theirs, their_size < size ? their_size : size);
	return 0;
}

int tagged_write(void *theirs, const void *ours, size_t size)
{
	size_t their_size = tagged_size(theirs);

	if (their_size < sizeof(size_t))
		return -EINVAL;
	if (their_size > size)
		memset((char *)theirs + size, 0, their_size - size);
	memcpy((char *)theirs + sizeof(size_t), (const char *)ours + sizeof(size_t),
	       (their_size < size ? their_size : size) - sizeof(size_t));
	return 0;
}

void handle_log_to(void *log, enum hyptrace_log_level level, const char *message)
{
	log_msg(log, (enum log_level)level, "%s", message);
}

void logger_call(void *ctx, enum log_level level, const char *message)
{
	const struct logger *l = ctx;

	l->fn(l->ctx, (enum hyptrace_log_level)level, message);
}

int hyptrace_open(struct hyptrace **out, const char *const *paths, size_t n,
		  const struct hyptrace_open_opts *opts)
{
	struct hyptrace_open_opts o = { 0 };
	int ret = tagged_read(&o, sizeof(o), opts);
	unsigned int time_flags = 0;
	struct hyptrace *h;

	*out = NULL;
	if (ret)
		return ret;
	if (!n || o.flags & ~(unsigned int)(HYPTRACE_RAW_TIMES | HYPTRACE_NO_DATE | HYPTRACE_ALIGN))
		return -EINVAL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->logger = (struct logger){ o.log, o.log_ctx };
	h->log = (struct log){ o.log ? logger_call : NULL, &h->logger };
	h->raw = o.flags & HYPTRACE_RAW_TIMES;
	h->align = o.flags & HYPTRACE_ALIGN;
	for (size_t i = 0; i < n && !ret; i++)
		ret = strlist_add(&h->paths, paths[i]);
	time_flags |= o.flags & HYPTRACE_RAW_TIMES ? FILETIME_RAW : 0;
	time_flags |= o.flags & HYPTRACE_NO_DATE ? FILETIME_NO_DATE : 0;
	ret = ret ?: inputs_open(&h->in, h->paths.v, n, time_flags, &h->log);
	if (ret) {
		hyptrace_close(h);
		return ret;
	}
	*out = h;
	return 0;
}

static void handle_filters_close(struct filter **filters, size_t n)
{
	for (size_t i = 0; filters && i < n; i++)
		filter_free(filters[i]);
	free(filters);
}

void hyptrace_close(struct hyptrace *h)
{
	if (!h)
		return;
	handle_rewind(h);
	handle_filters_close(h->filters, h->in.n);
	print_close(h->print);
	inputs_release(&h->in);
	strlist_release(&h->paths);
	buf_release(&h->text);
	buf_release(&h->ready);
	free(h);
}

/* A loss at a CPU's end has no event that could match. */
static bool handle_wants(const struct hyptrace *h, const struct timeline_record *r)
{
	const struct filter_record f = { .data = r->m->data, .len = r->m->len, .id = r->id, .cpu = r->cpu };

	if (r->ts < h->from)
		return false;
	return !h->filters || !r->m->data || (h->filters[r->input] && filter_match(h->filters[r->input], &f));
}

int hyptrace_next(struct hyptrace *h, struct hyptrace_event *event)
{
	const struct timeline_record *r = &h->record;
	struct hyptrace_event e;
	int ret = 0;

	if (!h->timeline)
		ret = handle_load(h) ?: handle_iterate(h, NULL, NULL, &h->timeline);
	if (ret)
		return ret;
	h->has_record = false;
	do
		ret = timeline_next(h->timeline, &h->record);
	while (ret == 1 && !handle_wants(h, &h->record));
	if (ret != 1)
		return ret;
	h->has_record = true;
	e = (struct hyptrace_event){ .time = r->ts,
				     .bound = r->in->guest ? filetime_bound(&r->in->time, r->raw) : 0,
				     .machine = r->in->machine,
				     .buffer = r->buffer->name,
				     .system = r->event ? r->event->system : NULL,
				     .name = r->event ? r->event->name : NULL,
				     .data = r->tep.size ? r->tep.data : NULL,
				     .data_size = (size_t)r->tep.size,
				     .file = (unsigned int)r->input,
				     .cpu = r->cpu,
				     .id = r->id,
				     .pid = r->pid,
				     .lost = r->missed };
	if (r->tep.size && r->pid >= 0)
		e.comm = names_ask(r->in->tep, r->pid);
	ret = tagged_write(event, &e, sizeof(e));
	return ret ? ret : 1;
}

uint64_t hyptrace_damaged(const struct hyptrace *h)
{
	uint64_t damaged = h->timeline ? merge_damaged(h->timeline->merge) : 0;

	merge_damage_join(&damaged, h->in.damaged);
	return damaged;
}

int hyptrace_seek(struct hyptrace *h, uint64_t time)
{
	h->from = time;
	handle_rewind(h);
	return 0;
}

/* Of each file; -EINVAL: none takes it, *why is the last one's reason. */
static int handle_filters_open(struct hyptrace *h, const char *text, struct filter **filters, char *why,
			       size_t size)
{
	bool any = false;

	for (size_t i = 0; i < h->in.n; i++) {
		int ret = filter_open(&filters[i], h->in.v[i].tep, text, why, size);

		if (ret && ret != -EINVAL)
			return ret;
		any |= !ret;
	}
	return any ? 0 : -EINVAL;
}

int hyptrace_filter(struct hyptrace *h, const char *filter, char *error, size_t error_size)
{
	struct filter **filters = NULL;
	char why[1024] = "";
	int ret = 0;

	if (filter) {
		ret = filter_syntax(filter, why, sizeof(why)) ?: handle_load(h);
		filters = ret ? NULL : calloc(h->in.n, sizeof(*filters));
		ret = ret ?: filters ? handle_filters_open(h, filter, filters, why, sizeof(why)) : -ENOMEM;
	}
	if (ret) {
		handle_filters_close(filters, h->in.n);
		if (ret == -EINVAL && error && error_size)
			snprintf(error, error_size, "%s", why);
		return ret;
	}
	handle_filters_close(h->filters, h->in.n);
	h->filters = filters;
	return 0;
}

int hyptrace_next_span(struct hyptrace *h, struct hyptrace_span *span)
{
	static const enum hyptrace_span_end ends[] = { [SPAN_PAIRED] = HYPTRACE_PAIRED,
						       [SPAN_LOST] = HYPTRACE_LOST,
						       [SPAN_UNENDED] = HYPTRACE_UNFINISHED,
						       [SPAN_BEGUN] = HYPTRACE_NO_BEGIN };
	enum hyptrace_span_kind kind = HYPTRACE_VISIT;
	const struct offset_guest *guest = NULL;
	const struct offset_vcpu *vcpu;
	const struct input *in;
	struct hyptrace_span out;
	struct span v;
	int ret = 0;

	if (!h->spans)
		ret = handle_load(h) ?: handle_spans_open(&h->spans, &h->in, &h->log);
	if (ret)
		return ret;
	do
		ret = spans_next(h->spans, &kind, &v);
	while (ret == 1 && v.to < h->from);
	if (ret != 1)
		return ret;
	in = &h->in.v[v.machine];
	vcpu = v.vcpu ? input_vcpu(in, v.vcpu, &guest) : NULL;
	out = (struct hyptrace_span){ .kind = kind,
				      .how = ends[v.end],
				      .begin = v.from,
				      .end = v.to,
				      .number = v.why,
				      .machine = in->machine,
				      .guest = vcpu ? guest->name : NULL,
				      .vcpu = vcpu ? vcpu->cpu : 0,
				      .vcpu_thread = v.vcpu,
				      .file = v.machine,
				      .cpu = v.cpu,
				      .pid = v.pid };
	if (kind == HYPTRACE_VISIT) {
		out.reason = steps_why(h->spans->steps, in, v.machine, v.why);
		if (v.why >= SPAN_REASONS) /* Android's: an event instead of a number */
			out.number = HYPTRACE_UNKNOWN;
	} else {
		if (v.why != SPAN_UNKNOWN)
			out.reason = steps_reason(h->spans->steps, v.machine, STEP_KVM_EXIT, v.why)
					     ?: kvm_exit_arm_name((uint32_t)v.why);
		if (v.why == KVM_EXIT_ARM_TRAP && v.ec < 64)
			out.esr_class = esr_ec_name((unsigned int)v.ec);
	}
	return tagged_write(span, &out, sizeof(out)) ?: 1;
}

static int fill_field(const struct hyptrace *h, const struct tep_format_field *f,
		      struct hyptrace_field *field)
{
	struct hyptrace_field out = { 0 };
	const struct tep_record *rec = &h->record.tep;
	const uint8_t *data;
	int ret = 1;

	if (!f)
		return -ENOENT;
	out.name = f->name;
	out.item_size = field_item_size(f);
	if (field_is_number(f)) {
		out.kind = f->flags & TEP_FIELD_IS_SIGNED ? HYPTRACE_SIGNED : HYPTRACE_UNSIGNED;
		if (!field_number(f, rec->data, (size_t)rec->size, &out.number))
			return -EBADMSG;
	} else {
		ret = field_bytes(f, rec->data, (size_t)rec->size, &data, &out.data_size);
		if (ret != 1)
			return ret ? ret : -ENOENT;
		out.data = data;
		out.kind = f->flags & TEP_FIELD_IS_STRING ? HYPTRACE_STRING : HYPTRACE_BYTES;
		if (out.kind == HYPTRACE_STRING)
			out.data_size = strnlen(out.data, out.data_size);
	}
	return tagged_write(field, &out, sizeof(out));
}

int hyptrace_field(struct hyptrace *h, const char *name, struct hyptrace_field *field)
{
	struct tep_event *e = h->has_record ? h->record.event : NULL;

	return fill_field(h, e ? tep_find_any_field(e, name) : NULL, field);
}

int hyptrace_field_at(struct hyptrace *h, size_t index, struct hyptrace_field *field)
{
	const struct tep_event *e = h->has_record ? h->record.event : NULL;
	const struct tep_format_field *f = e ? e->format.fields : NULL;

	for (; f && index; f = f->next)
		index--;
	return fill_field(h, f, field);
}

const char *hyptrace_text(struct hyptrace *h)
{
	struct print_record r;

	if (!h->has_record || !h->record.tep.size)
		return NULL;
	if (!h->print && print_open(&h->print, &h->in, false))
		return NULL;
	h->text.len = h->ready.len = 0;
	if (print_begin(h->print, h->timeline, h->record.m, &r, &h->ready))
		return NULL;
	print_fields(h->print, &r, &h->ready, 0, &h->text);
	return buf_str(&h->text);
}

struct inputs *handle_inputs(struct hyptrace *h)
{
	return &h->in;
}

void handle_read_part(struct hyptrace *h, const struct time_part *part)
{
	h->part = part;
}

int handle_iterate(struct hyptrace *h, merge_want *want, void *ctx, struct timeline **out)
{
	int ret;

	timeline_close(h->timeline);
	h->timeline = NULL;
	ret = timeline_open(&h->timeline, &h->in, want, ctx, &h->log);
	if (!ret && h->from)
		merge_from(h->timeline->merge, h->from);
	*out = h->timeline;
	return ret;
}

int handle_load(struct hyptrace *h)
{
	int ret;

	if (h->loaded)
		return 0;
	ret = inputs_load(&h->in, &h->log);
	h->loaded = !ret;
	if (!ret && !h->raw)
		ret = inputs_convert_ticks(&h->in, &h->log) ?: h->align ? inputs_align(&h->in, &h->log) : 0;
	if (!ret && h->part && (h->part->from.anchor || h->part->to.anchor))
		ret = part_resolve(h->part, &h->in, &h->log);
	return ret;
}

void handle_rewind(struct hyptrace *h)
{
	timeline_close(h->timeline);
	h->timeline = NULL;
	handle_spans_close(h->spans);
	h->spans = NULL;
	h->has_record = false;
}
