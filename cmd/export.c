// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace export: recordings as a trace for Perfetto, or as lines of JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/handle.h"
#include "cmd.h"
#include "export/json-lines.h"
#include "export/perfetto.h"
#include "terminal.h"
#include "util/outfile.h"

struct export_opts {
	const char *perfetto, *output, *desc;
	bool json, quiet;
	struct strlist files;
};

/* ---- command line ------------------------------------------------------------------ */

#define EXPORT(field) .off = offsetof(struct export_opts, field)

static const struct opt export_rows[] = {
	OPT('p', "perfetto", "OUT", "a trace for Perfetto's UI and trace_processor", opts_set_text,
	    EXPORT(perfetto)),
	OPT('j', "json", NULL, "an event a line, as JSON", opts_set_flag, EXPORT(json)),
	OPT('i', "input", "FILE", "another way to name a file", opts_add_text, EXPORT(files)),
	OPT('o', "output", "OUT", "where --json goes; - is standard output, the default", opts_set_text,
	    EXPORT(output)),
	OPT(0, "hypertrace-desc", "FILE", "names of hypertrace events and their arguments", opts_set_text,
	    EXPORT(desc)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, EXPORT(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

static const struct opts_table export_table = {
	.command = "export",
	.usage = "usage: hyptrace export --perfetto OUT [OPTION...] [FILE...]\n"
		 "       hyptrace export --json [-o OUT] [OPTION...] [FILE...]\n"
		 "\n"
		 "Turns recordings, trace.dat or the FILEs, into another form: all their events on\n"
		 "the host's clock. Files of guests join their host's.\n"
		 "\n",
	.rows = export_rows,
	.n = ARRAY_SIZE(export_rows),
};

static int export_check(const struct export_opts *o)
{
	const char *wrong = NULL;

	if (!o->perfetto == !o->json)
		wrong = "say either --perfetto OUT or --json";
	else if (o->perfetto && o->output)
		wrong = "-o is for --json; --perfetto names its output itself";
	else if (o->json && o->desc)
		wrong = "--hypertrace-desc is for --perfetto";
	if (wrong)
		fprintf(stderr, "hyptrace: %s\n", wrong);
	return wrong ? -EINVAL : 0;
}

/* False: there is nothing to do but exit with *status. */
static bool export_parse(struct export_opts *o, int argc, char **argv, int *status)
{
	struct opts_error err;
	int ret = opts_parse(&export_table, &argc, argv, o, &err);

	if (ret) {
		*status = command_stopped(&export_table, ret, &err);
		return false;
	}
	*status = EXIT_USAGE;
	for (int i = 1; i < argc; i++)
		if (strlist_add(&o->files, argv[i]))
			return false;
	if (!o->files.n && strlist_add(&o->files, "trace.dat"))
		return false;
	return !export_check(o);
}

/* ---- output ------------------------------------------------------------------------- */

static bool is_input(const struct inputs *in, const struct stat *st)
{
	struct stat other;

	for (size_t i = 0; i < in->n; i++)
		if (!fstat(in->v[i].fd, &other) && same_file(&other, st))
			return true;
	return false;
}

static int output_open(struct outfile *out, const char *path, const struct inputs *in, const struct log *log)
{
	struct stat st;

	if (!stat(path, &st) && is_input(in, &st)) {
		log_err(log, "'%s' is to be read, not to be written", path);
		return -EINVAL;
	}
	return outfile_open(out, path, true, log);
}

/* ---- the two forms ------------------------------------------------------------------- */

#define PROGRESS_RECORDS 4096

struct export
{
	struct hyptrace *files;
	struct console *console;
	const struct log *log;
	bool progress;		   /* to be shown */
	uint64_t records, unknown; /* unknown: of no event that has a format */
};

/* Into a file only: who reads from a pipe has the terminal. */
static bool progress_wanted(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

static void export_progress(struct export *e)
{
	if (e->progress)
		progress_writing(e->console, (uint64_t)(handle_fraction(e->files) * 1000), 1000);
}

/* Calls fn with each record. -ENOMEM or what fn returned. */
static int export_records(struct export *e, int (*fn)(void *ctx, const struct timeline_record *r), void *ctx)
{
	struct hyptrace_event event = { .size = sizeof(event) };
	int ret;

	while ((ret = hyptrace_next(e->files, &event)) == 1) {
		e->records += event.data_size > 0;
		e->unknown += event.data_size && !event.name;
		ret = fn(ctx, handle_record(e->files));
		if (ret)
			break;
		if (e->records % PROGRESS_RECORDS == 0)
			export_progress(e);
	}
	progress_end(e->console);
	return ret;
}

static int export_lines(struct export *e, int fd)
{
	struct export_json *j = export_json_new(fd);
	int ret;

	if (!j)
		return -ENOMEM;
	ret = export_records(e, export_json_record, j);
	if (ret)
		goto out;
	ret = export_json_flush(j);
out:
	export_json_free(j);
	return ret;
}

#ifdef HYPTRACE_PERFETTO
#define PERFETTO_BUILT true

static int export_perfetto(struct export *e, int fd, const struct hypertrace_desc *desc)
{
	struct perfetto *p;
	int ret = perfetto_new(&p, fd, handle_inputs(e->files), desc, e->log);

	if (ret)
		return ret;
	ret = export_records(e, perfetto_record, p);
	if (ret)
		goto out;
	ret = perfetto_finish(p);
out:
	perfetto_free(p);
	return ret;
}
#else
#define PERFETTO_BUILT false

static int export_perfetto(struct export *e, int fd, const struct hypertrace_desc *desc)
{
	return -ENOSYS;
}
#endif

#define DESC_MAX (16u << 20)

static int read_desc(const char *path, struct hypertrace_desc **desc, const struct log *log)
{
	struct buf text = { 0 };
	unsigned int line = 0;
	int ret;

	*desc = NULL;
	if (!path)
		return 0;
	ret = read_file(path, DESC_MAX, &text);
	if (ret)
		goto out;
	ret = hypertrace_desc_parse(text.data, text.len, desc, &line);
out:
	if (ret == -EBADMSG)
		log_err(log, "%s: line %u makes no sense", path, line);
	else if (ret)
		log_err(log, "cannot read '%s': %s", path, errno_text(ret));
	buf_release(&text);
	return ret;
}

/* Clocks whose ticks only TSC2NSEC makes ns of. JSON may have them; Perfetto takes all for ns. */
static int check_ticks(const struct inputs *in, bool perfetto, const struct log *log)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct input *f = &in->v[i];

		if (!clock_in_ticks(f->time.clock) || f->time.mult)
			continue;
		if (perfetto) {
			log_err(log,
				"%s: times are ticks of the clock %s, and the file does not say how long one "
				"is (TSC2NSEC): Perfetto takes ns; --json keeps ticks",
				f->path, f->time.clock);
			return -EINVAL;
		}
		log_warn(log, "%s: times are ticks of the clock %s, not ns", f->path, f->time.clock);
	}
	return 0;
}

static int export_form(struct export *e, const struct export_opts *o, const struct hypertrace_desc *desc,
		       int fd)
{
	e->progress = progress_wanted(fd);
	return o->perfetto ? export_perfetto(e, fd, desc) : export_lines(e, fd);
}

static int export_to_stdout(struct export *e, const struct export_opts *o, const struct hypertrace_desc *desc)
{
	int ret = export_form(e, o, desc, STDOUT_FILENO);

	if (ret == -EPIPE)
		terminal_reader_gone();
	if (ret)
		log_err(e->log, "cannot write the output: %s", errno_text(ret));
	return ret;
}

static int export_to(struct export *e, const struct export_opts *o, const struct hypertrace_desc *desc)
{
	const char *path = o->perfetto ? o->perfetto : o->output ? o->output : "-";
	const struct inputs *in = handle_inputs(e->files);
	struct outfile out;
	int ret = handle_load(e->files);

	if (ret)
		return ret;
	ret = check_ticks(in, o->perfetto, e->log);
	if (ret)
		return ret;
	if (!strcmp(path, "-"))
		return export_to_stdout(e, o, desc);
	ret = output_open(&out, path, in, e->log);
	return ret ? ret : outfile_close(&out, export_form(e, o, desc, out.fd));
}

static int export_files(const struct export_opts *o, struct console *console, struct log *log)
{
	struct hyptrace_open_opts open_opts = { sizeof(open_opts), .log = handle_log_to, .log_ctx = log };
	struct export e = { .console = console, .log = log };
	struct hypertrace_desc *desc;
	uint64_t damaged = 0;
	int ret = read_desc(o->desc, &desc, log);

	if (ret)
		goto out;
	ret = hyptrace_open(&e.files, (const char *const *)o->files.v, o->files.n, &open_opts);
	if (ret)
		goto out;
	ret = export_to(&e, o, desc);
	damaged = hyptrace_damaged(e.files);
	if (ret)
		goto out;
	if (e.unknown)
		log_warn(log, "%llu of %llu records are of events without a format",
			 (unsigned long long)e.unknown, (unsigned long long)e.records);
	if (damaged)
		log_err(log, "the files are damaged in %llu places: what lay there is missing",
			(unsigned long long)damaged);
out:
	hyptrace_close(e.files);
	hypertrace_desc_free(desc);
	return ret || damaged ? EXIT_FAILED : EXIT_OK;
}

int cmd_export(int argc, char **argv)
{
	struct export_opts o = { 0 };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	int status;

	memory_or_end();
	if (export_parse(&o, argc, argv, &status)) {
		console.quiet = o.quiet;
		if (o.perfetto && !PERFETTO_BUILT) {
			log_err(&log, "this hyptrace was built without libprotobuf-c, so it cannot write "
				      "for Perfetto");
			status = EXIT_FAILED;
		} else {
			status = export_files(&o, &console, &log);
		}
	}
	strlist_release(&o.files);
	return status;
}
