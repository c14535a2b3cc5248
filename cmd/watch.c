// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace watch: who steals from which vCPU, and what exits cost, counted by the kernel all the time. */
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "cmd.h"
#include "base/clock.h"
#include "base/signals.h"
#include "record/tracefs/undo.h"
#include "record/watch/watcher.h"

/* Dumps of --dump-when. */
struct watch_dumps {
	const char *when;  /* the option's text */
	const char *dir;   /* where the flight recorder's files are */
	uint64_t max, gap; /* ms */
	uint64_t breaches, n;
	uint64_t asked;	      /* the last one, ns of CLOCK_REALTIME, as files' times */
	const char *hindered; /* the reason that was logged last */
	char *file;	      /* that is being written, then explained */
	pid_t why;	      /* 0: not yet */
};

struct watch_opts {
	uint64_t interval; /* ms */
	uint64_t top, max_series, hyp_window;
	const char *metrics, *journal;
	struct transport_addr listen;
	bool listens;
	struct breach breach;
	struct watch_dumps dumps;
	bool no_exits, once, restore, quiet;
	enum answer_form form;
};

/* Gone at a reboot, as what it is about. */
#define WATCH_JOURNAL "/run/hyptrace-watch.journal"
/* Of the systemd units. */
#define WATCH_DUMP_DIR "/var/lib/hyptrace"

#define WATCH(field) .off = offsetof(struct watch_opts, field)

static int watch_set_listen(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct watch_opts *w = ctx;

	w->listens = true;
	return serve_parse(&w->listen, arg)
		       ? opts_wrong(err, o, arg, "not unix:PATH, 127.0.0.1:PORT or [::1]:PORT")
		       : 0;
}

static int watch_set_breach(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct watch_opts *w = ctx;

	w->dumps.when = arg;
	return breach_parse(&w->breach, arg) ? opts_wrong(err, o, arg, "none of: " BREACH_FORMS) : 0;
}

static const struct opt watch_rows[] = {
	OPT_DURATION('i', "interval", "time from one look to the next (10s)", UNIT_S, UNIT_MS,
		     WATCH(interval), .min = 100, .max = 3600000),
	OPT('m', "metrics", "FILE",
	    "write Prometheus' metrics to FILE at each look; ends with .prom for\n"
	    "node_exporter",
	    opts_set_text, WATCH(metrics)),
	OPT(0, "listen", "ADDRESS", "serve them over HTTP, too: unix:PATH, 127.0.0.1:PORT or [::1]:PORT",
	    watch_set_listen),
	OPT(0, "dump-when", "LIMIT",
	    "while an interval is beyond the limit, let the flight recorder of --dump-dir\n"
	    "write what it holds: " BREACH_FORMS,
	    watch_set_breach),
	OPT(0, "dump-dir", "DIR", "where the flight recorder's files are (" WATCH_DUMP_DIR ")", opts_set_text,
	    WATCH(dumps.dir)),
	OPT(0, "dump-max", "N", "at most so many dumps (10)", opts_set_number, WATCH(dumps.max), .min = 1,
	    .max = 10000),
	OPT_DURATION(0, "dump-gap", "none sooner than so long after another one (10min)", UNIT_S, UNIT_MS,
		     WATCH(dumps.gap), .max = 86400000ull * 365),
	OPT(0, "once", NULL, "one look, an interval after the start; then exit", opts_set_flag, WATCH(once)),
	OPT(0, "no-exits", NULL, "only stolen time and wake-ups, which cost guests less", opts_set_flag,
	    WATCH(no_exits)),
	OPT_DURATION(0, "hyp-window", "sample the hypervisor for so long at each look (not at all)", UNIT_MS,
		     1, WATCH(hyp_window), .min = UNIT_MS, .max = UNIT_S),
	OPT('t', "top", "N", "so many names of each vCPU have their own series (10)", opts_set_number,
	    WATCH(top), .min = 1, .max = 1000),
	OPT(0, "max-series", "N", "at most so many series of vCPUs (10000)", opts_set_number,
	    WATCH(max_series), .min = 1, .max = 10000000),
	OPT_JSON("for programs: an object for each look, times in ns", WATCH(form)),
	OPT(0, "journal", "FILE", "note here what is changed in tracefs, none: nowhere\n(" WATCH_JOURNAL ")",
	    opts_set_text, WATCH(journal)),
	OPT(0, "restore", NULL, "put back what a killed watch has left, and exit", opts_set_flag,
	    WATCH(restore)),
	OPT_QUIET(WATCH(quiet)),
	OPT_HELP,
};

