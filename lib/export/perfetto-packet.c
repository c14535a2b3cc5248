// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets of a Perfetto trace, packed and written in order. */
#include <errno.h>
#include <stdlib.h>

#include "export/perfetto-priv.h"

#define FLUSH_AT (256u << 10)

int pf_flush(struct pf_out *o)
{
	int ret = buf_status(&o->bytes);

	if (ret)
		return ret;
	ret = write_all(o->fd, o->bytes.data, o->bytes.len);
	o->bytes.len = 0;
	return ret;
}

int pf_put(struct pf_out *o, uint32_t machine, pf_packet *p)
{
	/* a trace is its packets' fields one after the other */
	Perfetto__Protos__Trace trace = PERFETTO__PROTOS__TRACE__INIT;
	size_t len;

	if (machine) {
		p->has_machine_id = true;
		p->machine_id = machine;
	}
	trace.n_packet = 1;
	trace.packet = &p;
	len = protobuf_c_message_get_packed_size(&trace.base);
	if (len > o->packed_size) {
		uint8_t *v = realloc(o->packed, len);

		if (!v)
			return -ENOMEM;
		o->packed = v;
		o->packed_size = len;
	}
	protobuf_c_message_pack(&trace.base, o->packed);
	buf_add(&o->bytes, o->packed, len);
	return o->bytes.len < FLUSH_AT ? buf_status(&o->bytes) : pf_flush(o);
}

void pf_out_release(struct pf_out *o)
{
	buf_release(&o->bytes);
	free(o->packed);
}
