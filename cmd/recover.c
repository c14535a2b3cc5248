// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace recover: finishes the recording of a killed recorder. */
#include "cmd.h"

struct recover_opts {
	const char *output;
	bool quiet;
};

static const struct opt recover_rows[] = {
	OPT('o', "output", "FILE", "write to FILE, not to where the recording was to go", opts_set_text,
	    .off = offsetof(struct recover_opts, output)),
	OPT_QUIET(.off = offsetof(struct recover_opts, quiet)),
	OPT_HELP,
};

const struct opts_table recover_table = {
	.command = "recover",
	.usage = "usage: hyptrace recover [-q] [-o FILE] DIR\n"
		 "\n"
		 "Finishes the recording in the spool DIR (trace.dat.spool) of a recorder that\n"
		 "was killed: drains what still lies in the kernel's buffers, puts tracefs back\n"
		 "as it was, writes the trace file and removes DIR.\n"
		 "\n",
	OPT_ROWS(recover_rows),
};

int cmd_recover(int argc, char **argv)
{
	struct recover_opts o = { 0 };
	struct console console = { 0 };
	struct log log = { .fn = console_log, .ctx = &console };
	struct session_summary sum;
	struct session_opts session = { .tracing_dir = getenv("HYPTRACE_TRACING_DIR"),
					.root = getenv("HYPTRACE_ROOT"),
					.stop_fd = -1,
					.dump_fd = -1,
					.writing = progress_writing,
					.ctx = &console,
					.log = &log };
	int ret;

	if (!command_words(&recover_table, &argc, argv, &o, 1, 1, &ret))
		return ret;
	console.quiet = o.quiet;
	ret = session_recover(argv[1], o.output, &session, &sum);
	progress_end(&console);
	if (sum.file_bytes || *sum.kept)
		print_summary(&sum, sum.output, &log);
	return console_status(&console, ret);
}
