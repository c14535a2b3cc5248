// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names for the records of a recording that goes on: of guests and their vCPUs, and of tasks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dat/offset.h"
#include "guest/guest.h"
#include "live/live-priv.h"

/* ---- guests --------------------------------------------------------------------------------- */

/* Readers index the list by CPU. */
static struct offset_vcpu *live_vcpus(const struct guest *g, uint32_t *n)
{
	struct offset_vcpu *v;

	*n = g->n_vcpus ? g->vcpus[g->n_vcpus - 1].cpu + 1 : 0;
	v = *n && *n <= SPOOL_CPUS_MAX ? calloc(*n, sizeof(*v)) : NULL;
	for (uint32_t i = 0; v && i < *n; i++)
		v[i].cpu = i;
	for (size_t i = 0; v && i < g->n_vcpus; i++)
		v[g->vcpus[i].cpu].pid = (uint32_t)g->vcpus[i].tid;
	return v;
}

static int live_name_guest(struct live *l, const struct guest *g)
{
	char pid[32];
	struct offset_guest o = { .name = g->name };
	struct buf body = { 0 };
	int ret;

	o.vcpus = live_vcpus(g, &o.n);
	if (!o.vcpus)
		return o.n && o.n <= SPOOL_CPUS_MAX ? -ENOMEM : 0;
	snprintf(pid, sizeof(pid), "VM-%d", (int)g->pid);
	if (!o.name)
		o.name = pid;
	offset_guest_encode(&o, &body);
	ret = buf_status(&body) ?: dat_job_add_option(l->job, DAT_GUEST, body.data, body.len);
	buf_release(&body);
	free(o.vcpus);
	return ret;
}

static int live_name_guests(struct live *l, const char *root, const struct log *log)
{
	const struct guest_opts o = { .root = root, .log = log };
	struct guests all = { 0 };
	int ret = guests_find(&all, &o);

	for (size_t i = 0; i < all.n && !ret; i++)
		ret = live_name_guest(l, &all.v[i]);
	guests_release(&all);
	return ret;
}

/* "NAME\tOFFSET\tBOUND", as another process writes it. */
static bool live_clock_line(char *line, int64_t *offset, uint64_t *bound)
{
	char *tab = strchr(line, '\t'), *end;

	if (!tab)
		return false;
	*tab = 0;
	errno = 0;
	*offset = strtoll(tab + 1, &end, 10);
	return !errno && end > tab + 1 && *end == '\t' && !parse_u64(end + 1, bound);
}

void live_each_clock(const struct live *l,
		     void (*each)(void *ctx, const char *guest, int64_t offset, uint64_t bound), void *ctx)
{
	struct strlist lines = { 0 };
	struct buf text = { 0 };

	if (!spool_get_text(l->spool, SPOOL_CLOCKS, &text))
		strlist_add_lines(&lines, text.data, text.len);
	for (size_t i = 0; i < lines.n; i++) {
		uint64_t bound;
		int64_t offset;

		if (live_clock_line(lines.v[i], &offset, &bound))
			each(ctx, lines.v[i], offset, bound);
	}
	strlist_release(&lines);
	buf_release(&text);
}

/* ---- tasks ---------------------------------------------------------------------------------- */

/* "PID NAME\n" of each thread of a process, as the kernel's saved_cmdlines has it. */
static void live_name_threads(struct live *l, const char *root, const char *pid)
{
	char *dir = str_printf("%s/proc/%s/task", root, pid);
	struct strlist tids = { 0 };

	if (dir)
		read_dir_at(AT_FDCWD, dir, &tids);
	for (size_t i = 0; i < tids.n; i++) {
		char *path = str_printf("%s/%s/comm", dir, tids.v[i]);
		struct buf comm = { 0 };

		if (path && !read_file(path, 64, &comm) && buf_str(&comm))
			buf_printf(&l->cmdlines, "%s %s", tids.v[i], buf_str(&comm));
		buf_release(&comm);
		free(path);
	}
	strlist_release(&tids);
	free(dir);
}

static int live_name_tasks(struct live *l, const char *root)
{
	char *dir = str_printf("%s/proc", root);
	struct strlist pids = { 0 };

	if (!dir)
		return -ENOMEM;
	read_dir_at(AT_FDCWD, dir, &pids);
	for (size_t i = 0; i < pids.n; i++)
		if (strspn(pids.v[i], "0123456789") == strlen(pids.v[i]))
			live_name_threads(l, root, pids.v[i]);
	strlist_release(&pids);
	free(dir);
	if (l->cmdlines.len && buf_str(&l->cmdlines))
		l->file->cmdlines = (struct dat_text){ buf_str(&l->cmdlines), l->cmdlines.len };
	return buf_status(&l->cmdlines);
}

int live_name(struct live *l, const char *root, const struct log *log)
{
	bool same;
	int ret = spool_is_this_boot(l->spool, &same);

	if (ret || !same)
		return ret;
	return live_name_tasks(l, root ? root : "") ?: live_name_guests(l, root, log);
}
