// SPDX-License-Identifier: LGPL-2.1-or-later
/* Protobuf messages: texts, and messages whose length takes more than a byte. */
#include "export/protobuf.h"

#include "util/visible.h"

/* Bytes that stand for themselves: nearly all of nearly all texts. */
static size_t pb_plain_len(const char *text, size_t n)
{
	size_t len = 0;

	while (len < n && (uint8_t)text[len] - 1u < 0x7f)
		len++;
	return len;
}

void pb_text(struct buf *b, unsigned int field, const char *text, size_t n)
{
	size_t len = pb_plain_len(text, n), begin;

	if (len == n || !text[len]) {
		pb_bytes(b, field, text, len);
		return;
	}
	begin = pb_open(b, field);
	n = strnlen(text, n);
	for (size_t i = 0, k; i < n; i += k ? k : 1) {
		k = utf8_len((const uint8_t *)text + i, n - i);
		buf_add(b, k ? text + i : "\xef\xbf\xbd", k ? k : 3);
	}
	pb_close(b, begin);
}

/* The length has one byte so far. */
void pb_close_long(struct buf *b, size_t begin)
{
	uint8_t length[PB_VARINT_MAX];
	size_t n, len = b->len - begin;

	if (b->bad)
		return;
	n = (size_t)(pb_varint(length, len) - length);
	if (!buf_room(b, n))
		return;
	memmove(b->data + begin - 1 + n, b->data + begin, len);
	memcpy(b->data + begin - 1, length, n);
	b->len += n - 1;
}
