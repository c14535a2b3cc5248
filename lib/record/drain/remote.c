// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hypervisor's trace instance: found, set up, switched on and off. */
#include <fnmatch.h>

#include "base/clock.h"
#include "record/drain/remote.h"
#include "record/drain/spool-to-dat.h"

static bool is_system(const struct remote *r, const char *pattern)
{
	return !fnmatch(pattern, r->events.system, 0) ||
	       (r->hyp && (!fnmatch(pattern, "hyp", 0) || !fnmatch(pattern, "hypervisor", 0)));
}

/* True if a command-line name takes in this event. */
static bool name_matches(const struct remote *r, const char *name, const char *event)
{
	const char *colon = strpbrk(name, ":/");
	char system[128];

	if (!strcmp(name, "all"))
		return true;
	if (!colon)
		return !fnmatch(name, event, 0) || (!strpbrk(name, "*?[") && is_system(r, name));
	if ((size_t)(colon - name) >= sizeof(system))
		return false;
	snprintf(system, sizeof(system), "%.*s", (int)(colon - name), name);
	return is_system(r, system) && (!colon[1] || !fnmatch(colon + 1, event, 0));
}

bool remote_has_event(const struct remote *r, const char *name)
{
	for (size_t i = 0; i < r->events.n; i++)
		if (name_matches(r, name, r->events.v[i].fmt.name))
			return true;
	return false;
}

/* The last word of the plan about an event, in the order given: 1 on, 0 off; `none`: it has none. */
static int remote_wants(const struct remote *r, const struct buffer_plan *b, const char *event, int none)
{
	for (size_t i = b->n_events; i-- > 0;)
		if (name_matches(r, b->events[i].name, event))
			return !b->events[i].negate;
	return none;
}

/* write: undo_write, undo_at_end or undo_poke. name: relative to the remote's directory. */
static int remote_undo_file(struct remote *r, int (*write)(struct undo *, const char *, const char *),
			    const char *name, const char *value)
{
	char *path = str_printf("%s/%s", r->path, name);
	int ret = path ? write(r->undo, path, value) : -ENOMEM;

	free(path);
	return ret;
}

/* Switches the event, with a message when that fails. */
static int remote_switch(struct remote *r, const char *event, bool on)
{
	char name[300];
	int ret;

	snprintf(name, sizeof(name), "events/%s/%s/enable", r->events.system, event);
	ret = remote_undo_file(r, undo_write, name, on ? "1" : "0");
	return ret ? log_fail_errno(r->log, ret, "cannot switch %s/%s", r->path, name) : 0;
}

#define LIST_MAX (4u << 20)
#define FILTER	 "set_ftrace_filter"
#define NOTRACE	 "set_ftrace_notrace"
/* The kernel's longest write, with the newline (arch/arm64/kvm/hyp_events.c). */
#define GLOB_MAX 125

/* True if -p function takes in this event: func, func_ret. */
static bool remote_is_func(const struct buffer_plan *b, const char *event)
{
	return b->tracer && (!strcmp(event, "func") || !strcmp(event, "func_ret"));
}

static int poke_function(struct remote *r, const char *file, const char *glob)
{
	int ret = strlen(glob) > GLOB_MAX ? -ENAMETOOLONG : remote_undo_file(r, undo_poke, file, glob);

	if (ret == -EINVAL)
		log_err(r->log,
			"%s %s: no function of the hypervisor has that name (see __kvm_nvhe_* in "
			"/proc/kallsyms)",
			!strcmp(file, FILTER) ? "-l" : "-n", glob);
	else if (ret)
		log_err(r->log, "cannot write '%s' to %s/%s: %s", glob, r->path, file, errno_text(ret));
	return ret;
}

static int poke_functions(struct remote *r, const char *file, const struct strlist *globs)
{
	int ret = 0;

	for (size_t i = 0; i < globs->n && !ret; i++)
		ret = poke_function(r, file, globs->v[i]);
	return ret;
}

