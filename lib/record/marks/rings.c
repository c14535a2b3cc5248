// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copies the events of guests' rings into the spool while they are recorded. */
#include "record/marks/rings.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/clock.h"

#define LOOK_NS 2000000 /* between two looks; but a thread rests nine times as long as a look took */
#define REST	9
#define FILTER	"instances/" RINGS_BUFFER "/events/kvm/kvm_mmio/filter"

struct rings_guest {
	char *name, *path;
	struct guest *vm; /* of `found`; NULL: not known */
	struct ring *ring;
	const char *why; /* the fault that was logged */
};

struct rings {
	struct rings_opts o;
	struct guests found;
	struct rings_guest *v;
	size_t n;
	size_t at; /* the guest that is looked at */
	int out, stop_fd;
	pthread_t thread;
	bool running;
	int error;
	void (*failed)(void *ctx, int error);
	void *ctx;
	char *filter; /* as it was written last */
};

static int rings_add(struct rings *r, const char *name, const char *path, struct guest *vm)
{
	struct rings_guest g = { .name = strdup(name), .path = strdup(path), .vm = vm };
	int ret;

	for (char *c = g.name; c && *c; c++) /* the spool has a line for it */
		if ((unsigned char)*c < ' ')
			*c = '?';
	ret = g.name && g.path ? array_push(&r->v, &r->n, &g, sizeof(g)) : -ENOMEM;
	if (ret) {
		free(g.name);
		free(g.path);
	}
	return ret;
}

/* GUEST=FILE; the name may be of a VM that runs here. */
static int rings_add_named(struct rings *r, const char *spec)
{
	size_t len = strcspn(spec, "=");
	char *name = strndup(spec, len);
	const char *path = spec + len + 1;
	struct rings_guest *g = NULL;
	struct guest *vm = NULL;
	int ret;

	for (size_t i = 0; name && i < r->n && !g; i++)
		if (!strcmp(r->v[i].name, name))
			g = &r->v[i];
	for (size_t i = 0; name && i < r->found.n; i++)
		if (r->found.v[i].name && !strcmp(r->found.v[i].name, name))
			vm = &r->found.v[i];
	ret = !name ? -ENOMEM : g ? str_take(&g->path, strdup(path)) : rings_add(r, name, path, vm);
	free(name);
	return ret;
}

static int rings_find(struct rings *r)
{
	struct guest_opts go = { .root = r->o.root, .log = r->o.log };
	int ret = guests_find(&r->found, &go);

	for (size_t i = 0; i < r->found.n && !ret; i++) {
		struct guest *vm = &r->found.v[i];
		char number[24];

		snprintf(number, sizeof(number), "%d", vm->pid);
		if (vm->ivshmem)
			ret = rings_add(r, vm->name ? vm->name : number, vm->ivshmem, vm);
	}
	for (size_t i = 0; i < r->o.named->n && !ret; i++)
		ret = rings_add_named(r, r->o.named->v[i]);
	if (!ret && !r->n)
		ret = log_fail(
			r->o.log, -ENOENT,
			"--hypertrace: no VM here has an ivshmem-plain device with a file (hypertrace(7)); "
			"name it: --hypertrace=GUEST=FILE");
	for (size_t i = 0; i < r->n && !ret; i++) {
		ret = ring_open(&r->v[i].ring, r->v[i].path);
		if (ret)
			log_err(r->o.log, "--hypertrace: the memory of %s, '%s': %s", r->v[i].name,
				r->v[i].path, ret == -EINVAL ? "no regular file" : errno_text(ret));
	}
	return ret;
}

/* Whole each time: vCPUs may come. */
static int rings_keep_guests(struct rings *r)
{
	struct buf text = { 0 };
	int ret;

	for (size_t i = 0; i < r->n; i++) {
		const struct guest *vm = r->v[i].vm;

		buf_printf(&text, "guest\t%s\n", r->v[i].name);
		for (size_t c = 0; vm && c < vm->n_vcpus; c++)
			if (vm->vcpus[c].tid)
				buf_printf(&text, "vcpu\t%u\t%d\n", vm->vcpus[c].cpu, vm->vcpus[c].tid);
	}
	ret = buf_status(&text) ?: spool_put_text(r->o.spool, RINGS_GUESTS, text.data, text.len);
	buf_release(&text);
	return ret;
}

