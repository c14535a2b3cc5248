// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace-agent: messages, options, the tracing directory, what a killed agent left, the privileges that it
 * drops, and the start. */
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "agent.h"
#include "base/shim.h"
#include "base/signals.h"

/*
 * Rights after start: the user's own right to tracefs's files, CAP_SYSLOG, without which /proc/kallsyms shows
 * no addresses, and CAP_PERFMON with perf_event_open, where samples may be taken (--profile). No program can
 * be started any more, no file system mounted, no other process touched.
 */

static int drop_capabilities(bool samples)
{
	const uint64_t keep = 1ull << CAP_SYSLOG | (samples ? 1ull << CAP_PERFMON : 0);
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	if (syscall(SYS_capget, &head, caps) < 0)
		return -errno;
	for (int cap = 0; cap <= 63; cap++)
		if (!(keep >> cap & 1) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		caps[i].permitted &= (uint32_t)(keep >> 32 * i);
		caps[i].effective = caps[i].permitted;
		caps[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* The C library's and ours; the same kernel call has several names over the years. */
/* clang-format off */
static const int calls[] = {
	SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_close, SYS_lseek,
	SYS_openat, SYS_mkdirat, SYS_symlinkat, SYS_unlinkat, SYS_faccessat, SYS_newfstatat, SYS_fstat, SYS_fcntl,
	SYS_ftruncate, SYS_flock, SYS_getdents64, SYS_readlinkat, SYS_splice, SYS_pipe2, SYS_ppoll,
	SYS_eventfd2, SYS_signalfd4, SYS_memfd_create, SYS_socket, SYS_bind, SYS_listen, SYS_accept4,
	SYS_connect, SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt, SYS_sendto,
	SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_shutdown, SYS_futex, SYS_clone, SYS_set_robust_list,
	SYS_exit, SYS_exit_group, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk,
	SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_rt_sigreturn, SYS_sigaltstack, SYS_tgkill, SYS_getpid,
	SYS_gettid, SYS_geteuid, SYS_getuid, SYS_uname, SYS_clock_gettime, SYS_clock_nanosleep,
	SYS_nanosleep, SYS_gettimeofday, SYS_getrandom, SYS_sched_setaffinity, SYS_sched_getaffinity,
	SYS_sched_yield, SYS_getcpu, SYS_restart_syscall, SYS_prlimit64,
#ifdef SYS_rseq
	SYS_rseq,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_unlink
	SYS_unlink,
#endif
#ifdef SYS_faccessat2
	SYS_faccessat2,
#endif
	SYS_sysinfo, SYS_fchmod,
	/* for samples only: to be last */
	SYS_perf_event_open, SYS_ioctl,
};
#define CALLS_OF_SAMPLES 2
/* clang-format on */

#if defined(ARCH) && !defined(__SANITIZE_ADDRESS__)
#define STMT(c, v)	 ((struct sock_filter)BPF_STMT(c, v))
#define JUMP(c, v, t, f) ((struct sock_filter)BPF_JUMP(c, v, t, f))

static int filter_calls(bool samples)
{
	const size_t n_calls = ARRAY_SIZE(calls) - (samples ? 0 : CALLS_OF_SAMPLES);
	struct sock_filter f[ARRAY_SIZE(calls) + 8];
	struct sock_fprog prog = { .filter = f };
	size_t n = 0, i;

	f[n++] = STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	f[n++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	f[n++] = STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL);
	f[n++] = STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	/* so that the C library takes clone() */
	f[n++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
	f[n++] = STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	for (i = 0; i < n_calls; i++)
		f[n++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], (uint8_t)(n_calls - i), 0);
	f[n++] = STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	f[n++] = STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = (unsigned short)n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0 ? -errno : 0;
}
#else
static int filter_calls(bool samples)
{
	return calls[0] >= 0 ? -EOPNOTSUPP : 0;
}
#endif

/* EINVAL: the kernel knows of no such thing. */
static const char *outcome(int ret)
{
	return !ret ? "yes" : ret == -EINVAL ? "not in this kernel" : strerror(-ret);
}

/* Longer than recorders wait for a step of another guest, which may be a liar: 5 times 30. */
#define TIMEOUT_S 180
#define BACKLOG	  64
/* Metadata (meta.c), and the answer to a request. */
#define GOES_OUT                                                                                             \
	"kernel symbols and their addresses, printk formats, the names of tasks, the formats of "            \
	"all events of their systems, uname, the clock, the number of CPUs"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct agent_line {
	struct agent a;
	const char *early;
	const char *journal; /* NULL: the first place that will do; "none": in memory */
	uint64_t number;     /* of an option that is one */
	uint64_t timeout;    /* s */
	bool daemon, verbose, version;
};

/* ---- messages: to stderr, syslog or the kernel's log, with a limited rate -------------------- */

/* A flood of connections must not become a flood of lines. */
#define LINES_MAX     40
#define LINES_SECONDS 10

static int sink = STDERR_FILENO;
static bool priorities; /* the sink wants "<6>" */
static bool verbose;

static void log_to_system(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		fd_close(&fd);
	if (fd < 0)
		fd = open("/dev/kmsg", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	sink = fd;
	priorities = true;
}

static void log_line(enum log_level level, const char *msg)
{
	/* facility daemon (3), severities err, warning, info, debug */
	static const int severity[] = { 3, 4, 6, 7 };
	char line[512];
	int n;

	if (priorities)
		n = snprintf(line, sizeof(line), "<%d>hyptrace-agent: %s\n", 3 << 3 | severity[level], msg);
	else
		n = snprintf(line, sizeof(line), "hyptrace-agent: %s%s\n",
			     level == LOG_ERROR ? "error: " : "", msg);
	if (n <= 0)
		return;
	if ((size_t)n >= sizeof(line))
		n = sizeof(line) - 1;
	line[n - 1] = '\n';
	/* one write: lines of several threads do not mix */
	if (write(sink, line, (size_t)n) < 0)
		return;
}

static void agent_log(void *ctx, enum log_level level, const char *msg)
{
	static _Atomic int64_t window;
	static _Atomic int lines, dropped;
	int64_t now = msg_now() / 1000;
	char text[64];

	if (level == LOG_DEBUG && !verbose)
		return;
	if (now - window < LINES_SECONDS) {
		if (++lines > LINES_MAX) {
			dropped++;
			return;
		}
	} else {
		int n = dropped;

		window = now;
		lines = 0;
		dropped = 0;
		snprintf(text, sizeof(text), "%d lines left out", n);
		if (n)
			log_line(LOG_WARN, text);
	}
	log_line(level, msg);
}

static void print_text(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(EXIT_FAILED);
}

static int take_listen(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct agent *a = &((struct agent_line *)ctx)->a;
	uint32_t port = a->addr.port;

	if (transport_parse(&a->addr, arg))
		return opts_wrong(err, o, arg, "not an address: vsock, tcp:ADDR[:PORT], unix:PATH");
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

static int take_agent_port(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct agent_line *l = ctx;
	int ret = opts_set_number(l, o, arg, err);

	if (!ret)
		l->a.addr.port = (uint32_t)l->number;
	return ret;
}

static int take_cid(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct agent_line *l = ctx;
	int ret = opts_set_number(l, o, arg, err);

	if (ret)
		return ret;
	if (l->a.n_cids == ARRAY_SIZE(l->a.cids))
		return opts_wrong(err, o, arg, "too many");
	l->a.cids[l->a.n_cids++] = (uint32_t)l->number;
	return 0;
}

#define LINE(field) .off = offsetof(struct agent_line, field)

static const struct opt agent_rows[] = {
	OPT('p', "port", "PORT", "port to listen on (823)", take_agent_port, LINE(number),
	    .max = UINT32_MAX - 1),
	OPT(0, "listen", "ADDRESS",
	    "vsock (default); tcp:ADDR[:PORT], for the recorder at ADDR\n"
	    "only; unix:PATH",
	    take_listen),
	OPT(0, "cid", "N", "vsock: let this CID connect too (2, the host, always may)", take_cid,
	    LINE(number), .max = UINT32_MAX - 1),
	OPT(0, "allow", "EVENTS", "only these events may be traced, e.g. 'sched:*' (repeatable)",
	    opts_add_text, LINE(a.allow)),
	OPT(0, "probes", NULL, "make the probes that a recorder defines (-e 'p:...');\nthey read any memory",
	    opts_set_flag, LINE(a.probes)),
	OPT(0, "early", "EVENTS", "record these from now on, for the first recorder\n(comma-separated)",
	    opts_set_text, LINE(early)),
	OPT_DURATION(0, "timeout", "for each wait on a recorder (180s)", UNIT_S, UNIT_S, LINE(timeout),
		     .min = 1, .max = 86400),
	OPT(0, "journal", "FILE", "where to note what was changed in tracefs; none: nowhere", opts_set_text,
	    LINE(journal)),
	OPT('D', "daemon", NULL, "go to the background, messages to the system's log", opts_set_flag,
	    LINE(daemon)),
	OPT('v', "verbose", NULL, "say more", opts_set_flag, LINE(verbose)),
	OPT('h', "help", NULL, "print this text", opts_help),
	OPT('V', "version", NULL, "print the version", opts_set_flag, LINE(version)),
};

static const struct opts_table agent_table = {
	.command = "hyptrace-agent",
	.usage = "usage: hyptrace-agent [OPTIONS]\n"
		 "Lets hyptrace record -A and trace-cmd record -A trace this guest.\n"
		 "\n",
	.rows = agent_rows,
	.n = ARRAY_SIZE(agent_rows),
};

/*
 * The working directory becomes the tracing directory: it stays reachable when
 * an initramfs hands over to the real root. HYPTRACE_TRACING_DIR is for tests.
 */
static int enter_tracing_dir(struct agent *a)
{
	const char *fake = getenv("HYPTRACE_TRACING_DIR");
	char *dir = tracefs_dir(fake, &a->log);
	int ret = 0;

	if (!dir)
		return -ENOENT;
	if (fake && *fake)
		log_info(&a->log, "tracing directory %s (HYPTRACE_TRACING_DIR): a fake", fake);
	if (chdir(dir) < 0 || faccessat(AT_FDCWD, "trace", F_OK, 0) < 0)
		ret = log_fail_errno(&a->log, -errno, "cannot use the tracing directory '%s'", dir);
	free(dir);
	/* an initramfs may have none */
	a->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->proc_fd < 0 && errno != ENOENT && !ret)
		ret = log_fail_errno(&a->log, -errno, "cannot open /proc");
	return ret;
}

static const char *const journals[] = { "/run/hyptrace-agent.journal", "/dev/.hyptrace-agent.journal" };

/* /run, or /dev, which Android and an initramfs have; neither need live longer than the kernel. */
static const char *find_journal(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(journals); i++) {
		char dir[] = "/run";
		struct stat st;

		memcpy(dir, journals[i], 4);
		if (!access(dir, W_OK) && (lstat(journals[i], &st) < 0 || !file_distrust(&st)))
			return journals[i];
	}
	return NULL;
}

#define GIVEN_FD 3

/* The one socket that systemd has opened, as in sd_listen_fds(3); -ENOENT: none. */
static int listen_given(struct agent *a)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	struct transport_addr local;

	if (!pid || !n || strtol(pid, NULL, 10) != getpid())
		return -ENOENT;
	/* of another kind, it would not match the peers that --listen, or the default, allows */
	if (strcmp(n, "1") || transport_local(GIVEN_FD, &local) || local.kind != a->addr.kind ||
	    fcntl(GIVEN_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(GIVEN_FD, F_SETFL, O_NONBLOCK) < 0)
		return log_fail(
			&a->log, -EINVAL,
			"what was passed is not one listening socket of the kind that --listen names");
	a->given = true;
	if (local.kind != TRANSPORT_UNIX)
		a->addr.port = local.port;
	return GIVEN_FD;
}

static int listen_at(struct agent *a)
{
	int fd = listen_given(a);
	char text[160];

	if (fd == -EINVAL)
		return fd;
	if (fd < 0)
		fd = transport_listen(&a->addr, BACKLOG, &a->addr.port);
	transport_text(&a->addr, text, sizeof(text));
	if (fd < 0)
		return log_fail(&a->log, fd, "cannot listen on %s: %s%s", text, strerror(-fd),
				fd == -EAFNOSUPPORT || fd == -ENODEV ? " (no vsock in this kernel?)" : "");
	a->listen_fd = fd;
	log_info(&a->log, "listening on %s", text);
	return 0;
}

/* Before all else, for locks are known by the pid. The parent ends once the child listens, or has ended. */
static int fork_daemon(struct agent *a, int *ready)
{
	int ends[2];
	pid_t pid = pipe2(ends, O_CLOEXEC) < 0 ? -1 : fork();
	char byte;

	if (pid < 0)
		return log_fail(&a->log, -errno, "cannot go to the background: %s", strerror(errno));
	if (pid) {
		close(ends[1]);
		_exit(read_all(ends[0], &byte, 1) == 1 ? EXIT_OK : EXIT_FAILED);
	}
	close(ends[0]);
	*ready = ends[1];
	return 0;
}

/* Until a signal: recorders are waited for and served. ready: of fork_daemon(), or -1. */
static int listen_and_serve(struct agent *a, int ready)
{
	int ret = listen_at(a), null, caps, privs;
	bool samples = allow_samples(&a->allow);

	if (!ret && ready >= 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		setsid();
		log_to_system();
		for (int fd = 0; fd < 3 && null >= 0; fd++)
			dup2(null, fd);
		ret = write_all(ready, "", 1);
		close(ready);
	}
	if (ret)
		return ret;
	if (a->allow.n)
		log_info(&a->log,
			 "a recorder gets the events that --allow names, and without asking: " GOES_OUT);
	/* serving does not need them */
	caps = drop_capabilities(samples);
	privs = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	ret = privs ?: filter_calls(samples);
	log_info(&a->log, "capabilities dropped: %s; no new privileges: %s; system calls filtered: %s",
		 outcome(caps), outcome(privs), outcome(ret));
	ret = serve(a);
	return ret ? log_fail_errno(&a->log, ret, "cannot go on") : 0;
}

static int agent_run(struct agent_line *l)
{
	struct agent *a = &l->a;
	int ready = -1, ret = a->signal_fd < 0 ? a->signal_fd : enter_tracing_dir(a);

	if (!ret && l->daemon)
		ret = fork_daemon(a, &ready);
	if (ret)
		return ret;
	if (a->allow.n)
		snprintf(a->own, sizeof(a->own), "instances/hyptrace-agent-%d", (int)getpid());
	a->journal = !l->journal				 ? find_journal()
		     : *l->journal && strcmp(l->journal, "none") ? l->journal
								 : NULL;
	/* it may have been started when there was no /run yet: all places are looked at */
	for (size_t i = 0; i < ARRAY_SIZE(journals) && !l->journal && !ret; i++)
		ret = agent_recover(a, journals[i]);
	if (l->journal && a->journal)
		ret = agent_recover(a, a->journal);
	if (ret)
		return ret;
	/* before anything that could fail or wait */
	if (l->early)
		ret = boot_early(a, l->early);
	else if (!a->allow.n)
		boot_find(a);
	ret = ret ?: listen_and_serve(a, ready);
	boot_end_early(a);
	strlist_release(&a->boot.instances);
	if (a->listen_fd >= 0 && !a->given && a->addr.kind == TRANSPORT_UNIX)
		unlink(a->addr.host);
	return ret;
}

#ifdef HYPTRACE_STATIC
/* a command of the static file (cmd/hyptrace.c) */
int cmd_agent(int argc, char **argv);
#define main cmd_agent
#endif

int main(int argc, char **argv)
{
	struct agent_line l = {
		.a = { .log = { .fn = agent_log },
		       .proc_fd = -1,
		       .listen_fd = -1,
		       .addr = { .kind = TRANSPORT_VSOCK, .port = MSG_PORT, .cid = TRANSPORT_CID_ANY },
		       .cids = { TRANSPORT_CID_HOST },
		       .n_cids = 1 },
		.timeout = TIMEOUT_S,
	};
	struct opts_error err;
	int status, ret;
	bool shim;
	char **line;

	/* one heap for all threads: arenas would cost megabytes */
	mallopt(M_ARENA_MAX, 1);
	/* called as "trace-cmd agent ..." by hyptrace's link: other command lines go to the real one */
	shim = argc > 1 && shim_called(argv[0]);
	line = shim ? shim_copy(argc, argv) : NULL;
	argc -= shim;
	ret = opts_parse(&agent_table, &argc, argv + shim, &l, &err);
	if (!ret && argc > 1)
		ret = opts_error(&err, "%s: no such option", argv[shim + 1]);
	if (ret && line)
		shim_exec_real(line); /* it is gone, or there is no other */
	free(line);
	if (ret == OPTS_STOP) {
		struct buf text = { 0 };

		opts_usage(&agent_table, &text);
		if (buf_str(&text))
			print_text(buf_str(&text));
		buf_release(&text);
		status = EXIT_OK;
	} else if (ret) {
		log_err(&l.a.log, "%s (hyptrace-agent -h lists the options)", err.text);
		status = EXIT_USAGE;
	} else if (l.version) {
		print_text("hyptrace-agent " HYPTRACE_VERSION "\n");
		status = EXIT_OK;
	} else {
		verbose = l.verbose;
		l.a.timeout_ms = (int64_t)l.timeout * 1000;
		signal(SIGPIPE, SIG_IGN);
		l.a.signal_fd = stop_signals();
		if (l.a.signal_fd < 0)
			log_err(&l.a.log, "cannot take signals: %s", strerror(-l.a.signal_fd));
		status = agent_run(&l) ? EXIT_FAILED : EXIT_OK;
	}
	strlist_release(&l.a.allow);
	return status;
}
