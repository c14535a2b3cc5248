// SPDX-License-Identifier: LGPL-2.1-or-later
/* Event format files of tracefs: a name, an id, fields, the print format. */
#include "file/dat/format.h"

#include "base/strings.h"

#define FIELD_END_MAX 65536

/* Cuts blanks and ends of lines off the end; what follows the blanks in front. */
static char *trim(char *s)
{
	size_t len;

	s += strspn(s, " \t");
	len = strlen(s);
	while (len && strchr(" \t\r\n", s[len - 1]))
		s[--len] = 0;
	return s;
}

/* Rest of s after `prefix`; NULL: s begins differently. */
static char *after(char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) ? NULL : s + n;
}

static int parse_u32(const char *s, unsigned int *out)
{
	uint64_t v;

	if (!*s || s[strspn(s, "0123456789")] || parse_u64(s, &v) || v > UINT32_MAX)
		return -EBADMSG;
	*out = (unsigned int)v;
	return 0;
}

static void field_release(struct event_field *f)
{
	free(f->type);
	free(f->name);
}

/* "unsigned char common_flags;	offset:2;	size:1;	signed:0;" */
static int field_parse(struct event_field *f, char *line)
{
	unsigned int is_signed = 0;
	int ret;
	char *decl = trim(strsep(&line, ";"));
	size_t cut = strlen(decl);

	/* "unsigned long ip": the name is the last word, with the [n] of an array. */
	while (cut && !strchr(" \t*", decl[cut - 1]))
		cut--;
	if (!cut || !decl[cut])
		return -EBADMSG;
	f->name = strdup(decl + cut);
	decl[cut] = 0;
	f->type = strdup(trim(decl));
	ret = f->name && f->type ? 0 : -ENOMEM;
	if (ret)
		return ret;
	f->offset = f->size = UINT32_MAX; /* until they are named */
	while (line) {
		char *part = trim(strsep(&line, ";")), *v;

		if (!*part)
			continue;
		if ((v = after(part, "offset:")))
			ret = parse_u32(v, &f->offset);
		else if ((v = after(part, "size:")))
			ret = parse_u32(v, &f->size);
		else if ((v = after(part, "signed:")))
			ret = parse_u32(v, &is_signed);
		else
			ret = -EBADMSG;
		if (ret)
			return ret;
	}
	f->is_signed = is_signed;
	return f->size > FIELD_END_MAX || f->offset > FIELD_END_MAX - f->size ? -EBADMSG : 0;
}

static int fields_add(struct event_field **v, size_t *n, char *line)
{
	struct event_field f = { 0 };
	int ret = field_parse(&f, line) ?: array_push(v, n, &f, sizeof(f));

	if (ret)
		field_release(&f);
	return ret;
}

struct parser {
	struct event_format *f;
	bool has_id, in_format, fields_only; /* fields_only: after the blank line */
};

static int format_take_line(struct parser *p, char *line)
{
	struct event_format *f = p->f;
	char *v;

	if (!*line) {
		p->fields_only = p->fields_only || f->n_common;
		return 0;
	}
	if ((v = after(line, "field:"))) {
		if (!p->in_format)
			return -EBADMSG;
		return p->fields_only ? fields_add(&f->fields, &f->n_fields, v)
				      : fields_add(&f->common, &f->n_common, v);
	}
	if ((v = after(line, "name:")) && !f->name) {
		v = trim(v);
		f->name = *v ? strdup(v) : NULL;
		return f->name ? 0 : *v ? -ENOMEM : -EBADMSG;
	}
	if ((v = after(line, "ID:")) && !p->has_id) {
		p->has_id = true;
		return parse_u32(trim(v), &f->id);
	}
	if ((v = after(line, "format:")) && !p->in_format && !*trim(v)) {
		p->in_format = true;
		return 0;
	}
	return -EBADMSG;
}

int event_format_parse(const char *text, size_t len, struct event_format *f)
{
	struct parser p = { .f = f };
	char *copy, *rest, *print_fmt = NULL;
	int ret;

	*f = (struct event_format){ 0 };
	if (!len || memchr(text, 0, len))
		return -EBADMSG;
	copy = strndup(text, len);
	ret = copy ? 0 : -ENOMEM;
	for (rest = copy; !ret && rest && *rest;) {
		print_fmt = after(rest + strspn(rest, " \t"), "print fmt:");
		if (print_fmt)
			break;
		ret = format_take_line(&p, trim(strsep(&rest, "\n")));
	}
	/* the print format may have several lines: it is all the rest */
	f->print_fmt = ret ? NULL : strdup(trim(print_fmt ?: (char[]){ "" }));
	ret = ret ?: f->print_fmt ? 0 : -ENOMEM;
	free(copy);
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

static bool field_named(const struct event_field *f, const char *name, size_t n)
{
	return !strncmp(f->name, name, n) && (!f->name[n] || f->name[n] == '[');
}

const struct event_field *event_format_field(const struct event_format *f, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < f->n_fields; i++)
		if (field_named(&f->fields[i], name, n))
			return &f->fields[i];
	for (size_t i = 0; i < f->n_common; i++)
		if (field_named(&f->common[i], name, n))
			return &f->common[i];
	return NULL;
}
