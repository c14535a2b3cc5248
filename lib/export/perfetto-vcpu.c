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
	bool on;
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

struct pf_vcpus {
	struct pf *pf;
	struct pf_map vcpus;
	uint64_t **guests; /* tracks by input and guest; the last one's name is unknown */
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

static int guest_track(struct pf_vcpus *v, struct vcpu *c)
{
	struct pf *pf = v->pf;
	const struct input *in = &pf->in->v[c->item.input];
	const struct offset_guest *guest = NULL;
	const struct offset_vcpu *vcpu = input_vcpu(in, c->item.number, &guest);
	uint64_t *track = &v->guests[c->item.input][guest ? (size_t)(guest - in->guests) : in->n_guests];
	struct arena *a = &pf->arena;
	const char *name = arena_printf(a, "Guest %s", guest && guest->name ? guest->name : "");
	int ret;

	name_vcpu(c, in, vcpu);
	c->parent = *track;
	if (*track)
		return 0;
	ret = pf_track(&pf->tracks, pf->machines[c->item.input], 0, guest ? name : "Guests", 1, track);
	c->parent = *track;
	return ret;
}

/* *out is NULL when there are too many. */
static int get_vcpu(struct pf_vcpus *v, size_t input, int tid, struct vcpu **out)
{
	*out = pf_map_find(&v->vcpus, input, (unsigned int)tid, 0);
	if (*out || v->vcpus.n == VCPUS_MAX)
		return 0;
	*out = pf_map_add(&v->vcpus, sizeof(**out), input, (unsigned int)tid, 0);
	return *out ? guest_track(v, *out) : -ENOMEM;
}

static int state_track(struct pf_vcpus *v, const struct vcpu *c, struct state *s, const char *by)
{
	struct pf *pf = v->pf;
	const char *name = arena_printf(&pf->arena, "%s (%s)", c->label, by);

	if (s->track)
		return 0;
	return pf_track(&pf->tracks, pf->machines[c->item.input], c->parent, name, c->rank, &s->track);
}

/* ---- states --------------------------------------------------------------------------- */

static int end_state(struct pf_vcpus *v, const struct vcpu *c, struct state *s, uint64_t ts)
{
	struct pf *pf = v->pf;
	struct pf_args args = { .arena = &pf->arena };
	uint32_t machine = pf->machines[c->item.input];
	int ret;

	if (!s->on || ts < s->since)
		return 0;
	if (s->has_pc)
		pf_arg_hex(&args, "pc", s->pc);
	ret = pf_begin(&pf->tracks, machine, s->track, s->since, CATEGORY,
		       arena_text(&pf->arena, s->name, sizeof(s->name)), &args);
	return ret ? ret : pf_end(&pf->tracks, machine, s->track, ts);
}

static void begin_state(struct state *s, const struct timeline_record *r, const char *name)
{
	s->on = true;
	s->since = r->ts;
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->has_pc = timeline_number(r, "vcpu_pc", &s->pc);
}

/* ---- KVM ------------------------------------------------------------------------------ */

/* x86: the format has the names, "reason EPT_VIOLATION rip 0x..." */
static void x86_exit_name(const struct timeline_record *r, char *out, size_t size)
{
	static const char key[] = "reason ";
	struct tep_record rec = r->tep;
	struct trace_seq s;
	const char *at;

	trace_seq_init(&s);
	tep_print_event(r->in->tep, &s, &rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	at = strstr(s.buffer, key);
	at = at ? at + strlen(key) : "exit";
	snprintf(out, size, "%.*s", (int)strcspn(at, " "), at);
	trace_seq_destroy(&s);
}

static void exit_name(const struct timeline_record *r, char *out, size_t size)
{
	uint64_t ret, ec;
	const char *name, *what = NULL;

	if (!timeline_number(r, "ret", &ret)) {
		x86_exit_name(r, out, size);
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

static int kvm_switch(struct pf_vcpus *v, const struct timeline_record *r, bool entry)
{
	char name[48] = "guest";
	struct vcpu *c;
	int ret = get_vcpu(v, r->input, r->pid, &c);

	if (ret || !c)
		return ret;
	ret = state_track(v, c, &c->kvm, "KVM");
	if (ret)
		return ret;
	ret = end_state(v, c, &c->kvm, r->ts);
	if (!entry)
		exit_name(r, name, sizeof(name));
	begin_state(&c->kvm, r, name);
	return ret;
}

/* ---- the hypervisor --------------------------------------------------------------------- */

/* mainline's: hyp_exit for eret_guest goes into the guest, hyp_enter for guest_exit comes out */
static int hyp_switch(struct pf_vcpus *v, const struct timeline_record *r, bool in)
{
	const char *reason;
	struct vcpu *c;
	uint64_t tid;
	int ret;

	if (!timeline_number(r, "vcpu", &tid) || !tid || tid > INT32_MAX)
		return 0;
	reason = pf_hyp_reason(&v->pf->arena, r);
	if (!reason || strcmp(reason, in ? "eret_guest" : "guest_exit"))
		return 0;
	ret = get_vcpu(v, r->input, (int)tid, &c);
	if (ret || !c)
		return ret;
	ret = state_track(v, c, &c->hyp, "EL2");
	if (ret == 0 && !in)
		ret = end_state(v, c, &c->hyp, r->ts);
	c->hyp.on = false;
	if (in)
		begin_state(&c->hyp, r, "guest");
	return ret;
}

int pf_vcpus_record(struct pf_vcpus *v, const struct timeline_record *r)
{
	const char *name = r->event->name;

	if (!strcmp(r->event->system, "kvm")) {
		bool entry = !strcmp(name, "kvm_entry");

		if (r->pid > 0 && (entry || !strcmp(name, "kvm_exit")))
			return kvm_switch(v, r, entry);
	} else if (timeline_is_hyp(r)) {
		bool in = !strcmp(name, "hyp_exit");

		if (in || !strcmp(name, "hyp_enter"))
			return hyp_switch(v, r, in);
	}
	return 0;
}

static int vcpu_lost(void *input, void *vcpu)
{
	struct vcpu *c = vcpu;

	if (c->item.input == *(size_t *)input)
		c->kvm.on = c->hyp.on = false;
	return 0;
}

void pf_vcpus_lost(struct pf_vcpus *v, size_t input)
{
	pf_map_each(&v->vcpus, vcpu_lost, &input);
}

/* ---- all of it -------------------------------------------------------------------------- */

struct pf_vcpus *pf_vcpus_new(struct pf *pf)
{
	struct pf_vcpus *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->pf = pf;
	v->guests = calloc(pf->in->n + 1, sizeof(*v->guests));
	if (!v->guests) {
		free(v);
		return NULL;
	}
	for (size_t i = 0; i < pf->in->n; i++) {
		v->guests[i] = calloc(pf->in->v[i].n_guests + 1, sizeof(**v->guests));
		if (!v->guests[i]) {
			pf_vcpus_free(v);
			return NULL;
		}
	}
	return v;
}

void pf_vcpus_free(struct pf_vcpus *v)
{
	if (!v)
		return;
	pf_map_release(&v->vcpus, NULL);
	for (size_t i = 0; i < v->pf->in->n; i++)
		free(v->guests[i]);
	free(v->guests);
	free(v);
}
