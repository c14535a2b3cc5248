// SPDX-License-Identifier: LGPL-2.1-or-later
/* The check of an event's format before libtraceevent reads it. */
#include "file/dat/print-format.h"

#define COMMON_MAX 16  /* kernels' have five */
#define FIELDS_MAX 512 /* and up to 40 of their own */

static size_t name_len(const char *s)
{
	size_t n = 0;

	while (is_word_char(s[n]))
		n++;
	return n;
}

/* "[16]", "[]", "[(8 + 1)]" or nothing, to the end */
static bool brackets_sound(const char *s)
{
	const char *end = strchr(s, ']');

	return !*s ||
	       (*s == '[' && end && !end[1] &&
		strspn(s + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789 +-*/()") ==
			(size_t)(end - s - 1));
}

/* "const char *", "__data_loc char[]" */
static bool type_sound(const char *s)
{
	if (!name_len(s))
		return false;
	while (name_len(s) || *s == ' ' || *s == '*')
		s += name_len(s) ? name_len(s) : 1;
	return brackets_sound(s);
}

static bool field_sound(const struct event_field *f)
{
	size_t n = name_len(f->name);
	bool dynamic = !strncmp(f->type, "__data_loc", 10) || !strncmp(f->type, "__rel_loc", 9);

	return n && brackets_sound(f->name + n) && type_sound(f->type) &&
	       (!f->name[n] || !strchr(f->type, '[')) &&
	       (!dynamic || f->size == 4); /* two bytes of offset, two of length */
}

/* libtraceevent takes the first of the whole file's fields for where a record's type is. */
static bool fields_sound(const struct event_format *f)
{
	const struct event_field *type = f->common;

	if (!f->n_common || f->n_common > COMMON_MAX || f->n_fields > FIELDS_MAX ||
	    strcmp(type->name, "common_type") || type->offset || type->size != 2)
		return false;
	for (size_t i = 0; i < f->n_common; i++)
		/* it looks for a name among these first, and we last */
		if (!field_sound(&f->common[i]) || strncmp(f->common[i].name, "common_", 7))
			return false;
	for (size_t i = 0; i < f->n_fields; i++)
		if (!field_sound(&f->fields[i]) || !strncmp(f->fields[i].name, "common_", 7))
			return false;
	return true;
}

static void checked_fields(struct buf *out, const struct event_field *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "\tfield:%s %s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", v[i].type, v[i].name,
			   v[i].offset, v[i].size, v[i].is_signed);
	buf_addstr(out, "\n");
}

int format_check(const char *text, size_t len, struct checked_format *f)
{
	struct event_format e;
	int ret = event_format_parse(text, len, &e);

	*f = (struct checked_format){ 0 };
	if (ret)
		return ret;
	ret = e.name[name_len(e.name)] || e.id > UINT16_MAX || !fields_sound(&e) ? -EBADMSG : 0;
	if (ret)
		goto out;
	f->name = strdup(e.name);
	f->id = e.id;
	buf_printf(&f->text, "name: %s\nID: %u\nformat:\n", e.name, e.id);
	checked_fields(&f->text, e.common, e.n_common);
	checked_fields(&f->text, e.fields, e.n_fields);
	buf_addstr(&f->text, "print fmt: ");
	ret = print_format_check(&e, &f->text, &f->why);
	buf_addstr(&f->text, "\n");
	ret = f->name && ret != -ENOMEM ? buf_status(&f->text) : -ENOMEM;
out:
	event_format_release(&e);
	return ret;
}

void checked_format_release(struct checked_format *f)
{
	free(f->name);
	buf_release(&f->text);
	*f = (struct checked_format){ 0 };
}
