// SPDX-License-Identifier: GPL-2.0-only
/* Prints one line on a terminal after a command: the command to run next. */
#include "base/array.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "base/escape.h"

/* Hints after a command with that option, in place of the command's own (cmd/commands.h). In both FILES
 * stands for what the command read, or for the option's argument. */
static const struct hint_row {
	const char *command, *option, *words;
} hint_rows[] = {
	/* doctor's answer ends with a hint */
	{ "cut", "output", "hyptrace report FILES" },
	{ "export", "perfetto", "open FILES in https://ui.perfetto.dev" },
	{ "export", "ctf", "babeltrace2 FILES" },
	{ "export", "parquet", "tables of FILES: Documentation/fleet.md has queries" },
	{ "flame", "svg", "open FILES in a browser" },
	{ "import", "output", "hyptrace report FILES" },
	{ "merge", "output", "hyptrace report FILES" },
	{ "recover", "output", "hyptrace report FILES" },
	{ "sync", "write", "hyptrace report FILES" },
	{ "view", "output", "open FILES in a browser" },
	{ "why", "from", "hyptrace path --at SECONDS FILES, at the time of an example" },
	{ "why", "preset", "hyptrace path --at SECONDS FILES, at the time of an example" },
};

/* A command line, as its table reads it. */
struct hint_line {
	const char *command, *words;
	const char *arg; /* of the option that has the words */
	struct strlist files;
	bool numbered; /* record --rotate and --flight, cut --per: FILE.NNN instead of FILE */
	bool silent;   /* -q, -h, or for programs */
};

static int hint_option(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct hint_line *l = ctx;
	const char *name = o->name ?: "";

	l->silent |= o->key == 'q' || !strcmp(name, "json") || !strcmp(name, "csv") || !strcmp(name, "help");
	l->numbered |= !strcmp(name, "rotate") || !strcmp(name, "flight") ||
		       (!strcmp(name, "per") && !strcmp(l->command, "cut"));
	for (const struct hint_row *r = hint_rows; r < hint_rows + ARRAY_SIZE(hint_rows); r++)
		if (!strcmp(r->command, l->command) && !strcmp(name, r->option)) {
			l->words = r->words;
			l->arg = arg;
		}
	/* record's -o has no long name, and its other words are the command that it runs */
	if ((o->key == 'i' && arg) || (o->key == 'o' && !strcmp(l->command, "record")))
		return strlist_add(&l->files, arg);
	return 0;
}

/* Of a spool the recording. */
static void hint_file(struct buf *out, const char *file)
{
	size_t len = strlen(file);
	char *name;

	len -= len > 6 && !strcmp(file + len - 6, ".spool") ? 6 : 0;
	name = strndup(file, len);
	shell_word(out, name ?: "");
	free(name);
}

/* The first of the files "trace.NNN.dat" that are there; NULL: there is none. */
static char *hint_numbered(const char *output)
{
	static const char *const numbers[] = { "[0-9][0-9][0-9]", "[0-9][0-9][0-9][0-9]" };
	size_t stem = path_stem(output);
	char *first = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !first; i++) {
		char *pattern = str_printf("%.*s.%s%s", (int)stem, output, numbers[i], output + stem);
		glob_t found = { 0 };

		if (pattern && !glob(pattern, 0, NULL, &found))
			first = strdup(found.gl_pathv[0]);
		globfree(&found);
		free(pattern);
	}
	return first;
}

static void hint_of(const struct command *command, int argc, char **argv)
{
	struct opts_table table = *command->options;
	struct hint_line l = { .command = argv[0], .words = command->hint };
	bool record = !strcmp(argv[0], "record");
	struct opts_error err;
	int ret;

	table.dispatch = hint_option;
	ret = opts_parse(&table, &argc, argv, &l, &err);
	for (int i = 1; i < argc && !record && !ret; i++)
		ret = strlist_add(&l.files, argv[i]);
	if (!ret && !l.silent && !strcmp(argv[0], "adb") && argc > 1 && !strcmp(argv[1], "record"))
		hint_of(command_find("record"), argc - 1, argv + 1);
	else if (!ret && !l.silent && l.words) {
		const char *words = l.words, *at = strstr(words, " FILES");
		const char *output = l.arg ? l.arg : l.files.n ? l.files.v[0] : "trace.dat";
		char *numbered = l.numbered ? hint_numbered(output) : NULL;
		const char *first = numbered ?: output;
		struct buf text = { 0 };

		buf_printf(&text, "%.*s", at ? (int)(at - words) : (int)strlen(words), words);
		if (at) {
			hint_file(&text, first);
			for (size_t i = 1; i < l.files.n && !l.arg; i++)
				hint_file(&text, l.files.v[i]);
			buf_addstr(&text, at + 6);
		}
		if (buf_str(&text))
			fprintf(stderr, "hyptrace: next: %s\n", ESCAPED(buf_str(&text)));
		buf_release(&text);
		free(numbered);
	}
	strlist_release(&l.files);
}

bool hint_wanted(void)
{
	return isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

void hint_print(int argc, char **argv)
{
	const struct command *command = command_find(argv[0]);

	if (command && command->options)
		hint_of(command, argc, argv);
}
