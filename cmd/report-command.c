// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace report: prints the events of trace.dat files as text, or, look by look, of a recording that goes
 * on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pager.h"
#include "live/live.h"
#include "report-priv.h"

#define LOOK_MS 1000

/* ---- one look ------------------------------------------------------------------------------ */

static int follow_print(struct follow *f, const struct report_opts *o, const struct log *log)
{
	struct report r = { .o = o, .log = log, .follow = f };
	int ret;

	r.terminal = isatty(STDOUT_FILENO);
	ret = report_print(&r);
	for (size_t i = 0; i < f->n && !ret; i++)
		ret = live_take(f->live, f->cpus[i].buffer, f->cpus[i].cpu, f->cpus[i].taken);
	report_close(&r);
	fflush(stdout);
	return ret ?: f->no_memory ? -ENOMEM : 0;
}

static int follow_look(struct follow *f, const struct report_opts *o, int fd, const struct log *log)
{
	int ret;

	f->n = f->held = f->late = 0;
	ret = live_write(f->live, fd, log) ?: follow_print(f, o, log) ?: live_drop_taken(f->live);
	if (f->late)
		log_warn(log,
			 "%" PRIu64
			 " events are printed out of order: their pages were handed over more than "
			 "%d ms after younger ones",
			 f->late, LOOK_MS);
	f->from = f->horizon;
	f->horizon = f->newest;
	f->first = false;
	return ret;
}

static int follow_looks(struct follow *f, const struct report_opts *o, int fd, const struct log *log)
{
	bool told = false;

	for (;;) {
		int ret = live_look(f->live, &f->last);

		if (ret < 0)
			return ret;
		if (live_forgets(f->live)) {
			log_err(log, "its recorder throws pages away as it goes on (--rotate, -m, --flight): "
				     "read its files, or see `hyptrace top`");
			return -EOPNOTSUPP;
		}
		if (ret || f->held || f->first || f->last)
			ret = follow_look(f, o, fd, log);
		if (ret < 0 || f->last || ferror(stdout))
			return ret;
		if (!told && live_is_early(f->live)) {
			log_warn(log,
				 "hyp: times of this plain-nVHE host are early by what vCPUs' counters are "
				 "behind: only the finished file has them right");
			told = true;
		}
		usleep(LOOK_MS * 1000);
	}
}

/* ---- all of them --------------------------------------------------------------------------- */

static int report_follow(const struct report_opts *o, const struct log *log)
{
	struct follow f = { .first = true };
	struct report_input input = o->inputs[0];
	struct report_opts ours = *o;
	char path[48];
	int fd, ret = live_wait(&f.live, input.path, log);

	if (ret)
		return ret;
	fd = memfd_create("look", MFD_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		goto out;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	input.path = path;
	ours.inputs = &input;
	ret = follow_looks(&f, &ours, fd, log);
	close(fd);
out:
	if (ret)
		log_err(log, "cannot follow '%s': %s", o->inputs[0].path, errno_text(ret));
	free(f.cpus);
	live_close(f.live);
	return ret;
}

/* ---- the command ---------------------------------------------------------------------------- */

static int report_files(const struct report_opts *o)
{
	struct console console = { .quiet = o->quiet };
	struct log log = console_as_log(&console);
	struct report r = { .o = o, .log = &log };
	int ret;

	tep_set_loglevel(o->quiet ? TEP_LOG_NONE : TEP_LOG_ERROR);
	r.terminal = pager_start(!o->no_pager && !o->follow && !o->json);
	ret = o->follow ? report_follow(o, &log) : report_print(&r);
	report_close(&r);
	if (ret == -ENOMEM)
		log_err(&log, "out of memory");
	return ret ? EXIT_FAILED : EXIT_OK;
}

bool report_takes(int argc, char **argv)
{
	struct report_opts o = { 0 };
	struct opts_error err;
	bool takes = !report_opts_parse(argc, argv, &o, &err);

	report_opts_release(&o);
	return takes;
}

int cmd_report(int argc, char **argv)
{
	struct report_opts o = { 0 };
	struct opts_error err = { "" };
	int ret = report_opts_parse(argc, argv, &o, &err);

	memory_or_end();
	ret = ret ? command_stopped(&report_table, ret, &err) : report_files(&o);
	report_opts_release(&o);
	return ret;
}
