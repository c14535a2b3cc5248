// SPDX-License-Identifier: LGPL-2.1-or-later
/* Interrupts of guests by KVM's numbers and by their own. */

#include <stdlib.h>

#include "ask/latency/latency-priv.h"
#include "base/array.h"

#define LINES_MAX   256
#define HANDLER_MAX 16
#define WINDOWS_MIN 3

struct line {
	uint64_t scope, value;
	uint64_t windows; /* from an injection to the next with handlers in between */
	uint32_t of;	  /* settled: the guest's number; 0: unknown */
	bool known, full; /* full: of more handlers than are kept */
	size_t n;
	struct {
		uint64_t windows, times;
		uint32_t irq;
		bool now; /* in this window */
	} v[HANDLER_MAX];
};

static struct line *lines_find(const struct lines *l, uint64_t scope, uint64_t value)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].scope == scope && l->v[i].value == value)
			return &l->v[i];
	return NULL;
}

/* Ends a window, unless it has no handlers yet. */
static void line_close(struct line *line)
{
	bool any = false;

	for (size_t i = 0; i < line->n; i++) {
		line->v[i].windows += line->v[i].now;
		any |= line->v[i].now;
		line->v[i].now = false;
	}
	line->windows += any;
}

int lines_injected(struct lines *l, uint64_t scope, uint64_t value)
{
	struct line new = { .scope = scope, .value = value }, *line = lines_find(l, scope, value);

	if (line)
		line_close(line);
	return line || l->n == LINES_MAX ? 0 : array_push(&l->v, &l->n, &new, sizeof(new));
}

void lines_handler(struct lines *l, uint64_t scope, uint64_t value)
{
	uint32_t irq = (uint32_t)(value >> 32);

	for (size_t i = 0; i < l->n; i++) {
		struct line *line = &l->v[i];
		size_t k = 0;

		if (line->scope != scope)
			continue;
		while (k < line->n && line->v[k].irq != irq)
			k++;
		if (k == HANDLER_MAX) {
			line->full = true;
			continue;
		}
		line->n += k == line->n;
		line->v[k].irq = irq;
		line->v[k].times++;
		line->v[k].now = true;
	}
}

void lines_settle(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct line *line = &l->v[i];
		size_t fit = 0;

		line_close(line);
		for (size_t k = 0; k < line->n; k++)
			if (line->v[k].windows * 10 >= line->windows * 9 &&
			    line->v[k].times * 9 <= line->windows * 10 + 9) {
				line->of = line->v[k].irq;
				fit++;
			}
		if (fit != 1 || line->full || line->windows < WINDOWS_MIN)
			line->of = 0;
	}
	for (size_t i = 0; i < l->n; i++) {
		struct line *a = &l->v[i];

		a->known = a->of;
		for (const struct line *b = l->v; b < l->v + l->n && a->known; b++)
			a->known = a->scope != b->scope || a->of != b->of || a->value >> 32 == b->value >> 32;
	}
}

bool lines_known(const struct lines *l, uint64_t scope, uint64_t value)
{
	const struct line *line = lines_find(l, scope, value);

	return line && line->known;
}

uint32_t lines_of_handler(const struct lines *l, uint64_t scope, uint64_t value)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].known && l->v[i].scope == scope && l->v[i].of == (uint32_t)(value >> 32) &&
		    (uint32_t)l->v[i].value == (uint32_t)value)
			return (uint32_t)(l->v[i].value >> 32);
	return 0;
}
