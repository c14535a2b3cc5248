// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace by the name of trace-cmd: which command lines are served, and what becomes of the others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "util/shim.h"

/* hyptrace-agent knows which lines are its own. */
static void shim_exec_agent(char **argv)
{
	char *path = shim_beside("hyptrace-agent");

	if (path)
		execv(path, argv);
	free(path);
}

bool shim_serves(const struct command_row *row, int argc, char **argv)
{
	char **copy = row && row->takes ? shim_copy(argc, argv) : NULL;
	bool serves = copy && row->takes(argc - 1, copy + 1);

	free(copy);
	return serves;
}

int shim_pass_on(int argc, char **argv)
{
	int ret;

	if (argc > 1 && !strcmp(argv[1], "agent"))
		shim_exec_agent(argv);
	ret = shim_exec_real(argv);
	if (ret == -ENOENT)
		fputs("hyptrace: this command line is for the real trace-cmd (hyptrace(1), THE TRACE-CMD "
		      "LINK), and PATH has none beyond hyptrace's link\n",
		      stderr);
	else
		fprintf(stderr, "hyptrace: cannot run the real trace-cmd: %s\n", strerror(-ret));
	return EXIT_NO_PROGRAM;
}

int shim_print_dir(void)
{
	/* in a build, and installed (Makefile: shimdir) */
	static const char *const places[] = { "shim", "../lib/hyptrace/shim" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char *dir = shim_beside(places[i]), *link = dir ? str_printf("%s/" SHIM_NAME, dir) : NULL;
		char *real = link && !access(link, X_OK) ? realpath(dir, NULL) : NULL;

		if (real)
			puts(real);
		free(dir);
		free(link);
		free(real);
		if (real)
			return EXIT_OK;
	}
	fputs("hyptrace: the folder with the link is neither beside this program (shim) nor in "
	      "../lib/hyptrace/shim: make install makes it\n",
	      stderr);
	return EXIT_FAILED;
}
