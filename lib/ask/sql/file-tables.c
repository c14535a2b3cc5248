// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ordinary tables of the files' metadata: machines, CPUs, vCPUs, options, offset points. */
#include <stdarg.h>

#include "ask/sql/sql-priv.h"

/* machine_id is the file's place, 0 is the first; perfetto.sql has the release. */
static const char sql_file_tables[] =
	"CREATE TABLE machines(id INTEGER PRIMARY KEY, name TEXT, path TEXT, guest INTEGER, clock TEXT,"
	" utc_max_error INTEGER, utc_est_error INTEGER, tai_offset INTEGER, release TEXT);"
	"CREATE TABLE cpus(machine TEXT, cpu INTEGER, machine_id INTEGER);"
	"CREATE TABLE vcpus(machine TEXT, guest TEXT, vcpu INTEGER, tid INTEGER, machine_id INTEGER);"
	"CREATE TABLE clocks(machine TEXT, ts INTEGER, guest_ts INTEGER, \"offset\" INTEGER, bound INTEGER,"
	" method TEXT, class TEXT, machine_id INTEGER);"
	"CREATE TABLE _option(machine_id INTEGER, id INTEGER, number INTEGER, text TEXT);";

/* "INSERT ... VALUES (?, ...)", row by row. */
struct sql_insert {
	sqlite3_stmt *stmt;
	int ret;
};

/* A row: for each letter of `kinds` a number as int64_t (n; N: NULL if negative), or a text that may be NULL
 * (t).
 */
static void sql_insert(struct sql_insert *in, const char *kinds, ...)
{
	va_list ap;

	va_start(ap, kinds);
	for (int i = 1; kinds[i - 1] && in->ret == SQLITE_OK; i++) {
		if (kinds[i - 1] == 't') {
			in->ret = sqlite3_bind_text(in->stmt, i, va_arg(ap, const char *), -1,
						    SQLITE_TRANSIENT);
		} else {
			int64_t v = va_arg(ap, int64_t);

			in->ret = kinds[i - 1] == 'N' && v < 0 ? sqlite3_bind_null(in->stmt, i)
							       : sqlite3_bind_int64(in->stmt, i, v);
		}
	}
	va_end(ap);
	if (in->ret == SQLITE_OK)
		in->ret = sqlite3_step(in->stmt) == SQLITE_DONE ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_reset(in->stmt);
}

static const char *sql_or_null(const char *text)
{
	return *text ? text : NULL;
}

static void sql_fill_machines(const struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->in->n; i++) {
		const struct input *f = &s->in->v[i];
		const struct wall *w = &f->time.wall;
		const struct wall_sample *wall = w->n ? &w->v[w->n - 1] : NULL;

		/* by the last sample; an unknown error is UINT64_MAX, as all are of a file that says nothing
		 */
		sql_insert(in, "nttntNNN", (int64_t)i, f->machine, f->path, (int64_t)f->guest,
			   sql_or_null(f->time.clock), wall ? (int64_t)wall->max_error : -1,
			   wall ? (int64_t)wall->est_error : -1, wall && wall->tai ? (int64_t)wall->tai : -1);
	}
}

static void sql_fill_cpus(const struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->n_streams; i++) {
		size_t first = 0;

		while (s->streams[first].input != s->streams[i].input ||
		       s->streams[first].cpu != s->streams[i].cpu)
			first++;
		if (first == i) /* other buffers have the same CPUs */
			sql_insert(in, "tnn", sql_input(s, i)->machine, (int64_t)s->streams[i].cpu,
				   (int64_t)s->streams[i].input);
	}
}

static void sql_fill_vcpus(const struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->in->n; i++)
		for (size_t g = 0; g < s->in->v[i].n_guests; g++) {
			const struct offset_guest *guest = &s->in->v[i].guests[g];

			for (uint32_t v = 0; v < guest->n; v++)
				sql_insert(in, "ttnnn", s->in->v[i].machine, guest->name,
					   (int64_t)guest->vcpus[v].cpu, (int64_t)guest->vcpus[v].pid,
					   (int64_t)i);
		}
}

/* First lines of those that perfetto.sql takes apart, and all of a CPUSTAT; number: the process of a
 * PROCMAPS, in hexadecimal there. */
static void sql_fill_options(const struct sql *s, struct sql_insert *in)
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
			sql_insert(in, "nnnt", (int64_t)i, (int64_t)info->options[o].id,
				   (int64_t)(strtoul(text, NULL, 16) & INT32_MAX), text);
		}
	}
}

/* Of a guest's first CPU: all have the same points where hyptrace wrote them. */
static void sql_fill_clocks(const struct sql *s, struct sql_insert *in)
{
	for (size_t i = 0; i < s->in->n; i++) {
		const struct input *f = &s->in->v[i];

		for (uint32_t n = 0; f->time.shift.n_cpus && n < f->time.shift.cpus[0].n; n++) {
			const struct offset_point *k = &f->time.shift.cpus[0].v[n];

			/* an unknown bound is UINT64_MAX */
			sql_insert(in, "tnnnNttn", f->machine, sql_ts(filetime_apply(&f->time, 0, k->time)),
				   sql_ts(k->time), k->offset, (int64_t)filetime_bound(&f->time, k->time),
				   sql_or_null(f->time.shift.method), sql_or_null(f->time.shift.class),
				   (int64_t)i);
		}
	}
}

int sql_file_tables_add(struct sql *s)
{
	static const struct {
		const char *insert;
		void (*fill)(const struct sql *s, struct sql_insert *in);
	} tables[] = { { "INSERT INTO machines VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", sql_fill_machines },
		       { "INSERT INTO cpus VALUES (?, ?, ?)", sql_fill_cpus },
		       { "INSERT INTO vcpus VALUES (?, ?, ?, ?, ?)", sql_fill_vcpus },
		       { "INSERT INTO _option VALUES (?, ?, ?, ?)", sql_fill_options },
		       { "INSERT INTO clocks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", sql_fill_clocks } };
	int ret = sqlite3_exec(s->db, sql_file_tables, NULL, NULL, NULL);

	if (ret == SQLITE_OK) /* all rows at once take less time */
		ret = sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(tables) && ret == SQLITE_OK; i++) {
		struct sql_insert in = { 0 };

		in.ret = sqlite3_prepare_v2(s->db, tables[i].insert, -1, &in.stmt, NULL);
		if (in.ret == SQLITE_OK)
			tables[i].fill(s, &in);
		sqlite3_finalize(in.stmt);
		ret = in.ret;
	}
	return ret == SQLITE_OK ? sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) : ret;
}
