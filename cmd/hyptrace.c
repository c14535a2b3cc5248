// SPDX-License-Identifier: GPL-2.0-only
/* The program: runs the command that is named, or lists them all; by the name of trace-cmd it serves some
 * lines and passes the others on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/escape.h"
#include "cmd.h"
#include "base/shim.h"

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
static const struct command *command_of(const char *name)
{
	const struct command *row = command_find(name);
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
	const struct command *row;

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

#ifdef HYPTRACE_STATIC
/* The agent is in the static file too: as a command, or by the name that the file has. */
static bool is_agent(const char *word)
{
	return !strcmp(basename(word), "hyptrace-agent");
}
#endif

int main(int argc, char **argv)
{
	bool shim = argc && shim_called(argv[0]), served = !shim, pages = true;
	const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
	char **words;
	int ret;

#ifdef HYPTRACE_STATIC
	/* it prints by itself, and forks */
	if (argc && (is_agent(argv[0]) || (shim && argc > 1 && !strcmp(argv[1], "agent"))))
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
	/* for the hint after the output: a command changes the order of its words */
	words = argc > 1 && hint_wanted() ? shim_copy(argc, argv) : NULL;
	ret = terminal_end(command_run(argc, argv, pages));
	if (words && ret == EXIT_OK)
		hint_print(argc - 1, words + 1);
	free(words);
	return ret;
}
