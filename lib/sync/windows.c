// SPDX-License-Identifier: LGPL-2.1-or-later
/* A host's entries and exits to windows, and each thread's windows to sorted spans. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/solver.h"
#include "util/array.h"

/* ---- entries and exits to windows ------------------------------------------------ */

int sync_windows_add(struct sync_windows *w, const struct sync_window *one)
{
	return array_push(&w->v, &w->n, one, sizeof(*one));
}

static int compare_points(const void *a, const void *b)
{
	const struct sync_point *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	/* a window of no length is possible, one of negative length is not */
	return (int)y->enter - (int)x->enter;
}

struct pairing {
	struct sync_windows *out;
	uint64_t begin, end, slack, step;
};

static int put_window(const struct pairing *p, const struct sync_point *at, uint64_t a, uint64_t b,
		      bool unknown)
{
	struct sync_window w = { a > p->slack ? a - p->slack : 0, b + p->slack + p->step, at->pid, at->kind,
				 unknown };

	return sync_windows_add(p->out, &w);
}

/* All points of one thread and kind. */
static int pair_thread(const struct pairing *p, const struct sync_point *v, size_t n)
{
	if (!v[0].enter && put_window(p, v, p->begin, v[0].time, true))
		return -ENOMEM;
	for (size_t i = 1; i < n; i++) {
		bool from = v[i - 1].enter, to = v[i].enter;

		/* exit..entry is the one stretch where the guest surely did not run */
		if ((from || !to) && put_window(p, v, v[i - 1].time, v[i].time, from == to))
			return -ENOMEM;
	}
	return v[n - 1].enter ? put_window(p, v, v[n - 1].time, p->end, true) : 0;
}

int sync_windows_pair(struct sync_windows *w, struct sync_point *v, size_t n, uint64_t begin, uint64_t end,
		      uint64_t slack, uint64_t step)
{
	const struct pairing p = { w, begin, end, slack, step };

	qsort(v, n, sizeof(*v), compare_points);
	for (size_t i = 0, to; i < n; i = to) {
		for (to = i + 1; to < n && v[to].pid == v[i].pid && v[to].kind == v[i].kind; to++)
			;
		if (pair_thread(&p, v + i, to - i))
			return -ENOMEM;
	}
	return 0;
}

/* ---- windows to spans -------------------------------------------------------------- */

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->a < y->a ? -1 : x->a > y->a;
}

/* Sorts when need be, and joins what touches. */
static size_t join_spans(struct span *v, size_t n)
{
	size_t kept = 0;

	array_sort(v, n, sizeof(*v), compare_spans);
	for (size_t i = 0; i < n; i++) {
		if (!kept || v[i].a > v[kept - 1].b) {
			v[kept++] = v[i];
			continue;
		}
		if (v[i].b > v[kept - 1].b)
			v[kept - 1].b = v[i].b;
		v[kept - 1].unknown |= v[i].unknown;
	}
	return kept;
}

/* Where both allow it; unknown where both are. */
static size_t cross_spans(const struct span *x, size_t nx, const struct span *y, size_t ny, struct span *out)
{
	size_t n = 0;

	for (size_t i = 0, j = 0; i < nx && j < ny;) {
		uint64_t a = x[i].a > y[j].a ? x[i].a : y[j].a;
		uint64_t b = x[i].b < y[j].b ? x[i].b : y[j].b;

		if (a <= b)
			out[n++] = (struct span){ a, b, x[i].unknown && y[j].unknown };
		if (x[i].b < y[j].b)
			i++;
		else
			j++;
	}
	return n;
}

