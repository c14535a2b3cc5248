// SPDX-License-Identifier: LGPL-2.1-or-later
#include "guest/guest-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *guest_vmm_name(enum guest_vmm vmm)
{
	static const char *const names[] = { "other",	    "QEMU", "crosvm", "kvmtool", "cloud-hypervisor",
					     "Firecracker", "AVF" };

	return vmm < ARRAY_SIZE(names) ? names[vmm] : "other";
}

const char *guest_how_name(enum guest_how how)
{
	static const char *const names[] = {
		"none", "name", "debugfs", "qmp", "libvirt", "syscall", "trace"
	};

	return how < ARRAY_SIZE(names) ? names[how] : "none";
}

int guest_timeout(const struct guest_opts *o)
{
	return o && o->timeout_ms > 0 ? o->timeout_ms : 500;
}

const char *guest_root(const struct guest_opts *o)
{
	return o && o->root ? o->root : "";
}

void guest_release(struct guest *g)
{
	free(g->name);
	free(g->uds);
	free(g->vcpus);
	*g = (struct guest){ 0 };
}

void guests_release(struct guests *g)
{
	for (size_t i = 0; i < g->n; i++)
		guest_release(&g->v[i]);
	free(g->v);
	*g = (struct guests){ 0 };
}

struct guest *guests_add(struct guests *g)
{
	struct guest *v = realloc(g->v, (g->n + 1) * sizeof(*v));

	if (!v)
		return NULL;
	g->v = v;
	v[g->n] = (struct guest){ 0 };
	return &v[g->n++];
}

const struct guest_vcpu *guest_vcpu(const struct guest *g, unsigned int cpu)
{
	for (size_t i = 0; i < g->n_vcpus; i++)
		if (g->vcpus[i].cpu == cpu)
			return &g->vcpus[i];
	return NULL;
}

bool guest_set_vcpu(struct guest *g, unsigned int cpu, pid_t tid, enum guest_how how)
{
	struct guest_vcpu *v;
	size_t at = 0;

	for (size_t i = 0; tid && i < g->n_vcpus; i++)
		if (g->vcpus[i].tid == tid)
			return false;
	while (at < g->n_vcpus && g->vcpus[at].cpu < cpu)
		at++;
	if (at < g->n_vcpus && g->vcpus[at].cpu == cpu) {
		if (g->vcpus[at].tid || !tid)
			return false;
		g->vcpus[at].tid = tid;
		g->vcpus[at].how = how;
		return true;
	}
	v = realloc(g->vcpus, (g->n_vcpus + 1) * sizeof(*v));
	if (!v)
		return false;
	g->vcpus = v;
	memmove(&v[at + 1], &v[at], (g->n_vcpus - at) * sizeof(*v));
	v[at] = (struct guest_vcpu){ .cpu = cpu, .tid = tid, .how = tid ? how : GUEST_HOW_NONE };
	g->n_vcpus++;
	return true;
}

/*
 * Two sources tell of one VM when they agree on its CID, which no two running
 * VMs share; or on its name, where only one of them knows the CID. A UNIX
 * socket's CID is the VMM's own affair: there may be many of that number.
 */
static bool same_vm(const struct guest *a, const struct guest *b)
{
	if (a->pid && b->pid)
		return a->pid == b->pid;
	if (a->uds && b->uds)
		return !strcmp(a->uds, b->uds);
	if (a->cid && b->cid && !a->uds && !b->uds)
		return a->cid == b->cid;
	return a->name && b->name && !strcmp(a->name, b->name);
}

static void take_str(char **to, char **from)
{
	if (*to)
		return;
	*to = *from;
	*from = NULL;
}