/* The functions of -l and -n, where the kernel traces those of the hypervisor. */
static int remote_set_functions(struct remote *r, const struct buffer_plan *b)
{
	int ret;
	struct strlist on = { 0 };

	if (!b->tracer && !b->funcs.n && !b->notrace.n)
		return 0;
	if (!hypevents_by_name(&r->events, "func", 4))
		return log_fail(
			r->log, -ENOENT,
			"-p function: %s has no event func: this kernel does not trace the hypervisor's "
			"functions (Android's CONFIG_PROTECTED_NVHE_FTRACE does)",
			r->path);
	if (!b->funcs.n && !b->notrace.n)
		return 0;
	/*
	 * Unlike the host's files of these names, a glob in the first switches functions on, one
	 * in the second switches them off, and nothing is cleared by opening them. So what
	 * was on is put back one by one, after all are off.
	 */
	ret = read_lines_at(r->dirfd, FILTER, LIST_MAX, &on);
	for (size_t i = 0; i < on.n && !ret; i++)
		if (*on.v[i])
			ret = remote_undo_file(r, undo_at_end, FILTER, on.v[i]);
	strlist_release(&on);
	if (ret)
		log_err(r->log, "cannot read %s/" FILTER ": %s", r->path, errno_text(ret));
	ret = ret ?: remote_undo_file(r, undo_at_end, NOTRACE, "*");
	if (!ret && b->funcs.n)
		ret = poke_function(r, NOTRACE, "*");
	return ret ?: poke_functions(r, FILTER, &b->funcs) ?: poke_functions(r, NOTRACE, &b->notrace);
}

/* True if a file holds "1". */
static bool remote_file_on(const struct remote *r, const char *name)
{
	char on[8];

	return !read_line_at(r->dirfd, on, sizeof(on), "%s", name) && *on == '1';
}

/* Android 16's buffer_size_kb shows "7 (loaded)" while there is a buffer; other kernels do not show it. */
static bool remote_is_loaded(const struct remote *r)
{
	char size[64];

	return !read_line_at(r->dirfd, size, sizeof(size), "buffer_size_kb") && strstr(size, "(loaded)");
}

/* The plan's events on top of those that are on. */
static int remote_join_events(struct remote *r, const struct buffer_plan *b)
{
	size_t n_on = 0;
	int ret = 0;

	for (size_t i = 0; i < r->events.n && !ret; i++) {
		const char *event = r->events.v[i].fmt.name;
		int want = remote_is_func(b, event) ? 1 : remote_wants(r, b, event, -1);
		char name[300];

		if (want >= 0)
			ret = remote_switch(r, event, want);
		snprintf(name, sizeof(name), "events/%s/%s/enable", r->events.system, event);
		n_on += !ret && remote_file_on(r, name);
	}
	if (ret)
		return ret;
	log_info(r->log, "%s: %s is taken over, %s, %zu events on, %llu KiB per CPU, %s", r->name, r->path,
		 r->was_on ? "running" : "with what is in it", n_on, (unsigned long long)r->size_kb,
		 r->raw ? "raw pages" : "text");
	return 0;
}

/*
 * In place of remote_setup's steps: nothing is cleared. The plan's events wait for remote_start, when
 * readers are there: before, they would write over what a small buffer holds.
 */
static int remote_join(struct remote *r, const struct buffer_plan *b)
{
	char *on = str_printf("%s/tracing_on", r->path), *size = str_printf("%s/buffer_size_kb", r->path);
	char *kb = NULL;
	/* the size for messages, tracing_on to restore it at the end */
	int ret = on && size ? undo_save(r->undo, on) ?: undo_read(r->undo, size, &kb) : -ENOMEM;

	if (!ret && parse_u64(kb, &r->size_kb))
		r->size_kb = 0;
	if (ret)
		log_err(r->log, "cannot read the state of %s: %s", r->path, errno_text(ret));
	free(kb);
	free(on);
	free(size);
	if (ret)
		return ret;
	r->joined = true;
	r->to_join = b;
	r->was_on = remote_file_on(r, "tracing_on");
	if (b->funcs.n || b->notrace.n)
		log_warn(r->log, "-l and -n: the functions of %s stay as they are while it runs", r->path);
	if (b->size_kb && b->size_kb != r->size_kb)
		log_warn(r->log, "-b %llu: the size of %s cannot be changed while it runs",
			 (unsigned long long)b->size_kb, r->path);
	return 0;
}

#define TRACEFS_TEXT_MAX (1u << 20)

static const char *const layouts[] = { "remotes/hypervisor", "hypervisor", "hyp" };

static bool exists_at(int dirfd, const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return file_there(dirfd, path);
}

const char *remote_find(int tracing_dirfd)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (exists_at(tracing_dirfd, layouts[i], "tracing_on"))
			return layouts[i];
	return NULL;
}

