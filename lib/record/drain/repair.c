// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Repairs the times of a spool's hypervisor records, plain nVHE's, in three passes over each CPU's
 * pages: finding CNTVOFFs, sharing them between CPUs, and writing.
 */
#include "record/drain/spool-to-dat.h"
#include "record/hyp/nvhe.h"

#define MARK "hyp_early" /* a text */

/* Smaller steps back lie within the bounds of CNTVOFF, which narrow as records come. */
#define STEP_BACK_NS 1000000

/* A wider bracket does not help other CPUs: their own records may be better. */
#define WIDEST_NS 1000000

enum pass { PASS_FIND, PASS_SHARE, PASS_WRITE };

/* Of a vCPU's thread, ns: low <= CNTVOFF <= high. */
struct cntvoff {
	int vcpu;
	uint64_t low, high;
	bool said;  /* by a hyp_cntvoff record */
	bool moved; /* there are several: the VM was stopped and resumed */
};

struct repair {
	struct spool *spool;
	const struct spool_buffer *buffer;
	size_t number; /* of the buffer */
	struct page_layout layout;
	struct hypevents events;
	enum pass pass;
	bool changed; /* any time */
	struct nvhe **cpus;
	struct cntvoff *cntvoffs;
	size_t n_cntvoffs;
};

/* One CPU's pages, from front to back. */
struct repair_cpu {
	struct repair *r;
	struct nvhe *nvhe;
	struct page_writer writer;
	int out;
	uint64_t last_ts;
	bool stepped;
	int last_vcpu; /* the one seen last, which need not be looked up again */
	int error;     /* of a hyp_cntvoff record, written between two others */
};

static struct cntvoff *cntvoff_find(const struct repair *r, int vcpu)
{
	for (size_t i = 0; i < r->n_cntvoffs; i++)
		if (r->cntvoffs[i].vcpu == vcpu)
			return &r->cntvoffs[i];
	return NULL;
}

/* True if the bracket is worth a record: the first, at least a tenth narrower, or disjoint. */
static bool cntvoff_narrow(struct cntvoff *v, const struct nvhe_step *s)
{
	bool apart = s->low > v->high || s->high < v->low;
	uint64_t low = apart || s->low > v->low ? s->low : v->low;
	uint64_t high = apart || s->high < v->high ? s->high : v->high;
	bool news = apart || !v->said || v->high == UINT64_MAX || high - low < (v->high - v->low) / 10 * 9;

	v->moved |= apart;
	v->low = low;
	v->high = high;
	v->said |= news;
	return news;
}

/* The hyp_cntvoff record comes before the one that showed the step. */
static void on_step(void *ctx, const struct nvhe_step *s)
{
	struct repair_cpu *x = ctx;
	struct cntvoff *v;

	x->stepped = true;
	/* a negative CNTVOFF (a restored VM) has a bracket of huge numbers, like one that is unknown */
	if (x->error || !s->vcpu_pid || s->offset <= 0 || s->low > s->high || s->high > INT64_MAX)
		return;
	v = cntvoff_find(x->r, s->vcpu_pid);
	if (!v) {
		const struct cntvoff one = { .vcpu = s->vcpu_pid, .high = UINT64_MAX };

		x->error = array_push(&x->r->cntvoffs, &x->r->n_cntvoffs, &one, sizeof(one));
		v = x->error ? NULL : &x->r->cntvoffs[x->r->n_cntvoffs - 1];
	}
	if (v && cntvoff_narrow(v, s) && x->r->pass == PASS_WRITE) {
		struct cntvoff_record rec = {
			.type = remote_cntvoff_id(&x->r->events),
			.pid = v->vcpu,
			.vcpu = v->vcpu,
			.offset = (int64_t)(v->low + (v->high - v->low) / 2),
			.low = v->low,
			.high = v->high,
		};

		x->error = page_write(&x->writer, s->ts > x->last_ts ? s->ts : x->last_ts, &rec, sizeof(rec));
	}
}

static int repair_record(struct repair_cpu *x, const struct page_event *ev)
{
	const char *reason = hyp_record_reason(&x->r->events, ev->data, ev->len);
	int vcpu = hyp_record_vcpu(&x->r->events, ev->data, ev->len);
	uint64_t ts;
	const struct cntvoff *v;

	/* takes the vCPU's offset from other CPUs */
	if (x->r->pass == PASS_SHARE && vcpu && vcpu != x->last_vcpu) {
		x->last_vcpu = vcpu;
		v = cntvoff_find(x->r, vcpu);
		if (v && !v->moved && v->high - v->low <= WIDEST_NS)
			nvhe_known(x->nvhe, vcpu, (int64_t)v->low, (int64_t)v->high);
	}
	ts = nvhe_time(x->nvhe, ev->ts, reason, vcpu);
	x->r->changed |= ts != ev->ts;
	if (x->stepped && ts < x->last_ts && x->last_ts - ts < STEP_BACK_NS)
		ts = x->last_ts;
	x->last_ts = ts;
	if (x->error || x->r->pass != PASS_WRITE)
		return x->error;
	return page_write(&x->writer, ts, ev->data, ev->len);
}

