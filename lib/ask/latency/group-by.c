// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keys of records by vCPU, task, machine or field; and whose vCPUs the threads of hosts are. */
#include "ask/latency/latency.h"

#include "base/cursor.h"

/* Guests of all files by number, and the host threads that are theirs or work for them. */
struct vcpu_map_guest {
	const char *name;  /* "" when the file that names it has no name for it */
	uint64_t trace_id; /* 0: none */
};

/* A thread vhost-PID. */
struct vcpu_map_vhost {
	uint64_t tid, owner;
};

struct vcpu_map_input {
	uint32_t guest;		       /* it is this one's file */
	uint32_t lone;		       /* the one guest that it names; VCPU_MAP_NOBODY: none, or several */
	uint32_t *named;	       /* by the file's GUEST options */
	struct vcpu_map_vhost *vhosts; /* by tid */
	size_t n_vhosts;
};

struct vcpu_map {
	const struct inputs *in;
	struct vcpu_map_input *v;
	struct vcpu_map_guest *guests;
	size_t n;
};

static int vcpu_map_add(struct vcpu_map *w, const char *name, uint64_t trace_id, uint32_t *number)
{
	struct vcpu_map_guest g = { name ? name : "", trace_id };

	for (size_t i = 0; i < w->n; i++)
		if (trace_id && w->guests[i].trace_id == trace_id) {
			*number = (uint32_t)i;
			return 0;
		}
	*number = (uint32_t)w->n;
	return array_push(&w->guests, &w->n, &g, sizeof(g));
}

/* Adds the guests that a file names, and its vhost threads. */
static int vcpu_map_add_input(struct vcpu_map *w, size_t input)
{
	const struct input *in = &w->in->v[input];
	const struct dat_text *tasks = &reader_info(in->reader)->cmdlines;
	struct cursor c = cursor_at(tasks->data, tasks->len);
	struct vcpu_map_input *v = &w->v[input];
	struct vcpu_map_vhost task;
	const char *name;
	size_t len;
	int ret = 0;

	v->named = calloc(in->n_guests + 1, sizeof(*v->named));
	if (!v->named)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_guests && !ret; i++)
		ret = vcpu_map_add(w, in->guests[i].name, in->guests[i].trace_id, &v->named[i]);
	v->lone = in->n_guests == 1 ? v->named[0] : VCPU_MAP_NOBODY;
	while (!ret && reader_task(&c, &task.tid, &name, &len)) {
		struct cursor at = cursor_at(name, len);

		if (cursor_word(&at, "vhost-") && cursor_decimal(&at, &task.owner) && !cursor_left(&at))
			ret = array_push(&v->vhosts, &v->n_vhosts, &task, sizeof(task));
	}
	array_sort(v->vhosts, v->n_vhosts, sizeof(*v->vhosts), compare_u64);
	return ret;
}

uint32_t vcpu_map_of_input(const struct vcpu_map *w, size_t input)
{
	return w->v[input].guest;
}

uint32_t vcpu_map_vcpu(const struct vcpu_map *w, size_t input, int64_t tid, uint32_t *vcpu)
{
	const struct input *in = &w->in->v[input];
	const struct offset_guest *guest;
	const struct offset_vcpu *of = input_vcpu(in, tid, &guest);

	if (!of)
		return VCPU_MAP_NOBODY;
	*vcpu = of->cpu;
	return w->v[input].named[guest - in->guests];
}

int vcpu_map_open(struct vcpu_map **out, const struct inputs *in)
{
	struct vcpu_map *w = *out = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->in = in;
	w->v = calloc(in->n + 1, sizeof(*w->v));
	ret = w->v ? 0 : -ENOMEM;
	for (size_t i = 0; i < in->n && !ret; i++)
		ret = vcpu_map_add_input(w, i);
	for (size_t i = 0; i < in->n && !ret; i++) {
		w->v[i].guest = VCPU_MAP_NOBODY;
		ret = in->v[i].guest ? vcpu_map_add(w, in->v[i].machine, in->v[i].trace_id, &w->v[i].guest)
				     : 0;
	}
	return ret;
}

void vcpu_map_close(struct vcpu_map *w)
{
	if (!w)
		return;
	for (size_t i = 0; w->v && i < w->in->n; i++) {
		free(w->v[i].named);
		free(w->v[i].vhosts);
	}
	free(w->v);
	free(w->guests);
	free(w);
}

static int latency_taker_field(struct field_load *load, const struct tep_event *event, const char *field,
			       char *why, size_t size)
{
	*load = field_load(tep_find_any_field((struct tep_event *)event, field));
	if (load->kind == FIELD_NUMBER)
		return 0;
	snprintf(why, size, "%s has no field '%s' that is a number", event->name, field);
	return -EINVAL;
}

int latency_taker_init(struct latency_taker *t, const struct latency_key_of *how, const struct vcpu_map *w,
		       const struct inputs *in, size_t input, const struct tep_event *event, bool hyp,
		       bool apart, char *why, size_t size)
{
	int ret = 0;

	*t = (struct latency_taker){ .by = how->by,
				     .input = input,
				     .guest = w->v[input].guest,
				     .apart = apart,
				     .kvm = hyp || !strcmp(event->system, "kvm"),
				     .pid = in->v[input].known[event->id].pid };
	if (hyp)
		t->vcpu = field_load(tep_find_any_field((struct tep_event *)event, "vcpu"));
	if (how->field)
		ret = latency_taker_field(&t->field, event, how->field, why, size);
	if (how->second && !ret)
		ret = latency_taker_field(&t->second, event, how->second, why, size);
	return ret;
}

