// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the host's buffers tell: windows, the time in which they exclude anything, hyp against host.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sync/evidence.h"
#include "base/files.h"
#include "base/strings.h"

#define PID 77
#define MS  1000000ull

/* ids of tests/data/formats */
enum { KVM_EXIT = 61, KVM_ENTRY = 62, SCHED_SWITCH = 244, HYP_ENTER = 20001, HYP_EXIT = 20002 };

enum { GUEST_EXIT = 5, ERET_GUEST = 7 };

struct pages {
	struct page_writer w;
	uint8_t v[8][4096];
	unsigned int n;
};

static int keep_page(void *ctx, const void *page, size_t size)
{
	struct pages *p = ctx;

	assert_true(p->n < 8 && size == 4096);
	memcpy(p->v[p->n++], page, size);
	return 0;
}

static int walk(const struct sync_source *s, size_t buffer, unsigned int cpu, sync_page_fn page, void *to)
{
	struct pages *const *both = s->from, *p = both[buffer];
	int ret = 0;

	for (unsigned int i = 0; i < p->n && !ret; i++)
		ret = page(to, cpu, p->v[i], 4096);
	return ret;
}

static void put(struct pages *p, uint64_t ts, uint16_t id, uint8_t reason)
{
	struct {
		uint16_t type;
		uint8_t flags, count;
		int32_t pid;
		uint8_t reason;
		int32_t vcpu;
		uint8_t rest[16];
	} __attribute__((packed)) r = { .type = id, .pid = PID, .reason = reason, .vcpu = 0 };

	assert_int_equal(page_write(&p->w, ts, &r, sizeof(r)), 0);
}

static struct pages *begin(void)
{
	struct pages *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	assert_int_equal(page_writer_init(&p->w, 4096, keep_page, p), 0);
	return p;
}

static void end(struct pages *p)
{
	assert_int_equal(page_flush(&p->w, true), 0);
	page_writer_release(&p->w);
}

/* kvm windows [t, t + 3 ms] each 5 ms, hyp ones `late` ns behind their entry, 1 ms long */
static void fill(struct pages *host, struct pages *hyp, uint64_t from, uint64_t to, int64_t late)
{
	for (uint64_t t = from; t < to; t += 5 * MS) {
		put(host, t, KVM_ENTRY, 0);
		put(host, t + 3 * MS, KVM_EXIT, 0);
		put(hyp, t + (uint64_t)late, HYP_EXIT, ERET_GUEST);
		put(hyp, t + (uint64_t)late + MS, HYP_ENTER, GUEST_EXIT);
	}
}

static uint64_t whole_to; /* of the source that is read */

/* kvm_entry, kvm_exit from tests/data/formats, and what the hypervisor's events say of themselves. */
static struct sync_host read_host_as(struct pages *host, struct pages *hyp, const char *const hyp_formats[2])
{
	static const char *const names[] = { "kvm_entry", "kvm_exit", "hyp_enter", "hyp_exit" };
	struct sync_buffer buffers[] = { { page_layout_default, 1 }, { page_layout_default, 1 } };
	struct pages *const both[] = { host, hyp };
	struct dat_text texts[4];
	struct buf files[4] = { 0 };
	struct sync_source s = { .buffers = buffers,
				 .n_buffers = 2,
				 .walk = walk,
				 .from = both,
				 .formats = texts,
				 .n_formats = 4,
				 .whole_to = whole_to };
	struct sync_host h;

	for (int i = 0; i < 2 && hyp_formats; i++)
		texts[2 + i] = (struct dat_text){ (char *)hyp_formats[i], strlen(hyp_formats[i]) };
	for (int i = 0; i < (hyp_formats ? 2 : 4); i++) {
		char *path = str_printf("tests/data/formats/%s", names[i]);

		assert_int_equal(read_file(path, 1 << 16, &files[i]), 0);
		texts[i] = (struct dat_text){ buf_str(&files[i]), files[i].len };
		free(path);
	}
	end(host);
	end(hyp);
	assert_int_equal(sync_host_read(&h, &s, NULL), 0);
	for (int i = 0; i < 4; i++)
		buf_release(&files[i]);
	free(host);
	free(hyp);
	return h;
}

static struct sync_host read_host(struct pages *host, struct pages *hyp)
{
	return read_host_as(host, hyp, NULL);
}

