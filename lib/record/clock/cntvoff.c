// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CNTVOFF of each VM, by a probe on kvm_timer_vcpu_load in a trace instance of its own, and the thread
 * that samples it and the host's counter while a recording runs.
 */
#include <glob.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "record/clock/cntvoff.h"
#include "file/dat/format.h"
#include "record/tracefs/instance.h"

#define SIZE_KB	 "128" /* per CPU: 3000 loads */
#define CPUS_MAX 1024
#define PAGE_MAX (64u << 10)
#define TEXT_MAX (64u << 10)
#define GROUP	 INSTANCE_OWN_EVENTS
#define PATH_LEN 128 /* of a file of the event or the instance: both have a pid in their names */

struct cntvoff_probe {
	struct page_layout layout;
	struct event_field cntvoff, id, vm, pid;
	uint16_t type;
	uint8_t *page;
	int fds[CPUS_MAX]; /* trace_pipe_raw of each CPU, -1: offline */
	size_t n_fds;
	struct load *loads; /* of one drain, all CPUs */
	size_t n_loads;
	bool lost; /* some of them */
};

struct load {
	uint64_t time, cntvoff;
	int32_t vm, pid;
	unsigned int id;
};

/* ---- the log: loads of vCPUs, merged into spans --------------------------------------- */

/* The VM's span that holds or precedes the time; *last: nothing of it comes after. */
static struct cntvoff_span *span_before(const struct cntvoff_log *l, int32_t vm, uint64_t time, bool *last)
{
	*last = true;
	for (size_t i = l->n_spans; i--;) {
		if (l->spans[i].vm != vm)
			continue;
		if (l->spans[i].first <= time)
			return &l->spans[i];
		*last = false;
	}
	return NULL;
}

int cntvoff_log_load(struct cntvoff_log *l, uint64_t time, int32_t vm, uint64_t cntvoff, bool lost)
{
	bool last;
	struct cntvoff_span *before = span_before(l, vm, time, &last);
	const struct cntvoff_span one = { .vm = vm,
					  .cntvoff = cntvoff,
					  .first = time,
					  .last = time,
					  .vague = before && (lost || before->lossy) };

	if (before && before->cntvoff == cntvoff && time >= before->last) {
		before->last = time;
		before->lossy = false;
	}
	/* one that another CPU kept back is older than what is there */
	if (!last || (before && before->cntvoff == cntvoff))
		return 0;
	return array_push(&l->spans, &l->n_spans, &one, sizeof(one));
}

int cntvoff_log_vcpu(struct cntvoff_log *l, int32_t vm, int32_t pid, unsigned int id)
{
	const struct cntvoff_vcpu one = { vm, pid, id };

	for (size_t i = 0; i < l->n_vcpus; i++)
		if (l->vcpus[i].vm == vm && l->vcpus[i].id == id) {
			l->vcpus[i].pid = pid;
			return 0;
		}
	return array_push(&l->vcpus, &l->n_vcpus, &one, sizeof(one));
}

void cntvoff_log_release(struct cntvoff_log *l)
{
	free(l->spans);
	free(l->vcpus);
	*l = (struct cntvoff_log){ 0 };
}

static int take_field(const struct event_format *f, const char *name, size_t size, struct event_field *out)
{
	const struct event_field *field = event_format_field(f, name);

	if (!field || field->size != size)
		return -EINVAL;
	*out = *field;
	out->type = out->name = NULL; /* the format's */
	return 0;
}

static int read_event(struct cntvoff_probe *p, int dirfd, const char *event)
{
	struct event_format f = { 0 };
	struct buf text = { 0 };
	char path[PATH_LEN];
	int ret;

	snprintf(path, sizeof(path), "events/" GROUP "/%s/format", event);
	ret = read_file_at(dirfd, path, TEXT_MAX, &text);
	ret = ret ?: event_format_parse((char *)text.data, text.len, &f);
	ret = ret ?: take_field(&f, "voff", 8, &p->cntvoff) ?: take_field(&f, "id", 4, &p->id) ?:
	      take_field(&f, "vm", 4, &p->vm) ?: take_field(&f, "common_pid", 4, &p->pid);
	p->type = (uint16_t)f.id;
	event_format_release(&f);
	buf_release(&text);
	return ret;
}

