// SPDX-License-Identifier: GPL-2.0-only
/* The program: runs the command that is named, or lists them all; by the name of trace-cmd it serves some
 * lines and passes the others on. On a terminal it prints a hint for the next command. */
#include <glob.h>

#include "base/shim.h"
#include "cmd.h"

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

/*
 * After a command has succeeded: prints "hyptrace: next: ..." on stderr; nothing with -q, -h, --json and
 * --csv. argv: as the command got it, argv[0] its name; its order changes.
 */
static void hint_print(int argc, char **argv)
{
	const struct command_row *command = command_find(argv[0]);
	bool record = !strcmp(argv[0], "record");
	struct hint_line l = { .command = argv[0] };
	struct opts_table table;
	struct opts_error err;
	int ret;

	if (!command || !command->options)
		return;
	l.words = command->hint;
	table = *command->options;
	table.dispatch = hint_option;
	ret = opts_parse(&table, &argc, argv, &l, &err);
	for (int i = 1; i < argc && !record && !ret; i++)
		ret = strlist_add(&l.files, argv[i]);
	if (!ret && !l.silent && !strcmp(argv[0], "adb") && argc > 1 && !strcmp(argv[1], "record"))
		hint_print(argc - 1, argv + 1);
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

#ifdef HYPTRACE_STATIC
#define STATIC_FILE ", a static file: with the agent and its own plugins, without others and libvirt"
#else
#define STATIC_FILE ""
#endif

static void usage(FILE *out)
{
	fputs("usage: hyptrace COMMAND [OPTION...]\n\ncommands:\n", out);
	for (size_t i = 0; i < commands_n; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\n`hyptrace help COMMAND` lists a command's options; its manual is hyptrace-COMMAND(1).\n"
	      "Recordings are read by report, and by trace-cmd report and kernelshark.\n",
	      out);
}

/* The row of a command; NULL with a message: there is none of this name. */
static const struct command_row *command_of(const char *name)
{
	const struct command_row *row = command_find(name);
	struct nearest near = { .typed = name, .len = strlen(name) };

	for (size_t i = 0; i < commands_n; i++)
		nearest_offer(&near, commands[i].name);
	if (!row && near.word)
		fprintf(stderr, "hyptrace: no command '%s': did you mean '%s'? (hyptrace -h lists all)\n",
			ESCAPED(name), near.word);
	else if (!row)
		fprintf(stderr, "hyptrace: no command '%s' (hyptrace -h lists all)\n", ESCAPED(name));
	return row;
}

static int command_run(int argc, char **argv, bool pages)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command_row *row;

	if (!name) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "help") && argc > 2) { /* "help stat" is "stat -h" */
		char *words[] = { argv[2], "-h", NULL };

		row = command_of(argv[2]);
		return row ? row->run(2, words) : EXIT_USAGE;
	}
	if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(name, "-V") || !strcmp(name, "--version") || !strcmp(name, "version")) {
		puts("hyptrace " HYPTRACE_VERSION STATIC_FILE);
		return EXIT_OK;
	}
	if (!strcmp(name, "--shim-dir")) {
		/* in a build, and installed (Makefile: shimdir) */
		static const char *const places[] = { "shim", "../lib/hyptrace/shim" };

		for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
			char *dir = shim_beside(places[i]),
			     *link = dir ? str_printf("%s/" SHIM_NAME, dir) : NULL;
			char *real = link && !access(link, X_OK) ? realpath(dir, NULL) : NULL;

			if (real)
				puts(real);
			free(dir);
			free(link);
			free(real);
			if (real)
				return EXIT_OK;
		}
		fputs("hyptrace: the directory with the link is neither next to this program (shim) nor in "
		      "../lib/hyptrace/shim: make install makes it\n",
		      stderr);
		return EXIT_FAILED;
	}
	if (!strcmp(name, "--complete"))
		return complete_line(argc - 2, argv + 2);
	row = command_of(name);
	if (!row)
		return EXIT_USAGE;
	pager_want(row->pages && pages);
	return row->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	bool shim = argc && shim_called(argv[0]), served = !shim, pages = true, hint;
	const struct command_row *command = argc > 1 ? command_find(argv[1]) : NULL;
	char **words;
	int ret;

#ifdef HYPTRACE_STATIC
	/* the agent is in the static file too: as a command, or by the name that the file has. It prints by
	 * itself, and forks */
	if (argc &&
	    (!strcmp(basename(argv[0]), "hyptrace-agent") || (shim && argc > 1 && !strcmp(argv[1], "agent"))))
		return cmd_agent(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "agent"))
		return cmd_agent(argc - 1, argv + 1);
#endif
	if (shim && command && command->takes) {
		words = shim_copy(argc, argv);
		served = words && command->takes(argc - 1, words + 1);
		free(words);
	}
	if (!served) {
		char *agent = argc > 1 && !strcmp(argv[1], "agent") ? shim_beside("hyptrace-agent") : NULL;

		/* the agent, which knows its own lines, or the real trace-cmd runs instead of this program */
		if (agent)
			execv(agent, argv);
		free(agent);
		ret = shim_exec_real(argv);
		if (ret == -ENOENT)
			fputs("hyptrace: this command line is for the real trace-cmd (hyptrace(1), "
			      "THE TRACE-CMD LINK), and PATH has none beyond hyptrace's link\n",
			      stderr);
		else
			fprintf(stderr, "hyptrace: cannot run the real trace-cmd: %s\n", strerror(-ret));
		return EXIT_NO_PROGRAM;
	}
	guests_want(!shim);
	if (!shim && argc > 1 && !strcmp(argv[1], "--no-pager")) {
		pages = false;
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	ret = terminal_open();
	if (ret) {
		fprintf(stderr, "hyptrace: %s\n", strerror(-ret));
		return EXIT_FAILED;
	}
	/* for the hint after the output, which may become a pager's: a command changes the order of its words
	 */
	hint = argc > 1 && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
	words = hint ? shim_copy(argc, argv) : NULL;
	ret = terminal_end(command_run(argc, argv, pages));
	if (words && ret == EXIT_OK)
		hint_print(argc - 1, words + 1);
	free(words);
	return ret;
}
