// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every VM of the machine; by itself, /proc: executables, command lines, open vCPUs. */
#include "record/guest/guest-priv.h"

#define CMDLINE_MAX (1u << 20)
#define VHOST_MAX   64

/* A walk over /proc, and what can only be put together after it. */
struct scan {
	const struct guest_opts *o;
	struct guests *out;
	struct guest_args vhost[VHOST_MAX]; /* vhost-device-vsock's VMs */
	int vhost_pid[VHOST_MAX];
	size_t n_vhost;
	struct scan_want {
		size_t row;   /* of out */
		char *socket; /* on which QEMU waits for its vsock */
	} * wants;
	size_t n_wants;
};

/* One process. */
struct process {
	int pid;
	int dir; /* /proc/PID */
	struct buf cmdline;
	const char *exe; /* last part of the executable's path */
	char link[PATH_MAX];
};

static int process_open(struct process *p, int proc, const char *pid)
{
	static const char deleted[] = " (deleted)";
	const size_t tail = sizeof(deleted) - 1;
	const char *slash;
	uint64_t n;
	ssize_t len;
	int ret;

	if (parse_u64(pid, &n) || !n || n > INT_MAX)
		return -EINVAL;
	*p = (struct process){ .pid = (int)n };
	p->dir = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir < 0)
		return -errno;
	ret = read_file_at(p->dir, "cmdline", CMDLINE_MAX, &p->cmdline);
	if (!ret && !p->cmdline.len)
		ret = -ENOENT; /* a kernel thread, a zombie */
	/* a process that writes its title there need not end it */
	if (!ret && p->cmdline.data[p->cmdline.len - 1])
		buf_add(&p->cmdline, "", 1);
	ret = ret ?: buf_status(&p->cmdline);
	if (ret) {
		close(p->dir);
		buf_release(&p->cmdline);
		return ret;
	}
	len = readlinkat(p->dir, "exe", p->link, sizeof(p->link) - 1);
	if (len <= 0) { /* not ours to see: then what it calls itself */
		len = (ssize_t)strnlen((char *)p->cmdline.data, sizeof(p->link) - 1);
		memcpy(p->link, p->cmdline.data, (size_t)len);
	}
	p->link[len] = 0;
	/* "/usr/bin/crosvm (deleted)": replaced by an update, still running */
	if ((size_t)len > tail && !strcmp(p->link + len - tail, deleted))
		p->link[(size_t)len - tail] = 0;
	slash = strrchr(p->link, '/');
	p->exe = slash ? slash + 1 : p->link;
	return 0;
}

/*
 * A path of the process's as one that we can open: it may be relative, and the
 * process may live in a jail (Firecracker's jailer). Malloc'ed; NULL: no memory.
 */
static char *reachable(const struct scan *s, int pid, const char *path)
{
	const char *root = guest_root(s->o);
	char *top, link[8];
	ssize_t n;
	bool jailed;

	if (*path != '/') {
		char *cwd = str_printf("%s/proc/%d/cwd", root, pid), *real = cwd ? realpath(cwd, NULL) : NULL;
		char *full = cwd ? str_printf("%s/%s", real ? real : cwd, path) : NULL;

		free(real);
		free(cwd);
		return full;
	}
	top = str_printf("%s/proc/%d/root", root, pid);
	n = top ? readlink(top, link, sizeof(link)) : -1;
	jailed = n > 0 && !(n == 1 && link[0] == '/');
	free(top);
	return jailed ? str_printf("%s/proc/%d/root%s", root, pid, path) : str_printf("%s%s", root, path);
}

static void make_reachable(const struct scan *s, int pid, char **path)
{
	char *full = *path ? reachable(s, pid, *path) : NULL;

	free(*path);
	*path = full;
}

