// SPDX-License-Identifier: LGPL-2.1-or-later
/* Hash table of what the Perfetto exporter keeps by CPU or by thread. */
#include "convert/export/perfetto-priv.h"

void *pf_map_find(const struct pf_map *m, size_t input, unsigned int number, unsigned int kind)
{
	for (struct pf_item *i = m->v[number % PF_BUCKETS]; i; i = i->next)
		if (i->input == input && i->number == number && i->kind == kind)
			return i;
	return NULL;
}

void *pf_map_add(struct pf_map *m, size_t size, size_t input, unsigned int number, unsigned int kind)
{
	struct pf_item **at = &m->v[number % PF_BUCKETS], *i = calloc(1, size);

	if (!i)
		return NULL;
	*i = (struct pf_item){ *at, input, number, kind };
	*at = i;
	m->n++;
	return i;
}

void pf_map_each(const struct pf_map *m, void (*fn)(void *ctx, void *item), void *ctx)
{
	for (size_t b = 0; m->n && b < PF_BUCKETS; b++)
		for (struct pf_item *i = m->v[b]; i; i = i->next)
			fn(ctx, i);
}

void pf_map_release(struct pf_map *m, void (*release)(void *item))
{
	for (size_t b = 0; b < PF_BUCKETS; b++)
		while (m->v[b]) {
			struct pf_item *next = m->v[b]->next;

			if (release)
				release(m->v[b]);
			free(m->v[b]);
			m->v[b] = next;
		}
}
