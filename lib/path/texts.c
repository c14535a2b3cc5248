// SPDX-License-Identifier: LGPL-2.1-or-later
/* The events that prove a chain of causes, as text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pass.h"
#include "path/read.h"
#include "read/print.h"

struct path_texting {
	struct timeline *t;
	struct print *print;
	struct path_text *v;
	size_t n, done;
	uint64_t nr; /* of the run's first record */
};

/* The name of a task that the record says; of which field, and whose. */
static const struct path_named {
	const char *pid, *comm;
} path_named[] = { { "prev_pid", "prev_comm" }, { "next_pid", "next_comm" }, { "pid", "comm" } };

static void path_text_name(struct path_text *p, size_t at, const struct known_event *e,
			   const struct merge_record *m, const struct path_named *named)
{
	struct field_load pid = field_load(tep_find_field(e->event, named->pid));
	struct field_load comm = field_load(tep_find_field(e->event, named->comm));
	const uint8_t *data;
	uint64_t v;
	size_t n;

	if (pid.kind != FIELD_NUMBER || !field_load_number(&pid, m->data, m->len, &v) ||
	    field_load_bytes(&comm, m->data, m->len, &data, &n) != 1)
		return;
	p->pids[at] = (int32_t)v;
	snprintf(p->comms[at], sizeof(p->comms[at]), "%.*s", (int)strnlen((const char *)data, n), data);
}

static void path_text_names(struct path_text *p, const struct known_event *e, const struct merge_record *m)
{
	p->pids[0] = p->pids[1] = -1;
	if (!e || strcmp(e->event->system, "sched") != 0)
		return;
	for (size_t i = 0; i < 2; i++)
		path_text_name(p, i, e, m, &path_named[i]);
	if (p->pids[0] < 0)
		path_text_name(p, 0, e, m, &path_named[2]);
}

static int path_text_fill(struct path_texting *x, struct path_text *p, const struct merge_record *m)
{
	struct buf ready = { 0 }, text = { 0 };
	struct print_record rec = { 0 };
	int ret = m->data ? print_begin(x->print, x->t, m, &rec, &ready) : 0;

	if (!ret && m->data) {
		path_text_names(p, rec.event, m);
		print_fields(x->print, &rec, &ready, 0, &text);
		p->name = strdup(rec.event ? rec.event->event->name : "");
		p->text = strdup(buf_str(&text) ? buf_str(&text) : "");
		ret = p->name && p->text ? 0 : -ENOMEM;
	}
	buf_release(&text);
	buf_release(&ready);
	return ret;
}

static int path_texts_run(void *ctx, struct pass_run *run)
{
	struct path_texting *x = ctx;
	const struct merge_run *records = run->records;
	int ret = 0;

	while (!ret && x->done < x->n && x->v[x->done].nr - x->nr < records->n) {
		ret = path_text_fill(x, &x->v[x->done], &records->v[x->v[x->done].nr - x->nr]);
		x->done++;
	}
	x->nr += records->n;
	return ret ? ret : x->done == x->n;
}

int path_texts(const struct inputs *in, struct timeline *t, struct path_text *v, size_t n)
{
	struct path_texting x = { .t = t, .v = v, .n = n };
	const struct pass_part part = { .ctx = &x, .after = path_texts_run };
	int ret = print_open(&x.print, in, false);

	if (!ret)
		ret = pass_read(t, NULL, &part, 1);
	print_close(x.print);
	return ret < 0 ? ret : 0;
}

void path_texts_release(struct path_text *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].text);
	}
	free(v);
}
