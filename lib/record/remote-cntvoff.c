// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the records tell about vCPUs: their threads' pids, and on a plain-nVHE
 * host each one's CNTVOFF, which is written into the trace as hyp_cntvoff
 * records when it is first known, becomes narrower, or changes (a VM that was
 * paused). The synchronisation of clocks reads them there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/collect.h"
#include "record/remote-priv.h"

/* The written record, packed as its format says. */
struct __attribute__((packed)) cntvoff_record {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
	int32_t vcpu;
	int64_t offset;
	uint64_t low, high;
};

static unsigned int cntvoff_id(const struct hypevents *e)
{
	return e->unknown_id + 1;
}

size_t remote_n_formats(const struct hypevents *e)
{
	return e->n + 2; /* hyp_unknown, hyp_cntvoff */
}

static void cntvoff_format(const struct hypevents *e, struct buf *out)
{
	buf_printf(out,
		   "name: hyp_cntvoff\n"
		   "ID: %u\n"
		   "format:\n"
		   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		   "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		   "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
		   "\n"
		   "\tfield:int vcpu;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:s64 offset;\toffset:12;\tsize:8;\tsigned:1;\n"
		   "\tfield:u64 low;\toffset:20;\tsize:8;\tsigned:0;\n"
		   "\tfield:u64 high;\toffset:28;\tsize:8;\tsigned:0;\n"
		   "\n"
		   "print fmt: \"vcpu=%%d offset=%%lld low=%%llu high=%%llu\", REC->vcpu, REC->offset, "
		   "REC->low, REC->high\n",
		   cntvoff_id(e));
}

void remote_format(const struct hypevents *e, size_t i, struct buf *out)
{
	if (i <= e->n)
		hypevents_format(e, i, out);
	else
		cntvoff_format(e, out);
}

struct cntvoff *remote_vcpu(struct remote *r, int pid)
{
	struct cntvoff *v;

	for (size_t i = 0; i < r->n_cntvoffs; i++)
		if (r->cntvoffs[i].vcpu == pid)
			return &r->cntvoffs[i];
	v = realloc(r->cntvoffs, (r->n_cntvoffs + 1) * sizeof(*v));
	if (!v)
		return NULL;
	r->cntvoffs = v;
	v[r->n_cntvoffs] = (struct cntvoff){ .vcpu = pid, .high = UINT64_MAX };
	return &v[r->n_cntvoffs++];
}

/* Whether the bracket says more than what is known: first, at least a tenth narrower, or elsewhere. */
static bool narrow(struct cntvoff *v, const struct nvhe_step *s)
{
	bool apart = s->low > v->high || s->high < v->low;
	uint64_t low = apart || s->low > v->low ? s->low : v->low;
	uint64_t high = apart || s->high < v->high ? s->high : v->high;
	bool news = apart || !v->said || v->high == UINT64_MAX || high - low < (v->high - v->low) / 10 * 9;

	v->low = low;
	v->high = high;
	v->said |= news;
	return news;
}

size_t remote_cntvoff_record(struct remote *r, const struct nvhe_step *s, void *out, size_t size)
{
	struct cntvoff *v = s->vcpu_pid ? remote_vcpu(r, s->vcpu_pid) : NULL;
	struct cntvoff_record rec;

	/* a negative CNTVOFF (a restored VM) has a bracket of huge numbers: not told apart from none */
	if (!v || s->offset <= 0 || s->low > s->high || s->high > INT64_MAX || !narrow(v, s) ||
	    size < sizeof(rec))
		return 0;
	rec = (struct cntvoff_record){
		.type = (uint16_t)cntvoff_id(&r->events),
		.pid = v->vcpu,
		.vcpu = v->vcpu,
		.offset = (int64_t)(v->low + (v->high - v->low) / 2),
		.low = v->low,
		.high = v->high,
	};
	memcpy(out, &rec, sizeof(rec));
	return sizeof(rec);
}

int remote_collect_pids(struct remote *r)
{
	int *pids = calloc(r->n_cntvoffs + 1, sizeof(*pids));
	int ret;

	if (!pids)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_cntvoffs; i++)
		pids[i] = r->cntvoffs[i].vcpu;
	ret = collect_pids(r->spool, pids, r->n_cntvoffs);
	free(pids);
	return ret;
}
