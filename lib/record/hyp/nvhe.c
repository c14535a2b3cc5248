// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Times of a plain-nVHE host's hypervisor records, record by record: which VMs' CNTVOFFs one CPU has shown,
 * which is loaded, and since when.
 */
#include "record/hyp/nvhe.h"
#include "base/array.h"

#define MSEC	1000000ll
#define SEC	1000000000ll
#define JITTER	MSEC /* time may go back by less */
#define HOP_MAX (MSEC / 10)
#define N_VMS	16
#define N_PIDS	64

/* One CNTVOFF. */
struct vm {
	bool used;
	bool guess;	/* from bounds only */
	int64_t offset; /* estimate */
	int64_t low, high;
	uint64_t stamp; /* of its last use */
};

/* VM whose offset a vCPU's thread has. */
struct owner {
	int pid;
	struct vm *vm; /* NULL: 0, as protected guests have */
	bool owned;    /* in this pass */
	bool moved;    /* ... one, and then another: the VM was stopped and resumed, or one was wrong */
	bool doubtful; /* moved in the pass before: the pid is no evidence */
};

/*
 * CNTVOFF that was loaded when records began (0), or began again after a loss (1...), by later
 * evidence: before the first load or put.
 */
struct start {
	bool shown;
	bool loaded;
	int64_t offset, low, high;
};

/* Points at which CNTVOFF may have been written since the previous record. */
enum change {
	CHANGE_NO,
	CHANGE_HVC, /* inside a hypercall: load or put */
	CHANGE_ANY, /* records are missing */
};

enum kind {
	KIND_OTHER, /* no reason: an event of its own */
	KIND_HVC,
	KIND_ERET_HOST,
	KIND_GUEST, /* eret_guest, guest_exit */
	KIND_REST,
};

struct nvhe {
	void (*step)(void *ctx, const struct nvhe_step *s);
	void *ctx;

	int64_t from, to;
	uint64_t raw;	/* time as recorded, modulo 2^59, of the last record */
	int64_t last;	/* repaired time of it */
	enum kind kind; /* of it */
	bool any;	/* there was one */
	bool in_hvc;	/* a hypercall is being handled */
	bool lost;
	int64_t slop; /* error of the recorded time: text is truncated to microseconds */
	int64_t hop;  /* duration of a short hypercall */

	struct vm *cur;	  /* loaded; NULL: none */
	int64_t span_low; /* CNTVOFF is at least that since it was loaded; INT64_MIN: not known */
	bool sure;	  /* structure shows that cur is right */
	bool at_start; /* nothing was loaded or put since records began: evidence of cur is one of its start
			*/
	struct start *starts; /* of this pass */
	size_t n_starts;      /* fewer than begun: no memory for more */
	size_t begun;
	struct start *earlier; /* of the pass before */
	size_t n_earlier;
	bool settled;  /* the first step is no longer one of a span begun before the recording */
	int64_t first; /* time of the first record */
	int pid;       /* last vCPU seen in this span */
	uint64_t stamp;
	struct vm vms[N_VMS];
	struct owner owners[N_PIDS];
	size_t n_owners; /* taken in turn when full */
};

/* ---- the VMs' CNTVOFFs, and whose vCPUs' they are ---- */

#define NARROW	MSEC /* a bracket whose middle is better than an end */
#define FIT_PPM 1    /* typical change of CNTVOFF by a fit of the clock */

/* Its middle is better than an end. */
static bool vm_is_narrow(const struct vm *vm)
{
	return vm->low != INT64_MIN && vm->high != INT64_MAX && vm->high - vm->low <= NARROW;
}

/* Tolerance of a CNTVOFF around its observed value. */
static int64_t vm_tolerance(const struct vm *vm)
{
	int64_t t = vm->high - vm->low + HOP_MAX / 5 + llabs(vm->offset) / 1000000 * FIT_PPM;

	return vm_is_narrow(vm) && t < JITTER ? t : JITTER;
}

/* Can it be the one that is between low and high? */
static bool vm_fits_bracket(const struct vm *vm, int64_t low, int64_t high)
{
	int64_t t = vm_tolerance(vm);

	if (!vm_is_narrow(vm))
		return vm->offset - t <= high && vm->offset + t >= low;
	return vm->low - t <= high && vm->high + t >= low;
}

