// SPDX-License-Identifier: LGPL-2.1-or-later
/* crosvm's lines in trace_marker, taken apart. */
#include "base/decode/mark-lines.h"

#include "base/strings.h"

/* Takes s off the front of p, if it stands there. */
static bool take_prefix(struct crosvm_part *p, const char *s)
{
	size_t n = strlen(s);

	if (p->len < n || memcmp(p->p, s, n))
		return false;
	*p = (struct crosvm_part){ p->p + n, p->len - n };
	return true;
}

static void skip(struct crosvm_part *p, size_t n)
{
	p->p += n;
	p->len -= n;
}

/* Digits and the space behind them. */
static bool take_id(struct crosvm_part *p, uint64_t *id)
{
	size_t n = 0;

	for (*id = 0; n < p->len && isdigit((unsigned char)p->p[n]); n++) {
		uint64_t digit = (uint64_t)(p->p[n] - '0');

		if (*id > (UINT64_MAX - digit) / 10)
			return false;
		*id = *id * 10 + digit;
	}
	if (!n || n == p->len || p->p[n] != ' ')
		return false;
	skip(p, n + 1);
	return true;
}

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
	skip(args, n);
	return true;
}

/* Names may hold " - " and parentheses: the arguments are what is whole to the end. */
static void split_args(struct crosvm_part rest, struct crosvm_line *out)
{
	out->name = rest;
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
	struct crosvm_part p = { line, len };

	*out = (struct crosvm_line){ 0 };
	if (!take_id(&p, &out->id))
		return false;
	out->enter = take_prefix(&p, "Enter: ");
	if (!out->enter && !take_prefix(&p, "Exit: ")) {
		size_t n = word_len(p.p, p.len, "");

		if (n && n < p.len && p.p[n] == ' ') {
			out->category = (struct crosvm_part){ p.p, n };
			skip(&p, n + 1);
		}
		out->enter = take_prefix(&p, "Enter: ");
		if (!out->enter && !take_prefix(&p, "Exit: "))
			return false;
	}
	if (!p.len)
		return false;
	if (out->enter)
		split_args(p, out);
	else
		out->name = p;
	return true;
}
