// SPDX-License-Identifier: LGPL-2.1-or-later
/* Constraints of a query that let a table leave rows out: times, names, CPUs, ids. SQLite tests each row
 * again. */
#include "ask/sql/sql-priv.h"

/* Factors by which rows and work become fewer, about. */
static const struct sql_gain {
	double rows, cost;
} sql_gains[] = {
	[KEY_NONE] = { 3, 1 }, [KEY_ID] = { 1e9, 1e6 }, [KEY_TS] = { 4, 4 },	  [KEY_DUR] = { 1000, 100 },
	[KEY_CPU] = { 4, 2 },  [KEY_NAME] = { 10, 5 },	[KEY_MACHINE] = { 2, 2 }, [KEY_REASON] = { 8, 4 },
};

/* Use of condition i: its key and operator; 0: it is not used. */
static char sql_want_use(const struct sql_table *t, sqlite3_index_info *info, int i, enum sql_key *key)
{
	static const struct {
		unsigned char op;
		char code;
	} ranges[] = { { SQLITE_INDEX_CONSTRAINT_GT, '>' },
		       { SQLITE_INDEX_CONSTRAINT_GE, 'g' },
		       { SQLITE_INDEX_CONSTRAINT_LT, '<' },
		       { SQLITE_INDEX_CONSTRAINT_LE, 'l' } };
	int column = info->aConstraint[i].iColumn;
	unsigned char of = info->aConstraint[i].op;
	bool range;
	char op;

	if (column < 0 || !info->aConstraint[i].usable)
		return 0;
	/* a table that counts its rows has all of them in every scan */
	*key = t->number ? t->columns[column].key : KEY_NONE;
	range = *key == KEY_NONE || *key == KEY_TS || *key == KEY_DUR || *key == KEY_CPU;
	op = of == SQLITE_INDEX_CONSTRAINT_EQ				  ? '='
	     : of == SQLITE_INDEX_CONSTRAINT_ISNULL && *key == KEY_REASON ? 'n'
									  : 0;
	for (size_t k = 0; k < ARRAY_SIZE(ranges) && range; k++)
		op = ranges[k].op == of ? ranges[k].code : op;
	/* as SQLite compares bytes */
	if (!op || strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
		return 0;
	/* IN: names all at once; else each of its values would be a reading of its own */
	if (op != '=' || !sqlite3_vtab_in(info, i, -1))
		return op;
	if (*key == KEY_NAME)
		sqlite3_vtab_in(info, i, 1);
	return *key == KEY_NAME ? 'i' : *key == KEY_ID ? op : 0;
}

static enum sql_order sql_want_order(const struct sql_table *t, const sqlite3_index_info *info)
{
	enum sql_key by[2] = { KEY_NONE, KEY_NONE };
	enum sql_order order = ORDER_ANY;

	if (info->nOrderBy < 1 || info->nOrderBy > 2)
		return ORDER_ANY;
	for (int i = 0; i < info->nOrderBy; i++) {
		if (info->aOrderBy[i].desc || info->aOrderBy[i].iColumn < 0)
			return ORDER_ANY;
		by[i] = t->columns[info->aOrderBy[i].iColumn].key;
	}
	if (by[0] == KEY_TS && info->nOrderBy == 1)
		order = ORDER_TS;
	else if (by[0] == KEY_CPU)
		order = info->nOrderBy == 1 ? ORDER_CPU : by[1] == KEY_REASON ? ORDER_CPU_REASON : ORDER_ANY;
	else if (by[0] == KEY_REASON && (info->nOrderBy == 1 || by[1] == KEY_CPU))
		order = ORDER_REASON;
	return t->orders & 1u << order ? order : ORDER_ANY;
}

int sql_want_plan(const struct sql *s, const struct sql_table *t, sqlite3_index_info *info)
{
	double all = (double)s->bytes / t->bytes + 100;
	struct sql_gain gain = { 1, 1 };
	struct buf text = { 0 };
	bool one = false, ordered;
	int n = 0;

	for (int i = 0; i < info->nConstraint; i++) {
		enum sql_key key;
		char use[SQL_PLAN_STEP];

		use[1] = sql_want_use(t, info, i, &key);
		if (!use[1])
			continue;
		use[0] = (char)('a' + key);
		use[2] = (char)('0' + info->aConstraint[i].iColumn);
		buf_add(&text, use, sizeof(use));
		info->aConstraintUsage[i].argvIndex = ++n;
		/* a reason may have another name here: hyp-table.c */
		info->aConstraintUsage[i].omit = key == KEY_REASON;
		gain.rows *= sql_gains[key].rows;
		gain.cost *= sql_gains[key].cost;
		one |= key == KEY_ID && !t->sets;
	}
	info->estimatedRows = one || all / gain.rows < 1 ? 1 : (sqlite3_int64)(all / gain.rows);
	info->estimatedCost = all / gain.cost < 10 ? 10 : all / gain.cost;
	if (one)
		info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
	info->idxNum = sql_counted_order(s, t, info, &ordered);
	if (info->idxNum == ORDER_ANY) {
		info->idxNum = sql_want_order(t, info);
		ordered = info->idxNum != ORDER_ANY;
	}
	info->orderByConsumed = ordered;
	info->idxStr = sqlite3_mprintf("%016llx%s", info->colUsed, buf_str(&text) ? buf_str(&text) : "");
	info->needToFreeIdxStr = 1;
	n = text.bad || !info->idxStr ? SQLITE_NOMEM : SQLITE_OK;
	buf_release(&text);
	return n;
}

/* By the integers at or around a number. Others leave the range as it is. */
static void sql_want_range(struct sql_range *r, char op, sqlite3_value *v)
{
	int64_t below, above;
	double real;

	switch (sqlite3_value_numeric_type(v)) {
	case SQLITE_INTEGER:
		below = above = sqlite3_value_int64(v);
		break;
	case SQLITE_FLOAT:
		real = sqlite3_value_double(v);
		if (!(real > -9e18 && real < 9e18))
			return;
		below = (int64_t)real - 1;
		above = (int64_t)real + 1;
		break;
	default:
		return;
	}
	if ((op == '=' || op == '>' || op == 'g') && below > r->from)
		r->from = below;
	if ((op == '=' || op == '<' || op == 'l') && above < r->to)
		r->to = above;
}

/* A second condition is left to SQLite. */
static int sql_want_names(struct sql_want *w, sqlite3_value *v, bool many)
{
	sqlite3_value *one = v;
	int ret = SQLITE_OK;

	if (w->by_name)
		return SQLITE_OK;
	w->by_name = true;
	if (many)
		ret = sqlite3_vtab_in_first(v, &one);
	while (ret == SQLITE_OK && one) {
		const char *text = (const char *)sqlite3_value_text(one);

		if (text && strlist_add(&w->names, text))
			return SQLITE_NOMEM;
		if (!many)
			return SQLITE_OK;
		ret = sqlite3_vtab_in_next(v, &one);
	}
	return ret == SQLITE_DONE || ret == SQLITE_OK ? SQLITE_OK : ret;
}

static int sql_want_text(bool *by, char **to, sqlite3_value *v, struct sql_want *w)
{
	const char *text = (const char *)sqlite3_value_text(v);

	if (*by && (!*to || !text || strcmp(*to, text) != 0)) {
		w->nothing = true;
		return SQLITE_OK;
	}
	*by = true;
	free(*to);
	*to = text ? strdup(text) : NULL;
	return text && !*to ? SQLITE_NOMEM : SQLITE_OK;
}

int sql_want_read(struct sql_want *w, int order, const char *text, int n, sqlite3_value **v)
{
	static const struct sql_range all = { INT64_MIN, INT64_MAX };
	struct sql_range *const ranges[] = {
		[KEY_ID] = &w->id, [KEY_TS] = &w->ts, [KEY_DUR] = &w->dur, [KEY_CPU] = &w->cpu
	};
	int ret = SQLITE_OK;

	sql_want_release(w);
	*w = (struct sql_want){ .id = all, .ts = all, .dur = all, .cpu = all };
	w->order = (enum sql_order)(order & 0xff);
	w->counted = order;
	for (int i = 0; i < n && ret == SQLITE_OK; i++) {
		int key = text[SQL_PLAN_STEP * i] - 'a';
		char op = text[SQL_PLAN_STEP * i + 1];

		if (op != 'i' && op != 'n' && sqlite3_value_type(v[i]) == SQLITE_NULL) {
			w->nothing = true; /* nothing compares to NULL */
			continue;
		}
		switch (key) {
		case KEY_ID:
		case KEY_TS:
		case KEY_DUR:
		case KEY_CPU:
			sql_want_range(ranges[key], op, v[i]);
			break;
		case KEY_NAME:
			ret = sql_want_names(w, v[i], op == 'i');
			break;
		case KEY_MACHINE:
			ret = sql_want_text(&w->by_machine, &w->machine, v[i], w);
			break;
		case KEY_REASON:
			ret = sql_want_text(&w->by_reason, &w->reason, v[i], w);
			break;
		}
	}
	return ret;
}

void sql_want_release(struct sql_want *w)
{
	strlist_release(&w->names);
	free(w->machine);
	free(w->reason);
	*w = (struct sql_want){ 0 };
}
