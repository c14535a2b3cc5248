// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace list: the machine's guests, trace buffers and events. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/guest.h"
#include "list-priv.h"
#include "tracefs/dir.h"

struct list_opts {
	bool guests, buffers, events, json, verbose, quiet;
	const char *glob;
	uint32_t probe;
};

static int take_port(void *ctx, const struct opt *row, const char *arg, struct opts_error *err)
{
	uint64_t n = GUEST_PORT;

	if (arg && (parse_u64(arg, &n) || !n || n >= UINT32_MAX))
		return opts_wrong(err, row, arg, "not a port");
	((struct list_opts *)ctx)->probe = (uint32_t)n;
	return 0;
}

static int take_glob(void *ctx, const struct opt *row, const char *arg, struct opts_error *err)
{
	struct list_opts *o = ctx;

	o->events = true;
	o->glob = arg ? arg : "*";
	return 0;
}

#define LIST(field) .off = offsetof(struct list_opts, field)

static const struct opt list_rows[] = {
	OPT('g', "guests", NULL, "the machine's virtual machines: VMM, pid, CID, vCPU threads", opts_set_flag,
	    LIST(guests)),
	OPT('b', "buffers", NULL, "the host's trace buffers and the hypervisor's, and their state",
	    opts_set_flag, LIST(buffers)),
	OPT('e', "events", "[GLOB]",
	    "events of the hypervisor and the host; GLOB matches an event,\n"
	    "a system, or system:event",
	    take_glob),
	OPT('p', "probe", "[=PORT]", "with the guests: does something listen on the agent's port (823)?",
	    take_port),
	OPT('j', "json", NULL, "for programs", opts_set_flag, LIST(json)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, LIST(quiet)),
	OPT('v', "verbose", NULL, "what could not be asked, and why", opts_set_flag, LIST(verbose)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table list_table = {
	.command = "list",
	.usage = "usage: hyptrace list [--guests] [--buffers] [--events [GLOB]] [--probe[=PORT]] [--json]\n"
		 "\n"
		 "Shows what there is to record: without options guests, buffers and how many events.\n"
		 "\n",
	.rows = list_rows,
	.n = ARRAY_SIZE(list_rows),
};

static void verbose_log(void *ctx, enum log_level level, const char *msg)
{
	console_log(ctx, level == LOG_DEBUG ? LOG_INFO : level, msg);
}

int list_open_tracing(const struct log *log)
{
	char *dir = tracefs_dir(getenv("HYPTRACE_TRACING_DIR"), log);
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (dir && fd < 0)
		log_err(log, "cannot open '%s': %s%s", dir, strerror(errno),
			errno == EACCES ? " (are you root?)" : "");
	free(dir);
	return fd;
}

static int list_all(struct list *l, const struct list_opts *o)
{
	int ret = 0;

	if (l->json)
		json_object(l->json);
	if (o->guests)
		ret = list_guests(l);
	if (!ret && o->buffers)
		ret = list_all_buffers(l);
	if (!ret && o->events)
		ret = list_events(l, o->glob);
	if (l->json)
		json_object_end(l->json);
	return ret;
}

/* By a long option, which trace-cmd's list does not have: its letters mean other things. */
bool list_takes(int argc, char **argv)
{
	struct list_opts o = { 0 };
	struct opts_error err;
	bool is_long = false;

	for (int i = 1; i < argc; i++)
		is_long |= !strncmp(argv[i], "--", 2);
	return is_long && !opts_parse(&list_table, &argc, argv, &o, &err) && argc == 1;
}

int cmd_list(int argc, char **argv)
{
	struct list_opts o = { 0 };
	struct console console = { 0 };
	struct buf text = { 0 };
	struct json json = { .out = &text };
	struct list l = { .tracing = -1 };
	struct log log = console_as_log(&console);
	struct opts_error err;
	bool traced;
	int ret;

	ret = opts_parse(&list_table, &argc, argv, &o, &err);
	if (ret)
		return command_stopped(&list_table, ret, &err);
	if (argc > 1) {
		fprintf(stderr, "hyptrace: list takes no '%s'\n", argv[1]);
		command_usage(&list_table, stderr);
		return EXIT_USAGE;
	}
	if (!o.guests && !o.buffers && !o.events)
		o.guests = o.buffers = o.events = true;
	console.quiet = o.quiet;
	traced = o.buffers || o.events;
	if (o.verbose)
		log.fn = verbose_log;
	l.log = &log;
	l.root = getenv("HYPTRACE_ROOT") ?: "";
	l.probe = o.probe;
	l.out = o.json ? NULL : stdout;
	l.json = o.json ? &json : NULL;
	if (traced)
		l.tracing = list_open_tracing(&log);
	ret = list_all(&l, &o);
	if (!ret && o.json)
		ret = buf_status(&text);
	if (ret)
		log_err(&log, "cannot list: %s", strerror(-ret));
	else if (o.json)
		fputs(buf_str(&text), stdout);
	buf_release(&text);
	/* guests were shown, but what else was asked for could not be */
	if (traced && l.tracing < 0)
		ret = -ENOENT;
	else if (traced)
		close(l.tracing);
	return ret ? EXIT_FAILED : EXIT_OK;
}
