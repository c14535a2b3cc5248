// SPDX-License-Identifier: GPL-2.0-only
/* Trace points become spans: visits to the hypervisor, exits of guests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "spans/marks.h"
#include "spans/visits.h"

#define NONE SPAN_UNKNOWN

static struct span last; /* the one that the last trace point gave */

static bool take(struct visit *v, enum point_kind kind, uint64_t ts, uint64_t reason, int32_t vcpu)
{
	const struct span_point p = { .kind = kind,
				      .ts = ts,
				      .row = ts,
				      .reason = reason,
				      .cpu = 3,
				      .machine = 2,
				      .pid = 7,
				      .vcpu = vcpu };

	return visit_take(v, &p, &last);
}

static bool within(struct visit *v, uint64_t ts, uint32_t event)
{
	const struct span_point p = { .kind = POINT_HYP_EVENT, .ts = ts, .row = ts, .event = event };

	return visit_take(v, &p, &last);
}

static void paired(void **state)
{
	struct visit v = { 0 };

	assert_false(take(&v, POINT_HYP_ENTER, 10, 1, 0));
	assert_false(within(&v, 12, 40));
	assert_true(take(&v, POINT_HYP_EXIT, 15, 6, 0));
	assert_int_equal(last.end, SPAN_PAIRED);
	assert_int_equal(last.from, 10);
	assert_int_equal(last.to, 15);
	assert_int_equal(last.why, 1); /* hyp_enter's own, whatever is within */
	assert_int_equal(last.event, 40);
	assert_int_equal(last.left, 6);
	assert_int_equal(last.machine, 2);
	assert_int_equal(last.cpu, 3);
	assert_int_equal(last.pid, 7);
	assert_int_equal(last.first, 10);
	assert_int_equal(last.last, 15);
	assert_int_equal(last.detail, 12);
	assert_false(visit_finish(&v, &last));
}

/* Android's have no reason: the last event says it. */
static void reasons(void **state)
{
	struct visit v = { 0 };

	take(&v, POINT_HYP_ENTER, 10, NONE, 0);
	within(&v, 11, 41);
	within(&v, 12, 42);
	assert_true(take(&v, POINT_HYP_EXIT, 15, NONE, 0));
	assert_int_equal(last.why, SPAN_REASONS + 42);
	assert_int_equal(last.left, NONE);
	within(&v, 17, 43); /* of no visit */
	take(&v, POINT_HYP_ENTER, 20, NONE, 0);
	assert_true(take(&v, POINT_HYP_EXIT, 25, NONE, 0));
	assert_int_equal(last.why, NONE);
	assert_int_equal(last.event, SPAN_NO_EVENT);
	take(&v, POINT_HYP_ENTER, 30, 5000, 0); /* no kernel's */
	take(&v, POINT_HYP_EXIT, 35, NONE, 0);
	assert_int_equal(last.why, SPAN_REASONS - 1);
}

static void vcpus(void **state)
{
	struct visit v = { 0 };

	take(&v, POINT_HYP_ENTER, 10, 5, 22);
	take(&v, POINT_HYP_EXIT, 15, 6, 0);
	assert_int_equal(last.vcpu, 22);
	take(&v, POINT_HYP_ENTER, 20, 1, 0);
	take(&v, POINT_HYP_EXIT, 25, 7, 23);
	assert_int_equal(last.vcpu, 23); /* it is loaded meanwhile */
}

static void unfinished(void **state)
{
	struct visit v = { 0 };

	assert_true(take(&v, POINT_HYP_EXIT, 5, 6, 0));
	assert_int_equal(last.end, SPAN_BEGUN);
	assert_int_equal(last.to, 5);
	assert_false(take(&v, POINT_LOST, 6, 0, 0));
	take(&v, POINT_HYP_ENTER, 10, 1, 0);
	assert_true(take(&v, POINT_LOST, 12, 0, 0));
	assert_int_equal(last.end, SPAN_LOST);
	assert_int_equal(last.from, 10);
	take(&v, POINT_HYP_ENTER, 20, 1, 0);
	assert_true(take(&v, POINT_HYP_ENTER, 30, 2, 0));
	assert_int_equal(last.end, SPAN_LOST);
	assert_int_equal(last.why, 1);
	assert_true(take(&v, POINT_HYP_EXIT, 29, 6, 0)); /* time goes back */
	assert_int_equal(last.end, SPAN_LOST);
	assert_int_equal(last.from, 30);
	take(&v, POINT_HYP_ENTER, 40, 3, 0);
	assert_true(visit_finish(&v, &last));
	assert_int_equal(last.end, SPAN_UNENDED);
	assert_int_equal(last.why, 3);
	assert_false(visit_finish(&v, &last));
}

