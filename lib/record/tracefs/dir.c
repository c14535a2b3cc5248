// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tracing directory: where it is, and how many CPUs it has. */
#include "record/tracefs/undo.h"

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#define DEFAULT_DIR   "/sys/kernel/tracing"
#define MOUNTINFO_MAX (16u << 20)
#define PATH_LEN_MAX  1024
#define STATS_MAX     (64u << 10)
/* After three fields: the part of the file system that is mounted, and where. */
#define MOUNTINFO_ROOT_AND_DIR "%*s %*s %*s %ms %ms"

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

/* The first mount of the whole of a file system of this type, with `below` after it; malloc'ed or NULL. */
static char *first_mount(const struct strlist *mountinfo, const char *type, const char *below)
{
	char *found = NULL, mark[32];

	snprintf(mark, sizeof(mark), " - %s ", type);
	for (size_t i = 0; i < mountinfo->n && !found; i++) {
		char *root = NULL, *dir = NULL;

		if (strstr(mountinfo->v[i], mark) &&
		    sscanf(mountinfo->v[i], MOUNTINFO_ROOT_AND_DIR, &root, &dir) == 2 && !strcmp(root, "/")) {
			unescape_octal(dir);
			found = str_printf("%s%s", dir, below);
		}
		free(root);
		free(dir);
	}
	return found;
}

char *tracefs_mounted(const char *mountinfo, size_t len)
{
	struct strlist lines = { 0 };
	char *dir;

	strlist_add_lines(&lines, mountinfo, len);
	dir = first_mount(&lines, "tracefs", "") ?: first_mount(&lines, "debugfs", "/tracing");
	strlist_release(&lines);
	return dir;
}

/* A mount in mountinfo may be hidden below another mount. */
static bool is_tracefs(const char *dir)
{
	struct statfs fs;

	return !statfs(dir, &fs) && fs.f_type == TRACEFS_MAGIC;
}

char *tracefs_dir(const char *given, const struct log *log)
{
	char *dir = given && *given ? strdup(given) : NULL;

	if (!given || !*given) {
		struct buf text = { 0 };

		if (!read_file("/proc/self/mountinfo", MOUNTINFO_MAX, &text))
			dir = tracefs_mounted((char *)text.data, text.len);
		buf_release(&text);
		if (dir && !is_tracefs(dir)) {
			free(dir);
			dir = NULL;
		}
		/* there may be no /proc, in an initramfs */
		if (!dir && (is_tracefs(DEFAULT_DIR) || !mount("tracefs", DEFAULT_DIR, "tracefs",
							       MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)))
			dir = strdup(DEFAULT_DIR);
	}
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

bool tracefs_path_ok(const char *path)
{
	const char *p = path;

	if (!*path || strlen(path) > PATH_LEN_MAX)
		return false;
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	for (;;) {
		size_t len = strcspn(p, "/");

		if (!len || (len == 1 && p[0] == '.') || (len == 2 && !strncmp(p, "..", 2)))
			return false;
		if (!p[len])
			return true;
		p += len + 1;
	}
}

int tracefs_cpus(int dirfd, const char *path, unsigned int *n)
{
	struct strlist names = { 0 };
	int ret = read_dir_at(dirfd, path, &names);
	unsigned int cpu;

	*n = 0;
	for (size_t i = 0; !ret && i < names.n; i++)
		if (sscanf(names.v[i], "cpu%u", &cpu) == 1 && cpu + 1 > *n)
			*n = cpu + 1;
	strlist_release(&names);
	return ret;
}

int tracefs_counts(int dirfd, const char *stats, uint64_t *events, uint64_t *lost)
{
	static const char *const names[] = { "overrun: ", "commit overrun: ", "dropped events: ",
					     "read events: " };
	struct strlist lines = { 0 };
	int ret = read_lines_at(dirfd, stats, STATS_MAX, &lines);

	*events = *lost = 0;
	for (size_t n = 0; n < lines.n; n++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			size_t skip = strlen(names[k]);
			uint64_t v;

			if (!strncmp(lines.v[n], names[k], skip) && !parse_u64(lines.v[n] + skip, &v))
				*(k < 3 ? lost : events) += v;
		}
	strlist_release(&lines);
	return ret;
}
