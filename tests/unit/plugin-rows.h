/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_TEST_PLUGIN_ROWS_H
#define HYPTRACE_TEST_PLUGIN_ROWS_H

/* Tables of events, a record's values and what is to be printed of it. */
#include "plugin-rig.h"

struct row {
	struct rig_event event;
	uint64_t values[RIG_FIELDS_MAX];
	const char *text;
};

static inline void check_rows(struct rig *r, struct row *rows, size_t n)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < n; i++) {
		rows[i].event.id = 300 + (int)i;
		rig_add(r, &rows[i].event);
		rig_record(&rows[i].event, rows[i].values, NULL, 0, &b);
		assert_string_equal(rig_print(r, b.data, b.len), rows[i].text);
	}
	buf_release(&b);
}

#define KVM(event_name, event_fields)                                                                        \
	{                                                                                                    \
		.sys = "kvm", .name = event_name, .fields = event_fields                                     \
	}
#define EXIT_FMT                                                                                             \
	"\"%s: HSR_EC: 0x%04x (%s), PC: 0x%016lx\", __print_symbolic(REC->ret, { 0, \"IRQ\" }), "            \
	"REC->esr_ec, __print_symbolic(REC->esr_ec, { 0, \"UNKNOWN\" }), REC->vcpu_pc"
#define KVM_EXIT                                                                                             \
	{                                                                                                    \
		"kvm", "kvm_exit", "int ret; unsigned int esr_ec; unsigned long vcpu_pc", EXIT_FMT, .id = 0  \
	}

#define HYP(name, fields, fmt)                                                                               \
	{                                                                                                    \
		"hypervisor", name, fields, fmt, .packed = true                                              \
	}

#endif
