// SPDX-License-Identifier: GPL-2.0-only
/* The KernelShark plugin's pairing of events into spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../plugins/hyp-reason.h"
#include "../../plugins/kernelshark/spans.h"

static size_t row; /* one more for each event, as in a file */

static struct spot at(int64_t ts, int cpu, int pid)
{
	return (struct spot){ .row = row++, .ts = ts, .cpu = cpu, .pid = pid };
}

static size_t enter(struct spans *s, int64_t ts, int cpu, int pid, int reason, int vcpu)
{
	struct spot p = at(ts, cpu, pid);

	assert_int_equal(spans_hyp_enter(s, &p, reason, vcpu), 0);
	return p.row;
}

static size_t leave(struct spans *s, int64_t ts, int cpu, int pid, int left, int vcpu)
{
	struct spot p = at(ts, cpu, pid);

	assert_int_equal(spans_hyp_exit(s, &p, left, vcpu), 0);
	return p.row;
}

static size_t tell(int (*func)(struct spans *s, const struct spot *at), struct spans *s, int64_t ts, int cpu,
		   int pid)
{
	struct spot p = at(ts, cpu, pid);

	assert_int_equal(func(s, &p), 0);
	return p.row;
}

static const struct span *only_span(struct spans *s)
{
	const struct span *const *v;

	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_cpu(s, 0, 1, &v), 1);
	return v[0];
}

static void entry_and_exit(void **state)
{
	struct spans *s = spans_new();
	const struct span *span;
	size_t first, last;

	leave(s, 5, 1, 7, HYP_ERET_HOST, 0); /* its entry was before the recording */
	first = enter(s, 10, 1, 7, HYP_HVC, 0);
	last = leave(s, 30, 1, 7, HYP_ERET_GUEST, 100);
	enter(s, 50, 1, 7, HYP_GUEST_EXIT, 100); /* its exit after */
	span = only_span(s);
	assert_int_equal(span->kind, SPAN_HYP);
	assert_int_equal(span->start, 10);
	assert_int_equal(span->end, 30);
	assert_int_equal(span->reason, HYP_HVC);
	assert_int_equal(span->left, HYP_ERET_GUEST);
	assert_int_equal(span->pid, 100);
	assert_int_equal(span->first, first);
	assert_int_equal(span->last, last);
	assert_int_equal(span->detail, first);
	assert_int_equal(spans_reasons(s), 1u << HYP_HVC);
	spans_free(s);
}

static void other_cpus_and_machines(void **state)
{
	struct spans *s = spans_new();
	struct spot guest = { .ts = 15, .machine = 3, .cpu = 1, .pid = 9 };
	const struct span *const *v;

	enter(s, 10, 1, 7, HYP_HVC, 0);
	enter(s, 11, 0, 8, HYP_SMC, 0);
	assert_int_equal(spans_hyp_enter(s, &guest, HYP_SYS, 0), 0);
	leave(s, 20, 1, 7, HYP_ERET_HOST, 0);
	guest.ts = 25;
	assert_int_equal(spans_hyp_exit(s, &guest, HYP_ERET_HOST, 0), 0);
	leave(s, 30, 0, 8, HYP_ERET_HOST, 0);
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_count(s, SPAN_HYP), 3);
	assert_int_equal(spans_of_cpu(s, 0, 0, &v), 1);
	assert_int_equal(v[0]->reason, HYP_SMC);
	assert_int_equal(spans_of_cpu(s, 0, 1, &v), 1);
	assert_int_equal(v[0]->reason, HYP_HVC);
	assert_int_equal(spans_of_cpu(s, 3, 1, &v), 1);
	assert_int_equal(v[0]->end - v[0]->start, 10);
	assert_int_equal(spans_of_cpu(s, 0, 2, &v), 0);
	assert_int_equal(spans_of_cpu(s, 1, 0, &v), 0);
	assert_int_equal(spans_of_task(s, 0, 8, &v), 1);
	assert_int_equal(spans_of_task(s, 3, 9, &v), 1);
	assert_int_equal(spans_of_task(s, 0, 9, &v), 0);
	spans_free(s);
}

