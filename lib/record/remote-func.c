// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which functions of the hypervisor are traced (Android's CONFIG_PROTECTED_NVHE_FTRACE): -p function, -l, -n.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/remote-priv.h"

#define LIST_MAX (4u << 20)
#define FILTER	 "set_ftrace_filter"
#define NOTRACE	 "set_ftrace_notrace"
/* What the kernel takes in one write, with the newline (arch/arm64/kvm/hyp_events.c). */
#define GLOB_MAX 125

bool remote_is_func(const struct buffer_plan *b, const char *event)
{
	return b->tracer && (!strcmp(event, "func") || !strcmp(event, "func_ret"));
}

/*
 * Unlike the host's files of these names, a glob in the first switches functions on, one
 * in the second switches them off, and nothing is cleared by opening them. So what
 * was on is put back one by one, after all are off.
 */
static int keep_functions(struct remote *r)
{
	struct strlist on = { 0 };
	int ret = read_lines_at(r->dirfd, FILTER, LIST_MAX, &on);

	for (size_t i = 0; i < on.n && !ret; i++)
		if (*on.v[i])
			ret = remote_undo_file(r, undo_at_end, FILTER, on.v[i]);
	strlist_release(&on);
	if (ret)
		log_err(r->log, "cannot read %s/" FILTER ": %s", r->path, errno_text(ret));
	return ret ?: remote_undo_file(r, undo_at_end, NOTRACE, "*");
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

	if (!b->tracer && !b->funcs.n && !b->notrace.n)
		return 0;
	if (!hypevents_by_name(&r->events, "func", 4)) {
		log_err(r->log,
			"-p function: %s has no event func: this kernel does not trace the hypervisor's "
			"functions "
			"(Android's CONFIG_PROTECTED_NVHE_FTRACE does)",
			r->path);
		return -ENOENT;
	}
	if (!b->funcs.n && !b->notrace.n)
		return 0;
	ret = keep_functions(r);
	if (!ret && b->funcs.n)
		ret = poke_function(r, NOTRACE, "*");
	return ret ?: poke_functions(r, FILTER, &b->funcs) ?: poke_functions(r, NOTRACE, &b->notrace);
}