static int repair_lost(struct repair_cpu *x, uint64_t count, bool certain)
{
	if (certain)
		nvhe_lost(x->nvhe);
	return x->r->pass == PASS_WRITE ? page_write_lost(&x->writer, count) : 0;
}

static int repair_page(void *repair_cpu, void *page, size_t size)
{
	struct repair_cpu *x = repair_cpu;
	struct page_reader pr;
	struct page_event ev;
	int ret, more;
	if (page_reader_init(&pr, &x->r->layout, page, size))
		return repair_lost(x, 0, true);
	more = page_next(&pr, &ev);
	/* an empty page: where the recorder was killed (spool_mark_cut), often without a loss */
	ret = pr.missed ? repair_lost(x, pr.missed_count, more) : 0;
	for (; !ret && more == 1; more = page_next(&pr, &ev))
		ret = repair_record(x, &ev);
	return ret ? ret : more < 0 ? repair_lost(x, 0, true) : 0;
}

static int repair_cpu(struct repair *r, unsigned int cpu)
{
	struct repair_cpu x = { .r = r, .out = -1 };
	int ret = 0;

	x.nvhe = r->cpus[cpu] ? nvhe_again(r->cpus[cpu], on_step, &x) : nvhe_new(on_step, &x);
	if (!x.nvhe)
		return -ENOMEM;
	if (!r->cpus[cpu])
		nvhe_bounds(x.nvhe, spool_get_number(r->spool, "hyp_from", 0),
			    spool_get_number(r->spool, "hyp_to", 0));
	nvhe_free(r->cpus[cpu]);
	r->cpus[cpu] = x.nvhe;
	if (r->pass == PASS_WRITE) {
		ret = page_writer_init(&x.writer, r->layout.size, page_emit_fd, &x.out);
		x.out = ret ? -1 : spool_rewrite_fd(r->spool, r->number, cpu);
		ret = ret ?: x.out < 0 ? x.out : 0;
	}
	ret = ret ?: spool_pages_walk(r->spool, r->number, cpu, 0, repair_page, &x);
	if (r->pass == PASS_WRITE) {
		ret = ret ?: page_flush(&x.writer, true);
		page_writer_release(&x.writer);
		fd_close(&x.out);
	}
	return ret;
}

static int repair_buffer(struct spool *spool, size_t number)
{
	struct repair r = { .spool = spool,
			    .buffer = spool_buffer(spool, number),
			    .number = number,
			    .layout = page_layout_default };
	int ret = remote_events_load(&r.events, spool);

	if (ret)
		return ret;
	r.layout.size = r.buffer->page_size;
	r.cpus = calloc(r.buffer->n_cpus, sizeof(struct nvhe *));
	ret = r.cpus ? 0 : -ENOMEM;
	for (r.pass = PASS_FIND; r.pass <= PASS_WRITE && !ret; r.pass++) {
		if (r.pass == PASS_WRITE && !r.changed)
			break; /* no bracket has been recorded yet; offsets that move are recorded when they
				  move */
		for (size_t i = 0; i < r.n_cntvoffs && r.pass == PASS_WRITE; i++) {
			struct cntvoff *v = &r.cntvoffs[i];

			v->said = false;
			if (v->moved)
				*v = (struct cntvoff){ .vcpu = v->vcpu, .high = UINT64_MAX };
		}
		for (unsigned int cpu = 0; cpu < r.buffer->n_cpus && !ret; cpu++)
			ret = repair_cpu(&r, cpu);
	}
	for (unsigned int cpu = 0; r.cpus && cpu < r.buffer->n_cpus; cpu++)
		nvhe_free(r.cpus[cpu]);
	free(r.cpus);
	free(r.cntvoffs);
	hypevents_release(&r.events);
	return ret;
}

bool spool_wants_repair(const struct spool *spool)
{
	struct buf mark = { 0 };
	int ret = spool_get_text(spool, MARK, &mark);

	buf_release(&mark);
	return !ret;
}

int spool_want_repair(struct spool *spool)
{
	return spool_put_text(spool, MARK, "", 0);
}

int spool_repair(struct spool *spool, const struct log *log)
{
	struct buf mark = { 0 };
	int ret = spool_get_text(spool, MARK, &mark);

	buf_release(&mark);
	if (ret || spool_is_rewritten(spool, SPOOL_REPAIRED))
		return ret == -ENOENT ? 0 : ret;
	ret = spool_rewrite_begin(spool);
	for (size_t i = 0; i < spool_n_buffers(spool) && !ret; i++)
		if (!strcmp(spool_buffer(spool, i)->kind, "hyp-text"))
			ret = repair_buffer(spool, i);
	ret = ret ?: spool_rewrite_end(spool, SPOOL_REPAIRED);
	return ret ? log_fail_errno(log, ret, "the times of the hypervisor's records cannot be repaired") : 0;
}