const struct opts_table watch_table = {
	.command = "watch",
	.usage = "usage: hyptrace watch [OPTION...]\n"
		 "       hyptrace watch --restore [--journal FILE]\n"
		 "\n"
		 "Counts all the time, in the kernel's histograms and without a recording: the time that\n"
		 "each task took from each VM's vCPUs, their wake-ups and their exits by reason. Prints\n"
		 "the sums since its start every 10 s.\n"
		 "\n",
	OPT_ROWS(watch_rows),
};

#ifdef HYPTRACE_TRACEFS

/* Upper bound of the bucket that the 99th percentile lies in; not known: beyond all bounds. */
static struct answer_cell cell_p99(const struct watch_counts *c)
{
	uint64_t below = 0;

	for (unsigned int i = 0; i < WATCH_BUCKETS - 1; i++) {
		below += c->buckets[i];
		if (below >= c->n - c->n / 100)
			return CELL_N(WATCH_BOUND_NS(i));
	}
	return CELL_NONE;
}

/* columns: vCPU; name or reason, but of wake-ups; number; time; percentile. Of stolen time only what it has.
 */
static void watch_table_write(struct answer *a, struct watcher *w, const char *key, const char *title,
			      enum watch_kind kind, const struct answer_column *columns, size_t n)
{
	enum watch_kind to = kind == WATCH_STOLEN ? WATCH_BY : kind;
	const struct watch_vcpu *v;
	const struct watch_sum *s = NULL;

	answer_table(a, key, title, columns, n);
	while ((s = watcher_next(w, s, kind, to, &v))) {
		char vcpu[300], label[32];
		struct answer_cell cells[5] = { CELL_WORD(vcpu) };
		size_t at = 1;

		snprintf(vcpu, sizeof(vcpu), "%s:%u", v->vm, v->cpu);
		if (kind != WATCH_WAKEUP)
			cells[at++] = CELL_WORD(watcher_label(w, s, label));
		if (kind != WATCH_STOLEN)
			cells[at++] = CELL_N(s->all.n);
		cells[at++] = CELL_N(watcher_ns(s));
		if (kind != WATCH_STOLEN)
			cells[at++] = cell_p99(&s->all);
		answer_row(a, cells);
	}
	answer_table_end(a);
}

static int watch_print(struct watcher *w, const struct watch_opts *o, const struct log *log)
{
	const struct answer_column vcpu = { "vcpu", "vCPU", ANSWER_WORD }, *figures = duration_columns,
				   below = { "p99_below_ns", "p99 below", ANSWER_DURATION },
				   own[] = { { "vcpus", "vCPUs", ANSWER_COUNT },
					     { "dropped", "dropped", ANSWER_COUNT },
					     { "cpu_ns", "own CPU time", ANSWER_DURATION } },
				   stolen[] = { vcpu, { "by", "by", ANSWER_WORD }, figures[DURATION_TOTAL] },
				   exits[] = { vcpu,
					       { "reason", "reason", ANSWER_WORD },
					       figures[DURATION_COUNT],
					       figures[DURATION_TOTAL],
					       below },
				   wakeups[] = { vcpu, figures[DURATION_COUNT], figures[DURATION_TOTAL],
						 below };
	struct buf text = { 0 };
	struct answer a;

	answer_begin(&a, o->form, &text);
	answer_object(&a, "watch", own, ARRAY_SIZE(own),
		      (struct answer_cell[]){ CELL_N(w->n_vcpus), CELL_N(w->dropped),
					      CELL_N(clock_now(CLOCK_PROCESS_CPUTIME_ID)) });
	watch_table_write(&a, w, "stolen", "Time in which a vCPU could run and others had its CPU",
			  WATCH_STOLEN, stolen, ARRAY_SIZE(stolen));
	watch_table_write(&a, w, "wakeups", "From the wake-up of a vCPU until it runs", WATCH_WAKEUP, wakeups,
			  ARRAY_SIZE(wakeups));
	watch_table_write(&a, w, "exits", "From an exit of a vCPU until it is entered again", WATCH_EXIT,
			  exits, ARRAY_SIZE(exits));
	answer_end(&a);
	return print_answer(&text, log);
}

