// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads spans out of the rows that KernelShark has loaded, stream by stream. */
#include "row-spans.h"

#include <kernelshark/libkshark-tepdata.h>
#include <trace-cmd.h>

#include "hyp-reason.h"
#include "spans/marks.h"
#include "spans/visits.h"
#include "plugin.h"

#define SAMPLES	   16
#define IDS	   32768 /* KernelShark's are of 16 bits, signed */
#define INFO_SHOWN 400	 /* characters of a label that an event's own text may take */

enum event_kind {
	EVENT_NONE,
	EVENT_HYP_ENTER,
	EVENT_HYP_EXIT,
	EVENT_HYP,
	EVENT_KVM_ENTRY,
	EVENT_KVM_EXIT,
	EVENT_X86_EXIT,
	EVENT_MARKER,
	EVENT_GUEST_MARK,
};

struct sample {
	const struct kshark_entry *entry;
	int64_t ts;
};

struct scan {
	struct spans *spans;
	struct kshark_entry **rows;
	size_t n_rows;
	struct sample sample[SAMPLES];
	struct kshark_host_guest_map *guests;
	int n_guests;
};

/* A stream, while its events are looked at. */
struct source {
	struct kshark_data_stream *stream;
	int machine;
	uint8_t kind[IDS];
};

static enum event_kind scan_kind(const struct tep_event *e)
{
	static const struct {
		const char *system, *name; /* NULL: any */
		enum event_kind kind;
	} kinds[] = {
		{ "kvm", "kvm_entry", EVENT_KVM_ENTRY },      { "kvm", "kvm_exit", EVENT_KVM_EXIT },
		{ "kvm", "kvm_guest_fault", EVENT_KVM_EXIT }, { "ftrace", "print", EVENT_MARKER },
		{ NULL, MARK_EVENT, EVENT_GUEST_MARK },
	};

	if (!strcmp(e->system, "hypervisor") || !strcmp(e->system, "hyp")) {
		if (!strcmp(e->name, "hyp_enter"))
			return EVENT_HYP_ENTER;
		if (!strcmp(e->name, "hyp_exit"))
			return EVENT_HYP_EXIT;
		return visit_event_tells(e->name) ? EVENT_HYP : EVENT_NONE;
	}
	if (!strcmp(e->name, "kvm_exit") && tep_find_field((struct tep_event *)e, "exit_reason"))
		return EVENT_X86_EXIT;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((!kinds[i].system || !strcmp(e->system, kinds[i].system)) &&
		    !strcmp(e->name, kinds[i].name))
			return kinds[i].kind;
	return EVENT_NONE;
}

static struct source *source_new(struct kshark_data_stream *stream)
{
	struct source *src = calloc(1, sizeof(*src));
	struct tep_handle *tep = kshark_is_tep(stream) ? kshark_get_tep(stream) : NULL;

	if (!src || !tep)
		return src;
	src->stream = stream;
	src->machine = scan_machine(stream->stream_id);
	for (int i = 0; i < tep_get_events_count(tep); i++) {
		const struct tep_event *e = tep_get_event(tep, i);

		if (e && e->id >= 0 && e->id < IDS)
			src->kind[e->id] = scan_kind(e);
	}
	return src;
}

static struct span_point point_of(const struct mark *at, enum point_kind kind)
{
	return (struct span_point){ .kind = kind,
				    .ts = at->ts,
				    .row = at->row,
				    .reason = SPAN_UNKNOWN,
				    .machine = at->machine,
				    .cpu = at->cpu,
				    .pid = at->pid };
}

static int reason_of_name(const char *name)
{
	for (int i = 0; name && i < HYP_REASONS; i++)
		if (!strcmp(name, hyp_reason_names[i]))
			return i;
	return name ? HYP_UNKNOWN : HYP_REASONS;
}

static int take_visit(struct spans *s, const struct mark *at, enum point_kind kind, struct view *v)
{
	struct span_point p = point_of(at, kind);

	if (kind == POINT_HYP_EVENT) {
		p.event = (uint32_t)reason_of_name(visit_event_reason(v->event->name));
	} else {
		if (view_has(v, "reason"))
			p.reason = (uint64_t)reason_of_name(hyp_reason_name(v->event, view_u64(v, "reason"))
								    ?: "");
		p.vcpu = (int32_t)view_s64(v, "vcpu");
	}
	return spans_point(s, &p);
}

/* Two guests may have a client of the same number. */
static int take_mark(struct spans *s, const struct mark *at, struct view *v)
{
	struct mark p = *at;
	struct mark_event e;
	const char *guest;
	size_t n;

	if (!mark_record(v, &e) || !e.n_args)
		return 0;
	if (view_text(v, "guest", &guest, &n))
		p.source = mark_client_source(e.client, guest, n);
	return v->bad ? 0 : spans_numbered_mark(s, &p, e.arg[0]);
}

