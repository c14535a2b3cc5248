// SPDX-License-Identifier: LGPL-2.1-or-later
/* Asks a flight recorder of this machine, which runs by itself, for a file. */
#include <libgen.h>
#include <signal.h>

#include "record/session/session.h"

/* -ENOENT: it is none, or another's. */
static int flight_ask_spool(const char *path, const char *dir, char **file)
{
	struct stat to, wanted;
	struct spool *s;
	char *output;
	pid_t pid;
	int ret = -ENOENT;

	if (spool_open_live(&s, path, NULL))
		return -ENOENT;
	pid = (pid_t)spool_get_number(s, SPOOL_FLIGHT, 0);
	output = strdup(spool_get(s, "output") ?: "");
	/* its files lie in that directory, however both are written */
	if (pid > 0 && spool_is_recording(s) && output && *output && !stat(dirname(output), &to) &&
	    !stat(dir, &wanted) && same_file(&to, &wanted)) {
		*file = spool_next_output(s);
		ret = !*file ? -ENOMEM : kill(pid, SIGUSR1) < 0 ? -errno : 0;
	}
	free(output);
	spool_close(s);
	return ret;
}

int flight_ask(const char *dir, char **file)
{
	const char *const places[] = { SESSION_MEMORY, dir };
	int ret = -ENOENT;

	*file = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(places) && ret == -ENOENT; i++) {
		struct strlist names = { 0 };

		read_dir_at(AT_FDCWD, places[i], &names);
		for (size_t k = 0; k < names.n && ret == -ENOENT; k++) {
			const char *end = strrchr(names.v[k], '.');
			char *path = end && !strcmp(end, ".spool")
					     ? str_printf("%s/%s", places[i], names.v[k])
					     : NULL;

			ret = path ? flight_ask_spool(path, dir, file) : -ENOENT;
			free(path);
		}
		strlist_release(&names);
	}
	return ret;
}
