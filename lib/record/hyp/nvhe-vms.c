// SPDX-License-Identifier: LGPL-2.1-or-later
/* The VMs' CNTVOFFs that one CPU of a plain-nVHE host has shown, and whose vCPUs' they are. */
#include "record/hyp/nvhe-priv.h"

#define NARROW	MSEC /* a bracket whose middle is better than an end */
#define FIT_PPM 1    /* typical change of CNTVOFF by a fit of the clock */

bool vm_is_narrow(const struct vm *vm)
{
	return vm->low != INT64_MIN && vm->high != INT64_MAX && vm->high - vm->low <= NARROW;
}

int64_t vm_tolerance(const struct vm *vm)
{
	int64_t t = vm->high - vm->low + HOP_MAX / 5 + llabs(vm->offset) / 1000000 * FIT_PPM;

	return vm_is_narrow(vm) && t < JITTER ? t : JITTER;
}

bool vm_fits_bracket(const struct vm *vm, int64_t low, int64_t high)
{
	int64_t t = vm_tolerance(vm);

	if (!vm_is_narrow(vm))
		return vm->offset - t <= high && vm->offset + t >= low;
	return vm->low - t <= high && vm->high + t >= low;
}

struct vm *vm_new(struct nvhe *n, int64_t offset)
{
	struct vm *vm = &n->vms[0];

	for (size_t i = 0; i < N_VMS && vm->used; i++)
		if (!n->vms[i].used || n->vms[i].stamp < vm->stamp)
			vm = &n->vms[i];
	for (size_t i = 0; i < n->n_owners && i < N_PIDS; i++)
		if (n->owners[i].vm == vm)
			n->owners[i] = (struct owner){ 0 };
	*vm = (struct vm){ .used = true, .offset = offset, .low = INT64_MIN, .high = INT64_MAX };
	vm->stamp = ++n->stamp;
	return vm;
}

struct owner *vm_owner(struct nvhe *n, int pid)
{
	for (size_t i = 0; i < n->n_owners && i < N_PIDS; i++)
		if (n->owners[i].pid == pid)
			return &n->owners[i];
	return NULL;
}

void vm_own(struct nvhe *n, int pid, struct vm *vm)
{
	struct owner *o = vm_owner(n, pid);

	if (!o) {
		o = &n->owners[n->n_owners++ % N_PIDS];
		*o = (struct owner){ .pid = pid };
	}
	o->moved |= o->owned && o->vm != vm;
	o->owned = true;
	o->vm = vm;
}

void vm_at_least(struct vm *vm, int64_t low, int64_t pad)
{
	if (low > vm->high)
		vm->high = INT64_MAX;
	if (low > vm->low)
		vm->low = low;
	vm->offset = vm->high == INT64_MAX || vm->high - vm->low > NARROW
			     ? vm->low + pad
			     : vm->low + (vm->high - vm->low) / 2;
}

void vm_at_most(struct vm *vm, int64_t high, int64_t pad)
{
	if (high < vm->low)
		vm->low = INT64_MIN;
	if (high < vm->high)
		vm->high = high;
	vm->offset = vm->low == INT64_MIN || vm->high - vm->low > NARROW ? vm->high - pad
									 : vm->low + (vm->high - vm->low) / 2;
}

struct vm *vm_near(struct nvhe *n, int64_t offset, int64_t within)
{
	struct vm *best = NULL;

	for (size_t i = 0; i < N_VMS; i++) {
		struct vm *vm = &n->vms[i];
		int64_t away = llabs(vm->offset - offset);

		if (vm->used && !vm->guess && away < within && (!best || away < llabs(best->offset - offset)))
			best = vm;
	}
	return best;
}

struct vm *vm_between(struct nvhe *n, int64_t low, int64_t high, int64_t offset)
{
	struct vm *best = NULL;

	for (size_t i = 0; i < N_VMS; i++) {
		struct vm *vm = &n->vms[i];

		if (vm->used && !vm->guess && vm_fits_bracket(vm, low, high) &&
		    (!best || llabs(vm->offset - offset) < llabs(best->offset - offset)))
			best = vm;
	}
	return best;
}

static void vm_narrow(struct vm *vm, int64_t low, int64_t high)
{
	vm_at_least(vm, low, 0);
	vm_at_most(vm, high, 0);
	vm->offset = vm->low + (vm->high - vm->low) / 2;
}

/* The VM whose CNTVOFF is between low and high, made when new. */
static struct vm *vm_known(struct nvhe *n, int64_t low, int64_t high)
{
	const int64_t middle = low + (high - low) / 2;
	struct vm *vm = vm_between(n, low, high, middle);

	if (!vm)
		vm = vm_new(n, middle);
	vm_narrow(vm, low, high);
	return vm;
}

void nvhe_known(struct nvhe *n, int vcpu_pid, int64_t low, int64_t high)
{
	struct owner *o = vcpu_pid ? vm_owner(n, vcpu_pid) : NULL;
	struct vm *vm = NULL;

	if (low > high || (o && (o->doubtful || !o->vm)))
		return;
	if (o && vm_is_narrow(o->vm)) { /* this CPU shows it as well: no other one, but perhaps more of it */
		if (low <= o->vm->high && high >= o->vm->low)
			vm_narrow(o->vm, low, high);
		return;
	}
	if (low || high)
		vm = vm_known(n, low, high);
	if (o)
		o->vm = vm;
	else if (vcpu_pid)
		vm_own(n, vcpu_pid, vm);
}

void vm_learn(struct nvhe *n, const struct nvhe *before)
{
	for (size_t i = 0; i < N_VMS; i++) {
		const struct vm *vm = &before->vms[i], *have;

		if (!vm->used || vm->guess || !vm_is_narrow(vm))
			continue;
		have = vm_between(n, vm->low, vm->high, vm->offset);
		if (!have || !vm_is_narrow(have))
			vm_known(n, vm->low, vm->high);
	}
	for (size_t i = 0; i < before->n_owners && i < N_PIDS; i++) {
		const struct owner *o = &before->owners[i];

		if (o->moved)
			n->owners[n->n_owners++] = (struct owner){ .pid = o->pid, .doubtful = true };
		else if (o->vm && vm_is_narrow(o->vm))
			nvhe_known(n, o->pid, o->vm->low, o->vm->high);
	}
}