static int take_marker(struct spans *s, const struct mark *at, struct view *v)
{
	struct mark p = *at;
	struct mark_text line;
	const char *text;
	size_t len;

	if (!view_text(v, "buf", &text, &len))
		return 0;
	switch (mark_line(text, len, &line)) {
	case MARK_GUEST:
		return line.event.n_args ? spans_numbered_mark(s, at, line.event.arg[0]) : 0;
	case MARK_CROSVM:
		p.id = line.crosvm.id;
		p.name = mark_name(line.crosvm.name.p, line.crosvm.name.len);
		p.begins = line.crosvm.enter;
		return spans_mark(s, &p);
	default:
		return 0;
	}
}

static int read_record(struct spans *s, const struct mark *at, enum event_kind kind,
		       struct kshark_data_stream *stream, int64_t offset)
{
	struct span_point p = point_of(at, POINT_KVM_EXIT);
	struct view v = { 0 };
	struct tep_record *r;
	int ret = 0;

	pthread_mutex_lock(&stream->input_mutex);
	r = tracecmd_read_at(kshark_get_tep_input(stream), (uint64_t)offset, NULL);
	v.record = r;
	v.event = r ? tep_find_event_by_record(kshark_get_tep(stream), r) : NULL;
	if (!v.event)
		goto out;
	switch (kind) {
	case EVENT_HYP_ENTER:
		ret = take_visit(s, at, POINT_HYP_ENTER, &v);
		break;
	case EVENT_HYP_EXIT:
		ret = take_visit(s, at, POINT_HYP_EXIT, &v);
		break;
	case EVENT_HYP:
		ret = take_visit(s, at, POINT_HYP_EVENT, &v);
		break;
	case EVENT_X86_EXIT:
		/* the reasons of HLT, by the field isa: VMX's and SVM's (arch/x86/include/uapi/asm) */
		p.reason = view_u64(&v, "exit_reason") == (view_u64(&v, "isa") == 2 ? 0x78 : 12) ? X86_HALT
												 : X86_EXIT;
		ret = spans_point(s, &p);
		break;
	case EVENT_MARKER:
		ret = take_marker(s, at, &v);
		break;
	case EVENT_GUEST_MARK:
		ret = take_mark(s, at, &v);
		break;
	default:
		break;
	}
out:
	tracecmd_free_record(r);
	pthread_mutex_unlock(&stream->input_mutex);
	return ret;
}

static int take_row(struct spans *s, size_t row, const struct kshark_entry *e, const struct source *src)
{
	const struct mark at = { .row = row,
				 .ts = (uint64_t)e->ts,
				 .source = (uint32_t)e->pid,
				 .id = MARK_NO_ID,
				 .machine = (uint32_t)src->machine,
				 .buffer = (uint32_t)e->stream_id,
				 .cpu = (uint32_t)e->cpu,
				 .pid = e->pid };
	struct span_point p = point_of(&at, POINT_NONE);

	if (e->event_id == KS_EVENT_OVERFLOW)
		return spans_lost(s, &at);
	if (e->event_id < 0)
		return 0;
	switch (src->kind[e->event_id]) {
	case EVENT_NONE:
		return 0;
	case EVENT_KVM_ENTRY:
	case EVENT_KVM_EXIT:
		p.kind = src->kind[e->event_id] == EVENT_KVM_ENTRY ? POINT_KVM_ENTRY : POINT_KVM_EXIT;
		return spans_point(s, &p);
	default:
		return read_record(s, &at, src->kind[e->event_id], src->stream, e->offset);
	}
}

int scan_machine(int sd)
{
	struct kshark_context *ctx = NULL;
	int machine = sd, *all;

	if (!kshark_instance(&ctx) || !kshark_get_data_stream(ctx, sd))
		return sd;
	all = kshark_all_streams(ctx);
	for (int i = 0; all && i < ctx->n_streams; i++)
		if (all[i] < machine && !strcmp(ctx->stream[all[i]]->file, ctx->stream[sd]->file))
			machine = all[i];
	free(all);
	return machine;
}

static struct sample sample_of(const struct kshark_trace_histo *histo, size_t i)
{
	const struct kshark_entry *e = histo->data[i * (histo->data_size - 1) / (SAMPLES - 1)];

	return (struct sample){ e, e->ts };
}

struct scan *scan_new(const struct kshark_trace_histo *histo)
{
	struct kshark_context *ctx = NULL;
	struct scan *s = calloc(1, sizeof(*s));
	struct source **src = NULL;
	int n = 0, ret = 0;