static int compare_threads(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

const struct thread *windows_thread(const struct problem *p, int32_t pid)
{
	const struct thread key = { .pid = pid };

	return p->n_threads ? bsearch(&key, p->threads, p->n_threads, sizeof(key), compare_threads) : NULL;
}

static int list_threads(struct problem *p)
{
	const struct sync_input *in = p->in;
	int32_t last = 0;

	for (size_t i = 0; i < in->n_windows; i++) {
		const struct thread one = { .pid = in->windows[i].pid };

		if (!one.pid || one.pid == last || windows_thread(p, one.pid))
			continue;
		last = one.pid;
		if (array_push(&p->threads, &p->n_threads, &one, sizeof(one)))
			return -ENOMEM;
		qsort(p->threads, p->n_threads, sizeof(*p->threads), compare_threads);
	}
	return 0;
}

/* Spans of one kind, per thread, in two rounds: count, then fill. */
struct kind_spans {
	struct span *v;
	size_t *at; /* n_threads + 1 */
};

static void add_span(const struct sync_window *w, struct kind_spans *k, size_t i, bool fill)
{
	if (fill)
		k->v[k->at[i]] = (struct span){ w->a, w->b, w->unknown };
	k->at[i]++;
}

static void scatter(struct problem *p, uint8_t kind, struct kind_spans *k, bool fill)
{
	const struct sync_window *w = p->in->windows;
	const struct thread *t = NULL;

	for (size_t n = p->in->n_windows; n; n--, w++) {
		if (w->kind != kind || w->b < w->a)
			continue;
		if (!w->pid) {
			for (size_t i = 0; i < p->n_threads; i++)
				add_span(w, k, i, fill);
			continue;
		}
		if (!t || t->pid != w->pid)
			t = windows_thread(p, w->pid);
		add_span(w, k, (size_t)(t - p->threads), fill);
	}
}

static int kind_collect(struct problem *p, uint8_t kind, struct kind_spans *k)
{
	size_t total = 0;

	k->at = calloc(p->n_threads + 1, sizeof(*k->at));
	if (!k->at)
		return -ENOMEM;
	scatter(p, kind, k, false);
	for (size_t i = 0; i <= p->n_threads; i++) {
		size_t n = k->at[i];

		k->at[i] = total;
		total += n;
	}
	k->v = malloc((total + 1) * sizeof(*k->v));
	if (!k->v)
		return -ENOMEM;
	scatter(p, kind, k, true);
	/* each now stands where the next one began */
	memmove(k->at + 1, k->at, p->n_threads * sizeof(*k->at));
	k->at[0] = 0;
	return 0;
}

/* Before its first and behind its last window the hypervisor's capture knows nothing. */
static size_t open_ends(const struct span *v, size_t n, struct span *out)
{
	memcpy(out + 1, v, n * sizeof(*v));
	out[0] = (struct span){ 0, v[0].a, true };
	out[n + 1] = (struct span){ v[n - 1].b, INT64_MAX, true };
	return join_spans(out, n + 2);
}

static int make_thread(struct thread *t, const struct span *kvm, size_t n_kvm, const struct span *hyp,
		       size_t n_hyp)
{
	struct span *ends;

	t->v = malloc((n_kvm + n_hyp + 3) * sizeof(*t->v));
	if (!t->v)
		return -ENOMEM;
	if (!n_hyp) {
		memcpy(t->v, kvm, n_kvm * sizeof(*kvm));
		t->n = n_kvm;
		return 0;
	}
	t->hyp = true;
	if (!n_kvm) {
		memcpy(t->v, hyp, n_hyp * sizeof(*hyp));
		t->n = n_hyp;
		return 0;
	}
	ends = malloc((n_hyp + 2) * sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	n_hyp = open_ends(hyp, n_hyp, ends);
	t->n = cross_spans(kvm, n_kvm, ends, n_hyp, t->v);
	free(ends);
	return 0;
}

/* A thread that only has what holds for all of them has no evidence of its own. */
static bool any_of_its_own(const struct span *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!v[i].unknown)
			return true;
	return false;
}

int windows_threads(struct problem *p)
{
	struct kind_spans kvm = { 0 }, hyp = { 0 };
	int ret = list_threads(p);

	if (ret)
		goto out;
	ret = kind_collect(p, SYNC_KVM, &kvm);
	if (ret)
		goto out;
	ret = kind_collect(p, SYNC_HYP, &hyp);
	for (size_t i = 0; i < p->n_threads && !ret; i++) {
		struct span *k = kvm.v + kvm.at[i], *h = hyp.v + hyp.at[i];
		size_t nk = join_spans(k, kvm.at[i + 1] - kvm.at[i]);
		size_t nh = join_spans(h, hyp.at[i + 1] - hyp.at[i]);

		ret = make_thread(&p->threads[i], k, nk, h, any_of_its_own(h, nh) ? nh : 0);
	}
out:
	free(kvm.v);
	free(kvm.at);
	free(hyp.v);
	free(hyp.at);
	return ret;
}

void windows_release(struct problem *p)
{
	for (size_t i = 0; i < p->n_threads; i++)
		free(p->threads[i].v);
	free(p->threads);
	p->threads = NULL;
	p->n_threads = 0;
}

/* ---- looking up ------------------------------------------------------------------------ */

static bool ends_before(const void *entry, const void *key)
{
	const struct span *s = entry;
	const uint64_t *time = key;

	return s->b < *time;
}

size_t thread_span_at(const struct thread *t, uint64_t time)
{
	return array_lower_bound(t->v, t->n, sizeof(*t->v), ends_before, &time);
}

uint64_t thread_distance(const struct thread *t, uint64_t time, bool *unknown)
{
	size_t i = thread_span_at(t, time);
	uint64_t best = UINT64_MAX;

	*unknown = false;
	if (i < t->n && t->v[i].a <= time) {
		*unknown = t->v[i].unknown;
		return 0;
	}
	if (i < t->n)
		best = t->v[i].a - time;
	if (i && time - t->v[i - 1].b < best)
		best = time - t->v[i - 1].b;
	return best;
}
