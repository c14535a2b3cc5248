// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the records of an event look like, which Perfetto does not keep: by a copy of the kernel's events, by
 * the table, or as a list of the values that came. The layout is ours, the print format the kernel's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dat/format.h"
#include "hyp/events.h"
#include "import/import-priv.h"
#include "import/pftrace-priv.h"
#include "util/array.h"

#define FORMAT_MAX  (1u << 20)
#define COLUMNS_MAX 2048 /* bytes of a record but for its texts, which get the rest of a page */

/* ---- columns --------------------------------------------------------------------------- */

static int column_add(struct pft_kind *k, const struct pft_column *c)
{
	return k->n < PFT_VALUES ? array_push(&k->v, &k->n, c, sizeof(*c)) : -E2BIG;
}

static void columns_drop(struct pft_kind *k)
{
	free(k->v);
	free(k->print_fmt);
	k->v = NULL;
	k->n = 0;
	k->print_fmt = NULL;
}

/* "u32 vec=1;..." as the table has it: the next one. False: there is none. */
static bool row_column(const char **fields, struct pft_column *c)
{
	char type[16];
	int n = 0;

	*c = (struct pft_column){ 0 };
	if (sscanf(*fields, "%15s %63[^=]=%u%n", type, c->name, &c->number, &n) != 3)
		return false;
	*fields += n + ((*fields)[n] == ';');
	c->is_symbol = !strcmp(type, "sym");
	c->is_signed = type[0] == 's' && !c->is_symbol;
	if (!strcmp(type, "text")) {
		c->how = PFT_TEXT;
		c->size = 4;
	} else if (!strcmp(type, "rest")) {
		c->how = PFT_REST;
	} else if (!strncmp(type, "char", 4)) {
		c->how = PFT_CHARS;
		c->size = (unsigned int)atoi(type + 4);
	} else {
		c->size = c->is_symbol ? 8 : (unsigned int)atoi(type + 1) / 8;
	}
	snprintf(c->type, sizeof(c->type), "%s",
		 c->how == PFT_TEXT	? "__data_loc char[]"
		 : c->how != PFT_NUMBER ? "char"
		 : c->is_symbol		? "void *"
					: type);
	return true;
}

/* The number in Perfetto's message, and whether it stands for a symbol, of the row's field of that name. */
static void row_number(const struct pft_row *row, struct pft_column *c)
{
	const char *fields = row ? row->fields : "";
	struct pft_column r;

	while (row_column(&fields, &r))
		if (!strcmp(r.name, c->name)) {
			c->number = r.number;
			c->is_symbol = r.is_symbol;
		}
}

static bool value_is(const struct pft_value *v, const struct pft_column *c)
{
	if (!v->name)
		return c->number && v->number == c->number;
	return strlen(c->name) == v->name_len && !memcmp(c->name, v->name, v->name_len);
}

static bool value_fits(const struct pft_value *v, const struct pft_column *c)
{
	return value_is(v, c) && v->is_text == (c->how != PFT_NUMBER);
}

const struct pft_column *pft_column(const struct pft_kind *k, const struct pft_value *v)
{
	for (size_t i = 0; i < k->n; i++)
		if (value_fits(v, &k->v[i]))
			return &k->v[i];
	return NULL;
}

static bool column_came(const struct pft_column *c, const struct pft_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (value_fits(&v[i], c))
			return true;
	return false;
}

/* Whether each column has a value: else a record would say what nobody saw. */
static bool columns_fit(const struct pft_kind *k, const struct pft_value *v, size_t n)
{
	for (size_t i = 0; i < k->n; i++)
		if (!column_came(&k->v[i], v, n))
			return false;
	return true;
}

/* ---- a copy of the kernel's events ----------------------------------------------------------- */

