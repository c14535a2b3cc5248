// SPDX-License-Identifier: LGPL-2.1-or-later
/* The event of a guest's program, as the file has it. */
#include "hypertrace/mark.h"

#include "hyp/events.h"

struct mark_record {
	uint16_t type;
	uint8_t head[6];
	uint32_t client;
	int32_t vcpu;
	uint64_t guest_time;
	uint64_t arg[RING_ARGS];
	uint32_t guest; /* __data_loc */
} __attribute__((packed));

static const char mark_format[] =
	"\tfield:unsigned int client;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:int vcpu;\toffset:12;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 guest_time;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 arg1;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 arg2;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 arg3;\toffset:40;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 arg4;\toffset:48;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc char[] guest;\toffset:56;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"client=%u arg1=0x%llx arg2=0x%llx arg3=0x%llx arg4=0x%llx guest=%s vcpu=%d\", "
	"REC->client, REC->arg1, REC->arg2, REC->arg3, REC->arg4, __get_str(guest), REC->vcpu\n";

int mark_keep_format(struct spool *spool, unsigned int id)
{
	struct buf one = { 0 }, all = { 0 };
	int ret;

	hypevents_format_head(MARK_EVENT, id, &one);
	buf_addstr(&one, mark_format);
	buf_printf(&all, "%s %zu\n%s", MARK_SYSTEM, one.len, buf_str(&one) ?: "");
	ret = buf_status(&one) ?: buf_status(&all) ?: spool_append_text(spool, "formats", all.data, all.len);
	buf_release(&one);
	buf_release(&all);
	return ret ?: spool_set_number(spool, "hypertrace_id", id);
}

size_t mark_put(uint8_t *out, unsigned int id, const uint8_t *head, const char *guest, int vcpu,
		uint32_t client, const struct ring_event *ev)
{
	size_t len = strnlen(guest, MARK_GUEST_MAX);
	struct mark_record r = {
		.type = (uint16_t)id, .client = client, .vcpu = vcpu, .guest_time = ev->time
	};

	memcpy(r.head, head + sizeof(r.type), sizeof(r.head));
	memcpy(r.arg, ev->arg, sizeof(r.arg));
	r.guest = (uint32_t)((len + 1) << 16 | sizeof(r));
	memcpy(out, &r, sizeof(r));
	memcpy(out + sizeof(r), guest, len);
	out[sizeof(r) + len] = 0;
	return sizeof(r) + len + 1;
}