#define DUMP_FREE	  (1ull << 30) /* bytes that a dump leaves on the disk */
#define DUMP_WAIT_MINUTES 10

/* The limit is exceeded: asks for a dump, unless there are enough. worst: the value. */
static void dumps_ask(struct watch_dumps *d, const char *worst, const struct log *log)
{
	uint64_t now = clock_now(CLOCK_REALTIME);
	struct statvfs fs;
	const char *hindered = d->file || d->why ? "the last one is not finished"
			       : d->n >= d->max	 ? "there are as many as --dump-max allows"
			       : d->n && now - d->asked < d->gap * UNIT_MS
				       ? "the last one is not older than --dump-gap"
			       : !statvfs(d->dir, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize < DUMP_FREE
				       ? "less than 1 GiB of the disk is free"
				       : NULL;
	int ret = hindered ? 0 : flight_ask(d->dir, &d->file);

	d->breaches++;
	if (ret == -ENOENT)
		hindered = "no flight recorder writes there; start one: systemctl start hyptrace-ring";
	else if (ret)
		hindered = errno_text(ret);
	if (!hindered) {
		d->n++;
		d->asked = now;
		log_err(log, "%s: '%s' holds, %s will have the seconds before", worst, d->when, d->file);
	} else if (d->hindered != hindered) {
		log_err(log, "%s: '%s' holds, no dump into '%s': %s", worst, d->when, d->dir, hindered);
	}
	d->hindered = hindered;
}

/* Runs hyptrace why of the dump, into NAME.why.txt beside it. */
static int dumps_explain(struct watch_dumps *d)
{
	char *argv[] = { "hyptrace", "why", d->file, NULL };
	char *out = str_printf("%s.why.txt", d->file);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int ret;

	if (!out)
		return -ENOMEM;
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_EXCL, 0600);
	posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
	ret = -posix_spawn(&d->why, "/proc/self/exe", &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	if (!ret)
		setpriority(PRIO_PROCESS, (id_t)d->why, 19);
	free(out);
	return ret;
}

/* Explains a dump once it is there. */
static void dumps_go_on(struct watch_dumps *d, const struct log *log)
{
	uint64_t now = clock_now(CLOCK_REALTIME);
	struct stat st;
	int ret = 0, status;

	if (d->why) {
		if (waitpid(d->why, &status, WNOHANG) == d->why)
			d->why = 0;
	} else if (d->file && !stat(d->file, &st) && (uint64_t)st.st_mtime >= d->asked / UNIT_S) {
		ret = dumps_explain(d);
		if (ret)
			log_err(log, "cannot explain '%s': %s", d->file, errno_text(ret));
	} else if (!d->file || now - d->asked < DUMP_WAIT_MINUTES * 60 * UNIT_S) {
		return;
	} else {
		ret = -ETIMEDOUT;
		log_err(log, "'%s' was not written within %u minutes; see the flight recorder's messages",
			d->file, DUMP_WAIT_MINUTES);
	}
	if (d->why)
		return;
	free(d->file);
	d->file = NULL;
}

/* Metrics to a file and to readers. server NULL: there are none. */
static int watch_publish(struct watcher *w, const struct watch_opts *o, struct serve *server,
			 const struct log *log)
{
	struct buf text = { 0 };
	int ret;

	watcher_metrics(w, &text);
	ret = (o->metrics ? output_write(o->metrics, &text, &(struct inputs){ 0 }, log) : 0)
		      ?: (server ? serve_put(server, &text) : 0);
	buf_release(&text);
	return ret;
}

#define WATCH_IDLE_MS 1000 /* at most, before idle readers and dumps are looked after */

static int watch_loop(struct watcher *w, struct watch_opts *o, struct serve *server, int stop_fd,
		      const struct log *log)
{
	uint64_t interval = o->interval * UNIT_MS, next = mono_ns() + interval;
	struct pollfd p[2] = { { .fd = stop_fd, .events = POLLIN },
			       { .fd = server ? serve_fd(server) : -1, .events = POLLIN } };
	bool publishes = o->metrics || server;
	int ret = server ? watch_publish(w, o, server, log) : 0;
	char worst[300];

	while (!ret && !p[0].revents) {
		uint64_t now = mono_ns();

		if (now < next) {
			uint64_t ms = (next - now + UNIT_MS - 1) / UNIT_MS;

			poll(p, ARRAY_SIZE(p),
			     (int)((server || o->dumps.file) && ms > WATCH_IDLE_MS ? WATCH_IDLE_MS : ms));
			if (server)
				serve_run(server);
			dumps_go_on(&o->dumps, log);
			continue;
		}
		ret = watcher_look(w);
		if (!ret && o->breach.metric && breach_holds(&o->breach, w, mono_ns(), worst))
			dumps_ask(&o->dumps, worst, log);
		w->breaches = o->dumps.breaches;
		w->dumps = o->dumps.n;
		if (!ret && publishes)
			ret = watch_publish(w, o, server, log);
		if (!ret && (!publishes || o->form != ANSWER_TEXT))
			ret = watch_print(w, o, log);
		if (o->once)
			break;
		/* after a long stop of the machine the looks in between are not made up for */
		next = next + interval > now ? next + interval : now + interval;
	}
	return ret;
}

static int watch_run(struct watch_opts *o, const struct log *log, bool *part)
{
	char *dir = tracefs_dir(getenv("HYPTRACE_TRACING_DIR"), log);
	struct watcher_opts opts = { .tracing_dir = dir,
				     .journal = strcmp(o->journal, "none") ? o->journal : NULL,
				     .root = getenv("HYPTRACE_ROOT") ?: "",
				     .no_exits = o->no_exits,
				     .hyp_window = o->hyp_window,
				     .top = o->top,
				     .max_series = o->max_series,
				     .log = log };
	struct watcher *w = NULL;
	struct serve *server = NULL;
	/* first, so that all is put back whenever a signal comes */
	int stop_fd = stop_signals(), ret = !dir ? -ENOENT : stop_fd < 0 ? stop_fd : 0;

	ret = ret ?: watcher_restore(&opts);
	if (!ret && !o->restore && o->listens)
		ret = serve_open(&server, &o->listen, log);
	if (!ret && !o->restore)
		ret = watcher_open(&w, &opts) ?: watch_loop(w, o, server, stop_fd, log);
	*part = w && (w->part || !w->n_vcpus);
	ret = watcher_close(w) ?: ret;
	serve_close(server);
	fd_close(&stop_fd);
	free(dir);
	return ret;
}

#else

static int watch_run(struct watch_opts *o, const struct log *log, bool *part)
{
	return log_fail(log, -ENOTSUP,
			"this hyptrace was built without libtracefs, which watch needs; install "
			"libtracefs-dev and build it again");
}

#endif

int cmd_watch(int argc, char **argv)
{
	struct watch_opts o = { .interval = 10000,
				.top = 10,
				.max_series = 10000,
				.journal = WATCH_JOURNAL,
				.dumps = { .dir = WATCH_DUMP_DIR, .max = 10, .gap = 600000 } };
	struct console console = { 0 };
	struct log log = { .fn = console_log, .ctx = &console };
	bool part = false;
	int status;

	if (!command_words(&watch_table, &argc, argv, &o, 0, 0, &status))
		return status;
	console.quiet = o.quiet;
	if (o.breach.of_hyp && !o.hyp_window) {
		log_err(&log, "--dump-when hyp needs --hyp-window");
		return EXIT_USAGE;
	}
	status = console_status(&console, watch_run(&o, &log, &part));
	free(o.dumps.file);
	return status == EXIT_OK && part ? EXIT_PART_LOST : status;
}
