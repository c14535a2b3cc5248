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
	struct buf text = { 0 };
	struct cursor c;
	const char *line;
	size_t len, before = out->len;
	regex_t re;
	int ret;

	if (regcomp(&re, pattern, REG_ICASE | REG_NOSUB))
		return -EINVAL;
	ret = read_file_at(tracing_dirfd, "available_filter_functions", FUNCTIONS_MAX, &text);
	c = cursor_at(text.data, ret ? 0 : text.len);
	while (cursor_line(&c, &line, &len)) {
		const char *mod = memmem(line, len, " [", 2);
		size_t name_len = mod ? (size_t)(mod - line) : len;
		char *name = strndup(line, name_len);

		if (name && !regexec(&re, name, 0, NULL, 0)) {
			buf_addstr(out, name);
			if (mod)
				buf_printf(out, ":mod:%.*s", (int)(len - name_len - 3), mod + 2);
			buf_addstr(out, "\n");
		}
		free(name);
	}
	buf_release(&text);
	regfree(&re);
	return ret || out->len > before ? ret : -ENOENT;
}
