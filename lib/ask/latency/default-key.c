// SPDX-License-Identifier: LGPL-2.1-or-later
/* The key that two events have in common by their meaning, for pairs without --key. */
#include "ask/latency/latency.h"

/* The keys that records of an event have, the first choice first; BY_NOTHING: not this one. */
enum { KEY_CPU, KEY_PID, KEY_VCPU, KEYS };
struct event_keys {
	struct latency_key_of v[KEYS];
};

/* The events of KVM that other threads than the vCPU's write, too: with the field that has the vCPU. */
static const struct {
	const char *event, *field;
} kvm_of_others[] = {
	{ "vgic_update_irq_pending", "vcpu_id" },
	{ "kvm_apic_accept_irq", "apicid" },
	{ "kvm_apicv_accept_irq", "apicid" },
	{ "kvm_irq_line", NULL },
	{ "kvm_set_irq", NULL },
	{ "kvm_msi_set_irq", NULL },
	{ "kvm_pic_set_irq", NULL },
	{ "kvm_ioapic_set_irq", NULL },
};

static struct event_keys keys_of_event(const struct inputs *in, const struct event_words *words,
				       const char *switched)
{
	struct event_keys keys = { 0 };

	for (size_t i = 0; i < in->n; i++) {
		const struct input *f = &in->v[i];

		for (unsigned int id = 0; id < f->n_known && event_words_machine(words, f); id++) {
			const struct known_event *known = input_event(f, id);
			const char *system = known ? known->event->system : NULL;

			if (!known || strcmp(known->event->name, words->name) ||
			    (words->system && strcmp(system, words->system)))
				continue;
			if (known->hyp) {
				keys.v[KEY_VCPU].by = BY_VCPU;
				keys.v[KEY_CPU].by = BY_CPU;
			} else if (!strcmp(system, "kvm")) {
				keys.v[KEY_VCPU].by = BY_VCPU;
				for (size_t k = 0; k < ARRAY_SIZE(kvm_of_others); k++) {
					const char *field = kvm_of_others[k].field;

					if (strcmp(kvm_of_others[k].event, words->name))
						continue;
					/* a number of a vCPU means one only if the file names its guest */
					keys.v[KEY_VCPU].by =
						field && f->n_guests ? BY_VCPU_FIELD : BY_NOTHING;
					keys.v[KEY_VCPU].field = field;
				}
			} else if (!strcmp(system, "sched")) {
				/* the task that it is about: of a sched_switch the one that `switched` names
				 */
				keys.v[KEY_PID].field =
					strcmp(words->name, "sched_switch") ? "pid" : switched;
				keys.v[KEY_PID].by = tep_find_field(known->event, keys.v[KEY_PID].field)
							     ? BY_FIELD
							     : BY_PID;
				/* from one switch to the next of a CPU: pid 0 is on all of them */
				if (!strcmp(words->name, "sched_switch"))
					keys.v[KEY_CPU].by = BY_CPU;
			} else if (!strcmp(system, "syscalls") || !strcmp(system, "raw_syscalls")) {
				keys.v[KEY_PID].by = BY_PID;
			} else if (!strncmp(system, "irq", 3) || !strcmp(system, "ipi")) {
				keys.v[KEY_CPU].by = BY_CPU;
			}
			return keys;
		}
	}
	return keys;
}

static bool words_of_guest(const struct event_words *w)
{
	return w->machine && strcmp(w->machine, "host");
}

const char *latency_default_key(const struct inputs *in, const struct event_words *from,
				const struct event_words *to, struct latency_key_of *begin,
				struct latency_key_of *end)
{
	static const char *const names[KEYS] = { "cpu", "pid", "vcpu" };
	/* A switch begins the sleep of the task that leaves, and ends the wait of the one that comes. */
	struct event_keys a = keys_of_event(in, from, "prev_pid"), b = keys_of_event(in, to, "next_pid");

	if (words_of_guest(from) != words_of_guest(to)) { /* a host and a guest meet on a vCPU only */
		struct event_keys *guest = words_of_guest(from) ? &a : &b;

		guest->v[KEY_VCPU] = (struct latency_key_of){ .by = BY_VCPU };
		a.v[KEY_PID].by = a.v[KEY_CPU].by = BY_NOTHING;
	}
	for (size_t i = 0; i < KEYS; i++)
		if (a.v[i].by && b.v[i].by) {
			*begin = a.v[i];
			*end = b.v[i];
			return names[i];
		}
	return NULL;
}
