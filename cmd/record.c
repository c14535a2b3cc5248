// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace record: the command line becomes a plan, which the session carries out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "list-priv.h"
#include "usual.h"
#include "util/shim.h"
#include "util/visible.h"
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
		.dump_fd = plan->flight_ms ? dump_signal() : -1,
		.progress = progress_recording,
		.writing = progress_writing,
		.ctx = &console,
		.log = &log,
	};
	int ret;

	if (o.stop_fd < 0 || (plan->flight_ms && o.dump_fd < 0)) {
		fprintf(stderr, "hyptrace: signalfd: %s\n",
			strerror(-(o.stop_fd < 0 ? o.stop_fd : o.dump_fd)));
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < plan->notes.n; i++)
		log_info(&log, "--config: '%s' is not recorded here", plan->notes.v[i]);
	if (!plan->command && !plan->duration_ms && !plan->quiet && isatty(STDERR_FILENO))
		fputs("hyptrace: Ctrl-C ends the recording\n", stderr);
	ret = session_record(plan, &o, &sum);
	progress_end(&console);
	close(o.stop_fd);
	fd_close(&o.dump_fd);
	if (!ret || sum.file_bytes || *sum.kept)
		print_summary(&sum, record_plan_numbered(plan) ? sum.output : plan->output, &log);
	if (ret || sum.not_restored)
		return console_status(&console, ret ?: -EIO);
	for (size_t i = 0; i < sum.n_buffers; i++)
		if (sum.buffers[i].guest_lost || sum.buffers[i].unread)
			return EXIT_PART_LOST;
	return EXIT_OK;
}

/* Someone who names nothing gets what is there to record, and reads what that is. */
static int usual_find(struct strlist *words)
{
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	struct guest_opts o = { .root = getenv("HYPTRACE_ROOT") };
	struct guests all = { 0 };
	int tracing = list_open_tracing(&log);
	int ret;

	if (tracing < 0)
		return -ENOENT;
	ret = usual_host(words, tracing) ?: guests_find(&all, &o);
	for (size_t i = 0; i < all.n && !ret; i++)
		if (guest_probe(&all.v[i], GUEST_PORT, 1000) == GUEST_LISTENS)
			ret = usual_guest(words, &all.v[i]);
	guests_release(&all);
	close(tracing);
	return ret;
}

static int record_line(int argc, char **argv)
{
	struct record_plan plan = { 0 };
	struct opts_error err;
	int ret = grammar_parse_line(&plan, argc, argv, &err);

	ret = ret ? command_stopped(&grammar_table, ret, &err) : record_plan_run(&plan);
	record_plan_release(&plan);
	return ret;
}

static int record_usual(void)
{
	struct strlist words = { 0 };
	int ret = usual_find(&words);
	char **argv = ret ? NULL : shim_copy((int)words.n, words.v);

	if (argv) {
		fputs("hyptrace: nothing is named, so this is recorded: hyptrace", stderr);
		for (size_t i = 0; i < words.n; i++)
			fprintf(stderr, " %s", VISIBLE(words.v[i]));
		fputc('\n', stderr);
	}
	ret = argv ? record_line((int)words.n, argv) : EXIT_FAILED;
	free(argv);
	strlist_release(&words);
	return ret;
}

/* "-B hyp" or "-Bhyp": trace-cmd would make an instance of that name, and record nothing in it. */
static bool names_remote(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = strncmp(argv[i], "-B", 2) ? "" : argv[i][2] ? argv[i] + 2 : argv[i + 1];

		if (name && record_plan_remote(name))
			return true;
	}
	return false;
}

bool record_takes(int argc, char **argv)
{
	struct record_plan plan = { 0 };
	struct opts_error err;
	bool takes = names_remote(argc, argv) || !grammar_parse_line(&plan, argc, argv, &err);

	record_plan_release(&plan);
	return takes;
}

int cmd_record(int argc, char **argv)
{
	return argc == 1 && isatty(STDERR_FILENO) ? record_usual() : record_line(argc, argv);
}
