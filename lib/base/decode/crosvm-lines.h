/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CROSVM_LINES_H
#define HYPTRACE_CROSVM_LINES_H

#include "base/std.h"

/*
 * The lines that crosvm's trace_marker backend writes (cros_tracing):
 *
 *   503 VirtioFs Enter: release - (self.tag: "mtdroot")(inode: 42)
 *   503 VirtioFs Exit: release
 *
 * Older ones leave the category out of Exit. The id is unique in its process: a pair is (tgid, id).
 */

struct crosvm_part {
	const char *p; /* in the line; NULL: absent */
	size_t len;
};

struct crosvm_line {
	uint64_t id;
	bool enter; /* else exit */
	struct crosvm_part category, name;
	struct crosvm_part args; /* all of them, with their parentheses; for crosvm_arg */
};

/* False: some other text. The line needs no NUL. */
bool crosvm_line_parse(const char *line, size_t len, struct crosvm_line *out);
/*
 * Takes the next "(expression: value)" off args, which must be those of a parsed
 * line or what is left of them. The value may hold parentheses and quotes.
 */
bool crosvm_arg(struct crosvm_part *args, struct crosvm_part *expr, struct crosvm_part *value);

#endif
