// SPDX-License-Identifier: LGPL-2.1-or-later
/* A program for an event's text while it is made: its memory, its pieces, what does not compile. */
#include <dlfcn.h>
#include <stdarg.h>

#include "text-priv.h"

void text_refuse(struct text_build *b, const char *fmt, ...)
{
	va_list ap;

	if (b->ret)
		return;
	b->ret = -ENOTSUP;
	va_start(ap, fmt);
	vsnprintf(b->why, TEXT_WHY_MAX, fmt, ap);
	va_end(ap);
}

bool text_since_1_8(void)
{
	return dlsym(RTLD_DEFAULT, "tep_get_sub_buffer_data_size");
}

void *text_alloc(struct text_build *b, size_t n)
{
	void *p = arena_alloc(&b->p->arena, n);

	if (!p)
		b->ret = -ENOMEM;
	return p;
}

const char *text_copy(struct text_build *b, const char *s, size_t len)
{
	char *copy = text_alloc(b, len + 1);

	return copy ? memcpy(copy, s, len) : NULL;
}

struct text_piece *text_piece_add(struct text_build *b, enum text_piece_kind kind)
{
	const struct text_piece piece = { .before = text_copy(b, buf_str(&b->before), b->before.len),
					  .before_len = b->before.len,
					  .kind = kind };

	if (!piece.before || array_push(&b->p->pieces, &b->p->n, &piece, sizeof(piece))) {
		b->ret = -ENOMEM;
		return NULL;
	}
	b->before.len = 0;
	return &b->p->pieces[b->p->n - 1];
}
