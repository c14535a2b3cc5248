// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tables whose rows SQLite keeps: the files' metadata (machines, CPUs, vCPUs, options, offset points), and
 * those that all of the files have to be read for.
 */
#include "ask/states/reading.h"
#include "ask/sql/sql-priv.h"

static const char *sql_or_null(const char *text)
{
	return *text ? text : NULL;
}

/* The option's text, of a file that has several the last one; NULL: it has none. */
static const char *sql_option_text(const struct input *f, unsigned int id, char *text, size_t size)
{
	const struct reader_info *info = reader_info(f->reader);

	*text = '\0';
	for (size_t i = 0; i < info->n_options; i++)
		if (info->options[i].id == id)
			snprintf(text, size, "%.*s", (int)info->options[i].data.len,
				 info->options[i].data.data);
	return sql_or_null(text);
}

/*
 * UNAME is "Linux NODE RELEASE VERSION... ARCH". The wall clock was noted at the begin and at the end; an
 * unknown error is UINT64_MAX, as all are of a file that says nothing.
 */
static void sql_fill_recordings(struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->in->n; i++) {
		const struct input *f = &s->in->v[i];
		const struct wall *w = &f->time.wall;
		const struct wall_sample *first = w->v, *last = &w->v[w->n ? w->n - 1 : 0];
		char uname[512], program[128], id[24], node[80] = "", release[80] = "", *arch;

		snprintf(id, sizeof(id), "%016llx", (unsigned long long)f->trace_id);
		sql_option_text(f, DAT_UNAME, uname, sizeof(uname));
		sscanf(uname, "%*s %79s %79s", node, release);
		arch = strrchr(uname, ' ');
		sql_insert(in, (int64_t)i, f->machine, f->path, (int64_t)f->guest, sql_or_null(f->time.clock),
			   w->n ? (int64_t)last->max_error : -1, w->n ? (int64_t)last->est_error : -1,
			   w->n && last->tai ? (int64_t)last->tai : -1, f->trace_id ? id : NULL,
			   sql_option_text(f, DAT_VERSION, program, sizeof(program)), sql_or_null(node),
			   sql_or_null(release), arch ? arch + 1 : NULL, w->n ? sql_ts(first->trace) : -1,
			   w->n ? sql_ts(last->trace) : -1, w->n ? sql_ts(first->utc) : -1,
			   w->n ? sql_ts(last->utc) : -1);
	}
}

static void sql_fill_cpus(struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->n_streams; i++) {
		size_t first = 0;

		while (s->streams[first].input != s->streams[i].input ||
		       s->streams[first].cpu != s->streams[i].cpu)
			first++;
		if (first == i) /* other buffers have the same CPUs */
			sql_insert(in, sql_input(s, i)->machine, (int64_t)s->streams[i].cpu,
				   (int64_t)s->streams[i].input);
	}
}

static void sql_fill_vcpus(struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->in->n; i++)
		for (size_t g = 0; g < s->in->v[i].n_guests; g++) {
			const struct offset_guest *guest = &s->in->v[i].guests[g];

			for (uint32_t v = 0; v < guest->n; v++)
				sql_insert(in, s->in->v[i].machine, guest->name, (int64_t)guest->vcpus[v].cpu,
					   (int64_t)guest->vcpus[v].pid, (int64_t)i);
		}
}

/* First lines of those that perfetto.sql takes apart, and all of a CPUSTAT; number: the process of a
 * PROCMAPS, in hexadecimal there. */
static void sql_fill_options(struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->in->n; i++) {
		const struct reader_info *info = reader_info(s->in->v[i].reader);

		for (size_t o = 0; o < info->n_options; o++) {
			const struct dat_text *data = &info->options[o].data;
			char text[1024];

			snprintf(text, sizeof(text), "%.*s", (int)(data->len < 1024 ? data->len : 1024),
				 data->data);
			if (info->options[o].id != DAT_CPUSTAT)
				text[strcspn(text, "\n")] = '\0';
			sql_insert(in, (int64_t)i, (int64_t)info->options[o].id,
				   (int64_t)(strtoul(text, NULL, 16) & INT32_MAX), text);
		}
	}
}

/* Of a guest's first CPU: all have the same points where hyptrace wrote them. */
static void sql_fill_clocks(struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->in->n; i++) {
		const struct input *f = &s->in->v[i];

		for (uint32_t n = 0; f->time.shift.n_cpus && n < f->time.shift.cpus[0].n; n++) {
			const struct offset_point *k = &f->time.shift.cpus[0].v[n];

			/* an unknown bound is UINT64_MAX */
			sql_insert(in, f->machine, sql_ts(filetime_apply(&f->time, 0, k->time)),
				   sql_ts(k->time), k->offset, (int64_t)filetime_bound(&f->time, k->time),
				   sql_or_null(f->time.shift.method), sql_or_null(f->time.shift.class),
				   (int64_t)i);
		}
	}
}

