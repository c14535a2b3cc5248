// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled texts: those of libtraceevent, byte for byte, for every event format of tests/data and of the
 * trace.dat files that are given (usage: text [FILE...]).
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#include "plugin-rig.h"
#include "text-judge.h"

static char **files;
static size_t n_files;

static void judge_file(struct judge *j, const char *path, bool plugins, bool raw)
{
	struct reader *r;
	struct rig rig;
	size_t failed;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (plugins) {
		rig_open(&rig, NULL, true, rig_plugins());
	} else {
		rig = (struct rig){ .tep = tep_alloc() };
	}
	if (fd < 0 || reader_open(&r, fd, NULL))
		fail_msg("cannot read %s", path);
	assert_int_equal(tepfile_load(rig.tep, reader_info(r), &failed, NULL), 0);
	for (int i = 0; i < tep_get_events_count(rig.tep); i++) {
		struct tep_event *e = tep_get_event(rig.tep, i);

		if (e->id <= UINT16_MAX && !judge_event(j, e, raw))
			j->wrong++;
	}
	if (plugins)
		rig_close(&rig);
	else
		tep_free(rig.tep);
	reader_close(r);
	close(fd);
}

static void test_files(void **state)
{
	struct judge j;

	(void)state;
	judge_init(&j);
	j.verbose = getenv("V") != NULL;
	for (size_t i = 0; i < n_files; i++)
		for (int k = 0; k < 4; k++) {
			size_t compiled = j.compiled, refused = j.refused;

			judge_file(&j, files[i], k & 1, k & 2);
			print_message("%s%s%s: %zu new formats compile, %zu do not, %zu differ\n", files[i],
				      k & 1 ? ", plugins" : "", k & 2 ? ", raw" : "", j.compiled - compiled,
				      j.refused - refused, j.wrong);
		}
	assert_int_equal(j.wrong, 0);
	judge_release(&j);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
	};
	glob_t found;
	int ret;

	glob("tests/data/*.dat", 0, NULL, &found);
	glob("tests/data/*/*.dat", GLOB_APPEND, NULL, &found);
	files = argc > 1 ? argv + 1 : found.gl_pathv;
	n_files = argc > 1 ? (size_t)argc - 1 : found.gl_pathc;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	globfree(&found);
	return ret;
}
