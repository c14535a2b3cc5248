// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every VM of the machine, by Android's `vm list`, libvirt and /proc: command lines, open vCPUs. */
#include "record/guest/guest-priv.h"
#include "base/cursor.h"
#include "base/program.h"

/* ---- Android's `vm list`: run, and its output read ---- */

#define VM_TOOL	    "/apex/com.android.virt/bin/vm"
#define VM_LIST_MS  5000 /* a busy phone takes its time */
#define VM_LIST_MAX (1u << 20)

/*
 * Rust's pretty-debug ("{:#?}"), of which this much is read:
 *
 *   Running VMs: [
 *       VirtualMachineDebugInfo {
 *           name: "microdroid",
 *           cid: 2048,
 *           temporaryDirectory: "/data/misc/virtualizationservice/2048",
 *           hostConsoleName: Some("/dev/pts/1"),
 *       },
 *   ]
 *
 * Fields come and go with Android's versions, so only `name` and `cid` of the
 * struct itself are taken and everything else is stepped over.
 */

/* \u{7f} */
static void unicode_escape(struct cursor *c, struct buf *out)
{
	uint32_t u = 0;

	c->bad |= !cursor_accept(c, '{');
	while (!c->bad && !cursor_accept(c, '}')) {
		int d = hex_value(cursor_u8(c));

		u = u << 4 | ((unsigned int)d & 0xf);
		c->bad |= d < 0 || u > 0x10ffff;
	}
	if (!c->bad && out)
		buf_add_utf8(out, u);
}

/* A quoted string; into out, unless that is NULL. */
static void quoted(struct cursor *c, struct buf *out)
{
	static const char letter[] = "nrt0", meant[] = "\n\r\t";

	cursor_u8(c);
	while (!c->bad && !cursor_accept(c, '"')) {
		uint8_t ch = cursor_u8(c);

		if (ch == '\\') {
			const char *at;

			if (cursor_accept(c, 'u')) {
				unicode_escape(c, out);
				continue;
			}
			ch = cursor_u8(c);
			at = ch ? strchr(letter, ch) : NULL;
			ch = at ? (uint8_t)meant[at - letter] : ch;
		}
		if (out && !c->bad)
			buf_add(out, &ch, 1);
	}
}

/* Steps over a value up to the ',' or bracket that ends it. */
static void skip_value(struct cursor *c)
{
	unsigned int depth = 0;
	int ch;

	while ((ch = cursor_peek(c)) >= 0) {
		if (ch == '"') {
			quoted(c, NULL);
			continue;
		}
		if (ch == '{' || ch == '[' || ch == '(')
			depth++;
		if (!depth && (ch == ',' || ch == '}' || ch == ']' || ch == ')'))
			return;
		if (ch == '}' || ch == ']' || ch == ')')
			depth--;
		c->p++;
	}
	c->bad = true;
}

/* Between fields: blanks and commas. */
static void skip_between(struct cursor *c)
{
	do
		cursor_blanks(c);
	while (cursor_accept(c, ','));
}

/* NAME: VALUE. False: something else. */
static bool vm_field(struct cursor *c, struct guest *vm)
{
	const char *name = (const char *)c->p;
	struct buf text = { 0 };
	uint32_t cid = 0;
	size_t len = word_len(name, cursor_left(c), "");

	if (!cursor_take(c, len) || !len || !cursor_accept(c, ':')) {
		c->bad = true;
		return false;
	}
	skip_between(c);
	if (len == 4 && !memcmp(name, "name", 4) && cursor_peek(c) == '"') {
		quoted(c, &text);
		if (!vm->name && text.len && buf_str(&text) && !memchr(text.data, 0, text.len))
			vm->name = strdup((char *)text.data);
	} else if (len == 3 && !memcmp(name, "cid", 3)) {
		/* an i32 in AIDL: CIDs above 2^31 come out negative, and none are given */
		while (cursor_peek(c) >= '0' && cursor_peek(c) <= '9')
			buf_add(&text, c->p++, 1);
		if (text.len && buf_str(&text) && guest_cid_parse((char *)text.data, &cid))
			vm->cid = cid;
	}
	buf_release(&text);
	skip_value(c);
	return !c->bad;
}

