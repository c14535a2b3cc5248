// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The static probes (USDT) of the QEMUs that run (--preset qemu): perf reads the notes that describe
 * them, and gives lines for dynamic_events.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/guest/guest.h"
#include "record/session/session-priv.h"
#include "base/program.h"
#include "base/escape.h"
#include "base/files.h"

#define PERF_MS	 60000 /* it copies the program */
#define PERF_MAX (64u << 10)

struct sdt {
	char *cache; /* perf's cache, outside any home directory */
	const struct log *log;
};

static bool sdt_wanted(const struct record_plan *plan)
{
	for (size_t i = 0; i < plan->n_buffers; i++)
		for (size_t n = 0; n < plan->buffers[i].n_events; n++)
			if (plan->buffers[i].events[n].sdt)
				return true;
	return false;
}

/* ---- the executables -------------------------------------------------------------- */

/* By the path that the process runs, once each: a probe is of a file. */
static int add_exe(struct strlist *exes, const char *root, pid_t pid, const struct log *log)
{
	char *link = str_printf("%s/proc/%d/exe", root, (int)pid), exe[PATH_MAX];
	ssize_t len = link ? readlink(link, exe, sizeof(exe) - 1) : -1;
	const char *why = NULL;
	struct stat runs, there;
	int ret = link ? 0 : -ENOMEM;

	exe[len < 0 ? 0 : len] = 0;
	if (!*exe || stat(link, &runs) < 0 || stat(exe, &there) < 0 || !same_file(&runs, &there))
		why = "its file is not to be seen, or is another by now";
	else if (strpbrk(exe, " \t\n\v\f\r"))
		why = "a probe takes no path with blanks";
	if (!ret && why)
		log_warn(log, "--preset qemu: process %d ('%s') is left out: %s", (int)pid, ESCAPED(exe),
			 why);
	else if (!ret && !strlist_has(exes, exe))
		ret = strlist_add(exes, exe);
	free(link);
	return ret;
}

static int find_qemus(const struct session *s, struct strlist *exes)
{
	struct guest_opts o = { .root = s->o->root,
				.skip = GUEST_FROM_LIBVIRT | GUEST_FROM_VM_LIST,
				.log = s->log };
	struct guests all;
	int ret = guests_find(&all, &o);

	for (size_t i = 0; i < all.n && !ret; i++)
		if (!strcmp(guest_vmm_name(all.v[i].vmm), "QEMU"))
			ret = add_exe(exes, o.root ? o.root : "", all.v[i].pid, s->log);
	guests_release(&all);
	return ret;
}

/* ---- perf's output ------------------------------------------------------------------ */

static bool name_is_made(const struct buffer_plan *b, const char *name)
{
	for (size_t i = 0; i < b->n_events; i++)
		if (b->events[i].define && !strcmp(b->events[i].name, name))
			return true;
	return false;
}

/* Another place in the code, or in another QEMU, is NAME_1 ...: an event of its own. */
static int add_place(struct buffer_plan *b, size_t i, const char *place)
{
	struct event_plan *e = &b->events[i];
	char name[128];
	const char *event;

	snprintf(name, sizeof(name), "%s", e->name);
	for (unsigned int n = 1; name_is_made(b, name); n++)
		snprintf(name, sizeof(name), "%s_%u", b->events[i].name, n);
	if (e->define) {
		e = buffer_plan_add_event(b, name, false);
		if (!e)
			return -ENOMEM;
		e->optional = true;
	}
	event = strchr(name, ':') + 1;
	e->define = str_printf("p:%.*s/%s%s", (int)(event - 1 - name), name, event, place);
	return e->define ? 0 : -ENOMEM;
}

/* "p:sdt_qemu/NAME PATH:OFFSET(SEMAPHORE) arg1=...", a line for each place. How many, or -errno. */
static int add_places(struct buffer_plan *b, size_t i, const struct buf *lines)
{
	struct strlist l = { 0 };
	int n = 0, ret = strlist_add_lines(&l, lines->data, lines->len);

	for (size_t k = 0; k < l.n && !ret; k++) {
		const char *place = strchr(l.v[k], ' ');

		if (strncmp(l.v[k], "p:", 2) || !place)
			continue;
		ret = add_place(b, i, place);
		n++;
	}
	strlist_release(&l);
	return ret ?: n;
}

