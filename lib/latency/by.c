// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keys of records: whose they are, as vCPUs, tasks, machines or fields have it. */
#include "latency/by.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- once for each event -------------------------------------------------------------------- */

static int latency_taker_field(struct field_load *load, const struct tep_event *event, const char *field,
			       char *why, size_t size)
{
	*load = field_load(tep_find_any_field((struct tep_event *)event, field));
	if (load->kind == FIELD_NUMBER)
		return 0;
	snprintf(why, size, "%s has no field '%s' that is a number", event->name, field);
	return -EINVAL;
}

int latency_taker_init(struct latency_taker *t, const struct latency_by_how *how, const struct who *w,
		       const struct inputs *in, size_t input, const struct tep_event *event, bool hyp,
		       bool apart, char *why, size_t size)
{
	struct tep_event *e = (struct tep_event *)event;
	int ret = 0;

	*t = (struct latency_taker){ .by = how->by,
				     .input = input,
				     .guest = who_of_input(w, input),
				     .apart = apart,
				     .kvm = hyp || !strcmp(event->system, "kvm"),
				     .pid = in->v[input].known[event->id].pid };
	if (hyp)
		t->vcpu = field_load(tep_find_any_field(e, "vcpu"));
	if (how->field)
		ret = latency_taker_field(&t->field, event, how->field, why, size);
	if (how->second && !ret)
		ret = latency_taker_field(&t->second, event, how->second, why, size);
	return ret;
}

/* ---- of a record ------------------------------------------------------------------------------ */

/* The thread that it is about. */
static int64_t latency_tid(const struct latency_taker *t, const struct merge_record *m)
{
	uint64_t tid;

	if (t->vcpu.kind == FIELD_NUMBER && field_load_number(&t->vcpu, m->data, m->len, &tid) && tid)
		return (int32_t)tid;
	return timeline_pid(&t->pid, m);
}

static bool latency_number(const struct field_load *l, const struct merge_record *m, uint64_t *v)
{
	return l->kind == FIELD_NUMBER && field_load_number(l, m->data, m->len, v);
}

/* A host's thread as a vCPU. */
static bool latency_thread(const struct latency_taker *t, const struct who *w, int64_t tid, bool unnamed,
			   struct latency_key *key)
{
	uint32_t vcpu = 0, guest = who_vcpu(w, t->input, tid, &vcpu);

	if (guest != WHO_NOBODY)
		*key = (struct latency_key){ latency_scope(SCOPE_VCPU, guest), vcpu };
	else
		*key = (struct latency_key){ latency_scope(SCOPE_THREAD, t->input), (uint64_t)tid };
	return guest != WHO_NOBODY || (unnamed && tid > 0);
}

static bool latency_vcpu(const struct latency_taker *t, const struct who *w, const struct merge_record *m,
			 unsigned int cpu, struct latency_key *key)
{
	*key = (struct latency_key){ latency_scope(SCOPE_VCPU, t->guest), cpu };
	return t->guest != WHO_NOBODY || latency_thread(t, w, latency_tid(t, m), t->kvm, key);
}

/* The guest that a record is about: by its thread, or because the file names one only. */
static uint32_t latency_guest(const struct latency_taker *t, const struct who *w,
			      const struct merge_record *m)
{
	uint32_t vcpu, guest = t->guest;

	if (guest == WHO_NOBODY)
		guest = who_vcpu(w, t->input, latency_tid(t, m), &vcpu);
	return guest != WHO_NOBODY || !t->kvm ? guest : who_lone(w, t->input);
}

static bool latency_guest_key(const struct latency_taker *t, const struct who *w,
			      const struct merge_record *m, enum latency_scope scope, uint64_t value,
			      struct latency_key *key)
{
	uint32_t guest = latency_guest(t, w, m);

	*key = (struct latency_key){ latency_scope(scope, guest), value };
	return guest != WHO_NOBODY;
}

static bool latency_worker(const struct latency_taker *t, const struct who *w, int64_t tid,
			   struct latency_key *key)
{
	*key = (struct latency_key){ latency_scope(SCOPE_INPUT, t->input),
				     (uint64_t)who_works_for(w, t->input, tid) };
	return tid > 0;
}

static bool latency_pair(const struct latency_taker *t, const struct who *w, const struct merge_record *m,
			 struct latency_key *key)
{
	uint64_t a, b = 0;

