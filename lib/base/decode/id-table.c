// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lines of users' text files, and the texts by number that most of them hold. */
#include "base/decode/id-table.h"
#include "base/array.h"
#include "base/cursor.h"

#include <ctype.h>

int text_lines(const void *data, size_t len, bool trailing, int (*fn)(void *ctx, char *line), void *ctx,
	       unsigned int *number)
{
	struct cursor c = cursor_at(data, len);
	unsigned int unused = 0;
	const char *line;
	size_t n;

	number = number ? number : &unused;
	for (*number = 0; cursor_line(&c, &line, &n);) {
		const char *hash = memchr(line, '#', n);
		char *copy;
		int ret;

		++*number;
		if (memchr(line, 0, n))
			return -EBADMSG;
		if (hash && (trailing || hash == line))
			n = (size_t)(hash - line);
		while (trailing && n && isspace((unsigned char)line[n - 1]))
			n--;
		if (!n)
			continue;
		copy = strndup(line, n);
		ret = copy ? fn(ctx, copy) : -ENOMEM;
		free(copy);
		if (ret)
			return ret;
	}
	return 0;
}

int id_table_set(struct id_table *t, size_t id, const char *text)
{
	char *copy = strdup(text);

	if (!copy || array_reach(&t->v, &t->n, id + 1, sizeof(*t->v))) {
		free(copy);
		return -ENOMEM;
	}
	free(t->v[id]);
	t->v[id] = copy;
	return 0;
}

const char *id_table_get(const struct id_table *t, uint64_t id)
{
	return id < t->n ? t->v[id] : NULL;
}

void id_table_release(struct id_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i]);
	free(t->v);
	*t = (struct id_table){ 0 };
}