static int add_vm(struct scan *s, struct process *p, const struct guest_vmm *vmm, struct guest_args *a)
{
	struct guest g = { .pid = p->pid, .vmm = vmm, .sources = GUEST_FROM_PROC };
	struct guest_proc proc = { .dir = p->dir, .o = s->o };
	struct guest *row;
	struct buf text = { 0 };
	char *path;

	make_reachable(s, p->pid, &a->qmp);
	proc.qmp = a->qmp;
	guest_find_vcpus(&g, &proc);
	/*
	 * Most VMMs name their threads: without a vCPU one is a helper (crosvm forks one per device) or does
	 * something else (`lkvm list`).
	 */
	if (!g.n_vcpus &&
	    !(vmm && vmm->may_lack_threads && (a->name || a->cid || faccessat(p->dir, "fd", R_OK, 0)))) {
		guest_release(&g);
		return 0;
	}
	/* a VMM with an API may have got its vsock by that, or by a file */
	if (!a->cid && vmm && vmm->api) {
		path = a->config ? reachable(s, p->pid, a->config) : NULL;
		if (path && !read_file(path, CMDLINE_MAX, &text))
			guest_config_parse(a, (char *)text.data, text.len);
		free(path);
		text.len = 0;
		path = !a->cid && a->api ? reachable(s, p->pid, a->api) : NULL;
		if (path && !guest_http_get(path, vmm->api, &text, guest_timeout(s->o)))
			guest_config_parse(a, (char *)text.data, text.len);
		free(path);
		buf_release(&text);
	}
	make_reachable(s, p->pid, &a->uds);
	make_reachable(s, p->pid, &a->ivshmem);
	g.cid = a->cid;
	g.name = a->name;
	g.uds = a->uds;
	g.ivshmem = a->ivshmem;
	a->name = a->uds = a->ivshmem = NULL;
	row = guests_add(s->out);
	if (!row) {
		guest_release(&g);
		return -ENOMEM;
	}
	*row = g;
	if (a->vhost_socket) {
		const struct scan_want want = { s->out->n - 1, a->vhost_socket };

		if (!array_push(&s->wants, &s->n_wants, &want, sizeof(want)))
			a->vhost_socket = NULL;
	}
	return 0;
}

static int look_at(struct scan *s, struct process *p)
{
	const char *text = (char *)p->cmdline.data;
	const struct guest_vmm *vmm = guest_vmm_of(p->exe);
	struct guest_args a = { 0 };
	int ret;

	if (!strncmp(p->exe, "vhost-device-vsock", 18)) {
		size_t n =
			guest_vhost_args(text, p->cmdline.len, s->vhost + s->n_vhost, VHOST_MAX - s->n_vhost);

		while (n--)
			s->vhost_pid[s->n_vhost++] = p->pid;
		return 0;
	}
	if (!vmm && !guest_has_vcpu_fd(p->dir))
		return 0;
	guest_args_parse(&a, vmm, text, p->cmdline.len);
	ret = add_vm(s, p, vmm, &a);
	guest_args_release(&a);
	return ret;
}

static int guests_from_proc(struct guests *g, const struct guest_opts *o)
{
	char *path = str_printf("%s/proc", guest_root(o));
	struct scan *s = calloc(1, sizeof(*s));
	struct process *p = malloc(sizeof(*p));
	DIR *d = path ? opendir(path) : NULL;
	int ret = path && s && p ? 0 : -ENOMEM;
	struct dirent *e;

	if (ret)
		goto out;
	if (!d) {
		log_debug(o ? o->log : NULL, "cannot open %s: %s", path, strerror(errno));
		goto out;
	}
	s->o = o;
	s->out = g;
	while (ret != -ENOMEM && (e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		ret = process_open(p, dirfd(d), e->d_name);
		if (!ret) {
			ret = look_at(s, p);
			close(p->dir);
			buf_release(&p->cmdline);
		}
	}
	ret = ret == -ENOMEM ? ret : 0; /* anything else: a process that ended while we looked */
	/* QEMU knows the socket to vhost-device-vsock only; that one knows the CID */
	for (size_t i = 0; i < s->n_wants; i++) {
		struct guest *vm = &g->v[s->wants[i].row];

		for (size_t k = 0; k < s->n_vhost; k++) {
			struct guest_args *a = &s->vhost[k];

			if (!a->vhost_socket || strcmp(a->vhost_socket, s->wants[i].socket) || vm->uds)
				continue;
			vm->cid = a->cid;
			make_reachable(s, s->vhost_pid[k], &a->uds);
			vm->uds = a->uds;
			a->uds = NULL;
		}
	}
out:
	if (d)
		closedir(d);
	if (s) {
		for (size_t i = 0; i < s->n_wants; i++)
			free(s->wants[i].socket);
		free(s->wants);
		for (size_t i = 0; i < s->n_vhost; i++)
			guest_args_release(&s->vhost[i]);
		free(s);
	}
	free(p);
	free(path);
	return ret;
}

static int vm_by_pid(const void *a, const void *b)
{
	const struct guest *x = a, *y = b;

	/* those without a pid come last, by CID */
	return ORDER(!x->pid, !y->pid) ?: ORDER(x->pid, y->pid) ?: ORDER(x->cid, y->cid);
}

int guests_find(struct guests *out, const struct guest_opts *o)
{
	static const struct {
		unsigned int bit;
		int (*ask)(struct guests *, const struct guest_opts *);
	} sources[] = {
		/* first: only /proc knows pids, and it saves a question to libvirt */
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