/* Takes the place of the one that was used longest ago, if it must. */
static struct vm *vm_new(struct nvhe *n, int64_t offset)
{
	struct vm *vm = &n->vms[0];

	for (size_t i = 0; i < N_VMS && vm->used; i++)
		if (!n->vms[i].used || n->vms[i].stamp < vm->stamp)
			vm = &n->vms[i];
	for (size_t i = 0; i < n->n_owners && i < N_PIDS; i++)
		if (n->owners[i].vm == vm)
			n->owners[i] = (struct owner){ 0 };
	*vm = (struct vm){ .used = true, .offset = offset, .low = INT64_MIN, .high = INT64_MAX };
	vm->stamp = ++n->stamp;
	return vm;
}

/* NULL: of that vCPU nothing is known. */
static struct owner *vm_owner(struct nvhe *n, int pid)
{
	for (size_t i = 0; i < n->n_owners && i < N_PIDS; i++)
		if (n->owners[i].pid == pid)
			return &n->owners[i];
	return NULL;
}

static void vm_own(struct nvhe *n, int pid, struct vm *vm)
{
	struct owner *o = vm_owner(n, pid);

	if (!o) {
		o = &n->owners[n->n_owners++ % N_PIDS];
		*o = (struct owner){ .pid = pid };
	}
	o->moved |= o->owned && o->vm != vm;
	o->owned = true;
	o->vm = vm;
}

/*
 * The offset is at least (at most) this. What does not agree with the other side
 * is newer: in ns the offset moves when the kernel fits its clock again. The
 * estimate is the middle of a narrow bracket, else `pad` from the newer end.
 */
static void vm_at_least(struct vm *vm, int64_t low, int64_t pad)
{
	if (low > vm->high)
		vm->high = INT64_MAX;
	if (low > vm->low)
		vm->low = low;
	vm->offset = vm_is_narrow(vm) ? vm->low + (vm->high - vm->low) / 2 : vm->low + pad;
}

static void vm_at_most(struct vm *vm, int64_t high, int64_t pad)
{
	if (high < vm->low)
		vm->low = INT64_MIN;
	if (high < vm->high)
		vm->high = high;
	vm->offset = vm_is_narrow(vm) ? vm->low + (vm->high - vm->low) / 2 : vm->high - pad;
}

/* The nearest that is less than `within` away; NULL: none. */
static struct vm *vm_near(struct nvhe *n, int64_t offset, int64_t within)
{
	struct vm *best = NULL;

	for (size_t i = 0; i < N_VMS; i++) {
		struct vm *vm = &n->vms[i];
		int64_t away = llabs(vm->offset - offset);

		if (vm->used && !vm->guess && away < within && (!best || away < llabs(best->offset - offset)))
			best = vm;
	}
	return best;
}

/* The one that is between low and high, and nearest to `offset`; NULL: none. */
static struct vm *vm_between(struct nvhe *n, int64_t low, int64_t high, int64_t offset)
{
	struct vm *best = NULL;

	for (size_t i = 0; i < N_VMS; i++) {
		struct vm *vm = &n->vms[i];

		if (vm->used && !vm->guess && vm_fits_bracket(vm, low, high) &&
		    (!best || llabs(vm->offset - offset) < llabs(best->offset - offset)))
			best = vm;
	}
	return best;
}

static void vm_narrow(struct vm *vm, int64_t low, int64_t high)
{
	vm_at_least(vm, low, 0);
	vm_at_most(vm, high, 0);
	vm->offset = vm->low + (vm->high - vm->low) / 2;
}

/* The VM whose CNTVOFF is between low and high, made when new. */
static struct vm *vm_known(struct nvhe *n, int64_t low, int64_t high)
{
	const int64_t middle = low + (high - low) / 2;
	struct vm *vm = vm_between(n, low, high, middle) ?: vm_new(n, middle);

	vm_narrow(vm, low, high);
	return vm;
}

