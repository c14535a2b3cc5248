// SPDX-License-Identifier: LGPL-2.1-or-later
/* Replaces functions of the C library that would load other files, which a static program may not find. */
#ifdef HYPTRACE_STATIC
#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>

/* In place of the C library's, by ld's --wrap (Makefile). */
__typeof__(dlopen) __wrap_dlopen;
__typeof__(dlsym) __wrap_dlsym;
__typeof__(dlclose) __wrap_dlclose;
__typeof__(dlerror) __wrap_dlerror;
__typeof__(getpwnam) __wrap_getpwnam;
__typeof__(initgroups) __wrap_initgroups;

void *__wrap_dlopen(const char *file, int mode)
{
	return NULL;
}

void *__wrap_dlsym(void *lib, const char *name)
{
	return NULL;
}

int __wrap_dlclose(void *lib)
{
	return 0;
}

char *__wrap_dlerror(void)
{
	return "a static program loads nothing";
}

/* --user finds nobody: who there is depends on the system's libraries. */
struct passwd *__wrap_getpwnam(const char *name)
{
	return NULL;
}

int __wrap_initgroups(const char *user, gid_t group)
{
	return -1;
}

#endif
