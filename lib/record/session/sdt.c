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

/* By the path that the process runs, once each: a probe is of a file. */
static int find_qemus(const struct session *s, struct strlist *exes)
{
	struct guest_opts o = { .root = s->o->root,
				.skip = GUEST_FROM_LIBVIRT | GUEST_FROM_VM_LIST,
				.log = s->log };
	struct guests all;
	int ret = guests_find(&all, &o);

	for (size_t i = 0; i < all.n && !ret; i++) {
		const int pid = all.v[i].pid;
		char *link, exe[PATH_MAX];
		const char *why = NULL;
		struct stat runs, there;
		ssize_t len;

		if (strcmp(guest_vmm_name(all.v[i].vmm), "QEMU"))
			continue;
		link = str_printf("%s/proc/%d/exe", o.root ? o.root : "", pid);
		len = link ? readlink(link, exe, sizeof(exe) - 1) : -1;
		exe[len < 0 ? 0 : len] = 0;
		if (!*exe || stat(link, &runs) < 0 || stat(exe, &there) < 0 || !same_file(&runs, &there))
			why = "its file is not to be seen, or is another by now";
		else if (strpbrk(exe, " \t\n\v\f\r"))
			why = "a probe takes no path with blanks";
		if (!link)
			ret = -ENOMEM;
		else if (why)
			log_warn(s->log, "--preset qemu: process %d ('%s') is left out: %s", pid,
				 ESCAPED(exe), why);
		else if (!strlist_has(exes, exe))
			ret = strlist_add(exes, exe);
		free(link);
	}
	guests_release(&all);
	return ret;
}

static bool name_is_made(const struct buffer_plan *b, const char *name)
{
	for (size_t i = 0; i < b->n_events; i++)
		if (b->events[i].define && !strcmp(b->events[i].name, name))
			return true;
	return false;
}

/*
 * "p:sdt_qemu/NAME PATH:OFFSET(SEMAPHORE) arg1=...", a line for each place. Another place in the code, or in
 * another QEMU, is NAME_1 ...: an event of its own. Returns their number, or -errno.
 */
static int add_places(struct buffer_plan *b, size_t i, const struct buf *lines)
{
	struct strlist l = { 0 };
	int n = 0, ret = strlist_add_lines(&l, lines->data, lines->len);

	for (size_t k = 0; k < l.n && !ret; k++) {
		const char *place = strchr(l.v[k], ' '), *event;
		struct event_plan *e = &b->events[i];
		char name[128];

		if (strncmp(l.v[k], "p:", 2) || !place)
			continue;
		snprintf(name, sizeof(name), "%s", e->name);
		for (unsigned int more = 1; name_is_made(b, name); more++)
			snprintf(name, sizeof(name), "%s_%u", b->events[i].name, more);
		if (e->define) {
			e = buffer_plan_add_event(b, name, false);
			if (e)
				e->optional = true;
		}
		event = strchr(name, ':') + 1;
		if (e)
			e->define = str_printf("p:%.*s/%s%s", (int)(event - 1 - name), name, event, place);
		ret = e && e->define ? 0 : -ENOMEM;
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

/* Adds the probes that an executable has. Whether there are any, or -errno. */
static int probe_exe(const struct sdt *t, const struct record_plan *plan, const char *exe)
{
	const char *cache[] = { "perf", "--buildid-dir", t->cache, "buildid-cache", "--add", exe, NULL };
	struct buf found = { 0 }, out = { 0 };
	bool any;
	int ret = ask_perf(t, cache, &out);

	buf_release(&out); /* perf lists its whole cache */
	if (ret > 0) {
		log_err(t->log, "--preset qemu: 'perf buildid-cache --add %s' fails, and says why",
			ESCAPED(exe));
		ret = -EIO;
	}
	for (size_t i = 0; i < plan->n_buffers; i++) {
		struct buffer_plan *b = &plan->buffers[i];

		for (size_t n = 0; n < b->n_events && ret >= 0; n++) {
			const char *argv[] = { "perf", "--buildid-dir",	  t->cache, "probe", "-x", exe,
					       "-D",   b->events[n].name, NULL };
			struct buf lines = { 0 };

			if (!b->events[n].sdt)
				continue;
			ret = ask_perf(t, argv, &lines);
			if (ret >= 0) /* above 0: it has none, and printed none */
				ret = add_places(b, n, &lines);
			if (ret > 0)
				buf_printf(&found, " %s", b->events[n].name);
			buf_release(&lines);
		}
	}
	any = found.len;
	if (any && ret >= 0)
		log_info(t->log, "--preset qemu: %s:%s", ESCAPED(exe), buf_str(&found) ?: "");
	else if (ret >= 0)
		log_warn(t->log,
			 "--preset qemu: %s has none of the probes: it was built without the trace back end "
			 "dtrace; hyptrace import --qemu-log takes its log",
			 ESCAPED(exe));
	buf_release(&found);
	return ret < 0 ? ret : any;
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
	/* a second recording by this plan uses the same lines */
	for (size_t i = 0; i < plan->n_buffers && ret >= 0 && any; i++)
		for (size_t n = 0; n < plan->buffers[i].n_events; n++)
			plan->buffers[i].events[n].sdt = false;
	return ret < 0 ? ret : any ? 0 : -ENOENT;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

int session_find_sdt(struct session *s)
{
	const char *tmp = getenv("TMPDIR");
	struct sdt t = { .log = s->log };
	struct strlist exes = { 0 };
	bool wanted = false;
	int ret;

	for (size_t i = 0; i < s->plan->n_buffers; i++)
		for (size_t n = 0; n < s->plan->buffers[i].n_events; n++)
			wanted |= s->plan->buffers[i].events[n].sdt;
	if (!wanted)
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
