// SPDX-License-Identifier: LGPL-2.1-or-later
/* The stretches between regions in which nothing was recorded, as an option of a file. */
#include "file/dat/pauses.h"

#include "base/array.h"
#include "base/cursor.h"

int pauses_add(struct pauses *p, uint64_t from, uint64_t to)
{
	struct pause one = { from, to };

	if (p->n && one.from < p->v[p->n - 1].to)
		one.from = p->v[p->n - 1].to;
	return one.from > to ? 0 : array_push(&p->v, &p->n, &one, sizeof(one));
}

void pauses_release(struct pauses *p)
{
	free(p->v);
	*p = (struct pauses){ 0 };
}

void pauses_encode(const struct pauses *p, const char *clock, struct buf *out)
{
	buf_add(out, clock, strlen(clock) + 1);
	for (size_t i = 0; i < p->n; i++) {
		buf_add(out, &p->v[i].from, sizeof(p->v[i].from));
		buf_add(out, &p->v[i].to, sizeof(p->v[i].to));
	}
}

int pauses_decode(const void *data, size_t len, struct pauses *out)
{
	size_t name = strnlen(data, len);
	struct cursor c = cursor_at((const uint8_t *)data + name + 1, name < len ? len - name - 1 : 0);
	int ret = name < len && !(cursor_left(&c) % sizeof(struct pause)) ? 0 : -EBADMSG;

	*out = (struct pauses){ 0 };
	while (!ret && cursor_left(&c)) {
		uint64_t from = cursor_u64(&c), to = cursor_u64(&c);
		bool sorted = from <= to && (!out->n || from >= out->v[out->n - 1].to);

		ret = sorted ? pauses_add(out, from, to) : -EBADMSG;
	}
	if (ret)
		pauses_release(out);
	return ret;
}

bool pauses_between(const struct pauses *p, uint64_t a, uint64_t b, size_t *next)
{
	while (*next < p->n && p->v[*next].to < a)
		++*next;
	return *next < p->n && p->v[*next].from <= b;
}
