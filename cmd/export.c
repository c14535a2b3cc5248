// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace export: recordings as a trace for Perfetto, as CTF, as lines of JSON, or as Parquet files. */
#include <poll.h>
#include <signal.h>

#include "ask/sql/sql.h"
#include "cmd.h"
#include "convert/export/export.h"
#include "base/outfile.h"
#include "base/signals.h"

struct export_opts {
	struct files_opts f;
	const char *perfetto, *ctf, *parquet, *output, *desc, *anonymize;
	bool json;
	struct strlist tables;
	struct buf presets; /* of the table latency: a condition; empty: all */

	const struct log *log; /* its ctx is the console */
	struct export_job job;
	int stop_fd;	  /* of stop_signals() */
	uint64_t damaged; /* places that the tables found */
};

#define EXPORT(field) .off = offsetof(struct export_opts, field)

/* "kvm_exits,latency:irq" */
static int tables_set(void *ctx, const struct opt *opt, const char *arg, struct opts_error *err)
{
	struct export_opts *o = ctx;
	char *copy = strdup(arg), *rest = copy, *word;
	int ret = copy ? 0 : -ENOMEM;

	while (!ret && (word = strsep(&rest, ", "))) {
		if (!strncmp(word, "latency:", 8) && latency_preset(word + 8)) {
			buf_printf(&o->presets, "%s preset = '%s'", o->presets.len ? " OR" : " WHERE",
				   word + 8);
			word[7] = '\0';
		}
		if (!strcmp(word, "all"))
			ret = tables_set(ctx, opt, SQL_TABLES, err);
		else if (!ret && !words_have(opt->words, word))
			ret = opts_wrong_word(err, opt, arg);
		else if (!ret && !strlist_has(&o->tables, word))
			ret = strlist_add(&o->tables, word);
	}
	free(copy);
	return buf_str(&o->presets) ? ret : -ENOMEM;
}

static const struct opt export_rows[] = {
	OPT('p', "perfetto", "OUT", "a trace for Perfetto's UI and trace_processor", opts_set_text,
	    EXPORT(perfetto)),
	OPT('c', "ctf", "DIR", "CTF traces, for babeltrace2 and Trace Compass", opts_set_text, EXPORT(ctf)),
	OPT('j', "json", NULL, "an event a line, as JSON", opts_set_flag, EXPORT(json)),
	OPT(0, "parquet", "DIR", "a table for each machine and system, for DuckDB, Spark, ...", opts_set_text,
	    EXPORT(parquet)),
	OPT(0, "tables", "TABLE,...",
	    "with --parquet: tables of hyptrace sql in place of events;\n"
	    "all: up to vcpu_states; latency:irq ...: of that preset alone",
	    tables_set, .words = "all " SQL_TABLES " " SQL_TABLES_MORE),
	OPT(0, "anonymize", "KEYFILE", "with --parquet: names hashed by a key, addresses left out",
	    opts_set_text, EXPORT(anonymize)),
	OPT('o', "output", "OUT", "where --json goes; - is standard output, the default", opts_set_text,
	    EXPORT(output)),
	OPT(0, "hypertrace-desc", "FILE", "names of hypertrace events and their arguments", opts_set_text,
	    EXPORT(desc)),
	OPT_FILES(FILES),
};

const struct opts_table export_table = {
	.command = "export",
	.usage = "usage: hyptrace export --perfetto OUT [OPTION...] [FILE...]\n"
		 "       hyptrace export --json [-o OUT] [OPTION...] [FILE...]\n"
		 "       hyptrace export --ctf DIR [OPTION...] [FILE...]\n"
		 "       hyptrace export --parquet DIR [--tables TABLE,...] [OPTION...] [FILE...]\n"
		 "\n"
		 "Turns recordings, trace.dat or the FILEs, into another form: all their events on\n"
		 "the host's clock. Files of guests join their host's.\n"
		 "\n",
	OPT_ROWS(export_rows),
};

#ifndef HYPTRACE_CTF
static int ctf_missing(struct export_job *job, const char *dir, const struct log *log)
{
	return log_fail(log, -ENOSYS,
			"this hyptrace was built without babeltrace2's library, so it cannot write CTF");
}
#define export_ctf ctf_missing
#endif