/* The thread that a record is about. */
static int64_t latency_tid(const struct latency_taker *t, const struct merge_record *m)
{
	uint64_t tid;

	if (t->vcpu.kind == FIELD_NUMBER && field_load_number(&t->vcpu, m->data, m->len, &tid) && tid)
		return (int32_t)tid;
	return timeline_pid(&t->pid, m);
}

/* A host's thread as a vCPU. */
static bool latency_thread(const struct latency_taker *t, const struct vcpu_map *w, int64_t tid, bool unnamed,
			   struct latency_key *key)
{
	uint32_t vcpu = 0, guest = vcpu_map_vcpu(w, t->input, tid, &vcpu);

	if (guest != VCPU_MAP_NOBODY)
		*key = (struct latency_key){ latency_scope(SCOPE_VCPU, guest), vcpu };
	else
		*key = (struct latency_key){ latency_scope(SCOPE_THREAD, t->input), (uint64_t)tid };
	return guest != VCPU_MAP_NOBODY || (unnamed && tid > 0);
}

/* The guest that a record is about: by its thread, or because the file names one only. */
static bool latency_guest_key(const struct latency_taker *t, const struct vcpu_map *w,
			      const struct merge_record *m, enum latency_scope scope, uint64_t value,
			      struct latency_key *key)
{
	uint32_t vcpu, guest = t->guest;

	if (guest == VCPU_MAP_NOBODY)
		guest = vcpu_map_vcpu(w, t->input, latency_tid(t, m), &vcpu);
	if (guest == VCPU_MAP_NOBODY && t->kvm)
		guest = w->v[t->input].lone;
	*key = (struct latency_key){ latency_scope(scope, guest), value };
	return guest != VCPU_MAP_NOBODY;
}

static bool latency_worker(const struct latency_taker *t, const struct vcpu_map *w, int64_t tid,
			   struct latency_key *key)
{
	const struct vcpu_map_input *v = &w->v[t->input];
	uint64_t thread = (uint64_t)tid;
	size_t i = array_lower_bound(v->vhosts, v->n_vhosts, sizeof(*v->vhosts), u64_below, &thread);
	bool vhost = i < v->n_vhosts && v->vhosts[i].tid == thread;

	/* a kernel thread called vhost-PID works for that process; others stand for themselves */
	*key = (struct latency_key){ latency_scope(SCOPE_INPUT, t->input),
				     vhost ? v->vhosts[i].owner : thread };
	return tid > 0;
}

bool latency_take(const struct latency_taker *t, const struct vcpu_map *w, const struct merge_record *m,
		  unsigned int cpu, struct latency_key *key)
{
	bool host = t->guest == VCPU_MAP_NOBODY;
	uint64_t v = 0, second = 0;
	uint32_t vcpu;

	*key = (struct latency_key){
		latency_scope(t->apart ? SCOPE_INPUT : SCOPE_ALL, t->apart ? t->input : 0), 0
	};
	if (t->field.kind == FIELD_NUMBER && !field_load_number(&t->field, m->data, m->len, &v))
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
		*key = (struct latency_key){ latency_scope(SCOPE_VCPU, t->guest), cpu };
		return !host || latency_thread(t, w, latency_tid(t, m), t->kvm, key);
	case BY_GUEST:
		return latency_guest_key(t, w, m, SCOPE_GUEST, 0, key);
	case BY_VCPU_FIELD:
		return latency_guest_key(t, w, m, SCOPE_VCPU, v, key);
	case BY_LONE_FIELD:
		*key = (struct latency_key){ latency_scope(SCOPE_VCPU, w->v[t->input].lone), v };
		return w->v[t->input].lone != VCPU_MAP_NOBODY;
	case BY_VCPU_TID:
		return latency_thread(t, w, (int32_t)v, false, key);
	case BY_GUEST_FIELD:
		return latency_guest_key(t, w, m, SCOPE_GUEST, v, key);
	case BY_VCPU_LINE:
		if (!host)
			return latency_guest_key(t, w, m, SCOPE_VCPU, cpu | v << 32, key);
		return t->second.kind == FIELD_NUMBER &&
		       field_load_number(&t->second, m->data, m->len, &second) &&
		       latency_guest_key(t, w, m, SCOPE_VCPU, (uint32_t)v | second << 32, key);
	case BY_WORKER:
		return latency_worker(t, w, timeline_pid(&t->pid, m), key);
	case BY_WORKER_TID:
		return vcpu_map_vcpu(w, t->input, (int32_t)v, &vcpu) == VCPU_MAP_NOBODY &&
		       latency_worker(t, w, (int32_t)v, key);
	case BY_PAIR: /* also of a guest that no file names */
		if (t->second.kind == FIELD_NUMBER &&
		    !field_load_number(&t->second, m->data, m->len, &second))
			return false;
		latency_guest_key(t, w, m, SCOPE_PAIR, v << 16 | (second & 0xffff), key);
		return true;
	case BY_CARRIED:
		key->scope = CHAIN_CARRIED;
		return true;
	case BY_CARRIED_FIELD:
		*key = (struct latency_key){ CHAIN_CARRIED_SCOPE, v };
		return true;
	}
	return false;
}

void latency_key_text(const struct latency_key *key, enum latency_by by, const struct vcpu_map *w,
		      const struct inputs *in, bool named, struct buf *out)
{
	enum latency_scope scope = (enum latency_scope)(key->scope >> 32);
	uint32_t number = (uint32_t)key->scope;
	bool guest = scope >= SCOPE_GUEST && scope != SCOPE_THREAD && number < w->n;

	if (guest && scope != SCOPE_PAIR)
		buf_addstr(out, w->guests[number].name);
	else if (scope == SCOPE_INPUT && (named || by == BY_MACHINE))
		buf_addstr(out, in->v[number].guest ? in->v[number].machine : "host");
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
