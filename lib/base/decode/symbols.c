// SPDX-License-Identifier: LGPL-2.1-or-later
/* Symbols by address, out of a text like /proc/kallsyms. */
#include "base/decode/id-table.h"
#include "base/cursor.h"
#include "base/strings.h"

#define ADDR_LEN_MAX 16
#define NAME_LEN_MAX 255

void symbols_release(struct symbols *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].name);
	free(s->v);
	*s = (struct symbols){ 0 };
}

/* "ffff800080010000 T name [module]"; an empty line adds nothing. */
static int symbol_line(struct symbols *s, const char *line, size_t len)
{
	struct symbol *v;
	uint64_t addr = 0;
	size_t i = 0, name;

	for (; i < len && hex_value(line[i]) >= 0; i++)
		addr = addr << 4 | (uint64_t)hex_value(line[i]);
	if (!len)
		return 0;
	if (!i || i > ADDR_LEN_MAX || len - i < 4 || line[i] != ' ' || line[i + 2] != ' ')
		return -EBADMSG;
	name = i + 3;
	for (i = name; i < len && !isspace((unsigned char)line[i]);)
		i++;
	if (i == name || i - name > NAME_LEN_MAX)
		return -EBADMSG;
	v = array_next(&s->v, s->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	*v = (struct symbol){ addr, strndup(line + name, i - name) };
	return v->name ? s->n++, 0 : -ENOMEM;
}

int symbols_parse(const void *data, size_t len, struct symbols *out)
{
	struct cursor c = cursor_at(data, len);
	const char *line;
	size_t n;

	*out = (struct symbols){ 0 };
	while (cursor_line(&c, &line, &n)) {
		int ret = symbol_line(out, line, n);

		if (ret) {
			symbols_release(out);
			return ret;
		}
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), compare_u64);
	return 0;
}

const char *symbols_find(const struct symbols *s, uint64_t addr, uint64_t *offset)
{
	size_t n = array_lower_bound(s->v, s->n, sizeof(*s->v), u64_not_above, &addr);

	if (!n)
		return NULL;
	*offset = addr - s->v[n - 1].addr;
	return s->v[n - 1].name;
}
