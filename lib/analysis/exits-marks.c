// SPDX-License-Identifier: LGPL-2.1-or-later
/* Of a run's records those that exits are told by: entries, exits, losses, and what an exit was for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/exits-priv.h"
#include "decode/esr.h"
#include "util/array.h"

/* kvm_mmio's type: include/trace/events/kvm.h */
enum { MMIO_UNSATISFIED, MMIO_READ, MMIO_WRITE };

/*
 * Events of the system kvm, with their fields: what is asked for, and whether it is written
 * (kvm_mmio: the type). kvm_sys_access, which comes with the same exits as kvm_handle_sys_reg, has the
 * register in five fields.
 */
static const struct exits_detail_row {
	const char *name, *key, *write;
	enum exits_mark_kind kind;
	uint32_t info;
} exits_detail_rows[] = {
	{ "kvm_mmio", "gpa", "type", MARK_MMIO_READ, 0 },
	{ "kvm_pio", "port", "rw", MARK_PORT, 0 },
	{ "kvm_handle_sys_reg", "hsr", NULL, MARK_SYSREG, EXITS_ESR },
	{ "kvm_sys_access", "Op0", "is_write", MARK_SYSREG, EXITS_ENCODED },
	{ "kvm_msr", "ecx", "write", MARK_SYSREG, EXITS_MSR },
	{ "kvm_hvc_arm64", "r0", NULL, MARK_HYPERCALL, EXITS_SMCCC },
	{ "kvm_hypercall", "nr", NULL, MARK_HYPERCALL, 0 },
};

struct exits_detail {
	const struct exits_detail_row *row;
	struct field_load pid, key, write, rest[4]; /* rest: Op1, CRn, CRm, Op2 */
};

struct exits_details {
	struct exits_detail_input {
		struct exits_detail *v; /* by id; row NULL: none */
		size_t n;		/* 0: there are none */
	} * inputs, *streams;		/* a stream's is its input's */
	size_t n;			/* inputs */
};

/* ---- opening ------------------------------------------------------------------------------------ */

static struct field_load exits_field(struct tep_event *e, const char *name)
{
	struct field_load none = { 0 }, l = name ? field_load(tep_find_field(e, name)) : none;

	return l.kind == FIELD_NUMBER ? l : none;
}

