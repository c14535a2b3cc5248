// SPDX-License-Identifier: GPL-2.0-only
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

static const char usage[] = "usage: hyptrace recover [-q] [-o FILE] DIR\n"
			    "\n"
			    "Finishes the recording in the spool DIR (trace.dat.spool) of a recorder that\n"
			    "was killed: drains what still lies in the kernel's buffers, puts tracefs back\n"
			    "as it was, writes the trace file and removes DIR.\n"
			    "\n"
			    "  -o FILE, --output FILE   write to FILE, not to where the recording was to go\n"
			    "  -q, --quiet              errors only\n"
			    "  -h, --help               this text\n";

static int recover(const char *dir, const char *output, bool quiet)
{
	struct console console = { .quiet = quiet };
	struct log log = console_as_log(&console);
	struct session_summary sum;
	struct session_opts o = { .tracing_dir = getenv("HYPTRACE_TRACING_DIR"),
				  .stop_fd = -1,
				  .writing = progress_writing,
				  .ctx = &console,
				  .log = &log };
	int ret = session_recover(dir, output, &o, &sum);

	progress_end(&console);
	if (sum.file_bytes || *sum.kept)
		print_summary(&sum, sum.output, quiet);
	return ret ? EXIT_FAILED : EXIT_OK;
}

int cmd_recover(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *output = NULL;
	bool quiet = false;
	int c;

	while ((c = getopt_long(argc, argv, "o:qh", options, NULL)) >= 0) {
		switch (c) {
		case 'o':
			output = optarg;
			break;
		case 'q':
			quiet = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	if (optind + 1 != argc) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	return recover(argv[optind], output, quiet);
}
