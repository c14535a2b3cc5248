// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace record: the command line, or default events, become a plan, which the session carries out. */

#include "cmd.h"
#include "base/shim.h"
#include "base/signals.h"
#include "record/guest/guest.h"
#include "record/drain/remote.h"

static int record_plan_run(const struct record_plan *plan)
{
	struct console console = { .quiet = plan->quiet };
	struct log log = { .fn = console_log, .ctx = &console };
	struct session_summary sum;
	struct session_opts o = {
		.tracing_dir = getenv("HYPTRACE_TRACING_DIR"),
		.root = getenv("HYPTRACE_ROOT"),
		.stop_fd = stop_signals(),
		.dump_fd = plan->flight_ms ? dump_signal() : -1,
		.progress = progress_recording,
		.writing = progress_writing,
		.ctx = &console,
		.log = &log,
	};
	int ret;

	if (o.stop_fd < 0 || (plan->flight_ms && o.dump_fd < 0)) {
		fprintf(stderr, "hyptrace: signalfd: %s\n",
			strerror(-(o.stop_fd < 0 ? o.stop_fd : o.dump_fd)));
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < plan->notes.n; i++)
		log_info(&log, "--config: '%s' is not recorded here", plan->notes.v[i]);
	if (!plan->command && !plan->duration_ms && !plan->quiet && isatty(STDERR_FILENO))
		fputs("hyptrace: Ctrl-C ends the recording\n", stderr);
	ret = session_record(plan, &o, &sum);
	progress_end(&console);
	close(o.stop_fd);
	fd_close(&o.dump_fd);
	if (!ret || sum.file_bytes || *sum.kept)
		print_summary(&sum, record_plan_numbered(plan) ? sum.output : plan->output, &log);
	if (ret || sum.not_restored)
		return console_status(&console, ret ?: -EIO);
	for (size_t i = 0; i < sum.n_buffers; i++)
		if (sum.buffers[i].guest_lost || sum.buffers[i].unread)
			return EXIT_PART_LOST;
	return EXIT_OK;
}

#define LINE_MAX_KEPT 4000 /* bytes */

static int record_line(int argc, char **argv)
{
	struct buf line = { 0 }; /* one for a shell, for the file: parsing changes their order */
	struct record_plan plan = { 0 };
	struct opts_error err = { 0 };
	int ret;

	buf_addstr(&line, "hyptrace");
	for (int i = 0; i < argc; i++)
		shell_word(&line, argv[i]);
	for (size_t i = 0; i < line.len; i++)
		line.data[i] = line.data[i] == '\n' ? ' ' : line.data[i];
	if (line.len > LINE_MAX_KEPT) {
		line.len = LINE_MAX_KEPT;
		buf_addstr(&line, " ...");
	}
	ret = buf_str(&line) ? grammar_parse_line(&plan, argc, argv, &err) : -ENOMEM;
	plan.line = (char *)line.data;
	ret = ret ? command_stopped(&grammar_table, ret, &err) : record_plan_run(&plan);
	record_plan_release(&plan);
	return ret;
}

/* Without options everything that is there is recorded, and its command line printed. */
static int record_defaults(void)
{
	struct console console = { 0 };
	struct log log = { .fn = console_log, .ctx = &console };
	struct guest_opts o = { .root = getenv("HYPTRACE_ROOT") };
	struct strlist words = { 0 };
	struct guests all = { 0 };
	int ret, tracing = list_open_tracing(&log);
	char **argv;

	if (tracing < 0)
		return EXIT_FAILED;
	ret = defaults_host(&words, tracing) ?: guests_find(&all, &o);
	for (size_t i = 0; i < all.n && !ret; i++)
		if (guest_probe(&all.v[i], GUEST_PORT, 1000) == GUEST_LISTENS)
			ret = defaults_guest(&words, &all.v[i]);
	guests_release(&all);
	close(tracing);
	argv = ret ? NULL : shim_copy((int)words.n, words.v);
	if (argv) {
		fputs("hyptrace: nothing is named, so this is recorded: hyptrace", stderr);
		for (size_t i = 0; i < words.n; i++)
			fprintf(stderr, " %s", ESCAPED(words.v[i]));
		fputc('\n', stderr);
	}
	ret = argv ? record_line((int)words.n, argv) : EXIT_FAILED;
	free(argv);
	strlist_release(&words);
	return ret;
}

bool record_takes(int argc, char **argv)
{
	struct record_plan plan = { 0 };
	struct opts_error err;
	bool takes = false;

	/* "-B hyp" or "-Bhyp": trace-cmd would make an instance of that name, and record nothing in it */
	for (int i = 1; i < argc && !takes; i++) {
		const char *name = strncmp(argv[i], "-B", 2) ? "" : argv[i][2] ? argv[i] + 2 : argv[i + 1];

		takes = name && record_plan_remote(name);
	}
	takes = takes || !grammar_parse_line(&plan, argc, argv, &err);
	record_plan_release(&plan);
	return takes;
}

int cmd_record(int argc, char **argv)
{
	return argc == 1 && isatty(STDERR_FILENO) ? record_defaults() : record_line(argc, argv);
}

static int defaults_add(struct strlist *words, const char *option, const char *value)
{
	return strlist_add(words, option) ?: strlist_add(words, value);
}

int defaults_host(struct strlist *words, int tracing)
{
	static const char *const systems[] = { "kvm", "sched" };
	int ret = strlist_add(words, "record");

	if (!ret && remote_find(tracing))
		ret = defaults_add(words, "-B", REMOTE_HYP);
	for (size_t i = 0; i < ARRAY_SIZE(systems) && !ret; i++) {
		char path[32];

		snprintf(path, sizeof(path), "events/%s", systems[i]);
		if (file_there(tracing, path))
			ret = defaults_add(words, "-e", systems[i]);
	}
	return ret;
}

int defaults_guest(struct strlist *words, const struct guest *g)
{
	/* a name that -A would take for something else is left out */
	const char *name = g->name && *g->name && !strpbrk(g->name, "@:/ \t\n") ? g->name : "";
	const char *at = *name ? "@" : "";
	char *address =
		g->uds ? str_printf("%s%sunix:%s", name, at, g->uds) : str_printf("%s%s%u", name, at, g->cid);
	int ret = address ? defaults_add(words, "-A", address) : -ENOMEM;

	free(address);
	return ret ?: defaults_add(words, "-e", "sched") ?: defaults_add(words, "-e", "irq");
}
