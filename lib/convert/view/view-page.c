// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes the page's data, a head in JSON and columns of numbers, deflated, in base64, into the middle of the
 * HTML. */
#include <zlib.h>

#include "base/files.h"
#include "base/protobuf.h"
#include "file/dat/options.h"
#include "convert/view/view-priv.h"

extern const char view_page_html[]; /* page/, put together by the Makefile */

#define VIEW_DATA_MARK "@DATA@"

/* Columns of numbers, as protobuf writes them. */
enum {
	COLUMN_GAP,
	COLUMN_DURATION,
	COLUMN_LABEL,
	COLUMN_FROM_BOUND,
	COLUMN_TO_BOUND,
	COLUMN_CPU,
	SPAN_COLUMNS
};
enum { COLUMN_BUCKET = SPAN_COLUMNS, COLUMN_CELL_LABEL, COLUMN_CELL_NS, COLUMN_CELL_N, VIEW_COLUMNS };

/* Unknown numbers, the greatest of 32 bits, become 0, others one more. */
static uint32_t column_number(uint32_t n)
{
	return n + 1;
}

static void view_columns(const struct view *v, struct buf columns[VIEW_COLUMNS])
{
	uint64_t at = v->from;
	uint32_t bucket = 0;

	for (size_t i = 0; i < v->n_spans; i++) {
		const struct view_span *s = &v->spans[i];

		if (i && s->lane != s[-1].lane)
			at = v->from;
		pb_put_zigzag(&columns[COLUMN_GAP], (int64_t)(s->from - at)); /* may be negative */
		pb_put_varint(&columns[COLUMN_DURATION], s->to - s->from);
		pb_put_varint(&columns[COLUMN_LABEL], s->label);
		pb_put_varint(&columns[COLUMN_FROM_BOUND], column_number(s->from_bound));
		pb_put_varint(&columns[COLUMN_TO_BOUND], column_number(s->to_bound));
		pb_put_varint(&columns[COLUMN_CPU], column_number(s->cpu));
		at = s->to;
	}
	for (size_t i = 0; i < v->n_cells; i++) {
		const struct view_cell *c = &v->cells[i];

		if (i && c->lane != c[-1].lane)
			bucket = 0;
		pb_put_varint(&columns[COLUMN_BUCKET], c->bucket - bucket);
		pb_put_varint(&columns[COLUMN_CELL_LABEL], c->label);
		pb_put_varint(&columns[COLUMN_CELL_NS], c->ns);
		pb_put_varint(&columns[COLUMN_CELL_N], c->n);
		bucket = c->bucket;
	}
}

static void head_machines(struct json *j, const struct inputs *in)
{
	json_key_array(j, "machines");
	for (const struct input *f = in->v; f < in->v + in->n; f++) {
		const struct reader_option *o = reader_option(f->reader, DAT_COMMAND);
		char *command = o ? strndup(o->data.data, o->data.len) : NULL;

		json_object(j);
		json_key_str(j, "name", f->machine);
		json_key_str(j, "file", basename(f->path));
		json_key_str(j, "clock", f->time.clock);
		json_key_u64(j, "guest", f->guest);
		json_key_u64(j, "bound", filetime_widest_bound(&f->time)); /* 0: unknown */
		if (command)
			json_key_str(j, "command", command);
		free(command);
		json_object_end(j);
	}
	json_array_end(j);
}

static void head_json(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	buf_addstr(j->out, text);
	j->keyed = false;
}

