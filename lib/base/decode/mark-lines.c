// SPDX-License-Identifier: LGPL-2.1-or-later
/* Marks: lines of QEMU's log or of the guest library, the user's description of them, and their text. */
#include "base/decode/mark-lines.h"

#include "base/decode/id-table.h"
#include "base/strings.h"

#define BLANKS " \t\n\v\f\r"

/* "TID@SEC.USEC:" in front of the name, where the name starts. */
static const char *name_in_line(const char *line, size_t len)
{
	const size_t name = strlen(MARK_EVENT);
	const char *p = line, *colon;

	if (len && isdigit((unsigned char)*line)) {
		colon = memchr(line, ':', len);
		if (!colon || !memchr(line, '@', (size_t)(colon - line)))
			return NULL;
		p = colon + 1;
	}
	if ((size_t)(line + len - p) <= name || memcmp(p, MARK_EVENT, name))
		return NULL;
	return isspace((unsigned char)p[name]) ? p : NULL;
}

/* "cpu=0x10 arg1=2 ...": cuts the text up. */
static bool event_keys(struct mark_event *e, char *text)
{
	char *save = NULL;

	for (char *w = strtok_r(text, BLANKS, &save); w; w = strtok_r(NULL, BLANKS, &save)) {
		char *eq = strchr(w, '=');
		uint64_t value, n;

		if (!eq || parse_u64(eq + 1, &value))
			return false;
		*eq = 0;
		if (!strcmp(w, "cpu")) {
			e->has_cpu = true;
			e->cpu = value;
		} else if (!strcmp(w, "client")) {
			e->has_client = true;
			e->client = value;
		} else {
			if (e->n_args == MARK_ARGS_MAX || strncmp(w, "arg", 3) || parse_u64(w + 3, &n) ||
			    n != e->n_args + 1)
				return false;
			e->arg[e->n_args++] = value;
		}
	}
	return e->n_args > 0;
}

uint64_t mark_client_source(uint64_t client, const char *guest, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)guest[i]) * 16777619;
	return 1ull << 63 | (uint64_t)(h & 0x7fffffff) << 32 | (uint32_t)client;
}

bool mark_event_parse(const char *line, size_t len, struct mark_event *out)
{
	const char *p = name_in_line(line, len), *keys = p ? p + strlen(MARK_EVENT) : NULL;
	char *copy = keys && !memchr(line, 0, len) ? strndup(keys, (size_t)(line + len - keys)) : NULL;
	bool ok;

	*out = (struct mark_event){ 0 };
	ok = copy && event_keys(out, copy);
	free(copy);
	return ok;
}

#define EVENTS_MAX 65536

enum kind { KIND_UNSIGNED, KIND_SIGNED, KIND_HEX, KIND_BOOL, KIND_CHAR, KIND_FLOAT, KIND_ENUM };

struct value {
	uint64_t number;
	char *text;
};

struct arg {
	char *name;
	enum kind kind;
	unsigned int bits;
	struct value *values; /* of an enum */
	size_t n_values;
};

struct event {
	uint64_t number;
	char *name;
	struct arg args[MARK_ARGS_MAX - 1];
	size_t n_args;
};

struct mark_desc {
	struct event **v; /* sorted by number */
	size_t n;
};

static void event_free(struct event *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n_args; i++) {
		for (size_t k = 0; k < e->args[i].n_values; k++)
			free(e->args[i].values[k].text);
		free(e->args[i].values);
		free(e->args[i].name);
	}
	free(e->name);
	free(e);
}

void mark_desc_free(struct mark_desc *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++)
		event_free(d->v[i]);
	free(d->v);
	free(d);
}

static bool is_name_word(const char *s)
{
	return *s && !s[word_len(s, SIZE_MAX, ".-")];
}

/* "0=idle,1=busy)": cuts the text up. */
static int parse_enum(char *text, struct arg *a)
{
	char *close = strrchr(text, ')'), *save = NULL;

	if (!close || close[1])
		return -EBADMSG;
	*close = 0;
	for (char *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		char *eq = strchr(s, '=');
		struct value *v;

		if (!eq || !is_name_word(eq + 1))
			return -EBADMSG;
		*eq = 0;
		v = array_next(&a->values, a->n_values, sizeof(*v));
		if (!v)
			return -ENOMEM;
		if (parse_u64(s, &v->number))
			return -EBADMSG;
		v->text = strdup(eq + 1);
		if (!v->text)
			return -ENOMEM;
		a->n_values++;
	}
	return a->n_values ? 0 : -EBADMSG;
}

static int parse_type(char *text, struct arg *a)
{
	static const struct {
		const char *name;
		enum kind kind;
		unsigned int bits;
	} types[] = {
		{ "u8", KIND_UNSIGNED, 8 },   { "u16", KIND_UNSIGNED, 16 }, { "u32", KIND_UNSIGNED, 32 },
		{ "u64", KIND_UNSIGNED, 64 }, { "s8", KIND_SIGNED, 8 },	    { "s16", KIND_SIGNED, 16 },
		{ "s32", KIND_SIGNED, 32 },   { "s64", KIND_SIGNED, 64 },   { "hex", KIND_HEX, 64 },
		{ "bool", KIND_BOOL, 64 },    { "char", KIND_CHAR, 8 },	    { "f64", KIND_FLOAT, 64 },
	};

	if (!strncmp(text, "enum(", 5)) {
		a->kind = KIND_ENUM;
		return parse_enum(text + 5, a);
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(text, types[i].name)) {
			a->kind = types[i].kind;
			a->bits = types[i].bits;
			return 0;
		}
	return -EBADMSG;
}

