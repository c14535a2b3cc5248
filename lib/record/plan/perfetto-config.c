// SPDX-License-Identifier: LGPL-2.1-or-later
/* Perfetto's text configuration: which events it names, and for how long. */
#include "record/plan/plan.h"

#include "base/escape.h"
#include "base/cursor.h"
#include "base/files.h"

#define DEPTH_MAX 16
#define PATH_SIZE 256
#define FILE_MAX  (1u << 20)

/* One linux.ftrace source, whose parts come in any order. */
struct ftrace_source {
	struct strlist events;
	char *instance;
	uint64_t size_kb;
};

struct perfetto_text {
	struct record_plan *plan;
	struct cursor c;
	const char *begin;
	struct opts_error *err;
	char path[PATH_SIZE]; /* of the field: "data_sources.config.name" */
	struct ftrace_source ftrace;
	int depth;
};

static int perfetto_wrong(struct perfetto_text *t, const char *why)
{
	unsigned int line = 1;

	for (const char *p = t->begin; p < (const char *)t->c.p; p++)
		line += *p == '\n';
	return opts_error(t->err, "line %u: %s", line, why);
}

static int perfetto_note(struct perfetto_text *t, const char *what)
{
	return strlist_has(&t->plan->notes, what) ? 0 : strlist_add(&t->plan->notes, what);
}

static int perfetto_number(struct perfetto_text *t, const char *value, uint64_t *out)
{
	return parse_u64(value, out) ? perfetto_wrong(t, "not a number") : 0;
}

/* Other fields are noted. */
static int perfetto_take(struct perfetto_text *t, const char *value)
{
	static const char source[] = "data_sources.config.", ftrace[] = "data_sources.config.ftrace_config.";
	const char *field = t->path;

	if (!strcmp(field, "duration_ms"))
		return perfetto_number(t, value, &t->plan->duration_ms);
	if (!strncmp(field, source, strlen(source)) && !strcmp(field + strlen(source), "name"))
		return strcmp(value, "linux.ftrace") ? perfetto_note(t, value) : 0;
	if (strncmp(field, ftrace, strlen(ftrace)))
		return perfetto_note(t, t->path);
	field += strlen(ftrace);
	if (!strcmp(field, "ftrace_events"))
		return *value ? strlist_add(&t->ftrace.events, value) : perfetto_wrong(t, "no name");
	if (!strcmp(field, "buffer_size_kb"))
		return perfetto_number(t, value, &t->ftrace.size_kb);
	if (strcmp(field, "instance_name"))
		return perfetto_note(t, t->path);
	if (*value && !name_fits_file(value))
		return perfetto_wrong(t, "not a name for an instance");
	return str_take(&t->ftrace.instance, strdup(value));
}

static int perfetto_event(struct perfetto_text *t, const char *instance, char *event)
{
	bool hyp = event_name_is_hyp(event) || !strcmp(instance, "hyp") || !strcmp(instance, "hypervisor");
	struct buffer_plan *b;

	if (!strcmp(event, "ftrace/print") || !strcmp(event, "print"))
		return 0; /* markers are in every recording */
	b = hyp ? record_plan_hyp(t->plan) : NULL;
	for (size_t i = 0; i < t->plan->n_buffers && !hyp && !b; i++)
		if (!strcmp(t->plan->buffers[i].name, instance))
			b = &t->plan->buffers[i];
	if (!b && !hyp)
		b = record_plan_add_buffer(t->plan, instance);
	if (!b)
		return -ENOMEM;
	if (t->ftrace.size_kb)
		b->size_kb = t->ftrace.size_kb;
	return buffer_plan_add_event(b, event, false) ? 0 : -ENOMEM;
}

static void ftrace_source_release(struct ftrace_source *s)
{
	strlist_release(&s->events);
	free(s->instance);
	*s = (struct ftrace_source){ 0 };
}

/* ---- the text: fields, blocks, lists, strings --------------------------------------- */

/* Comments, too. */
static void perfetto_blanks(struct perfetto_text *t)
{
	for (cursor_blanks(&t->c); cursor_peek(&t->c) == '#'; cursor_blanks(&t->c))
		while (cursor_peek(&t->c) != -1 && cursor_peek(&t->c) != '\n')
			t->c.p++;
}

static bool perfetto_next(struct perfetto_text *t, char c)
{
	perfetto_blanks(t);
	return cursor_accept(&t->c, c);
}

/* Reads a name or a number; "" when neither follows. */
static void perfetto_word(struct perfetto_text *t, struct buf *out)
{
	perfetto_blanks(t);
	for (;;) {
		int c = cursor_peek(&t->c);

		if (c == -1 || !(isalnum(c) || strchr("_.-+", c)))
			return;
		buf_add(out, t->c.p++, 1);
	}
}