void nvhe_known(struct nvhe *n, int vcpu_pid, int64_t low, int64_t high)
{
	struct owner *o = vcpu_pid ? vm_owner(n, vcpu_pid) : NULL;
	struct vm *vm = NULL;

	if (low > high || (o && (o->doubtful || !o->vm)))
		return;
	if (o && vm_is_narrow(o->vm)) { /* this CPU shows it as well: no other one, but perhaps more of it */
		if (low <= o->vm->high && high >= o->vm->low)
			vm_narrow(o->vm, low, high);
		return;
	}
	if (low || high)
		vm = vm_known(n, low, high);
	if (o)
		o->vm = vm;
	else if (vcpu_pid)
		vm_own(n, vcpu_pid, vm);
}

/* Copies the CNTVOFFs and vCPUs that `before` has learnt into the empty n. */
static void vm_learn(struct nvhe *n, const struct nvhe *before)
{
	for (size_t i = 0; i < N_VMS; i++) {
		const struct vm *vm = &before->vms[i], *have;

		if (!vm->used || vm->guess || !vm_is_narrow(vm))
			continue;
		have = vm_between(n, vm->low, vm->high, vm->offset);
		if (!have || !vm_is_narrow(have))
			vm_known(n, vm->low, vm->high);
	}
	for (size_t i = 0; i < before->n_owners && i < N_PIDS; i++) {
		const struct owner *o = &before->owners[i];

		if (o->moved)
			n->owners[n->n_owners++] = (struct owner){ .pid = o->pid, .doubtful = true };
		else if (o->vm && vm_is_narrow(o->vm))
			nvhe_known(n, o->pid, o->vm->low, o->vm->high);
	}
}

/* ---- which is loaded, and when ---- */

#define TIME_MASK   ((1ull << 59) - 1)
#define HYPERCALL   (10 * MSEC) /* one that takes longer was interrupted */
#define BOUND_SLACK SEC
#define PUT_MIN	    SEC		 /* a first step forward that is less was just slow */
#define OFFSET_MAX  (3600 * SEC) /* beyond the time since boot: no CNTVOFF */
#define SPAN_MAX    (10 * SEC)	 /* longer spans of one vCPU are put before */
#define SLOW_HOPS   20

struct nvhe *nvhe_new(void (*step)(void *ctx, const struct nvhe_step *s), void *ctx)
{
	struct nvhe *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->step = step;
	n->ctx = ctx;
	n->slop = 999;
	n->span_low = INT64_MIN;
	return n;
}

struct nvhe *nvhe_again(const struct nvhe *before, void (*step)(void *ctx, const struct nvhe_step *s),
			void *ctx)
{
	struct nvhe *n = nvhe_new(step, ctx);

	if (!n)
		return NULL;
	n->earlier = calloc(before->n_starts + 1, sizeof(*n->earlier));
	if (!n->earlier) {
		nvhe_free(n);
		return NULL;
	}
	if (before->n_starts)
		memcpy(n->earlier, before->starts, before->n_starts * sizeof(*n->earlier));
	n->n_earlier = before->n_starts;
	n->from = before->from;
	n->to = before->to;
	vm_learn(n, before);
	return n;
}

void nvhe_free(struct nvhe *n)
{
	if (!n)
		return;
	free(n->starts);
	free(n->earlier);
	free(n);
}

void nvhe_bounds(struct nvhe *n, uint64_t from, uint64_t to)
{
	n->from = (int64_t)(from & TIME_MASK);
	n->to = (int64_t)(to & TIME_MASK);
}

void nvhe_lost(struct nvhe *n)
{
	n->lost = true;
}

int64_t nvhe_diff(uint64_t a, uint64_t b)
{
	return (int64_t)((a - b) << 5) >> 5;
}

static int64_t time_with(const struct vm *vm, uint64_t raw)
{
	return (int64_t)((raw + (vm ? (uint64_t)vm->offset : 0)) & TIME_MASK);
}

static bool in_bounds(const struct nvhe *n, int64_t t)
{
	return (!n->from || t >= n->from - BOUND_SLACK) && (!n->to || t <= n->to + BOUND_SLACK);
}

/* Time since the record before, if vm is loaded. False: that cannot be. */
static bool gap_with(const struct nvhe *n, const struct vm *vm, uint64_t raw, int64_t *gap)
{
	int64_t t = time_with(vm, raw);

	*gap = nvhe_diff((uint64_t)t, (uint64_t)n->last);
	return *gap > -JITTER && in_bounds(n, t);
}

