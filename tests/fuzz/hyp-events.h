/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FUZZ_HYP_EVENTS_H
#define HYPTRACE_FUZZ_HYP_EVENTS_H

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "record/hyp/hypevents.h"
#include "record/hyp/hypevents.h"

/* A few events of all kinds, for the fuzzers of the two transcoders. */

#define TYPE "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"

static const char *const hyp_event_formats[] = {
	"name: hyp_enter\nID: 0\nformat:\n" TYPE "\tfield:u8 reason;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:pid_t vcpu;\toffset:3;\tsize:4;\tsigned:1;\n\n"
	"print fmt: \"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu\n",
	"name: host_hcall\nID: 1\nformat:\n" TYPE "\tfield:unsigned int id;\toffset:2;\tsize:4;\tsigned:0;\n"
	"\tfield:u8 invalid;\toffset:6;\tsize:1;\tsigned:0;\n\n"
	"print fmt: \"id=%-4u invalid=%02u\", REC->id, REC->invalid\n",
	"name: host_mem_abort\nID: 2\nformat:\n" TYPE "\tfield:u64 esr;\toffset:2;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 addr;\toffset:10;\tsize:8;\tsigned:0;\n\n"
	"print fmt: \"esr=0x%llx addr=0x%016llx\", REC->esr, REC->addr\n",
	"name: vendor\nID: 3\nformat:\n" TYPE "\tfield:char comm[16];\toffset:2;\tsize:16;\tsigned:0;\n"
	"\tfield:s8 n;\toffset:18;\tsize:1;\tsigned:1;\n\tfield:char "
	"c;\toffset:19;\tsize:1;\tsigned:0;\n"
	"\tfield:void *p;\toffset:20;\tsize:8;\tsigned:0;\n\n"
	"print fmt: \"comm=%s n=%5d c=%c p=%p\", REC->comm, REC->n, REC->c, REC->p\n",
	"name: say\nID: 4\nformat:\n" TYPE
	"\tfield:__data_loc char[] what;\toffset:2;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"%s\", __get_str(what)\n",
};

static inline void hyp_events_init(struct hypevents *e, bool raw)
{
	if (hypevents_init(e, "hypervisor"))
		abort();
	e->raw = raw;
	for (size_t i = 0; i < ARRAY_SIZE(hyp_event_formats); i++)
		if (hypevents_add(e, hyp_event_formats[i], strlen(hyp_event_formats[i])))
			abort();
	if (hypevents_number(e, 1000))
		abort();
}

#endif
