// SPDX-License-Identifier: LGPL-2.1-or-later
/* The host threads of a VM's vCPUs: by name, debugfs, QMP, or caught in KVM_RUN. */
#include "record/guest/guest-priv.h"

#include <time.h>

#define KVM_RUN_IOCTL	0xae80 /* _IO(KVMIO, 0x80) */
#define SYSCALL_LOOK_MS 100    /* time to look for threads in KVM_RUN */
#define VCPUS_MAX	4096

/* Threads of the process; 0: not known. The kernel counts them in the directory's links (fs/proc/base.c). */
static uint64_t guest_count_threads(int dir)
{
	struct stat st;

	return fstatat(dir, "task", &st, 0) ? 0 : st.st_nlink;
}

/* The open vCPUs: /proc/PID/fd/N -> anon_inode:kvm-vcpu:ID (Linux >= 4.17). */
struct vcpu_fd {
	int fd;
	unsigned int id;
};

static size_t vcpu_fds(int dir, struct vcpu_fd **out)
{
	int *fds;
	size_t n = guest_numbers(dir, "fd", &fds), found = 0;
	struct vcpu_fd *v = calloc(n + 1, sizeof(*v));
	for (size_t i = 0; v && i < n && found < VCPUS_MAX; i++) {
		char path[32], link[64], tail;
		ssize_t len;

		snprintf(path, sizeof(path), "fd/%d", fds[i]);
		len = readlinkat(dir, path, link, sizeof(link) - 1);
		link[len < 0 ? 0 : len] = 0;
		v[found].fd = fds[i];
		if (sscanf(link, "anon_inode:kvm-vcpu:%u%c", &v[found].id, &tail) == 1)
			found++;
	}
	free(fds);
	*out = v;
	return found;
}

/* True if the process has a KVM vCPU open. */
bool guest_has_vcpu_fd(int dir)
{
	struct vcpu_fd *v;
	size_t n = vcpu_fds(dir, &v);

	free(v);
	return n > 0;
}

static void vm_debugfs(struct guest *g, int kvm, const char *vm)
{
	DIR *d = open_dir_at(kvm, vm);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char line[32];
		unsigned int cpu;
		uint64_t tid;

		if (strncmp(e->d_name, "vcpu", 4) || !guest_vcpu_name(e->d_name, &cpu))
			continue;
		if (!read_line_at(dirfd(d), line, sizeof(line), "%s/pid", e->d_name) &&
		    !parse_u64(line, &tid) && tid && tid <= INT_MAX)
			guest_set_vcpu(g, cpu, (pid_t)tid, GUEST_HOW_DEBUGFS);
	}
	if (d)
		closedir(d);
}

static size_t look_once(struct guest *g, int dir, const struct vcpu_fd *fds, size_t n)
{
	int *tids;
	size_t n_tids = guest_numbers(dir, "task", &tids), found = 0;

	for (size_t t = 0; t < n_tids; t++) {
		unsigned long long fd, request;
		char line[256];

		/* "NR 0xFD 0xae80 ..."; "running" while the guest runs, so look again */
		if (read_line_at(dir, line, sizeof(line), "task/%d/syscall", tids[t]) ||
		    sscanf(line, "%*d 0x%llx 0x%llx", &fd, &request) != 2 || request != KVM_RUN_IOCTL)
			continue;
		for (size_t i = 0; i < n; i++)
			if (fds[i].fd == (int)fd)
				found += guest_set_vcpu(g, fds[i].id, tids[t], GUEST_HOW_SYSCALL);
	}
	free(tids);
	return found;
}

static size_t n_known(const struct guest *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n_vcpus; i++)
		n += g->vcpus[i].tid != 0;
	return n;
}

/*
 * Names first: they are free of charge and carry the VMM's own numbers. The rest
 * only for vCPUs that have a descriptor but no thread yet.
 */