/* -EINVAL: no value of Perfetto's can fill it. */
static int file_column(struct pft_column *c, const struct event_field *f)
{
	const char *array = strchr(f->name, '[');

	*c = (struct pft_column){ .size = f->size, .is_signed = f->is_signed };
	if (strlen(f->type) >= sizeof(c->type) || strlen(f->name) >= sizeof(c->name))
		return -EINVAL;
	strcpy(c->type, f->type);
	snprintf(c->name, sizeof(c->name), "%.*s", (int)(array ? array - f->name : 63), f->name);
	if (!strcmp(f->type, "__data_loc char[]")) {
		c->how = PFT_TEXT;
		c->size = 4;
		return 0;
	}
	if (array) {
		c->how = f->size ? PFT_CHARS : PFT_REST;
		return strcmp(f->type, "char") ? -EINVAL : 0;
	}
	return f->size <= 8 && f->size && !(f->size & (f->size - 1)) && !strstr(f->type, "_loc") ? 0
												 : -EINVAL;
}

static int file_columns(struct pft_kind *k, const struct pft_row *row, const struct event_format *f)
{
	size_t size = 0;
	int ret = 0;

	for (size_t i = 0; i < f->n_fields && !ret; i++) {
		struct pft_column c;

		ret = file_column(&c, &f->fields[i]);
		size += ret ? 0 : c.size;
		row_number(row, &c);
		ret = ret ?: size > COLUMNS_MAX ? -EINVAL : column_add(k, &c);
	}
	k->print_fmt = ret ? NULL : strdup(f->print_fmt);
	return ret ?: k->print_fmt ? 0 : -ENOMEM;
}

/* 1: k has the columns of SYSTEM/NAME/format. */
static int format_file(const char *dir, const char *system, struct pft_kind *k, const struct pft_row *row)
{
	char *path = str_printf("%s/%s/%s/format", dir, system, k->name);
	struct event_format f = { 0 };
	struct buf text = { 0 };
	int ret = path ? read_file(path, FORMAT_MAX, &text) : -ENOMEM;

	free(path);
	ret = ret ?: event_format_parse((char *)text.data, text.len, &f) ?: file_columns(k, row, &f);
	event_format_release(&f);
	buf_release(&text);
	return ret == -ENOMEM ? ret : !ret;
}

static bool is_hyp_system(const char *system)
{
	return !strcmp(system, "hyp") || !strcmp(system, "hypervisor");
}

static int set_system(struct pft_kind *k, const char *system)
{
	free(k->system);
	k->is_hyp = is_hyp_system(system);
	k->system = strdup(k->is_hyp ? "hypervisor" : system);
	return k->system ? 0 : -ENOMEM;
}

static int format_copied(struct pft *p, struct pft_kind *k, const struct pft_row *row,
			 const struct pft_value *v, size_t n)
{
	for (size_t i = 0; i < p->systems.n; i++) {
		const char *system = p->systems.v[i];
		int ret;

		if (row && strcmp(row->system, system) &&
		    !(is_hyp_system(row->system) && is_hyp_system(system)))
			continue;
		ret = format_file(p->o->formats, system, k, row);
		if (ret < 0)
			return ret;
		if (ret && columns_fit(k, v, n))
			return set_system(k, system) ?: 1;
		columns_drop(k);
	}
	return 0;
}

/* ---- the table -------------------------------------------------------------------------------- */

static int format_known(struct pft_kind *k, const struct pft_row *row, const struct pft_value *v, size_t n)
{
	const char *fields = row->fields, *print_fmt = row->print_fmt
							       ?: *fields ? import_known_print(row->name)
									  : "\" \"";
	struct pft_column c;

	if (!print_fmt || (k->is_hyp != is_hyp_system(row->system)))
		return 0;
	while (row_column(&fields, &c))
		if (column_add(k, &c))
			return -ENOMEM;
	/* a generic event with more than that is another kernel's; hyp_enter's reason came by some packets
	 * only */
	if (!columns_fit(k, v, n) || (n > k->n && v[0].name && !k->is_hyp))
		return 0;
	k->print_fmt = strdup(print_fmt);
	return k->print_fmt ? 1 : -ENOMEM;
}

/* ---- what came --------------------------------------------------------------------------------- */

