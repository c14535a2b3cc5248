// SPDX-License-Identifier: LGPL-2.1-or-later
#include "record/remote-priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define TRACEFS_TEXT_MAX (1u << 20)

static const char *const layouts[] = { "remotes/hypervisor", "hypervisor", "hyp" };

static bool exists_at(int dirfd, const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !faccessat(dirfd, path, F_OK, 0);
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
	strlist_release(&r->names);
	free(r->cntvoffs);
	if (r->dirfd >= 0)
		close(r->dirfd);
	free(r->path);
	free(r);
}

static struct remote *remote_new(const char *path, const struct log *log)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	r->dirfd = -1;
	r->log = log;
	r->layout = page_layout_default;
	r->path = strdup(path);
	if (!r->path) {
		remote_free(r);
		return NULL;
	}
	return r;
}

/* "hypervisor" of "remotes/hypervisor": the events directory has the same name */
static const char *system_name(const struct remote *r)
{
	const char *slash = strrchr(r->path, '/');

	return slash ? slash + 1 : r->path;
}

static int lock_dir(struct remote *r, int tracing_dirfd)
{
	r->dirfd = openat(tracing_dirfd, r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return -errno;
	if (flock(r->dirfd, LOCK_EX | LOCK_NB) < 0) {
		log_err(r->log, "another hyptrace records the hypervisor's buffer (%s is locked)", r->path);
		return -EBUSY;
	}
	return 0;
}

static int add_event(struct remote *r, const char *name)
{
	char path[300];
	struct buf text = { 0 };
	int ret;

	snprintf(path, sizeof(path), "events/%s/%s/format", system_name(r), name);
	ret = read_file_at(r->dirfd, path, TRACEFS_TEXT_MAX, &text);
	if (!ret)
		ret = hypevents_add(&r->events, (char *)text.data, text.len);
	if (ret)
		log_err(r->log, "cannot use %s/%s: %s", r->path, path, errno_text(ret));
	else
		ret = strlist_add(&r->names, name);
	buf_release(&text);
	return ret;
}

static int read_events(struct remote *r)
{
	char path[64];
	struct dirent *d;
	int ret = hypevents_init(&r->events, system_name(r));
	DIR *dir;

	if (ret)
		return ret;
	r->events.raw = r->raw;
	snprintf(path, sizeof(path), "events/%s", system_name(r));
	dir = open_dir_at(r->dirfd, path);
	if (!dir) {
		ret = -errno;
		log_err(r->log, "cannot open %s/%s: %s", r->path, path, errno_text(ret));
		return ret;
	}
	while (!ret && (d = readdir(dir))) {
		char format[300];

		snprintf(format, sizeof(format), "%s/format", d->d_name);
		if (d->d_name[0] != '.' && !faccessat(dirfd(dir), format, F_OK, 0))
			ret = add_event(r, d->d_name);
	}
	closedir(dir);
	return ret;
}

static unsigned int count_cpus(int dirfd)
{
	unsigned int n = 0;
	char path[48];

	do
		snprintf(path, sizeof(path), "per_cpu/cpu%u", n);
	while (!faccessat(dirfd, path, F_OK, 0) && ++n < 65536);
	return n;
}

static int read_layout(struct remote *r)
{
	struct buf text = { 0 };
	int ret = read_file_at(r->dirfd, "events/header_page", TRACEFS_TEXT_MAX, &text);

	if (!ret)
		ret = page_layout_parse((char *)text.data, text.len, &r->layout);
	if (ret)
		log_err(r->log, "cannot use %s/events/header_page: %s", r->path, errno_text(ret));
	buf_release(&text);
	return ret;
}

/* What recording and recovering need alike: CPUs, raw or text, page layout. */
static int probe(struct remote *r)
{
	r->source.n_cpus = count_cpus(r->dirfd);
	if (!r->source.n_cpus) {
		log_err(r->log, "%s/per_cpu has no CPUs", r->path);
		return -ENOENT;
	}
	r->raw = exists_at(r->dirfd, "per_cpu/cpu0", "trace_pipe_raw");
	return r->raw ? read_layout(r) : 0;
}

/*
 * A read of trace_pipe_raw gives a whole page of the kernel, and Android's gives
 * the wrong end of it when less is asked for. header_page may tell of less data:
 * early Android kernels have a footer behind it.
 */
static uint32_t whole_page(const struct page_layout *l)
{
	uint32_t size = page_layout_default.size;

	while (size < l->size)
		size *= 2;
	return size;
}

static void fill_source(struct remote *r)
{
	r->source.ops = r->raw ? &remote_raw_ops : &remote_text_ops;
	r->source.name = "hyp";
	r->source.path = r->path;
	r->source.clock = "boot";
	r->source.page_size = r->raw ? whole_page(&r->layout) : page_layout_default.size;
}

int remote_open(struct remote **out, struct undo *u, const struct log *log)
{
	const char *path = remote_find(undo_dirfd(u));
	struct remote *r;
	int ret;

	if (!path)
		return -ENOENT;
	r = remote_new(path, log);
	if (!r)
		return -ENOMEM;
	r->undo = u;
	ret = lock_dir(r, undo_dirfd(u));
	if (!ret)
		ret = probe(r);
	if (!ret)
		ret = read_events(r);
	if (ret) {
		remote_free(r);
		return ret == -ENOENT ? -EBADMSG : ret; /* it is there, and lacks a part of itself */
	}
	fill_source(r);
	*out = r;
	return 0;
}

int remote_reopen(struct remote **out, const char *tracing_dir, const struct spool_buffer *b,
		  const struct spool *spool, const struct log *log)
{
	struct remote *r = remote_new(b->path, log);
	int fd, ret;

	if (!r)
		return -ENOMEM;
	fd = open(tracing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = fd < 0 ? -errno : lock_dir(r, fd);
	if (fd >= 0)
		close(fd);
	if (!ret)
		ret = probe(r);
	if (!ret)
		ret = remote_load_events(&r->events, &r->first_id, spool);
	if (ret) {
		remote_free(r);
		return ret;
	}
	r->saved_reasons = r->events.extra_reasons.n;
	fill_source(r);
	*out = r;
	return 0;
}

int remote_import(struct remote **out, const char *path, const struct page_layout *raw, unsigned int n_cpus,
		  struct spool *spool, const struct log *log)
{
	struct remote *r = remote_new(path, log);
	int ret;

	if (!r)
		return -ENOMEM;
	r->raw = raw != NULL;
	if (raw)
		r->layout = *raw;
	r->source.n_cpus = n_cpus;
	ret = remote_load_events(&r->events, &r->first_id, spool);
	if (ret) {
		remote_free(r);
		return ret;
	}
	r->saved_reasons = r->events.extra_reasons.n;
	r->spool = spool;
	fill_source(r);
	*out = r;
	return 0;
}

/* ---- events of the command line ------------------------------------------- */

static bool is_system(const struct remote *r, const char *pattern)
{
	return !fnmatch(pattern, system_name(r), 0) || !fnmatch(pattern, "hyp", 0) ||
	       !fnmatch(pattern, "hypervisor", 0);
}

/* Whether a command-line name takes in this event. */
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
	memcpy(system, name, (size_t)(colon - name));
	system[colon - name] = 0;
	return is_system(r, system) && (!colon[1] || !fnmatch(colon + 1, event, 0));
}

bool remote_has_event(const struct remote *r, const char *name)
{
	for (size_t i = 0; i < r->names.n; i++)
		if (name_matches(r, name, r->names.v[i]))
			return true;
	return false;
}

static bool wanted(const struct remote *r, const struct buffer_plan *b, const char *event)
{
	bool want = true;

	/* -e adds, -v -e takes away, in the order given; names alone start from nothing */
	for (size_t i = 0; i < b->n_events; i++)
		if (!b->events[i].negate) {
			want = false;
			break;
		}
	for (size_t i = 0; i < b->n_events; i++)
		if (name_matches(r, b->events[i].name, event))
			want = !b->events[i].negate;
	return want;
}

/* ---- setting up -------------------------------------------------------------- */

static char *file_path(const struct remote *r, const char *name)
{
	return str_printf("%s/%s", r->path, name);
}

static int undo_file(struct remote *r, const char *name, const char *value)
{
	char *path = file_path(r, name);
	int ret = path ? undo_write(r->undo, path, value) : -ENOMEM;

	free(path);
	return ret;
}

static int poke_file(struct remote *r, const char *name, const char *value)
{
	int fd = openat(r->dirfd, name, O_WRONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write_all(fd, value, strlen(value));
	close(fd);
	return ret;
}

static int read_number(const struct remote *r, const char *name, uint64_t *out)
{
	struct buf text = { 0 };
	int ret = read_file_at(r->dirfd, name, 4096, &text);
	char *s = ret ? NULL : (char *)(uintptr_t)buf_str(&text);

	if (s) {
		s[strspn(s, "0123456789")] = 0; /* "7 (unloaded)" */
		ret = parse_u64(s, out);
	}
	buf_release(&text);
	return ret;
}

/* Free to be used: off, and what an earlier reader left in it cleared. */
static int claim(struct remote *r)
{
	uint64_t on;
	int ret = read_number(r, "tracing_on", &on);

	if (ret) {
		log_err(r->log, "cannot read %s/tracing_on: %s%s", r->path, errno_text(ret),
			ret == -EACCES ? " (root is needed)" : "");
		return ret;
	}
	if (on) {
		log_err(r->log,
			"the hypervisor's buffer is in use: %s/tracing_on is 1 (somebody else is tracing; "
			"write 0 to it if not)",
			r->path);
		return -EBUSY;
	}
	ret = poke_file(r, "trace", "0");
	if (ret == -ENOENT) /* the oldest Android kernels have none, and start empty */
		return 0;
	if (ret)
		log_err(r->log, "cannot clear %s/trace: %s%s", r->path, errno_text(ret),
			ret == -EACCES ? " (root is needed)" : "");
	return ret;
}

static int set_size(struct remote *r, uint64_t kb)
{
	char value[24];
	int ret;

	snprintf(value, sizeof(value), "%llu", (unsigned long long)kb);
	ret = undo_file(r, "buffer_size_kb", value);
	if (ret == -EBUSY)
		log_err(r->log,
			"the hypervisor's buffer is in use: somebody reads %s/trace_pipe or trace; "
			"its size cannot be set while a reader is open",
			r->path);
	else if (ret)
		log_err(r->log, "cannot set %s/buffer_size_kb to %s: %s", r->path, value, errno_text(ret));
	else
		r->size_kb = kb;
	return ret;
}

static int set_events(struct remote *r, const struct buffer_plan *b)
{
	for (size_t i = 0; i < r->names.n; i++) {
		bool want = wanted(r, b, r->names.v[i]);
		char name[300];
		int ret;

		snprintf(name, sizeof(name), "events/%s/%s/enable", system_name(r), r->names.v[i]);
		ret = undo_file(r, name, want ? "1" : "0");
		if (ret) {
			log_err(r->log, "cannot switch %s/%s: %s", r->path, name, errno_text(ret));
			return ret;
		}
		r->n_on += want;
	}
	if (!r->n_on) {
		log_err(r->log, "no event of the hypervisor is left to record");
		return -EINVAL;
	}
	return 0;
}

int remote_setup(struct remote *r, const struct buffer_plan *b)
{
	int ret = claim(r);
	char *trace;

	if (!ret)
		ret = set_size(r, b->size_kb ? b->size_kb : REMOTE_DEFAULT_KB);
	if (ret)
		return ret;
	/* at the end what nobody read goes before the size is put back: it would be EBUSY */
	trace = file_path(r, "trace");
	if (!trace)
		ret = -ENOMEM;
	else if (exists_at(r->dirfd, ".", "trace"))
		ret = undo_at_end(r->undo, trace, "0");
	free(trace);
	return ret ? ret : set_events(r, b);
}

int remote_start(struct source *s)
{
	struct remote *r = remote_of(s);
	int ret;

	atomic_store(&r->on_since, boot_ns());
	ret = undo_file(r, "tracing_on", "1");
	if (ret)
		log_err(r->log, "cannot switch the hypervisor's tracing on (%s/tracing_on): %s", r->path,
			errno_text(ret));
	return ret;
}

int remote_stop(struct source *s)
{
	struct remote *r = remote_of(s);
	int ret = poke_file(r, "tracing_on", "0");

	if (ret)
		log_err(r->log, "cannot write 0 to %s/tracing_on: %s", r->path, errno_text(ret));
	return ret;
}

/* ---- what the spool keeps ------------------------------------------------------ */

int remote_number(struct remote *r, unsigned int first_id, struct spool *spool)
{
	struct buf text = { 0 };
	char head[64];
	int ret = hypevents_number(&r->events, first_id);

	if (!ret && first_id + remote_n_formats(&r->events) - 1 > INT16_MAX)
		ret = -ERANGE; /* KernelShark keeps ids in an int16 */
	if (ret) {
		log_err(r->log, "no room for the hypervisor's event ids above %u", first_id);
		return ret;
	}
	r->first_id = first_id;
	snprintf(head, sizeof(head), "%u %s %s\n", first_id, r->events.system, r->raw ? "raw" : "text");
	buf_addstr(&text, head);
	for (size_t i = 0; i < r->names.n && !ret; i++) {
		struct buf format = { 0 };
		char path[300];

		snprintf(path, sizeof(path), "events/%s/%s/format", r->events.system, r->names.v[i]);
		ret = read_file_at(r->dirfd, path, TRACEFS_TEXT_MAX, &format);
		buf_printf(&text, "%zu\n", format.len);
		buf_add(&text, format.data, format.len);
		buf_release(&format);
	}
	if (!ret)
		ret = buf_status(&text);
	if (!ret)
		ret = spool_put_text(spool, "hyp_formats", text.data, text.len);
	buf_release(&text);
	return ret;
}

static int load_reasons(struct hypevents *e, const struct spool *spool)
{
	struct buf text = { 0 };
	int ret = spool_get_text(spool, "hyp_reasons", &text);
	struct cursor c = cursor_at(text.data, text.len);
	const char *line;
	size_t len;

	if (ret) {
		buf_release(&text);
		return ret == -ENOENT ? 0 : ret;
	}
	while (cursor_line(&c, &line, &len) && !ret) {
		int n = hypevents_reason(e, line, len);

		ret = n < 0 ? n : 0;
	}
	buf_release(&text);
	return ret;
}

static int load_formats(struct hypevents *e, unsigned int *first_id, struct cursor *c)
{
	const char *line;
	char head[128], system[64], kind[8];
	size_t len;
	int ret;

	if (!cursor_line(c, &line, &len) || len >= sizeof(head))
		return -EBADMSG;
	memcpy(head, line, len);
	head[len] = 0;
	if (sscanf(head, "%u %63s %7s", first_id, system, kind) != 3)
		return -EBADMSG;
	ret = hypevents_init(e, system);
	e->raw = !strcmp(kind, "raw");
	while (!ret && cursor_line(c, &line, &len)) {
		const char *format;
		uint64_t n;

		if (len >= sizeof(head))
			return -EBADMSG;
		memcpy(head, line, len);
		head[len] = 0;
		ret = parse_u64(head, &n);
		format = ret ? NULL : cursor_take(c, n);
		if (!ret)
			ret = format ? hypevents_add(e, format, n) : -EBADMSG;
	}
	return ret ? ret : hypevents_number(e, *first_id);
}

int remote_load_events(struct hypevents *e, unsigned int *first_id, const struct spool *spool)
{
	struct buf text = { 0 };
	struct cursor c;
	int ret = spool_get_text(spool, "hyp_formats", &text);

	if (!ret) {
		c = cursor_at(text.data, text.len);
		ret = load_formats(e, first_id, &c);
	}
	if (!ret)
		ret = load_reasons(e, spool);
	buf_release(&text);
	return ret;
}

void remote_set_spool(struct remote *r, struct spool *spool)
{
	r->spool = spool;
}

struct source *remote_source(struct remote *r)
{
	return &r->source;
}

size_t remote_n_events(const struct remote *r)
{
	return r->n_on;
}

uint64_t remote_size_kb(const struct remote *r)
{
	return r->size_kb;
}
