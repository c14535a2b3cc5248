// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace import: its command line and its summary. */
#include "session/import.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"

static const char usage[] =
	"usage: hyptrace import --hyp FILE [OPTIONS] -i trace.dat -o out.dat\n"
	"       hyptrace import --hyp-raw DIR --events DIR [OPTIONS] -i trace.dat -o out.dat\n"
	"\n"
	"Adds what was read from the hypervisor's trace buffer by other means to a\n"
	"trace.dat of its host.\n"
	"\n"
	"  --hyp FILE                lines of its trace_pipe or trace, of one CPU or all\n"
	"  --hyp-raw DIR             files cpu0, cpu1 ...: pages of per_cpu/cpuN/trace_pipe_raw\n"
	"  --events DIR              copy of the kernel's events/hypervisor (Android: events/hyp);\n"
	"                            without it the events that kernels are known to have\n"
	"  -i FILE, --input FILE     the host's trace.dat\n"
	"  -o FILE, --output FILE    the file to write\n"
	"  -q, --quiet               errors and warnings only\n"
	"  -h, --help                this text\n";

static int wrong(const char *why)
{
	fprintf(stderr, "hyptrace import: %s\n", why);
	return EXIT_USAGE;
}

static int import_check(const struct import_opts *o)
{
	if (!o->text == !o->raw)
		return wrong("one of --hyp and --hyp-raw is needed");
	if (o->raw && !o->events)
		return wrong("--hyp-raw needs --events: the pages do not tell what their ids mean");
	if (!o->input || !o->output)
		return wrong(o->input ? "-o is needed: the file to write"
				      : "-i is needed: the host's trace.dat");
	return EXIT_OK;
}

static int import_run(const struct import_opts *given, bool quiet)
{
	struct import_opts o = *given;
	struct console console = { .quiet = quiet };
	struct log log = console_as_log(&console);
	struct remote_fed fed;

	o.log = &log;
	if (import(&o, &fed))
		return EXIT_FAILED;
	if (fed.bad)
		log_warn(&log,
			 "%llu %s made no sense; they are in the file as hyp_unknown where they had a time",
			 (unsigned long long)fed.bad, o.text ? "lines" : "pages or records");
	log_info(&log, "hyp %llu events (%llu lost): %s", (unsigned long long)fed.events,
		 (unsigned long long)fed.lost, o.output);
	return EXIT_OK;
}

int cmd_import(int argc, char **argv)
{
	static const struct option options[] = {
		{ "hyp", required_argument, NULL, 'H' },    { "hyp-raw", required_argument, NULL, 'R' },
		{ "events", required_argument, NULL, 'E' }, { "input", required_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' }, { "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },	    { 0 },
	};
	struct import_opts o = { 0 };
	bool quiet = false;
	int c, ret;

	while ((c = getopt_long(argc, argv, "i:o:qh", options, NULL)) >= 0) {
		switch (c) {
		case 'H':
			o.text = optarg;
			break;
		case 'R':
			o.raw = optarg;
			break;
		case 'E':
			o.events = optarg;
			break;
		case 'i':
			o.input = optarg;
			break;
		case 'o':
			o.output = optarg;
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
	if (optind != argc) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	ret = import_check(&o);
	return ret ? ret : import_run(&o, quiet);
}
