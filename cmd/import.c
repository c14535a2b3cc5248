// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace import: adds a capture of the hypervisor's trace_pipe to a trace.dat, or makes one of a Perfetto
 * trace or of QEMU's trace events. */
#include "convert/import/import.h"

#include "cmd.h"

struct import_line {
	struct import_opts o;
	const char *perfetto, *formats, *qemu, *rings;
	bool quiet;
};

#define IMPORT(field) .off = offsetof(struct import_line, field)

static const struct opt import_rows[] = {
	OPT(0, "hyp", "FILE", "lines of its trace_pipe or trace, of one CPU or all", opts_set_text,
	    IMPORT(o.text)),
	OPT(0, "hyp-raw", "DIR", "files cpu0, cpu1 ...: pages of per_cpu/cpuN/trace_pipe_raw", opts_set_text,
	    IMPORT(o.raw)),
	OPT(0, "events", "DIR",
	    "copy of the kernel's events/hypervisor (Android: events/hyp);\n"
	    "without it the events that kernels are known to have",
	    opts_set_text, IMPORT(o.events)),
	OPT(0, "perfetto", "FILE", "a Perfetto trace; needs no -i", opts_set_text, IMPORT(perfetto)),
	OPT(0, "formats", "DIR",
	    "for --perfetto: copy of the kernel's events/;\n"
	    "without it the formats that kernels are known to have",
	    opts_set_text, IMPORT(formats)),
	OPT(0, "qemu-log", "FILE", "QEMU's trace events: its log, or the simple back end's file; needs no -i",
	    opts_set_text, IMPORT(qemu)),
	OPT(0, "hypertrace", "GUEST=FILE", "the memory of a guest's marks, for their arguments in QEMU's log",
	    opts_set_text, IMPORT(rings)),
	OPT('i', "input", "FILE", "the host's trace.dat; none: it has no file, as after a panic",
	    opts_set_text, IMPORT(o.input)),
	OPT('o', "output", "FILE", "the file to write", opts_set_text, IMPORT(o.output)),
	OPT_QUIET(IMPORT(quiet)),
	OPT_HELP,
};

const struct opts_table import_table = {
	.command = "import",
	.usage = "usage: hyptrace import --hyp FILE [OPTIONS] [-i trace.dat] -o out.dat\n"
		 "       hyptrace import --hyp-raw DIR --events DIR [OPTIONS] [-i trace.dat] -o out.dat\n"
		 "       hyptrace import --perfetto FILE [--formats DIR] -o out.dat\n"
		 "       hyptrace import --qemu-log FILE [--hypertrace GUEST=FILE] -o out.dat\n"
		 "\n"
		 "Adds what was read from the hypervisor's trace buffer by other means to a\n"
		 "trace.dat of its host, or makes a trace.dat of a Perfetto trace or of QEMU's\n"
		 "trace events.\n"
		 "\n",
	OPT_ROWS(import_rows),
};

static int import_file(struct import_opts *o, const struct log *log)
{
	struct drain_totals fed;
	int ret;

	o->log = log;
	ret = import(o, &fed);
	if (ret)
		return ret;
	if (fed.bad)
		log_warn(log,
			 "%llu %s made no sense; they are in the file as hyp_unknown where they had a time%s",
			 (unsigned long long)fed.bad, o->text ? "lines" : "pages or records",
			 o->events ? "" : "; --events DIR has the kernel's own formats");
	log_info(log, "hyp %llu events (%s%llu lost): %s", (unsigned long long)fed.events,
		 fed.unknown ? "at least " : "", (unsigned long long)fed.lost, o->output);
	return 0;
}

static unsigned long long count(uint64_t n)
{
	return (unsigned long long)n;
}

