// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace view: recordings as one HTML page with a timeline and tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/handle.h"
#include "cmd.h"
#include "convert/view/view.h"
#include "latency-answer.h"
#include "stat-priv.h"
#include "base/array.h"
#include "base/outfile.h"
#include "base/program.h"

struct view_opts {
	const char *output, *title;
	bool full, open, quiet;
	struct times_opts times;
	struct strlist files;
};

#define VIEW(field) .off = offsetof(struct view_opts, field)

static const struct opt view_rows[] = {
	OPT('o', "output", "OUT", "the page (trace.html); - is standard output", opts_set_text, VIEW(output)),
	OPT('t', "title", "TEXT", "title of the page, in place of the files' names", opts_set_text,
	    VIEW(title)),
	OPT(0, "full", NULL, "every span, also beyond 300,000, where short ones are summed", opts_set_flag,
	    VIEW(full)),
	OPT(0, "open", NULL, "open the page with xdg-open", opts_set_flag, VIEW(open)),
	OPT_INPUT(VIEW(files)),
	OPT_TIMES(VIEW),
	OPT_QUIET(VIEW(quiet)),
	OPT_HELP,
};

const struct opts_table view_table = {
	.command = "view",
	.usage = "usage: hyptrace view [-o OUT] [OPTION...] [FILE...]\n"
		 "\n"
		 "Writes one HTML page that shows recordings, trace.dat or the FILEs: a timeline of\n"
		 "CPUs, the hypervisor, vCPUs and guests' tasks, and the tables of stat. It needs no\n"
		 "network. Files of guests join their host's.\n"
		 "\n",
	.rows = view_rows,
	.n = ARRAY_SIZE(view_rows),
};

static int view_output(const char *path, const struct view_job *job, const struct log *log)
{
	struct outfile out;
	int ret;

	if (!strcmp(path, "-"))
		return stdout_written(view_write(job, STDOUT_FILENO), log);
	ret = output_open(&out, path, true, job->in, log);
	return ret ? ret : outfile_close(&out, view_write(job, out.fd));
}

static int view_show(const char *path, const struct log *log)
{
	const char *const argv[] = { "xdg-open", path, NULL };
	struct buf out = { 0 };
	int ret = program_output(argv, &out, 1 << 16, 10000);

	buf_release(&out);
	return ret ? log_fail(log, -EIO, "xdg-open did not open '%s': open it in a browser", path) : 0;
}

static int view_files(const struct view_opts *o, const struct log *log, uint64_t *damaged)
{
	struct view_job job = { .full = o->full, .latency = latency_json };
	struct hyptrace *files = NULL;
	struct steps *steps = NULL;
	struct buf tables = { 0 };
	char *names = NULL;
	int ret = command_open(&files, &o->files, 0, &o->times, log);

	if (ret)
		goto out;
	job.in = handle_inputs(files);
	names = picture_title(job.in, "what ran where, and when?");
	job.title = o->title ?: names;
	ret = names ? stat_json(job.in, &tables, log) : -ENOMEM;
	job.tables = ret ? NULL : buf_str(&tables);
	ret = ret ?: timeline_open(&job.timeline, job.in, NULL, NULL, log) ?: steps_open(&steps, job.in);
	job.steps = steps;
	ret = ret ?: view_output(o->output ?: "trace.html", &job, log);
	if (!ret && o->open)
		ret = view_show(o->output ?: "trace.html", log);
	*damaged = job.timeline ? merge_damaged(job.timeline->merge) : 0;
out:
	steps_close(steps);
	timeline_close(job.timeline);
	hyptrace_close(files);
	buf_release(&tables);
	free(names);
	return ret;
}

int cmd_view(int argc, char **argv)
{
	struct view_opts o = { 0 };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	int status;

	memory_or_end();
	if (command_files(&view_table, argc, argv, &o, &o.files, &status)) {
		uint64_t damaged = 0;
		int ret;

		console.quiet = o.quiet;
		ret = view_files(&o, &log, &damaged);
		if (damaged)
			log_damage(&log, damaged);
		status = damaged ? EXIT_FAILED : console_status(&console, ret);
	}
	strlist_release(&o.files);
	return status;
}
