// SPDX-License-Identifier: GPL-2.0-only
/* The program: finds the command that is named, and lists them all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "next.h"
#include "report-opts.h"
#include "terminal.h"
#include "tracefs/grammar.h"
#include "util/shim.h"

#ifdef HYPTRACE_STATIC
#define STATIC_FILE ", a static file: with the agent and its own plugins, without others and libvirt"
#else
#define STATIC_FILE ""
#endif

const struct command_row command_rows[] = {
#ifdef HYPTRACE_STATIC
	{ "agent", cmd_agent, NULL, "hyptrace-agent, which lets recorders trace this guest", NULL },
#endif
	{ "adb", cmd_adb, &adb_table, "record on an Android phone, from this machine", NULL },
	{ "diff", cmd_diff, &diff_table, "compare two recordings, and tell differences from noise", NULL },
	{ "doctor", cmd_doctor, &doctor_table, "tell what can be recorded here, and what mends the rest",
	  NULL },
	{ "export", cmd_export, &export_table,
	  "turn recordings into Perfetto or CTF traces, or lines of JSON", NULL },
	{ "flame", cmd_flame, &flame_table, "fold stacks of host, hypervisor and guests, and draw them",
	  NULL },
	{ "import", cmd_import, &import_table, "add a capture of the hypervisor's trace_pipe to a trace.dat",
	  NULL },
	{ "latency", cmd_latency, &latency_table, "tell how long it takes from one event to the next", NULL },
	{ "list", cmd_list, &list_table, "show the machine's guests, trace buffers and events", list_takes },
	{ "path", cmd_path, &path_table, "tell why a task ran only then: causes back across guest and host",
	  NULL },
	{ "record", cmd_record, &grammar_table,
	  "record the hypervisor, the host and instances into a trace.dat", record_takes },
	{ "recover", cmd_recover, &recover_table, "finish what a killed recorder left behind", NULL },
	{ "report", cmd_report, &report_table, "print recordings as text, in the order of time",
	  report_takes },
	{ "sql", cmd_sql, &sql_table, "answer queries in SQL over recordings", NULL },
	{ "stat", cmd_stat, &stat_table, "count events, and add up exits and the hypervisor's time",
	  stat_takes },
	{ "sync", cmd_sync, &sync_table, "compute the guests' clock offsets, with a bound on each", NULL },
	{ "top", cmd_top, &top_table, "show exits and where the time goes while a recording runs", NULL },
};
const size_t command_rows_n = ARRAY_SIZE(command_rows);

static void usage(FILE *out)
{
	fputs("usage: hyptrace COMMAND [OPTIONS]\n\ncommands:\n", out);
	for (size_t i = 0; i < command_rows_n; i++)
		fprintf(out, "  %-10s %s\n", command_rows[i].name, command_rows[i].summary);
	fputs("\n`hyptrace COMMAND -h` tells a command's options, hyptrace-COMMAND(1) all about it.\n"
	      "Recordings are read by report, and by trace-cmd report and kernelshark.\n",
	      out);
}

static const struct command_row *find_command(const char *name)
{
	for (size_t i = 0; i < command_rows_n; i++)
		if (!strcmp(command_rows[i].name, name))
			return &command_rows[i];
	return NULL;
}

static int command_run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command_row *row;

	if (!name) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "version")) {
		puts("hyptrace " HYPTRACE_VERSION STATIC_FILE);
		return EXIT_OK;
	}
	if (!strcmp(name, "--shim-dir"))
		return shim_print_dir();
	if (!strcmp(name, "--complete"))
		return complete_line(command_rows, command_rows_n, argc - 2, argv + 2);
	row = find_command(name);
	if (!row) {
		fprintf(stderr, "hyptrace: no command '%s' (hyptrace -h lists them)\n", name);
		return EXIT_USAGE;
	}
	return row->run(argc - 1, argv + 1);
}

/* Called by the link: whether the line is ours (cmd/shim.c). */
static bool is_served(int argc, char **argv)
{
	return argc > 1 && shim_serves(find_command(argv[1]), argc, argv);
}

#ifdef HYPTRACE_STATIC
/* The agent is in the static file too: as a command, or by the name that the file has. */
static bool is_agent(const char *word)
{
	const char *base = strrchr(word, '/');

	return !strcmp(base ? base + 1 : word, "hyptrace-agent");
}
#endif

/* A command changes the order of its words: a copy tells what to do next, behind all that is printed. */
static int main_run(int argc, char **argv)
{
	char **words = argc > 1 && next_wanted() ? shim_copy(argc, argv) : NULL;
	int ret = terminal_end(command_run(argc, argv));

	if (words && ret == EXIT_OK)
		next_print(find_command(words[1]), argc - 1, words + 1);
	free(words);
	return ret;
}

int main(int argc, char **argv)
{
	bool shim = argc && shim_called(argv[0]);
	int ret;

#ifdef HYPTRACE_STATIC
	/* it prints by itself, and forks */
	if (argc && (is_agent(argv[0]) || (shim && argc > 1 && !strcmp(argv[1], "agent"))))
		return cmd_agent(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "agent"))
		return cmd_agent(argc - 1, argv + 1);
#endif
	if (shim && !is_served(argc, argv))
		return shim_pass_on(argc, argv);
	ret = terminal_open();
	if (!ret)
		return main_run(argc, argv);
	fprintf(stderr, "hyptrace: %s\n", strerror(-ret));
	return EXIT_FAILED;
}
