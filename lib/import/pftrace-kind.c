// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kinds of events of a machine: found once, by the first event of each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dat/format.h"
#include "import/pftrace-priv.h"
#include "util/array.h"

static void kind_free(struct pft_kind *k)
{
	if (!k)
		return;
	free(k->v);
	free(k->system);
	free(k->name);
	free(k->print_fmt);
	free(k);
}

void pft_kinds_release(struct pft_kinds *k)
{
	for (size_t i = 0; i < k->n; i++)
		kind_free(k->v[i]);
	free(k->v);
	free(k->by_name);
}

/* Where the name is, or belongs, among the sorted ones. */
static size_t kind_place(const struct pft_kinds *k, const char *name, size_t len)
{
	size_t low = 0, high = k->n_by_name;

	while (low < high) {
		size_t mid = (low + high) / 2;
		const char *other = k->by_name[mid]->name;
		int order = strncmp(other, name, len);

		if (order < 0 || (!order && !other[len]))
			low = mid + !!order;
		else
			high = mid;
		if (!order && !other[len])
			return mid;
	}
	return low;
}

static struct pft_kind *kind_named(const struct pft_kinds *k, const char *name, size_t len)
{
	size_t i = kind_place(k, name, len);

	if (i == k->n_by_name || strncmp(k->by_name[i]->name, name, len) || k->by_name[i]->name[len])
		return NULL;
	return k->by_name[i];
}

/* "comm" and "pid" and the like tell a task's name. */
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

static int kind_keep(struct pft_kinds *all, struct pft_kind *k)
{
	size_t at = kind_place(all, k->name, strlen(k->name));
	struct pft_kind **v = array_grow(all->by_name, all->n_by_name, sizeof(*v));
	int ret;

	if (!v)
		return -ENOMEM;
	all->by_name = v;
	ret = array_push(&all->v, &all->n, &k, sizeof(k));
	if (ret)
		return ret;
	k->id = (unsigned int)all->n;
	memmove(&v[at + 1], &v[at], (all->n_by_name++ - at) * sizeof(*v));
	v[at] = k;
	return 0;
}

static struct pft_kind *kind_new(struct pft *p, struct pft_kinds *all, const struct pft_row *row,
				 const char *name, size_t len, const struct pft_value *v, size_t n, int *ret)
{
	struct pft_kind *k = calloc(1, sizeof(*k));

	*ret = -ENOMEM;
	if (!k)
		return NULL;
	k->name = strndup(name, len);
	if (!k->name)
		goto out;
	*ret = pft_format(p, k, row, v, n);
	if (*ret != 1)
		goto out;
	kind_tasks(k);
	k->is_switch = !strcmp(k->name, "sched_switch");
	*ret = kind_keep(all, k);
	if (!*ret)
		return k;
out:
	kind_free(k);
	return NULL;
}

/* A kernel's name of an event: nothing else can stand in a format. */
static bool is_kind_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_word_char(name[i]))
			return false;
	return len && len < 64;
}

struct pft_kind *pft_kind(struct pft *p, struct pft_machine *m, const struct pft_row *row, const char *name,
			  size_t len, const struct pft_value *v, size_t n, int *ret)
{
	struct pft_kinds *all = &m->kinds;
	bool numbered = row && row->number && row->number < ARRAY_SIZE(all->by_number);
	struct pft_kind *k;

	*ret = 0;
	if (numbered && all->by_number[row->number])
		return all->by_number[row->number];
	if (!is_kind_name(name, len))
		return NULL;
	k = kind_named(all, name, len);
	if (!k && all->n < PFT_KINDS)
		k = kind_new(p, all, row, name, len, v, n, ret);
	if (k && numbered)
		all->by_number[row->number] = k;
	return k;
}
