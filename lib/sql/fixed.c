// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the files say without their records, in ordinary tables: machines, CPUs, tasks, vCPUs, clocks; and
 * views. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sql/sql-priv.h"

/* ids: machine_id is the file's place, 0 is the first; utid counts tasks of all machines. */
static const char sql_fixed_tables[] =
	"CREATE TABLE machines(id INTEGER PRIMARY KEY, name TEXT, path TEXT, guest INTEGER, clock TEXT);"
	"CREATE TABLE cpus(machine TEXT, cpu INTEGER, machine_id INTEGER);"
	"CREATE TABLE threads(id INTEGER PRIMARY KEY, machine TEXT, tid INTEGER, name TEXT, machine_id "
	"INTEGER);"
	"CREATE TABLE vcpus(machine TEXT, guest TEXT, vcpu INTEGER, tid INTEGER, machine_id INTEGER);"
	"CREATE TABLE clocks(machine TEXT, ts INTEGER, guest_ts INTEGER, \"offset\" INTEGER, bound INTEGER,"
	" method TEXT, class TEXT, machine_id INTEGER);"
	/* Perfetto's names */
	"CREATE VIEW machine AS SELECT id, name FROM machines;"
	"CREATE VIEW cpu AS SELECT row_number() OVER (ORDER BY machine_id, cpu) - 1 AS id, cpu, machine_id "
	"FROM cpus;"
	"CREATE VIEW thread AS SELECT id AS utid, id, tid, name, NULL AS upid, machine_id FROM threads;"
	"CREATE TABLE process(upid INTEGER PRIMARY KEY, id INTEGER, pid INTEGER, name TEXT, machine_id "
	"INTEGER);"
	"CREATE VIEW ftrace_event AS SELECT id, ts, name, cpu, tid, arg_set_id FROM events;";

/* "INSERT ... VALUES (?, ...)", row by row. */
struct sql_insert {
	sqlite3_stmt *stmt;
	int i, ret;
};

static void sql_insert_begin(struct sql_insert *in, sqlite3 *db, const char *text)
{
	*in = (struct sql_insert){ .ret = SQLITE_OK };
	in->ret = sqlite3_prepare_v2(db, text, -1, &in->stmt, NULL);
}

static void sql_insert_number(struct sql_insert *in, int64_t v)
{
	if (in->ret == SQLITE_OK)
		in->ret = sqlite3_bind_int64(in->stmt, ++in->i, v);
}

static void sql_insert_text(struct sql_insert *in, const char *v)
{
	if (in->ret == SQLITE_OK)
		in->ret = sqlite3_bind_text(in->stmt, ++in->i, v, -1, SQLITE_TRANSIENT);
}

static void sql_insert_row(struct sql_insert *in)
{
	if (in->ret == SQLITE_OK)
		in->ret = sqlite3_step(in->stmt) == SQLITE_DONE ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_reset(in->stmt);
	sqlite3_clear_bindings(in->stmt);
	in->i = 0;
}

static int sql_insert_end(struct sql_insert *in)
{
	sqlite3_finalize(in->stmt);
	return in->ret;
}

/* ---- machines and CPUs ------------------------------------------------------------------------------ */

static int sql_fixed_machines(struct sql *s)
{
	struct sql_insert in;

	sql_insert_begin(&in, s->db, "INSERT INTO machines VALUES (?, ?, ?, ?, ?)");
	for (size_t i = 0; i < s->in->n; i++) {
		const struct input *f = &s->in->v[i];

		sql_insert_number(&in, (int64_t)i);
		sql_insert_text(&in, f->machine);
		sql_insert_text(&in, f->path);
		sql_insert_number(&in, f->guest);
		sql_insert_text(&in, *f->time.clock ? f->time.clock : NULL);
		sql_insert_row(&in);
	}
	return sql_insert_end(&in);
}

static bool sql_fixed_cpu_new(const struct sql *s, size_t stream)
{
	for (size_t i = 0; i < stream; i++)
		if (s->streams[i].input == s->streams[stream].input &&
		    s->streams[i].cpu == s->streams[stream].cpu)
			return false;
	return true;
}

static int sql_fixed_cpus(struct sql *s)
{
	struct sql_insert in;

	sql_insert_begin(&in, s->db, "INSERT INTO cpus VALUES (?, ?, ?)");
	for (size_t i = 0; i < s->n_streams; i++) {
		if (!sql_fixed_cpu_new(s, i))
			continue;
		sql_insert_text(&in, sql_input(s, i)->machine);
		sql_insert_number(&in, s->streams[i].cpu);
		sql_insert_number(&in, (int64_t)s->streams[i].input);
		sql_insert_row(&in);
	}
	return sql_insert_end(&in);
}

