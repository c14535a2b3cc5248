// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the last interval of the vCPU that is worst off with a limit. */
#include "record/watch/watcher.h"

static const struct unit share_units[] = { { "%", 1000 }, { NULL } };

struct breach_metric {
	const char *name;
	const struct unit *units;
	double scale; /* of parse_amount()'s number */
	enum watch_kind kind;
	double (*value)(const struct watch_counts *c, uint64_t interval); /* NULL: of the hypervisor */
};

static double breach_stolen(const struct watch_counts *c, uint64_t interval)
{
	return (double)c->ns / (double)interval;
}

/* As Prometheus' histogram_quantile(): times are spread evenly in a bucket, the last one's are its lower
 * bound. */
static double breach_p99(const struct watch_counts *c, uint64_t interval)
{
	double rank = (double)c->n * 0.99, below = 0, from = 0;

	for (unsigned int i = 0; i < WATCH_BUCKETS - 1 && c->n; i++) {
		double n = (double)c->buckets[i], to = WATCH_BOUND_NS(i);

		if (n > 0 && below + n >= rank)
			return from + (to - from) * (rank - below) / n;
		below += n;
		from = to;
	}
	return from;
}

static const struct breach_metric breach_metrics[] = {
	{ "stolen", share_units, 1e-5, WATCH_STOLEN, breach_stolen },
	{ "stolen_p99", duration_units, 1, WATCH_STOLEN, breach_p99 },
	{ "wakeup_p99", duration_units, 1, WATCH_WAKEUP, breach_p99 },
	{ "exit_p99", duration_units, 1, WATCH_EXIT, breach_p99 },
	{ "hyp", share_units, 1e-5, WATCH_EXIT, NULL },
};

int breach_parse(struct breach *b, const char *text)
{
	char name[32], value[32], lasts[32] = "0s";
	int end = 0;
	uint64_t n;

	*b = (struct breach){ 0 };
	/* without blanks, too, as systemd's files of options have words; no unit has an f */
	if (sscanf(text, " %31[a-z0-9_] > %31[^f ] %n for %31s %n", name, value, &end, lasts, &end) < 2 ||
	    text[end])
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(breach_metrics); i++) {
		const struct breach_metric *m = &breach_metrics[i];

		if (strcmp(m->name, name) != 0)
			continue;
		if (parse_amount(value, m->units, 0, &n) || parse_amount(lasts, duration_units, 0, &b->lasts))
			return -EINVAL;
		b->limit = (double)n * m->scale;
		b->metric = m;
		b->of_hyp = !m->value;
		return 0;
	}
	return -EINVAL;
}

/* An exit by which a guest waits for something to do. */
static bool breach_halts(struct watcher *w, const struct watch_sum *s)
{
	char text[32];
	const char *reason = watcher_label(w, s, text);

	return s->kind == WATCH_EXIT && (!strcmp(reason, "WFx") || !strcasecmp(reason, "HLT"));
}

bool breach_holds(struct breach *b, struct watcher *w, uint64_t now, char worst[300])
{
	const struct breach_metric *m = b->metric;
	const struct watch_sums *sums = &w->sums;
	const struct watch_vcpu *v = NULL;
	char vcpu[280] = "";
	double most = 0;

	for (size_t i = 0; i < HYP_REASONS && w->hyp.n && !m->value; i++)
		most += w->hyp.shares[i][(w->hyp.n - 1) % HYP_WINDOWS];
	for (const struct watch_sum *s = sums->v; s < sums->v + sums->n && m->value; s++) {
		double value = s->kind == m->kind ? m->value(&s->last, w->interval) : 0;

		if (value > most && !breach_halts(w, s)) {
			v = watch_vcpu_find(w->vcpus, w->n_vcpus, s->pid);
			most = value;
		}
	}
	if (v)
		snprintf(vcpu, sizeof(vcpu), "%s:%u ", v->vm, v->cpu);
	if (m->units == share_units)
		snprintf(worst, 300, "%s%.1f %%", vcpu, most * 100);
	else
		snprintf(worst, 300, "%s%.3f ms", vcpu, most / 1e6);
	if (!(most > b->limit)) {
		b->since = 0;
		return false;
	}
	b->since = b->since ?: now;
	return now - b->since >= b->lasts;
}
