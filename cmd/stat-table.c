// SPDX-License-Identifier: GPL-2.0-only
/* The tables of hyptrace stat: columns that only programs get, and no more rows than people read. */
#include "stat-priv.h"

void stat_column(struct stat_table *t, const char *key, const char *title, enum answer_kind kind, bool text)
{
	bool shown = text || !stat_is_text(t->of);

	t->shown[t->n++] = shown;
	if (shown)
		t->columns[t->n_shown++] = (struct answer_column){ key, title, kind };
}

void stat_begin(struct stat_table *t, struct stat_answer *of, bool machines)
{
	*t = (struct stat_table){ .of = of };
	stat_column(t, "machine", "machine", ANSWER_WORD, machines);
}

bool stat_open(struct stat_table *t, const char *key, const char *title, size_t n_rows, const char *why)
{
	struct stat_answer *s = t->of;

	if (!n_rows && stat_is_text(s)) {
		if (s->asked)
			answer_note(s->out, "%s: %s", key, why);
		return false;
	}
	answer_table(s->out, key, title, t->columns, t->n_shown);
	return true;
}

void stat_row(struct stat_table *t, size_t input, const struct answer_cell *cells)
{
	struct answer_cell shown[ANSWER_COLUMNS_MAX] = { CELL_WORD(t->of->in->v[input].machine) };
	size_t n = t->shown[0];

	for (size_t i = 1; i < t->n; i++)
		if (t->shown[i])
			shown[n++] = cells[i - 1];
	if (stat_is_text(t->of) && t->rows == t->of->rows) {
		t->left++;
	} else {
		answer_row(t->of->out, shown);
		t->rows++;
	}
}

void stat_close(struct stat_table *t)
{
	answer_table_end(t->of->out);
	if (t->left)
		answer_note(t->of->out, "... and %zu more rows: --rows 0 shows them all", t->left);
}

const char *stat_task_name(const struct stat_answer *s, size_t input, int32_t pid, char buf[STEPS_TASK_MAX])
{
	return pid > 0 ? steps_task(s->steps, s->in, input, pid, UINT64_MAX, buf) : NULL;
}
