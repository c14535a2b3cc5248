// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hypervisor's events that a command line names, its functions, and a buffer that runs already. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/drain/remote.h"
#include "base/files.h"

static bool is_system(const struct remote *r, const char *pattern)
{
	return !fnmatch(pattern, r->events.system, 0) ||
	       (r->hyp && (!fnmatch(pattern, "hyp", 0) || !fnmatch(pattern, "hypervisor", 0)));
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
	for (size_t i = 0; i < r->events.n; i++)
		if (name_matches(r, name, r->events.v[i].name))
			return true;
	return false;
}

int remote_wants(const struct remote *r, const struct buffer_plan *b, const char *event, int none)
{
	for (size_t i = b->n_events; i-- > 0;)
		if (name_matches(r, b->events[i].name, event))
			return !b->events[i].negate;
	return none;
}

int remote_undo_file(struct remote *r, int (*write)(struct undo *, const char *, const char *),
		     const char *name, const char *value)
{
	char *path = str_printf("%s/%s", r->path, name);
	int ret = path ? write(r->undo, path, value) : -ENOMEM;

	free(path);
	return ret;
}

int remote_switch(struct remote *r, const char *event, bool on)
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

bool remote_is_func(const struct buffer_plan *b, const char *event)
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

int remote_set_functions(struct remote *r, const struct buffer_plan *b)
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

/* Whether a file holds "1". */
static bool remote_file_on(const struct remote *r, const char *name)
{
	char on[8];

	return !read_line_at(r->dirfd, on, sizeof(on), "%s", name) && *on == '1';
}

bool remote_is_loaded(const struct remote *r)
{
	char size[64];

	return !read_line_at(r->dirfd, size, sizeof(size), "buffer_size_kb") && strstr(size, "(loaded)");
}

bool remote_runs(const struct remote *r)
{
	return remote_file_on(r, "tracing_on") || remote_is_loaded(r);
}

int remote_join(struct remote *r, const struct buffer_plan *b)
{
	char *on = str_printf("%s/tracing_on", r->path), *size = str_printf("%s/buffer_size_kb", r->path);
	char *kb = NULL;
	size_t n_on = 0;
	/* the size for messages, tracing_on to restore it at the end */
	int ret = on && size ? undo_save(r->undo, on) ?: undo_read(r->undo, size, &kb) : -ENOMEM;

	if (!ret && parse_u64(kb, &r->size_kb))
		r->size_kb = 0;
	if (ret)
		log_err(r->log, "cannot read the state of %s: %s", r->path, errno_text(ret));
	free(kb);
	free(on);
	free(size);
	for (size_t i = 0; i < r->events.n && !ret; i++) {
		const char *event = r->events.v[i].name;
		int want = remote_is_func(b, event) ? 1 : remote_wants(r, b, event, -1);
		char name[300];

		if (want >= 0)
			ret = remote_switch(r, event, want);
		snprintf(name, sizeof(name), "events/%s/%s/enable", r->events.system, event);
		n_on += !ret && remote_file_on(r, name);
	}
	if (ret)
		return ret;
	r->joined = true;
	r->was_on = remote_file_on(r, "tracing_on");
	if (b->funcs.n || b->notrace.n)
		log_warn(r->log, "-l and -n: the functions of %s stay as they are while it runs", r->path);
	if (b->size_kb && b->size_kb != r->size_kb)
		log_warn(r->log, "-b %llu: the size of %s cannot be changed while it runs",
			 (unsigned long long)b->size_kb, r->path);
	log_info(r->log, "%s: %s is taken over, %s, %zu events on, %llu KiB per CPU, %s", r->name, r->path,
		 r->was_on ? "running" : "with what is in it", n_on, (unsigned long long)r->size_kb,
		 r->raw ? "raw pages" : "text");
	return 0;
}
