// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions by a regular expression. Apart from the rest of a buffer, for the
 * agent takes none, and libc's matcher would be a tenth of its file.
 */
#include "tracefs/instance.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MAX (64u << 20)

int instance_match_functions(int tracing_dirfd, const char *pattern, struct buf *out)
{
	struct strlist lines = { 0 };
	size_t before = out->len;
	regex_t re;
	int ret;

	if (regcomp(&re, pattern, REG_ICASE | REG_NOSUB))
		return -EINVAL;
	ret = read_lines_at(tracing_dirfd, "available_filter_functions", FUNCTIONS_MAX, &lines);
	for (size_t i = 0; i < lines.n && !ret; i++) {
		char *mod = strstr(lines.v[i], " [");

		if (mod)
			*mod = 0;
		if (regexec(&re, lines.v[i], 0, NULL, 0))
			continue;
		buf_addstr(out, lines.v[i]);
		if (mod)
			buf_printf(out, ":mod:%.*s", (int)strlen(mod + 2) - 1, mod + 2);
		buf_addstr(out, "\n");
	}
	strlist_release(&lines);
	regfree(&re);
	return ret || out->len > before ? ret : -ENOENT;
}
