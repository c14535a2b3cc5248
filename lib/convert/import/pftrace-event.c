// SPDX-License-Identifier: LGPL-2.1-or-later
/* An event of a Perfetto trace becomes a record of its buffer. */
#include "convert/import/pftrace-priv.h"

/* Of record and page: a text beyond it is cut. */
#define RECORD_MAX 4000

static void value_of(struct pft_value *v, const struct wire_field *f)
{
	v->is_text = f->is_bytes;
	v->v = f->v;
	v->text = f->data;
	v->len = f->is_bytes ? f->len : 0;
}

static int generic_value(struct cursor c, struct pft_value *v)
{
	struct wire_field f;
	bool there = false;
	int ret;

	while ((ret = wire_next(&c, &f)) == 1) {
		if (f.number == GENERIC_FIELD_NAME && f.is_bytes) {
			v->name = (const char *)f.data;
			v->name_len = f.len;
		} else if (f.number == GENERIC_STR && f.is_bytes) {
			value_of(v, &f);
			there = true;
		} else if ((f.number == GENERIC_INT || f.number == GENERIC_UINT) && !f.is_bytes) {
			value_of(v, &f);
			v->is_signed = f.number == GENERIC_INT;
			there = true;
		}
	}
	return ret ?: v->name && there;
}

/* Of a GenericFtraceEvent, with its name. */
static int generic_values(const struct pft_item *item, struct pft_value *v, size_t *n, const char **name,
			  size_t *len)
{
	struct cursor c = cursor_at(item->data, item->len);
	struct wire_field f;
	int ret;

	while ((ret = wire_next(&c, &f)) == 1) {
		if (f.number == GENERIC_NAME && f.is_bytes) {
			*name = (const char *)f.data;
			*len = f.len;
		} else if (f.number == GENERIC_FIELD && f.is_bytes && *n < PFT_VALUES) {
			v[*n] = (struct pft_value){ 0 };
			ret = generic_value(wire_message(&f), &v[*n]);
			if (ret < 0)
				return ret;
			*n += (size_t)ret;
		}
	}
	return ret;
}

struct pft_record {
	uint8_t data[RECORD_MAX + 8];
	size_t len;
	const struct pft_value *by_column[PFT_VALUES];
};

/* A text, NUL behind it, at the record's end. Returns its length with the NUL. */
static unsigned int record_append(struct pft *p, struct pft_record *r, const struct pft_value *v)
{
	size_t room = RECORD_MAX - r->len, len = v->len;

	p->result->cut += len + 1 > room;
	len = len + 1 > room ? room - 1 : len;
	memcpy(r->data + r->len, v->text, len);
	r->data[r->len + len] = 0;
	r->len += len + 1;
	return (unsigned int)len + 1;
}

static void record_set(struct pft *p, struct pft_record *r, const struct pft_source *s,
		       const struct pft_column *c, const struct pft_value *v)
{
	uint8_t *at = r->data + c->offset;
	/* a number of more bits is an address indeed */
	uint64_t number = c->is_symbol && v->v && !(v->v >> 32) ? s->symbols | v->v : v->v;
	uint32_t loc;

	switch (c->how) {
	case PFT_NUMBER:
		memcpy(at, &number, c->size);
		break;
	case PFT_CHARS:
		p->result->cut += v->len >= c->size;
		memcpy(at, v->text, v->len < c->size ? v->len : c->size - 1);
		break;
	case PFT_TEXT:
		loc = (uint32_t)r->len;
		loc |= r->len < RECORD_MAX ? record_append(p, r, v) << 16 : 0;
		memcpy(at, &loc, sizeof(loc));
		break;
	case PFT_REST:
		if (r->len < RECORD_MAX)
			record_append(p, r, v);
	}
}

static int event_write(struct pft *p, struct pft_machine *m, struct pft_source *s, unsigned int cpu,
		       const struct pft_item *item, const struct pft_kind *k, const struct pft_value *v,
		       size_t n, bool *lost)
{
	uint16_t type = (uint16_t)k->id;
	struct pft_record r;
	int ret = 0;
	struct pft_cpu *c = pft_cpu(m, s, k->is_hyp, cpu, &ret);

	if (!c)
		return ret;
	if (k->is_switch)
		m->sched_buffer = c->buffer->number;
	memset(r.data, 0, k->size);
	memset(r.by_column, 0, sizeof(r.by_column));
	r.len = k->size;
	memcpy(r.data, &type, sizeof(type));
	r.data[2] = (uint8_t)item->flags;
	memcpy(r.data + HYP_PID_OFFSET, &item->pid, sizeof(item->pid));
	for (size_t i = 0; i < n; i++) {
		const struct pft_column *column = pft_column(k, &v[i]);

		if (!column || r.by_column[column - k->v])
			continue;
		r.by_column[column - k->v] = &v[i];
		record_set(p, &r, s, column, &v[i]);
	}
	for (size_t i = 0; i < k->n_tasks && !ret; i++) {
		const struct pft_value *comm = r.by_column[k->tasks[i].comm],
				       *pid = r.by_column[k->tasks[i].pid];

		if (comm && pid)
			ret = pft_task_name(m, pid->v, comm->text, comm->len, false);
	}
	if (!ret) {
		ret = lost[k->is_hyp] ? page_write_lost(&c->w, 0) : 0;
		lost[k->is_hyp] = false;
		p->result->late += item->ts < c->last;
		c->last = item->ts;
		ret = ret ?: page_write(&c->w, item->ts, r.data, r.len);
	}
	p->result->events++;
	m->events++;
	p->result->hyp += k->is_hyp;
	return ret;
}

/* An event that is not in the file, by Perfetto's name or number. */
static void leave_out(struct pft *p, const char *name, size_t len, uint32_t number)
{
	char text[64];
	size_t i = 0;

	p->result->left_out++;
	if (name)
		snprintf(text, sizeof(text), "%.*s", (int)(len < 48 ? len : 48), name);
	else
		snprintf(text, sizeof(text), number ? "number %u" : "none", number);
	while (i < p->n_left_out && strcmp(p->left_out[i].name, text))
		i++;
	if (i == ARRAY_SIZE(p->left_out))
		return;
	strcpy(p->left_out[i].name, text);
	p->left_out[i].n++;
	p->n_left_out += i == p->n_left_out;
}

int pft_event(struct pft *p, struct pft_machine *m, struct pft_source *s, unsigned int cpu,
	      const struct pft_item *item, const struct pft_value *v, size_t n, bool lost[2])
{
	const struct perfetto_event *row = pft_row_of(s, item->number);
	struct cursor c = cursor_at(item->data, item->len);
	struct pft_value values[PFT_VALUES];
	struct wire_field f;
	const char *name = row ? row->name : NULL;
	size_t len = row ? strlen(name) : 0;
	struct pft_kind *k = NULL;
	int ret = 0;

	if (!v) {
		v = values;
		if (item->number == EVENT_GENERIC)
			ret = generic_values(item, values, &n, &name, &len);
		while (item->number != EVENT_GENERIC && row && (ret = wire_next(&c, &f)) == 1)
			if (n < PFT_VALUES) {
				values[n] = (struct pft_value){ .number = f.number };
				value_of(&values[n++], &f);
			}
		if (ret < 0)
			return ret;
	}
	if (item->number == EVENT_GENERIC && name)
		row = perfetto_event_named(name, len);
	if (name)
		k = pft_kind(p, m, row, name, len, v, n, &ret);
	if (!k && !ret)
		leave_out(p, name, len, item->number);
	return k ? event_write(p, m, s, cpu, item, k, v, n, lost) : ret;
}