int rings_open(struct rings **out, const struct rings_opts *o)
{
	struct rings *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->o = *o;
	r->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->out = openat(spool_dirfd(o->spool), "texts/" RINGS_EVENTS,
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	ret = r->stop_fd < 0 || r->out < 0 ? -errno : rings_find(r) ?: rings_keep_guests(r);
	if (ret)
		rings_close(r);
	else
		*out = r;
	return ret;
}

void rings_close(struct rings *r)
{
	if (!r)
		return;
	rings_stop(r);
	for (size_t i = 0; i < r->n; i++) {
		ring_close(r->v[i].ring);
		free(r->v[i].name);
		free(r->v[i].path);
	}
	free(r->v);
	guests_release(&r->found);
	fd_close(&r->out);
	fd_close(&r->stop_fd);
	free(r->filter);
	free(r);
}

/* One write: a kill leaves no half of it but on a full disk. */
static int rings_take(void *ctx, struct ring_block *b, const struct ring_event *v)
{
	struct rings *r = ctx;
	struct buf out = { 0 };
	int ret;

	b->guest = (uint32_t)r->at;
	buf_add(&out, b, sizeof(*b));
	buf_add(&out, v, b->events * sizeof(*v));
	ret = buf_status(&out) ?: write_all(r->out, out.data, out.len);
	buf_release(&out);
	return ret;
}

static int rings_look(struct rings *r, bool last)
{
	int ret = 0;
	struct buf text = { 0 };
	bool all = true;

	for (r->at = 0; r->at < r->n && !ret; r->at++) {
		struct rings_guest *g = &r->v[r->at];

		ret = ring_look(g->ring, boot_ns(), last, rings_take, r);
		if (g->why != ring_why(g->ring)) {
			g->why = ring_why(g->ring);
			log_warn(r->o.log, "hypertrace: the memory of %s, '%s': %s", g->name, g->path,
				 g->why);
		}
	}
	/*
	 * Filters by address once all guests have given theirs, until then by a doorbell's size. The
	 * first filter is journaled.
	 */
	for (size_t i = 0; i < r->n; i++)
		all &= ring_doorbell(r->v[i].ring) || ring_why(r->v[i].ring);
	buf_addstr(&text, "type == 2 && len == 4");
	for (size_t i = 0, n = 0; i < r->n && all; i++) {
		uint64_t gpa = ring_doorbell(r->v[i].ring);

		if (gpa)
			buf_printf(&text, "%sgpa == 0x%llx", n++ ? " || " : " && (", (unsigned long long)gpa);
		if (i + 1 == r->n && n)
			buf_addstr(&text, ")");
	}
	if (buf_str(&text) && (!r->filter || strcmp(r->filter, buf_str(&text)))) {
		int error = r->filter ? write_file_at(undo_dirfd(r->o.undo), FILTER, text.data, text.len)
				      : undo_write(r->o.undo, FILTER, buf_str(&text));

		if (error)
			log_warn(r->o.log, "%s: %s", FILTER, errno_text(error));
		free(r->filter);
		r->filter = strdup(buf_str(&text));
	}
	buf_release(&text);
	return ret;
}

static void *rings_thread(void *arg)
{
	struct rings *r = arg;
	struct pollfd p = { .fd = r->stop_fd, .events = POLLIN };
	struct timespec rest = { .tv_nsec = LOOK_NS };

	while (!r->error && ppoll(&p, 1, &rest, NULL) <= 0) {
		uint64_t from = boot_ns(), took;

		r->error = rings_look(r, false);
		took = (boot_ns() - from) * REST;
		took = took < LOOK_NS ? LOOK_NS : took;
		rest = (struct timespec){ (time_t)(took / 1000000000), (long)(took % 1000000000) };
	}
	if (r->error)
		r->failed(r->ctx, r->error);
	return NULL;
}

int rings_start(struct rings *r, void (*failed)(void *ctx, int error), void *ctx)
{
	sigset_t all, old;
	int ret = r ? rings_look(r, false) : 0;

	if (!r || ret)
		return ret;
	r->failed = failed;
	r->ctx = ctx;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&r->thread, NULL, rings_thread, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	r->running = !ret;
	return ret;
}

void rings_tracing(struct rings *r, bool on)
{
	if (r && r->running)
		spool_set_number(r->o.spool, on ? "hypertrace_from" : "hypertrace_to", boot_ns());
}

int rings_stop(struct rings *r)
{
	struct guest_opts go = { .log = r ? r->o.log : NULL };
	int ret;

	if (!r || !r->running)
		return 0;
	go.root = r->o.root;
	eventfd_write(r->stop_fd, 1);
	pthread_join(r->thread, NULL);
	r->running = false;
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].vm && guest_threads_changed(r->v[i].vm, &go))
			guest_update_vcpus(r->v[i].vm, &go);
	ret = rings_keep_guests(r);
	return r->error ?: rings_look(r, true) ?: ret;
}
