// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace sql: queries over recordings, as an argument or at a prompt. */
#include <signal.h>

#include "cmd.h"
#include "ask/sql/sql.h"
#ifdef HYPTRACE_LIBEDIT
#include <editline/readline.h>
#endif

static const struct opt sql_rows_of_options[] = {
	OPT_ANSWER(FILES),
};

const struct opts_table sql_table = {
	.command = "sql",
	.usage = "usage: hyptrace sql [OPTION...] [FILE...] \"QUERY\"\n"
		 "       hyptrace sql [OPTION...] [FILE...]\n"
		 "\n"
		 "Answers queries in SQL over recordings, trace.dat or the FILEs, which are read as\n"
		 "far as the query needs them. Files of guests join their host's. Without a QUERY\n"
		 "they come from standard input. .tables and .schema are queries, too: they list\n"
		 "the tables, and their columns.\n"
		 "\n",
	OPT_ROWS(sql_rows_of_options),
};

#ifdef HYPTRACE_SQL

#define OUT_FLUSH (64u << 10) /* bytes that are kept before they are written */
#define NAME_ROOM 80

struct sql_output {
	struct answer answer;
	struct buf out;
	const struct log *log;
	struct answer_column columns[ANSWER_COLUMNS_MAX];
	char names[ANSWER_COLUMNS_MAX][NAME_ROOM], key[24];
	unsigned int tables;
	int failed; /* the error of writing, logged */
};

static int sql_flush(struct sql_output *o)
{
	if (!o->failed)
		o->failed = print_answer(&o->out, o->log);
	o->out.len = 0;
	return o->failed;
}