int cntvoff_probe_open(struct cntvoff_probe **out, struct undo *u, const char *clock)
{
	struct cntvoff_probe *p = calloc(1, sizeof(*p));
	char instance[48], event[24], define[2 * PATH_LEN], path[PATH_LEN];
	const int dirfd = undo_dirfd(u);
	size_t mark = undo_mark(u);
	int ret;

	if (!p)
		return -ENOMEM;
	snprintf(instance, sizeof(instance), "instances/hyptrace-voff-%d", (int)getpid());
	snprintf(event, sizeof(event), "voff_%d", (int)getpid());
	/* The event first: it goes last, once the instance does not use it any more. */
	snprintf(define, sizeof(define),
		 "f:" GROUP "/%s kvm_timer_vcpu_load voff=vcpu->kvm->arch.timer_data.voffset "
		 "id=vcpu->vcpu_id vm=vcpu->kvm->userspace_pid",
		 event);
	ret = undo_make_event(u, define) ?: read_event(p, dirfd, event) ?:
	      page_layout_read(dirfd, "events/header_page", &p->layout);
	if (!ret && p->layout.size > PAGE_MAX)
		ret = -EMSGSIZE;
	if (ret)
		goto out;
	p->page = malloc(p->layout.size);
	ret = p->page ? undo_mkdir(u, instance) : -ENOMEM;
	snprintf(path, sizeof(path), "events/" GROUP "/%s/enable", event);
	ret = ret ?: undo_poke_in(u, instance, "buffer_size_kb", SIZE_KB) ?:
		     undo_poke_in(u, instance, "trace_clock", clock) ?:
		     undo_poke_in(u, instance, path, "1");
	for (; p->n_fds < CPUS_MAX && !ret; p->n_fds++) {
		snprintf(path, sizeof(path), "%s/per_cpu/cpu%zu/trace_pipe_raw", instance, p->n_fds);
		p->fds[p->n_fds] = openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (p->fds[p->n_fds] < 0 && errno == ENOENT)
			break;
	}
	if (!ret && !p->n_fds)
		ret = -ENOENT;
out:
	if (!ret) {
		*out = p;
		return 0;
	}
	cntvoff_probe_free(p);
	undo_to(u, mark);
	return ret;
}

void cntvoff_probe_free(struct cntvoff_probe *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_fds; i++)
		fd_close(&p->fds[i]);
	free(p->page);
	free(p->loads);
	free(p);
}

static bool load_field(const struct page_event *e, const struct event_field *f, void *out)
{
	if (f->offset + f->size > e->len)
		return false;
	memcpy(out, e->data + f->offset, f->size);
	return true;
}

static int take_loads(struct cntvoff_probe *p, size_t len)
{
	struct page_reader r;
	struct page_event e;
	int ret = page_reader_init(&r, &p->layout, p->page, len);

	if (!ret)
		p->lost |= r.missed;
	while (!ret && (ret = page_next(&r, &e)) == 1) {
		struct load l = { .time = e.ts };
		uint16_t type = 0;

		if (e.len >= sizeof(type))
			memcpy(&type, e.data, sizeof(type));
		ret = 0;
		if (type == p->type && load_field(&e, &p->cntvoff, &l.cntvoff) &&
		    load_field(&e, &p->vm, &l.vm) && load_field(&e, &p->pid, &l.pid) &&
		    load_field(&e, &p->id, &l.id))
			ret = array_push(&p->loads, &p->n_loads, &l, sizeof(l));
	}
	if (ret != -EBADMSG)
		return ret;
	p->lost = true;
	return 0;
}

/*
 * Lost records have neither a VM nor a time between two drains: any VM may have changed before its
 * next record.
 */
int cntvoff_probe_drain(struct cntvoff_probe *p, struct cntvoff_log *log)
{
	ssize_t n;
	int ret = 0;

	p->n_loads = 0;
	p->lost = false;
	for (size_t i = 0; i < p->n_fds && !ret; i++)
		while (!ret && p->fds[i] >= 0 && (n = read(p->fds[i], p->page, p->layout.size)) > 0)
			ret = take_loads(p, (size_t)n);
	array_sort(p->loads, p->n_loads, sizeof(*p->loads), compare_u64);
	for (size_t i = 0; i < p->n_loads && !ret; i++) {
		const struct load *l = &p->loads[i];

		ret = cntvoff_log_load(log, l->time, l->vm, l->cntvoff, p->lost)
			      ?: cntvoff_log_vcpu(log, l->vm, l->pid, l->id);
	}
	/* Records of any VM are missing before those that come from now on. */
	for (size_t i = 0; p->lost && i < log->n_spans; i++)
		log->spans[i].lossy = true;
	return ret;
}

static int read_tsc_number(const char *vcpu, const char *name, int64_t *out)
{
	char text[32];

	return read_line_at(AT_FDCWD, text, sizeof(text), "%s/%s", vcpu, name)
		       ?: sscanf(text, "%" SCNd64, out) == 1 ? 0
							     : -EBADMSG;
}