static void names(void **state)
{
	assert_true(visit_event_tells("host_ffa_call"));
	assert_true(visit_event_tells("vendor_thing"));
	assert_false(visit_event_tells("func_ret"));
	assert_false(visit_event_tells("__hyp_printk"));
	assert_false(visit_event_tells("hyp_printk"));
	assert_false(visit_event_tells("hyp_cntvoff"));
	assert_string_equal(visit_event_reason("host_ffa_call"), "smc");
	assert_null(visit_event_reason("iommu_idmap"));
	assert_string_equal(visit_reason_event("host_abort"), "host_mem_abort");
	assert_null(visit_reason_event("guest_exit"));
}

static bool side(struct exit_side *e, enum point_kind kind, uint64_t ts, uint64_t reason)
{
	const struct span_point p = {
		.kind = kind, .ts = ts, .row = ts, .reason = reason, .ec = 9, .cpu = 1, .pid = 7
	};

	return exit_take(e, &p, &last);
}

static void exits(void **state)
{
	struct exit_side e = { 0 };

	assert_false(side(&e, POINT_KVM_EXIT, 5, 1));
	assert_true(side(&e, POINT_KVM_ENTRY, 8, 0));
	assert_int_equal(last.end, SPAN_PAIRED);
	assert_int_equal(last.before, NONE);
	assert_false(side(&e, POINT_KVM_EXIT, 20, 2));
	assert_true(side(&e, POINT_KVM_ENTRY, 25, 0));
	assert_int_equal(last.end, SPAN_PAIRED);
	assert_int_equal(last.from, 20);
	assert_int_equal(last.to, 25);
	assert_int_equal(last.before, 12);
	assert_int_equal(last.why, 2);
	assert_int_equal(last.ec, 9);
	assert_int_equal(last.vcpu, 7);
	assert_int_equal(last.first, 20);
	assert_false(side(&e, POINT_KVM_EXIT, 30, 3));
	assert_true(exit_finish(&e, &last));
	assert_int_equal(last.end, SPAN_UNENDED);
	assert_false(exit_finish(&e, &last));
}

static void exits_lost(void **state)
{
	struct exit_side e = { 0 };

	side(&e, POINT_KVM_ENTRY, 1, 0);
	assert_false(side(&e, POINT_LOST, 2, 0));
	side(&e, POINT_KVM_EXIT, 5, 1);
	assert_int_equal(e.span.before, NONE);
	assert_true(side(&e, POINT_KVM_EXIT, 6, 1)); /* kvm_entry is missing */
	assert_int_equal(last.end, SPAN_LOST);
	side(&e, POINT_LOST, 7, 0);
	assert_true(side(&e, POINT_KVM_ENTRY, 9, 0));
	assert_int_equal(last.end, SPAN_LOST);
	assert_int_equal(last.from, 6);
	side(&e, POINT_KVM_EXIT, 20, 1);
	assert_int_equal(e.span.before, 11);
	assert_true(side(&e, POINT_KVM_ENTRY, 19, 0)); /* time goes back */
	assert_int_equal(last.end, SPAN_LOST);
	side(&e, POINT_KVM_EXIT, 30, 1);
	side(&e, POINT_LOST, 31, 0);
	assert_true(exit_finish(&e, &last));
	assert_int_equal(last.end, SPAN_LOST);
}

static struct mark_place place;

static int mark(struct marks *m, bool begins, uint64_t ts, uint64_t source, uint64_t id, const char *name)
{
	const struct mark p = { .begins = begins,
				.ts = ts,
				.row = ts,
				.source = source,
				.id = id,
				.name = mark_name(name, strlen(name)),
				.tag = 2 * ts,
				.machine = 2,
				.buffer = 3,
				.pid = (int32_t)source };

	return marks_take(m, &p, &place, &last);
}