/* The hypervisor is traced before the host is, and kvm events after others. */
static void test_range(void **state)
{
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	for (uint64_t t = 1; t < 50; t++)
		put(hyp, t * MS, t % 2 ? HYP_EXIT : HYP_ENTER, t % 2 ? ERET_GUEST : GUEST_EXIT);
	put(host, 60 * MS, SCHED_SWITCH, 0);
	fill(host, hyp, 100 * MS, 200 * MS, 1 * MS);
	put(hyp, 400 * MS, HYP_EXIT, ERET_GUEST);
	h = read_host(host, hyp);
	assert_int_equal(h.begin, 103 * MS); /* entries and exits are both there */
	assert_int_equal(h.end, 198 * MS);
	assert_true(h.n_hyp > 20);
	assert_int_equal(h.hyp_checked, 20);
	assert_int_equal(h.hyp_stray, 0);
	assert_int_equal(h.hyp_worst, 0);
	sync_host_release(&h);
}

/* Guest events of the time before are neither inside nor outside; an offset's own bound is allowed for. */
static void test_before(void **state)
{
	struct pages *host = begin(), *hyp = begin();
	uint64_t times[200];
	struct sync_cpu cpu = { 0, times, 0 };
	struct sync_guest g = { .cpus = &cpu, .n_cpus = 1 };
	struct offset_vcpu vcpu = { 0, PID };
	struct offset_point none = { .offset = 0, .scaling = 1 };
	struct offset_shift shift;
	struct sync_vcpu known = { 0, PID };
	struct sync_result map = { .vcpus = &known, .n_vcpus = 1 };
	struct sync_offset_point points[2] = { { .class = SYNC_HARD },
					       { .time = 200 * MS, .class = SYNC_HARD } };
	struct sync_result bounds = { .points = points, .n_points = 2 };
	struct sync_check check;
	struct sync_input in;
	struct sync_host h;
	int32_t *pids;

	put(hyp, 1 * MS, HYP_EXIT, ERET_GUEST);
	put(hyp, 2 * MS, HYP_ENTER, GUEST_EXIT);
	fill(host, hyp, 100 * MS, 200 * MS, 1 * MS);
	for (uint64_t t = 10; t < 90; t += 10)
		times[cpu.n++] = t * MS;
	for (uint64_t t = 105; t < 195; t += 5)
		times[cpu.n++] = t * MS + 3 * MS / 2;
	h = read_host(host, hyp);
	assert_int_equal(sync_input_make(&in, &(struct sync_evidence){ &h, &g, &vcpu, 1 }, &pids), 0);
	assert_int_equal(offset_shift_fill(&shift, 0, 1, &none, 1), 0);
	assert_int_equal(sync_check(&in, &map, NULL, &shift, &check), 0);
	assert_int_equal(check.events, 18);
	assert_int_equal(check.outside, 0);
	/* 300 ns behind a window, which is 2 us longer for the hypervisor's clock: a bound of 600 ns allows
	 * it, 200 do not */
	times[cpu.n - 1] = 192 * MS + 2300;
	assert_int_equal(sync_check(&in, &map, NULL, &shift, &check), 0);
	assert_int_equal(check.outside, 1);
	assert_int_equal(check.worst, 300);
	points[0].bound = points[1].bound = 600;
	assert_int_equal(sync_check(&in, &map, &bounds, &shift, &check), 0);
	assert_int_equal(check.outside, 0);
	points[0].bound = points[1].bound = 200;
	assert_int_equal(sync_check(&in, &map, &bounds, &shift, &check), 0);
	assert_int_equal(check.outside, 1);
	offset_shift_release(&shift);
	free(pids);
	sync_host_release(&h);
}

