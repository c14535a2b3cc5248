// SPDX-License-Identifier: LGPL-2.1-or-later
/* hyptrace export --json: a line for each record. */
#include "export/json-lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/trace-seq.h>

#include "util/field.h"
#include "util/json.h"

#define FLUSH_AT (256u << 10)

struct export_json {
	int fd;
	struct buf out;
	struct trace_seq info;
};

struct export_json *export_json_new(int fd)
{
	struct export_json *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->fd = fd;
	trace_seq_init(&j->info);
	return j;
}

void export_json_free(struct export_json *j)
{
	if (!j)
		return;
	trace_seq_destroy(&j->info);
	buf_release(&j->out);
	free(j);
}

int export_json_flush(struct export_json *j)
{
	int ret = buf_status(&j->out);

	if (ret)
		return ret;
	ret = write_all(j->fd, j->out.data, j->out.len);
	j->out.len = 0;
	return ret;
}

/* ---- fields --------------------------------------------------------------------- */

/* Readers with numbers of 53 bits (jq, JavaScript) round wider ones: those of 64 are strings. */
static void line_integer(struct json *json, const struct tep_format_field *f, size_t size, uint64_t v)
{
	bool is_signed = f->flags & TEP_FIELD_IS_SIGNED;
	char text[24];

	if (size < 8) {
		if (is_signed)
			json_i64(json, (int64_t)v);
		else
			json_u64(json, v);
		return;
	}
	if (is_signed)
		snprintf(text, sizeof(text), "%" PRId64, (int64_t)v);
	else
		snprintf(text, sizeof(text), "%" PRIu64, v);
	json_str(json, text);
}

static void line_number(struct json *json, const struct tep_format_field *f, uint64_t v)
{
	if (!strcmp(f->type, "bool") || !strcmp(f->type, "_Bool"))
		json_bool(json, v);
	else
		line_integer(json, f, (size_t)f->size, v);
}

static void line_array(struct json *json, const struct tep_format_field *f, const uint8_t *data, size_t n)
{
	size_t size = field_item_size(f);
	unsigned int shift = 64 - 8 * (unsigned int)size;

	json_array(json);
	for (size_t i = 0; i + size <= n; i += size) {
		uint64_t v = tep_read_number(f->event->tep, data + i, (int)size);

		if (f->flags & TEP_FIELD_IS_SIGNED)
			v = (uint64_t)((int64_t)(v << shift) >> shift);
		line_integer(json, f, size, v);
	}
	json_array_end(json);
}

static void line_field(struct json *json, const struct tep_format_field *f, const struct tep_record *rec)
{
	size_t len = (size_t)rec->size, n;
	const uint8_t *data;
	uint64_t v;

	json_key(json, f->name);
	if (field_is_number(f)) {
		if (field_number(f, rec->data, len, &v))
			line_number(json, f, v);
		else
			json_null(json);
	} else if (field_bytes(f, rec->data, len, &data, &n) != 1) {
		json_null(json);
	} else if (f->flags & TEP_FIELD_IS_STRING) {
		json_strn(json, (const char *)data, strnlen((const char *)data, n));
	} else {
		line_array(json, f, data, n);
	}
}

/* ---- records -------------------------------------------------------------------- */

static void line_event(struct export_json *j, struct json *json, const struct timeline_record *r)
{
	struct tep_record rec = r->tep;

	json_key_str(json, "system", r->event->system);
	json_key_str(json, "event", r->event->name);
	json_key(json, "fields");
	json_object(json);
	for (const struct tep_format_field *f = r->event->format.fields; f; f = f->next)
		line_field(json, f, &rec);
	json_object_end(json);
	trace_seq_reset(&j->info);
	tep_print_event(r->in->tep, &j->info, &rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&j->info);
	json_key_str(json, "info", j->info.buffer);
}

static void line_unknown(struct json *json, const struct timeline_record *r)
{
	const uint8_t *data = r->tep.data;

	json_key_str(json, "system", NULL);
	json_key_str(json, "event", NULL);
	json_key_u64(json, "id", r->id);
	json_key(json, "data");
	json_array(json);
	for (int i = 0; i < r->tep.size; i++)
		json_u64(json, data[i]);
	json_array_end(json);
}

/* Where it is from. */
static void line_place(struct json *json, const struct timeline_record *r)
{
	const char *base = strrchr(r->in->path, '/');

	json_key_str(json, "file", base ? base + 1 : r->in->path);
	json_key_str(json, "guest", r->in->guest ? r->in->machine : NULL);
	json_key_str(json, "buffer", r->buffer->name);
	json_key_u64(json, "cpu", r->cpu);
	if (r->missed < 0)
		json_key_bool(json, "lost", true);
	else if (r->missed)
		json_key_u64(json, "lost", (uint64_t)r->missed);
}

int export_json_record(void *ctx, const struct timeline_record *r)
{
	struct export_json *j = ctx;
	struct json json = { .out = &j->out, .compact = true };

	json_object(&json);
	line_place(&json, r);
	if (r->tep.size) {
		json_key_u64(&json, "time", r->ts);
		json_key(&json, "pid");
		if (r->event && r->pid >= 0)
			json_i64(&json, r->pid);
		else
			json_null(&json);
		json_key_str(&json, "comm", timeline_comm(r));
		if (r->event)
			line_event(j, &json, r);
		else
			line_unknown(&json, r);
	}
	json_object_end(&json);
	buf_addstr(&j->out, "\n");
	return j->out.len < FLUSH_AT ? buf_status(&j->out) : export_json_flush(j);
}
