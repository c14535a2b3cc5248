// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kinds of events and the layouts of their records, which Perfetto does not keep: by a copy of the kernel's
 * events, by the table, or as a list of the values that came. The layout is ours, the print format the
 * kernel's.
 */
#include "convert/import/pftrace-priv.h"

#define FORMAT_MAX  (1u << 20)
#define COLUMNS_MAX 2048 /* bytes of a record but for its texts, which get the rest of a page */

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

/* The next field of a row as a column. False: there is none. */
static bool row_column(const char **fields, struct pft_column *c)
{
	struct perfetto_field f;

	do
		if (!perfetto_field_next(fields, &f))
			return false;
	while (f.old);
	*c = (struct pft_column){ .number = f.number,
				  .size = f.kind == PERFETTO_TEXT ? 4 : f.size,
				  .is_signed = f.is_signed,
				  .is_symbol = f.kind == PERFETTO_SYMBOL,
				  .how = f.kind == PERFETTO_CHARS  ? PFT_CHARS
					 : f.kind == PERFETTO_TEXT ? PFT_TEXT
					 : f.kind == PERFETTO_REST ? PFT_REST
								   : PFT_NUMBER };
	strcpy(c->name, f.name);
	if (f.kind == PERFETTO_NUMBER)
		snprintf(c->type, sizeof(c->type), "%c%u", f.is_signed ? 's' : 'u', 8 * f.size);
	else
		strcpy(c->type, c->is_symbol ? "void *" : c->how == PFT_TEXT ? "__data_loc char[]" : "char");
	return true;
}