static void view_head(const struct view *v, const struct view_job *job, struct view_cases *cases,
		      const struct buf *columns, struct buf *out)
{
	struct json j = { .out = out, .compact = true };
	char origin[24]; /* a text: JavaScript's numbers cannot hold it */

	snprintf(origin, sizeof(origin), "%llu", (unsigned long long)v->from);
	json_object(&j);
	json_key_str(&j, "title", job->title);
	json_key_str(&j, "origin", origin);
	json_key_u64(&j, "length", v->to - v->from);
	json_key_u64(&j, "ticks", inputs_in_ticks(job->reading->in));
	json_key_u64(&j, "bucket", v->width);
	json_key_u64(&j, "summed", v->folded ? v->least : 0);
	json_key_u64(&j, "left_out", v->left_out);
	head_machines(&j, job->reading->in);
	json_key_array(&j, "lanes");
	for (const struct view_lane *l = v->lanes; l < v->lanes + v->n_lanes; l++)
		JSON_ROW(&j, l->kind, l->input, column_number(l->number), column_number(l->guest),
			 (uint64_t)l->pid, l->name, l->spans, l->cells);
	json_array_end(&j);
	json_key_array(&j, "words");
	for (size_t i = 0; i < v->n_words; i++)
		json_str(&j, v->words[i]);
	json_array_end(&j);
	json_key_array(&j, "labels");
	for (const struct view_label *l = v->labels; l < v->labels + v->n_labels; l++)
		JSON_ROW(&j, l->state, l->by, l->reason, l->class, l->task, (uint64_t)l->pid, l->other,
			 (uint64_t)l->other_pid, l->coarse);
	json_array_end(&j);
	json_key_array(&j, "losses");
	for (const struct view_loss *l = v->losses; l < v->losses + v->n_losses; l++)
		JSON_ROW(&j, l->input, l->buffer, l->cpu, l->hyp, l->from - v->from, l->to - v->from,
			 l->events + 1); /* 0: unknown */
	json_array_end(&j);
	json_key_array(&j, "columns");
	for (size_t i = 0; i < VIEW_COLUMNS; i++)
		json_u64(&j, columns[i].len);
	json_array_end(&j);
	view_cases_head(cases, v->from, &j);
	for (size_t i = 0; i < job->n_answers && (job->full || v->records <= VIEW_ANSWERS); i++) {
		struct buf text = { 0 };
		int ret = job->answers[i].ask(job->reading->in, &text, job->damaged);

		if (!ret && buf_str(&text))
			head_json(&j, job->answers[i].key, buf_str(&text));
		out->bad |= ret && ret != -ENODATA;
		buf_release(&text);
	}
	json_key(&j, "rates"); /* numbers of records by machine and bucket */
	json_array(&j);
	for (size_t i = 0; i < job->reading->in->n; i++) {
		json_array(&j);
		for (size_t b = 0; b < VIEW_BUCKETS; b++)
			json_u64(&j, v->rates[i * VIEW_BUCKETS + b]);
		json_array_end(&j);
	}
	json_array_end(&j);
	head_json(&j, "findings", job->findings);
	head_json(&j, "tables", job->tables);
	json_object_end(&j);
}

static void base64_add(struct buf *out, const uint8_t *data, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		uint32_t n = (uint32_t)data[i] << 16;
		char text[4] = "====";

		n |= i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0;
		n |= i + 2 < len ? data[i + 2] : 0;
		for (size_t k = 0; k < 4 && i + k <= len; k++)
			text[k] = digits[n >> (18 - 6 * k) & 63];
		buf_add(out, text, sizeof(text));
	}
}

int view_columns_and_head(const struct view *v, const struct view_job *job, struct view_cases *cases,
			  struct buf *out)
{
	struct buf columns[VIEW_COLUMNS] = { 0 }, head = { 0 };
	uint8_t len[4];

	view_columns(v, columns);
	view_head(v, job, cases, columns, &head);
	for (size_t i = 0; i < sizeof(len); i++)
		len[i] = (uint8_t)(head.len >> 8 * i);
	buf_add(out, len, sizeof(len));
	buf_add(out, head.data, head.len);
	out->bad |= head.bad;
	buf_release(&head);
	for (size_t i = 0; i < VIEW_COLUMNS; i++) {
		buf_add(out, columns[i].data, columns[i].len);
		out->bad |= columns[i].bad;
		buf_release(&columns[i]);
	}
	return buf_status(out);
}

int view_pack(const struct buf *json, struct buf *data)
{
	uLongf len = compressBound(json->len);
	struct buf packed = { 0 };
	int ret = buf_room(&packed, len) ? 0 : -ENOMEM;

	if (!ret && compress2(packed.data, &len, json->data, json->len, 6) != Z_OK)
		ret = -ENOMEM;
	if (!ret) {
		buf_addstr(data, data->len ? "," : "");
		base64_add(data, packed.data, len);
	}
	buf_release(&packed);
	return ret ?: buf_status(data);
}

int view_write(const struct buf *data, int fd)
{
	const char *mark = strstr(view_page_html, VIEW_DATA_MARK), *rest = mark + strlen(VIEW_DATA_MARK);

	return write_all(fd, view_page_html, (size_t)(mark - view_page_html)) ?:
	       write_all(fd, data->data, data->len) ?: write_all(fd, rest, strlen(rest));
}
