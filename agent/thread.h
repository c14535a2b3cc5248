/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_AGENT_THREAD_H
#define HYPTRACE_AGENT_THREAD_H

#include <pthread.h>
#include <unistd.h>

/* ASan's frames need more. */
#ifdef __SANITIZE_ADDRESS__
#define THREAD_STACK (1u << 20)
#else
#define THREAD_STACK (192u << 10)
#endif

/* A thread with a small stack: there may be hundreds of CPUs. 0 or -errno. */
static inline int thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	ret = pthread_create(t, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return -ret;
}

#endif