	if (!latency_number(&t->field, m, &a) ||
	    (t->second.kind == FIELD_NUMBER && !latency_number(&t->second, m, &b)))
		return false;
	if (!latency_guest_key(t, w, m, SCOPE_PAIR, a << 16 | (b & 0xffff), key))
		*key = (struct latency_key){ latency_scope(SCOPE_PAIR, WHO_NOBODY), a << 16 | (b & 0xffff) };
	return true;
}

/* By its thread alone, or by a field's value. */
static bool latency_take_vcpu(const struct latency_taker *t, const struct who *w,
			      const struct merge_record *m, uint64_t v, struct latency_key *key)
{
	uint32_t vcpu;

	switch (t->by) {
	case BY_GUEST:
		return latency_guest_key(t, w, m, SCOPE_GUEST, 0, key);
	case BY_VCPU_FIELD:
		return latency_guest_key(t, w, m, SCOPE_VCPU, v, key);
	case BY_VCPU_TID:
		return latency_thread(t, w, (int32_t)v, false, key);
	case BY_GUEST_FIELD:
		return latency_guest_key(t, w, m, SCOPE_GUEST, v, key);
	case BY_WORKER:
		return latency_worker(t, w, timeline_pid(&t->pid, m), key);
	case BY_WORKER_TID:
		return who_vcpu(w, t->input, (int32_t)v, &vcpu) == WHO_NOBODY &&
		       latency_worker(t, w, (int32_t)v, key);
	case BY_CARRIED:
		key->scope = CHAIN_CARRIED;
		return true;
	case BY_CARRIED_FIELD:
		*key = (struct latency_key){ CHAIN_CARRIED_SCOPE, v };
		return true;
	default:
		return latency_pair(t, w, m, key);
	}
}

bool latency_take(const struct latency_taker *t, const struct who *w, const struct merge_record *m,
		  unsigned int cpu, struct latency_key *key)
{
	uint64_t v = 0;

	*key = (struct latency_key){
		latency_scope(t->apart ? SCOPE_INPUT : SCOPE_ALL, t->apart ? t->input : 0), 0
	};
	if (t->field.kind == FIELD_NUMBER && !latency_number(&t->field, m, &v))
		return false;
	switch (t->by) {
	case BY_NOTHING:
	case BY_MACHINE:
		return true;
	case BY_PID:
		key->value = (uint64_t)(int64_t)timeline_pid(&t->pid, m);
		return true;
	case BY_CPU:
		key->value = cpu;
		return true;
	case BY_FIELD:
		key->value = v;
		return true;
	case BY_VCPU:
		return latency_vcpu(t, w, m, cpu, key);
	default:
		return latency_take_vcpu(t, w, m, v, key);
	}
}

/* ---- for people ------------------------------------------------------------------------------------ */

static const char *latency_machine(const struct inputs *in, size_t input)
{
	return in->v[input].guest ? in->v[input].machine : "host";
}

void latency_key_text(const struct latency_key *key, enum latency_by by, const struct who *w,
		      const struct inputs *in, bool named, struct buf *out)
{
	enum latency_scope scope = (enum latency_scope)(key->scope >> 32);
	uint32_t number = (uint32_t)key->scope;
	bool guest = scope >= SCOPE_GUEST && scope != SCOPE_THREAD && number < who_guests(w);

	if (guest && scope != SCOPE_PAIR)
		buf_addstr(out, who_name(w, number));
	else if (scope == SCOPE_INPUT && (named || by == BY_MACHINE))
		buf_addstr(out, latency_machine(in, number));
	switch (scope) {
	case SCOPE_GUEST:
		break;
	case SCOPE_VCPU:
		buf_printf(out, " %" PRIu64, key->value);
		break;
	case SCOPE_THREAD:
		buf_printf(out, "thread %" PRIu64, key->value);
		break;
	case SCOPE_PAIR:
		buf_printf(out, "0x%" PRIx64 ":%" PRIu64, key->value >> 16, key->value & 0xffff);
		break;
	default:
		if (by == BY_MACHINE)
			buf_addstr(out, scope == SCOPE_ALL ? "all" : "");
		else
			buf_printf(out, "%s%" PRId64, out->len && scope == SCOPE_INPUT && named ? " " : "",
				   (int64_t)key->value);
	}
}