static void sorted_by_start(void **state)
{
	struct spans *s = spans_new();
	const struct span *const *v;

	for (int i = 0; i < 3000; i++) {
		enter(s, 10 * i, i % 2, 7, HYP_HVC, 0);
		leave(s, 10 * i + 5, i % 2, 7, HYP_ERET_HOST, 0);
	}
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_cpu(s, 0, 1, &v), 1500);
	for (int i = 0; i < 1500; i++)
		assert_int_equal(v[i]->start, 20 * i + 10);
	assert_int_equal(spans_of_task(s, 0, 7, &v), 3000);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(v[i]->start, 10 * i);
	spans_free(s);
}

/* What was lost could have been the exit and the next entry. */
static void lost_events(void **state)
{
	struct spans *s = spans_new();
	const struct span *span;

	enter(s, 10, 1, 7, HYP_HVC, 0);
	tell(spans_lost, s, 20, 0, 7); /* another CPU */
	leave(s, 30, 1, 7, HYP_ERET_HOST, 0);
	enter(s, 40, 1, 7, HYP_HVC, 0);
	tell(spans_lost, s, 45, 1, 7);
	leave(s, 60, 1, 7, HYP_ERET_HOST, 0);
	span = only_span(s);
	assert_int_equal(span->end, 30);
	spans_free(s);
}

static void entered_twice(void **state)
{
	struct spans *s = spans_new();
	const struct span *span;

	enter(s, 10, 1, 7, HYP_HVC, 0);
	enter(s, 20, 1, 7, HYP_SMC, 0);
	leave(s, 30, 1, 7, HYP_ERET_HOST, 0);
	span = only_span(s);
	assert_int_equal(span->start, 20);
	assert_int_equal(span->reason, HYP_SMC);
	spans_free(s);
}

/* Android's entries have no reason: the event in between tells it. */
static void android(void **state)
{
	struct spans *s = spans_new();
	struct spot abort = at(15, 1, 7);
	const struct span *span;

	assert_int_equal(spans_hyp_event(s, &abort, HYP_HOST_ABORT), 0); /* outside: nothing */
	enter(s, 10, 1, 7, -1, 0);
	abort = at(15, 1, 7);
	assert_int_equal(spans_hyp_event(s, &abort, HYP_HOST_ABORT), 0);
	leave(s, 20, 1, 7, -1, 0);
	span = only_span(s);
	assert_int_equal(span->reason, HYP_HOST_ABORT);
	assert_int_equal(span->left, -1);
	assert_int_equal(span->detail, abort.row);
	spans_free(s);
}

static void kvm_tells_the_exit(void **state)
{
	struct spans *s = spans_new();
	const struct span *const *v;
	size_t fault;

	enter(s, 10, 1, 7, HYP_GUEST_EXIT, 100); /* pKVM sees to this one by itself */
	leave(s, 11, 1, 7, HYP_ERET_GUEST, 100);
	enter(s, 20, 1, 7, HYP_GUEST_EXIT, 100);
	leave(s, 21, 1, 7, HYP_ERET_HOST, 0);
	tell(spans_kvm_says, s, 22, 1, 999); /* another thread's */
	tell(spans_kvm_says, s, 22, 1, 100);
	enter(s, 23, 1, 7, HYP_HVC, 0);
	leave(s, 24, 1, 7, HYP_ERET_HOST, 0);
	fault = tell(spans_kvm_says, s, 25, 1, 100);
	tell(spans_kvm_entry, s, 26, 1, 100);
	tell(spans_kvm_says, s, 27, 1, 100);
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_cpu(s, 0, 1, &v), 3);
	assert_int_equal(v[0]->detail, v[0]->first);
	assert_int_equal(v[1]->detail, fault);
	assert_int_equal(v[2]->detail, v[2]->first);
	spans_free(s);
}

static void begin(struct spans *s, int64_t ts, int pid, uint64_t id, const char *name)
{
	struct spot p = at(ts, 0, pid);

	assert_int_equal(spans_begin(s, &p, id, name, strlen(name)), 0);
}

