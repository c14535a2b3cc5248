// SPDX-License-Identifier: GPL-2.0-only
/* Dumps of watch: asks the flight recorder for a file when a limit is exceeded, and explains the file. */
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch-priv.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/strings.h"
#include "record/session/session.h"

#define DUMP_FREE	  (1ull << 30) /* bytes that a dump leaves on the disk */
#define DUMP_WAIT_MINUTES 10

/* Reason not to ask for one now; NULL: none. */
static const char *dumps_hindered(const struct watch_dumps *d, uint64_t now)
{
	struct statvfs fs;

	if (d->file || d->why)
		return "the last one is not finished";
	if (d->n >= d->max)
		return "there are as many as --dump-max allows";
	if (d->n && now - d->asked < d->gap * UNIT_MS)
		return "the last one is not older than --dump-gap";
	if (!statvfs(d->dir, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize < DUMP_FREE)
		return "less than 1 GiB of the disk is free";
	return NULL;
}

void dumps_ask(struct watch_dumps *d, const char *worst, const struct log *log)
{
	uint64_t now = clock_now(CLOCK_REALTIME);
	const char *hindered = dumps_hindered(d, now);
	int ret = hindered ? 0 : flight_ask(d->dir, &d->file);

	d->breaches++;
	if (ret == -ENOENT)
		hindered = "no flight recorder writes there; start one: systemctl start hyptrace-ring";
	else if (ret)
		hindered = errno_text(ret);
	if (!hindered) {
		d->n++;
		d->asked = now;
		log_err(log, "%s: '%s' holds, %s will have the seconds before", worst, d->when, d->file);
	} else if (d->hindered != hindered) {
		log_err(log, "%s: '%s' holds, no dump into '%s': %s", worst, d->when, d->dir, hindered);
	}
	d->hindered = hindered;
}

/* Runs hyptrace why of the dump, into NAME.why.txt beside it. */
static int dumps_explain(struct watch_dumps *d)
{
	char *argv[] = { "hyptrace", "why", d->file, NULL };
	char *out = str_printf("%s.why.txt", d->file);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int ret;

	if (!out)
		return -ENOMEM;
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_EXCL, 0600);
	posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
	ret = -posix_spawn(&d->why, "/proc/self/exe", &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	if (!ret)
		setpriority(PRIO_PROCESS, (id_t)d->why, 19);
	free(out);
	return ret;
}

void dumps_go_on(struct watch_dumps *d, const struct log *log)
{
	uint64_t now = clock_now(CLOCK_REALTIME);
	struct stat st;
	int ret = 0, status;

	if (d->why) {
		if (waitpid(d->why, &status, WNOHANG) == d->why)
			d->why = 0;
	} else if (d->file && !stat(d->file, &st) && (uint64_t)st.st_mtime >= d->asked / UNIT_S) {
		ret = dumps_explain(d);
		if (ret)
			log_err(log, "cannot explain '%s': %s", d->file, errno_text(ret));
	} else if (!d->file || now - d->asked < DUMP_WAIT_MINUTES * 60 * UNIT_S) {
		return;
	} else {
		ret = -ETIMEDOUT;
		log_err(log, "'%s' was not written within %u minutes; see the flight recorder's messages",
			d->file, DUMP_WAIT_MINUTES);
	}
	if (d->why)
		return;
	free(d->file);
	d->file = NULL;
}
