// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "record-opts.h"

static int print_usage(void)
{
	struct buf text = { 0 };

	record_opts_usage(&text);
	if (buf_str(&text))
		fputs(buf_str(&text), stdout);
	buf_release(&text);
	return EXIT_OK;
}

/* Tests wait less, guests under emulation may need longer. 0: the default. */
static int guest_timeout_ms(void)
{
	const char *text = getenv("HYPTRACE_GUEST_TIMEOUT_MS");
	uint64_t ms;

	return text && !parse_u64(text, &ms) && ms <= 3600000 ? (int)ms : 0;
}

static int record(const struct record_plan *plan)
{
	struct console console = { .quiet = plan->quiet };
	struct log log = console_as_log(&console);
	struct session_summary sum;
	struct session_opts o = {
		.tracing_dir = getenv("HYPTRACE_TRACING_DIR"),
		.root = getenv("HYPTRACE_ROOT"),
		.stop_fd = stop_signals(),
		.guest_timeout_ms = guest_timeout_ms(),
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
	if (!plan->command && !plan->quiet && isatty(STDERR_FILENO))
		fputs("hyptrace: Ctrl-C ends the recording\n", stderr);
	ret = session_record(plan, &o, &sum);
	progress_end(&console);
	close(o.stop_fd);
	if (!ret || sum.file_bytes || *sum.kept)
		print_summary(&sum, plan->output, plan->quiet);
	if (ret || sum.not_restored)
		return EXIT_FAILED;
	for (size_t i = 0; i < sum.n_buffers; i++)
		if (sum.buffers[i].guest_lost)
			return EXIT_GUEST_LOST;
	return EXIT_OK;
}

int cmd_record(int argc, char **argv)
{
	struct record_plan plan = { 0 };
	struct opts_error err = { "" };
	int ret = record_opts_parse(argc, argv, &plan, &err);

	if (ret == RECORD_OPTS_HELP) {
		ret = print_usage();
	} else if (ret) {
		fprintf(stderr, "hyptrace record: %s\n", err.text);
		ret = EXIT_USAGE;
	} else {
		ret = record(&plan);
	}
	record_plan_release(&plan);
	return ret;
}
