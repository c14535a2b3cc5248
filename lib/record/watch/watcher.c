// SPDX-License-Identifier: LGPL-2.1-or-later
/* Follows the machine's VMs: new vCPUs get into the kernel's histograms, and ended ones leave the sums. */
#include "record/watch/watcher.h"
#include "base/clock.h"
#include "record/guest/guest.h"

static void vcpus_release(struct strlist *vms, struct watch_vcpu *v)
{
	strlist_release(vms);
	free(v);
}

/* Series of two VMs must not have the same labels. */
static int vm_name_add(struct strlist *names, const struct guest *g)
{
	if (!g->name || !*g->name)
		return strlist_take(names, str_printf("pid-%d", (int)g->pid));
	if (strlist_has(names, g->name))
		return strlist_take(names, str_printf("%s-%d", g->name, (int)g->pid));
	return strlist_add(names, g->name);
}

static int vcpu_order(const void *a, const void *b)
{
	const struct watch_vcpu *x = a, *y = b;

	return ORDER(x->pid, y->pid);
}

/* The vCPUs whose threads are known. */
static int vcpus_find(const struct watcher *w, struct strlist *vms, struct watch_vcpu **v, size_t *n)
{
	const struct guest_opts o = { .root = w->o->root, .log = w->o->log };
	struct guests all;
	int ret = guests_find(&all, &o);

	if (ret)
		return ret;
	for (size_t i = 0; i < all.n && !ret; i++) {
		const struct guest *g = &all.v[i];

		ret = vm_name_add(vms, g);
		for (size_t k = 0; k < g->n_vcpus && !ret; k++) {
			struct watch_vcpu one = { g->vcpus[k].tid, g->vcpus[k].cpu, vms->v[i] };

			ret = one.pid ? array_push(v, n, &one, sizeof(one)) : 0;
		}
	}
	array_sort(*v, *n, sizeof(**v), vcpu_order);
	guests_release(&all);
	return ret;
}

/* Lets the kernel watch the vCPUs that are there now, if they are others than before. */
static int vcpus_follow(struct watcher *w)
{
	struct strlist vms = { 0 };
	struct watch_vcpu *v = NULL;
	size_t n = 0, same = 0;
	int ret = vcpus_find(w, &vms, &v, &n);

	while (same < n && same < w->n_vcpus && v[same].pid == w->vcpus[same].pid)
		same++;
	if (ret || (same == n && n == w->n_vcpus)) {
		vcpus_release(&vms, v);
		return ret;
	}
	vcpus_release(&w->vms, w->vcpus);
	w->vms = vms;
	w->vcpus = v;
	w->n_vcpus = n;
	log_info(w->o->log, "watches %zu vCPUs of %zu VMs", n, vms.n);
	/* a thread's number may come again as another's: what was counted of the old one goes */
	return vcpu_hists_empty(w) ?: vcpu_hists_follow(w);
}

int watcher_open(struct watcher **out, const struct watcher_opts *o)
{
	struct watcher *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->o = o;
	w->looked = mono_ns();
	ret = vcpu_hists_open(w) ?: vcpus_follow(w);
	if (ret) {
		watcher_close(w);
		return ret;
	}
	if (!w->n_vcpus)
		log_warn(
			o->log,
			"no VM's vCPU runs here, the next ones will be watched; see: hyptrace list --guests");
	*out = w;
	return 0;
}

int watcher_look(struct watcher *w)
{
	struct hist_totals totals;
	uint64_t now = mono_ns();
	int ret;

	w->interval = now - w->looked;
	w->looked = now;
	watch_sums_begin(&w->sums);
	ret = vcpu_hists_read(w, &totals);
	ret = ret ?: watch_sums_settle(&w->sums, w->vcpus, w->n_vcpus, w->o->top);
	if (ret)
		return ret;
	if (w->o->hyp_window && !w->no_hyp) {
		/* one window, by a journal of its own: the buffer's lock is free between two of them */
		char *journal = w->o->journal ? str_printf("%s" WATCH_HYP_JOURNAL, w->o->journal) : NULL;

		ret = w->o->journal && !journal ? -ENOMEM
						: hyp_window_take(&w->hyp, w->o->tracing_dir, journal,
								  w->o->hyp_window, w->o->log);
		free(journal);
		w->no_hyp = ret == -ENOENT;
		w->part |= w->no_hyp;
		ret = w->no_hyp ? 0 : ret;
	}
	w->dropped = w->emptied + totals.dropped + totals.bad + w->sums.no_room;
	if (!ret && (totals.dropped || totals.entries > VCPU_HISTS_SIZE / 4 * 3))
		ret = vcpu_hists_empty(w);
	return ret ?: vcpus_follow(w);
}

const struct watch_sum *watcher_next(const struct watcher *w, const struct watch_sum *s, enum watch_kind from,
				     enum watch_kind to, const struct watch_vcpu **vcpu)
{
	for (s = s ? s + 1 : w->sums.v; s < w->sums.v + w->sums.n; s++) {
		*vcpu = watch_vcpu_find(w->vcpus, w->n_vcpus, s->pid);
		if (*vcpu && s->kind >= from && s->kind <= to && (s->kind != WATCH_BY || s->shown))
			return s;
	}
	return NULL;
}

uint64_t watcher_ns(const struct watch_sum *s)
{
	return s->kind == WATCH_STOLEN ? s->rest : s->all.ns - s->from;
}

int watcher_close(struct watcher *w)
{
	int ret;

	if (!w)
		return 0;
	ret = vcpu_hists_close(w);
	watch_sums_release(&w->sums);
	vcpus_release(&w->vms, w->vcpus);
	free(w);
	return ret;
}
