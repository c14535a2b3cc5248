// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes the sums as Prometheus' metrics: base units, names and escapes of its text format. */
#include "record/watch/watcher.h"
#include "base/answer.h"
#include "base/clock.h"
#include "base/escape.h"

struct metrics {
	struct watcher *w;
	struct buf *out;
	uint64_t series, left_out;
};

/* Metrics of vCPUs: those that say most for their number of series come first. */
static const struct metric {
	const char *name, *help;
	enum watch_kind from, to;
	const char *label; /* besides vm and vcpu; NULL: none */
	bool histogram;	   /* else a counter */
} metric_table[] = {
	{ "hyptrace_vcpu_stolen_seconds_total",
	  "Time in which a vCPU could run and tasks of this name had its CPU.", WATCH_STOLEN, WATCH_BY, "by",
	  false },
	{ "hyptrace_vcpu_exits_total", "Exits of a vCPU to KVM, by reason.", WATCH_EXIT, WATCH_EXIT, "reason",
	  false },
	{ "hyptrace_vcpu_wakeup_seconds", "Time from the wake-up of a vCPU's thread until it runs.",
	  WATCH_WAKEUP, WATCH_WAKEUP, NULL, true },
	{ "hyptrace_vcpu_exit_seconds", "Time from an exit of a vCPU until it is entered again, by reason.",
	  WATCH_EXIT, WATCH_EXIT, "reason", true },
};

/* A text between the quotes of a label. */
static void label_text(struct buf *out, const char *text)
{
	size_t len = strlen(text), n;

	for (size_t i = 0; i < len; i += n) {
		const uint8_t *p = (const uint8_t *)text + i;

		n = utf8_len(p, len - i);
		if (!n || escape_control(p, len - i) || *p == '\n' || *p == '\t') {
			n = n ?: 1;
			buf_addstr(out, "?");
			continue;
		}
		buf_addstr(out, *p == '"' || *p == '\\' ? "\\" : "");
		buf_add(out, p, n);
	}
}

/* NAME{vm="Guest",vcpu="0",reason="IRQ" without the end, which histograms have more in. */
static void metric_series(struct metrics *m, const struct metric *t, const char *suffix,
			  const struct watch_vcpu *v, const struct watch_sum *s)
{
	char label[32];

	buf_printf(m->out, "%s%s{vm=\"", t->name, suffix);
	label_text(m->out, v->vm);
	buf_printf(m->out, "\",vcpu=\"%u\"", v->cpu);
	if (!t->label)
		return;
	buf_printf(m->out, ",%s=\"", t->label);
	label_text(m->out, watcher_label(m->w, s, label));
	buf_addstr(m->out, "\"");
}

static void metric_write(struct metrics *m, const struct metric *t, const struct watch_vcpu *v,
			 const struct watch_sum *s)
{
	size_t series = t->histogram ? WATCH_BUCKETS + 2 : 1;
	uint64_t below = 0;
	char text[32];

	if (m->series + series > m->w->o->max_series) {
		m->left_out += series;
		return;
	}
	m->series += series;
	if (!t->histogram) {
		if (s->kind == WATCH_EXIT)
			snprintf(text, sizeof(text), "%llu", (unsigned long long)s->all.n);
		else
			seconds_text(watcher_ns(s), text);
		metric_series(m, t, "", v, s);
		buf_printf(m->out, "} %s\n", text);
		return;
	}
	for (unsigned int i = 0; i < WATCH_BUCKETS; i++) {
		bool last = i == WATCH_BUCKETS - 1;

		below += s->all.buckets[i];
		metric_series(m, t, "_bucket", v, s);
		buf_printf(m->out, ",le=\"%s\"} %llu\n",
			   last ? "+Inf" : seconds_text(WATCH_BOUND_NS(i), text), (unsigned long long)below);
	}
	metric_series(m, t, "_sum", v, s);
	buf_printf(m->out, "} %s\n", seconds_text(s->all.ns, text));
	metric_series(m, t, "_count", v, s);
	buf_printf(m->out, "} %llu\n", (unsigned long long)s->all.n);
}

static void metric_head(struct metrics *m, const char *name, const char *type, const char *help)
{
	buf_printf(m->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metric_number(struct metrics *m, const char *name, const char *type, const char *help, uint64_t n)
{
	metric_head(m, name, type, help);
	buf_printf(m->out, "%s %llu\n", name, (unsigned long long)n);
}

void watcher_metrics(struct watcher *w, struct buf *out)
{
	/* means of the last windows with their errors; without --hyp-window they have no series */
	static const struct {
		const char *name, *help;
	} parts[] = { { "hyptrace_hyp_time_ratio",
			"Share of all CPUs' time in the hypervisor, by reason: mean of the last windows." },
		      { "hyptrace_hyp_time_ratio_error", "Standard error of that mean." } };
	struct metrics m = { .w = w, .out = out };
	char seconds[32];
	double of[2];

	for (const struct metric *t = metric_table; t < metric_table + ARRAY_SIZE(metric_table); t++) {
		const struct watch_vcpu *v;
		const struct watch_sum *s = NULL;

		metric_head(&m, t->name, t->histogram ? "histogram" : "counter", t->help);
		while ((s = watcher_next(w, s, t->from, t->to, &v)))
			metric_write(&m, t, v, s);
	}
	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		metric_head(&m, parts[k].name, "gauge", parts[k].help);
		for (size_t i = 0; i < HYP_REASONS && hyp_windows_mean(&w->hyp, i, &of[0], &of[1]); i++)
			if (of[0] > 0)
				buf_printf(out, "%s{reason=\"%s\"} %.9f\n", parts[k].name,
					   hyp_windows_reason(i), of[k]);
	}
	metric_number(&m, "hyptrace_hyp_windows_total", "counter",
		      "Windows in which the hypervisor was sampled.", w->hyp.n);
	metric_number(&m, "hyptrace_hyp_missed_windows_total", "counter",
		      "Windows that were not taken, because its buffer was in use or lost events.",
		      w->hyp.missed);
	metric_number(&m, "hyptrace_watch_vcpus", "gauge", "vCPUs that are watched.", w->n_vcpus);
	metric_number(&m, "hyptrace_watch_dropped_total", "counter",
		      "Events that found no room in a histogram.", w->dropped);
	metric_number(&m, "hyptrace_watch_left_out_series", "gauge", "Series beyond --max-series.",
		      m.left_out);
	metric_number(&m, "hyptrace_watch_breaches_total", "counter",
		      "Looks at which --dump-when held for its time.", w->breaches);
	metric_number(&m, "hyptrace_watch_dumps_total", "counter", "Dumps that were asked for.", w->dumps);
	metric_head(&m, "hyptrace_watch_cpu_seconds_total", "counter", "CPU time of hyptrace watch itself.");
	buf_printf(out, "hyptrace_watch_cpu_seconds_total %s\n",
		   seconds_text(clock_now(CLOCK_PROCESS_CPUTIME_ID), seconds));
	if (m.left_out > w->left_out)
		log_warn(w->o->log, "%llu series are left out; raise --max-series",
			 (unsigned long long)m.left_out);
	w->left_out = m.left_out;
}
