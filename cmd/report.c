// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace report: prints the events of trace.dat files as text, or, look by look, of a recording that goes
 * on. */
#include <sys/mman.h>

#include "ask/live/live.h"
#include "report-priv.h"

#define WAIT_MS 10000
#define STEP_MS 50
#define PAST_NS 10000000000

int live_wait(struct live **out, const char *output, const struct log *log)
{
	bool ended;
	int ret;

	for (int waited = 0;; waited += STEP_MS) {
		ret = live_open(out, output, log);
		/* a recorder that was just started has made nothing yet */
		if ((ret != -EAGAIN && ret != -ENOENT) || waited >= WAIT_MS)
			break;
		usleep(STEP_MS * 1000);
	}
	if (ret == -ENOENT || ret == -EAGAIN)
		log_err(log, "'%s' is not being recorded: start `hyptrace record -o %s` first", output,
			output);
	else if (ret)
		log_err(log, "cannot read the recording '%s': %s", output, errno_text(ret));
	if (ret)
		return ret;
	ret = live_look(*out, &ended);
	if (ret > 0)
		ret = live_drop_older(*out, PAST_NS);
	if (ret > 0)
		log_info(log, "%s: what it recorded more than ten seconds ago is left out here", output);
	if (ret < 0)
		live_close(*out);
	return ret < 0 ? ret : 0;
}

/* Prints the answer to the options on standard output; call report_close in any case. 0 or -errno, logged. */
static int report_print(struct report *r)
{
	const struct strlist *plugins = &r->o->plugins;
	bool filters = false;
	int ret;

	/* options of plugins come before the plugins: those that load later take them */
	for (size_t i = 0; i < plugins->n; i++) {
		char *value = strchr(plugins->v[i], '=');

		if (value)
			*value++ = '\0';
		if (tep_plugin_add_option(plugins->v[i], value))
			return -ENOMEM;
	}
	ret = report_open(r);
	for (size_t i = 0; i < r->n; i++)
		filters = filters || r->files[i].filters;
	/* -T means nothing without a filter */
	if (ret || (filters && r->o->test_filters))
		return ret;
	return r->o->what == REPORT_EVENTS ? report_events_print(r) : report_info(r, stdout);
}

#define LOOK_MS 1000

static int follow_looks(struct follow *f, const struct report_opts *o, int fd, const struct log *log)
{
	bool warned = false;

	for (;;) {
		int ret = live_look(f->live, &f->last);

		if (ret < 0)
			return ret;
		if (live_forgets(f->live))
			return log_fail(
				log, -EOPNOTSUPP,
				"its recorder throws pages away as it goes on (--rotate, -m, --flight): "
				"read its files, or see `hyptrace top`");
		if (ret || f->held || f->first || f->last) {
			struct report r = { .o = o, .log = log, .follow = f };

			f->n = f->held = f->late = 0;
			ret = live_write(f->live, fd, log);
			if (!ret) {
				r.terminal = isatty(STDOUT_FILENO);
				ret = report_print(&r);
				for (size_t i = 0; i < f->n && !ret; i++)
					ret = live_take(f->live, f->cpus[i].buffer, f->cpus[i].cpu,
							f->cpus[i].taken);
				report_close(&r);
				fflush(stdout);
				ret = ret ?: f->no_memory ? -ENOMEM : live_drop_taken(f->live);
			}
			if (f->late)
				log_warn(log,
					 "%" PRIu64
					 " events are printed out of order: their pages were handed over "
					 "more than %d ms after younger ones",
					 f->late, LOOK_MS);
			f->from = f->horizon;
			f->horizon = f->newest;
			f->first = false;
		}
		if (ret < 0 || f->last || ferror(stdout))
			return ret;
		if (!warned && live_is_early(f->live)) {
			log_warn(log,
				 "hyp: times of this plain-nVHE host are early by what vCPUs' counters are "
				 "behind: only the finished file has them right");
			warned = true;
		}
		usleep(LOOK_MS * 1000);
	}
}

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
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	struct report_opts o = { 0 };
	struct report r = { .o = &o, .log = &log };
	struct opts_error err = { "" };
	int ret = report_opts_parse(argc, argv, &o, &err);

	memory_or_end();
	if (ret) {
		ret = command_stopped(&report_table, ret, &err);
		goto out;
	}
	console.quiet = o.quiet;
	tep_set_loglevel(o.quiet ? TEP_LOG_NONE : TEP_LOG_ERROR);
	if (o.no_pager || o.follow || o.json)
		pager_want(false);
	r.terminal = pager_start();
	ret = o.follow ? report_follow(&o, &log) : report_print(&r);
	report_close(&r);
	if (ret == -ENOMEM)
		log_err(&log, "out of memory");
	ret = ret ? EXIT_FAILED : EXIT_OK;
out:
	report_opts_release(&o);
	return ret;
}
