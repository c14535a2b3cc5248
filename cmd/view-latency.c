// SPDX-License-Identifier: GPL-2.0-only
/* Latencies of all presets that recordings can feed, as JSON for the page of hyptrace view. */
#include "latency-answer.h"
#include "cmd.h"

static void latency_json_row(const struct latency_answer *l, const struct latency_row *row, struct json *j)
{
	const struct histogram *h = &row->stages[l->plan->n_points - 1];
	uint64_t from, to, n;
	char key[LATENCY_ROW_NAME];

	json_object(j);
	json_key_str(j, "key", latency_row_name(l, row, key));
	json_key_u64(j, "p50", histogram_at(h, 0.5));
	json_key_u64(j, "p99", histogram_at(h, 0.99));
	json_key(j, "buckets");
	json_array(j);
	for (size_t at = 0; histogram_next(h, &at, &from, &to, &n);)
		JSON_ROW(j, from, to, n);
	json_array_end(j);
	json_object_end(j);
}

static int latency_json_preset(const struct inputs *in, const struct latency_preset *p, struct json *j,
			       uint64_t *damaged)
{
	struct latency_plan plan = { 0 };
	struct latency_answer l = { .in = in, .plan = &plan };
	struct latency *found = NULL;
	uint64_t met = 0, n = 0;
	int ret;

	latency_preset_plan(p, in, &plan);
	ret = latency_open(&found, in, &plan, NULL);
	if (!ret && latency_fed(found)) {
		ret = latency_read(found, NULL, &met);
		merge_damage_join(damaged, met);
		l.found = latency_result(found);
	}
	for (size_t i = 0; i < l.found.n_rows && !ret; i++)
		n += l.found.rows[i].stages[plan.n_points - 1].n;
	if (n) {
		json_object(j);
		json_key_str(j, "preset", p->name);
		json_key_str(j, "summary", p->summary);
		json_key(j, "rows");
		json_array(j);
		for (size_t i = 0; i < l.found.n_rows; i++)
			if (l.found.rows[i].stages[plan.n_points - 1].n)
				latency_json_row(&l, &l.found.rows[i], j);
		json_array_end(j);
		json_object_end(j);
	}
	latency_close(found);
	return ret == -EINVAL ? 0 : ret; /* a field is not there */
}

int latency_json(const struct inputs *in, struct buf *out, uint64_t *damaged)
{
	struct json j = { .out = out, .compact = true };
	const struct latency_preset *p;
	int ret = 0;

	json_array(&j);
	for (size_t i = 0; (p = latency_preset_at(i)) && !ret; i++)
		ret = latency_json_preset(in, p, &j, damaged);
	json_array_end(&j);
	return ret;
}