static int import_perfetto(const struct import_line *l, const struct log *log)
{
	struct pftrace_opts o = {
		.input = l->perfetto, .output = l->o.output, .formats = l->formats, .log = log
	};
	struct pftrace_result r;
	int ret = pftrace_import(&o, &r);

	if (!ret) {
		/* Options for data that the files lack, then for data that they have. */
		if (r.bad)
			log_warn(log, "%llu packets or events made no sense", count(r.bad));
		if (r.left_out)
			log_warn(log, "%llu events are left out", count(r.left_out));
		if (r.late)
			log_warn(log, "%llu events are older than one ahead of them on their CPU",
				 count(r.late));
		if (r.cut)
			log_warn(log, "%llu texts are cut, to what a record holds", count(r.cut));
		for (size_t i = 0; i < r.files.n; i++)
			log_info(log, "%s", r.files.v[i]);
		if (r.lost && r.counted)
			log_warn(log,
				 "events were lost at %llu places; %llu in total, by the kernel's statistics",
				 count(r.lost), count(r.overrun));
		else if (r.lost)
			log_warn(log, "events were lost at %llu places; the trace does not have how many",
				 count(r.lost));
		else if (r.overrun)
			log_warn(log,
				 "%llu events were lost, by the kernel's statistics; the trace does not have "
				 "where",
				 count(r.overrun));
		log_info(log, "%llu events, hyp %llu of them", count(r.events), count(r.hyp));
	}
	strlist_release(&r.files);
	return ret;
}

static int import_qemu(const struct import_line *l, const struct log *log)
{
	struct qemu_opts o = { .input = l->qemu, .rings = l->rings, .output = l->o.output, .log = log };
	struct qemu_result r;
	int ret = qemu_import(&o, &r);

	if (ret)
		return ret;
	if (r.bad)
		log_warn(log, "%llu records are of events without a name", count(r.bad));
	if (r.cut)
		log_warn(log, "%llu texts are cut, to what a record holds", count(r.cut));
	if (r.lost)
		log_warn(log, "%llu events were lost: QEMU wrote slower than they came", count(r.lost));
	if (r.passed)
		log_info(log, "%llu lines are no events with a time: they were passed over", count(r.passed));
	if (l->rings)
		log_info(log, "%llu of %llu doorbells have their mark's arguments", count(r.marks),
			 count(r.doorbells));
	log_info(log, "%llu events, %llu of them doorbells, clock %s: %s", count(r.events),
		 count(r.doorbells), r.clock, l->o.output);
	return 0;
}

/* Refuses an output that would take the place of what is read. */
static int check_output(const struct import_line *l, const struct log *log)
{
	const char *const inputs[] = { l->o.text, l->o.input, l->perfetto, l->qemu,
				       l->rings ? strchr(l->rings, '=') + 1 : NULL };
	struct stat in, out;

	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++)
		if (inputs[i] && !stat(inputs[i], &in) && !stat(l->o.output, &out) && same_file(&in, &out))
			return log_fail(log, -EINVAL, "'%s' is the input: name another file with -o",
					l->o.output);
	return 0;
}

int cmd_import(int argc, char **argv)
{
	struct import_line l = { 0 };
	const struct import_opts *o = &l.o;
	struct console console = { 0 };
	struct log log = { .fn = console_log, .ctx = &console };
	struct opts_error err;
	const char *wrong;
	bool others;
	int ret = opts_parse(&import_table, &argc, argv, &l, &err);

	if (ret)
		return command_stopped(&import_table, ret, &err);
	if (argc != 1) {
		command_usage(&import_table, stderr);
		return EXIT_USAGE;
	}
	others = o->text || o->raw || o->events || o->input;
	wrong = l.qemu && (others || l.perfetto || l.formats)
			? "--qemu-log is the only input, and makes a file of its own"
		: l.perfetto && others	   ? "--perfetto is the only input: its hypervisor's events are in it"
		: l.formats && !l.perfetto ? "--formats is for --perfetto"
		: l.rings && (!l.qemu || !strchr(l.rings, '=')) ? "--hypertrace is for --qemu-log: GUEST=FILE"
		: !l.qemu && !l.perfetto && !o->text == !o->raw
			? "one of --hyp, --hyp-raw, --perfetto and --qemu-log is needed"
		: o->raw && !o->events
			? "--hyp-raw needs --events: the pages do not have the meaning of their ids"
		: !o->output ? "-o is needed: the file to write"
			     : NULL;
	if (!options_good("hyptrace import", wrong))
		return EXIT_USAGE;
	console.quiet = l.quiet;
	ret = check_output(&l, &log);
	if (!ret)
		ret = l.qemu	   ? import_qemu(&l, &log)
		      : l.perfetto ? import_perfetto(&l, &log)
				   : import_file(&l.o, &log);
	return ret ? console_status(&console, ret) : EXIT_OK;
}
