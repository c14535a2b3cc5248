// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program's malloc(): the C library's, which ends the program where there is no memory once
 * a command has asked for that. Libraries use it too.
 */
#include "cmd.h"

static bool ends;

void memory_or_end(void)
{
	ends = true;
}

/* ASan and TSan have their own, and end the program by themselves. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#ifdef HYPTRACE_STATIC
/* by ld's --wrap (Makefile), for glibc's stand in one object with what is replaced */
#define malloc	       __wrap_malloc
#define calloc	       __wrap_calloc
#define realloc	       __wrap_realloc
#define __libc_malloc  __real_malloc
#define __libc_calloc  __real_calloc
#define __libc_realloc __real_realloc
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
#endif

/* glibc's own ones, by the names that replacements call */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static void *memory_checked(void *p)
{
	static const char text[] = "hyptrace: out of memory\n";

	if (p || !ends)
		return p;
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_FAILED);
}

void *malloc(size_t size)
{
	return memory_checked(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return memory_checked(__libc_calloc(n, size));
}

/* Of no bytes it frees. */
void *realloc(void *p, size_t size)
{
	void *new = __libc_realloc(p, size);

	return size ? memory_checked(new) : new;
}

#endif
