// SPDX-License-Identifier: LGPL-2.1-or-later
/* The formats of a profile's events. */
#include "hyp/events.h"
#include "profile/samples.h"

static const char *const profile_formats[PROFILE_EVENTS] = {
	"\tfield:int tgid;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
	"\tfield:unsigned char mode;\toffset:28;\tsize:1;\tsigned:0;\n"
	"\tfield:u64 ip;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc u64[] kernel;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc u64[] user;\toffset:44;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"comm=%s tgid=%d mode=%s ip=0x%llx kernel=%s user=%s\", REC->comm, REC->tgid, "
	"__print_symbolic(REC->mode, { 1, \"kernel\" }, { 2, \"user\" }, { 3, \"hypervisor\" }, "
	"{ 4, \"guest_kernel\" }, { 5, \"guest_user\" }), REC->ip, "
	"__print_array(__get_dynamic_array(kernel), __get_dynamic_array_len(kernel) / 8, 8), "
	"__print_array(__get_dynamic_array(user), __get_dynamic_array_len(user) / 8, 8)\n",

	"\tfield:int tgid;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 from;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 len;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 offset;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc u8[] build_id;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc char[] path;\toffset:44;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"tgid=%d from=0x%llx len=0x%llx offset=0x%llx build_id=%s path=%s\", REC->tgid, "
	"REC->from, REC->len, REC->offset, "
	"__print_hex_str(__get_dynamic_array(build_id), __get_dynamic_array_len(build_id)), "
	"__get_str(path)\n",
};

void profile_format(size_t i, unsigned int first_id, struct buf *out)
{
	static const char *const names[PROFILE_EVENTS] = { PROFILE_SAMPLE, PROFILE_MAP };

	hypevents_format_head(names[i], first_id + (unsigned int)i, out);
	buf_addstr(out, profile_formats[i]);
}
