// SPDX-License-Identifier: LGPL-2.1-or-later
/* Event format files of tracefs: a name, an id, fields, the print format. */
#include "dat/format.h"
#include "util/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIELD_END_MAX 65536

/* A stretch of the text. */
struct span {
	const char *p;
	size_t len;
};

static struct span span_trim(struct span s)
{
	while (s.len && (*s.p == ' ' || *s.p == '\t')) {
		s.p++;
		s.len--;
	}
	while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t' || s.p[s.len - 1] == '\r'))
		s.len--;
	return s;
}

/* What follows `prefix` at the start of a line. */
static bool span_after(struct span line, const char *prefix, struct span *rest)
{
	size_t n = strlen(prefix);

	if (line.len < n || memcmp(line.p, prefix, n))
		return false;
	*rest = (struct span){ line.p + n, line.len - n };
	return true;
}

/* Takes what stands before the next ';' (or all). */
static struct span span_part(struct span *s)
{
	const char *semi = memchr(s->p, ';', s->len);
	struct span part = { s->p, semi ? (size_t)(semi - s->p) : s->len };
	size_t taken = part.len + (semi ? 1 : 0);

	s->p += taken;
	s->len -= taken;
	return span_trim(part);
}

static int span_number(struct span s, unsigned int *out)
{
	unsigned int v = 0;

	if (!s.len)
		return -EBADMSG;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || v > (UINT32_MAX - 9) / 10)
			return -EBADMSG;
		v = v * 10 + (unsigned int)(s.p[i] - '0');
	}
	*out = v;
	return 0;
}

static int span_dup(struct span s, char **out)
{
	*out = strndup(s.p, s.len);
	return *out ? 0 : -ENOMEM;
}

/* ---- fields ----------------------------------------------------------------- */

static void field_release(struct event_field *f)
{
	free(f->type);
	free(f->name);
}

/* "unsigned long ip": the name is the last word, with the [n] of an array. */
static int field_declaration(struct event_field *f, struct span decl)
{
	size_t cut = decl.len;
	int ret;

	while (cut && decl.p[cut - 1] != ' ' && decl.p[cut - 1] != '\t' && decl.p[cut - 1] != '*')
		cut--;
	if (!cut || cut == decl.len)
		return -EBADMSG;
	ret = span_dup((struct span){ decl.p + cut, decl.len - cut }, &f->name);
	if (ret)
		return ret;
	return span_dup(span_trim((struct span){ decl.p, cut }), &f->type);
}

/* "unsigned char common_flags;	offset:2;	size:1;	signed:0;" */
static int field_parse(struct event_field *f, struct span line)
{
	unsigned int is_signed = 0;
	int ret = field_declaration(f, span_part(&line));

	if (ret)
		return ret;
	f->offset = f->size = UINT32_MAX; /* until they are named */
	while (line.len) {
		struct span part = span_part(&line), v;
		unsigned int *to;

		if (!part.len)
			continue;
		if (span_after(part, "offset:", &v))
			to = &f->offset;
		else if (span_after(part, "size:", &v))
			to = &f->size;
		else if (span_after(part, "signed:", &v))
			to = &is_signed;
		else
			return -EBADMSG;
		if (span_number(v, to))
			return -EBADMSG;
	}
	f->is_signed = is_signed;
	return f->size > FIELD_END_MAX || f->offset > FIELD_END_MAX - f->size ? -EBADMSG : 0;
}

static int fields_add(struct event_field **v, size_t *n, struct span line)
{
	struct event_field f = { 0 };
	int ret = field_parse(&f, line);
	struct event_field *grown = ret ? NULL : array_grow(*v, *n, sizeof(**v));

	if (!grown) {
		field_release(&f);
		return ret ? ret : -ENOMEM;
	}
	*v = grown;
	grown[(*n)++] = f;
	return 0;
}

/* ---- the file ----------------------------------------------------------------- */

struct parser {
	struct event_format *f;
	bool has_id, in_format, fields_only; /* fields_only: behind the blank line */
};

static int format_take_line(struct parser *p, struct span line)
{
	struct event_format *f = p->f;
	struct span v;

	if (!line.len) {
		p->fields_only = p->fields_only || f->n_common;
		return 0;
	}
	if (span_after(line, "field:", &v)) {
		if (!p->in_format)
			return -EBADMSG;
		return p->fields_only ? fields_add(&f->fields, &f->n_fields, v)
				      : fields_add(&f->common, &f->n_common, v);
	}
	if (span_after(line, "name:", &v) && !f->name) {
		v = span_trim(v);
		return v.len ? span_dup(v, &f->name) : -EBADMSG;
	}
	if (span_after(line, "ID:", &v) && !p->has_id) {
		p->has_id = true;
		return span_number(span_trim(v), &f->id);
	}
	if (span_after(line, "format:", &v) && !p->in_format && !span_trim(v).len) {
		p->in_format = true;
		return 0;
	}
	return -EBADMSG;
}

/* The print format may have several lines: it is all the rest. */
static int parse_print_fmt(struct event_format *f, struct span first, const char *end)
{
	struct span all = { first.p, (size_t)(end - first.p) };

	while (all.len && all.p[all.len - 1] == '\n')
		all.len--;
	return span_dup(span_trim(all), &f->print_fmt);
}

static int format_text(struct parser *p, const char *text, size_t len)
{
	struct cursor c = cursor_at(text, len);
	struct span line, v;

	while (cursor_line(&c, &line.p, &line.len)) {
		int ret;

		line = span_trim(line);
		if (span_after(line, "print fmt:", &v))
			return parse_print_fmt(p->f, v, text + len);
		ret = format_take_line(p, line);
		if (ret)
			return ret;
	}
	return span_dup((struct span){ "", 0 }, &p->f->print_fmt);
}

int event_format_parse(const char *text, size_t len, struct event_format *f)
{
	struct parser p = { .f = f };
	int ret = -EBADMSG;

	*f = (struct event_format){ 0 };
	if (len && !memchr(text, 0, len))
		ret = format_text(&p, text, len);
	if (!ret && f->name && p.has_id && p.in_format)
		return 0;
	event_format_release(f);
	return ret ? ret : -EBADMSG;
}

void event_format_release(struct event_format *f)
{
	for (size_t i = 0; i < f->n_common; i++)
		field_release(&f->common[i]);
	for (size_t i = 0; i < f->n_fields; i++)
		field_release(&f->fields[i]);
	free(f->common);
	free(f->fields);
	free(f->name);
	free(f->print_fmt);
	*f = (struct event_format){ 0 };
}

static bool field_named(const struct event_field *f, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(f->name, name, n) && (!f->name[n] || f->name[n] == '[');
}

const struct event_field *event_format_field(const struct event_format *f, const char *name)
{
	for (size_t i = 0; i < f->n_fields; i++)
		if (field_named(&f->fields[i], name))
			return &f->fields[i];
	for (size_t i = 0; i < f->n_common; i++)
		if (field_named(&f->common[i], name))
			return &f->common[i];
	return NULL;
}
