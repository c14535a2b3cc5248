// SPDX-License-Identifier: LGPL-2.1-or-later
/* Findings about chains: presets of ask/latency whose slow instances took vCPUs' time. */

#include "ask/why/why-priv.h"

#define TAIL_LEAST 30	     /* instances, else there is no tail */
#define TAIL_IN	   3	     /* instances of it at least */
#define TAIL_TIMES 4	     /* the shortest of it is so many times the median */
#define TAIL_KEPT  (1 << 20) /* instances, the first ones */

/* A chain that ended in a guest: its vCPU by the CPU of its last event. */
struct tail_instance {
	uint64_t took; /* ns; of a timer since it fired */
	uint64_t to;   /* its end */
	uint32_t input, cpu;
	/* of `kick`, whose cpu is the interrupt's: its number, and the vCPU's thread and CPU */
	uint64_t irq;
	int32_t pid;
	uint32_t on;
};

static const char *const tail_presets[TAILS_MAX][2] = {
	{ "wakeup", "hyptrace why --preset wakeup" },
	{ "timer", "hyptrace why --preset timer" },
	{ "irq", "hyptrace why --preset irq" },
	{ "kick", "hyptrace latency --preset kick" },
};
#define TAIL_KICK (TAILS_MAX - 1)

#define TAIL_IRQS_MAX 65536

struct tail {
	const struct inputs *in;
	const char *const *preset; /* its name, and the next command */
	struct latency_plan plan;
	struct latency *latency; /* NULL: its events are not in the files */
	struct tail_instance *v;
	size_t n;
	/* of `kick`: names of interrupts, by their numbers */
	char (*names)[32];
	size_t n_names;
};

static int tail_take(void *ctx, const struct latency_worst *chain, const struct latency_key *row,
		     size_t n_points)
{
	struct tail *t = ctx;
	bool kick = t->preset == tail_presets[TAIL_KICK]; /* the exit is what that costs */
	const struct chain_event *from = &chain->v[kick ? 2 : t->plan.recalls], *to = &chain->v[n_points - 1];
	const struct tail_instance one = { .took = to->ts - from->ts,
					   .to = to->ts,
					   .input = to->input,
					   .cpu = kick ? chain->v->cpu : to->cpu,
					   .irq = kick ? row->value : 0,
					   .pid = from->pid,
					   .on = from->cpu };

	if (to->ts <= from->ts || t->n == TAIL_KEPT)
		return 0;
	return array_push(&t->v, &t->n, &one, sizeof(one));
}

static int tail_names(void *ctx, struct pass_run *run)
{
	struct tail *t = ctx;

	for (const struct step *s = run->steps; s < run->steps + run->n_steps; s++) {
		const struct merge_record *m = &run->records->v[s->at];
		const struct known_event *e = input_event(&t->in->v[s->input], timeline_id(m));
		const uint8_t *text;
		size_t len;

		if (s->kind != STEP_IRQ_ENTER || t->in->v[s->input].guest || s->a >= TAIL_IRQS_MAX ||
		    (s->a < t->n_names && *t->names[s->a]))
			continue;
		if (array_reach(&t->names, &t->n_names, s->a + 1, sizeof(*t->names)))
			return -ENOMEM;
		field_bytes(tep_find_field(e->event, "name"), m->data, m->len, &text, &len);
		snprintf(t->names[s->a], sizeof(*t->names), "%.*s", (int)len, (const char *)text);
	}
	return 0;
}

int tails_open(struct tail **out, struct reading *r)
{
	struct tail *all = *out = calloc(TAILS_MAX, sizeof(*all));
	struct latency *first = NULL;
	int ret = all ? 0 : -ENOMEM;

	for (size_t p = 0; p < TAILS_MAX && !ret; p++) {
		const struct latency_preset *preset = latency_preset(*tail_presets[p]);
		struct tail *t = &all[p];

		t->in = r->in;
		t->preset = tail_presets[p];
		latency_preset_plan(preset, r->in, &t->plan);
		if (t->plan.n_points < preset->n_points) /* there is no guest's file */
			continue;
		/* device interrupts, for which the files are read twice, are left out */
		t->plan.without_lines = t->plan.lines;
		t->plan.lines = t->plan.queues = false;
		t->plan.each = tail_take;
		t->plan.ctx = t;
		ret = latency_begin(&t->latency, &first, r->in, &t->plan, r->timeline, NULL);
		if (t->latency && p == TAIL_KICK)
			reading_add(r, (struct pass_part){ .ctx = t,
							   .steps = STEP_SET(STEP_IRQ_ENTER),
							   .after = tail_names });
	}
	if (first)
		reading_add(r, latency_part(first));
	return ret;
}

