// SPDX-License-Identifier: LGPL-2.1-or-later
/* A VM and the list of them: rows, what several sources know of one VM, its vCPUs. */
#include "record/guest/guest-priv.h"

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
	free(g->ivshmem);
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

const struct guest_vcpu *guest_vcpu(const struct guest *g, unsigned int cpu)
{
	for (size_t i = 0; i < g->n_vcpus; i++)
		if (g->vcpus[i].cpu == cpu)
			return &g->vcpus[i];
	return NULL;
}

bool guest_set_vcpu(struct guest *g, unsigned int cpu, pid_t tid, enum guest_how how)
{
	const struct guest_vcpu one = { .cpu = cpu, .tid = tid, .how = tid ? how : GUEST_HOW_NONE };
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
	return !array_insert(&g->vcpus, &g->n_vcpus, at, &one, sizeof(one));
}

/*
 * Two sources describe one VM if they agree on its CID, which no two running VMs share; or on its
 * name, if only one of them knows the CID. CIDs behind UNIX sockets need not be unique.
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
		int ret = array_push(&g->v, &g->n, more, sizeof(*more));

		if (!ret)
			*more = (struct guest){ 0 };
		return ret;
	}
	take_str(&to->name, &more->name);
	take_str(&to->uds, &more->uds);
	take_str(&to->ivshmem, &more->ivshmem);
	if (!to->vmm || !to->vmm->exes[0])
		to->vmm = more->vmm;
	to->pid = to->pid ? to->pid : more->pid;
	to->cid = to->cid ? to->cid : more->cid;
	to->sources |= more->sources;
	for (size_t i = 0; i < more->n_vcpus; i++)
		guest_set_vcpu(to, more->vcpus[i].cpu, more->vcpus[i].tid, more->vcpus[i].how);
	guest_release(more);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

size_t guest_numbers(int dir, const char *path, int **out)
{
	DIR *d = open_dir_at(dir, path);
	struct dirent *e;
	int *v = NULL;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		uint64_t x;

		if (!parse_u64(e->d_name, &x) && x <= INT_MAX &&
		    array_push(&v, &n, &(int){ (int)x }, sizeof(*v)))
			break;
	}
	if (d)
		closedir(d);
	array_sort(v, n, sizeof(*v), by_number);
	*out = v;
	return n;
}

pid_t guest_host_tid(int dir, pid_t tid)
{
	int *tids;
	size_t n = guest_numbers(dir, "task", &tids);
	pid_t found = 0;

	for (size_t i = 0; i < n && !found; i++) {
		struct buf text = { 0 };
		char path[40];
		const char *line, *last;

		snprintf(path, sizeof(path), "task/%d/status", tids[i]);
		if (!read_file_at(dir, path, 65536, &text) && buf_str(&text) &&
		    (line = strstr((char *)text.data, "\nNSpid:"))) {
			text.data[(size_t)(line - (char *)text.data) + 1 + strcspn(line + 1, "\n")] = 0;
			last = strrchr(line, '\t');
			if (last && atoi(last + 1) == tid)
				found = tids[i];
		} else if (tids[i] == tid) {
			found = tid;
		}
		buf_release(&text);
	}
	free(tids);
	return found;
}
