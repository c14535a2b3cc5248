// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace sync: computes the offsets of guests' clocks from recordings, with a bound on each. */
#include <stdio.h>
#include <string.h>

#include "sync-priv.h"

struct sync_line {
	bool json, write, check, quiet;
	const char *plot;
};

#define SYNC(field) .off = offsetof(struct sync_line, field)

static const struct opt sync_rows[] = {
	OPT('j', "json", NULL, "for programs", opts_set_flag, SYNC(json)),
	OPT('p', "plot", "FILE", "draw the offset's range over time as SVG", opts_set_text, SYNC(plot)),
	OPT('w', "write", NULL, "put the offsets into the files; the originals are kept as FILE.orig",
	    opts_set_flag, SYNC(write)),
	OPT('c', "check", NULL,
	    "exit status 1 when events lie where their vCPU could not run, with\n"
	    "the files' own offsets (or with the computed ones if they have none)",
	    opts_set_flag, SYNC(check)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, SYNC(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table sync_table = {
	.command = "sync",
	.usage = "usage: hyptrace sync [--json] [--plot FILE.svg] [--write] [--check] HOST.dat "
		 "GUEST.dat...\n"
		 "\n"
		 "Computes the offset of each guest's clock from when its vCPUs could run, with a\n"
		 "bound, and what the offsets in the files would do to causality.\n"
		 "\n",
	.rows = sync_rows,
	.n = ARRAY_SIZE(sync_rows),
};

/* ---- the command ----------------------------------------------------------------------- */

static bool any_outside(const struct sync_job *job)
{
	for (size_t i = 0; i < job->found.n_guests; i++) {
		const struct offsets_guest *g = &job->found.guests[i];

		if (g->has_shift ? g->check.outside : g->result.outside)
			return true;
	}
	return false;
}

static int show_json(const struct sync_job *job)
{
	struct buf text = { 0 };
	int ret;

	print_json(job, &text);
	ret = buf_status(&text);
	if (!ret)
		fputs(buf_str(&text), stdout);
	buf_release(&text);
	return ret;
}

static int sync_outputs(struct sync_job *job, const struct sync_line *o)
{
	int ret = o->json ? show_json(job) : 0;

	if (ret)
		return ret;
	if (!o->json && !o->quiet)
		print_table(job, stdout);
	ret = o->plot ? plot_svg(job, o->plot) : 0;
	return ret || !o->write ? ret : write_files(job);
}

static int sync_run(const struct sync_line *o, char **paths, size_t n)
{
	struct console console = { .quiet = o->quiet };
	struct log log = console_as_log(&console);
	struct sync_job job = { .log = &log };
	/* times as recorded: what offsets the files have is only checked */
	struct hyptrace_open_opts opts = { sizeof(opts), HYPTRACE_RAW_TIMES, handle_log_to, &log };
	int ret = hyptrace_open(&job.files, (const char *const *)paths, n, &opts);
	bool failed;

	if (!ret)
		ret = handle_sync(job.files, &job.found);
	if (!ret)
		ret = sync_outputs(&job, o);
	failed = ret || (o->check && any_outside(&job));

	if (ret)
		log_err(&log, "cannot synchronise: %s", errno_text(ret));
	offsets_release(&job.found);
	hyptrace_close(job.files);
	return failed ? EXIT_FAILED : EXIT_OK;
}

int cmd_sync(int argc, char **argv)
{
	struct sync_line o = { 0 };
	struct opts_error err;
	int ret = opts_parse(&sync_table, &argc, argv, &o, &err);

	if (ret)
		return command_stopped(&sync_table, ret, &err);
	if (argc < 3) {
		command_usage(&sync_table, stderr);
		return EXIT_USAGE;
	}
	return sync_run(&o, argv + 1, (size_t)argc - 1);
}