static int sql_table_begin(void *ctx, const char *const *names, size_t n)
{
	struct sql_output *o = ctx;

	if (n > ANSWER_COLUMNS_MAX)
		return log_fail(o->log, -E2BIG, "the query asks for %zu columns: %d are the most", n,
				ANSWER_COLUMNS_MAX);
	for (size_t i = 0; i < n; i++) {
		unsigned int twins = 0;
		size_t k = 0;

		/* A key for programs must not come twice: the second ts is "ts:1". */
		snprintf(o->names[i], NAME_ROOM, "%.*s", NAME_ROOM - 8, names[i]);
		while (k < i) {
			if (strcmp(o->names[k], o->names[i]) != 0) {
				k++;
				continue;
			}
			snprintf(o->names[i], NAME_ROOM, "%.*s:%u", NAME_ROOM - 8, names[i], ++twins);
			k = 0;
		}
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
		cells[i] = (struct answer_cell){ .known = v[i].kind != SQL_NULL,
						 .word = v[i].text,
						 .n = (uint64_t)v[i].integer,
						 .share = v[i].real };
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

/* Database of the statement that Ctrl-C ends: a signal handler has no argument. */
static struct sql *sql_running;

static void sql_signal(int sig)
{
	if (sql_running)
		sql_interrupt(sql_running);
}

/* 0 or -errno, logged. */
static int sql_query(struct sql *s, struct sql_output *o, const char *text)
{
	char why[SQL_WHY_MAX];
	struct strlist notes;
	int ret = sql_run(s, text, &sql_output_sink, o, why);

	if (o->answer.table) { /* ended in the middle */
		answer_table_end(&o->answer);
		sql_flush(o);
	}
	notes = sql_notes(s);
	for (size_t i = 0; i < notes.n; i++)
		answer_note(&o->answer, "%s", notes.v[i]);
	strlist_release(&notes);
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

/* Tables and views, all or one: their names, or the statements that would make them. 0 or -errno. */
static int sql_show_schema(struct sql *s, struct sql_output *o, const char *only, bool names)
{
	const char *const column = names ? "name" : "sql";
	bool text = o->answer.form == ANSWER_TEXT;
	struct strlist all = { 0 };
	int ret = sql_schema(s, &all) ?: text ? 0 : sql_table_begin(o, &column, 1);

	for (size_t i = 0; i < all.n && !ret; i++) {
		char name[NAME_ROOM] = "";
		struct sql_value value = { .kind = SQL_TEXT, .text = names ? name : all.v[i] };

		if ((sscanf(all.v[i], "CREATE %*[A-Z] \"%79[^\"]", name) != 1 &&
		     sscanf(all.v[i], "CREATE %*[A-Z] %79[A-Za-z0-9_]", name) != 1) ||
		    (*only && strcmp(only, name) != 0))
			continue;
		if (text)
			buf_printf(&o->out, "%s%s\n", value.text, names ? "" : ";");
		else
			ret = sql_table_row(o, &value, 1);
	}
	strlist_release(&all);
	return ret ?: text ? sql_flush(o) : sql_table_done(o);
}

/* ".schema events" and the like, in a copy of the line: 0; 1: it ends; -errno. */
static int sql_dot(struct sql *s, struct sql_output *o, char *line)
{
	char *word = strtok(line, " \t\n;"), *arg = strtok(NULL, " \t\n;");

	if (!strcmp(word, ".tables"))
		return sql_show_schema(s, o, "", true);
	if (!strcmp(word, ".schema"))
		return sql_show_schema(s, o, arg ? arg : "", false);
	if (!strcmp(word, ".quit") || !strcmp(word, ".exit"))
		return 1;
	if (strcmp(word, ".help"))
		return log_fail(o->log, -EINVAL, "no command '%s' (.help lists them)", word);
	buf_addstr(&o->out,
		   ".tables          the tables\n.schema [TABLE]  their columns\n.quit            leave\n"
		   "anything else is SQL, up to a semicolon\n");
	return sql_flush(o);
}

/* The next line without its newline, malloc'ed; NULL: there are no more. */
static char *sql_line(bool terminal, bool first)
{
	const char *prompt = first ? "hyptrace> " : "   ...> ";
	char *line = NULL;
	size_t room = 0;

#ifdef HYPTRACE_LIBEDIT
	if (terminal) {
		/* stdout is no stream that an editor can work on */
		rl_outstream = rl_outstream ?: fdopen(dup(STDOUT_FILENO), "w");
		line = rl_outstream ? readline(prompt) : NULL;
		if (line && *line)
			add_history(line);
		return line;
	}
#endif
	if (terminal) {
		fputs(prompt, stdout);
		fflush(stdout);
	}
	if (getline(&line, &room, stdin) < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = 0;
	return line;
}

/* Queries line by line: 0, or what the last one that failed said; a script ends there. */
static int sql_prompt(struct sql *s, struct sql_output *o)
{
	bool tty = isatty(STDIN_FILENO);
	struct buf text = { 0 };
	char *line;
	int ret = 0;

	while ((tty || !ret) && ret <= 0 && (line = sql_line(tty, !text.len))) {
		ret = 0;
		if (!text.len && *line == '.') {
			ret = sql_dot(s, o, line);
		} else if (text.len || line[strspn(line, " \t")]) {
			buf_printf(&text, "%s\n", line);
			if (buf_str(&text) && sql_whole(buf_str(&text))) {
				ret = sql_query(s, o, buf_str(&text)) ?: sql_flush(o);
				text.len = 0;
			}
		}
		free(line);
	}
	if (tty && ret <= 0) /* after ^D */
		puts("");
	if (!ret && text.len && buf_str(&text)) /* the last one of a script needs no semicolon */
		ret = sql_query(s, o, buf_str(&text));
	buf_release(&text);
	return tty || ret > 0 ? 0 : ret;
}

static int sql_answer(const struct files_opts *o, struct sql *s, const char *query, const struct log *log)
{
	struct sql_output *out = calloc(1, sizeof(*out));
	struct sigaction sa = { .sa_handler = sql_signal };
	char *line;
	int ret, damaged;

	if (!out)
		return -ENOMEM;
	out->log = log;
	sql_running = s;
	sigaction(SIGINT, &sa, NULL);
	if (!query)
		pager_want(false);
	answer_begin(&out->answer, o->form, &out->out);
	line = query && *query == '.' ? strdup(query) : NULL;
	ret = line ? sql_dot(s, out, line) : query ? sql_query(s, out, query) : sql_prompt(s, out);
	free(line);
	answer_end(&out->answer);
	if (o->form == ANSWER_JSON)
		buf_addstr(&out->out, "\n");
	ret = sql_flush(out) ?: ret;
	damaged = log_damage(log, sql_counts(s).damaged);
	signal(SIGINT, SIG_DFL);
	sql_running = NULL;
	buf_release(&out->out);
	free(out);
	return ret ?: damaged;
}

static int sql_files(void *opts, const struct log *log)
{
	struct files_opts *o = opts;
	const struct inputs *in;
	struct sql *s = NULL;
	char *last = o->files.v[o->files.n - 1], *query = NULL;
	int ret = 0;

	/* the last word is the query unless it is a file */
	if (access(last, F_OK) && (strpbrk(last, " \t\n;") || (*last == '.' && !strpbrk(last + 1, "./")))) {
		query = last;
		o->files.n--;
	}
	if (!o->files.n)
		ret = strlist_add(&o->files, "trace.dat");
	ret = ret ?: command_files(o, 0, &in, log);
	ret = ret ?: sql_open(&s, in, log) ?: sql_answer(o, s, query, log);
	sql_close(s);
	free(query);
	return ret;
}

#else

static int sql_files(void *opts, const struct log *log)
{
	return log_fail(log, -ENOSYS,
			"this hyptrace was built without libsqlite3, so it cannot answer queries");
}

#endif

int cmd_sql(int argc, char **argv)
{
	struct files_opts o = { 0 };
	int status = command_read(&sql_table, argc, argv, &o, NULL, sql_files);

	return ferror(stdout) ? EXIT_FAILED : status;
}
