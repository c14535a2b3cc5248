// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every VM of the machine, by asking each source in turn. */
#include <stdlib.h>

#include "guest/guest-priv.h"

static int vm_by_pid(const void *a, const void *b)
{
	const struct guest *x = a, *y = b;

	/* those without a pid come last, by CID */
	if (!x->pid != !y->pid)
		return !x->pid - !y->pid;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->cid < y->cid ? -1 : x->cid > y->cid;
}

int guests_find(struct guests *out, const struct guest_opts *o)
{
	static const struct {
		unsigned int bit;
		int (*ask)(struct guests *, const struct guest_opts *);
	} sources[] = {
		/* first: it alone knows pids, and saves libvirt a question */
		{ GUEST_FROM_PROC, guests_from_proc },
		{ GUEST_FROM_VM_LIST, guests_from_vm_list },
		{ GUEST_FROM_LIBVIRT, guests_from_libvirt },
	};

	*out = (struct guests){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		int ret = o && (o->skip & sources[i].bit) ? 0 : sources[i].ask(out, o);

		if (ret) {
			guests_release(out);
			return ret;
		}
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), vm_by_pid);
	return 0;
}