static void plain_print(struct pft_kind *k, struct buf *out)
{
	buf_addstr(out, "\"");
	for (size_t i = 0; i < k->n; i++)
		buf_printf(out, "%s%s=%s", i ? " " : "", k->v[i].name,
			   k->v[i].how != PFT_NUMBER ? "%s"
			   : k->v[i].is_symbol	     ? "%ps"
			   : k->v[i].is_signed	     ? "%lld"
						     : "%llu");
	buf_addstr(out, k->n ? "\"" : " \"");
	for (size_t i = 0; i < k->n; i++)
		buf_printf(out, k->v[i].how == PFT_TEXT ? ", __get_str(%s)" : ", REC->%s", k->v[i].name);
}

static bool is_word(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_word_char(name[i]))
			return false;
	return len && len < 64 && (name[0] < '0' || name[0] > '9');
}

/* Of a generic event: a value as it came. */
static int value_column(struct pft_kind *k, const struct pft_value *v)
{
	struct pft_column c = { .how = v->is_text ? PFT_TEXT : PFT_NUMBER, .size = v->is_text ? 4 : 8 };

	if (!is_word(v->name, v->name_len))
		return 0;
	memcpy(c.name, v->name, v->name_len);
	c.is_signed = v->is_signed;
	strcpy(c.type, v->is_text ? "__data_loc char[]" : c.is_signed ? "s64" : "u64");
	for (size_t i = 0; i < k->n; i++)
		if (!strcmp(k->v[i].name, c.name))
			return 0;
	return column_add(k, &c);
}

static int format_plain(struct pft_kind *k, const struct pft_row *row, const struct pft_value *v, size_t n)
{
	const char *fields = row && n && !v[0].name ? row->fields : "";
	struct buf print = { 0 };
	struct pft_column c;
	int ret = 0;

	while (row_column(&fields, &c) && !ret)
		if (column_came(&c, v, n))
			ret = column_add(k, &c);
	for (size_t i = 0; i < n && !ret; i++)
		ret = v[i].name ? value_column(k, &v[i]) : 0;
	plain_print(k, &print);
	k->print_fmt = ret ? NULL : strdup(buf_str(&print) ?: "");
	buf_release(&print);
	return ret ?: k->print_fmt ? 1 : -ENOMEM;
}

/* ---- all of it ---------------------------------------------------------------------------------- */

/* Behind the common fields, each at a multiple of its size. */
static void columns_place(struct pft_kind *k)
{
	unsigned int at = HYP_HEADER_SIZE;

	for (size_t i = 0; i < k->n; i++) {
		unsigned int align = k->v[i].how == PFT_NUMBER || k->v[i].how == PFT_TEXT ? k->v[i].size : 1;

		at = (at + align - 1) / align * align;
		k->v[i].offset = at;
		at += k->v[i].size;
	}
	k->size = at;
}

int pft_format(struct pft *p, struct pft_kind *k, const struct pft_row *row, const struct pft_value *v,
	       size_t n)
{
	int ret = set_system(k, row ? row->system : "perfetto");

	ret = ret ?: format_copied(p, k, row, v, n);
	if (!ret && row) {
		ret = format_known(k, row, v, n);
		if (!ret)
			columns_drop(k);
	}
	ret = ret ?: format_plain(k, row, v, n);
	if (ret == 1)
		columns_place(k);
	return ret;
}

void pft_kind_text(const struct pft_kind *k, struct buf *out)
{
	hypevents_format_head(k->name, k->id, out);
	for (size_t i = 0; i < k->n; i++) {
		const struct pft_column *c = &k->v[i];

		buf_printf(out, "\tfield:%s %s", c->type, c->name);
		if (c->how == PFT_CHARS)
			buf_printf(out, "[%u]", c->size);
		buf_printf(out, "%s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", c->how == PFT_REST ? "[]" : "",
			   c->offset, c->size, c->is_signed);
	}
	buf_printf(out, "\nprint fmt: %s\n", k->print_fmt);
}
