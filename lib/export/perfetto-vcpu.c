// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vCPUs. By KVM's events: what the guest ran, and what made it leave, until it
 * is entered again. By the hypervisor's: what the guest really ran, since
 * several runs can lie between a kvm_entry and its kvm_exit.
 */
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

static void name_vcpu(struct perfetto *pf, struct vcpu *c, const struct offset_vcpu *vcpu)
{
	/* "CPU 0/KVM", "crosvm_vcpu0": the next best */
	int tid = (int)c->item.number;
	const char *comm = pf_comm(pf, c->item.input, tid);

	if (vcpu)
		snprintf(c->label, sizeof(c->label), "vCPU %u", vcpu->cpu);
	else
		snprintf(c->label, sizeof(c->label), "%s %d", comm ? comm : "vCPU thread", tid);
	c->rank = vcpu ? (int)vcpu->cpu : tid;
}

static void guest_track(struct perfetto *pf, struct vcpu *c)
{
	const struct input *in = &pf->job->in->v[c->item.input];
	const struct offset_guest *guest = NULL;
	const struct offset_vcpu *vcpu = input_vcpu(in, c->item.number, &guest);
	/* the last number is that of guests without a name */
	size_t number = guest ? (size_t)(guest - in->guests) : in->n_guests;
	const char *name = arena_printf(&pf->arena, "Guest %s", guest && guest->name ? guest->name : "");

	name_vcpu(pf, c, vcpu);
	c->parent = pf_parent(pf, c->item.input, (unsigned int)number, PF_GUEST, guest ? name : "Guests");
}

/* NULL: there are too many. */
static struct vcpu *get_vcpu(struct perfetto *pf, size_t input, int tid)
{
	struct vcpu *c = pf_map_find(&pf->vcpus, input, (unsigned int)tid, 0);

	if (c || pf->vcpus.n == VCPUS_MAX)
		return c;
	c = pf_map_add(&pf->vcpus, sizeof(*c), input, (unsigned int)tid, 0);
	if (c)
		guest_track(pf, c);
	pf->bad |= !c;
	return c;
}

static void state_track(struct perfetto *pf, const struct vcpu *c, struct state *s, const char *by)
{
	if (!s->track)
		s->track = pf_track(pf, c->item.input, c->parent,
				    arena_printf(&pf->arena, "%s (%s)", c->label, by), c->rank);
}

/* ---- states --------------------------------------------------------------------------- */

static const struct pf_args *state_args(struct perfetto *pf, const struct state *s)
{
	struct pf_args *args = pf_args(pf);

	if (s->has_pc)
		pf_arg_hex(args, "pc", s->pc);
	return args;
}

static void end_state(struct perfetto *pf, const struct vcpu *c, struct state *s, uint64_t ts)
{
	if (!s->on || ts < s->since)
		return;
	pf_begin(pf, c->item.input, s->track, s->since, CATEGORY, s->name, state_args(pf, s));
	pf_end(pf, c->item.input, s->track, ts);
}

/* No end was seen: how long it lasted is unknown. */
static void drop_state(struct perfetto *pf, const struct vcpu *c, struct state *s)
{
	if (!s->on)
		return;
	s->on = false;
	pf_instant(pf, c->item.input, s->track, s->since, CATEGORY, s->name, state_args(pf, s));
}

/* Its name behind the first `at` bytes, cut to size; returns where it ends. */
static size_t state_name(struct state *s, size_t at, const char *text)
{
	size_t n = strnlen(text, sizeof(s->name) - 1 - at);

	memcpy(s->name + at, text, n);
	s->name[at + n] = '\0';
	return at + n;
}

static void begin_state(struct state *s, const struct pf_record *r)
{
	s->on = true;
	s->since = r->ts;
	s->has_pc = pf_number(&r->event->pc, r, &s->pc);
}

/* ---- KVM ------------------------------------------------------------------------------ */

/* x86: the format has the names, "reason EPT_VIOLATION rip 0x..." */
static void x86_exit_name(struct perfetto *pf, const struct pf_record *r, struct state *s)
{
	uint64_t reason;
	const char *name =
		pf_number(&r->event->reason, r, &reason) ? pf_word(pf, r, "reason ", reason) : NULL;

	state_name(s, 0, name ? name : "exit");
}

static void vcpu_exit_name(struct perfetto *pf, const struct pf_record *r, struct state *s)
{
	const char *name, *what = NULL;
	uint64_t ret, ec;
	size_t n;

	if (!pf_number(&r->event->ret, r, &ret)) {
		x86_exit_name(pf, r, s);
		return;
	}
	name = kvm_exit_arm_name((uint32_t)ret);
	if (ret == KVM_EXIT_ARM_TRAP && pf_number(&r->event->esr_ec, r, &ec))
		what = esr_ec_name((unsigned int)ec);
	if (!name) {
		snprintf(s->name, sizeof(s->name), "exit %lld", (long long)ret);
		return;
	}
	n = state_name(s, 0, name);
	if (what)
		state_name(s, state_name(s, n, " "), what);
}

static void kvm_switch(struct perfetto *pf, const struct pf_record *r, bool entry)
{
	struct vcpu *c = get_vcpu(pf, r->input, r->pid);
	struct state *s;

	if (!c)
		return;
	s = &c->kvm;
	state_track(pf, c, s, "KVM");
	/* an exit ends an entry and an entry an exit: two of a kind say nothing of each other */
	if (s->entry == entry)
		drop_state(pf, c, s);
	else
		end_state(pf, c, s, r->ts);
	if (entry)
		state_name(s, 0, "guest");
	else
		vcpu_exit_name(pf, r, s);
	begin_state(s, r);
	s->entry = entry;
}

/* ---- the hypervisor --------------------------------------------------------------------- */

/* mainline's: hyp_exit for eret_guest goes into the guest, hyp_enter for guest_exit comes out */
static void hyp_switch(struct perfetto *pf, const struct pf_record *r, bool in)
{
	const char *reason;
	struct vcpu *c;
	uint64_t tid;

	if (!pf_number(&r->event->vcpu, r, &tid) || !tid || tid > INT32_MAX)
		return;
	reason = pf_hyp_reason(pf, r);
	if (!reason || strcmp(reason, in ? "eret_guest" : "guest_exit"))
		return;
	c = get_vcpu(pf, r->input, (int)tid);
	if (!c)
		return;
	state_track(pf, c, &c->hyp, "EL2");
	if (!in)
		end_state(pf, c, &c->hyp, r->ts);
	c->hyp.on = false;
	if (!in)
		return;
	state_name(&c->hyp, 0, "guest");
	begin_state(&c->hyp, r);
}

void pf_vcpus_record(struct perfetto *pf, const struct pf_record *r)
{
	enum pf_role role = r->event->role;

	if (role == PF_HYP_ENTER || role == PF_HYP_EXIT)
		hyp_switch(pf, r, role == PF_HYP_EXIT);
	else if (r->pid > 0 && (role == PF_KVM_ENTRY || role == PF_KVM_EXIT))
		kvm_switch(pf, r, role == PF_KVM_ENTRY);
}

struct lost {
	struct perfetto *pf;
	size_t input;
};

static void vcpu_lost(void *lost, void *vcpu)
{
	const struct lost *l = lost;
	struct vcpu *c = vcpu;

	if (c->item.input != l->input)
		return;
	c->hyp.on = false;
	drop_state(l->pf, c, &c->kvm);
}

void pf_vcpus_lost(struct perfetto *pf, size_t input)
{
	struct lost l = { pf, input };

	pf_map_each(&pf->vcpus, vcpu_lost, &l);
}
