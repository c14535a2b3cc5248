// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vCPUs. By KVM's events: what the guest ran, and what made it leave, until it
 * is entered again. By the hypervisor's: what the guest really ran, since
 * several runs can lie between a kvm_entry and its kvm_exit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/esr.h"
#include "export/perfetto-priv.h"

#define CATEGORY  "vcpu"
#define VCPUS_MAX 4096

/* What goes on until the next event ends it. */
struct state {
	uint64_t track, since;
	bool on, entry; /* entry: of the guest; not KVM's exit */
	char name[48];
	uint64_t pc;
	bool has_pc;
};

struct vcpu {
	struct pf_item item; /* number: the thread */
	uint64_t parent;
	struct state kvm, hyp;
	char label[64];
	int rank;
};

/* ---- vCPUs and their tracks --------------------------------------------------------- */

static void name_vcpu(struct vcpu *c, const struct input *in, const struct offset_vcpu *vcpu)
{
	/* "CPU 0/KVM", "crosvm_vcpu0": the next best */
	int tid = (int)c->item.number;
	const char *comm =
		tep_is_pid_registered(in->tep, tid) ? tep_data_comm_from_pid(in->tep, tid) : "vCPU thread";

	if (vcpu)
		snprintf(c->label, sizeof(c->label), "vCPU %u", vcpu->cpu);
	else
		snprintf(c->label, sizeof(c->label), "%s %d", comm, tid);
	c->rank = vcpu ? (int)vcpu->cpu : tid;
}

static int guest_track(struct perfetto *pf, struct vcpu *c)
{
	const struct input *in = &pf->in->v[c->item.input];
	const struct offset_guest *guest = NULL;
	const struct offset_vcpu *vcpu = input_vcpu(in, c->item.number, &guest);
	/* the last number is that of guests without a name */
	size_t number = guest ? (size_t)(guest - in->guests) : in->n_guests;
	const char *name = arena_printf(&pf->arena, "Guest %s", guest && guest->name ? guest->name : "");

	name_vcpu(c, in, vcpu);
	return pf_parent(pf, c->item.input, (unsigned int)number, PF_GUEST, guest ? name : "Guests",
			 &c->parent);
}

/* *out is NULL when there are too many. */
static int get_vcpu(struct perfetto *pf, size_t input, int tid, struct vcpu **out)
{
	*out = pf_map_find(&pf->vcpus, input, (unsigned int)tid, 0);
	if (*out || pf->vcpus.n == VCPUS_MAX)
		return 0;
	*out = pf_map_add(&pf->vcpus, sizeof(**out), input, (unsigned int)tid, 0);
	return *out ? guest_track(pf, *out) : -ENOMEM;
}

static int state_track(struct perfetto *pf, const struct vcpu *c, struct state *s, const char *by)
{
	const char *name = arena_printf(&pf->arena, "%s (%s)", c->label, by);

	if (s->track)
		return 0;
	return pf_track(pf, c->item.input, c->parent, name, c->rank, &s->track);
}

/* ---- states --------------------------------------------------------------------------- */

static int end_state(struct perfetto *pf, const struct vcpu *c, struct state *s, uint64_t ts)
{
	struct pf_args args = { .arena = &pf->arena };
	int ret;

	if (!s->on || ts < s->since)
		return 0;
	if (s->has_pc)
		pf_arg_hex(&args, "pc", s->pc);
	ret = pf_begin(pf, c->item.input, s->track, s->since, CATEGORY,
		       arena_text(&pf->arena, s->name, sizeof(s->name)), &args);
	return ret ? ret : pf_end(pf, c->item.input, s->track, ts);
}

/* No end was seen: how long it lasted is unknown. */
static int drop_state(struct perfetto *pf, const struct vcpu *c, struct state *s)
{
	struct pf_args args = { .arena = &pf->arena };

	if (!s->on)
		return 0;
	s->on = false;
	if (s->has_pc)
		pf_arg_hex(&args, "pc", s->pc);
	return pf_instant(pf, c->item.input, s->track, s->since, CATEGORY,
			  arena_text(&pf->arena, s->name, sizeof(s->name)), &args);
}

