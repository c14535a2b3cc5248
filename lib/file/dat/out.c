// SPDX-License-Identifier: LGPL-2.1-or-later
/* The file being written: one buffer in front of pwrite. */
#include "file/dat/writer.h"
#include "base/files.h"

#define OUT_SIZE (256u << 10)

int dat_out_init(struct dat_out *o, int fd)
{
	*o = (struct dat_out){ .fd = fd };
	o->buf = malloc(OUT_SIZE);
	if (!o->buf)
		o->err = -ENOMEM;
	return o->err;
}

void dat_out_release(struct dat_out *o)
{
	free(o->buf);
	o->buf = NULL;
	o->used = 0;
}

static void out_write_at(struct dat_out *o, const void *p, size_t len, uint64_t at)
{
	if (!o->err)
		o->err = pwrite_all(o->fd, p, len, at);
}

int dat_out_flush(struct dat_out *o)
{
	out_write_at(o, o->buf, o->used, o->pos - o->used);
	o->used = 0;
	return o->err;
}

void dat_out_write(struct dat_out *o, const void *data, size_t len)
{
	if (o->err)
		return;
	if (len > OUT_SIZE - o->used)
		dat_out_flush(o);
	if (len >= OUT_SIZE) {
		out_write_at(o, data, len, o->pos);
	} else if (len) {
		memcpy(o->buf + o->used, data, len);
		o->used += len;
	}
	o->pos += len;
}

void dat_out_u16(struct dat_out *o, uint16_t v)
{
	dat_out_write(o, &v, sizeof(v));
}

void dat_out_u32(struct dat_out *o, uint32_t v)
{
	dat_out_write(o, &v, sizeof(v));
}

void dat_out_u64(struct dat_out *o, uint64_t v)
{
	dat_out_write(o, &v, sizeof(v));
}

void dat_out_magic(struct dat_out *o, int version, uint32_t page_size)
{
	static const uint8_t magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	/* little endian; 64-bit kernels only: see page.h */
	const uint8_t rest[] = { (uint8_t)('0' + version), 0, 0, 8 };

	dat_out_write(o, magic, sizeof(magic));
	dat_out_write(o, rest, sizeof(rest));
	dat_out_u32(o, page_size);
}

void dat_out_align(struct dat_out *o, uint32_t align)
{
	static const uint8_t zeros[4096];
	uint64_t left = -o->pos & (align - 1);

	while (left && !o->err) {
		size_t n = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);

		dat_out_write(o, zeros, n);
		left -= n;
	}
}

void dat_out_patch(struct dat_out *o, uint64_t at, uint64_t v, size_t size)
{
	dat_out_flush(o);
	out_write_at(o, &v, size, at); /* little-endian, as page.h */
}
