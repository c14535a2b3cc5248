/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For sanitised programs that have libtraceevent read formats or filters: it loses words of those that it refuses. */
#ifndef HYPTRACE_TEST_LEAKS_H
#define HYPTRACE_TEST_LEAKS_H

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:__vasprintf_internal\nleak:libtraceevent\n";
}

#endif