static int ask_perf(const struct sdt *t, const char *const *argv, struct buf *out)
{
	int ret = program_output(argv, out, PERF_MAX, PERF_MS);

	if (ret == -ENOENT)
		log_err(t->log,
			"--preset qemu: perf, which finds the probes, is not installed (Debian: linux-perf)");
	else if (ret < 0)
		log_err(t->log, "--preset qemu: perf: %s", errno_text(ret));
	return ret;
}

/* perf lists its whole cache. */
static int cache_exe(const struct sdt *t, const char *exe)
{
	const char *argv[] = { "perf", "--buildid-dir", t->cache, "buildid-cache", "--add", exe, NULL };
	struct buf out = { 0 };
	int ret = ask_perf(t, argv, &out);

	buf_release(&out);
	if (ret > 0)
		log_err(t->log, "--preset qemu: 'perf buildid-cache --add %s' fails, and says why",
			ESCAPED(exe));
	return ret > 0 ? -EIO : ret;
}

/* All of one buffer's that an executable has; their names go to found. */
static int add_probes(const struct sdt *t, struct buffer_plan *b, const char *exe, struct buf *found)
{
	int ret = 0;

	for (size_t i = 0; i < b->n_events && ret >= 0; i++) {
		const char *argv[] = { "perf", "--buildid-dir",	  t->cache, "probe", "-x", exe,
				       "-D",   b->events[i].name, NULL };
		struct buf lines = { 0 };

		if (!b->events[i].sdt)
			continue;
		ret = ask_perf(t, argv, &lines);
		if (ret >= 0) /* above 0: it has none, and printed none */
			ret = add_places(b, i, &lines);
		if (ret > 0)
			buf_printf(found, " %s", b->events[i].name);
		buf_release(&lines);
	}
	return ret < 0 ? ret : 0;
}

/* Whether there are any, or -errno. */
static int probe_exe(const struct sdt *t, const struct record_plan *plan, const char *exe)
{
	struct buf found = { 0 };
	bool any;
	int ret = cache_exe(t, exe);

	for (size_t i = 0; i < plan->n_buffers && !ret; i++)
		ret = add_probes(t, &plan->buffers[i], exe, &found);
	any = found.len;
	if (any && !ret)
		log_info(t->log, "--preset qemu: %s:%s", ESCAPED(exe), buf_str(&found) ?: "");
	else if (!ret)
		log_warn(t->log,
			 "--preset qemu: %s has none of the probes: it was built without the trace back end "
			 "dtrace; hyptrace import --qemu-log takes its log",
			 ESCAPED(exe));
	buf_release(&found);
	return ret ?: any;
}

static int probe_exes(const struct sdt *t, const struct record_plan *plan, const struct strlist *exes)
{
	bool any = false;
	int ret = 0;

	for (size_t i = 0; i < exes->n && ret >= 0; i++) {
		ret = probe_exe(t, plan, exes->v[i]);
		any |= ret > 0;
	}
	if (ret >= 0 && !any)
		log_err(t->log, "--preset qemu: %s",
			exes->n ? "no QEMU that runs here has them" : "no QEMU runs here that can be probed");
	if (ret >= 0 && any) {
		/* a second recording by this plan uses the same lines */
		for (size_t i = 0; i < plan->n_buffers; i++)
			for (size_t n = 0; n < plan->buffers[i].n_events; n++)
				plan->buffers[i].events[n].sdt = false;
	}
	return ret < 0 ? ret : any ? 0 : -ENOENT;
}

/* ---- perf's cache, for as long as it is asked -------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

int session_find_sdt(struct session *s)
{
	const char *tmp = getenv("TMPDIR");
	struct sdt t = { .log = s->log };
	struct strlist exes = { 0 };
	int ret;

	if (!sdt_wanted(s->plan))
		return 0;
	t.cache = str_printf("%s/hyptrace-perf-XXXXXX", tmp ? tmp : "/tmp");
	if (!t.cache)
		return -ENOMEM;
	if (mkdtemp(t.cache)) {
		ret = find_qemus(s, &exes) ?: probe_exes(&t, s->plan, &exes);
		nftw(t.cache, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	} else {
		ret = -errno;
		log_err(s->log, "cannot make '%s': %s", t.cache, errno_text(ret));
	}
	strlist_release(&exes);
	free(t.cache);
	return ret;
}