static int perfetto_string(struct perfetto_text *t, char quote, struct buf *out)
{
	for (;;) {
		int c = cursor_peek(&t->c);

		if (c == -1 || c == '\n')
			return perfetto_wrong(t, "a string without end");
		if (!c || c == '\\')
			return perfetto_wrong(t, "a string with escapes");
		t->c.p++;
		if (c == quote)
			return 0;
		buf_add(out, &(char){ (char)c }, 1);
	}
}

static int perfetto_fields(struct perfetto_text *t, char end);

static int perfetto_block(struct perfetto_text *t, char end)
{
	bool source = !strcmp(t->path, "data_sources.config.ftrace_config");
	int ret;

	if (++t->depth > DEPTH_MAX)
		return perfetto_wrong(t, "blocks within blocks");
	ret = perfetto_fields(t, end);
	t->depth--;
	if (source) {
		for (size_t i = 0; i < t->ftrace.events.n && !ret; i++)
			ret = perfetto_event(t, t->ftrace.instance ?: "", t->ftrace.events.v[i]);
		ftrace_source_release(&t->ftrace);
	}
	return ret;
}

static int perfetto_one(struct perfetto_text *t)
{
	struct buf value = { 0 };
	bool any = false;
	int ret = 0;

	if (perfetto_next(t, '{'))
		return perfetto_block(t, '}');
	if (perfetto_next(t, '<'))
		return perfetto_block(t, '>');
	/* adjacent strings are one */
	while (!ret) {
		if (perfetto_next(t, '"'))
			ret = perfetto_string(t, '"', &value);
		else if (perfetto_next(t, '\''))
			ret = perfetto_string(t, '\'', &value);
		else
			break;
		any = true;
	}
	if (!ret && !any) {
		perfetto_word(t, &value);
		ret = value.len ? 0 : perfetto_wrong(t, "a value is missing");
	}
	ret = ret ?: buf_str(&value) ? perfetto_take(t, buf_str(&value)) : -ENOMEM;
	buf_release(&value);
	return ret;
}

static int perfetto_field(struct perfetto_text *t)
{
	const size_t len = strlen(t->path);
	struct buf name = { 0 };
	int ret = 0;

	perfetto_word(t, &name);
	if (!name.len)
		ret = perfetto_wrong(t, "a field's name is missing");
	else if (len + name.len + 2 > sizeof(t->path))
		ret = perfetto_wrong(t, "names are too long");
	else if (!buf_str(&name))
		ret = -ENOMEM;
	if (ret)
		goto out;
	if (len)
		strcat(t->path, ".");
	strcat(t->path, buf_str(&name));
	if (!perfetto_next(t, ':') && cursor_peek(&t->c) != '{' && cursor_peek(&t->c) != '<')
		ret = perfetto_wrong(t, "expected ':' or '{'");
	else if (!perfetto_next(t, '['))
		ret = perfetto_one(t);
	else if (!perfetto_next(t, ']')) {
		do
			ret = perfetto_one(t);
		while (!ret && perfetto_next(t, ','));
		if (!ret && !perfetto_next(t, ']'))
			ret = perfetto_wrong(t, "a list without end");
	}
	if (!ret && !perfetto_next(t, ','))
		perfetto_next(t, ';');
	t->path[len] = 0;
out:
	buf_release(&name);
	return ret;
}

/* end: 0 at the end of the text */
static int perfetto_fields(struct perfetto_text *t, char end)
{
	int ret = 0;

	while (!ret) {
		perfetto_blanks(t);
		if (cursor_peek(&t->c) == -1)
			return end ? perfetto_wrong(t, "a block without end") : 0;
		if (end && cursor_accept(&t->c, end))
			return 0;
		ret = perfetto_field(t);
	}
	return ret;
}

int perfetto_config(struct record_plan *plan, const char *text, size_t len, struct opts_error *err)
{
	struct perfetto_text t = { .plan = plan, .c = cursor_at(text, len), .begin = text, .err = err };
	int ret = perfetto_fields(&t, 0);

	ftrace_source_release(&t.ftrace);
	return ret;
}

int perfetto_config_option(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *plan = ctx;
	struct opts_error why = { "out of memory" };
	struct buf text = { 0 };
	int ret = read_file(arg, FILE_MAX, &text);

	if (ret)
		opts_error(&why, "%s", errno_text(ret));
	else
		ret = perfetto_config(plan, (const char *)text.data, text.len, &why);
	plan->ignore_event_errors = true; /* as Perfetto does */
	buf_release(&text);
	return ret ? opts_wrong(err, o, arg, why.text) : 0;
}