void tails_close(struct tail *t)
{
	for (size_t p = 0; t && p < TAILS_MAX; p++) {
		latency_close(t[p].latency);
		free(t[p].v);
		free(t[p].names);
	}
	free(t);
}

static int tail_order(const void *a, const void *b)
{
	const struct tail_instance *x = a, *y = b;

	return ORDER(x->input, y->input) ?: ORDER(x->irq, y->irq) ?: ORDER(x->cpu, y->cpu) ?: ORDER(x->took, y->took);
}

/* Instances of one interrupt on one CPU. */
static int tail_kicks(const struct finding_job *j, const struct tail *t, const struct tail_instance *v,
		      size_t n)
{
	struct finding f = { .next = t->preset[1] };
	struct buf what = { 0 };
	bool one = true; /* CPU of all vCPUs */

	for (size_t i = 0; i < n; i++) {
		struct finding_vcpu *k = finding_thread_of(j, v[i].input, v[i].pid);

		one &= v[i].on == v->on;
		if (k)
			finding_part_add(&k->part, v[i].to - v[i].took, v[i].to);
	}
	finding_sum(j, &f, OF_ALL);
	buf_printf(&what, "interrupt %llu", (unsigned long long)v->irq);
	if (v->irq < t->n_names && *t->names[v->irq])
		buf_printf(&what, " (%s)", t->names[v->irq]);
	buf_printf(&what, " on CPU %u is for a vCPU on ", v->cpu);
	if (one)
		buf_printf(&what, "CPU %u", v->on);
	else
		buf_addstr(&what, "other CPUs");
	buf_printf(&what, ", and costs an IPI and an exit: /proc/irq/%llu/smp_affinity_list sets its CPU",
		   (unsigned long long)v->irq);
	return finding_push(j, &f, &what);
}

/* Instances of one vCPU, the shortest first. */
static int tail_vcpu(const struct finding_job *j, const struct tail *t, const struct tail_instance *v,
		     size_t n, const struct finding_vcpu *vcpu)
{
	size_t in = n / 100 > TAIL_IN ? n / 100 : TAIL_IN;
	uint64_t p50 = v[n / 2].took;
	struct finding f = { .n = in, .next = t->preset[1], .on = vcpu->owner };
	struct buf what = { 0 };
	const struct answer units = { .ticks = inputs_in_ticks(j->why->in) };
	char text[2][32];

	for (size_t i = n - in; i < n; i++)
		f.lost += v[i].took - p50;
	f.example = (struct finding_stretch){ v[n - 1].to - v[n - 1].took, v[n - 1].to };
	buf_printf(&what, "%s tail: the slowest %zu of %zu take %s or more, the median %s", *t->preset, in, n,
		   answer_duration(&units, v[n - in].took, text[0]), answer_duration(&units, p50, text[1]));
	f.share = v[n - in].took >= TAIL_TIMES * p50 ? (double)f.lost / (double)vcpu->wall : 0;
	return finding_push(j, &f, &what);
}

int tails_find(struct tail *all, const struct finding_job *j)
{
	uint64_t from, to;
	size_t n;
	int ret = 0;

	for (struct tail *t = all; t < all + TAILS_MAX && !ret; t++) {
		if (!t->latency)
			continue;
		ret = latency_end(t->latency);
		n = t->n;
		t->n = 0;
		/* what does not begin in the time that its buffers cover is left out */
		for (const struct tail_instance *one = t->v; one < t->v + n; one++) {
			states_covered(j->states, one->input, &from, &to);
			if (one->to - one->took >= from && one->to - one->took < to)
				t->v[t->n++] = *one;
		}
		array_sort(t->v, t->n, sizeof(*t->v), tail_order);
		for (size_t i = 0, end; i < t->n && !ret; i = end) {
			const struct finding_vcpu *v = finding_vcpu_of(j, t->v[i].input, t->v[i].cpu);

			for (end = i; end < t->n && t->v[end].input == t->v[i].input &&
				      t->v[end].irq == t->v[i].irq && t->v[end].cpu == t->v[i].cpu;)
				end++;
			if (t == &all[TAIL_KICK])
				ret = tail_kicks(j, t, &t->v[i], end - i);
			else if (v && end - i >= TAIL_LEAST)
				ret = tail_vcpu(j, t, &t->v[i], end - i, v);
		}
	}
	return ret;
}