/* Rows of tables.sql's tables. machine_id is the file's place, 0 is the first. */
static const struct sql_filled {
	const char *name, *kinds; /* kinds: a letter for each column, see sql_insert() */
	void (*fill)(struct sql *s, struct sql_insert *in);
	/* in place of it: when a statement first uses the table all of the files are read for it */
	int (*join)(struct sql_insert *in, struct reading *r);
	void (*end)(struct sql_insert *in);
} sql_filled[] = {
	{ "recordings", "nttntNNNtttttNNNN", .fill = sql_fill_recordings },
	{ "cpus", "tnn", .fill = sql_fill_cpus },
	{ "vcpus", "ttnnn", .fill = sql_fill_vcpus },
	{ "_option", "nnnt", .fill = sql_fill_options },
	{ "clocks", "tnnnNttn", .fill = sql_fill_clocks },
	{ "threads", "ntntn", .join = sql_threads_join, .end = sql_threads_end },
	{ "spans", "nntnNtttnnNnNN", .join = sql_spans_join },
	{ "latency", "tnntnNtNtNNNNNNnNN", .join = sql_latency_join, .end = sql_latency_end },
	{ "findings", "NNttNNtnnnnNN", .join = sql_findings_join, .end = sql_findings_end },
};

static void sql_insert_open(struct sql *s, const struct sql_filled *t, struct sql_insert *in)
{
	struct buf text = { 0 };

	*in = (struct sql_insert){ .sql = s, .kinds = t->kinds };
	buf_printf(&text, "INSERT INTO main.%s VALUES (?", t->name);
	for (size_t i = 1; t->kinds[i]; i++)
		buf_addstr(&text, ", ?");
	buf_addstr(&text, ")");
	if (!buf_str(&text) || sqlite3_prepare_v2(s->db, buf_str(&text), -1, &in->stmt, NULL) != SQLITE_OK)
		in->ret = -ENOMEM;
	buf_release(&text);
}

int sql_filled_add(struct sql *s)
{
	int ret = sqlite3_exec(s->db, sql_tables_text, NULL, NULL, NULL);

	s->filling = true;
	for (size_t i = 0; i < ARRAY_SIZE(sql_filled) && ret == SQLITE_OK; i++) {
		struct sql_insert in;

		if (!sql_filled[i].fill)
			continue;
		sql_insert_open(s, &sql_filled[i], &in);
		if (!in.ret)
			sql_filled[i].fill(s, &in);
		sqlite3_finalize(in.stmt);
		ret = in.ret ? SQLITE_NOMEM : SQLITE_OK;
	}
	s->filling = false;
	return ret;
}

void sql_filled_use(struct sql *s, const char *table)
{
	for (size_t i = 0; i < ARRAY_SIZE(sql_filled); i++)
		if (sql_filled[i].join && !strcmp(sql_filled[i].name, table))
			s->used |= 1u << i;
}

/* Ends the reading when the statement is interrupted. */
static int sql_filled_before(void *ctx, double part)
{
	const struct sql *s = ctx;

	return sql_stopped(s) ? -EINTR : s->progress ? s->progress(s->progress_ctx, part) : 0;
}

int sql_filled_read(struct sql *s, struct sql_cursor *const *cursors, size_t n)
{
	struct sql_insert in[ARRAY_SIZE(sql_filled)] = { 0 };
	unsigned int wanted = s->used & ~s->filled;
	struct reading r;
	int ret;

	s->used = 0;
	if (!wanted && !n)
		return 0;
	s->filling = true;
	ret = reading_open(&r, s->in, NULL, &s->once);
	/* all rows at once take less time */
	if (!ret && sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		ret = -ENOMEM;
	reading_add(&r, (struct pass_part){ .ctx = s, .before = sql_filled_before });
	for (size_t i = 0; i < ARRAY_SIZE(sql_filled) && !ret; i++)
		if (wanted & 1u << i) {
			sql_insert_open(s, &sql_filled[i], &in[i]);
			ret = in[i].ret ?: sql_filled[i].join(&in[i], &r);
		}
	for (size_t i = 0; i < n && !ret; i++)
		ret = cursors[i]->table->join(cursors[i], &r);
	ret = ret ?: reading_run(&r);
	for (size_t i = 0; i < n && !ret; i++)
		ret = cursors[i]->table->last ? cursors[i]->table->last(cursors[i]) : 0;
	for (size_t i = 0; i < ARRAY_SIZE(sql_filled); i++) {
		in[i].ret = ret ?: in[i].ret;
		if (in[i].job)
			sql_filled[i].end(&in[i]);
		sqlite3_finalize(in[i].stmt);
		ret = in[i].ret;
	}
	if (sqlite3_exec(s->db, ret ? "ROLLBACK" : "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		ret = ret ?: -ENOMEM;
	merge_damage_join(&s->damaged, reading_damaged(&r));
	reading_close(&r);
	s->filling = false;
	s->filled |= ret ? 0 : wanted;
	return ret;
}