static int parse_event(char *text, struct event *e)
{
	char *save = NULL, *num = strtok_r(text, " \t\r", &save), *name, *s;

	name = strtok_r(NULL, " \t\r", &save);
	if (!num || !name || !is_name_word(name) || parse_u64(num, &e->number))
		return -EBADMSG;
	e->name = strdup(name);
	if (!e->name)
		return -ENOMEM;
	while ((s = strtok_r(NULL, " \t\r", &save))) {
		int ret;
		char *colon = strchr(s, ':');
		struct arg *a;

		if (!colon || e->n_args == ARRAY_SIZE(e->args))
			return -EBADMSG;
		*colon = 0;
		if (!is_name_word(s))
			return -EBADMSG;
		a = &e->args[e->n_args++];
		a->name = strdup(s);
		ret = a->name ? parse_type(colon + 1, a) : -ENOMEM;
		if (ret)
			return ret;
	}
	return 0;
}

static bool number_below(const void *event, const void *number)
{
	return (*(struct event *const *)event)->number < *(const uint64_t *)number;
}

/* Index of the event of that number, or of its place. */
static size_t place_of(const struct mark_desc *d, uint64_t number)
{
	return array_lower_bound(d->v, d->n, sizeof(*d->v), number_below, &number);
}

static int desc_line(void *desc, char *line)
{
	struct mark_desc *d = desc;
	struct event *e = calloc(1, sizeof(*e));
	int ret = e ? parse_event(line, e) : -ENOMEM;
	size_t at = ret ? 0 : place_of(d, e->number);

	if (!ret && ((at < d->n && d->v[at]->number == e->number) || d->n == EVENTS_MAX))
		ret = -EBADMSG;
	ret = ret ?: array_insert(&d->v, &d->n, at, &e, sizeof(struct event *));
	if (ret)
		event_free(e);
	return ret;
}

int mark_desc_parse(const void *data, size_t len, struct mark_desc **out, unsigned int *line)
{
	struct mark_desc *d = calloc(1, sizeof(*d));
	int ret;

	*line = 0;
	ret = d ? text_lines(data, len, true, desc_line, d, line) : -ENOMEM;
	*out = ret ? NULL : d;
	if (ret)
		mark_desc_free(d);
	return ret;
}

static void put_enum_value(const struct arg *a, uint64_t value, struct buf *out)
{
	for (size_t i = 0; i < a->n_values; i++)
		if (a->values[i].number == value) {
			buf_addstr(out, a->values[i].text);
			return;
		}
	buf_printf(out, "0x%" PRIx64, value);
}

static const struct event *find_event(const struct mark_desc *d, const struct mark_event *e)
{
	size_t at = d && e->n_args ? place_of(d, e->arg[0]) : 0;

	return d && e->n_args && at < d->n && d->v[at]->number == e->arg[0] ? d->v[at] : NULL;
}

const char *mark_event_name(const struct mark_desc *d, const struct mark_event *e)
{
	const struct event *known = find_event(d, e);

	return known ? known->name : NULL;
}

size_t mark_span_name(const char *name, int *way)
{
	static const struct {
		const char *suffix;
		int way;
	} v[] = { { "_start", 1 }, { "_begin", 1 }, { "_enter", 1 },
		  { "_end", -1 },  { "_stop", -1 }, { "_exit", -1 } };
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		size_t n = strlen(v[i].suffix);

		if (len > n && !strcmp(name + len - n, v[i].suffix)) {
			*way = v[i].way;
			return len - n;
		}
	}
	*way = 0;
	return len;
}

const char *mark_event_arg(const struct mark_desc *d, const struct mark_event *e, size_t i, struct buf *out)
{
	const struct event *known = find_event(d, e);

	if (known && i && i <= known->n_args) {
		const struct arg *a = &known->args[i - 1];
		uint64_t value = e->arg[i];
		unsigned int unused = 64 - a->bits;
		double f;

		if (a->kind == KIND_UNSIGNED)
			buf_printf(out, "%" PRIu64, value << unused >> unused);
		else if (a->kind == KIND_SIGNED)
			buf_printf(out, "%" PRId64, (int64_t)(value << unused) >> unused);
		else if (a->kind == KIND_HEX)
			buf_printf(out, "0x%" PRIx64, value);
		else if (a->kind == KIND_BOOL)
			buf_addstr(out, value ? "true" : "false");
		else if (a->kind == KIND_CHAR)
			buf_printf(out, isprint((uint8_t)value) ? "'%c'" : "'\\x%02x'", (uint8_t)value);
		else if (a->kind == KIND_FLOAT)
			buf_printf(out, "%g", (memcpy(&f, &value, sizeof(f)), f));
		else
			put_enum_value(a, value, out);
		return known->args[i - 1].name;
	}
	buf_printf(out, i ? "0x%" PRIx64 : "%" PRIu64, e->arg[i]);
	return NULL;
}

void mark_event_text(const struct mark_desc *d, const struct mark_event *e, struct buf *out)
{
	const struct event *known = find_event(d, e);
	size_t next = known ? 1 : 0;

	buf_addstr(out, MARK_EVENT);
	if (e->has_client)
		buf_printf(out, " client=%" PRIu64, e->client);
	if (e->has_cpu)
		buf_printf(out, " cpu=0x%" PRIx64, e->cpu);
	if (known) {
		buf_printf(out, " %s(", known->name);
		for (; next <= known->n_args && next < e->n_args; next++) {
			buf_printf(out, "%s%s=", next > 1 ? ", " : "", known->args[next - 1].name);
			mark_event_arg(d, e, next, out);
		}
		buf_addstr(out, ")");
	}
	for (; next < e->n_args; next++) {
		buf_printf(out, " arg%zu=", next + 1);
		mark_event_arg(d, e, next, out);
	}
}
