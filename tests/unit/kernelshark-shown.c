// SPDX-License-Identifier: GPL-2.0-only
/* The spans that KernelShark's plugin draws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../plugins/hyp-reason.h"
#include "../../plugins/kernelshark/shown.h"
#include "spans/marks.h"

static size_t row; /* one more for each event, as in a file */

static struct mark at(int64_t ts, int pid)
{
	return (struct mark){
		.row = row++, .ts = (uint64_t)ts, .pid = pid, .source = (uint32_t)pid, .id = MARK_NO_ID
	};
}

/* An event of the hypervisor or of KVM on machine 0; its row. */
static size_t point(struct spans *s, enum point_kind kind, int64_t ts, int cpu, int pid, int reason, int vcpu)
{
	const struct span_point p = { .kind = kind,
				      .ts = (uint64_t)ts,
				      .row = row++,
				      .reason = reason < 0 ? SPAN_UNKNOWN : (uint64_t)reason,
				      .event = (uint32_t)reason,
				      .cpu = (uint32_t)cpu,
				      .pid = pid,
				      .vcpu = vcpu };

	assert_int_equal(spans_point(s, &p), 0);
	return p.row;
}

static size_t enter(struct spans *s, int64_t ts, int cpu, int pid, int reason, int vcpu)
{
	return point(s, POINT_HYP_ENTER, ts, cpu, pid, reason, vcpu);
}

static size_t leave(struct spans *s, int64_t ts, int cpu, int pid, int left, int vcpu)
{
	return point(s, POINT_HYP_EXIT, ts, cpu, pid, left, vcpu);
}

static size_t tell(enum point_kind kind, struct spans *s, int64_t ts, int cpu, int pid)
{
	return point(s, kind, ts, cpu, pid, -1, 0);
}

static const struct shown *only_span(struct spans *s)
{
	const struct shown *const *v;

	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_cpu(s, 0, 1, &v), 1);
	return v[0];
}

static void entry_and_exit(void **state)
{
	struct spans *s = spans_new();
	const struct shown *span;
	size_t first, last;

	leave(s, 5, 1, 7, HYP_ERET_HOST, 0); /* its entry was before the recording */
	first = enter(s, 10, 1, 7, HYP_HVC, 0);
	last = leave(s, 30, 1, 7, HYP_ERET_GUEST, 100);
	enter(s, 50, 1, 7, HYP_GUEST_EXIT, 100); /* its exit after */
	span = only_span(s);
	assert_int_equal(span->kind, SHOWN_HYP);
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

/* Exits of x86 have a reason of their own; arm64's are no spans. */
static void exits_of_x86(void **state)
{
	struct spans *s = spans_new();
	const struct shown *const *v;
	const struct mark lost = { .ts = 95 };
	size_t first, last;

	tell(POINT_KVM_ENTRY, s, 5, 1, 7);
	first = point(s, POINT_KVM_EXIT, 10, 1, 7, X86_EXIT, 0);
	tell(POINT_KVM_EXIT, s, 12, 0, 9);
	tell(POINT_KVM_ENTRY, s, 14, 0, 9);
	last = tell(POINT_KVM_ENTRY, s, 30, 2, 7); /* on another CPU */
	point(s, POINT_KVM_EXIT, 40, 2, 7, X86_HALT, 0);
	tell(POINT_KVM_ENTRY, s, 70, 2, 7);
	point(s, POINT_KVM_EXIT, 90, 2, 7, X86_EXIT, 0);
	assert_int_equal(spans_lost(s, &lost), 0);
	tell(POINT_KVM_ENTRY, s, 99, 2, 7); /* whose exit may be another one */
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_count(s, SHOWN_EXIT), 1);
	assert_int_equal(spans_count(s, SHOWN_HALT), 1);
	assert_int_equal(spans_of_task(s, 0, 9, &v), 0);
	assert_int_equal(spans_of_task(s, 0, 7, &v), 2);
	assert_int_equal(v[0]->kind, SHOWN_EXIT);
	assert_int_equal(v[0]->start, 10);
	assert_int_equal(v[0]->end, 30);
	assert_int_equal(v[0]->first, first);
	assert_int_equal(v[0]->last, last);
	assert_int_equal(v[1]->kind, SHOWN_HALT);
	assert_int_equal(v[1]->end - v[1]->start, 30);
	spans_free(s);
}

