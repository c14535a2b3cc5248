// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <tracefs.h>
#include <unistd.h>

#include "guest/guest.h"
#include "list-priv.h"

static const char usage[] =
	"usage: hyptrace list [--guests] [--buffers] [--events [GLOB]] [--probe[=PORT]] [--json]\n"
	"\n"
	"Shows what there is to record: without options guests, buffers and how many events.\n"
	"\n"
	"  -g, --guests           the machine's virtual machines: VMM, pid, CID, vCPU threads\n"
	"  -b, --buffers          the host's trace buffers and the hypervisor's, and their state\n"
	"  -e, --events [GLOB]    events of the hypervisor and the host; GLOB matches an event,\n"
	"                         a system, or system:event\n"
	"  -p, --probe[=PORT]     with the guests: does something listen on the agent's port "
	"(823)?\n"
	"  -j, --json             for programs\n"
	"  -v, --verbose          what could not be asked, and why\n"
	"  -h, --help             this text\n";

struct list_opts {
	bool guests, buffers, events, json, verbose;
	const char *glob;
	uint32_t probe;
};

static int parse_port(const char *text, uint32_t *port)
{
	uint64_t n = GUEST_PORT;

	if (text && (parse_u64(text, &n) || !n || n >= UINT32_MAX)) {
		fprintf(stderr, "hyptrace: --probe: '%s' is no port\n", text);
		return -EINVAL;
	}
	*port = (uint32_t)n;
	return 0;
}

/* --events takes its GLOB with '=' or as the next word */
static const char *event_glob(int argc, char **argv)
{
	if (optarg)
		return optarg;
	if (optind < argc && argv[optind][0] != '-')
		return argv[optind++];
	return "*";
}

static const struct option options[] = {
	{ "guests", no_argument, NULL, 'g' },	    { "buffers", no_argument, NULL, 'b' },
	{ "events", optional_argument, NULL, 'e' }, { "probe", optional_argument, NULL, 'p' },
	{ "json", no_argument, NULL, 'j' },	    { "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },	    { 0 },
};

/* False: *status is what to end with. */
static bool parse_options(struct list_opts *o, int argc, char **argv, int *status)
{
	int c;

	*status = EXIT_USAGE;
	while ((c = getopt_long(argc, argv, "gbe::p::jvh", options, NULL)) >= 0) {
		switch (c) {
		case 'g':
			o->guests = true;
			break;
		case 'b':
			o->buffers = true;
			break;
		case 'e':
			o->events = true;
			o->glob = event_glob(argc, argv);
			break;
		case 'p':
			if (parse_port(optarg, &o->probe))
				return false;
			break;
		case 'j':
			o->json = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			*status = EXIT_OK;
			return false;
		default:
			return false;
		}
	}
	if (optind == argc)
		return true;
	fprintf(stderr, "hyptrace: list takes no '%s'\n%s", argv[optind], usage);
	return false;
}

static void verbose_log(void *ctx, enum log_level level, const char *msg)
{
	console_log(ctx, level == LOG_DEBUG ? LOG_INFO : level, msg);
}

/* -1 with a message when it cannot be opened. */
static int open_tracing_dir(const struct log *log)
{
	const char *dir = getenv("HYPTRACE_TRACING_DIR");
	int fd;

	if (!dir || !*dir)
		dir = tracefs_tracing_dir();
	if (!dir) {
		log_err(log, "no tracefs here: is it mounted on /sys/kernel/tracing?");
		return -1;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		log_err(log, "cannot open '%s': %s%s", dir, strerror(errno),
			errno == EACCES ? " (are you root?)" : "");
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
		ret = list_buffers(l);
	if (!ret && o->events)
		ret = list_events(l, o->glob);
	if (l->json)
		json_object_end(l->json);
	return ret;
}

int cmd_list(int argc, char **argv)
{
	struct list_opts o = { 0 };
	struct console console = { 0 };
	struct buf text = { 0 };
	struct json json = { .out = &text };
	struct list l = { .tracing = -1 };
	struct log log = console_as_log(&console);
	bool traced;
	int ret;

	if (!parse_options(&o, argc, argv, &ret))
		return ret;
	if (!o.guests && !o.buffers && !o.events)
		o.guests = o.buffers = o.events = true;
	traced = o.buffers || o.events;
	if (o.verbose)
		log.fn = verbose_log;
	l.log = &log;
	l.root = getenv("HYPTRACE_ROOT") ?: "";
	l.probe = o.probe;
	l.out = o.json ? NULL : stdout;
	l.json = o.json ? &json : NULL;
	if (traced)
		l.tracing = open_tracing_dir(&log);
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
	if (!ret && (fflush(stdout) || ferror(stdout)))
		ret = -EIO;
	return ret ? EXIT_FAILED : EXIT_OK;
}
