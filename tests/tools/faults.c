// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A preload that lets calls of a program fail, or kills it, for tests/integration/faults.t.
 * For glibc, programs with 64-bit file offsets, and without ASan. By the environment:
 *
 *   FAULTS=CLASS:N     the Nth call of a class fails, counted from 1 over all threads and the
 *                      children that have not called exec; CLASS:N+: that and all after it.
 *                      The classes and their errors are in the table below.
 *   FAULTS=before:N    SIGKILL before the Nth step is taken, or after:N. A step changes a file
 *   FAULTS_UNDER=DIRS  under one of these directories (absolute, with ':' between).
 *   FAULTS_COUNT=FILE  an existing file, that holds afterwards for each class NAME (24 bytes) and
 *                      the number of its calls (8 bytes); after them "hit": how many have failed.
 *   FAULTS_WHERE=1     tells on standard error where the call was that failed.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* clang-format off */
#define CLASSES(X)                                                                                       \
	X(alloc, ENOMEM) X(open, EMFILE) X(opendir, EMFILE) X(readdir, EIO) X(read, EIO) X(write, ENOSPC)\
	X(stdio, ENOSPC) X(splice, EIO) X(fsync, EIO) X(rename, EIO) X(mkdir, ENOSPC) X(unlink, EIO)     \
	X(truncate, EIO) X(allocate, ENOSPC) X(stat, EIO) X(seek, EIO) X(close, EIO) X(fd, EMFILE)       \
	X(fcntl, EPERM) X(lock, ENOLCK) X(link, EIO) X(socket, EMFILE) X(connect, ECONNREFUSED)          \
	X(bind, EADDRINUSE) X(accept, EMFILE) X(sockopt, ENOBUFS) X(send, ECONNRESET)                    \
	X(recv, ECONNRESET) X(epoll, ENOMEM) X(poll, ENOMEM) X(thread, EAGAIN) X(fork, EAGAIN)           \
	X(random, EIO) X(step, 0) X(hit, 0)
/* clang-format on */

#define CLASS_ID(name, error)	 CLASS_##name,
#define CLASS_ROW(name, error)	 { #name, 0 },
#define CLASS_ERROR(name, error) error,
enum class { CLASSES(CLASS_ID) N_CLASSES };
struct count {
	char name[24];
	uint64_t n;
};
static struct count own[N_CLASSES] = { CLASSES(CLASS_ROW) };
static const int errors[N_CLASSES] = { CLASSES(CLASS_ERROR) };

static struct count *counts = own; /* shared with children, and left in the file however it ends */
static enum class wanted = N_CLASSES;
static uint64_t at;
static bool from_then_on, kill_before, kill_after, where;
static const char *under;

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void count_into(const char *path)
{
	int (*open_file)(const char *, int, ...) = (int (*)(const char *, int, ...))real("open64");
	int (*close_file)(int) = (int (*)(int))real("close");
	int fd = open_file(path, O_RDWR | O_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd >= 0 && !syscall(SYS_ftruncate, fd, (long)sizeof(own)))
		p = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		abort();
	close_file(fd);
	memcpy(p, own, sizeof(own));
	counts = p;
}

static void want(const char *what)
{
	size_t len = strcspn(what, ":");

	kill_before = !strncmp(what, "before:", 7);
	kill_after = !strncmp(what, "after:", 6);
	for (int i = 0; i < N_CLASSES; i++)
		if (strlen(own[i].name) == len && !strncmp(what, own[i].name, len))
			wanted = (enum class)i;
	if (kill_before || kill_after)
		wanted = CLASS_step;
	at = strtoull(what + len + !!what[len], NULL, 10);
	from_then_on = strchr(what, '+');
	if (wanted == N_CLASSES || !at)
		abort();
}

/* The programs that it starts are left alone. */
__attribute__((constructor)) static void faults_begin(void)
{
	const char *what = getenv("FAULTS"), *path = getenv("FAULTS_COUNT");

	under = getenv("FAULTS_UNDER");
	where = getenv("FAULTS_WHERE");
	if (path)
		count_into(path);
	if (what)
		want(what);
	unsetenv("LD_PRELOAD");
}