static void other_cpus_and_machines(void **state)
{
	struct spans *s = spans_new();
	struct span_point guest = {
		.kind = POINT_HYP_ENTER, .ts = 15, .reason = HYP_SYS, .machine = 3, .cpu = 1, .pid = 9
	};
	const struct shown *const *v;

	enter(s, 10, 1, 7, HYP_HVC, 0);
	enter(s, 11, 0, 8, HYP_SMC, 0);
	assert_int_equal(spans_point(s, &guest), 0);
	leave(s, 20, 1, 7, HYP_ERET_HOST, 0);
	guest.ts = 25;
	guest.kind = POINT_HYP_EXIT;
	assert_int_equal(spans_point(s, &guest), 0);
	leave(s, 30, 0, 8, HYP_ERET_HOST, 0);
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_count(s, SHOWN_HYP), 3);
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
	const struct shown *const *v;

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

/* The lost events could have been the exit and the next entry. */
static void lost_events(void **state)
{
	struct spans *s = spans_new();
	const struct shown *span;

	enter(s, 10, 1, 7, HYP_HVC, 0);
	tell(POINT_LOST, s, 20, 0, 7); /* another CPU */
	leave(s, 30, 1, 7, HYP_ERET_HOST, 0);
	enter(s, 40, 1, 7, HYP_HVC, 0);
	tell(POINT_LOST, s, 45, 1, 7);
	leave(s, 60, 1, 7, HYP_ERET_HOST, 0);
	span = only_span(s);
	assert_int_equal(span->end, 30);
	spans_free(s);
}

static void entered_twice(void **state)
{
	struct spans *s = spans_new();
	const struct shown *span;

	enter(s, 10, 1, 7, HYP_HVC, 0);
	enter(s, 20, 1, 7, HYP_SMC, 0);
	leave(s, 30, 1, 7, HYP_ERET_HOST, 0);
	span = only_span(s);
	assert_int_equal(span->start, 20);
	assert_int_equal(span->reason, HYP_SMC);
	spans_free(s);
}

/* Android's entries have no reason: the last event in between has it. */
static void android(void **state)
{
	struct spans *s = spans_new();
	const struct shown *span;
	size_t abort;

	point(s, POINT_HYP_EVENT, 5, 1, 7, HYP_HVC, 0); /* outside: nothing */
	enter(s, 10, 1, 7, -1, 0);
	point(s, POINT_HYP_EVENT, 14, 1, 7, HYP_REASONS, 0);
	abort = point(s, POINT_HYP_EVENT, 15, 1, 7, HYP_HOST_ABORT, 0);
	leave(s, 20, 1, 7, -1, 0);
	span = only_span(s);
	assert_int_equal(span->reason, HYP_HOST_ABORT);
	assert_int_equal(span->left, -1);
	assert_int_equal(span->detail, abort);
	spans_free(s);
}

static void kvm_tells_the_exit(void **state)
{
	struct spans *s = spans_new();
	const struct shown *const *v;
	size_t fault;

	enter(s, 10, 1, 7, HYP_GUEST_EXIT, 100); /* pKVM sees to this one by itself */
	leave(s, 11, 1, 7, HYP_ERET_GUEST, 100);
	enter(s, 20, 1, 7, HYP_GUEST_EXIT, 100);
	leave(s, 21, 1, 7, HYP_ERET_HOST, 0);
	tell(POINT_KVM_EXIT, s, 22, 1, 999); /* another thread's */
	tell(POINT_KVM_EXIT, s, 22, 1, 100);
	enter(s, 23, 1, 7, HYP_HVC, 0);
	leave(s, 24, 1, 7, HYP_ERET_HOST, 0);
	fault = tell(POINT_KVM_EXIT, s, 25, 1, 100);
	tell(POINT_KVM_ENTRY, s, 26, 1, 100);
	tell(POINT_KVM_EXIT, s, 27, 1, 100);
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_cpu(s, 0, 1, &v), 3);
	assert_int_equal(v[0]->detail, v[0]->first);
	assert_int_equal(v[1]->detail, fault);
	assert_int_equal(v[2]->detail, v[2]->first);
	spans_free(s);
}

