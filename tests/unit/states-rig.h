/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_STATES_RIG_H
#define TESTS_STATES_RIG_H

/*
 * A host and, behind it, a guest whose files have formats but no records: the model of where time goes
 * takes steps that a test makes. Include after cmocka.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/states/states.h"
#include "base/array.h"
#include "base/files.h"

#define RIG_FORMATS "tests/data/formats"
#define RIG_COMMON                                                                                           \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                      \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

/* As Linux 6 has it, with two of its reasons. */
static const char rig_x86_exit[] =
	"name: kvm_exit\nID: 61\n" RIG_COMMON
	"\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 isa;\toffset:12;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"reason %s\", (REC->isa == 1) ? __print_symbolic(REC->exit_reason, { 12, \"HLT\" }, "
	"{ 1, \"EXTERNAL_INTERRUPT\" }) : __print_symbolic(REC->exit_reason, { 0x78, \"hlt\" })\n";

enum { HOST, GUEST, RIG_INPUTS };
enum { RIG_X86 = 1, RIG_GUEST = 2 };

struct rig_states {
	struct inputs in;
	struct input v[RIG_INPUTS];
	struct offset_guest guest;
	struct steps *steps;
	struct states *st;
};

static inline void rig_event(struct input *in, const char *text, size_t len, const char *system)
{
	struct tep_event *e;

	assert_int_equal(tep_parse_event(in->tep, text, len, system), 0);
	e = tep_get_event(in->tep, tep_get_events_count(in->tep) - 1);
	assert_true((size_t)e->id < in->n_known);
	for (int i = 0; i < tep_get_events_count(in->tep); i++) {
		e = tep_get_event(in->tep, i);
		in->known[e->id].event = e;
		in->known[e->id].hyp = !strcmp(e->system, "hypervisor");
	}
}

static inline void rig_format(struct input *in, const char *name, const char *system)
{
	char path[128];
	struct buf text = { 0 };

	snprintf(path, sizeof(path), "%s/%s", RIG_FORMATS, name);
	assert_int_equal(read_file(path, 1 << 20, &text), 0);
	rig_event(in, (char *)text.data, text.len, system);
	buf_release(&text);
}

static inline void rig_input(struct input *in, unsigned int flags)
{
	in->tep = tep_alloc();
	in->n_known = 32768;
	in->known = calloc(in->n_known, sizeof(*in->known));
	assert_non_null(in->known);
	rig_format(in, "sched_switch", "sched");
	if (flags & RIG_X86) {
		rig_event(in, rig_x86_exit, sizeof(rig_x86_exit) - 1, "kvm");
		return;
	}
	rig_format(in, "kvm_exit", "kvm");
	rig_format(in, "hyp_enter", "hypervisor");
	rig_format(in, "hyp_exit", "hypervisor");
}

/* Two vCPUs of the guest: 0 is thread `first`, 1 the one behind it; its clock's bound is that everywhere. */
static inline void rig_inputs(struct rig_states *r, unsigned int flags, uint32_t first, uint64_t bound)
{
	const struct offset_point points[] = { { 0, 0, 1, 0 }, { UINT64_MAX / 2, 0, 1, 0 } };
	const uint64_t bounds[] = { bound, bound };

	*r = (struct rig_states){ .in = { .v = r->v, .n = flags & RIG_GUEST ? 2 : 1 } };
	rig_input(&r->v[HOST], flags);
	r->v[HOST].trace_id = 7;
	if (flags & RIG_GUEST) {
		struct input *g = &r->v[GUEST];

		rig_input(g, flags);
		g->guest = true;
		g->trace_id = 8;
		assert_int_equal(offset_shift_fill(&g->time.shift, 7, 2, points, 2), 0);
		assert_int_equal(offset_shift_set_bounds(&g->time.shift, bounds, 2, "test", "hard"), 0);
		r->guest = (struct offset_guest){ .name = strdup("vm"), .trace_id = 8, .n = 2 };
		r->guest.vcpus = calloc(2, sizeof(*r->guest.vcpus));
		r->guest.vcpus[0] = (struct offset_vcpu){ 0, first };
		r->guest.vcpus[1] = (struct offset_vcpu){ 1, first + 1 };
		r->v[HOST].guests = &r->guest;
		r->v[HOST].n_guests = 1;
	}
	assert_int_equal(steps_open(&r->steps, &r->in), 0);
}

static inline void rig_states_close(struct rig_states *r)
{
	states_close(r->st);
	steps_close(r->steps);
	for (size_t i = 0; i < r->in.n; i++) {
		free(r->v[i].known);
		tep_free(r->v[i].tep);
		filetime_release(&r->v[i].time);
	}
	offset_guest_release(&r->guest);
}

#endif