static void step_report(struct nvhe *n, const struct vm *vm, int64_t ts, bool loaded)
{
	struct nvhe_step s = {
		.ts = (uint64_t)ts,
		.offset = vm->offset,
		.low = vm->low == INT64_MIN ? 0 : (uint64_t)vm->low,
		.high = vm->high == INT64_MAX ? UINT64_MAX : (uint64_t)vm->high,
		.vcpu_pid = n->pid,
		.loaded = loaded,
	};

	if (n->step && vm->offset <= ts + OFFSET_MAX)
		n->step(n->ctx, &s);
}

/* Evidence of what is loaded, and was since records began: vm, or NULL. */
static void start_shown(struct nvhe *n, const struct vm *vm)
{
	if (n->at_start && n->n_starts == n->begun)
		n->starts[n->begun - 1] = (struct start){ .shown = true,
							  .loaded = vm,
							  .offset = vm ? vm->offset : 0,
							  .low = vm ? vm->low : 0,
							  .high = vm ? vm->high : 0 };
	n->at_start = false;
}

/* Largest distance of the true offset from an end of its bracket: the rest of a hypercall. */
static int64_t pad(const struct nvhe *n)
{
	return n->slop + n->hop;
}

static void vcpu_load(struct nvhe *n, struct vm *vm, uint64_t raw)
{
	int64_t t;

	if (!n->cur && n->in_hvc)
		start_shown(n, NULL);
	n->at_start = false;
	n->span_low = n->cur ? INT64_MIN : nvhe_diff((uint64_t)n->last, raw) - n->slop;
	if (!n->cur && !vm_is_narrow(vm)) /* else at the put: it may have been another VM's */
		vm_at_least(vm, n->span_low, pad(n));
	vm->stamp = ++n->stamp;
	n->cur = vm;
	n->pid = 0;
	t = time_with(vm, raw);
	step_report(n, vm, t > n->last ? t : n->last, true);
}

static void vcpu_put(struct nvhe *n, uint64_t raw)
{
	const struct owner *o = n->pid ? vm_owner(n, n->pid) : NULL;
	const int64_t high = nvhe_diff(raw, n->raw) + n->slop;
	struct vm *vm = n->cur;

	/*
	 * Finds the VM of a span, now that its CNTVOFF is known from both ends: VMs that were
	 * started or stopped together differ by microseconds.
	 */
	if (!vm->guess && n->span_low <= high)
		vm = o && o->vm && vm_fits_bracket(o->vm, n->span_low, high)
			     ? o->vm
			     : vm_between(n, n->span_low, high, high - pad(n)) ?: vm_new(n, high - pad(n));
	if (n->span_low != INT64_MIN)
		vm_at_least(vm, n->span_low, pad(n));
	vm_at_most(vm, high, pad(n));
	if (n->pid && n->span_low != INT64_MIN &&
	    high - n->span_low <= HOP_MAX + SLOW_HOPS * n->hop + n->slop)
		vm_own(n, n->pid, vm);
	vm->guess = false;
	if (n->in_hvc)
		start_shown(n, vm);
	n->at_start = false;
	n->cur = NULL;
	step_report(n, vm, (int64_t)raw, false);
	n->pid = 0;
}

static void switch_to(struct nvhe *n, struct vm *vm, uint64_t raw, bool sure)
{
	if (vm)
		vcpu_load(n, vm, raw);
	else
		vcpu_put(n, raw);
	n->sure = sure;
}

/* Changes that are possible here. */
struct candidate {
	struct vm *vm; /* NULL: none is loaded */
	int64_t gap;
	bool others; /* there are */
};

/*
 * The one that makes the gap shortest; false: none is possible. In a hypercall a
 * loaded one can only go, and what comes must make it a short one.
 */