static void begin_state(struct state *s, const struct timeline_record *r, const char *name)
{
	s->on = true;
	s->since = r->ts;
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->has_pc = timeline_number(r, "vcpu_pc", &s->pc);
}

/* ---- KVM ------------------------------------------------------------------------------ */

static void exit_name(struct arena *a, const struct timeline_record *r, char *out, size_t size)
{
	uint64_t ret, ec;
	const char *name, *what = NULL;

	if (!timeline_number(r, "ret", &ret)) {
		/* x86: the format has the names, "reason EPT_VIOLATION rip 0x..." */
		name = pf_word(a, r, "reason ");
		snprintf(out, size, "%s", name ? name : "exit");
		return;
	}
	name = kvm_exit_arm_name((uint32_t)ret);
	if (ret == KVM_EXIT_ARM_TRAP && timeline_number(r, "esr_ec", &ec))
		what = esr_ec_name((unsigned int)ec);
	if (!name)
		snprintf(out, size, "exit %lld", (long long)ret);
	else
		snprintf(out, size, "%s%s%s", name, what ? " " : "", what ? what : "");
}

static int kvm_switch(struct perfetto *pf, const struct timeline_record *r, bool entry)
{
	char name[48] = "guest";
	struct vcpu *c;
	int ret = get_vcpu(pf, r->input, r->pid, &c);

	if (ret || !c)
		return ret;
	ret = state_track(pf, c, &c->kvm, "KVM");
	if (ret)
		return ret;
	/* an exit ends an entry and an entry an exit: two of a kind say nothing of each other */
	ret = c->kvm.entry == entry ? drop_state(pf, c, &c->kvm) : end_state(pf, c, &c->kvm, r->ts);
	if (!entry)
		exit_name(&pf->arena, r, name, sizeof(name));
	begin_state(&c->kvm, r, name);
	c->kvm.entry = entry;
	return ret;
}

/* ---- the hypervisor --------------------------------------------------------------------- */

/* mainline's: hyp_exit for eret_guest goes into the guest, hyp_enter for guest_exit comes out */
static int hyp_switch(struct perfetto *pf, const struct timeline_record *r, bool in)
{
	const char *reason;
	struct vcpu *c;
	uint64_t tid;
	int ret;

	if (!timeline_number(r, "vcpu", &tid) || !tid || tid > INT32_MAX)
		return 0;
	reason = pf_hyp_reason(&pf->arena, r);
	if (!reason || strcmp(reason, in ? "eret_guest" : "guest_exit"))
		return 0;
	ret = get_vcpu(pf, r->input, (int)tid, &c);
	if (ret || !c)
		return ret;
	ret = state_track(pf, c, &c->hyp, "EL2");
	if (ret)
		return ret;
	if (!in)
		ret = end_state(pf, c, &c->hyp, r->ts);
	c->hyp.on = false;
	if (in)
		begin_state(&c->hyp, r, "guest");
	return ret;
}

int pf_vcpus_record(struct perfetto *pf, const struct timeline_record *r)
{
	const char *name = r->event->name;

	if (!strcmp(r->event->system, "kvm")) {
		bool entry = !strcmp(name, "kvm_entry");

		if (r->pid > 0 && (entry || !strcmp(name, "kvm_exit")))
			return kvm_switch(pf, r, entry);
	} else if (r->hyp) {
		bool in = !strcmp(name, "hyp_exit");

		if (in || !strcmp(name, "hyp_enter"))
			return hyp_switch(pf, r, in);
	}
	return 0;
}

struct lost {
	struct perfetto *pf;
	size_t input;
};

static int vcpu_lost(void *lost, void *vcpu)
{
	const struct lost *l = lost;
	struct vcpu *c = vcpu;

	if (c->item.input != l->input)
		return 0;
	c->hyp.on = false;
	return drop_state(l->pf, c, &c->kvm);
}

int pf_vcpus_lost(struct perfetto *pf, size_t input)
{
	struct lost l = { pf, input };

	return pf_map_each(&pf->vcpus, vcpu_lost, &l);
}
