// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace sql: queries over recordings, as an argument or at a prompt. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/handle.h"
#include "cmd.h"
#include "sql/sql.h"
#include "util/answer.h"

struct sql_opts {
	enum answer_form form;
	bool quiet;
	struct strlist words, files;
};

/* ---- command line --------------------------------------------------------------------- */

#define SQLOPT(field) .off = offsetof(struct sql_opts, field)

static const struct opt sql_rows_of_options[] = {
	OPT('i', "input", "FILE", "another way to name a file", opts_add_text, SQLOPT(files)),
	OPT('j', "json", NULL, "the answer as JSON", set_json, SQLOPT(form)),
	OPT(0, "csv", NULL, "the answer as CSV", set_csv, SQLOPT(form)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, SQLOPT(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table sql_table = {
	.command = "sql",
	.usage = "usage: hyptrace sql [OPTION...] [FILE...] \"QUERY\"\n"
		 "       hyptrace sql [OPTION...] [FILE...]\n"
		 "\n"
		 "Answers queries in SQL over recordings, trace.dat or the FILEs, which are read as\n"
		 "far as the query needs them. Files of guests join their host's. Without a QUERY\n"
		 "they come from standard input; there .tables and .schema tell what there is.\n"
		 "\n",
	.rows = sql_rows_of_options,
	.n = ARRAY_SIZE(sql_rows_of_options),
};

/* False: there is nothing to do but exit with *status. */
static bool sql_parse(struct sql_opts *o, int argc, char **argv, int *status)
{
	struct opts_error err;
	int ret = opts_parse(&sql_table, &argc, argv, o, &err);

	if (ret) {
		*status = command_stopped(&sql_table, ret, &err);
		return false;
	}
	*status = EXIT_USAGE;
	for (int i = 1; i < argc; i++)
		if (strlist_add(&o->words, argv[i]))
			return false;
	return true;
}

#ifdef HYPTRACE_SQL

/* ---- output -------------------------------------------------------------------------------- */

#define OUT_FLUSH (64u << 10) /* bytes that are kept before they are written */
#define NAME_ROOM 80

struct sql_output {
	struct answer answer;
	struct buf out;
	const struct log *log;
	struct answer_column columns[ANSWER_COLUMNS_MAX];
	char names[ANSWER_COLUMNS_MAX][NAME_ROOM], key[24];
	unsigned int tables;
	bool typed; /* the kinds of the columns are known */
	int failed; /* what writing said, which was told */
};

static int sql_flush(struct sql_output *o)
{
	if (!o->failed)
		o->failed = print_answer(&o->out, o->log);
	o->out.len = 0;
	return o->failed;
}

/* A key for programs must not come twice: the second ts is "ts:1". */
static void sql_column_name(struct sql_output *o, size_t i, const char *name)
{
	unsigned int n = 0;
	size_t k = 0;

	snprintf(o->names[i], NAME_ROOM, "%.*s", NAME_ROOM - 8, name);
	while (k < i) {
		if (strcmp(o->names[k], o->names[i]) != 0) {
			k++;
			continue;
		}
		snprintf(o->names[i], NAME_ROOM, "%.*s:%u", NAME_ROOM - 8, name, ++n);
		k = 0;
	}
}

static int sql_table_begin(void *ctx, const char *const *names, size_t n)
{
	struct sql_output *o = ctx;

	if (n > ANSWER_COLUMNS_MAX) {
		log_err(o->log, "the query asks for %zu columns: %d are the most", n, ANSWER_COLUMNS_MAX);
		return -E2BIG;
	}
	for (size_t i = 0; i < n; i++) {
		sql_column_name(o, i, names[i]);
		o->columns[i] = (struct answer_column){ o->names[i], o->names[i], ANSWER_WORD };
	}
	o->tables++;
	snprintf(o->key, sizeof(o->key), o->tables > 1 ? "rows%u" : "rows", o->tables);
	answer_table(&o->answer, o->key, NULL, o->columns, n);
	return 0;
}

/* Each row has values of its own kinds; text is aligned by those of the first. */
static int sql_table_row(void *ctx, const struct sql_value *v, size_t n)
{
	static const enum answer_kind kinds[] = {
		[SQL_INTEGER] = ANSWER_SIGNED, [SQL_REAL] = ANSWER_REAL, [SQL_TEXT] = ANSWER_WORD
	};
	struct sql_output *o = ctx;
	struct answer_cell cells[ANSWER_COLUMNS_MAX];

	for (size_t i = 0; i < n; i++) {
		cells[i] = (struct answer_cell){ v[i].kind != SQL_NULL, v[i].text, (uint64_t)v[i].integer,
						 v[i].real };
		if (cells[i].known)
			o->answer.columns[i].kind = kinds[v[i].kind];
	}
	answer_row(&o->answer, cells);
	return o->out.len < OUT_FLUSH ? buf_status(&o->out) : sql_flush(o);
}

static int sql_table_done(void *ctx)
{
	struct sql_output *o = ctx;

	answer_table_end(&o->answer);
	return sql_flush(o);
}

static const struct sql_sink sql_output_sink = { sql_table_begin, sql_table_row, sql_table_done };

/* ---- queries ---------------------------------------------------------------------------------- */

/* Whose statement Ctrl-C ends; a handler has nothing else. */
static struct sql *sql_running;

static void sql_signal(int sig)
{
	if (sql_running)
		sql_interrupt(sql_running);
}

static void sql_say_notes(struct sql *s, struct sql_output *o)
{
	struct strlist notes = sql_notes(s);

	for (size_t i = 0; i < notes.n; i++)
		answer_note(&o->answer, "%s", notes.v[i]);
	strlist_release(&notes);
}

/* 0, -errno: it is told what is wrong. */
static int sql_query(struct sql *s, struct sql_output *o, const char *text)
{
	char why[SQL_WHY_MAX];
	int ret = sql_run(s, text, &sql_output_sink, o, why);

	if (o->answer.table) { /* ended in the middle */
		answer_table_end(&o->answer);
		sql_flush(o);
	}
	sql_say_notes(s, o);
	if (o->failed)
		return o->failed;
	if (ret == -EINTR)
		log_err(o->log, "interrupted");
	else if (ret == -EINVAL || ret == -EIO)
		log_err(o->log, "%s", *why ? why : errno_text(ret));
	else if (ret && ret != -E2BIG)
		log_err(o->log, "%s", errno_text(ret));
	return ret;
}

/* ---- the prompt ---------------------------------------------------------------------------------- */

static void sql_show_schema(struct sql *s, const char *only, bool names)
{
	struct strlist all = { 0 };

	if (sql_schema(s, &all))
		return;
	for (size_t i = 0; i < all.n; i++) {
		char name[NAME_ROOM] = "";

		if (sscanf(all.v[i], "CREATE %*[A-Z] %79[a-z_]", name) != 1 ||
		    (*only && strcmp(only, name) != 0))
			continue;
		if (names)
			puts(name);
		else
			printf("%s;\n", all.v[i]);
	}
	strlist_release(&all);
}

/* ".schema events" and the like: 0; 1: it ends. */
static int sql_dot(struct sql *s, char *line, const struct log *log)
{
	char *word = strtok(line, " \t\n"), *arg = strtok(NULL, " \t\n");

	if (!strcmp(word, ".tables"))
		sql_show_schema(s, "", true);
	else if (!strcmp(word, ".schema"))
		sql_show_schema(s, arg ? arg : "", false);
	else if (!strcmp(word, ".quit") || !strcmp(word, ".exit"))
		return 1;
	else if (!strcmp(word, ".help"))
		puts(".tables          the tables\n.schema [TABLE]  their columns\n.quit            leave\n"
		     "anything else is SQL, up to a semicolon");
	else
		log_err(log, "no %s (.help lists what there is)", word);
	fflush(stdout);
	return 0;
}

static void sql_show_prompt(bool wanted, bool more)
{
	if (!wanted)
		return;
	fputs(more ? "   ...> " : "hyptrace> ", stdout);
	fflush(stdout);
}

/* Queries line by line: 0, or what the last one that failed said; a script ends there. */
static int sql_prompt(struct sql *s, struct sql_output *o)
{
	bool tty = isatty(STDIN_FILENO);
	struct buf text = { 0 };
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	for (;;) {
		sql_show_prompt(tty, text.len);
		if (getline(&line, &room, stdin) < 0)
			break;
		if (!text.len && *line == '.') {
			if (sql_dot(s, line, o->log))
				break;
			continue;
		}
		buf_addstr(&text, line);
		if (!buf_str(&text) || !sql_whole(buf_str(&text)))
			continue;
		ret = sql_query(s, o, buf_str(&text)) ?: sql_flush(o);
		text.len = 0;
		if (ret && !tty)
			break;
	}
	if (!ret && text.len && buf_str(&text)) /* the last one of a script needs no semicolon */
		ret = sql_query(s, o, buf_str(&text));
	buf_release(&text);
	free(line);
	return tty ? 0 : ret;
}

/* ---- all of it ------------------------------------------------------------------------------------ */

/* What is no file is the query: the last word, if it is one. */
static int sql_split(struct sql_opts *o, const char **query)
{
	*query = NULL;
	for (size_t i = 0; i < o->words.n; i++) {
		bool last = i + 1 == o->words.n;

		if (last && access(o->words.v[i], F_OK) && strpbrk(o->words.v[i], " \t\n;"))
			*query = o->words.v[i];
		else if (strlist_add(&o->files, o->words.v[i]))
			return -ENOMEM;
	}
	return o->files.n ? 0 : strlist_add(&o->files, "trace.dat");
}

static int sql_answer(const struct sql_opts *o, struct sql *s, const char *query, const struct log *log)
{
	struct sql_output *out = calloc(1, sizeof(*out));
	struct sigaction sa = { .sa_handler = sql_signal };
	struct sql_counts counts;
	int ret;

	if (!out)
		return -ENOMEM;
	out->log = log;
	sql_running = s;
	sigaction(SIGINT, &sa, NULL);
	answer_begin(&out->answer, o->form, &out->out);
	ret = query ? sql_query(s, out, query) : sql_prompt(s, out);
	answer_end(&out->answer);
	if (o->form == ANSWER_JSON)
		buf_addstr(&out->out, "\n");
	ret = sql_flush(out) ?: ret;
	counts = sql_counts(s);
	if (counts.damaged)
		tell_damage(log, counts.damaged);
	signal(SIGINT, SIG_DFL);
	sql_running = NULL;
	buf_release(&out->out);
	free(out);
	return ret ? ret : counts.damaged ? -EBADMSG : 0;
}

static int sql_files(struct sql_opts *o, const char *query, struct log *log)
{
	struct hyptrace_open_opts open_opts = { sizeof(open_opts), .log = handle_log_to, .log_ctx = log };
	struct hyptrace *files = NULL;
	struct sql *s = NULL;
	int ret = hyptrace_open(&files, (const char *const *)o->files.v, o->files.n, &open_opts);

	ret = ret ?: handle_load(files);
	ret = ret ?: sql_open(&s, handle_inputs(files), log);
	if (!ret)
		ret = sql_answer(o, s, query, log);
	sql_close(s);
	hyptrace_close(files);
	return ret;
}

#else

static int sql_split(struct sql_opts *o, const char **query)
{
	return 0;
}

static int sql_files(struct sql_opts *o, const char *query, struct log *log)
{
	log_err(log, "this hyptrace was built without libsqlite3, so it cannot answer queries");
	return -ENOSYS;
}

#endif

int cmd_sql(int argc, char **argv)
{
	struct sql_opts o = { 0 };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	const char *query;
	int status;

	memory_or_end();
	if (sql_parse(&o, argc, argv, &status)) {
		console.quiet = o.quiet;
		status = sql_split(&o, &query) ?: sql_files(&o, query, &log);
		status = ferror(stdout) ? EXIT_FAILED : console_status(&console, status);
	}
	strlist_release(&o.words);
	strlist_release(&o.files);
	return status;
}