static bool best_candidate(struct nvhe *n, uint64_t raw, enum change change, struct candidate *out)
{
	const bool loads = change == CHANGE_HVC && !n->cur;
	bool found = false;
	int64_t gap;

	*out = (struct candidate){ 0 };
	if (n->cur && gap_with(n, NULL, raw, &gap)) {
		out->gap = gap;
		found = true;
	}
	for (size_t i = 0; i < N_VMS && !(change == CHANGE_HVC && n->cur && n->sure); i++) {
		struct vm *vm = &n->vms[i];

		if (!vm->used || vm == n->cur || !gap_with(n, vm, raw, &gap))
			continue;
		if (loads && (gap > HYPERCALL || gap < -vm_tolerance(vm) - pad(n)))
			continue;
		out->others |= found;
		if (found && gap >= out->gap)
			continue;
		out->vm = vm;
		out->gap = gap;
		found = true;
	}
	return found;
}

/* The vCPU's pid knows better than a guess, and better than a hypercall's length. */
static bool pid_decides(struct nvhe *n, uint64_t raw, int vcpu)
{
	struct owner *o = vcpu ? vm_owner(n, vcpu) : NULL;
	int64_t gap;

	if (!o || o->doubtful || o->vm == n->cur || !gap_with(n, o->vm, raw, &gap))
		return false;
	/* a second vCPU in one span: records between are missing, as where a recorder was killed */
	if (n->sure && (!n->pid || n->pid == vcpu) &&
	    (!n->cur || !o->vm || gap > HYPERCALL || gap < -vm_tolerance(o->vm)))
		return false;
	n->cur = o->vm;
	return true;
}

static void decide(struct nvhe *n, uint64_t raw, enum change change, int vcpu)
{
	const int64_t up = nvhe_diff(raw, n->raw);
	int64_t gap, without;
	bool possible = gap_with(n, n->cur, raw, &gap);
	struct candidate best;

	if (pid_decides(n, raw, vcpu))
		return;
	if (possible && (change == CHANGE_NO || gap <= (change == CHANGE_HVC ? JITTER : PUT_MIN)))
		return;
	/* a vCPU that we took for another one is put: the step is about as large as it should be, and the
	 * time before it was wrong */
	if (change == CHANGE_HVC && n->cur && up > JITTER && in_bounds(n, (int64_t)raw) &&
	    !gap_with(n, NULL, raw, &without) &&
	    llabs(up - n->cur->offset) < (n->sure ? HYPERCALL : n->cur->offset / 2)) {
		switch_to(n, NULL, raw, true);
	} else if (best_candidate(n, raw, change, &best) && (!possible || best.gap < gap)) {
		switch_to(n, best.vm, raw, change == CHANGE_HVC && !(best.vm && best.others));
	} else if (possible && change == CHANGE_HVC && !n->cur && gap > PUT_MIN &&
		   (!n->settled || (n->at_start && !n->sure && vm_near(n, up, HYPERCALL)))) {
		/* what was loaded is unknown, as records began or after a loss: only then is it a put */
		struct vm *vm = vm_near(n, up, HYPERCALL);
		int pid = n->pid;

		/* The first step seen is forward: a vCPU was loaded when the recording began, and is put. */
		n->span_low = INT64_MIN;
		n->cur = vm ? vm : vm_new(n, up);
		if (pid)
			vm_own(n, pid, n->cur);
		vcpu_put(n, raw);
		n->sure = true;
	} else if (!possible) {
		struct vm *was = n->cur;

		/* Nothing that is known explains the time. */
		if (was)
			n->at_start = false;
		n->cur = NULL;
		vcpu_load(n, vm_new(n, nvhe_diff((uint64_t)n->last, raw)), raw);
		n->sure = change == CHANGE_HVC && !was;
	}
}

/* As the pass before has shown it. False: it has not, or it cannot be. */
static bool start_place(struct nvhe *n, const struct start *s, uint64_t raw)
{
	struct vm *vm = s->loaded ? vm_between(n, s->low, s->high, s->offset) : NULL; /* NULL: none was */
	int64_t gap;

	if (!vm && s->loaded) {
		vm = vm_new(n, s->offset);
		vm->low = s->low;
		vm->high = s->high;
	}
	if (!s->shown || (n->any ? !gap_with(n, vm, raw, &gap) : !in_bounds(n, time_with(vm, raw))))
		return false;
	if (n->any && vm != n->cur)
		switch_to(n, vm, raw, true);
	n->cur = vm;
	n->sure = true;
	return true;
}