static bool export_check(void *opts)
{
	const struct export_opts *o = opts;
	const char *wrong = !!o->perfetto + !!o->ctf + !!o->parquet + o->json != 1
				    ? "specify one of --perfetto OUT, --ctf DIR, --json and --parquet DIR"
			    : !o->json && o->output	 ? "-o is for --json; the others name theirs"
			    : !o->perfetto && o->desc	 ? "--hypertrace-desc is for --perfetto"
			    : !o->parquet && o->tables.n ? "--tables is for --parquet"
			    : !o->parquet && o->anonymize
				    ? "--anonymize is for --parquet: other forms would have all names"
				    : NULL;

	return options_good("hyptrace", wrong);
}

/* -ECANCELED: a signal ends the export, which leaves nothing behind. */
static int export_progress(void *ctx, double part)
{
	const struct export_opts *o = ctx;
	struct pollfd stop = { .fd = o->stop_fd, .events = POLLIN };

	progress_writing(o->log->ctx, (uint64_t)(part * 1000), 1000);
	return poll(&stop, 1, 0) > 0 ? -ECANCELED : 0;
}

/* For an output that takes its name when it is whole. */
static int export_watch(struct export_opts *o)
{
	o->stop_fd = stop_signals();
	o->job.progress = export_progress;
	o->job.progress_ctx = o;
	return o->stop_fd < 0 ? log_fail_errno(o->log, o->stop_fd, "cannot watch for signals") : 0;
}

#define DESC_MAX (16u << 20)

int desc_read(const char *path, struct mark_desc **desc, const struct log *log)
{
	struct buf text = { 0 };
	unsigned int line = 0;
	int ret;

	*desc = NULL;
	if (!path)
		return 0;
	ret = read_file(path, DESC_MAX, &text) ?: mark_desc_parse(text.data, text.len, desc, &line);
	if (ret == -EBADMSG)
		log_err(log, "%s: line %u makes no sense", path, line);
	else if (ret)
		log_err(log, "cannot read '%s': %s", path, errno_text(ret));
	buf_release(&text);
	return ret;
}

#ifdef HYPTRACE_SQL

/* A signal handler has no argument. */
static struct sql *tables_sql;
static volatile sig_atomic_t tables_stopped;

static void tables_signal(int sig)
{
	tables_stopped = 1;
	sql_interrupt(tables_sql);
}

/* Of PRAGMA table_info: number, name, type, ... */
static int tables_column(void *ctx, const struct sql_value *v, size_t n)
{
	return parquet_table_column(ctx, v[1].text, !strcmp(v[2].text, "TEXT"));
}

/* A row of a table that SQLite keeps. */
static int tables_row(void *ctx, const struct sql_value *v, size_t n)
{
	static const enum cell_kind kinds[] = {
		[SQL_INTEGER] = CELL_NUMBER, [SQL_REAL] = CELL_FAILED, [SQL_TEXT] = CELL_COPY
	};
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++) {
		struct cell cell = { kinds[v[i].kind], .number = v[i].integer };

		if (cell.kind == CELL_COPY)
			cell.text = v[i].text;
		ret = cell.kind == CELL_FAILED ? -EINVAL : parquet_table_sink.cell(ctx, i, cell);
	}
	return ret ?: parquet_table_sink.rows(ctx, 1);
}

static int tables_query(struct export_opts *o, void *table, const char *query, const char *name,
			const char *condition, int (*row)(void *ctx, const struct sql_value *v, size_t n))
{
	const struct sql_sink sink = { .row = row };
	char *text = str_printf("%s %s%s", query, name, condition), why[SQL_WHY_MAX] = "";
	int ret = text ? sql_run(tables_sql, text, &sink, table, why) : -ENOMEM;

	free(text);
	if (*why && !tables_stopped)
		log_err(o->log, "table '%s': %s", name, why);
	return tables_stopped ? -ECANCELED : ret;
}

/* By one reading of the files; then those that SQLite keeps. */
static int tables_write(struct export_opts *o, struct parquet_tables *to)
{
	struct sql_reader *v = calloc(o->tables.n + 1, sizeof(*v));
	struct parquet_table *table;
	int ret = v ? 0 : -ENOMEM;

	for (size_t i = 0; i < o->tables.n && !ret; i++) {
		ret = parquet_table_begin(to, o->tables.v[i], &table)
			      ?: tables_query(o, table, "PRAGMA table_info =", o->tables.v[i], "",
					      tables_column);
		v[i] = (struct sql_reader){ o->tables.v[i], &parquet_table_sink, table, false };
	}
	ret = ret ?: sql_read_tables(tables_sql, v, o->tables.n, export_progress, o);
	for (size_t i = 0; i < o->tables.n && !ret; i++) {
		const char *only = strcmp(v[i].name, "latency") ? "" : (const char *)o->presets.data ?: "";

		if (v[i].kept)
			ret = tables_query(o, v[i].ctx, "SELECT * FROM", v[i].name, only, tables_row);
		ret = ret ?: parquet_table_end(v[i].ctx);
	}
	free(v);
	return tables_stopped ? -ECANCELED : ret;
}

