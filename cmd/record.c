// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace record: the command line becomes a plan, which the session carries out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "tracefs/grammar.h"

static int record_plan_run(const struct record_plan *plan)
{
	struct console console = { .quiet = plan->quiet };
	struct log log = console_as_log(&console);
	struct session_summary sum;
	struct session_opts o = {
		.tracing_dir = getenv("HYPTRACE_TRACING_DIR"),
		.root = getenv("HYPTRACE_ROOT"),
		.stop_fd = stop_signals(),
		.progress = progress_recording,
		.writing = progress_writing,
		.ctx = &console,
		.log = &log,
	};
	int ret;

	if (o.stop_fd < 0) {
		fprintf(stderr, "hyptrace: signalfd: %s\n", strerror(-o.stop_fd));
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < plan->notes.n; i++)
		log_info(&log, "--config: '%s' is not recorded here", plan->notes.v[i]);
	if (!plan->command && !plan->duration_ms && !plan->quiet && isatty(STDERR_FILENO))
		fputs("hyptrace: Ctrl-C ends the recording\n", stderr);
	ret = session_record(plan, &o, &sum);
	progress_end(&console);
	close(o.stop_fd);
	if (!ret || sum.file_bytes || *sum.kept)
		print_summary(&sum, plan->output, &log);
	if (ret || sum.not_restored)
		return console_status(&console, ret ?: -EIO);
	for (size_t i = 0; i < sum.n_buffers; i++)
		if (sum.buffers[i].guest_lost || sum.buffers[i].unread)
			return EXIT_PART_LOST;
	return EXIT_OK;
}

int cmd_record(int argc, char **argv)
{
	struct record_plan plan = { 0 };
	struct opts_error err;
	int ret = grammar_parse_line(&plan, argc, argv, &err);

	ret = ret ? command_stopped(&grammar_table, ret, &err) : record_plan_run(&plan);
	record_plan_release(&plan);
	return ret;
}
