// SPDX-License-Identifier: GPL-2.0-only
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_MS 60000
#define BACKLOG	   64

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options {
	const char *early;
	const char *journal; /* NULL: the first place that will do; "": in memory */
	bool daemon;
	bool help, version;
};

static const char usage_text[] =
	"usage: hyptrace-agent [OPTIONS]\n"
	"Lets hyptrace record -A and trace-cmd record -A trace this guest.\n"
	"\n"
	"  -p, --port PORT        port to listen on (823)\n"
	"      --listen ADDRESS   vsock (default); tcp:ADDR[:PORT], for the recorder at ADDR\n"
	"                         only; unix:PATH\n"
	"      --cid N            vsock: let this CID connect too (2, the host, always may)\n"
	"      --allow EVENTS     only these events may be traced, e.g. 'sched:*' (repeatable)\n"
	"      --early EVENTS     record these from now on, for the first recorder "
	"(comma-separated)\n"
	"      --timeout SECONDS  for each wait on a recorder (60)\n"
	"      --journal FILE     where to note what was changed in tracefs; none: nowhere\n"
	"  -D, --daemon           go to the background, messages to the system's log\n"
	"  -v, --verbose          say more\n"
	"  -h, --help\n"
	"      --version\n";

static void say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0)
		_exit(EXIT_FAILED);
}

/* ---- options ---------------------------------------------------------------- */

static bool is(const char *word, const char *key, const char *name)
{
	return (key && !strcmp(word, key)) || !strcmp(word, name);
}

static int usage_error(struct agent *a, const char *what, const char *why)
{
	log_err(&a->log, "%s: %s (hyptrace-agent -h tells the options)", what, why);
	return -EINVAL;
}

static int parse_number(struct agent *a, const char *word, const char *arg, uint64_t min, uint64_t max,
			uint64_t *n)
{
	if (parse_u64(arg, n) || *n < min || *n > max)
		return usage_error(a, word, "not a number that can be");
	return 0;
}

static int parse_listen(struct agent *a, const char *arg)
{
	uint32_t port = a->addr.port;

	if (transport_parse(&a->addr, arg))
		return usage_error(a, arg, "not an address: vsock, tcp:ADDR[:PORT], unix:PATH");
	a->addr.cid = TRANSPORT_CID_ANY;
	if (a->addr.kind == TRANSPORT_UNIX)
		a->addr.port = port;
	if (a->addr.kind != TRANSPORT_TCP)
		return 0;
	/* the named one is who may come, not where we are */
	a->peer = a->addr;
	if (strncmp(a->addr.host, "127.", 4) && strcmp(a->addr.host, "::1"))
		a->addr.host[0] = 0;
	return 0;
}

/* With an argument. 1: taken, 0: not one of these, or -errno. */
static int parse_with(struct agent *a, struct options *o, const char *word, const char *arg)
{
	uint64_t n = 0;
	int ret;

	if (is(word, NULL, "--early")) {
		o->early = arg;
	} else if (is(word, NULL, "--journal")) {
		o->journal = strcmp(arg, "none") ? arg : "";
	} else if (is(word, NULL, "--allow")) {
		ret = strlist_add(&a->allow, arg);
		return ret ? ret : 1;
	} else if (is(word, NULL, "--listen")) {
		ret = parse_listen(a, arg);
		return ret ? ret : 1;
	} else if (is(word, "-p", "--port")) {
		ret = parse_number(a, word, arg, 0, UINT32_MAX - 1, &n);
		a->addr.port = (uint32_t)n;
		return ret ? ret : 1;
	} else if (is(word, NULL, "--timeout")) {
		ret = parse_number(a, word, arg, 1, 86400, &n);
		a->timeout_ms = (int64_t)n * 1000;
		return ret ? ret : 1;
	} else if (is(word, NULL, "--cid")) {
		if (a->n_cids == ARRAY_SIZE(a->cids))
			return usage_error(a, word, "too many");
		ret = parse_number(a, word, arg, 0, UINT32_MAX - 1, &n);
		a->cids[a->n_cids++] = (uint32_t)n;
		return ret ? ret : 1;
	} else {
		return 0;
	}
	return 1;
}

/* Without one. */
static bool parse_flag(struct options *o, const char *word)
{
	if (is(word, "-D", "--daemon"))
		o->daemon = true;
	else if (is(word, "-h", "--help"))
		o->help = true;
	else if (is(word, NULL, "--version"))
		o->version = true;
	else if (is(word, "-v", "--verbose"))
		log_verbose();
	else
		return false;
	return true;
}

static int parse(struct agent *a, struct options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *eq = NULL;
		char name[32];
		int ret;

		if (parse_flag(o, word))
			continue;
		if (!strncmp(word, "--", 2))
			eq = strchr(word, '=');
		if (eq && (size_t)(eq - word) < sizeof(name)) {
			memcpy(name, word, (size_t)(eq - word));
			name[eq - word] = 0;
			ret = parse_with(a, o, name, eq + 1);
		} else {
			ret = parse_with(a, o, word, i + 1 < argc ? argv[i + 1] : "");
			if (ret > 0 && ++i == argc)
				return usage_error(a, word, "needs an argument");
		}
		if (ret <= 0)
			return ret ? ret : usage_error(a, word, "no such option");
	}
	return 0;
}

/* ---- places ---------------------------------------------------------------- */

/*
 * The working directory becomes the tracing directory: it stays reachable when
 * an initramfs hands over to the real root. HYPTRACE_TRACING_DIR is for tests.
 */