/* The first record of all, or the first one after a loss. */
static void start_new(struct nvhe *n, uint64_t raw, int vcpu)
{
	const struct start none = { 0 }, *s = n->begun < n->n_earlier ? &n->earlier[n->begun] : &none;
	struct start *v = n->n_starts == n->begun ? array_grow(n->starts, n->n_starts, sizeof(*v)) : NULL;
	bool placed;

	n->sure = n->in_hvc = n->at_start = false;
	n->span_low = INT64_MIN;
	placed = start_place(n, s, raw);
	if (!placed && n->any)
		decide(n, raw, CHANGE_ANY, vcpu);
	else if (!placed) {
		struct owner *o = vcpu ? vm_owner(n, vcpu) : NULL;

		/* The first record of all: nothing but bounds and pids help. */
		n->cur = o && !o->doubtful ? o->vm : NULL;
		if (!in_bounds(n, time_with(n->cur, raw)))
			n->cur = NULL;
		for (size_t i = 0; i < N_VMS && !in_bounds(n, time_with(n->cur, raw)); i++)
			if (n->vms[i].used && in_bounds(n, time_with(&n->vms[i], raw)))
				n->cur = &n->vms[i];
		if (!in_bounds(n, time_with(n->cur, raw))) {
			n->cur = vm_new(n, nvhe_diff((uint64_t)(n->from ?: n->to), raw));
			n->cur->guess = true;
		}
	}
	n->begun++;
	n->at_start = true;
	if (!v)
		return;
	n->starts = v;
	v[n->n_starts++] = placed ? *s : none;
}

static enum kind reason_kind(const char *reason)
{
	if (!reason)
		return KIND_OTHER;
	if (!strcmp(reason, "hvc"))
		return KIND_HVC;
	if (!strcmp(reason, "eret_host"))
		return KIND_ERET_HOST;
	return !strcmp(reason, "eret_guest") || !strcmp(reason, "guest_exit") ? KIND_GUEST : KIND_REST;
}

static enum change change_before(const struct nvhe *n, enum kind kind)
{
	if (kind == KIND_GUEST) /* a hypercall that runs a vCPU does not load one */
		return CHANGE_NO;
	if (n->in_hvc)
		return CHANGE_HVC;
	/* only other events, or exits without their enters: some events are off */
	if (n->kind == KIND_OTHER || (n->kind == KIND_ERET_HOST && kind == KIND_ERET_HOST))
		return CHANGE_ANY;
	return CHANGE_NO;
}

uint64_t nvhe_time(struct nvhe *n, uint64_t ts, const char *reason, int vcpu)
{
	const struct vm *before = n->cur;
	const uint64_t raw = ts & TIME_MASK;
	const enum kind kind = reason_kind(reason);
	const enum change change = change_before(n, kind);
	int64_t t;

	if (ts % 1000)
		n->slop = 0;
	if (n->lost || !n->any)
		start_new(n, raw, vcpu);
	else
		decide(n, raw, change, vcpu);
	t = time_with(n->cur, raw);
	if (n->in_hvc && n->cur == before && kind == KIND_ERET_HOST && t - n->last < HOP_MAX)
		n->hop = t > n->last ? t - n->last : 0;
	/* EL2's own SMCs and other events come inside */
	if (kind != KIND_REST && kind != KIND_OTHER)
		n->in_hvc = kind == KIND_HVC;
	if (!n->any)
		n->first = t;
	/* a second vCPU without a step between: this host has no steps */
	if (n->sure || n->lost || t - n->first > SPAN_MAX || (vcpu && n->pid && vcpu != n->pid))
		n->settled = true;
	if (vcpu) {
		const struct owner *o = n->at_start ? vm_owner(n, vcpu) : NULL;

		if (o && o->vm == n->cur && !o->doubtful)
			start_shown(n, n->cur);
		n->pid = vcpu;
		if (n->sure)
			vm_own(n, vcpu, n->cur);
	}
	n->kind = kind;
	n->raw = raw;
	n->last = t;
	n->any = true;
	n->lost = false;
	return (uint64_t)t;
}