static void mark(struct spans *s, int64_t ts, int pid, uint64_t id, const char *name, bool begins)
{
	struct mark p = at(ts, pid);

	p.id = id;
	p.name = mark_name(name, strlen(name));
	p.begins = begins;
	assert_int_equal(spans_mark(s, &p), 0);
}

static void begin(struct spans *s, int64_t ts, int pid, uint64_t id, const char *name)
{
	mark(s, ts, pid, id, name, true);
}

static void end(struct spans *s, int64_t ts, int pid, uint64_t id, const char *name)
{
	mark(s, ts, pid, id, name, false);
}

static void crosvm_nested(void **state)
{
	struct spans *s = spans_new();
	const struct shown *const *v;

	end(s, 1, 7, 500, "queue");
	begin(s, 10, 7, 512, "queue");
	begin(s, 20, 7, 513, "release");
	begin(s, 25, 8, 514, "read"); /* another thread: not inside */
	end(s, 30, 7, 513, "release");
	end(s, 40, 8, 514, "read");
	end(s, 50, 7, 512, "queue");
	begin(s, 60, 7, 515, "open");
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_count(s, SHOWN_CROSVM), 3);
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
	const struct shown *const *v;

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
	const struct shown *const *v;

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
	const struct shown *const *v;
	const struct {
		int64_t ts;
		uint64_t source, number;
	} events[] = { { 10, 1, 1 }, { 15, 2, 1 }, { 20, 1, 2 }, { 30, 1, 0 }, { 40, 1, 0 } };

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct mark p = at(events[i].ts, 7);

		p.source = events[i].source;
		assert_int_equal(spans_numbered_mark(s, &p, events[i].number), 0);
	}
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_task(s, 0, 7, &v), 2);
	assert_int_equal(v[0]->start, 10);
	assert_int_equal(v[0]->end, 20);
	assert_int_equal(v[1]->start, 20);
	assert_int_equal(v[1]->end, 30);
	spans_free(s);
}

static void hypertrace_lost(void **state)
{
	struct spans *s = spans_new();
	const struct shown *const *v;
	struct mark p = at(10, 7);

	assert_int_equal(spans_numbered_mark(s, &p, 1), 0);
	p = at(20, 7);
	assert_int_equal(spans_lost(s, &p), 0);
	p = at(30, 7);
	assert_int_equal(spans_numbered_mark(s, &p, 2), 0);
	p = at(40, 7);
	assert_int_equal(spans_numbered_mark(s, &p, 0), 0);
	assert_int_equal(spans_finish(s), 0);
	assert_int_equal(spans_of_task(s, 0, 7, &v), 1);
	assert_int_equal(v[0]->start, 30);
	spans_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entry_and_exit),
		cmocka_unit_test(exits_of_x86),
		cmocka_unit_test(other_cpus_and_machines),
		cmocka_unit_test(sorted_by_start),
		cmocka_unit_test(lost_events),
		cmocka_unit_test(entered_twice),
		cmocka_unit_test(android),
		cmocka_unit_test(kvm_tells_the_exit),
		cmocka_unit_test(crosvm_nested),
		cmocka_unit_test(crosvm_same_id),
		cmocka_unit_test(begins_without_end),
		cmocka_unit_test(hypertrace),
		cmocka_unit_test(hypertrace_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
