// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tree of stacks as profiles: speedscope's JSON, and pprof's protobuf. */
#include "ask/flame/flame.h"

#include "base/files.h"
#include "base/json.h"
#include "base/protobuf.h"

struct profile_output {
	const struct flame_profile *p;
	struct buf out;
	struct json json;
	int fd;
	/* speedscope: of the profile that is written, and whether its weights are, or its stacks */
	size_t side;
	bool weights;
};

int profile_flush(struct buf *out, int fd, size_t least)
{
	int ret = buf_status(out);

	if (ret || out->len < least)
		return ret;
	ret = write_all(fd, out->data, out->len);
	out->len = 0;
	return ret;
}

/* A weight, or a stack: places of names in the array of frames. */
static int speedscope_value(void *ctx, const struct flame_frame *f, const uint64_t *begin)
{
	struct profile_output *o = ctx;

	if (!f->self[o->side])
		return 0;
	if (o->weights) {
		json_u64(&o->json, f->self[o->side]);
	} else {
		json_array(&o->json);
		for (size_t i = 0; i < f->depth; i++)
			json_u64(&o->json, f->stack[i] - 1);
		json_array_end(&o->json);
	}
	return profile_flush(&o->out, o->fd, PROFILE_FLUSH);
}

static int speedscope_values(struct profile_output *o, const char *key, bool weights)
{
	int ret;

	o->weights = weights;
	json_key_array(&o->json, key);
	ret = flame_tree_walk(o->p->tree, o->p->weight, speedscope_value, o);
	json_array_end(&o->json);
	return ret;
}

static int speedscope_side(struct profile_output *o, const char *name)
{
	const struct flame_profile *p = o->p;
	int ret;

	json_object(&o->json);
	json_key_str(&o->json, "type", "sampled");
	json_key_str(&o->json, "name", name);
	json_key_str(&o->json, "unit", p->weight == FLAME_NS && !p->ticks ? "nanoseconds" : "none");
	json_key_u64(&o->json, "startValue", 0);
	json_key_u64(&o->json, "endValue", flame_tree_total(p->tree, o->side, p->weight));
	ret = speedscope_values(o, "samples", false) ?: speedscope_values(o, "weights", true);
	json_object_end(&o->json);
	return ret;
}

int profile_speedscope(const struct flame_profile *p, int fd)
{
	struct profile_output o = { .p = p, .json = { .out = &o.out, .compact = true }, .fd = fd };
	int ret;

	json_object(&o.json);
	json_key_str(&o.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_key_str(&o.json, "exporter", "hyptrace " HYPTRACE_VERSION);
	json_key_str(&o.json, "name", p->title);
	json_key(&o.json, "shared");
	json_object(&o.json);
	json_key_array(&o.json, "frames");
	for (uint32_t i = 1; i < flame_tree_names(p->tree); i++) {
		json_object(&o.json);
		json_key_str(&o.json, "name", flame_tree_text(p->tree, i));
		json_object_end(&o.json);
	}
	json_array_end(&o.json);
	json_object_end(&o.json);
	json_key_array(&o.json, "profiles");
	ret = speedscope_side(&o, p->diff ? "before" : p->title);
	o.side = 1;
	if (p->diff && !ret)
		ret = speedscope_side(&o, "after");
	json_array_end(&o.json);
	json_object_end(&o.json);
	buf_addstr(&o.out, "\n");
	ret = ret ?: profile_flush(&o.out, fd, 1);
	buf_release(&o.out);
	return ret;
}

/* Fields of a Profile, and of the messages in it. */
enum { PPROF_SAMPLE_TYPE = 1, PPROF_SAMPLE = 2, PPROF_LOCATION = 4, PPROF_FUNCTION = 5, PPROF_STRING = 6 };
enum { PPROF_COMMENT = 13 };
enum { PPROF_VALUE_TYPE = 1, PPROF_VALUE_UNIT = 2 };
enum { PPROF_SAMPLE_LOCATION = 1, PPROF_SAMPLE_VALUE = 2 };
enum { PPROF_ID = 1, PPROF_FUNCTION_NAME = 2, PPROF_LOCATION_LINE = 4, PPROF_LINE_FUNCTION = 1 };

static void pprof_value(struct buf *out, uint64_t v)
{
	pb_number(out, PPROF_SAMPLE_VALUE, v < INT64_MAX ? v : INT64_MAX);
}

/* Locations, from the innermost on, have the numbers of their names. */
static int pprof_sample(void *ctx, const struct flame_frame *f, const uint64_t *begin)
{
	struct profile_output *o = ctx;
	size_t sample;

	if (!f->self[0] && !f->self[1])
		return 0;
	sample = pb_open(&o->out, PPROF_SAMPLE);
	for (size_t i = f->depth; i--;)
		pb_number(&o->out, PPROF_SAMPLE_LOCATION, f->stack[i]);
	pprof_value(&o->out, f->self[0]);
	if (o->p->diff)
		pprof_value(&o->out, f->self[1]);
	pb_close(&o->out, sample);
	return profile_flush(&o->out, o->fd, PROFILE_FLUSH);
}

/* Each number is that of the next string; returns the one after these. */
static uint32_t pprof_sample_type(struct buf *out, uint32_t next, const char *type, const char *unit)
{
	size_t message = pb_open(out, PPROF_SAMPLE_TYPE);

	pb_number(out, PPROF_VALUE_TYPE, next);
	pb_number(out, PPROF_VALUE_UNIT, next + 1);
	pb_close(out, message);
	pb_text(out, PPROF_STRING, type, SIZE_MAX);
	pb_text(out, PPROF_STRING, unit, SIZE_MAX);
	return next + 2;
}

int profile_pprof(const struct flame_profile *p, int fd)
{
	static const char *const types[FLAME_WEIGHTS] = { "samples", "time", "calls", "entries" };
	const char *unit = p->weight != FLAME_NS ? "count" : p->ticks ? "ticks" : "nanoseconds";
	struct profile_output o = { .p = p, .fd = fd };
	uint32_t n = flame_tree_names(p->tree), next;
	int ret = flame_tree_walk(p->tree, p->weight, pprof_sample, &o);

	pb_text(&o.out, PPROF_STRING, "", 0); /* 0 is no text */
	for (uint32_t i = 1; i < n; i++) {
		const char *name = flame_tree_text(p->tree, i);
		size_t message = pb_open(&o.out, PPROF_FUNCTION), line;

		/* the function and its location have the number of the name, as it has in the table of
		 * strings */
		pb_number(&o.out, PPROF_ID, i);
		pb_number(&o.out, PPROF_FUNCTION_NAME, i);
		pb_close(&o.out, message);
		message = pb_open(&o.out, PPROF_LOCATION);
		pb_number(&o.out, PPROF_ID, i);
		line = pb_open(&o.out, PPROF_LOCATION_LINE);
		pb_number(&o.out, PPROF_LINE_FUNCTION, i);
		pb_close(&o.out, line);
		pb_close(&o.out, message);
		pb_text(&o.out, PPROF_STRING, name, strlen(name));
	}
	next = pprof_sample_type(&o.out, n, p->diff ? "before" : types[p->weight], unit);
	if (p->diff)
		next = pprof_sample_type(&o.out, next, "after", unit);
	pb_number(&o.out, PPROF_COMMENT, next);
	pb_text(&o.out, PPROF_STRING, p->title, SIZE_MAX);
	ret = ret ?: profile_flush(&o.out, fd, 1);
	buf_release(&o.out);
	return ret;
}
