// SPDX-License-Identifier: LGPL-2.1-or-later
/* The name trace-cmd for our programs, and the way from it to the real trace-cmd. */
#include "base/shim.h"
#include "base/files.h"

bool shim_called(const char *argv0)
{
	return !strcmp(basename(argv0), SHIM_NAME);
}

char *shim_beside(const char *name)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return NULL;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	return str_printf("%s/%s", self, name);
}

char **shim_copy(int argc, char **argv)
{
	char **copy = calloc((size_t)argc + 1, sizeof(*copy));

	return copy ? memcpy(copy, argv, (size_t)argc * sizeof(*copy)) : NULL;
}

/* The link leads to hyptrace; its agent, which may be the one that runs, is another file beside it. */
static bool shim_is_own(const struct stat *st)
{
	char *beside = shim_beside("hyptrace");
	struct stat own;
	bool is = (!stat("/proc/self/exe", &own) && same_file(&own, st)) ||
		  (beside && !stat(beside, &own) && same_file(&own, st));

	free(beside);
	return is;
}

int shim_exec_real(char **argv)
{
	const char *dirs = getenv("PATH") ?: "/usr/bin:/bin";
	char *found = NULL;
	int ret = -ENOENT;

	for (;; dirs++) {
		size_t len = strcspn(dirs, ":");
		char *path = len ? str_printf("%.*s/" SHIM_NAME, (int)len, dirs) : strdup("./" SHIM_NAME);
		struct stat st;
		bool runs = path && !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);

		if (runs && shim_is_own(&st)) {
			free(found);
			found = NULL;
		} else if (runs && !found) {
			found = path;
			path = NULL;
		}
		free(path);
		dirs += len;
		if (!*dirs)
			break;
	}
	if (found) {
		execv(found, argv);
		ret = -errno;
	}
	free(found);
	return ret;
}
