// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of functions by kallsyms. */
#include "ask/flame/flame-priv.h"

#include "base/cursor.h"

/* No function is so long: what lies further behind the last that is known is not in it. */
#define REACH (1u << 20)

static bool symbol_blank(uint8_t ch)
{
	return ch == ' ' || ch == '\t';
}

/* The next word of a line, of no bytes at its end. */
static const char *symbol_word(struct cursor *c, size_t *len)
{
	const uint8_t *from;

	while (c->p < c->end && symbol_blank(*c->p))
		c->p++;
	from = c->p;
	while (c->p < c->end && !symbol_blank(*c->p))
		c->p++;
	*len = (size_t)(c->p - from);
	return (const char *)from;
}

static bool symbol_hex(struct cursor *c, uint64_t *out)
{
	size_t len;
	const char *word = symbol_word(c, &len);

	*out = 0;
	for (size_t i = 0; i < len; i++) {
		if (hex_value(word[i]) < 0)
			return false;
		*out = *out << 4 | (uint64_t)hex_value(word[i]);
	}
	return len > 0 && len <= 16;
}

/* Of one address, the first in the file. */
static int symbol_cmp(const void *a, const void *b)
{
	const struct flame_symbol *x = a, *y = b;

	return ORDER(x->addr, y->addr) ?: ORDER(x->name, y->name);
}

size_t flame_symbols_find(const struct flame_symbols *s, uint64_t addr)
{
	size_t i = array_lower_bound(s->v, s->n, sizeof(*s->v), u64_not_above, &addr);

	if (!i || addr - s->v[i - 1].addr > REACH)
		return s->n;
	return array_lower_bound(s->v, i, sizeof(*s->v), u64_below, &s->v[i - 1].addr);
}

void flame_symbol_text(const struct flame_symbols *s, size_t symbol, struct buf *out)
{
	const struct flame_symbol *f = &s->v[symbol];
	const char *module = memchr(f->name + f->len, '[', f->module ? f->module - f->len : 0);

	buf_add(out, f->name, f->len);
	if (!module)
		return;
	buf_addstr(out, " ");
	buf_add(out, module, (size_t)(f->name + f->module - module));
}

int flame_symbols_read(struct flame_symbols *s, const struct reader_info *info)
{
	const char *line, *type, *module;
	size_t len, of_type, of_module;
	struct dat_text text;
	int ret = reader_symbols(info, &text);
	struct cursor c = cursor_at(text.len ? text.data : "", text.len);

	*s = (struct flame_symbols){ 0 };
	/* "ffff800080010000 T name\t[module]". Absolute ones and arm's marks ($x, $d) are no functions. */
	while (!ret && cursor_line(&c, &line, &len)) {
		struct cursor at = cursor_at(line, len);
		struct flame_symbol to = { 0 };

		if (!symbol_hex(&at, &to.addr) || !to.addr)
			continue;
		type = symbol_word(&at, &of_type);
		to.name = symbol_word(&at, &len);
		if (of_type != 1 || *type == 'A' || *type == 'a' || !len || *to.name == '$' ||
		    len > UINT16_MAX)
			continue;
		to.len = (uint32_t)len;
		module = symbol_word(&at, &of_module);
		if (of_module > 2 && of_module <= UINT16_MAX && module[0] == '[' &&
		    module[of_module - 1] == ']')
			to.module = (uint32_t)(module + of_module - to.name); /* with what lies between */
		ret = array_push(&s->v, &s->n, &to, sizeof(to));
	}
	array_sort(s->v, s->n, sizeof(*s->v), symbol_cmp);
	return ret;
}

void flame_symbols_release(struct flame_symbols *s)
{
	free(s->v);
	*s = (struct flame_symbols){ 0 };
}