void guest_find_vcpus(struct guest *g, const struct guest_proc *p)
{
	struct vcpu_fd *fds;
	int *tids;
	size_t n = guest_numbers(p->dir, "task", &tids);

	g->n_threads = guest_count_threads(p->dir);
	for (size_t i = 0; i < n; i++) {
		char comm[64];
		unsigned int cpu;

		if (!read_line_at(p->dir, comm, sizeof(comm), "task/%d/comm", tids[i]) &&
		    guest_vcpu_name(comm, &cpu) && g->n_vcpus < VCPUS_MAX)
			guest_set_vcpu(g, cpu, tids[i], GUEST_HOW_NAME);
	}
	free(tids);
	n = vcpu_fds(p->dir, &fds);
	if (n_known(g) < n) {
		char *path = str_printf("%s/sys/kernel/debug/kvm", guest_root(p->o));
		char prefix[16];
		DIR *d = path ? open_dir_at(AT_FDCWD, path) : NULL;
		struct dirent *e;

		/* kvm/PID-FD/vcpuN/pid: pid 0 before the vCPU first ran */
		snprintf(prefix, sizeof(prefix), "%d-", g->pid);
		while (d && (e = readdir(d)))
			if (!strncmp(e->d_name, prefix, strlen(prefix)))
				vm_debugfs(g, dirfd(d), e->d_name);
		if (d)
			closedir(d);
		free(path);
	}
	if (n_known(g) < n || !g->n_vcpus)
		guest_ask_qmp(
			g, p); /* without CONFIG_HAVE_ARCH_TRACEHOOK, or not allowed, there is no such file */
	if (n_known(g) < n && !faccessat(p->dir, "syscall", R_OK, 0)) {
		int64_t deadline = msg_now() + SYSCALL_LOOK_MS;

		while (look_once(g, p->dir, fds, n), n_known(g) < n && msg_now() < deadline)
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	if (n_known(g) < n)
		for (size_t i = 0; i < n; i++)
			guest_set_vcpu(g, fds[i].id, 0, GUEST_HOW_NONE);
	free(fds);
}

static int open_proc(const struct guest *g, const struct guest_opts *o)
{
	char *path = g->pid ? str_printf("%s/proc/%d", guest_root(o), g->pid) : NULL;
	int dir;

	if (!path)
		return g->pid ? -ENOMEM : -ESRCH;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(path);
	return dir < 0 ? -errno : dir;
}

bool guest_threads_changed(const struct guest *g, const struct guest_opts *o)
{
	int dir = open_proc(g, o);
	uint64_t n = dir < 0 ? 0 : guest_count_threads(dir);

	fd_close(&dir);
	return n && n != g->n_threads;
}

int guest_update_vcpus(struct guest *g, const struct guest_opts *o)
{
	struct guest_proc p = { .dir = open_proc(g, o), .o = o };
	struct guest now = { .pid = g->pid, .vmm = g->vmm };
	int ret = 0;

	if (p.dir < 0)
		return p.dir;
	for (size_t i = 0; i < g->n_vcpus; i++) { /* those whose threads still run */
		const struct guest_vcpu *v = &g->vcpus[i];
		char path[32];

		snprintf(path, sizeof(path), "task/%d", v->tid);
		if (v->tid && !faccessat(p.dir, path, F_OK, 0) &&
		    !guest_set_vcpu(&now, v->cpu, v->tid, v->how))
			ret = -ENOMEM;
	}
	if (!ret && n_known(g) && !now.n_vcpus)
		ret = -ESRCH; /* pids are used again */
	if (!ret) {
		guest_find_vcpus(&now, &p);
		g->n_threads = now.n_threads;
		for (size_t i = 0; i < now.n_vcpus; i++)
			if (guest_set_vcpu(g, now.vcpus[i].cpu, now.vcpus[i].tid, now.vcpus[i].how))
				ret += now.vcpus[i].tid != 0;
	}
	guest_release(&now);
	close(p.dir);
	return ret;
}
