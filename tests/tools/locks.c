// SPDX-License-Identifier: GPL-2.0-only
/* A preload: appends to the file $LOCKS_FILE how often the program took a mutex or waited for a condition. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_ulong locks;

int pthread_mutex_lock(pthread_mutex_t *m)
{
	static int (*real)(pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	locks++;
	return real(m);
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	static int (*real)(pthread_cond_t *, pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_cond_t *, pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_cond_wait");
	locks++;
	return real(c, m);
}

__attribute__((destructor)) static void locks_report(void)
{
	const char *name = getenv("LOCKS_FILE");
	FILE *f = name ? fopen(name, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%lu\n", locks);
	fclose(f);
}
