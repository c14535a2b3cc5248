// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/symbols.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADDR_LEN_MAX 16
#define NAME_LEN_MAX 255

struct symbol {
	uint64_t addr;
	char *name;
};

struct symbols {
	struct symbol *v; /* sorted by address */
	size_t n, cap;
};

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].name);
	free(s->v);
	free(s);
}

static int add(struct symbols *s, uint64_t addr, const char *name, size_t len)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		struct symbol *v = realloc(s->v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n] = (struct symbol){ addr, strndup(name, len) };
	if (!s->v[s->n].name)
		return -ENOMEM;
	s->n++;
	return 0;
}

/* "ffff800080010000 T name [module]"; an empty line adds nothing. */
static int add_line(struct symbols *s, const char *line, size_t len)
{
	uint64_t addr = 0;
	size_t i = 0, name;

	while (i < len && isxdigit((unsigned char)line[i])) {
		char c = (char)tolower((unsigned char)line[i++]);

		addr = addr << 4 | (uint64_t)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
	}
	if (!len)
		return 0;
	if (!i || i > ADDR_LEN_MAX || len - i < 4 || line[i] != ' ' || line[i + 2] != ' ')
		return -EBADMSG;
	name = i + 3;
	for (i = name; i < len && !isspace((unsigned char)line[i]);)
		i++;
	if (i == name || i - name > NAME_LEN_MAX)
		return -EBADMSG;
	return add(s, addr, line + name, i - name);
}

static int by_addr(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int symbols_parse(const void *data, size_t len, struct symbols **out)
{
	struct symbols *s = calloc(1, sizeof(*s));
	struct cursor c = cursor_at(data, len);
	int ret = s ? 0 : -ENOMEM;
	const char *line;
	size_t n;

	*out = NULL;
	while (!ret && cursor_line(&c, &line, &n))
		ret = add_line(s, line, n);
	if (ret) {
		symbols_free(s);
		return ret;
	}
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_addr);
	*out = s;
	return 0;
}

const char *symbols_find(const struct symbols *s, uint64_t addr, uint64_t *offset)
{
	size_t low = 0, high = s ? s->n : 0;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->v[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	*offset = addr - s->v[low - 1].addr;
	return s->v[low - 1].name;
}