int guest_vm_list_parse(struct guests *g, const char *text, size_t len)
{
	/* skips text before the list: a title, warnings of the tool */
	const char *list = len ? memchr(text, '[', len) : NULL;
	struct cursor c = list ? cursor_at(list + 1, len - (size_t)(list + 1 - text)) : cursor_at(text, 0);

	if (!list)
		return len ? -EBADMSG : 0;
	for (;;) {
		int ret = 0;
		struct guest vm = { .vmm = guest_vmm_named("AVF"), .sources = GUEST_FROM_VM_LIST };

		skip_between(&c);
		if (cursor_peek(&c) == ']')
			return 0;
		cursor_take(&c, word_len((const char *)c.p, cursor_left(&c), " "));
		if (!cursor_accept(&c, '{'))
			return -EBADMSG;
		do
			skip_between(&c);
		while (cursor_peek(&c) != '}' && vm_field(&c, &vm));
		if (cursor_accept(&c, '}') && vm.cid)
			ret = guests_merge(g, &vm);
		guest_release(&vm);
		if (ret || c.bad)
			return ret ? ret : -EBADMSG;
	}
}

static int guests_from_vm_list(struct guests *g, const struct guest_opts *o)
{
	char *tool = str_printf("%s" VM_TOOL, guest_root(o));
	struct buf out = { 0 };
	int ret = 0;

	if (!tool)
		return -ENOMEM;
	if (!access(tool, X_OK)) {
		const char *argv[] = { tool, "list", NULL };

		ret = program_output(argv, &out, VM_LIST_MAX, VM_LIST_MS);
		if (ret >= 0) /* it may fail after its list */
			ret = guest_vm_list_parse(g, (char *)out.data, out.len);
		if (ret)
			log_debug(o ? o->log : NULL, "%s list: %s", tool, strerror(-ret));
	}
	buf_release(&out);
	free(tool);
	return ret == -ENOMEM ? ret : 0;
}

/* ---- every VM of the machine; by itself, /proc: executables, command lines, open vCPUs ---- */

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
	p->exe = basename(p->link);
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
	struct buf text = { 0 };
	char *path;
	int fd;

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
		fd = path ? open_regular(path) : -1;
		if (fd >= 0 && !read_fd(fd, CMDLINE_MAX, &text))
			guest_config_parse(a, (char *)text.data, text.len);
		fd_close(&fd);
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
	if (array_push(&s->out->v, &s->out->n, &g, sizeof(g))) {
		guest_release(&g);
		return -ENOMEM;
	}
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
	DIR *d = path ? opendir(path) : NULL;
	struct scan s = { .o = o, .out = g };
	int ret = path ? 0 : -ENOMEM;
	struct dirent *e;

	if (ret)
		goto out;
	if (!d) {
		log_debug(o ? o->log : NULL, "cannot open %s: %s", path, strerror(errno));
		goto out;
	}
	while (ret != -ENOMEM && (e = readdir(d))) {
		struct process p;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		ret = process_open(&p, dirfd(d), e->d_name);
		if (!ret) {
			ret = look_at(&s, &p);
			close(p.dir);
			buf_release(&p.cmdline);
		}
	}
	ret = ret == -ENOMEM ? ret : 0; /* anything else: a process that ended while we looked */
	/* QEMU knows the socket to vhost-device-vsock only; that one knows the CID */
	for (size_t i = 0; i < s.n_wants; i++) {
		struct guest *vm = &g->v[s.wants[i].row];

		for (size_t k = 0; k < s.n_vhost; k++) {
			struct guest_args *a = &s.vhost[k];

			if (!a->vhost_socket || strcmp(a->vhost_socket, s.wants[i].socket) || vm->uds)
				continue;
			vm->cid = a->cid;
			make_reachable(&s, s.vhost_pid[k], &a->uds);
			vm->uds = a->uds;
			a->uds = NULL;
		}
	}
out:
	if (d)
		closedir(d);
	for (size_t i = 0; i < s.n_wants; i++)
		free(s.wants[i].socket);
	free(s.wants);
	for (size_t i = 0; i < s.n_vhost; i++)
		guest_args_release(&s.vhost[i]);
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
	array_sort(out->v, out->n, sizeof(*out->v), vm_by_pid);
	return 0;
}