static void marks_pair(void **state)
{
	struct marks m = { 0 };

	assert_int_equal(mark(&m, true, 10, 7, 500, "read"), 0);
	assert_int_equal(mark(&m, true, 11, 7, MARK_NO_ID, "frame"), 0);
	assert_int_equal(mark(&m, true, 12, 7, MARK_NO_ID, "frame"), 0);
	assert_int_equal(place.lane, 2);
	assert_int_equal(mark(&m, false, 20, 7, 500, "read"), 1);
	assert_int_equal(last.end, SPAN_PAIRED);
	assert_int_equal(last.from, 10);
	assert_int_equal(last.to, 20);
	assert_int_equal(last.detail, 20);
	assert_int_equal(last.why, mark_name("read", 4));
	assert_int_equal(mark(&m, true, 21, 7, MARK_NO_ID, "frame"), 0);
	assert_int_equal(place.lane, 0);
	assert_int_equal(mark(&m, false, 25, 7, MARK_NO_ID, "frame"), 1);
	assert_int_equal(last.from, 21); /* the latest, whatever its lane */
	assert_int_equal(mark(&m, false, 26, 8, MARK_NO_ID, "frame"), 1);
	assert_int_equal(last.end, SPAN_BEGUN); /* a name is another thread's */
	assert_int_equal(mark(&m, false, 26, 7, MARK_NO_ID, "draw"), 1);
	assert_int_equal(last.end, SPAN_BEGUN);
	marks_release(&m);
}

/* Two processes may count from the same id, and a span may end in another thread of its process. */
static void marks_of_processes(void **state)
{
	struct marks m = { 0 };

	mark(&m, true, 10, 7, 1, "read");
	mark(&m, true, 11, 8, 1, "read");
	mark(&m, true, 12, 9, 1, "write");
	assert_int_equal(mark(&m, false, 20, 7, 1, "read"), 1);
	assert_int_equal(last.from, 10);
	assert_int_equal(mark(&m, false, 30, 10, 1, "write"), 1);
	assert_int_equal(last.from, 12);
	assert_int_equal(last.pid, 9);
	assert_int_equal(mark(&m, false, 40, 10, 1, "open"), 1);
	assert_int_equal(last.end, SPAN_BEGUN);
	marks_release(&m);
}

static void marks_unfinished(void **state)
{
	struct marks m = { 0 };
	struct mark_place at = { 0 };
	const struct mark other = { .source = 7, .machine = 2, .buffer = 4, .id = MARK_NO_ID };

	mark(&m, true, 10, 7, 500, "read");
	mark(&m, true, 11, 7, MARK_NO_ID, "frame");
	assert_int_equal(marks_take(&m, &other, &place, &last), 0);
	assert_int_equal(place.source, MARKS_NO_SOURCE); /* another buffer has the same lines */
	assert_false(marks_lost(&m, 4, &at, &last));
	at = (struct mark_place){ 0 };
	assert_true(marks_lost(&m, 3, &at, &last));
	assert_int_equal(last.from, 11);
	assert_int_equal(last.end, SPAN_LOST);
	assert_false(marks_lost(&m, 3, &at, &last)); /* an id is no other's */
	at = (struct mark_place){ 0 };
	assert_true(marks_finish(&m, &at, &last));
	assert_int_equal(last.from, 10);
	assert_int_equal(last.end, SPAN_UNENDED);
	assert_false(marks_finish(&m, &at, &last));
	for (uint64_t i = 0; i < MARKS_OPEN; i++)
		assert_int_equal(mark(&m, true, 20 + i, 7, i, "many"), 0);
	assert_int_equal(mark(&m, true, 50, 7, 99, "many"), 1);
	assert_int_equal(last.from, 20);
	assert_int_equal(last.end, SPAN_LOST);
	assert_int_equal(place.lane, 0);
	marks_release(&m);
}

static void mark_lines(void **state)
{
	struct mark_text text;

	assert_int_equal(mark_line("5 VirtioFs Exit: read\n", 22, &text), MARK_CROSVM);
	assert_int_equal(text.crosvm.name.len, 4);
	assert_int_equal(mark_line("guest_hypertrace arg1=2\n\0junk", 29, &text), MARK_GUEST);
	assert_int_equal(text.event.arg[0], 2);
	assert_int_equal(mark_line("words", 5, &text), MARK_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paired),
		cmocka_unit_test(reasons),
		cmocka_unit_test(vcpus),
		cmocka_unit_test(unfinished),
		cmocka_unit_test(names),
		cmocka_unit_test(exits),
		cmocka_unit_test(exits_lost),
		cmocka_unit_test(marks_pair),
		cmocka_unit_test(marks_of_processes),
		cmocka_unit_test(marks_unfinished),
		cmocka_unit_test(mark_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
