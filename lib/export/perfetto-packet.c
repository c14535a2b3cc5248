// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets of a Perfetto trace, packed, compressed as Perfetto's own are, and written in order. */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "export/perfetto-priv.h"

#define FLUSH_AT (256u << 10)

/* The packet as a Trace of one into o->packed: a trace is its packets' fields one after the other. */
static int pack(struct pf_out *o, pf_packet *p, size_t *len)
{
	Perfetto__Protos__Trace trace = PERFETTO__PROTOS__TRACE__INIT;

	trace.n_packet = 1;
	trace.packet = &p;
	*len = protobuf_c_message_get_packed_size(&trace.base);
	if (*len > o->packed_size) {
		uint8_t *v = realloc(o->packed, *len);

		if (!v)
			return -ENOMEM;
		o->packed = v;
		o->packed_size = *len;
	}
	protobuf_c_message_pack(&trace.base, o->packed);
	return 0;
}

int pf_flush(struct pf_out *o)
{
	uLongf zipped = compressBound(o->bytes.len);
	pf_packet p = PF_PACKET_INIT;
	int ret = buf_status(&o->bytes);
	uint8_t *room;
	size_t len;

	if (ret || !o->bytes.len)
		return ret;
	room = malloc(zipped);
	if (!room || compress(room, &zipped, o->bytes.data, o->bytes.len) != Z_OK) {
		ret = -ENOMEM;
		goto out;
	}
	p.has_compressed_packets = true;
	p.compressed_packets = (ProtobufCBinaryData){ zipped, room };
	ret = pack(o, &p, &len);
	if (ret)
		goto out;
	ret = write_all(o->fd, o->packed, len);
	o->bytes.len = 0;
out:
	free(room);
	return ret;
}

int pf_put(struct pf_out *o, uint32_t machine, pf_packet *p)
{
	size_t len;
	int ret;

	if (machine) {
		p->has_machine_id = true;
		p->machine_id = machine;
	}
	ret = pack(o, p, &len);
	if (ret)
		return ret;
	buf_add(&o->bytes, o->packed, len);
	return o->bytes.len < FLUSH_AT ? buf_status(&o->bytes) : pf_flush(o);
}

void pf_out_release(struct pf_out *o)
{
	buf_release(&o->bytes);
	free(o->packed);
}
