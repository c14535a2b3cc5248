// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest's program that marks as fast as it can: CLIENTS threads, EVENTS each, in the way that HYPERTRACE
 * says, or (way "plain") writes to a register of the ivshmem device that does nothing. An event's arg1 is its
 * client, arg2 its number. Prints how many there were, and ns of CPU time and of time for each.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../../agent/hypertrace/hypertrace-guest.h"

static long events;
static volatile uint32_t *plain;

static void *emit(void *arg)
{
	long client = (long)arg;
	uint64_t *data = plain ? NULL : hypertrace_data((uint64_t)client);

	for (long i = 1; i <= events; i++) {
		if (plain) {
			*plain = 0;
			continue;
		}
		data[0] = (uint64_t)i;
		hypertrace_emit((uint64_t)client, (uint64_t)client);
	}
	return NULL;
}

static double now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* marks CLIENTS EVENTS [FILE: the device's resource0] */
int main(int argc, char **argv)
{
	long clients = argc > 2 ? atol(argv[1]) : 0;
	pthread_t threads[64];
	double cpu, wall;

	if (clients < 1 || clients > 64)
		return 2;
	events = atol(argv[2]);
	if (argc > 3) {
		int fd = open(argv[3], O_RDWR);

		plain = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (plain == MAP_FAILED) {
			perror(argv[3]);
			return 1;
		}
	} else if (hypertrace_init(NULL)) {
		perror("hypertrace_init");
		return 1;
	}
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	wall = now(CLOCK_MONOTONIC);
	for (long c = 0; c < clients; c++)
		pthread_create(&threads[c], NULL, emit, (void *)c);
	for (long c = 0; c < clients; c++)
		pthread_join(threads[c], NULL);
	printf("%ld events by %s, ns each: %.0f of a thread, %.0f apart\n", clients * events,
	       plain ? "plain" : hypertrace_where(),
	       (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)(clients * events),
	       (now(CLOCK_MONOTONIC) - wall) / (double)(clients * events));
	return 0;
}