static int export_tables(struct export_opts *o)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = tables_signal };
	struct parquet_tables *to;
	struct strlist notes;
	int ret = sql_open(&tables_sql, o->job.in, o->log);

	if (ret)
		return ret;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &sa, NULL);
	ret = parquet_tables_open(&to, o->parquet, o->job.key, o->log)
		      ?: parquet_tables_close(to, tables_write(o, to));
	progress_end(o->log->ctx);
	notes = sql_notes(tables_sql);
	for (size_t i = 0; i < notes.n && !ret; i++)
		log_info(o->log, "%s", notes.v[i]);
	strlist_release(&notes);
	o->damaged = sql_counts(tables_sql).damaged;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
	sql_close(tables_sql);
	return ret;
}

#else

static int export_tables(struct export_opts *o)
{
	return log_fail(o->log, -ENOSYS,
			"this hyptrace was built without libsqlite3, so it cannot write tables");
}

#endif

static int export_form(struct export_opts *o, const struct mark_desc *desc, int fd)
{
	struct stat st;
	/* into a file only: who reads from a pipe has the terminal */
	int ret = !fstat(fd, &st) && S_ISREG(st.st_mode) ? export_watch(o) : 0;

	o->job.fd = fd;
	ret = ret ?: o->perfetto ? export_perfetto(&o->job, desc, o->log) : export_json(&o->job);
	progress_end(o->log->ctx);
	return ret;
}

static int export_to(struct export_opts *o, const struct mark_desc *desc)
{
	const char *path = o->perfetto ? o->perfetto : o->output ? o->output : "-";
	const struct inputs *in = o->job.in;
	struct outfile out;
	int ret;

	/* Perfetto and CTF take all times for ns; other forms may have ticks. */
	for (const struct input *f = in->v; f < in->v + in->n && (o->perfetto || o->ctf); f++)
		if (filetime_in_ticks(&f->time))
			return log_fail(o->log, -EINVAL,
					"%s: times are ticks of the clock %s, whose rate neither the file "
					"(TSC2NSEC) nor its events show: Perfetto and CTF take ns; "
					"--ts2secs HZ sets the rate, --json keeps ticks",
					f->path, f->time.clock);
	if (o->tables.n)
		return export_tables(o);
	ret = handle_iterate(o->f.handle, NULL, NULL, &o->job.timeline);
	if (ret)
		return ret;
	if (o->ctf || o->parquet) { /* a directory that is not there before: no input lies in it */
		ret = export_watch(o)
			      ?: o->ctf ? export_ctf(&o->job, o->ctf, o->log)
					: export_parquet(&o->job, o->parquet, o->log);
		progress_end(o->log->ctx);
		return ret;
	}
	if (!strcmp(path, "-"))
		return stdout_written(export_form(o, desc, STDOUT_FILENO), o->log);
	ret = output_open(&out, path, true, in, o->log);
	return ret ? ret : outfile_close(&out, export_form(o, desc, out.fd));
}

static int export_files(void *opts, const struct log *log)
{
	struct export_opts *o = opts;
	struct mark_desc *desc = NULL;
	struct siphash_key key = { 0 };
	int ret = o->anonymize ? anonymize_key(&key, o->anonymize, log) : 0;

	o->log = log;
	o->job.key = o->anonymize ? &key : NULL;
	ret = ret ?: desc_read(o->desc, &desc, log) ?: command_files(&o->f, 0, &o->job.in, log);
	ret = ret ?: export_to(o, desc);
	if (!ret && o->job.unknown)
		log_warn(log, "%llu of %llu records are of events without a format",
			 (unsigned long long)o->job.unknown, (unsigned long long)o->job.records);
	ret = ret ?: log_damage(log, hyptrace_damaged(o->f.handle) + o->damaged);
	fd_close(&o->stop_fd);
	mark_desc_free(desc);
	return ret ? EXIT_FAILED : EXIT_OK;
}

int cmd_export(int argc, char **argv)
{
	struct export_opts o = { .stop_fd = -1 };
	int status = command_read(&export_table, argc, argv, &o, export_check, export_files);

	strlist_release(&o.tables);
	buf_release(&o.presets);
	return status;
}
