// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace export: recordings as a trace for Perfetto, as CTF, as lines of JSON, or as Parquet files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/handle.h"
#include "cmd.h"
#include "export/ctf.h"
#include "export/export.h"
#include "terminal.h"
#include "util/outfile.h"

struct export_opts {
	const char *perfetto, *ctf, *parquet, *output, *desc;
	bool json, quiet;
	struct strlist files;
};

/* ---- command line ------------------------------------------------------------------ */

#define EXPORT(field) .off = offsetof(struct export_opts, field)

static const struct opt export_rows[] = {
	OPT('p', "perfetto", "OUT", "a trace for Perfetto's UI and trace_processor", opts_set_text,
	    EXPORT(perfetto)),
	OPT('c', "ctf", "DIR", "CTF traces, for babeltrace2 and Trace Compass", opts_set_text, EXPORT(ctf)),
	OPT('j', "json", NULL, "an event a line, as JSON", opts_set_flag, EXPORT(json)),
	OPT(0, "parquet", "DIR", "a table for each machine and event, for DuckDB, Spark, ...", opts_set_text,
	    EXPORT(parquet)),
	OPT('i', "input", "FILE", "another way to name a file", opts_add_text, EXPORT(files)),
	OPT('o', "output", "OUT", "where --json goes; - is standard output, the default", opts_set_text,
	    EXPORT(output)),
	OPT(0, "hypertrace-desc", "FILE", "names of hypertrace events and their arguments", opts_set_text,
	    EXPORT(desc)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, EXPORT(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table export_table = {
	.command = "export",
	.usage = "usage: hyptrace export --perfetto OUT [OPTION...] [FILE...]\n"
		 "       hyptrace export --json [-o OUT] [OPTION...] [FILE...]\n"
		 "       hyptrace export --ctf DIR [OPTION...] [FILE...]\n"
		 "       hyptrace export --parquet DIR [OPTION...] [FILE...]\n"
		 "\n"
		 "Turns recordings, trace.dat or the FILEs, into another form: all their events on\n"
		 "the host's clock. Files of guests join their host's.\n"
		 "\n",
	.rows = export_rows,
	.n = ARRAY_SIZE(export_rows),
};

#ifndef HYPTRACE_CTF
static int ctf_missing(struct export_job *job, const char *dir, const struct log *log)
{
	log_err(log, "this hyptrace was built without babeltrace2's library, so it cannot write CTF");
	return -ENOSYS;
}
#define export_ctf ctf_missing
#endif

/* Forms that are a directory, which they make. */
static const struct dir_form {
	size_t dir; /* where the options have its name */
	int (*run)(struct export_job *job, const char *dir, const struct log *log);
} dir_forms[] = {
	{ offsetof(struct export_opts, ctf), export_ctf },
	{ offsetof(struct export_opts, parquet), export_parquet },
};

static const char *dir_form_path(const struct export_opts *o, const struct dir_form *form)
{
	const char *path;

	memcpy(&path, (const char *)o + form->dir, sizeof(path));
	return path;
}

/* The one that is wanted; NULL: none is. */
static const struct dir_form *dir_form(const struct export_opts *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(dir_forms); i++)
		if (dir_form_path(o, &dir_forms[i]))
			return &dir_forms[i];
	return NULL;
}

static int export_check(const struct export_opts *o)
{
	const char *wrong = NULL;

	if (!!o->perfetto + !!dir_form(o) + o->json != 1)
		wrong = "say one of --perfetto OUT, --ctf DIR, --json and --parquet DIR";
	else if (!o->json && o->output)
		wrong = "-o is for --json; the others name theirs";
	else if (!o->perfetto && o->desc)
		wrong = "--hypertrace-desc is for --perfetto";
	if (wrong)
		fprintf(stderr, "hyptrace: %s\n", wrong);
	return wrong ? -EINVAL : 0;
}

/* False: there is nothing to do but exit with *status. */
static bool export_parse(struct export_opts *o, int argc, char **argv, int *status)
{
	return command_files(&export_table, argc, argv, o, &o->files, status) && !export_check(o);
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

int output_open(struct outfile *out, const char *path, const struct inputs *in, const struct log *log)
{
	struct stat st;

	if (!stat(path, &st) && is_input(in, &st)) {
		log_err(log, "'%s' is to be read, not to be written", path);
		return -EINVAL;
	}
	return outfile_open(out, path, true, log);
}

/* ---- the forms ------------------------------------------------------------------- */

struct export
{
	struct hyptrace *files;
	struct console *console;
	const struct log *log;
	struct export_job job;
};

/* Into a file only: who reads from a pipe has the terminal. */
static bool progress_wanted(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

static void export_progress(void *console, double part)
{
	progress_writing(console, (uint64_t)(part * 1000), 1000);
}

#ifdef HYPTRACE_PERFETTO
#define PERFETTO_BUILT true
#else
#define PERFETTO_BUILT			false
#define export_perfetto(job, desc, log) (-ENOSYS)
#endif

#define DESC_MAX (16u << 20)

int desc_read(const char *path, struct hypertrace_desc **desc, const struct log *log)
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

/* Clocks whose ticks only TSC2NSEC makes ns of. Perfetto and CTF take all for ns; others may have them. */
static int check_ticks(const struct inputs *in, bool ns, const struct log *log)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct input *f = &in->v[i];

		if (!clock_in_ticks(f->time.clock) || f->time.mult)
			continue;
		if (ns) {
			log_err(log,
				"%s: times are ticks of the clock %s, and the file does not say how long one "
				"is (TSC2NSEC): Perfetto and CTF take ns; --json keeps ticks",
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
	int ret;

	e->job.fd = fd;
	e->job.progress = progress_wanted(fd) ? export_progress : NULL;
	e->job.progress_ctx = e->console;
	ret = o->perfetto ? export_perfetto(&e->job, desc, e->log) : export_json(&e->job);
	progress_end(e->console);
	return ret;
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

/* The directory is not there before: no input lies in it. */
static int export_to_dir(struct export *e, const struct dir_form *form, const char *dir)
{
	int ret;

	e->job.progress = export_progress;
	e->job.progress_ctx = e->console;
	ret = form->run(&e->job, dir, e->log);
	progress_end(e->console);
	return ret;
}

static int export_to(struct export *e, const struct export_opts *o, const struct hypertrace_desc *desc)
{
	const char *path = o->perfetto ? o->perfetto : o->output ? o->output : "-";
	const struct inputs *in = handle_inputs(e->files);
	const struct dir_form *dir = dir_form(o);
	struct outfile out;
	int ret = handle_load(e->files);

	if (ret)
		return ret;
	ret = check_ticks(in, o->perfetto || o->ctf, e->log);
	if (ret)
		return ret;
	e->job.in = in;
	ret = timeline_open(&e->job.timeline, in, NULL, NULL, e->log);
	if (ret)
		return ret;
	if (dir)
		return export_to_dir(e, dir, dir_form_path(o, dir));
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
	int ret = desc_read(o->desc, &desc, log);

	if (ret)
		goto out;
	ret = hyptrace_open(&e.files, (const char *const *)o->files.v, o->files.n, &open_opts);
	if (ret)
		goto out;
	ret = export_to(&e, o, desc);
	damaged = e.job.timeline ? timeline_damaged(e.job.timeline) : 0;
	if (ret)
		goto out;
	if (e.job.unknown)
		log_warn(log, "%llu of %llu records are of events without a format",
			 (unsigned long long)e.job.unknown, (unsigned long long)e.job.records);
	if (damaged)
		tell_damage(log, damaged);
out:
	timeline_close(e.job.timeline);
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
			log_err(&log, "this hyptrace was built without libprotobuf-c or libdeflate, so it "
				      "cannot write "
				      "for Perfetto");
			status = EXIT_FAILED;
		} else {
			status = export_files(&o, &console, &log);
		}
	}
	strlist_release(&o.files);
	return status;
}