/* ---- tasks ------------------------------------------------------------------------------------------- */

/* "87 CPU 0/KVM", by line. */
static void sql_fixed_tasks(struct sql *s, size_t input, struct sql_insert *in)
{
	const struct dat_text *text = &reader_info(s->in->v[input].reader)->cmdlines;
	struct cursor c = cursor_at(text->data, text->len);
	const char *line;
	char name[256];
	size_t len;

	while (cursor_line(&c, &line, &len)) {
		struct cursor at = cursor_at(line, len);
		int64_t pid = 0;
		bool number = false;

		for (; cursor_peek(&at) >= '0' && cursor_peek(&at) <= '9' && pid < INT32_MAX; number = true)
			pid = pid * 10 + cursor_u8(&at) - '0';
		if (!number || !cursor_accept(&at, ' '))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)cursor_left(&at), (const char *)at.p);
		sql_insert_text(in, s->in->v[input].machine);
		sql_insert_number(in, pid);
		sql_insert_text(in, name);
		sql_insert_number(in, (int64_t)input);
		sql_insert_row(in);
	}
}

static int sql_fixed_threads(struct sql *s)
{
	struct sql_insert in;

	sql_insert_begin(&in, s->db,
			 "INSERT INTO threads(machine, tid, name, machine_id) VALUES (?, ?, ?, ?)");
	for (size_t i = 0; i < s->in->n; i++)
		sql_fixed_tasks(s, i, &in);
	return sql_insert_end(&in);
}

static int sql_fixed_vcpus(struct sql *s)
{
	struct sql_insert in;

	sql_insert_begin(&in, s->db, "INSERT INTO vcpus VALUES (?, ?, ?, ?, ?)");
	for (size_t i = 0; i < s->in->n; i++)
		for (size_t g = 0; g < s->in->v[i].n_guests; g++) {
			const struct offset_guest *guest = &s->in->v[i].guests[g];

			for (uint32_t v = 0; v < guest->n; v++) {
				sql_insert_text(&in, s->in->v[i].machine);
				sql_insert_text(&in, guest->name);
				sql_insert_number(&in, guest->vcpus[v].cpu);
				sql_insert_number(&in, guest->vcpus[v].pid);
				sql_insert_number(&in, (int64_t)i);
				sql_insert_row(&in);
			}
		}
	return sql_insert_end(&in);
}

/* ---- clocks ------------------------------------------------------------------------------------------ */

static void sql_fixed_knot(struct sql_insert *in, const struct input *f, size_t input,
			   const struct offset_knot *k)
{
	uint64_t bound = filetime_bound(&f->time, k->time);

	sql_insert_text(in, f->machine);
	sql_insert_number(in, sql_ts(filetime_apply(&f->time, 0, k->time)));
	sql_insert_number(in, sql_ts(k->time));
	sql_insert_number(in, k->offset);
	if (bound > INT64_MAX)
		in->i++; /* NULL */
	else
		sql_insert_number(in, (int64_t)bound);
	sql_insert_text(in, *f->time.shift.method ? f->time.shift.method : NULL);
	sql_insert_text(in, *f->time.shift.class ? f->time.shift.class : NULL);
	sql_insert_number(in, (int64_t)input);
	sql_insert_row(in);
}

/* Of a guest's first CPU: all have the same knots where hyptrace wrote them. */
static int sql_fixed_clocks(struct sql *s)
{
	struct sql_insert in;

	sql_insert_begin(&in, s->db, "INSERT INTO clocks VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
	for (size_t i = 0; i < s->in->n; i++) {
		const struct input *f = &s->in->v[i];

		for (uint32_t k = 0; f->time.shift.n_cpus && k < f->time.shift.cpus[0].n; k++)
			sql_fixed_knot(&in, f, i, &f->time.shift.cpus[0].v[k]);
	}
	return sql_insert_end(&in);
}

int sql_fixed_add(struct sql *s)
{
	static int (*const fill[])(struct sql *) = { sql_fixed_machines, sql_fixed_cpus, sql_fixed_threads,
						     sql_fixed_vcpus, sql_fixed_clocks };
	int ret = sqlite3_exec(s->db, sql_fixed_tables, NULL, NULL, NULL);

	if (ret == SQLITE_OK) /* all rows at once take less time */
		ret = sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(fill) && ret == SQLITE_OK; i++)
		ret = fill[i](s);
	return ret == SQLITE_OK ? sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) : ret;
}