static int enter_tracing_dir(struct agent *a)
{
	const char *fake = getenv("HYPTRACE_TRACING_DIR"), *dir = "/sys/kernel/tracing";
	struct stat st;

	if (fake && *fake) {
		dir = fake;
		log_info(&a->log, "tracing directory %s (HYPTRACE_TRACING_DIR): a fake", fake);
	} else if (stat("/sys/kernel/tracing/trace", &st) < 0) {
		if (!stat("/sys/kernel/debug/tracing/trace", &st))
			dir = "/sys/kernel/debug/tracing";
		else if (mount("tracefs", dir, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
			log_err(&a->log, "cannot mount tracefs on %s: %s", dir, strerror(errno));
	}
	if (chdir(dir) < 0 || faccessat(AT_FDCWD, "trace", F_OK, 0) < 0) {
		log_err(&a->log, "cannot use the tracing directory '%s': %s", dir, strerror(errno));
		return -errno;
	}
	a->tracing_dir = ".";
	a->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static const char *const journals[] = { "/run/hyptrace-agent.journal", "/dev/.hyptrace-agent.journal" };

/* It is believed after a crash: no other user may have written it. */
static bool ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 0022) && st->st_nlink == 1;
}

/* /run, or /dev, which Android and an initramfs have; neither need live longer than the kernel. */
static const char *find_journal(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(journals); i++) {
		char dir[] = "/run";
		struct stat st;

		memcpy(dir, journals[i], 4);
		if (access(dir, W_OK) < 0)
			continue;
		if (lstat(journals[i], &st) < 0 || ours(&st))
			return journals[i];
	}
	return NULL;
}

/* What an agent that was killed could not put back. */
static int recover_from(struct agent *a, const char *journal)
{
	struct undo *u;
	struct stat st;
	int ret;

	if (lstat(journal, &st) < 0 || !ours(&st))
		return 0;
	ret = undo_load(&u, a->tracing_dir, journal, &a->log);
	if (ret == -EBUSY)
		return ret;
	if (!ret) {
		ret = undo_all(u);
		undo_free(u);
		log_warn(&a->log, "put back what a killed agent had changed (%s)",
			 ret ? "not all of it" : journal);
	}
	unlink(journal);
	return 0;
}

/* It may have been started when there was no /run yet: all places are looked at. */
static int recover(struct agent *a, const struct options *o)
{
	int ret = 0;

	if (o->journal)
		return *o->journal ? recover_from(a, o->journal) : 0;
	for (size_t i = 0; i < ARRAY_SIZE(journals) && !ret; i++)
		ret = recover_from(a, journals[i]);
	return ret;
}

/* ---- start ---------------------------------------------------------------- */

static int listen_at(struct agent *a)
{
	char text[160];
	int fd = transport_listen(&a->addr, BACKLOG, &a->addr.port);

	transport_text(&a->addr, text, sizeof(text));
	if (fd < 0) {
		log_err(&a->log, "cannot listen on %s: %s%s", text, strerror(-fd),
			fd == -EAFNOSUPPORT || fd == -ENODEV ? " (no vsock in this kernel?)" : "");
		return fd;
	}
	a->listen_fd = fd;
	log_info(&a->log, "listening on %s", text);
	return 0;
}

static int go_background(struct agent *a)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = fork();

	if (pid < 0) {
		log_err(&a->log, "cannot go to the background: %s", strerror(errno));
		return -errno;
	}
	if (pid)
		_exit(EXIT_OK);
	setsid();
	log_to_system();
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	return 0;
}

static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int run(struct agent *a, const struct options *o)
{
	int ret = enter_tracing_dir(a);

	if (ret)
		return ret;
	a->journal = o->journal ? (*o->journal ? o->journal : NULL) : find_journal();
	ret = recover(a, o);
	if (ret)
		return ret;
	/* before anything that could fail or wait */
	ret = o->early ? boot_early(a, o->early) : 0;
	if (!ret && !o->early)
		boot_find(a);
	if (!ret)
		ret = listen_at(a);
	if (!ret && o->daemon)
		ret = go_background(a);
	if (!ret) {
		privs_drop(&a->log);
		ret = serve(a);
		if (ret)
			log_err(&a->log, "cannot go on: %s", strerror(-ret));
	}
	if (a->boot.early && a->journal) {
		boot_release(&a->boot);
		unlink(a->journal);
	}
	boot_release(&a->boot);
	if (a->listen_fd >= 0 && a->addr.kind == TRANSPORT_UNIX)
		unlink(a->addr.host);
	return ret;
}

int main(int argc, char **argv)
{
	struct agent a = {
		.log = { .fn = agent_log },
		.proc_fd = -1,
		.listen_fd = -1,
		.addr = { .kind = TRANSPORT_VSOCK, .port = MSG_PORT, .cid = TRANSPORT_CID_ANY },
		.cids = { TRANSPORT_CID_HOST },
		.n_cids = 1,
		.timeout_ms = TIMEOUT_MS,
	};
	struct options o = { 0 };
	int status = EXIT_OK;

	/* one heap for all threads: arenas would cost megabytes */
	mallopt(M_ARENA_MAX, 1);
	if (parse(&a, &o, argc, argv)) {
		status = EXIT_USAGE;
	} else if (o.help || o.version) {
		say(STDOUT_FILENO, o.help ? usage_text : "hyptrace-agent " HYPTRACE_VERSION "\n");
	} else {
		block_signals();
		status = run(&a, &o) ? EXIT_FAILED : EXIT_OK;
	}
	strlist_release(&a.allow);
	return status;
}