void remote_free(struct remote *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	hypevents_release(&r->events);
	buf_release(&r->formats);
	free(r->vcpus);
	fd_close(&r->dirfd);
	free(r->path);
	free(r->name);
	free(r->clock);
	free(r);
}

static struct remote *remote_new(const char *path, const char *name, const struct log *log)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	r->dirfd = -1;
	r->log = log;
	r->layout = page_layout_default;
	r->path = strdup(path);
	r->name = strdup(name);
	r->hyp = !strcmp(name, REMOTE_HYP);
	if (!r->path || !r->name) {
		remote_free(r);
		return NULL;
	}
	return r;
}

static int open_remote_dir(struct remote *r, struct undo *u)
{
	int ret = undo_lock(u, r->path);

	if (ret)
		return ret;
	r->undo = u;
	r->dirfd = openat(undo_dirfd(u), r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r->dirfd < 0 ? -errno : 0;
}

static int read_events(struct remote *r)
{
	const char *slash = strrchr(r->path, '/');
	struct strlist names = { 0 };
	char path[300];
	/* "hypervisor" of "remotes/hypervisor": the events directory has the same name */
	int ret = hypevents_init(&r->events, slash ? slash + 1 : r->path);

	if (ret)
		return ret;
	r->events.raw = r->raw;
	snprintf(path, sizeof(path), "events/%s", r->events.system);
	ret = read_dir_at(r->dirfd, path, &names);
	if (ret)
		log_err(r->log, "cannot open %s/%s: %s", r->path, path, errno_text(ret));
	for (size_t i = 0; i < names.n && !ret; i++) {
		struct buf text = { 0 };

		snprintf(path, sizeof(path), "events/%s/%s/format", r->events.system, names.v[i]);
		ret = read_file_at(r->dirfd, path, TRACEFS_TEXT_MAX, &text);
		if (ret == -ENOENT || ret == -ENOTDIR) { /* enable, header_page ... */
			ret = 0;
			continue;
		}
		ret = ret ?: hypevents_add(&r->events, (char *)text.data, text.len);
		if (ret)
			log_err(r->log, "cannot use %s/%s: %s", r->path, path, errno_text(ret));
		else
			remote_events_add(&r->formats, &text);
		buf_release(&text);
	}
	strlist_release(&names);
	return ret;
}

/* Reads what recording and recovering both need: CPUs, raw or text, page layout. */
static int remote_probe(struct remote *r)
{
	int ret = tracefs_cpus(r->dirfd, "per_cpu", &r->source.n_cpus);

	if (ret && ret != -ENOENT)
		return log_fail_errno(r->log, ret, "cannot read %s/per_cpu", r->path);
	if (!r->source.n_cpus)
		return log_fail(r->log, -ENOENT, "%s/per_cpu has no CPUs", r->path);
	r->raw = exists_at(r->dirfd, "per_cpu/cpu0", "trace_pipe_raw");
	if (!r->raw)
		return 0;
	ret = page_layout_read(r->dirfd, "events/header_page", &r->layout);
	return ret ? log_fail_errno(r->log, ret, "cannot use %s/events/header_page", r->path) : 0;
}

void remote_keep_bound(struct remote *r, bool end)
{
	const char *key = end ? "hyp_to" : "hyp_from";

	if (!r->raw && (end || !r->was_on) && spool_set_number(r->spool, key, boot_ns()))
		log_warn(r->log, "%s is not kept in the spool", key);
}

static int remote_start(struct source *s)
{
	struct remote *r = remote_of(s);
	const bool first = !atomic_load(&r->on_since);
	int ret = r->to_join ? remote_join_events(r, r->to_join) : 0;

	r->to_join = NULL;
	if (ret || r->was_on)
		return ret;
	if (first) /* regions switch it on again and again */
		atomic_store(&r->on_since, boot_ns());
	ret = remote_undo_file(r, first ? undo_write : undo_poke, "tracing_on", "1");
	if (ret)
		log_err(r->log, "cannot switch the hypervisor's tracing on (%s/tracing_on): %s%s", r->path,
			errno_text(ret), remote_hint(r, -ret));
	return ret;
}

static int remote_stop(struct source *s)
{
	struct remote *r = remote_of(s);
	int ret = write_file_at(r->dirfd, "tracing_on", "0", 1);

	if (ret && !file_there(undo_dirfd(r->undo), r->path))
		log_err(r->log, "%s has vanished while it was recorded: what was read is kept", r->path);
	else if (ret)
		log_err(r->log, "cannot write 0 to %s/tracing_on: %s", r->path, errno_text(ret));
	return ret;
}

#define REMOTE_OPS(name)                                                                                     \
	{                                                                                                    \
		.kind = name, .start = remote_start, .stop = remote_stop, .drain = remote_drain,             \
		.stat = source_stat                                                                          \
	}
static const struct source_ops text_ops = REMOTE_OPS("hyp-text"), raw_ops = REMOTE_OPS("hyp-raw");

static void fill_source(struct remote *r)
{
	uint32_t page = page_layout_default.size;

	/*
	 * A read of trace_pipe_raw gives a whole page of the kernel, and Android's gives the wrong end of it
	 * for a smaller read. header_page may state less data: early Android kernels have a footer after it.
	 */
	while (r->raw && page < r->layout.size)
		page *= 2;
	r->source.ops = r->raw ? &raw_ops : &text_ops;
	r->source.name = r->name;
	r->source.path = r->path;
	r->source.clock = r->clock ?: "boot";
	r->source.page_size = page;
}

int remote_open(struct remote **out, struct undo *u, const char *name, const struct log *log)
{
	const bool hyp = !strcmp(name, REMOTE_HYP);
	const char *found = hyp ? remote_find(undo_dirfd(u)) : NULL;
	char *path =
		hyp ? (found ? strdup(found) : NULL) : str_printf("remotes/%s", name + strlen(REMOTE_ANY));
	struct remote *r;
	int ret;

	if (hyp ? !found : path && !exists_at(undo_dirfd(u), path, "tracing_on")) {
		free(path);
		return -ENOENT;
	}
	r = path ? remote_new(path, name, log) : NULL;
	free(path);
	if (!r)
		return -ENOMEM;
	ret = open_remote_dir(r, u) ?: remote_probe(r) ?: read_events(r);
	/* the hypervisor's clock is always boot; another remote's is in trace_clock, if at all */
	if (!ret && !hyp && !exists_at(r->dirfd, ".", "trace_clock")) {
		log_warn(log, "%s has no readable trace_clock: its times are taken as boot's", r->path);
	} else if (!ret && !hyp) {
		char *clock = str_printf("%s/trace_clock", r->path);

		ret = clock ? undo_read(u, clock, &r->clock) : -ENOMEM;
		free(clock);
	}
	if (ret) {
		remote_free(r);
		return ret == -ENOENT ? -EBADMSG : ret; /* it is there, and lacks a part of itself */
	}
	fill_source(r);
	*out = r;
	return 0;
}

/* The events as the spool has them. Ends a call that makes a remote: r is freed on error. */
static int remote_from_spool(struct remote **out, struct remote *r, int ret, struct spool *spool)
{
	ret = ret ?: remote_events_load(&r->events, spool);
	if (ret) {
		remote_free(r);
		return ret;
	}
	r->spool = spool;
	r->saved_reasons = r->events.extra_reasons.n;
	fill_source(r);
	*out = r;
	return 0;
}

int remote_reopen(struct remote **out, struct undo *u, const struct spool_buffer *b, struct spool *spool,
		  const struct log *log)
{
	struct remote *r = remote_new(b->path, b->name, log);

	return r ? remote_from_spool(out, r, open_remote_dir(r, u) ?: remote_probe(r), spool) : -ENOMEM;
}

int remote_import(struct remote **out, const char *path, const struct page_layout *raw, unsigned int n_cpus,
		  struct spool *spool, const struct log *log)
{
	struct remote *r = remote_new(path, REMOTE_HYP, log);

	if (!r)
		return -ENOMEM;
	r->raw = raw != NULL;
	if (raw)
		r->layout = *raw;
	r->source.n_cpus = n_cpus;
	return remote_from_spool(out, r, 0, spool);
}

static bool wanted(const struct remote *r, const struct buffer_plan *b, const char *event)
{
	bool full = !b->tracer;

	/* -e adds, -v -e removes; with only names, or with -p, all start off */
	for (size_t i = 0; i < b->n_events; i++)
		full &= b->events[i].negate;
	return remote_is_func(b, event) || remote_wants(r, b, event, full);
}

static int remote_is_read(const struct remote *r)
{
	return log_fail(
		r->log, -EBUSY,
		"the hypervisor's buffer is in use: somebody reads %s/trace_pipe or trace; its size cannot "
		"be set while a reader is open",
		r->path);
}

/* Free to be used: off, and what an earlier reader left in it cleared. */
static int claim(struct remote *r)
{
	char on[8];
	int ret = read_line_at(r->dirfd, on, sizeof(on), "tracing_on");

	if (ret)
		return log_fail(r->log, ret, "cannot read %s/tracing_on: %s%s", r->path, errno_text(ret),
				ret == -EACCES ? " (root is needed)" : "");
	if (*on && *on != '0')
		return log_fail(
			r->log, -EBUSY,
			"the hypervisor's buffer is in use: %s/tracing_on is 1 (another program is tracing: "
			"--take-over continues that, or write 0 to it)",
			r->path);
	if (!exists_at(r->dirfd, ".", "trace")) /* the oldest Android kernels have none, and start empty */
		return 0;
	ret = write_file_at(r->dirfd, "trace", "0", 1);
	if (ret)
		log_err(r->log, "cannot clear %s/trace: %s%s", r->path, errno_text(ret),
			ret == -EACCES ? " (root is needed)" : "");
	if (ret || !remote_is_loaded(r))
		return ret;
	/*
	 * A buffer that is loaded keeps its size, whatever is written. Once empty it goes with its last
	 * reader; where that one had left something in it, with one more. These kernels let several read:
	 * one that is still loaded has another reader.
	 */
	close(openat(r->dirfd, "trace_pipe", O_RDONLY | O_CLOEXEC));
	if (remote_is_loaded(r))
		return remote_is_read(r);
	log_info(r->log, "hyp: %s held events that nobody had read: they are cleared", r->path);
	return 0;
}

int remote_setup(struct remote *r, const struct buffer_plan *b, bool take_over)
{
	size_t n_on = 0;
	char kb[24];
	int ret;

	/* tracing is on, or what was traced before is still there */
	if (take_over && (remote_file_on(r, "tracing_on") || remote_is_loaded(r)))
		return remote_join(r, b);
	r->size_kb = b->size_kb ? b->size_kb : REMOTE_DEFAULT_KB;
	snprintf(kb, sizeof(kb), "%llu", (unsigned long long)r->size_kb);
	ret = claim(r);
	if (ret)
		return ret;
	ret = remote_undo_file(r, undo_write, "buffer_size_kb", kb);
	if (ret == -EBUSY)
		return remote_is_read(r);
	if (ret)
		log_err(r->log, "cannot set %s/buffer_size_kb to %s: %s", r->path, kb, errno_text(ret));
	/* at the end unread records are dropped before the size is restored, which would be EBUSY */
	if (!ret && exists_at(r->dirfd, ".", "trace"))
		ret = remote_undo_file(r, undo_at_end, "trace", "0");
	ret = ret ?: remote_set_functions(r, b);
	for (size_t i = 0; i < r->events.n && !ret; i++) {
		const char *event = r->events.v[i].fmt.name;
		bool want = wanted(r, b, event);

		ret = remote_switch(r, event, want);
		n_on += want;
	}
	if (ret)
		return ret;
	/* events that show whether another process reads the buffer */
	r->turns = r->raw && hypevents_by_name(&r->events, "hyp_enter", 9) && wanted(r, b, "hyp_enter") &&
		   hypevents_by_name(&r->events, "hyp_exit", 8) && wanted(r, b, "hyp_exit");
	if (!n_on)
		return log_fail(r->log, -EINVAL, "no event of the hypervisor is left to record");
	log_info(r->log, "%s: %s, %zu events, %llu KiB per CPU, %s", r->name, r->path, n_on,
		 (unsigned long long)r->size_kb, r->raw ? "raw pages" : "text");
	return 0;
}

int remote_number(struct remote *r, unsigned int first_id, struct spool *spool)
{
	int ret = hypevents_number(&r->events, first_id);

	if (!ret && first_id + remote_n_formats(&r->events) - 1 > INT16_MAX)
		ret = -ERANGE; /* KernelShark keeps ids in an int16 */
	if (ret)
		return log_fail(r->log, ret, "no room for the hypervisor's event ids above %u", first_id);
	r->spool = spool;
	return remote_events_save(spool, first_id, r->events.system, r->raw, &r->formats);
}

int remote_collect_pids(struct remote *r)
{
	int ret;

	pthread_mutex_lock(&r->lock); /* it may go on */
	ret = collect_pids(r->spool, r->vcpus, r->n_vcpus);
	pthread_mutex_unlock(&r->lock);
	return ret;
}
