// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lists of strings, numbers and texts. */
#include "base/strings.h"

#include <stdarg.h>

#include "base/buf.h"
#include "base/cursor.h"

int strlist_take(struct strlist *l, char *s)
{
	int ret = s ? array_push(&l->v, &l->n, &s, sizeof(s)) : -ENOMEM;

	if (ret)
		free(s);
	return ret;
}

int strlist_add(struct strlist *l, const char *s)
{
	return strlist_take(l, strdup(s));
}

int strlist_add_lines(struct strlist *l, const void *text, size_t len)
{
	struct cursor c = cursor_at(text, len);
	const char *line;
	int ret = 0;

	while (!ret && cursor_line(&c, &line, &len))
		ret = strlist_take(l, strndup(line, len));
	return ret;
}

bool strlist_has(const struct strlist *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], s))
			return true;
	return false;
}

static int strings_in_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void strlist_sort(struct strlist *l)
{
	array_sort(l->v, l->n, sizeof(*l->v), strings_in_order);
}

void strlist_release(struct strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct strlist){ 0 };
}

int parse_u64(const char *s, uint64_t *out)
{
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	unsigned long long v;
	char *end;

	if (hex)
		s += 2;
	/* strtoull takes blanks and signs; a number begins with a digit */
	if (hex ? !strchr("0123456789abcdefABCDEF", *s) || !*s : *s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, hex ? 16 : 10);
	if (errno)
		return -errno;
	if (*end)
		return -EINVAL;
	*out = v;
	return 0;
}

const struct unit duration_units[] = { { "ns", 1 },
				       { "us", UNIT_US },
				       { "ms", UNIT_MS },
				       { "s", UNIT_S },
				       { "min", 60 * UNIT_S },
				       { "h", 3600 * UNIT_S },
				       { "d", 86400 * UNIT_S },
				       { NULL } };
const struct unit size_units[] = { { "B", 1 },		{ "K", 1ull << 10 }, { "M", 1ull << 20 },
				   { "G", 1ull << 30 }, { "T", 1ull << 40 }, { NULL } };

int parse_amount(const char *s, const struct unit *units, uint64_t plain, uint64_t *out)
{
	size_t whole = strspn(s, "0123456789"),
	       part = s[whole] == '.' ? strspn(s + whole + 1, "0123456789") : 0;
	const char *unit = s + whole + (part ? part + 1 : 0);
	uint64_t factor = *unit ? 0 : plain, n = 0;

	if (plain && !parse_u64(s, &n)) /* hexadecimal, too */
		return __builtin_mul_overflow(n, plain, out) ? -ERANGE : 0;
	n = 0;
	for (; *unit && units->name; units++)
		if (!strcmp(unit, units->name))
			factor = units->factor;
	if (!whole || !factor)
		return -EINVAL;
	for (size_t i = 0; i < whole; i++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, s[i] - '0', &n))
			return -ERANGE;
	if (__builtin_mul_overflow(n, factor, &n))
		return -ERANGE;
	for (uint64_t i = 1, scale = 10; i <= part && scale <= UNIT_S; i++, scale *= 10)
		if (__builtin_add_overflow(n, factor * (uint64_t)(s[whole + i] - '0') / scale, &n))
			return -ERANGE;
	*out = n;
	return 0;
}

const char *amount_text(uint64_t amount, const struct unit *units, char out[32])
{
	const struct unit *best = units;

	for (; units->name; units++)
		if (amount && amount % units->factor == 0)
			best = units;
	snprintf(out, 32, "%llu%s", (unsigned long long)(amount / best->factor), best->name);
	return out;
}

int hex_value(int ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch |= 0x20;
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

#define NEAREST_MAX 32 /* letters of words that are compared */

void nearest_offer(struct nearest *n, const char *word)
{
	unsigned int d[NEAREST_MAX + 1][NEAREST_MAX + 1]; /* by the letters that are compared of both */
	size_t typed = n->len, len = strlen(word);
	unsigned int allowed = (typed >= 3) + (typed >= 6);

	if (typed > NEAREST_MAX || len > NEAREST_MAX)
		return;
	for (size_t i = 0; i <= typed; i++)
		d[i][0] = (unsigned int)i;
	for (size_t k = 0; k <= len; k++)
		d[0][k] = (unsigned int)k;
	for (size_t i = 1; i <= typed; i++)
		for (size_t k = 1; k <= len; k++) {
			unsigned int least = d[i - 1][k - 1] + (n->typed[i - 1] != word[k - 1]);

			if (d[i - 1][k] < least)
				least = d[i - 1][k] + 1;
			if (d[i][k - 1] < least)
				least = d[i][k - 1] + 1;
			if (i > 1 && k > 1 && n->typed[i - 1] == word[k - 2] &&
			    n->typed[i - 2] == word[k - 1] && d[i - 2][k - 2] < least)
				least = d[i - 2][k - 2] + 1;
			d[i][k] = least;
		}
	if (d[typed][len] <= allowed && (!n->word || d[typed][len] < n->distance)) {
		n->word = word;
		n->distance = d[typed][len];
	}
}

const char *errno_text(int error)
{
	return error == -EBADMSG ? "it is damaged, or not in the expected format" : strerror(-error);
}

const char *chosen_word(const char *text, size_t len, size_t *n)
{
	const char *open = len ? memchr(text, '[', len) : NULL;
	const char *close = open ? memchr(open, ']', (size_t)(text + len - open)) : NULL;

	*n = close ? (size_t)(close - open - 1) : 0;
	return close ? open + 1 : NULL;
}

size_t word_len(const char *s, size_t most, const char *more)
{
	size_t n = 0;

	while (n < most && (is_word_char(s[n]) || (s[n] && strchr(more, s[n]))))
		n++;
	return n;
}

bool is_word(const char *s, size_t len)
{
	return len && len < 64 && word_len(s, len, "") == len;
}

int str_take(char **to, char *s)
{
	if (!s)
		return -ENOMEM;
	free(*to);
	*to = s;
	return 0;
}

char *str_printf(const char *fmt, ...)
{
	char *s;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : s;
}

size_t path_stem(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

	return dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
}

void shell_quote(struct buf *line, const char *word)
{
	buf_addstr(line, " '");
	for (; *word; word++)
		if (*word == '\'')
			buf_addstr(line, "'\\''");
		else
			buf_add(line, word, 1);
	buf_addstr(line, "'");
}

void shell_word(struct buf *out, const char *word)
{
	if (word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./,:+@")])
		shell_quote(out, word);
	else
		buf_printf(out, " %s", word);
}

bool words_have(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = words; n && (p = strstr(p, word)); p += n)
		if ((p == words || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return true;
	return false;
}
