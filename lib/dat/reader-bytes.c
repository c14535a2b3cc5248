// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bytes of a trace.dat as its reader takes them: read whole, bounded by the file, unpacked. */
#include <errno.h>
#include <stdlib.h>

#include "dat/reader-priv.h"
#include "util/array.h"

int reader_bad(const struct reader *r, const char *what)
{
	log_err(r->log, "not a whole trace.dat: %s", what);
	return -EBADMSG;
}

int reader_failed(const struct reader *r, int error, const char *what)
{
	return error == -EBADMSG ? reader_bad(r, what) : error;
}

int reader_read(const struct reader *r, uint64_t offset, void *data, size_t len)
{
	ssize_t n;

	if (offset > r->size || len > r->size - offset)
		return -EBADMSG;
	n = pread_all(r->fd, data, len, offset);
	if (n < 0)
		return (int)n;
	return (size_t)n < len ? -EBADMSG : 0;
}

/* A block: u32 compressed, u32 plain size, data. */
static int unzip_body(struct unzips *u, struct buf *body)
{
	struct cursor c = cursor_at(body->data, body->len);
	uint32_t csize = cursor_u32(&c), usize = cursor_u32(&c);
	const void *in = cursor_take(&c, csize);
	struct buf plain = { .len = usize, .cap = usize };
	int ret;

	if (!in || usize > READER_BODY_MAX)
		return -EBADMSG;
	plain.data = malloc(usize ? usize : 1);
	if (!plain.data)
		return -ENOMEM;
	ret = unzip(u, in, csize, plain.data, usize);
	if (ret) {
		buf_release(&plain);
		return ret;
	}
	buf_release(body);
	*body = plain;
	return 0;
}

struct buf *reader_add_body(struct reader *r)
{
	struct buf *v = array_grow(r->bodies, r->n_bodies, sizeof(*v));

	if (!v)
		return NULL;
	r->bodies = v;
	v[r->n_bodies] = (struct buf){ 0 };
	return &v[r->n_bodies++];
}

int reader_body(struct reader *r, uint64_t offset, uint64_t len, bool zipped, struct cursor *out)
{
	struct buf *b;
	int ret;

	if (len > READER_BODY_MAX || offset > r->size || len > r->size - offset)
		return reader_bad(r, "a section reaches beyond the file");
	b = reader_add_body(r);
	if (!b)
		return -ENOMEM;
	*b = (struct buf){ .data = malloc(len ? len : 1), .len = len, .cap = len };
	if (!b->data)
		return -ENOMEM;
	ret = reader_read(r, offset, b->data, len);
	if (!ret && zipped)
		ret = r->zstd ? unzip_body(r->unzips, b) : -EBADMSG;
	if (ret)
		return reader_failed(r, ret, "a section cannot be read");
	*out = cursor_at(b->data, b->len);
	return 0;
}