int guests_merge(struct guests *g, struct guest *more)
{
	struct guest *to = NULL;

	for (size_t i = 0; i < g->n && !to; i++)
		if (same_vm(&g->v[i], more))
			to = &g->v[i];
	if (!to) {
		to = guests_add(g);
		if (!to)
			return -ENOMEM;
		*to = *more;
		*more = (struct guest){ 0 };
		return 0;
	}
	take_str(&to->name, &more->name);
	take_str(&to->uds, &more->uds);
	if (to->vmm == GUEST_VMM_OTHER || to->vmm == GUEST_VMM_AVF)
		to->vmm = more->vmm;
	to->pid = to->pid ? to->pid : more->pid;
	to->cid = to->cid ? to->cid : more->cid;
	to->sources |= more->sources;
	for (size_t i = 0; i < more->n_vcpus; i++)
		guest_set_vcpu(to, more->vcpus[i].cpu, more->vcpus[i].tid, more->vcpus[i].how);
	guest_release(more);
	return 0;
}

static int by_pid(const void *a, const void *b)
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
	static int (*const ask[])(struct guests *, const struct guest_opts *) = {
		guests_from_proc, /* first: it alone knows pids, and saves libvirt a question */
		guests_from_vm_list,
		guests_from_libvirt,
	};
	static const unsigned int bit[] = { GUEST_FROM_PROC, GUEST_FROM_VM_LIST, GUEST_FROM_LIBVIRT };
	struct guests found = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(ask); i++)
		if (!o || !(o->skip & bit[i]))
			ret = ask[i](&found, o);
	if (ret)
		guests_release(&found);
	else if (found.n)
		qsort(found.v, found.n, sizeof(*found.v), by_pid);
	*out = found;
	return ret;
}

static struct guest *find_vm(const struct guest_spec *s, const struct guests *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct guest *g = &all->v[i];

		if (s->kind == GUEST_VSOCK  ? !g->uds && g->cid == s->cid
		    : s->kind == GUEST_UNIX ? g->uds && !strcmp(g->uds, s->addr)
					    : g->name && !strcmp(g->name, s->name))
			return g;
	}
	return NULL;
}

static int no_such_vm(const struct guest_spec *s, const struct guests *all, const struct log *log)
{
	struct buf have = { 0 };

	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].name)
			buf_printf(&have, "%s%s", have.len ? ", " : "", all->v[i].name);
	if (have.len)
		log_err(log, "no VM is named '%s' here; there are: %s (or say %s@CID)", s->name,
			buf_str(&have), s->name);
	else
		log_err(log, "no VM is named '%s' here: say %s@CID (hyptrace list --guests)", s->name,
			s->name);
	buf_release(&have);
	return -ENOENT;
}

/* The address of a VM that was named. */
static int take_address(struct guest_spec *s, const struct guest *g, const struct log *log)
{
	if (g->uds) {
		char *path = strdup(g->uds);

		if (!path)
			return -ENOMEM;
		free(s->addr);
		s->addr = path;
		s->kind = GUEST_UNIX;
		return 0;
	}
	if (!g->cid) {
		log_err(log, "VM '%s' (pid %d) has no vsock device; give it one, or say %s@ADDRESS:PORT",
			s->name, g->pid, s->name);
		return -ENXIO;
	}
	s->kind = GUEST_VSOCK;
	s->cid = g->cid;
	return 0;
}

/* A VM's name may stand for its address in a file's name, if it is fit for one. */
static int take_name(struct guest_spec *s, const struct guest *g)
{
	char *name;

	if (s->named || !g->name || !*g->name || *g->name == '.' || strchr(g->name, '/'))
		return 0;
	name = strdup(g->name);
	if (!name)
		return -ENOMEM;
	free(s->name);
	s->name = name;
	return 0;
}

int guest_spec_resolve(struct guest_spec *s, const struct guests *all, struct guest **vm,
		       const struct log *log)
{
	/* "vm.example" looks like an address, but may be a VM's name */
	bool maybe_name = s->kind == GUEST_TCP && !s->named;

	*vm = find_vm(s, all);
	if (s->kind == GUEST_BY_NAME && !*vm)
		return no_such_vm(s, all, log);
	if (!*vm)
		return 0;
	if (s->kind == GUEST_BY_NAME || maybe_name)
		return take_address(s, *vm, log);
	return take_name(s, *vm);
}
