// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of functions by kallsyms, and of what processes have mapped by PROCMAPS. */
#include "ask/flame/flame-priv.h"

#include "base/cursor.h"

/* No function is so long: what lies further behind the last that is known is not in it. */
#define REACH (1u << 20)

static bool symbol_blank(uint8_t ch)
{
	return ch == ' ' || ch == '\t';
}

static void symbol_blanks(struct cursor *c)
{
	while (c->p < c->end && symbol_blank(*c->p))
		c->p++;
}

/* The next word of a line, of no bytes at its end. */
static const char *symbol_word(struct cursor *c, size_t *len)
{
	const uint8_t *from;

	symbol_blanks(c);
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

/* "PID LINES COMMAND", then lines "START END PATH", numbers are hexadecimal */
static int maps_add(struct flame_symbols *s, const struct dat_text *text)
{
	struct cursor c = cursor_at(text->data, text->len), head;
	const char *line, *slash;
	uint64_t pid;
	size_t len;
	int ret = 0;

	if (!cursor_line(&c, &line, &len))
		return 0;
	head = cursor_at(line, len);
	if (!symbol_hex(&head, &pid) || pid > INT32_MAX)
		return 0;
	while (!ret && cursor_line(&c, &line, &len)) {
		struct cursor at = cursor_at(line, strnlen(line, len));
		struct flame_map to = { .pid = (int64_t)pid };

		if (!symbol_hex(&at, &to.from) || !symbol_hex(&at, &to.to) || to.from >= to.to)
			continue;
		symbol_blanks(&at);
		to.name = (const char *)at.p;
		to.len = cursor_left(&at);
		slash = memrchr(to.name, '/', to.len);
		if (slash) {
			to.len -= (size_t)(slash + 1 - to.name);
			to.name = slash + 1;
		}
		if (to.len)
			ret = array_push(&s->maps, &s->n_maps, &to, sizeof(to));
	}
	return ret;
}

static int map_cmp(const void *a, const void *b)
{
	const struct flame_map *x = a, *y = b;

	return ORDER(x->pid, y->pid) ?: ORDER(x->from, y->from);
}

static bool map_before(const void *entry, const void *key)
{
	const struct flame_map *m = entry, *k = key;

	return m->pid != k->pid ? m->pid < k->pid : m->to <= k->from;
}

void flame_address_text(const struct flame_symbols *s, int64_t pid, uint64_t addr, struct buf *out)
{
	struct flame_map key = { .pid = pid, .from = addr };
	size_t i = array_lower_bound(s->maps, s->n_maps, sizeof(*s->maps), map_before, &key);
	const struct flame_map *m = &s->maps[i];

	if (i < s->n_maps && m->pid == pid && m->from <= addr && addr < m->to) {
		buf_add(out, m->name, m->len);
		buf_printf(out, "+0x%" PRIx64, addr - m->base);
	} else {
		buf_printf(out, "0x%" PRIx64, addr);
	}
}

int flame_symbols_read(struct flame_symbols *s, const struct reader_info *info)
{
	struct cursor c = cursor_at(info->kallsyms.len ? info->kallsyms.data : "", info->kallsyms.len);
	const char *line, *type, *module;
	size_t len, of_type, of_module;
	int ret = 0;

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
	for (size_t i = 0; i < info->n_options && !ret; i++)
		if (info->options[i].id == DAT_PROCMAPS)
			ret = maps_add(s, &info->options[i].data);
	array_sort(s->v, s->n, sizeof(*s->v), symbol_cmp);
	array_sort(s->maps, s->n_maps, sizeof(*s->maps), map_cmp);
	for (size_t i = 0; i < s->n_maps; i++) { /* a file's mappings lie one behind the other */
		struct flame_map *m = &s->maps[i], *last = i ? m - 1 : m;
		bool same = i && last->pid == m->pid && last->len == m->len &&
			    !memcmp(last->name, m->name, m->len);

		m->base = same ? last->base : m->from;
	}
	return ret;
}

void flame_symbols_release(struct flame_symbols *s)
{
	free(s->v);
	free(s->maps);
	*s = (struct flame_symbols){ 0 };
}
