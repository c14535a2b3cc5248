// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sums of the kernel's histograms by vCPU, and the names that get series of their own. */
#include "record/watch/watch-sums.h"

#define SUMS_MAX 16384
#define BY_MAX	 8192 /* of them: names cannot take the room of exits */

static int sum_order(const void *a, const void *b)
{
	const struct watch_sum *x = a, *y = b;

	return ORDER(x->pid, y->pid)	  ?
		       : ORDER(x->kind, y->kind) ?
				: strcmp(x->word, y->word) ?
				: ORDER(x->code, y->code);
}

static bool sum_same(const void *array, size_t index, const void *wanted)
{
	return !sum_order((const struct watch_sum *)array + index, wanted);
}

static uint32_t sum_hash(const struct watch_sum *s)
{
	return map_hash(map_hash_bytes(s->word, strlen(s->word)) ^ s->code << 40 ^ (uint64_t)s->kind << 32 ^
			(uint32_t)s->pid);
}

void watch_sums_begin(struct watch_sums *s)
{
	s->no_room = 0;
	for (size_t i = 0; i < s->n; i++)
		s->v[i].all = s->v[i].emptied;
}

int watch_sums_add(struct watch_sums *s, enum watch_kind kind, const struct hist_entry *e)
{
	const char *word = kind == WATCH_BY ? e->word : kind == WATCH_EXIT ? e->key : "";
	struct watch_sum one = { .kind = kind, .pid = (int32_t)e->pid, .code = e->number }, *sum;
	size_t at, bucket = e->log2 <= 10 ? 0 : ((size_t)e->log2 - 9) / 2;

	if (kind == WATCH_BY && !strcmp(word, WATCH_OTHERS))
		return 0;
	memcpy(one.word, word, strlen(word));
	at = map_find(&s->map, sum_hash(&one), sum_same, s->v, &one);
	if (at == MAP_NONE) {
		if (s->n >= (kind == WATCH_BY ? BY_MAX : SUMS_MAX)) {
			s->no_room++;
			return 0;
		}
		if (map_push(&s->map, sum_hash(&one), &s->v, &s->n, &one, sizeof(one)))
			return -ENOMEM;
		at = s->n - 1;
	}
	sum = &s->v[at];
	sum->all.n += e->hits;
	sum->all.ns += e->lat;
	sum->all.buckets[bucket < WATCH_BUCKETS ? bucket : WATCH_BUCKETS - 1] += e->hits;
	return 0;
}

/* The names of one vCPU: those that took most since the last look get a series, in place of those that took
 * least. */
static void names_settle(struct watch_sum *stolen, struct watch_sum *v, size_t n, size_t top)
{
	uint64_t named;
	size_t shown = 0;

	for (size_t i = 0; i < n; i++)
		shown += v[i].shown;
	for (;;) {
		struct watch_sum *most = NULL, *least = NULL;

		for (size_t i = 0; i < n; i++) {
			struct watch_sum **of = v[i].shown ? &least : &most;
			uint64_t took = v[i].all.ns - v[i].seen.ns,
				 other = *of ? (*of)->all.ns - (*of)->seen.ns : 0;

			if (!*of || (v[i].shown ? took < other : took > other))
				*of = &v[i];
		}
		if (!most || most->all.ns == most->seen.ns)
			break;
		if (shown == top) {
			if (!least || least->all.ns - least->seen.ns >= most->all.ns - most->seen.ns)
				break;
			least->shown = false;
			stolen->from += least->seen.ns - least->from;
			shown--;
		}
		most->shown = true;
		most->from = most->seen.ns;
		shown++;
	}
	named = stolen->from;
	for (size_t i = 0; i < n; i++)
		named += v[i].shown ? v[i].all.ns - v[i].from : 0;
	/* the two histograms are read one after the other: the parts may be ahead of the sum */
	if (stolen->all.ns > named && stolen->all.ns - named > stolen->rest)
		stolen->rest = stolen->all.ns - named;
}

static bool vcpu_before(const void *entry, const void *pid)
{
	return ((const struct watch_vcpu *)entry)->pid < *(const int32_t *)pid;
}

const struct watch_vcpu *watch_vcpu_find(const struct watch_vcpu *v, size_t n, int32_t pid)
{
	size_t at = array_lower_bound(v, n, sizeof(*v), vcpu_before, &pid);

	return at < n && v[at].pid == pid ? &v[at] : NULL;
}

int watch_sums_settle(struct watch_sums *s, const struct watch_vcpu *vcpus, size_t n, size_t top)
{
	size_t kept = 0, next;

	for (size_t i = 0; i < s->n; i++)
		if (watch_vcpu_find(vcpus, n, s->v[i].pid))
			s->v[kept++] = s->v[i];
	s->n = kept;
	array_sort(s->v, s->n, sizeof(*s->v), sum_order);
	map_release(&s->map);
	for (size_t i = 0; i < s->n; i++)
		if (map_insert(&s->map, sum_hash(&s->v[i]), i))
			return -ENOMEM;
	for (size_t i = 0; i < s->n; i = next) {
		for (next = i + 1;
		     next < s->n && s->v[next].pid == s->v[i].pid && s->v[next].kind == WATCH_BY;)
			next++;
		if (s->v[i].kind == WATCH_STOLEN)
			names_settle(&s->v[i], &s->v[i + 1], next - i - 1, top);
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct watch_counts *all = &s->v[i].all, *seen = &s->v[i].seen;
		struct watch_counts *last = &s->v[i].last;

		last->n = all->n - seen->n;
		last->ns = all->ns - seen->ns;
		for (size_t k = 0; k < WATCH_BUCKETS; k++)
			last->buckets[k] = all->buckets[k] - seen->buckets[k];
		s->v[i].seen = s->v[i].all;
	}
	return 0;
}

void watch_sums_emptied(struct watch_sums *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->v[i].emptied = s->v[i].all;
}

void watch_sums_release(struct watch_sums *s)
{
	free(s->v);
	map_release(&s->map);
	*s = (struct watch_sums){ 0 };
}