static bool value_fits(const struct pft_value *v, const struct pft_column *c)
{
	bool same = v->name ? strlen(c->name) == v->name_len && !memcmp(c->name, v->name, v->name_len)
			    : c->number && v->number == c->number;

	return same && v->is_text == (c->how != PFT_NUMBER);
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

/* True if each column has a value: else a record would hold made-up ones. */
static bool columns_fit(const struct pft_kind *k, const struct pft_value *v, size_t n)
{
	for (size_t i = 0; i < k->n; i++)
		if (!column_came(&k->v[i], v, n))
			return false;
	return true;
}

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

static int file_columns(struct pft_kind *k, const struct perfetto_event *row, const struct event_format *f)
{
	size_t size = 0;
	int ret = 0;

	for (size_t i = 0; i < f->n_fields && !ret; i++) {
		struct pft_column c, r;
		const char *fields;

		ret = file_column(&c, &f->fields[i]);
		size += ret ? 0 : c.size;
		/* the number in Perfetto's message, and whether it stands for a symbol */
		for (fields = row ? row->fields : ""; row_column(&fields, &r);)
			if (!strcmp(r.name, c.name)) {
				c.number = r.number;
				c.is_symbol = r.is_symbol;
			}
		ret = ret ?: size > COLUMNS_MAX ? -EINVAL : column_add(k, &c);
	}
	k->print_fmt = ret ? NULL : strdup(f->print_fmt);
	return ret ?: k->print_fmt ? 0 : -ENOMEM;
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

static int format_copied(struct pft *p, struct pft_kind *k, const struct perfetto_event *row,
			 const struct pft_value *v, size_t n)
{
	for (size_t i = 0; i < p->systems.n; i++) {
		const char *system = p->systems.v[i];
		struct event_format f = { 0 };
		struct buf text = { 0 };
		char *path;
		int ret;

		if (row && strcmp(row->system, system) &&
		    !(is_hyp_system(row->system) && is_hyp_system(system)))
			continue;
		path = str_printf("%s/%s/%s/format", p->o->formats, system, k->name);
		ret = path ? read_file(path, FORMAT_MAX, &text) : -ENOMEM;
		free(path);
		ret = ret ?: event_format_parse((char *)text.data, text.len, &f) ?: file_columns(k, row, &f);
		event_format_release(&f);
		buf_release(&text);
		if (ret == -ENOMEM)
			return ret;
		if (!ret && columns_fit(k, v, n))
			return set_system(k, system) ?: 1;
		columns_drop(k);
	}
	return 0;
}

static int format_known(struct pft_kind *k, const struct perfetto_event *row, const struct pft_value *v,
			size_t n)
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

/* Of a generic event: a value as it came. */
static int value_column(struct pft_kind *k, const struct pft_value *v)
{
	struct pft_column c = { .how = v->is_text ? PFT_TEXT : PFT_NUMBER, .size = v->is_text ? 4 : 8 };

	if (!is_word(v->name, v->name_len) || (*v->name >= '0' && *v->name <= '9'))
		return 0;
	memcpy(c.name, v->name, v->name_len);
	c.is_signed = v->is_signed;
	strcpy(c.type, v->is_text ? "__data_loc char[]" : c.is_signed ? "s64" : "u64");
	for (size_t i = 0; i < k->n; i++)
		if (!strcmp(k->v[i].name, c.name))
			return 0;
	return column_add(k, &c);
}

static int format_plain(struct pft_kind *k, const struct perfetto_event *row, const struct pft_value *v,
			size_t n)
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
	buf_addstr(&print, "\"");
	for (size_t i = 0; i < k->n; i++)
		buf_printf(&print, "%s%s=%s", i ? " " : "", k->v[i].name,
			   k->v[i].how != PFT_NUMBER ? "%s"
			   : k->v[i].is_symbol	     ? "%ps"
			   : k->v[i].is_signed	     ? "%lld"
						     : "%llu");
	buf_addstr(&print, k->n ? "\"" : " \"");
	for (size_t i = 0; i < k->n; i++)
		buf_printf(&print, k->v[i].how == PFT_TEXT ? ", __get_str(%s)" : ", REC->%s", k->v[i].name);
	k->print_fmt = ret ? NULL : strdup(buf_str(&print) ?: "");
	buf_release(&print);
	return ret ?: k->print_fmt ? 1 : -ENOMEM;
}

static int pft_format(struct pft *p, struct pft_kind *k, const struct perfetto_event *row,
		      const struct pft_value *v, size_t n)
{
	int ret = set_system(k, row ? row->system : "perfetto");

	ret = ret ?: format_copied(p, k, row, v, n);
	if (!ret && row) {
		ret = format_known(k, row, v, n);
		if (!ret)
			columns_drop(k);
	}
	ret = ret ?: format_plain(k, row, v, n);
	/* behind the common fields, each at a multiple of its size */
	k->size = HYP_HEADER_SIZE;
	for (size_t i = 0; i < k->n && ret == 1; i++) {
		unsigned int align = k->v[i].how == PFT_NUMBER || k->v[i].how == PFT_TEXT ? k->v[i].size : 1;

		k->v[i].offset = (k->size + align - 1) / align * align;
		k->size = k->v[i].offset + k->v[i].size;
	}
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

/* ---- kinds: found once, by the first event of each --------------------------------------------- */

static void kind_free(struct pft_kind *k)
{
	columns_drop(k);
	free(k->system);
	free(k->name);
	free(k);
}

void pft_kinds_release(struct pft_kinds *k)
{
	for (size_t i = 0; i < k->n; i++)
		kind_free(k->v[i]);
	free(k->v);
	map_release(&k->by_name);
}

struct kind_name {
	const char *name;
	size_t len;
};

static bool kind_same(const void *kinds, size_t i, const void *wanted)
{
	const char *name = ((struct pft_kind *const *)kinds)[i]->name;
	const struct kind_name *w = wanted;

	return !strncmp(name, w->name, w->len) && !name[w->len];
}

/* Finds pairs such as "comm" and "pid", which name a task. */
static void kind_tasks(struct pft_kind *k)
{
	static const char *const pairs[][2] = {
		{ "comm", "pid" },	     { "newcomm", "pid" },	    { "prev_comm", "prev_pid" },
		{ "next_comm", "next_pid" }, { "child_comm", "child_pid" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs) && k->n_tasks < ARRAY_SIZE(k->tasks); i++) {
		unsigned int at[2] = { PFT_VALUES, PFT_VALUES };

		for (unsigned int c = 0; c < k->n; c++)
			for (size_t j = 0; j < 2; j++)
				if (!strcmp(k->v[c].name, pairs[i][j]) &&
				    (k->v[c].how == PFT_NUMBER) == (j == 1))
					at[j] = c;
		if (at[0] < PFT_VALUES && at[1] < PFT_VALUES) {
			k->tasks[k->n_tasks].comm = at[0];
			k->tasks[k->n_tasks++].pid = at[1];
		}
	}
}

static struct pft_kind *kind_new(struct pft *p, struct pft_kinds *all, const struct perfetto_event *row,
				 const char *name, size_t len, const struct pft_value *v, size_t n, int *ret)
{
	struct pft_kind *k = calloc(1, sizeof(*k));

	*ret = -ENOMEM;
	if (!k)
		return NULL;
	k->name = strndup(name, len);
	*ret = k->name ? pft_format(p, k, row, v, n) : -ENOMEM;
	if (*ret == 1) {
		kind_tasks(k);
		k->is_switch = !strcmp(k->name, "sched_switch");
		k->id = (unsigned int)all->n + 1;
		*ret = map_push(&all->by_name, map_hash_bytes(name, len), &all->v, &all->n, &k, sizeof(k));
		if (!*ret)
			return k;
	}
	kind_free(k);
	return NULL;
}

struct pft_kind *pft_kind(struct pft *p, struct pft_machine *m, const struct perfetto_event *row,
			  const char *name, size_t len, const struct pft_value *v, size_t n, int *ret)
{
	struct pft_kinds *all = &m->kinds;
	const struct kind_name wanted = { name, len };
	bool numbered = row && row->number && row->number < ARRAY_SIZE(all->by_number);
	struct pft_kind *k;
	size_t i;

	*ret = 0;
	if (numbered && all->by_number[row->number])
		return all->by_number[row->number];
	if (!is_word(name, len))
		return NULL;
	i = map_find(&all->by_name, map_hash_bytes(name, len), kind_same, all->v, &wanted);
	k = i == MAP_NONE ? NULL : all->v[i];
	if (!k && all->n < PFT_KINDS)
		k = kind_new(p, all, row, name, len, v, n, ret);
	if (k && numbered)
		all->by_number[row->number] = k;
	return k;
}
