// SPDX-License-Identifier: LGPL-2.1-or-later
/* The locks of the buffers that a recording changes, and whose undo is left to be done. */
#include "record/tracefs/undo.h"

#include <limits.h>
#include <sys/file.h>
#include <sys/sysmacros.h>

#define PROC_LOCKS_MAX (16u << 20)
/* Gone at a reboot, as what was changed is; the second where there is no /run (Android). */
#define LEFT_DIR       "/run/hyptrace"
#define LEFT_DIR_OTHER "/dev/.hyptrace"

/* Directories that hold buffers, by the number of parts of a path; the last two are Android's hypervisor. */
static const struct {
	const char *name;
	int parts;
} buffer_dirs[] = { { "instances", 2 }, { "remotes", 2 }, { "hypervisor", 1 }, { "hyp", 1 } };

/* The directory of the buffer, malloc'ed: "." (the top one), "instances/x" ... */
static char *buffer_dir(const char *path)
{
	size_t len = strcspn(path, "/");

	for (size_t i = 0; i < ARRAY_SIZE(buffer_dirs); i++) {
		if (strlen(buffer_dirs[i].name) != len || strncmp(path, buffer_dirs[i].name, len))
			continue;
		if (buffer_dirs[i].parts == 2 && path[len])
			len += 1 + strcspn(path + len + 1, "/");
		return strndup(path, len);
	}
	return strdup(".");
}

static void buffer_name(const char *dir, char name[300])
{
	if (!strcmp(dir, "."))
		strcpy(name, "the top buffer");
	else if (!strncmp(dir, "instances/", 10))
		snprintf(name, 300, "the buffer '%s'", dir + 10);
	else if (!strncmp(dir, "remotes/", 8) && strcmp(dir + 8, "hypervisor"))
		snprintf(name, 300, "the remote '%s'", dir + 8);
	else
		strcpy(name, "the hypervisor's buffer");
}

/* "1: FLOCK  ADVISORY  WRITE 1234 00:0c:71 0 EOF" */
static pid_t lock_holder(int fd)
{
	struct strlist lines = { 0 };
	struct stat st;
	pid_t holder = 0;

	if (fstat(fd, &st) < 0 || read_lines_at(AT_FDCWD, "/proc/locks", PROC_LOCKS_MAX, &lines))
		return 0;
	for (size_t i = 0; i < lines.n && !holder; i++) {
		unsigned int major, minor;
		uint64_t inode;
		int pid;

		if (sscanf(lines.v[i], "%*s FLOCK %*s WRITE %d %x:%x:%" SCNu64, &pid, &major, &minor,
			   &inode) == 4 &&
		    makedev(major, minor) == st.st_dev && inode == st.st_ino)
			holder = pid;
	}
	strlist_release(&lines);
	return holder;
}

static const char *left_dir(void)
{
	/* faccessat(): the agent's filter of system calls lacks access() */
	return faccessat(AT_FDCWD, "/run", W_OK, 0) ? LEFT_DIR_OTHER : LEFT_DIR;
}

/* Named for the buffer; points to the journal. */
static void left_path(int fd, char path[80])
{
	struct stat st = { 0 };

	fstat(fd, &st);
	snprintf(path, 80, "%s/%jx-%ju", left_dir(), (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

/* "": it is no link. */
static void read_link(const char *path, char target[PATH_MAX])
{
	ssize_t len = readlinkat(AT_FDCWD, path, target, PATH_MAX - 1);

	target[len > 0 ? len : 0] = 0;
}

/* -EBUSY: another's journal is there still. */
static int left_check(const struct lock *one, int journal_fd, const struct log *log)
{
	char path[80], other[PATH_MAX], name[300];
	struct stat theirs, ours;
	size_t spool;

	left_path(one->fd, path);
	read_link(path, other);
	if (fstatat(AT_FDCWD, other, &theirs, 0) ||
	    (journal_fd >= 0 && !fstat(journal_fd, &ours) && same_file(&ours, &theirs)))
		return 0;
	buffer_name(one->dir, name);
	/* a recorder's journal lies in its spool */
	spool = strlen(other) - (strlen(other) > 5 ? 5 : 0);
	if (!strcmp(other + spool, "/undo"))
		log_err(log, "a killed recording still holds %s; run: hyptrace recover %.*s", name,
			(int)spool, other);
	else
		log_err(log,
			"a killed agent's recording still holds %s; start hyptrace-agent again, which puts "
			"back what its journal '%s' has",
			name, other);
	return -EBUSY;
}

static int lock_open(struct lock *one, int dirfd, const char *path, int journal_fd, const struct log *log)
{
	struct stat now, locked;

	one->fd = openat(dirfd, one->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (one->fd < 0)
		return -errno;
	if (flock(one->fd, LOCK_EX | LOCK_NB) < 0) {
		const bool within = strcmp(path, one->dir);
		const bool hyp = strcmp(one->dir, ".") && strncmp(one->dir, "instances/", 10);
		char name[300], pid[32] = "";
		pid_t holder;

		if (errno != EWOULDBLOCK)
			return -errno;
		holder = lock_holder(one->fd);
		if (holder)
			snprintf(pid, sizeof(pid), " (pid %d)", (int)holder);
		buffer_name(one->dir, name);
		return log_fail(log, -EBUSY, "another hyptrace%s records %s%s%s%s: wait for its end%s", pid,
				name, within ? ", which '" : "", within ? path : "",
				within ? "' is part of" : "",
				hyp ? "" : ", or record into another instance (-B NAME)");
	}
	/* it may have been removed, and made anew, between open and flock */
	if (fstatat(dirfd, one->dir, &now, 0) || fstat(one->fd, &locked) || !same_file(&now, &locked))
		return -ENOENT;
	return left_check(one, journal_fd, log);
}

int locks_take(struct locks *l, int dirfd, const char *path, int journal_fd, const struct log *log)
{
	struct lock one = { .dir = buffer_dir(path), .fd = -1 };
	int ret = one.dir ? 0 : -ENOMEM;

	for (size_t i = 0; i < l->n && !ret; i++)
		if (!strcmp(l->v[i].dir, one.dir))
			goto out;
	ret = ret ?: lock_open(&one, dirfd, path, journal_fd, log) ?: array_push(&l->v, &l->n, &one, sizeof(one));
	if (!ret) {
		char left[80], self[40], journal[PATH_MAX];

		left_path(one.fd, left);
		unlinkat(AT_FDCWD, left, 0);
		snprintf(self, sizeof(self), "/proc/self/fd/%d", journal_fd);
		read_link(self, journal);
		mkdirat(AT_FDCWD, left_dir(), 0700);
		if (*journal && symlinkat(journal, AT_FDCWD, left) < 0)
			log_debug(log, "cannot make '%s': nobody will know of a kill: %s", left,
				  strerror(errno));
		return 0;
	}
out:
	fd_close(&one.fd);
	free(one.dir);
	return ret;
}

void locks_release(struct locks *l, bool undone)
{
	for (size_t i = 0; i < l->n; i++) {
		char path[80];

		left_path(l->v[i].fd, path);
		if (undone)
			unlinkat(AT_FDCWD, path, 0);
		close(l->v[i].fd);
		free(l->v[i].dir);
	}
	free(l->v);
	*l = (struct locks){ 0 };
}