	if (!s || !kshark_instance(&ctx))
		goto fail;
	s->rows = histo->data;
	s->n_rows = histo->data_size;
	for (size_t i = 0; s->n_rows && i < SAMPLES; i++)
		s->sample[i] = sample_of(histo, i);
	s->spans = spans_new();
	n = ctx->stream_info.max_stream_id + 1;
	src = calloc((size_t)n, sizeof(*src));
	if (!s->spans || !src)
		goto fail;
	for (size_t i = 0; !ret && i < s->n_rows; i++) {
		const struct kshark_entry *e = s->rows[i];
		struct kshark_data_stream *stream = kshark_get_data_stream(ctx, e->stream_id);

		if (!stream)
			continue;
		if (!src[e->stream_id])
			src[e->stream_id] = source_new(stream);
		if (!src[e->stream_id])
			ret = -ENOMEM;
		else if (src[e->stream_id]->stream)
			ret = take_row(s->spans, i, e, src[e->stream_id]);
	}
	if (ret || spans_finish(s->spans))
		goto fail;
	s->n_guests = kshark_tracecmd_get_hostguest_mapping(&s->guests);
	goto out;
fail:
	scan_free(s);
	s = NULL;
out:
	for (int i = 0; src && i < n; i++)
		free(src[i]);
	free(src);
	return s;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	if (s->n_guests > 0)
		kshark_tracecmd_free_hostguest_map(s->guests, s->n_guests);
	spans_free(s->spans);
	free(s);
}

bool scan_is_of(const struct scan *s, const struct kshark_trace_histo *histo)
{
	if (s->rows != histo->data || s->n_rows != histo->data_size)
		return false;
	for (size_t i = 0; s->n_rows && i < SAMPLES; i++) {
		const struct sample now = sample_of(histo, i);

		if (now.entry != s->sample[i].entry || now.ts != s->sample[i].ts)
			return false;
	}
	return true;
}

const struct spans *scan_spans(const struct scan *s)
{
	return s->spans;
}

bool scan_vcpu(const struct scan *s, int sd, int cpu, int *machine, int *pid)
{
	for (int i = 0; i < s->n_guests; i++) {
		const struct kshark_host_guest_map *g = &s->guests[i];

		if (scan_machine(g->guest_id) != scan_machine(sd) || cpu < 0 || cpu >= g->vcpu_count)
			continue;
		*machine = scan_machine(g->host_id);
		*pid = g->cpu_pid[cpu];
		return *pid > 0;
	}
	return false;
}

/* KernelShark's font has ASCII's printable characters. */
static void put_plain(struct buf *b, const char *text)
{
	char c;

	for (size_t i = 0; i < INFO_SHOWN && text[i]; i++) {
		c = text[i] < ' ' || text[i] > '~' ? ' ' : text[i];
		if (c != ' ' || (b->len && b->data[b->len - 1] != ' '))
			buf_add(b, &c, 1);
	}
}

static void scan_event(struct buf *b, const struct kshark_entry *e, bool with_name)
{
	char *name = kshark_get_event_name(e), *info = kshark_get_info(e);
	const char *slash = name ? strchr(name, '/') : NULL;

	if (with_name && slash) {
		put_plain(b, slash + 1);
		buf_addstr(b, ": ");
	}
	if (info)
		put_plain(b, info);
	free(name);
	free(info);
}

static void put_duration(struct buf *b, const struct shown *span)
{
	double us = (double)(span->end - span->start) / 1000;

	if (us < 1000)
		buf_printf(b, "%.1f us", us);
	else
		buf_printf(b, "%.2f ms", us / 1000);
}

char *scan_label(const struct kshark_trace_histo *histo, const struct shown *span)
{
	struct buf b = { 0 };
	const char *text;

	if (span->kind == SHOWN_HYP) {
		buf_addstr(&b, span->reason >= 0 && span->reason < HYP_REASONS
				       ? hyp_reason_names[span->reason]
				       : "hypervisor");
		if (span->left == HYP_ERET_GUEST)
			buf_addstr(&b, " to guest");
		buf_addstr(&b, " ");
		put_duration(&b, span);
		if (span->detail != span->first) {
			buf_addstr(&b, ", ");
			scan_event(&b, histo->data[span->detail], true);
		}
	} else {
		scan_event(&b, histo->data[span->first], false);
		buf_addstr(&b, ", ");
		put_duration(&b, span);
	}
	text = buf_str(&b);
	text = text ? strdup(text) : NULL;
	buf_release(&b);
	return (char *)text;
}
