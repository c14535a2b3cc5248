// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs of records on their way into a trace: packets, compressed as Perfetto's own are. */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "export/perfetto-priv.h"
#include "util/array.h"

/* The fastest: what it leaves is a quarter, and the slowest leaves a fifth in four times the time. */
#define ZIP_LEVEL 1

/* ---- records ------------------------------------------------------------------------- */

struct pf_chunk *pf_chunk_new(size_t n_cpus)
{
	struct pf_chunk *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->queues = calloc(n_cpus + 1, sizeof(*c->queues));
	if (!c->queues) {
		free(c);
		return NULL;
	}
	return c;
}

bool pf_chunk_begin(struct pf_chunk *c, size_t n)
{
	c->n = c->n_late = 0;
	c->packets.len = 0;
	arena_reset(&c->kept);
	if (n > c->cap) {
		struct pf_record *v = reallocarray(c->v, n, sizeof(*v));

		if (!v)
			return false;
		c->v = v;
		c->cap = n;
	}
	return true;
}

void pf_chunk_late(struct pf_chunk *c, const struct pf_record *r)
{
	struct pf_record late = *r;
	uint8_t *data = arena_alloc(&c->kept, r->len + 1);

	if (!data)
		return;
	memcpy(data, r->data, r->len);
	late.data = data;
	c->kept.bad |= array_push(&c->late, &c->n_late, &late, sizeof(late)) != 0;
}

/* ---- compressing ------------------------------------------------------------------------ */

static z_stream *chunk_zip(struct pf_chunk *c)
{
	z_stream *z = c->zip;

	if (z)
		return deflateReset(z) == Z_OK ? z : NULL;
	z = calloc(1, sizeof(*z));
	if (z && deflateInit(z, ZIP_LEVEL) != Z_OK) {
		free(z);
		z = NULL;
	}
	c->zip = z;
	return z;
}

int pf_chunk_zip(struct pf_chunk *c, struct buf *out)
{
	z_stream *z = chunk_zip(c);
	size_t packet, bytes;
	uLong room;

	if (c->packets.bad || !z)
		return -ENOMEM;
	if (!c->packets.len)
		return 0;
	room = deflateBound(z, c->packets.len);
	packet = pb_open(out, TRACE_PACKET);
	bytes = pb_open(out, PACKET_COMPRESSED);
	if (!buf_room(out, room))
		return -ENOMEM;
	z->next_in = c->packets.data;
	z->avail_in = (uInt)c->packets.len;
	z->next_out = out->data + out->len;
	z->avail_out = (uInt)room;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return -ENOMEM;
	out->len += z->total_out;
	pb_close(out, bytes);
	pb_close(out, packet);
	return buf_status(out);
}

void pf_chunk_free(void *chunk)
{
	struct pf_chunk *c = chunk;

	if (!c)
		return;
	if (c->zip)
		deflateEnd(c->zip);
	free(c->zip);
	free(c->late);
	free(c->v);
	free(c->queues);
	arena_release(&c->kept);
	buf_release(&c->packets);
	free(c);
}
