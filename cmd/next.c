// SPDX-License-Identifier: GPL-2.0-only
/* What to do after a command, said in one line to whoever sits at a terminal. */
#include "next.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adb.h"
#include "cmd.h"
#include "tracefs/grammar.h"
#include "util/visible.h"

/* FILES: what the command read, or the option's argument. By the last of the options that are there, "": by
 * none. */
static const struct next_row {
	const char *command, *option, *words;
} next_rows[] = {
	{ "adb", "", "hyptrace adb record -- sleep 10" },
	{ "diff", "", "hyptrace stat --show longest FILE, of either" },
	/* doctor's answer ends with it */
	{ "export", "perfetto", "open FILES in https://ui.perfetto.dev" },
	{ "export", "ctf", "babeltrace2 FILES" },
	{ "export", "parquet", "tables of FILES: Documentation/fleet.md has queries" },
	{ "flame", "", "hyptrace flame --svg flame.svg FILES" },
	{ "flame", "svg", "open FILES in a browser" },
	{ "import", "output", "hyptrace report FILES" },
	{ "latency", "", "hyptrace path --at SECONDS FILES, for one of the longest" },
	{ "list", "", "hyptrace doctor" },
	{ "path", "", "hyptrace report FILES, around these times" },
	{ "record", "", "hyptrace stat FILES" },
	{ "recover", "", "hyptrace report FILES" },
	{ "recover", "output", "hyptrace report FILES" },
	{ "report", "", "hyptrace stat FILES" },
	{ "sql", "", "hyptrace-sql(1) has the tables; .schema on standard input, too" },
	{ "stat", "", "hyptrace path --at SECONDS FILES, at a time of --show longest" },
	{ "sync", "", "hyptrace sync --write FILES" },
	{ "sync", "write", "hyptrace report FILES" },
	{ "top", "", "hyptrace stat FILES" },
};

/* A command line as the table reads it. */
struct next_line {
	const char *command;
	const struct next_row *row;
	const char *arg; /* of the row's option */
	struct strlist files;
	bool guests; /* recorded, perhaps */
	bool silent; /* -q, -h, or for programs */
};

static const struct next_row *next_row(const char *command, const char *option)
{
	for (size_t i = 0; i < ARRAY_SIZE(next_rows); i++) {
		const struct next_row *r = &next_rows[i];

		if (!strcmp(r->command, command) && !strcmp(r->option, option))
			return r;
	}
	return NULL;
}

static bool next_is(const struct opt *o, const char *name)
{
	return o->name && !strcmp(o->name, name);
}

static int next_option(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct next_line *l = ctx;
	const struct next_row *row = o->name ? next_row(l->command, o->name) : NULL;

	l->silent |= o->key == 'q' || next_is(o, "json") || next_is(o, "csv") || next_is(o, "help");
	l->guests |= o->key == 'A';
	if (row) {
		l->row = row;
		l->arg = arg;
	}
	/* record's -o has no long name, and its other words are the command that it runs */
	if ((o->key == 'i' && arg) || (o->key == 'o' && !strcmp(l->command, "record")))
		return strlist_add(&l->files, arg);
	return 0;
}

/* In quotes where a shell would take it apart; of a spool the recording. */
static void next_file(struct buf *out, const char *file)
{
	size_t len = strlen(file);
	char *name;

	len -= len > 6 && !strcmp(file + len - 6, ".spool") ? 6 : 0;
	name = strndup(file, len);
	if (name &&
	    name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./,:+@")])
		adb_quote(out, name);
	else
		buf_printf(out, " %s", name ?: "");
	free(name);
}

/* "trace.dat" has "trace-*.dat", where there are such files */
static void next_guests(struct buf *out, const char *host)
{
	size_t stem = path_stem(host);
	char *pattern = str_printf("%.*s-*%s", (int)stem, host, host + stem);
	glob_t found = { 0 };

	if (pattern && !glob(pattern, GLOB_NOSORT, NULL, &found))
		buf_printf(out, " %s", pattern);
	globfree(&found);
	free(pattern);
}

static void next_files(const struct next_line *l, struct buf *out)
{
	const char *first = l->files.n ? l->files.v[0] : "trace.dat";

	next_file(out, l->arg ? l->arg : first);
	for (size_t i = 1; i < l->files.n && !l->arg; i++)
		next_file(out, l->files.v[i]);
	if (l->guests)
		next_guests(out, first);
}

static void next_tell(const struct next_line *l)
{
	const char *words = l->row->words, *at = strstr(words, " FILES");
	struct buf text = { 0 };

	buf_printf(&text, "%.*s", at ? (int)(at - words) : (int)strlen(words), words);
	if (at) {
		next_files(l, &text);
		buf_addstr(&text, at + 6);
	}
	if (buf_str(&text))
		fprintf(stderr, "hyptrace: next: %s\n", VISIBLE(buf_str(&text)));
	buf_release(&text);
}

static void next_of(const struct opts_table *of, int argc, char **argv)
{
	struct opts_table table = *of;
	struct next_line l = { .command = argv[0], .row = next_row(argv[0], "") };
	bool record = !strcmp(argv[0], "record");
	struct opts_error err;
	int ret;

	l.guests = record && argc == 1; /* it chooses them (usual.h) */
	table.dispatch = next_option;
	ret = opts_parse(&table, &argc, argv, &l, &err);
	for (int i = 1; i < argc && !record && !ret; i++)
		ret = strlist_add(&l.files, argv[i]);
	if (!ret && !l.silent && !strcmp(argv[0], "adb") && argc > 1 && !strcmp(argv[1], "record"))
		next_of(&grammar_table, argc - 1, argv + 1);
	else if (!ret && !l.silent && l.row)
		next_tell(&l);
	strlist_release(&l.files);
}

bool next_wanted(void)
{
	return isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

void next_print(const struct command_row *row, int argc, char **argv)
{
	if (row && row->table)
		next_of(row->table, argc, argv);
}
