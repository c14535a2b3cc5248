// SPDX-License-Identifier: GPL-2.0-only
/* What hyptrace sync prints: the table and the JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/json.h"
#include "util/visible.h"
#include "sync-priv.h"

bool in_ticks(const struct offsets_guest *g)
{
	return clock_in_ticks(g->file->time.clock);
}

static const char *unit_of(const struct offsets_guest *g)
{
	return in_ticks(g) ? "ticks" : "ns";
}

uint64_t guest_middle(const struct offsets_guest *g)
{
	return g->events.first + (g->events.last - g->events.first) / 2;
}

/* The half width there, or at the nearest place that has one. */
static uint64_t middle_bound(const struct offsets_guest *g)
{
	uint64_t bound = sync_bound(&g->result, guest_middle(g));

	return bound == UINT64_MAX ? sync_median_bound(&g->result) : bound;
}

/* ---- table -------------------------------------------------------------------------- */

static void print_guest_table(const struct offsets_guest *g, FILE *out)
{
	const struct sync_result *r = &g->result;
	size_t matched = 0;

	for (size_t i = 0; i < r->n_vcpus; i++)
		matched += r->vcpus[i].pid != 0;
	fprintf(out, "%s\n  %s", VISIBLE(g->name), sync_class_name(r->class));
	if (!r->n_knots) {
		fputs(": nothing tells the offset\n", out);
		return;
	}
	fprintf(out, ", by %s, %zu of %zu vCPUs matched\n", r->method, matched, r->n_vcpus);
	fputs("  vCPU threads:", out);
	for (size_t i = 0; i < r->n_vcpus; i++)
		if (r->vcpus[i].pid)
			fprintf(out, " %u=%d", r->vcpus[i].cpu, r->vcpus[i].pid);
		else
			fprintf(out, " %u=?", r->vcpus[i].cpu);
	fprintf(out, "\n  offset %" PRId64 " %s +- %" PRIu64 " at %" PRIu64 ", drift %+.3f ppm",
		sync_offset(r, guest_middle(g)), unit_of(g), middle_bound(g), guest_middle(g),
		sync_drift_ppm(r));
	if (r->n_cuts)
		fprintf(out, ", %zu jump%s", r->n_cuts, r->n_cuts == 1 ? "" : "s");
	fprintf(out, "\n  coverage %.3f %%, %" PRIu64 " of %" PRIu64 " events outside\n",
		sync_coverage(r) * 100, r->outside, r->events);
}

static void print_shift(const struct offsets_guest *g, FILE *out)
{
	if (!g->has_shift)
		fputs("  the file has no offsets of its own\n", out);
	else if (!g->check.events)
		fputs("  the file's own offsets cannot be checked\n", out);
	else
		fprintf(out,
			"  with the file's own offsets %" PRIu64 " of %" PRIu64
			" events are outside, by up to %" PRIu64 " %s\n",
			g->check.outside, g->check.events, g->check.worst, unit_of(g));
}

void print_table(const struct sync_job *job, FILE *out)
{
	const struct sync_host *h = &job->found.windows;
	fprintf(out, "%s: %zu windows, %zu of them the hypervisor's", VISIBLE(job->found.host->path),
		h->windows.n, h->n_hyp);
	if (h->lost)
		fprintf(out, ", events lost at %" PRIu64 " places", h->lost);
	fputc('\n', out);
	if (h->hyp_checked)
		fprintf(out,
			"hyp against host: %" PRIu64 " windows checked, deviation up to %" PRIu64
			" ns, %" PRIu64 " violation%s\n",
			h->hyp_checked, h->hyp_worst, h->hyp_stray, h->hyp_stray == 1 ? "" : "s");
	for (size_t i = 0; i < job->found.n_guests; i++) {
		print_guest_table(&job->found.guests[i], out);
		print_shift(&job->found.guests[i], out);
	}
}

/* ---- JSON ------------------------------------------------------------------------------ */

/* null: unbounded */
static void key_bound(struct json *j, uint64_t v)
{
	json_key(j, "bound");
	if (v == UINT64_MAX)
		json_null(j);
	else
		json_u64(j, v);
}

static void json_knots(struct json *j, const struct sync_result *r)
{
	json_key(j, "knots");
	json_array(j);
	for (size_t i = 0; i < r->n_knots; i++) {
		json_object(j);
		json_key_u64(j, "time", r->knots[i].time);
		json_key(j, "offset");
		json_i64(j, r->knots[i].offset);
		key_bound(j, r->knots[i].bound);
		json_key_str(j, "class", sync_class_name(r->knots[i].class));
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_vcpus(struct json *j, const struct sync_result *r)
{
	json_key(j, "vcpus");
	json_array(j);
	for (size_t i = 0; i < r->n_vcpus; i++) {
		json_object(j);
		json_key_u64(j, "cpu", r->vcpus[i].cpu);
		json_key(j, "pid");
		if (r->vcpus[i].pid)
			json_i64(j, r->vcpus[i].pid);
		else
			json_null(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_shift(struct json *j, const struct offsets_guest *g)
{
	json_key(j, "file_time_shift");
	if (!g->has_shift) {
		json_null(j);
		return;
	}
	json_object(j);
	json_key_u64(j, "outside", g->check.outside);
	json_key_u64(j, "worst", g->check.worst);
	json_object_end(j);
}

static void json_guest(struct json *j, const struct offsets_guest *g)
{
	const struct sync_result *r = &g->result;

	json_object(j);
	json_key_str(j, "name", g->name);
	json_key_str(j, "method", r->method);
	json_key_str(j, "class", sync_class_name(r->class));
	json_key_str(j, "unit", unit_of(g));
	json_key_u64(j, "time", guest_middle(g));
	json_key(j, "offset");
	if (r->n_knots)
		json_i64(j, sync_offset(r, guest_middle(g)));
	else
		json_null(j);
	key_bound(j, middle_bound(g));
	json_key(j, "drift_ppm");
	json_double(j, r->n_knots ? sync_drift_ppm(r) : NAN);
	json_key(j, "coverage");
	json_double(j, r->n_knots ? sync_coverage(r) : NAN);
	json_key_u64(j, "events", r->events);
	json_key_u64(j, "outside", r->outside);
	json_vcpus(j, r);
	json_shift(j, g);
	json_knots(j, r);
	json_object_end(j);
}

void print_json(const struct sync_job *job, struct buf *out)
{
	struct json j = { .out = out };

	json_object(&j);
	json_key(&j, "hyp");
	json_object(&j);
	json_key_u64(&j, "windows", job->found.windows.n_hyp);
	json_key_u64(&j, "checked", job->found.windows.hyp_checked);
	json_key_u64(&j, "outside", job->found.windows.hyp_stray);
	json_key_u64(&j, "worst", job->found.windows.hyp_worst);
	json_object_end(&j);
	json_key(&j, "guests");
	json_array(&j);
	for (size_t i = 0; i < job->found.n_guests; i++)
		json_guest(&j, &job->found.guests[i]);
	json_array_end(&j);
	json_object_end(&j);
}
