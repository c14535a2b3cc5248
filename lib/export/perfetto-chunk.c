// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs of records on their way into a trace: packets, compressed as Perfetto's own are. */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

#include "export/perfetto-priv.h"
#include "util/array.h"

/* The fastest: compressing is still half of an export's work. */
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

int pf_chunk_zip(struct pf_chunk *c, struct buf *out)
{
	size_t packet, bytes, room;

	if (!c->zip)
		c->zip = libdeflate_alloc_compressor(ZIP_LEVEL);
	if (c->packets.bad || !c->zip)
		return -ENOMEM;
	if (!c->packets.len)
		return 0;
	room = libdeflate_zlib_compress_bound(c->zip, c->packets.len);
	packet = pb_open(out, TRACE_PACKET);
	bytes = pb_open(out, PACKET_COMPRESSED);
	if (!buf_room(out, room))
		return -ENOMEM;
	out->len +=
		libdeflate_zlib_compress(c->zip, c->packets.data, c->packets.len, out->data + out->len, room);
	pb_close(out, bytes);
	pb_close(out, packet);
	return buf_status(out);
}

void pf_chunk_free(void *chunk)
{
	struct pf_chunk *c = chunk;

	if (!c)
		return;
	libdeflate_free_compressor(c->zip);
	free(c->late);
	free(c->v);
	free(c->queues);
	arena_release(&c->kept);
	buf_release(&c->packets);
	free(c);
}