/* A hypervisor's clock that is off: told, and its windows left out when it is too much. */
static void test_stray(void **state)
{
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	fill(host, hyp, 100 * MS, 200 * MS, -800); /* within the clock's error */
	h = read_host(host, hyp);
	assert_int_equal(h.hyp_checked, 20);
	assert_int_equal(h.hyp_worst, 800);
	assert_int_equal(h.hyp_stray, 0);
	assert_true(h.n_hyp >= 20);
	sync_host_release(&h);

	host = begin();
	hyp = begin();
	fill(host, hyp, 100 * MS, 200 * MS, -50000);
	h = read_host(host, hyp);
	assert_int_equal(h.hyp_checked, 20);
	assert_int_equal(h.hyp_worst, 50000);
	assert_int_equal(h.hyp_stray, 20);
	assert_int_equal(h.n_hyp, 0);
	sync_host_release(&h);

	host = begin();
	hyp = begin();
	fill(host, hyp, 100 * MS, 200 * MS, 7 * MS / 2); /* where the guest did not run */
	h = read_host(host, hyp);
	assert_int_equal(h.hyp_stray, 19); /* the last is behind all of kvm's */
	assert_int_equal(h.hyp_worst, 3 * MS / 2);
	assert_int_equal(h.n_hyp, 0);
	for (size_t i = 0; i < h.windows.n; i++)
		assert_int_equal(h.windows.v[i].kind, SYNC_KVM);
	sync_host_release(&h);
}

static bool hides(const struct sync_host *h, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < h->windows.n; i++) {
		const struct sync_window *w = &h->windows.v[i];

		if (!w->pid && w->unknown && w->kind == SYNC_KVM && w->a <= from && w->b >= to)
			return true;
	}
	return false;
}

/* A file of several, cut while CPUs are read one after the other: beyond the cut some events are in the next
 * one. */
static void test_part(void **state)
{
	struct pages *host, *hyp;
	struct sync_host h;

	for (whole_to = 0; whole_to <= 180 * MS; whole_to += 180 * MS) {
		host = begin();
		hyp = begin();
		fill(host, hyp, 100 * MS, 180 * MS, 1 * MS);
		fill(host, hyp, 180 * MS, 200 * MS, 7 * MS / 2);
		h = read_host(host, hyp);
		assert_int_equal(hides(&h, 181 * MS, 197 * MS), whole_to != 0);
		assert_int_equal(h.hyp_checked, whole_to ? 16 : 19);
		assert_int_equal(h.hyp_stray, whole_to ? 0 : 3);
		assert_int_equal(h.n_hyp > 0, whole_to != 0);
		sync_host_release(&h);
	}
	whole_to = 0;
}

/* The first page of a CPU, and events before it that are in another file */
static void test_part_begin(void **state)
{
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	fill(host, hyp, 100 * MS, 104 * MS, 1 * MS);
	end(host);
	page_mark_missed(&page_layout_default, host->v[0]);
	assert_int_equal(page_writer_init(&host->w, 4096, keep_page, host), 0);
	fill(host, hyp, 105 * MS, 200 * MS, 1 * MS);
	h = read_host(host, hyp);
	assert_int_equal(h.lost, 1);
	sync_host_release(&h);
}

/* ---- a hypervisor without reasons --------------------------------------------------------- */

#define BLIND_FIELDS                                                                                         \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                      \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \" \"\n"

static struct sync_host read_blind(struct pages *host, struct pages *hyp)
{
	static const char *const formats[] = { "name: hyp_enter\nID: 20001\n" BLIND_FIELDS,
					       "name: hyp_exit\nID: 20002\n" BLIND_FIELDS };

	return read_host_as(host, hyp, formats);
}

#define US 1000ull

/* A run as pKVM has it, the guest in it from 200 us to 1200 us and, `again`, to 1700 us. */
static void blind_run(struct pages *host, struct pages *hyp, uint64_t t, bool again)
{
	put(host, t, KVM_ENTRY, 0);
	put(host, t + 3000 * US, KVM_EXIT, 0);
	put(hyp, t + 100 * US, HYP_ENTER, 0);
	put(hyp, t + 200 * US, HYP_EXIT, 0);
	put(hyp, t + 1200 * US, HYP_ENTER, 0);
	if (again) {
		put(hyp, t + 1300 * US, HYP_EXIT, 0);
		put(hyp, t + 1700 * US, HYP_ENTER, 0);
	}
	put(hyp, t + 2000 * US, HYP_EXIT, 0);
}

/* The stretches of a time, those of all threads first, without their widening: 1 us, and 1 us more at the
 * end. */
