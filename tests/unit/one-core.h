/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_ONE_CORE_H
#define TESTS_ONE_CORE_H

/* As on a machine with one core. Include after cmocka.h. */
#include <sched.h>

/* Returns the cores from before, for sched_setaffinity. */
static inline cpu_set_t stay_on_one_core(void)
{
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	return all;
}

#endif
