// SPDX-License-Identifier: LGPL-2.1-or-later
/* crosvm's lines in trace_marker, taken apart. */
#include "base/decode/mark-lines.h"

#include "base/cursor.h"
#include "base/strings.h"

/* Length of the "(...)" at the start of p, 0 when it does not end. */
static size_t group(const struct crosvm_part *p)
{
	bool quoted = false;
	int depth = 0;

	for (size_t i = 0; i < p->len; i++) {
		char c = p->p[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && c == '(')
			depth++;
		else if (!quoted && c == ')' && !--depth)
			return i + 1;
	}
	return 0;
}

bool crosvm_arg(struct crosvm_part *args, struct crosvm_part *expr, struct crosvm_part *value)
{
	size_t n = args->len && *args->p == '(' ? group(args) : 0, colon = 1;

	if (!n)
		return false;
	while (colon + 1 < n && !(args->p[colon] == ':' && args->p[colon + 1] == ' '))
		colon++;
	if (colon + 2 > n - 1) /* no value: all of it is the expression */
		colon = n - 1;
	*expr = (struct crosvm_part){ args->p + 1, colon - 1 };
	*value = colon == n - 1 ? (struct crosvm_part){ args->p + colon, 0 }
				: (struct crosvm_part){ args->p + colon + 2, n - 1 - (colon + 2) };
	*args = (struct crosvm_part){ args->p + n, args->len - n };
	return true;
}

/* Names may hold " - " and parentheses: the arguments are what is whole to the end. */
static void split_args(struct crosvm_line *out)
{
	const struct crosvm_part rest = out->name;

	for (size_t i = 0; i + 4 <= rest.len; i++) {
		struct crosvm_part args = { rest.p + i + 3, rest.len - i - 3 }, left = args, expr, value;

		if (memcmp(rest.p + i, " - (", 4))
			continue;
		while (left.len && crosvm_arg(&left, &expr, &value))
			;
		if (left.len)
			continue;
		out->name.len = i;
		out->args = args;
		return;
	}
}

bool crosvm_line_parse(const char *line, size_t len, struct crosvm_line *out)
{
	struct cursor c = cursor_at(line, len);

	*out = (struct crosvm_line){ 0 };
	if (!cursor_decimal(&c, &out->id) || !cursor_accept(&c, ' '))
		return false;
	out->enter = cursor_word(&c, "Enter: ");
	if (!out->enter && !cursor_word(&c, "Exit: ")) {
		size_t n = word_len((const char *)c.p, cursor_left(&c), "");

		out->category = (struct crosvm_part){ cursor_take(&c, n), n };
		if (!n || !cursor_accept(&c, ' '))
			return false;
		out->enter = cursor_word(&c, "Enter: ");
		if (!out->enter && !cursor_word(&c, "Exit: "))
			return false;
	}
	if (!cursor_left(&c))
		return false;
	out->name = (struct crosvm_part){ (const char *)c.p, cursor_left(&c) };
	if (out->enter)
		split_args(out);
	return true;
}
