// SPDX-License-Identifier: LGPL-2.1-or-later
/* A host's entries and exits to windows, and each thread's windows to sorted spans. */
#include "sync/solver.h"

static int compare_points(const void *a, const void *b)
{
	const struct sync_point *x = a, *y = b;

	/* a window of no length is possible, one of negative length is not */
	return ORDER(x->pid, y->pid) ?: ORDER(x->kind, y->kind) ?: ORDER(x->time, y->time)
			   ?: ORDER(y->enter, x->enter);
}

struct pairing {
	struct sync_windows *out;
	uint64_t slack, step;
};

static int put_window(const struct pairing *p, const struct sync_point *at, uint64_t a, uint64_t b,
		      bool unknown)
{
	struct sync_window w = { a > p->slack ? a - p->slack : 0, b + p->slack + p->step, at->pid, at->kind,
				 unknown };

	return array_push(&p->out->v, &p->out->n, &w, sizeof(w));
}

int sync_windows_pair(struct sync_windows *w, struct sync_point *v, size_t n, uint64_t begin, uint64_t end,
		      uint64_t slack, uint64_t step)
{
	const struct pairing p = { w, slack, step };

	qsort(v, n, sizeof(*v), compare_points);
	for (size_t i = 0; i < n; i++) {
		bool first = !i || v[i].pid != v[i - 1].pid || v[i].kind != v[i - 1].kind;
		bool last = i + 1 == n || v[i].pid != v[i + 1].pid || v[i].kind != v[i + 1].kind;
		bool from = !first && v[i - 1].enter, to = v[i].enter;

		if (first && !to && put_window(&p, &v[i], begin, v[i].time, true))
			return -ENOMEM;
		/* exit..entry is the one stretch where the guest surely did not run */
		if (!first && (from || !to) && put_window(&p, &v[i], v[i - 1].time, v[i].time, from == to))
			return -ENOMEM;
		if (last && to && put_window(&p, &v[i], v[i].time, end, true))
			return -ENOMEM;
	}
	return 0;
}

/* Sorts when need be, and joins what touches. */
static size_t join_spans(struct span *v, size_t n)
{
	size_t kept = 0;

	array_sort(v, n, sizeof(*v), compare_u64);
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

/* Intersects two lists of spans; the result is unknown only where both are. */
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

	return ORDER(x->pid, y->pid);
}

const struct thread *windows_thread(const struct problem *p, int32_t pid)
{
	const struct thread key = { .pid = pid };

	return p->n_threads ? bsearch(&key, p->threads, p->n_threads, sizeof(key), compare_threads) : NULL;
}

struct spans {
	struct span *v;
	size_t n;
};

/* Of one kind, per thread, sorted. */
static int collect_spans(const struct problem *p, uint8_t kind, struct spans *out)
{
	const struct thread *t = NULL;

	for (size_t k = 0; k < p->in->n_windows; k++) {
		const struct sync_window *w = &p->in->windows[k];
		const struct span one = { w->a, w->b, w->unknown };
		size_t i = 0, end = p->n_threads;

		if (w->kind != kind || w->b < w->a)
			continue;
		if (w->pid) {
			if (!t || t->pid != w->pid)
				t = windows_thread(p, w->pid);
			i = (size_t)(t - p->threads);
			end = i + 1;
		}
		for (; i < end; i++)
			if (array_push(&out[i].v, &out[i].n, &one, sizeof(one)))
				return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_threads; i++)
		out[i].n = join_spans(out[i].v, out[i].n);
	return 0;
}

/* Takes over what it keeps. */
static int make_thread(struct thread *t, struct spans *kvm, struct spans *hyp)
{
	struct spans *only;
	struct span *ends;
	size_t n;

	/* a thread that only has what holds for all of them has no evidence of its own */
	for (size_t i = 0; i < hyp->n; i++)
		t->hyp = t->hyp || !hyp->v[i].unknown;
	if (!t->hyp || !kvm->n) {
		only = t->hyp ? hyp : kvm;
		t->v = only->v;
		t->n = only->n;
		only->v = NULL;
		return 0;
	}
	ends = malloc((hyp->n + 2) * sizeof(*ends));
	t->v = malloc((kvm->n + hyp->n + 2) * sizeof(*t->v));
	if (!ends || !t->v) {
		free(ends);
		return -ENOMEM;
	}
	/* before its first and behind its last window the hypervisor's capture knows nothing */
	memcpy(ends + 1, hyp->v, hyp->n * sizeof(*ends));
	ends[0] = (struct span){ 0, hyp->v[0].a, true };
	ends[hyp->n + 1] = (struct span){ hyp->v[hyp->n - 1].b, INT64_MAX, true };
	n = join_spans(ends, hyp->n + 2);
	t->n = cross_spans(kvm->v, kvm->n, ends, n, t->v);
	free(ends);
	return 0;
}

int windows_threads(struct problem *p)
{
	const struct sync_input *in = p->in;
	struct spans *kvm, *hyp;
	int32_t last = 0;
	int ret;

	for (size_t i = 0; i < in->n_windows; i++) {
		const struct thread one = { .pid = in->windows[i].pid };

		if (!one.pid || one.pid == last || windows_thread(p, one.pid))
			continue;
		last = one.pid;
		if (array_push(&p->threads, &p->n_threads, &one, sizeof(one)))
			return -ENOMEM;
		qsort(p->threads, p->n_threads, sizeof(*p->threads), compare_threads);
	}
	kvm = calloc(2 * p->n_threads + 1, sizeof(*kvm));
	if (!kvm)
		return -ENOMEM;
	hyp = kvm + p->n_threads;
	ret = collect_spans(p, SYNC_KVM, kvm) ?: collect_spans(p, SYNC_HYP, hyp);
	for (size_t i = 0; i < p->n_threads && !ret; i++)
		ret = make_thread(&p->threads[i], &kvm[i], &hyp[i]);
	for (size_t i = 0; i < 2 * p->n_threads; i++)
		free(kvm[i].v);
	free(kvm);
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

static bool ends_before(const void *entry, const void *time)
{
	return ((const struct span *)entry)->b < *(const uint64_t *)time;
}

size_t thread_span_at(const struct thread *t, uint64_t time)
{
	return array_lower_bound(t->v, t->n, sizeof(*t->v), ends_before, &time);
}

uint64_t thread_distance(const struct thread *t, uint64_t time)
{
	size_t i = thread_span_at(t, time);
	uint64_t best = UINT64_MAX;

	if (i < t->n && t->v[i].a <= time)
		return 0;
	if (i < t->n)
		best = t->v[i].a - time;
	if (i && time - t->v[i - 1].b < best)
		best = time - t->v[i - 1].b;
	return best;
}