int cntvoff_tsc_read(const char *kvm_dir, uint64_t time, struct cntvoff_log *log)
{
	char *pattern = str_printf("%s/*-*/vcpu*", kvm_dir);
	glob_t found = { 0 };
	int ret = !pattern || glob(pattern, 0, NULL, &found) == GLOB_NOSPACE ? -ENOMEM : 0;
	for (size_t i = 0; i < found.gl_pathc && !ret; i++) {
		const char *vcpu = found.gl_pathv[i];
		int64_t ratio, bits, offset, tid;
		unsigned int id;
		int vm, fd;

		if (sscanf(vcpu + strlen(kvm_dir), "/%d-%d/vcpu%u", &vm, &fd, &id) != 3)
			continue;
		/* a guest whose TSC runs at another rate has no constant offset */
		if (!read_tsc_number(vcpu, "tsc-scaling-ratio", &ratio) &&
		    !read_tsc_number(vcpu, "tsc-scaling-ratio-frac-bits", &bits) && bits >= 0 && bits < 63 &&
		    ratio != (int64_t)1 << bits)
			continue;
		if (read_tsc_number(vcpu, "tsc-offset", &offset))
			continue;
		/* guest = host + offset; since when is known only as far as it was looked at */
		ret = cntvoff_log_load(log, time, vm, -(uint64_t)offset, true);
		if (!ret && !read_tsc_number(vcpu, "pid", &tid))
			ret = cntvoff_log_vcpu(log, vm, (int32_t)tid, id);
	}
	globfree(&found);
	free(pattern);
	return ret;
}

#define DRAIN_MS 250 /* the probe's buffer holds that much */

static int take_sample(struct clock_sampler *c)
{
	struct counter_shot s;
	int ret = counter_shoot(c->marks, &s) ?: counter_log_shot(&c->host, &s);

	if (ret || !c->tsc)
		return ret;
	pthread_mutex_lock(&c->lock);
	ret = cntvoff_tsc_read("/sys/kernel/debug/kvm", s.clock, &c->cntvoff);
	pthread_mutex_unlock(&c->lock);
	return ret;
}

/* In a thread of its own: a recording's start and end block for longer than an interval. */
static void *sample_thread(void *arg)
{
	struct clock_sampler *c = arg;
	struct pollfd p = { .fd = c->stop_fd, .events = POLLIN };
	int64_t since = 0, wait = DRAIN_MS;
	int ret = 0, n;

	if (c->interval_ms > 0 && c->interval_ms < wait)
		wait = c->interval_ms;
	while (!ret && (n = poll(&p, 1, (int)wait)) <= 0) {
		if (n < 0) {
			ret = errno == EINTR ? 0 : -errno;
			continue;
		}
		since += wait;
		if (c->probe) {
			pthread_mutex_lock(&c->lock);
			ret = cntvoff_probe_drain(c->probe, &c->cntvoff);
			pthread_mutex_unlock(&c->lock);
		}
		if (!ret && c->interval_ms > 0 && since >= c->interval_ms) {
			ret = take_sample(c);
			since = 0;
		}
	}
	c->error = ret;
	return NULL;
}

int clock_sampler_start(struct clock_sampler **out, struct undo *u, const char *clock, int64_t interval_ms,
			bool probe, const struct log *log)
{
	struct clock_sampler *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	c->interval_ms = interval_ms;
	c->log = log;
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = c->stop_fd < 0 ? -errno : !counter_there() ? -ENOTSUP : 0;
	ret = ret ?: clock_marker_open(&c->marks, u, clock, COUNTER_MARKS);
	if (!ret && probe) {
		ret = cntvoff_probe_open(&c->probe, u, clock);
		if (ret && ret != -ENOMEM) {
			log_debug(log, "no probe for CNTVOFF: %s", errno_text(ret));
			c->tsc = true;
			ret = 0;
		}
	}
	ret = ret ?: take_sample(c) ?: -pthread_create(&c->thread, NULL, sample_thread, c);
	if (!ret) {
		*out = c;
		return 0;
	}
	cntvoff_probe_free(c->probe);
	clock_marker_free(c->marks);
	c->marks = NULL;
	clock_sampler_free(c);
	return ret;
}

void clock_sampler_stop(struct clock_sampler *c)
{
	if (!c || !c->marks)
		return;
	eventfd_write(c->stop_fd, 1);
	pthread_join(c->thread, NULL);
	if (c->probe && !c->error)
		c->error = cntvoff_probe_drain(c->probe, &c->cntvoff);
	if (!c->error)
		c->error = take_sample(c);
	if (c->error)
		log_warn(c->log, "the host's counter was not read to the end: %s", errno_text(c->error));
	cntvoff_probe_free(c->probe);
	c->probe = NULL;
	clock_marker_free(c->marks);
	c->marks = NULL;
}

void clock_sampler_free(struct clock_sampler *c)
{
	if (!c)
		return;
	clock_sampler_stop(c);
	counter_log_release(&c->host);
	cntvoff_log_release(&c->cntvoff);
	fd_close(&c->stop_fd);
	free(c);
}

int clock_sampler_copy_cntvoff(struct clock_sampler *c, struct cntvoff_log *out)
{
	const struct cntvoff_log *from = &c->cntvoff;
	int ret = 0;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < from->n_spans && !ret; i++)
		ret = array_push(&out->spans, &out->n_spans, &from->spans[i], sizeof(*out->spans));
	for (size_t i = 0; i < from->n_vcpus && !ret; i++)
		ret = array_push(&out->vcpus, &out->n_vcpus, &from->vcpus[i], sizeof(*out->vcpus));
	pthread_mutex_unlock(&c->lock);
	return ret;
}