static void expect_blind(const struct sync_host *h, uint64_t from, uint64_t to,
			 const struct sync_window *want, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < h->windows.n; i++) {
		const struct sync_window *w = &h->windows.v[i];

		if (w->kind != SYNC_HYP || w->a < from || w->b > to)
			continue;
		assert_true(found < n);
		assert_int_equal(w->a + US, want[found].a);
		assert_int_equal(w->b - 2 * US, want[found].b);
		assert_int_equal(w->pid, want[found].pid);
		assert_int_equal(w->unknown, want[found].unknown);
		found++;
	}
	assert_int_equal(found, n);
}

static void test_blind(void **state)
{
	const uint64_t t = 150 * MS;
	const struct sync_window want[] = { { t + 200 * US, t + 1200 * US, PID, SYNC_HYP, false } };
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	for (int i = 0; i < 20; i++) {
		put(hyp, (100 + 5 * (uint64_t)i) * MS - 500 * US, HYP_ENTER, 0); /* of the host */
		put(hyp, (100 + 5 * (uint64_t)i) * MS - 400 * US, HYP_EXIT, 0);
		blind_run(host, hyp, (100 + 5 * (uint64_t)i) * MS, false);
	}
	h = read_blind(host, hyp);
	assert_int_equal(h.n_hyp, 20);
	assert_int_equal(h.hyp_checked, 20);
	assert_int_equal(h.hyp_worst, 0);
	expect_blind(&h, t - MS, t + 4 * MS, want, 1);
	sync_host_release(&h);
}

/* Behind the first exit it may be the guest again, or the host: that is not known. */
static void test_blind_again(void **state)
{
	const uint64_t t = 105 * MS;
	const struct sync_window want[] = { { t + 200 * US, t + 1200 * US, PID, SYNC_HYP, false },
					    { t + 1200 * US, t + 1700 * US, PID, SYNC_HYP, true } };
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	blind_run(host, hyp, 100 * MS, false);
	blind_run(host, hyp, 105 * MS, true);
	blind_run(host, hyp, 110 * MS, false);
	h = read_blind(host, hyp);
	assert_int_equal(h.n_hyp, 3);
	expect_blind(&h, t - MS, t + 4 * MS, want, 2);
	sync_host_release(&h);
}

/* In the run at 105 ms the hypervisor's events are lost from 200 us to 2000 us. */
static void test_blind_lost(void **state)
{
	const uint64_t t = 105 * MS;
	const struct sync_window want[] = { { t + 200 * US, t + 2000 * US, 0, SYNC_HYP, true },
					    { t, t + 200 * US, PID, SYNC_HYP, true },
					    { t + 2000 * US, t + 3000 * US, PID, SYNC_HYP, true } };
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	blind_run(host, hyp, 100 * MS, false);
	put(host, t, KVM_ENTRY, 0);
	put(host, t + 3000 * US, KVM_EXIT, 0);
	put(hyp, t + 100 * US, HYP_ENTER, 0);
	put(hyp, t + 200 * US, HYP_EXIT, 0);
	assert_int_equal(page_write_lost(&hyp->w, 0), 0);
	put(hyp, t + 2000 * US, HYP_EXIT, 0);
	blind_run(host, hyp, 110 * MS, false);
	h = read_blind(host, hyp);
	assert_int_equal(h.n_hyp, 2);
	expect_blind(&h, t - MS, t + 4 * MS, want, 3);
	sync_host_release(&h);
}

/* kvm's are lost from 110 ms on to the exit at 123 ms. */
static void test_blind_kvm_lost(void **state)
{
	const uint64_t t = 110 * MS;
	const struct sync_window want[] = { { t, t + 13 * MS, 0, SYNC_HYP, true },
					    { t, t, PID, SYNC_HYP, true },
					    { t + 13 * MS, t + 13 * MS, PID, SYNC_HYP, true } };
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	blind_run(host, hyp, 100 * MS, false);
	put(host, t, KVM_ENTRY, 0);
	assert_int_equal(page_write_lost(&host->w, 2), 0);
	put(host, t + 13 * MS, KVM_EXIT, 0);
	for (uint64_t i = 0; i < 3; i++) {
		put(hyp, t + i * 5 * MS + 100 * US, HYP_ENTER, 0);
		put(hyp, t + i * 5 * MS + 200 * US, HYP_EXIT, 0);
	}
	blind_run(host, hyp, 130 * MS, false);
	h = read_blind(host, hyp);
	assert_int_equal(h.n_hyp, 2);
	expect_blind(&h, t - MS, t + 14 * MS, want, 3);
	sync_host_release(&h);
}