static void exits_detail_open(struct exits_detail *d, const struct known_event *k)
{
	static const char *const rest[] = { "Op1", "CRn", "CRm", "Op2" };

	if (strcmp(k->event->system, "kvm"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(exits_detail_rows); i++)
		if (!strcmp(exits_detail_rows[i].name, k->event->name))
			d->row = &exits_detail_rows[i];
	if (!d->row)
		return;
	d->pid = k->pid;
	d->key = exits_field(k->event, d->row->key);
	d->write = exits_field(k->event, d->row->write);
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
		d->rest[i] = exits_field(k->event, rest[i]);
	if (d->key.kind != FIELD_NUMBER)
		d->row = NULL;
}

static int exits_input_open(struct exits_detail_input *to, const struct input *in)
{
	bool any = false;

	to->v = calloc(in->n_known + 1, sizeof(*to->v));
	if (!to->v)
		return -ENOMEM;
	for (unsigned int id = 0; id < in->n_known; id++) {
		const struct known_event *k = input_event(in, id);

		if (k)
			exits_detail_open(&to->v[id], k);
		any |= to->v[id].row != NULL;
	}
	to->n = any ? in->n_known : 0;
	return 0;
}

int exits_details_open(struct exits_details **out, const struct inputs *in, const struct timeline *t)
{
	size_t n_streams = timeline_streams(t);
	struct exits_details *d = calloc(1, sizeof(*d));

	*out = d;
	if (!d)
		return -ENOMEM;
	d->inputs = calloc(in->n + 1, sizeof(*d->inputs));
	d->streams = calloc(n_streams + 1, sizeof(*d->streams));
	if (!d->inputs || !d->streams)
		return -ENOMEM;
	for (; d->n < in->n; d->n++)
		if (exits_input_open(&d->inputs[d->n], &in->v[d->n]))
			return -ENOMEM;
	for (size_t i = 0; i < n_streams; i++)
		d->streams[i] = d->inputs[timeline_stream_at(t, i)->input];
	return 0;
}

void exits_details_close(struct exits_details *d)
{
	if (!d)
		return;
	for (size_t i = 0; d->inputs && i < d->n; i++)
		free(d->inputs[i].v);
	free(d->inputs);
	free(d->streams);
	free(d);
}

/* ---- records ---------------------------------------------------------------------------------------- */

static uint64_t exits_value(const struct field_load *l, const struct merge_record *m)
{
	uint64_t v = 0;

	return l->kind == FIELD_NUMBER && field_load_number(l, m->data, m->len, &v) ? v : 0;
}

/* As in an ESR's ISS: Op0 [21:20], Op2 [19:17], Op1 [16:14], CRn [13:10], CRm [4:1]. */
static uint64_t exits_encoded(const struct exits_detail *d, const struct merge_record *m)
{
	uint64_t op0 = exits_value(&d->key, m), v[4];

	for (size_t i = 0; i < 4; i++)
		v[i] = exits_value(&d->rest[i], m);
	return (op0 & 3) << 20 | (v[3] & 7) << 17 | (v[0] & 7) << 14 | (v[1] & 15) << 10 | (v[2] & 15) << 1;
}

static void exits_detail_mark(const struct exits_detail *d, const struct merge_record *m,
			      struct exits_mark *to)
{
	uint64_t key = exits_value(&d->key, m), write = exits_value(&d->write, m);

	*to = (struct exits_mark){ .ts = m->ts,
				   .key = key,
				   .info = d->row->info,
				   .stream = m->stream,
				   .pid = timeline_pid(&d->pid, m),
				   .kind = (uint8_t)d->row->kind };
	if (d->row->kind == MARK_MMIO_READ) {
		if (write == MMIO_WRITE)
			to->kind = MARK_MMIO_WRITE;
		else if (write != MMIO_READ)
			to->kind = MARK_NONE;
		write = write == MMIO_WRITE;
	} else if (d->row->info == EXITS_ESR) {
		to->key = key & 0x3ffc1e; /* without the register that it goes to or comes from */
		write = !(key & 1);
		if (esr_ec(key) != 0x18) /* SYS64; others encode it otherwise */
			to->kind = MARK_NONE;
	} else if (d->row->info == EXITS_ENCODED) {
		to->key = exits_encoded(d, m);
	}
	/* one register is one row, whichever of the two events says it */
	to->info = d->row->info == EXITS_ENCODED ? EXITS_ESR : d->row->info;
	to->info |= write ? EXITS_WRITE : 0;
}

static bool exits_step_mark(const struct step *s, const struct merge_record *m, struct exits_mark *to)
{
	*to = (struct exits_mark){ .ts = s->ts, .stream = m->stream, .pid = s->pid };
	switch (s->kind) {
	case STEP_GAP:
		to->kind = MARK_GAP;
		return true;
	case STEP_LOST:
		to->kind = MARK_LOST;
		to->key = s->b;
		return true;
	case STEP_KVM_ENTRY:
		to->kind = MARK_ENTRY;
		return true;
	case STEP_KVM_EXIT:
		to->kind = MARK_EXIT;
		to->key = s->a;
		if (s->b != STEP_UNKNOWN) {
			to->info = EXITS_ARM64;
			if (s->a == KVM_EXIT_ARM_TRAP)
				to->info = EXITS_CLASS + (uint32_t)(s->b & 0x3f);
		}
		return true;
	default:
		return false;
	}
}

int exits_marks_fill(const struct exits_details *d, const struct pass_run *run, struct exits_marks *to)
{
	const struct merge_run *r = run->records;
	size_t s = 0;

	to->n = 0;
	if (array_room(&to->v, &to->room, run->n_steps + r->n, sizeof(*to->v)))
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++) {
		const struct merge_record *m = &r->v[i];
		const struct exits_detail_input *in = &d->streams[m->stream];
		unsigned int id = timeline_id(m);

		for (; s < run->n_steps && run->steps[s].at == i; s++)
			to->n += exits_step_mark(&run->steps[s], m, &to->v[to->n]);
		if (id >= in->n || !in->v[id].row)
			continue;
		exits_detail_mark(&in->v[id], m, &to->v[to->n]);
		to->n += to->v[to->n].kind != MARK_NONE;
	}
	return 0;
}