static void tell_where(void)
{
	void *frames[32];
	bool was = where;

	where = false; /* what follows may allocate */
	if (was)
		backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
	where = was;
}

/*
 * libtraceevent goes on without the plugins of a directory that it cannot read, and tells nobody:
 * only its allocations fail.
 */
static bool is_foreign(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libtraceevent");
}

static bool fails_at(enum class c, const void *caller)
{
	uint64_t n;

	if (c != CLASS_alloc && is_foreign(caller))
		return false;
	n = __atomic_add_fetch(&counts[c].n, 1, __ATOMIC_RELAXED);
	if (c != wanted || c == CLASS_step || (from_then_on ? n < at : n != at))
		return false;
	__atomic_add_fetch(&counts[CLASS_hit].n, 1, __ATOMIC_RELAXED);
	tell_where();
	errno = errors[c];
	return true;
}

/* For the calls below, by the one who makes them. */
#define fails(c) fails_at(c, __builtin_return_address(0))

/* ---- steps ---------------------------------------------------------------------------- */

static bool is_under(const char *path)
{
	for (const char *dir = under; dir && *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		size_t len = strcspn(dir, ":");

		if (!strncmp(path, dir, len) && (path[len] == '/' || !path[len]))
			return true;
	}
	return false;
}

/* The path of a descriptor, or of a path at one. */
static bool step_at(int fd, const char *path)
{
	char link[64], full[2 * PATH_MAX] = "";
	ssize_t n = 0;

	if (!under)
		return false;
	if (!path || *path != '/') {
		snprintf(link, sizeof(link), fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
		n = syscall(SYS_readlinkat, AT_FDCWD, link, full, PATH_MAX);
	}
	if (path)
		snprintf(full + (n > 0 ? n : 0), PATH_MAX, "/%s", path);
	return is_under(path && *path == '/' ? path : full);
}

static uint64_t step_begin(int fd, const char *path)
{
	int error = errno;
	bool is = step_at(fd, path);
	uint64_t n = is ? __atomic_add_fetch(&counts[CLASS_step].n, 1, __ATOMIC_RELAXED) : 0;

	if (n && n == at && kill_before)
		kill(getpid(), SIGKILL);
	errno = error;
	return n;
}

static void step_end(uint64_t n)
{
	if (n && n == at && kill_after)
		kill(getpid(), SIGKILL);
}

/* ---- the calls -------------------------------------------------------------------------- */

/* PARAMS and ARGS in parentheses; BAD is what it returns when it fails. */
#define CALL(class, type, bad, name, params, args)                                                           \
	type name params                                                                                     \
	{                                                                                                    \
		static type(*next) params;                                                                   \
		if (!next)                                                                                   \
			next = (type(*) params)real(#name);                                                  \
		return fails(CLASS_##class) ? (bad) : next args;                                             \
	}

/* One that changes the file of FD, or PATH at FD. */
#define STEP(class, type, name, params, args, fd, path)                                                      \
	type name params                                                                                     \
	{                                                                                                    \
		static type(*next) params;                                                                   \
		uint64_t n;                                                                                  \
		type ret;                                                                                    \
		if (!next)                                                                                   \
			next = (type(*) params)real(#name);                                                  \
		if (fails(CLASS_##class))                                                                    \
			return -1;                                                                           \
		n = step_begin(fd, path);                                                                    \
		ret = next args;                                                                             \
		step_end(n);                                                                                 \
		return ret;                                                                                  \
	}

/* A program with a malloc() of its own calls __libc_malloc(). */
#define ALLOC(name, params, args)                                                                            \
	void *__libc_##name params;                                                                          \
	CALL(alloc, void *, NULL, __libc_##name, params, args)                                               \
	CALL(alloc, void *, NULL, name, params, args)
ALLOC(malloc, (size_t size), (size))
ALLOC(calloc, (size_t n, size_t size), (n, size))
ALLOC(realloc, (void *p, size_t size), (p, size))
CALL(alloc, void *, NULL, aligned_alloc, (size_t alignment, size_t size), (alignment, size))

/* An open that makes or empties a file is a step. */
#define OPEN(name, params, args, fd)                                                                         \
	int name params                                                                                      \
	{                                                                                                    \
		static int(*next) params;                                                                    \
		uint64_t n = 0;                                                                              \
		mode_t mode = 0;                                                                             \
		va_list ap;                                                                                  \
		int ret;                                                                                     \
		if (!next)                                                                                   \
			next = (int(*) params)real(#name);                                                   \
		va_start(ap, flags);                                                                         \
		if (flags & (O_CREAT | __O_TMPFILE))                                                         \
			mode = va_arg(ap, mode_t);                                                           \
		va_end(ap);                                                                                  \
		if (fails(CLASS_open))                                                                       \
			return -1;                                                                           \
		if (flags & (O_CREAT | O_TRUNC))                                                             \
			n = step_begin(fd, path);                                                            \
		ret = next args;                                                                             \
		step_end(n);                                                                                 \
		return ret;                                                                                  \
	}
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPEN(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, mode), fd)
CALL(open, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
CALL(open, int, -1, mkstemp64, (char *name), (name))
CALL(opendir, DIR *, NULL, opendir, (const char *path), (path))
CALL(opendir, DIR *, NULL, fdopendir, (int fd), (fd))
CALL(readdir, struct dirent64 *, NULL, readdir64, (DIR * d), (d))

CALL(read, ssize_t, -1, read, (int fd, void *p, size_t len), (fd, p, len))
CALL(read, ssize_t, -1, pread64, (int fd, void *p, size_t len, off64_t o), (fd, p, len, o))
STEP(write, ssize_t, write, (int fd, const void *p, size_t len), (fd, p, len), fd, NULL)
STEP(write, ssize_t, pwrite64, (int fd, const void *p, size_t len, off64_t o), (fd, p, len, o), fd, NULL)
STEP(splice, ssize_t, splice, (int from, off64_t *at1, int to, off64_t *at2, size_t len, unsigned int flags),
     (from, at1, to, at2, len, flags), to, NULL)
STEP(truncate, int, ftruncate64, (int fd, off64_t len), (fd, len), fd, NULL)
STEP(rename, int, rename, (const char *from, const char *to), (from, to), AT_FDCWD, to)
STEP(rename, int, renameat, (int fd, const char *from, int fd2, const char *to), (fd, from, fd2, to), fd2, to)
STEP(mkdir, int, mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
STEP(mkdir, int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode), fd, path)
STEP(unlink, int, unlink, (const char *path), (path), AT_FDCWD, path)
STEP(unlink, int, rmdir, (const char *path), (path), AT_FDCWD, path)
STEP(unlink, int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), fd, path)

CALL(fsync, int, -1, fsync, (int fd), (fd))
CALL(fsync, int, -1, syncfs, (int fd), (fd))
CALL(stat, int, -1, fstat64, (int fd, struct stat64 *st), (fd, st))
CALL(stat, int, -1, stat64, (const char *path, struct stat64 *st), (path, st))
CALL(stat, int, -1, lstat64, (const char *path, struct stat64 *st), (path, st))
CALL(stat, int, -1, fstatat64, (int fd, const char *path, struct stat64 *st, int flags),
     (fd, path, st, flags))
CALL(stat, int, -1, access, (const char *path, int mode), (path, mode))
CALL(stat, int, -1, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
CALL(stat, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
CALL(seek, off64_t, -1, lseek64, (int fd, off64_t o, int whence), (fd, o, whence))
CALL(link, ssize_t, -1, readlink, (const char *path, char *to, size_t len), (path, to, len))
CALL(link, ssize_t, -1, readlinkat, (int fd, const char *path, char *to, size_t len), (fd, path, to, len))
CALL(link, char *, NULL, realpath, (const char *path, char *to), (path, to))
CALL(link, char *, NULL, getcwd, (char *to, size_t len), (to, len))
CALL(lock, int, -1, flock, (int fd, int op), (fd, op))
CALL(random, ssize_t, -1, getrandom, (void *p, size_t len, unsigned int flags), (p, len, flags))
CALL(fd, int, -1, pipe2, (int fd[2], int flags), (fd, flags))
CALL(fd, int, -1, dup2, (int from, int to), (from, to))
CALL(fd, int, -1, eventfd, (unsigned int n, int flags), (n, flags))
CALL(fd, int, -1, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))
CALL(fd, int, -1, memfd_create, (const char *name, unsigned int flags), (name, flags))

CALL(socket, int, -1, socket, (int domain, int type, int proto), (domain, type, proto))
CALL(connect, int, -1, connect, (int fd, const struct sockaddr *sa, socklen_t len), (fd, sa, len))
CALL(bind, int, -1, bind, (int fd, const struct sockaddr *sa, socklen_t len), (fd, sa, len))
CALL(bind, int, -1, listen, (int fd, int n), (fd, n))
CALL(accept, int, -1, accept4, (int fd, struct sockaddr *sa, socklen_t *len, int flags), (fd, sa, len, flags))
CALL(sockopt, int, -1, setsockopt, (int fd, int level, int name, const void *v, socklen_t len),
     (fd, level, name, v, len))
CALL(sockopt, int, -1, getsockopt, (int fd, int level, int name, void *v, socklen_t *len),
     (fd, level, name, v, len))
CALL(sockopt, int, -1, getsockname, (int fd, struct sockaddr *sa, socklen_t *len), (fd, sa, len))
CALL(send, ssize_t, -1, send, (int fd, const void *p, size_t len, int flags), (fd, p, len, flags))
CALL(recv, ssize_t, -1, recv, (int fd, void *p, size_t len, int flags), (fd, p, len, flags))
CALL(epoll, int, -1, epoll_create1, (int flags), (flags))
CALL(epoll, int, -1, epoll_ctl, (int fd, int op, int other, struct epoll_event *e), (fd, op, other, e))
CALL(epoll, int, -1, epoll_wait, (int fd, struct epoll_event *e, int n, int ms), (fd, e, n, ms))
CALL(poll, int, -1, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))
CALL(poll, int, -1, ppoll, (struct pollfd * p, nfds_t n, const struct timespec *limit, const sigset_t *mask),
     (p, n, limit, mask))
CALL(fork, pid_t, -1, fork, (void), ())
CALL(fork, int, EAGAIN, posix_spawn,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *attr,
      char *const *argv, char *const *envp),
     (pid, path, fa, attr, argv, envp))
CALL(thread, int, EAGAIN, pthread_create,
     (pthread_t * t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg), (t, attr, fn, arg))

CALL(allocate, int, ENOSPC, posix_fallocate64, (int fd, off64_t o, off64_t len), (fd, o, len))

int fcntl64(int fd, int cmd, ...)
{
	static int (*next)(int, int, ...);
	va_list ap;
	void *arg;

	if (!next)
		next = (int (*)(int, int, ...))real("fcntl64");
	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fails(CLASS_fcntl) ? -1 : next(fd, cmd, arg);
}

/* As in the kernel, the descriptor is gone also when close() fails. */
int close(int fd)
{
	static int (*next)(int);
	int ret;

	if (!next)
		next = (int (*)(int))real("close");
	ret = next(fd);
	return fails(CLASS_close) ? -1 : ret;
}

/* stdio's own writing is out of reach: what flushes fails, and the stream remembers it. */
#define FLUSH(name, one)                                                                                     \
	int name(FILE *f)                                                                                    \
	{                                                                                                    \
		static int (*next)(FILE *);                                                                  \
		if (!next)                                                                                   \
			next = (int (*)(FILE *))real(#name);                                                 \
		if (!fails(CLASS_stdio))                                                                     \
			return next(f);                                                                      \
		if (one)                                                                                     \
			f->_flags |= 0x20; /* _IO_ERR_SEEN */                                                \
		return EOF;                                                                                  \
	}
FLUSH(fflush, f)
FLUSH(fclose, true)