static void end(struct spans *s, int64_t ts, int pid, uint64_t id, const char *name)
{
	struct spot p = at(ts, 0, pid);

	assert_int_equal(spans_end(s, &p, id, name, strlen(name)), 0);
}

static void crosvm_nested(void **state)
{
	struct spans *s = spans_new();
	const struct span *const *v;

	end(s, 1, 7, 500, "queue");
	begin(s, 10, 7, 512, "queue");
	begin(s, 20, 7, 513, "release");
	begin(s, 25, 8, 514, "read"); /* another thread: not inside */
	end(s, 30, 7, 513, "release");
	end(s, 40, 8, 514, "read");
	end(s, 50, 7, 512, "queue");
	begin(s, 60, 7, 515, "open");
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_count(s, SPAN_CROSVM), 3);
	assert_int_equal(spans_of_task(s, 0, 7, &v), 2);
	assert_int_equal(v[0]->start, 10);
	assert_int_equal(v[0]->end, 50);
	assert_int_equal(v[0]->depth, 0);
	assert_int_equal(v[1]->end, 30);
	assert_int_equal(v[1]->depth, 1);
	assert_int_equal(spans_of_task(s, 0, 8, &v), 1);
	assert_int_equal(v[0]->depth, 0);
	assert_int_equal(spans_of_cpu(s, 0, 0, &v), 0);
	spans_free(s);
}

/* Two crosvm processes count from the same number. */
static void crosvm_same_id(void **state)
{
	struct spans *s = spans_new();
	const struct span *const *v;

	begin(s, 10, 7, 1, "read");
	begin(s, 11, 8, 1, "read");
	begin(s, 12, 9, 1, "write");
	end(s, 20, 7, 1, "read");
	end(s, 30, 10, 1, "write"); /* ended by another thread of its process */
	end(s, 40, 8, 1, "read");
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_task(s, 0, 7, &v), 1);
	assert_int_equal(v[0]->end, 20);
	assert_int_equal(spans_of_task(s, 0, 8, &v), 1);
	assert_int_equal(v[0]->end, 40);
	assert_int_equal(spans_of_task(s, 0, 9, &v), 1);
	assert_int_equal(v[0]->end, 30);
	spans_free(s);
}

static void begins_without_end(void **state)
{
	struct spans *s = spans_new();
	const struct span *const *v;

	for (uint64_t i = 0; i < 10000; i++)
		begin(s, (int64_t)i, 7, i, "lost");
	end(s, 20000, 7, 9999, "lost");
	end(s, 20001, 7, 0, "lost"); /* forgotten */
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_task(s, 0, 7, &v), 1);
	assert_int_equal(v[0]->start, 9999);
	spans_free(s);
}

static void hypertrace(void **state)
{
	struct spans *s = spans_new();
	const struct span *const *v;
	const struct {
		int64_t ts;
		uint64_t source, number;
	} events[] = { { 10, 1, 1 }, { 15, 2, 1 }, { 20, 1, 2 }, { 30, 1, 0 }, { 40, 1, 0 } };

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct spot p = at(events[i].ts, 0, 7);

		assert_int_equal(spans_hypertrace(s, &p, events[i].source, events[i].number), 0);
	}
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_task(s, 0, 7, &v), 2);
	assert_int_equal(v[0]->start, 10);
	assert_int_equal(v[0]->end, 20);
	assert_int_equal(v[1]->start, 20);
	assert_int_equal(v[1]->end, 30);
	spans_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entry_and_exit),     cmocka_unit_test(other_cpus_and_machines),
		cmocka_unit_test(sorted_by_start),    cmocka_unit_test(lost_events),
		cmocka_unit_test(entered_twice),      cmocka_unit_test(android),
		cmocka_unit_test(kvm_tells_the_exit), cmocka_unit_test(crosvm_nested),
		cmocka_unit_test(crosvm_same_id),     cmocka_unit_test(begins_without_end),
		cmocka_unit_test(hypertrace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
