// SPDX-License-Identifier: GPL-2.0-only
/* Drops every right that serving recorders does not need. */
#include "agent.h"
#include "base/array.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/*
 * Rights after start: the user's own right to tracefs's files, CAP_SYSLOG, without which
 * /proc/kallsyms shows no addresses, and CAP_PERFMON with perf_event_open, where samples may be
 * taken (--profile). No program can be started any more, no file system mounted, no other process
 * touched.
 */

#define CAP_BIT(cap) (1u << ((cap)&31))

static bool cap_needed(int cap, bool samples)
{
	return cap == CAP_SYSLOG || (samples && cap == CAP_PERFMON);
}

static int drop_capabilities(bool samples)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	if (syscall(SYS_capget, &head, caps) < 0)
		return -errno;
	for (int cap = 0; cap <= 63; cap++)
		if (!cap_needed(cap, samples) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		uint32_t keep = 0;

		for (int cap = 32 * i; cap < 32 * (i + 1); cap++)
			keep |= cap_needed(cap, samples) ? CAP_BIT(cap) : 0;
		caps[i].permitted &= keep;
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

void privs_drop(const struct log *log, bool samples)
{
	int caps = drop_capabilities(samples);
	int privs = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	int calls_ret = privs ? privs : filter_calls(samples);

	log_info(log, "capabilities dropped: %s; no new privileges: %s; system calls filtered: %s",
		 outcome(caps), outcome(privs), outcome(calls_ret));
}
