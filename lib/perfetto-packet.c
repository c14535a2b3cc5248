// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>

#include "perfetto-priv.h"

#define FLUSH_AT (256u << 10)

int pf_flush(struct pf_out *o)
{
	int ret = buf_status(&o->bytes);

	if (!ret)
		ret = write_all(o->fd, o->bytes.data, o->bytes.len);
	o->bytes.len = 0;
	return ret;
}

static void append(ProtobufCBuffer *b, size_t len, const uint8_t *data)
{
	struct buf *bytes = *(struct buf **)(b + 1);

	buf_add(bytes, data, len);
}

int pf_put(struct pf_out *o, uint32_t machine, pf_packet *p)
{
	/* a trace is its packets' fields one after the other */
	Perfetto__Protos__Trace trace = PERFETTO__PROTOS__TRACE__INIT;
	struct {
		ProtobufCBuffer base;
		struct buf *bytes;
	} to = { { append }, &o->bytes };

	if (machine) {
		p->has_machine_id = true;
		p->machine_id = machine;
	}
	trace.n_packet = 1;
	trace.packet = &p;
	protobuf_c_message_pack_to_buffer(&trace.base, &to.base);
	if (o->bytes.len >= FLUSH_AT)
		return pf_flush(o);
	return buf_status(&o->bytes);
}
