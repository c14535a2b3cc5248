// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts the samples of each task's name by the mode of the CPU. */
#include "ask/states/reading.h"

void samples_release(struct samples *s)
{
	map_release(&s->by_comm);
	arena_release(&s->names);
	free(s->rows);
}

static bool samples_same(const void *rows, size_t i, const void *wanted)
{
	const struct samples_row *row = (const struct samples_row *)rows + i, *w = wanted;

	return row->input == w->input && !strcmp(row->comm, w->comm);
}

static int samples_after(void *ctx, struct pass_run *run)
{
	struct samples *s = ctx;

	for (const struct step *step = run->steps; step < run->steps + run->n_steps; step++) {
		struct samples_row row = { .input = step->input };
		uint32_t hash;
		size_t i;

		if (step->kind != STEP_SAMPLE)
			continue;
		row.comm = step->pid ? steps_comm(s->steps, step->input, step->pid, step->ts) : "<idle>";
		row.comm = row.comm ?: "<unknown>";
		hash = map_hash(map_hash_bytes(row.comm, strlen(row.comm)) ^ row.input);
		i = map_find(&s->by_comm, hash, samples_same, s->rows, &row);
		if (i == MAP_NONE) {
			i = s->n;
			row.comm = arena_text(&s->names, row.comm, strlen(row.comm));
			if (!row.comm || map_push(&s->by_comm, hash, &s->rows, &s->n, &row, sizeof(row)))
				return -ENOMEM;
		}
		s->rows[i].all++;
		s->rows[i].n[step->a < SAMPLE_MODES ? step->a : SAMPLE_UNKNOWN]++;
	}
	return 0;
}

struct pass_part samples_part(struct samples *s)
{
	return (struct pass_part){ .ctx = s, .steps = STEP_SET(STEP_SAMPLE), .after = samples_after };
}

static int samples_by_number(const void *a, const void *b)
{
	const struct samples_row *x = a, *y = b;

	return ORDER(x->input, y->input) ?: ORDER(y->all, x->all) ?: strcmp(x->comm, y->comm);
}

void samples_sort(struct samples *s)
{
	array_sort(s->rows, s->n, sizeof(*s->rows), samples_by_number);
}
