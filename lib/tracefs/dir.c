// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tracing directory: where it is, and how many CPUs it has. */
#include "tracefs/dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define DEFAULT_DIR    "/sys/kernel/tracing"
#define MOUNTINFO_MAX  (16u << 20)
#define MOUNTINFO_ROOT 3 /* fields, from 0: the part of the file system that is mounted ... */
#define MOUNTINFO_DIR  4 /* ... and where */

/* "\040" is a blank: proc(5). In place. */
static void unescape_octal(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		*to = *s;
		if (*s == '\\' && strspn(s + 1, "01234567") >= 3) {
			*to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		}
	}
	*to = 0;
}

/* Where a line of mountinfo has the whole of a file system of this type mounted (in line), or NULL. */
static char *mount_of(char *line, const char *type)
{
	char *dash = strstr(line, " - "), *dir = NULL, *word;
	size_t len = strlen(type);

	if (!dash || strncmp(dash + 3, type, len) || dash[3 + len] != ' ')
		return NULL;
	for (int n = 0; n <= MOUNTINFO_DIR && (word = strsep(&line, " ")); n++) {
		if (n == MOUNTINFO_ROOT && strcmp(word, "/"))
			return NULL;
		dir = n == MOUNTINFO_DIR ? word : NULL;
	}
	if (dir)
		unescape_octal(dir);
	return dir;
}

/* The first mount of this type, with `below` behind it; malloc'ed or NULL. */
static char *first_mount(const char *mountinfo, size_t text_len, const char *type, const char *below)
{
	struct cursor c = cursor_at(mountinfo, text_len);
	char *found = NULL;
	const char *line;
	size_t len;

	while (!found && cursor_line(&c, &line, &len)) {
		char *copy = strndup(line, len);
		char *dir = copy ? mount_of(copy, type) : NULL;

		if (dir)
			found = str_printf("%s%s", dir, below);
		free(copy);
	}
	return found;
}

char *tracefs_mounted(const char *mountinfo, size_t len)
{
	char *dir = first_mount(mountinfo, len, "tracefs", "");

	return dir ? dir : first_mount(mountinfo, len, "debugfs", "/tracing");
}

static char *find_or_mount(void)
{
	struct buf text = { 0 };
	char *dir = NULL;

	if (!read_file("/proc/self/mountinfo", MOUNTINFO_MAX, &text))
		dir = tracefs_mounted((char *)text.data, text.len);
	buf_release(&text);
	if (dir && !access(dir, F_OK))
		return dir;
	free(dir);
	/* there may be no /proc, in an initramfs */
	if (access(DEFAULT_DIR "/trace", F_OK) &&
	    mount("tracefs", DEFAULT_DIR, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return NULL;
	return strdup(DEFAULT_DIR);
}

char *tracefs_dir(const char *given, const struct log *log)
{
	char *dir = given && *given ? strdup(given) : find_or_mount();

	if (dir && !access(dir, R_OK | X_OK))
		return dir;
	if (dir)
		log_err(log, "cannot open '%s': %s%s", dir, strerror(errno),
			errno == EACCES ? " (root is needed)" : "");
	else
		log_err(log, "tracefs is not mounted and cannot be (mount -t tracefs tracefs " DEFAULT_DIR
			     " as root)");
	free(dir);
	return NULL;
}

unsigned int tracefs_cpus(int dirfd, const char *path)
{
	struct strlist names = { 0 };
	unsigned int n = 0, cpu;

	read_dir_at(dirfd, path, &names);
	for (size_t i = 0; i < names.n; i++)
		if (sscanf(names.v[i], "cpu%u", &cpu) == 1 && cpu + 1 > n)
			n = cpu + 1;
	strlist_release(&names);
	return n;
}
