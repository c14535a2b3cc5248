// SPDX-License-Identifier: LGPL-2.1-or-later
/* The reading half of hyptrace.h: a handle on files, their events by time, and the events' fields. */
#include "api/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle-priv.h"
#include "util/field.h"

/* ---- size-tagged structs ------------------------------------------------------------- */

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

/* ---- open and close ------------------------------------------------------------------ */

void handle_log_to(void *log, enum hyptrace_log_level level, const char *message)
{
	log_msg(log, (enum log_level)level, "%s", message);
}

void logger_call(void *ctx, enum log_level level, const char *message)
{
	const struct logger *l = ctx;

	l->fn(l->ctx, (enum hyptrace_log_level)level, message);
}

static int handle_fill(struct hyptrace *h, const char *const *paths, size_t n, unsigned int flags)
{
	unsigned int time_flags = 0;

	for (size_t i = 0; i < n; i++)
		if (strlist_add(&h->paths, paths[i]))
			return -ENOMEM;
	if (flags & HYPTRACE_RAW_TIMES)
		time_flags |= FILETIME_RAW;
	if (flags & HYPTRACE_NO_DATE)
		time_flags |= FILETIME_NO_DATE;
	return inputs_open(&h->in, h->paths.v, n, time_flags, &h->log);
}

int hyptrace_open(struct hyptrace **out, const char *const *paths, size_t n,
		  const struct hyptrace_open_opts *opts)
{
	struct hyptrace_open_opts o = { 0 };
	int ret = tagged_read(&o, sizeof(o), opts);
	struct hyptrace *h;

	*out = NULL;
	if (ret)
		return ret;
	if (!n || o.flags & ~(unsigned int)(HYPTRACE_RAW_TIMES | HYPTRACE_NO_DATE))
		return -EINVAL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->logger = (struct logger){ o.log, o.log_ctx };
	h->log = (struct log){ o.log ? logger_call : NULL, &h->logger };
	ret = handle_fill(h, paths, n, o.flags);
	if (ret) {
		hyptrace_close(h);
		return ret;
	}
	*out = h;
	return 0;
}

void hyptrace_close(struct hyptrace *h)
{
	if (!h)
		return;
	timeline_close(h->timeline);
	print_close(h->print);
	inputs_release(&h->in);
	strlist_release(&h->paths);
	buf_release(&h->text);
	buf_release(&h->ready);
	free(h);
}

/* ---- events -------------------------------------------------------------------------- */

static void fill_event(const struct timeline_record *r, struct hyptrace_event *e)
{
	*e = (struct hyptrace_event){ .time = r->ts,
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
	if (r->tep.size)
		e->comm = timeline_comm(r);
}

int hyptrace_next(struct hyptrace *h, struct hyptrace_event *event)
{
	struct hyptrace_event e;
	int ret;

	if (!h->timeline) {
		ret = handle_load(h);
		if (ret)
			return ret;
		ret = timeline_open(&h->timeline, &h->in, NULL, NULL, &h->log);
		if (ret)
			return ret;
	}
	h->has_record = false;
	ret = timeline_next(h->timeline, &h->record);
	if (ret != 1)
		return ret;
	h->has_record = true;
	fill_event(&h->record, &e);
	ret = tagged_write(event, &e, sizeof(e));
	return ret ? ret : 1;
}

uint64_t hyptrace_damaged(const struct hyptrace *h)
{
	return h->timeline ? timeline_damaged(h->timeline) : 0;
}

/* ---- fields -------------------------------------------------------------------------- */

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
	if (!h->has_record || !h->record.event)
		return -ENOENT;
	return fill_field(h, tep_find_any_field(h->record.event, name), field);
}

int hyptrace_field_at(struct hyptrace *h, size_t index, struct hyptrace_field *field)
{
	const struct tep_format_field *f;

	if (!h->has_record || !h->record.event)
		return -ENOENT;
	for (f = h->record.event->format.fields; f && index; f = f->next)
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

/* ---- for our own commands ------------------------------------------------------------- */

struct inputs *handle_inputs(struct hyptrace *h)
{
	return &h->in;
}

int handle_load(struct hyptrace *h)
{
	int ret = h->loaded ? 0 : inputs_load(&h->in, &h->log);

	h->loaded = !ret;
	return ret;
}

void handle_rewind(struct hyptrace *h)
{
	timeline_close(h->timeline);
	h->timeline = NULL;
	h->has_record = false;
}
