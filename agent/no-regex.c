// SPDX-License-Identifier: GPL-2.0-only

/*
 * The agent takes no regular expressions (request.c), which lib/tracefs/instance-func.c
 * would: these stand in for the C library's and save 70 KiB of the static file.
 * Not by <regex.h>, whose prototype has a variable-length array.
 */

int regcomp(void *re, const char *pattern, int flags);
int regexec(const void *re, const char *text, unsigned long n, void *match, int flags);
void regfree(void *re);

int regcomp(void *re, const char *pattern, int flags)
{
	return 2; /* REG_BADPAT */
}

int regexec(const void *re, const char *text, unsigned long n, void *match, int flags)
{
	return 1; /* REG_NOMATCH */
}

void regfree(void *re)
{
}