/* Its clock is off by 150 us: the run begins with a hyp_exit. */
static void test_blind_stray(void **state)
{
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	for (uint64_t t = 100 * MS; t < 200 * MS; t += 5 * MS) {
		put(host, t + 150 * US, KVM_ENTRY, 0);
		put(host, t + 3150 * US, KVM_EXIT, 0);
		put(hyp, t + 100 * US, HYP_ENTER, 0);
		put(hyp, t + 200 * US, HYP_EXIT, 0);
		put(hyp, t + 1200 * US, HYP_ENTER, 0);
		put(hyp, t + 2000 * US, HYP_EXIT, 0);
	}
	h = read_blind(host, hyp);
	assert_int_equal(h.n_hyp, 0);
	for (size_t i = 0; i < h.windows.n; i++)
		assert_int_equal(h.windows.v[i].kind, SYNC_KVM);
	sync_host_release(&h);
}

/* hyp_enter and hyp_exit are switched on in a buffer that others' events fill: runs from before have no
 * order. */
static void test_blind_late(void **state)
{
	struct pages *host = begin(), *hyp = begin();
	struct sync_host h;

	for (uint64_t t = 100 * MS; t < 200 * MS; t += 5 * MS) {
		put(host, t, KVM_ENTRY, 0);
		put(host, t + 3 * MS, KVM_EXIT, 0);
		put(hyp, t + 200 * US, SCHED_SWITCH, 0);
	}
	for (uint64_t t = 200 * MS; t < 220 * MS; t += 5 * MS)
		blind_run(host, hyp, t, false);
	h = read_blind(host, hyp);
	assert_int_equal(h.n_hyp, 4);
	sync_host_release(&h);
}

/* ---- a guest that sends without end ------------------------------------------------------------ */

#define FLOOD_PAGES   100000 /* of some 250 events */
#define FLOOD_PAGE_NS (256 * 1000ull)

/* Each CPU's page again and again, later each time. */
static int walk_flood(const struct sync_source *s, size_t buffer, unsigned int cpu, sync_page_fn page,
		      void *to)
{
	uint64_t data[512];
	int ret = 0;

	memcpy(data, s->from, sizeof(data));
	for (unsigned int i = 0; i < FLOOD_PAGES && !ret; i++, data[0] += FLOOD_PAGE_NS)
		ret = page(to, cpu, data, sizeof(data));
	return ret;
}

static void test_flood(void **state)
{
	struct sync_buffer buffer = { page_layout_default, 2 };
	struct pages *p = begin();
	struct sync_source s = { .buffers = &buffer, .n_buffers = 1, .walk = walk_flood, .from = p->v[0] };
	struct sync_guest g;

	for (uint64_t i = 0; i < 250; i++) {
		const uint32_t tick[2] = { 316, 0 };

		assert_int_equal(page_write(&p->w, 1000 * (i + 1), tick, sizeof(tick)), 0);
	}
	end(p);
	assert_int_equal(p->n, 1);
	assert_int_equal(sync_guest_read(&g, &s), 0);
	assert_int_equal(g.n_cpus, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct sync_cpu *c = &g.cpus[i];

		/* a part of them, evenly from the first to the last */
		assert_true(c->n > 1000000 && c->n <= 8u << 20);
		assert_int_equal(c->times[0], 1000);
		assert_true(c->times[c->n - 1] > (FLOOD_PAGES - 1) * FLOOD_PAGE_NS);
		for (size_t k = 1; k < c->n; k++)
			assert_true(c->times[k] - c->times[k - 1] <= 20000);
	}
	sync_guest_release(&g);
	free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_range),	       cmocka_unit_test(test_before),
		cmocka_unit_test(test_stray),	       cmocka_unit_test(test_part),
		cmocka_unit_test(test_part_begin),     cmocka_unit_test(test_blind),
		cmocka_unit_test(test_blind_again),    cmocka_unit_test(test_blind_lost),
		cmocka_unit_test(test_blind_kvm_lost), cmocka_unit_test(test_blind_stray),
		cmocka_unit_test(test_blind_late),     cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
