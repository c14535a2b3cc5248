// SPDX-License-Identifier: LGPL-2.1-or-later
/* The threads of a process: small reads below /proc/PID, a directory descriptor of which is given. */
#include "record/guest/guest-priv.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/files.h"

bool guest_read_line(int dir, const char *path, char *line, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, line, size - 1);
	close(fd);
	if (n < 0)
		return false;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	return true;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

size_t guest_numbers(int dir, const char *path, int **out)
{
	DIR *d = open_dir_at(dir, path);
	int *v = NULL;
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		uint64_t x;
		int number;

		if (parse_u64(e->d_name, &x) || x > INT_MAX)
			continue;
		number = (int)x;
		if (array_push(&v, &n, &number, sizeof(number)))
			break;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(v, n, sizeof(*v), by_number);
	*out = v;
	return n;
}

/* The kernel counts them in the directory's links (proc_task_getattr in fs/proc/base.c). */
uint64_t guest_count_threads(int dir)
{
	struct stat st;

	return fstatat(dir, "task", &st, 0) ? 0 : st.st_nlink;
}

pid_t guest_host_tid(int dir, pid_t tid)
{
	int *tids;
	size_t n = guest_numbers(dir, "task", &tids);
	pid_t found = 0;

	for (size_t i = 0; i < n && !found; i++) {
		struct buf text = { 0 };
		char path[40];
		const char *line, *last;

		snprintf(path, sizeof(path), "task/%d/status", tids[i]);
		if (!read_file_at(dir, path, 65536, &text) && buf_str(&text) &&
		    (line = strstr((char *)text.data, "\nNSpid:"))) {
			text.data[(size_t)(line - (char *)text.data) + 1 + strcspn(line + 1, "\n")] = 0;
			last = strrchr(line, '\t');
			if (last && atoi(last + 1) == tid)
				found = tids[i];
		} else if (tids[i] == tid) {
			found = tid;
		}
		buf_release(&text);
	}
	free(tids);
	return found;
}
