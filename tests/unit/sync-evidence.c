// SPDX-License-Identifier: LGPL-2.1-or-later
/* What of a guest's and a host's events becomes deeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sync/evidence.h"

#define COMMON                                                                                               \
	"format:\n"                                                                                          \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                               \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELD(name, at)		 "\tfield:unsigned long " name ";\toffset:" at ";\tsize:8;\tsigned:0;\n"
#define FORMAT(name, id, fields) "name: " name "\nID: " id "\n" COMMON fields "\nprint fmt: \"\"\n"

enum {
	IOCTL = 1,
	IOCTL_END,
	GETTIME,
	GETTIME_END,
	HVC,
	VIRQ,
	TIMER,
	RESCHEDULE,
	MMIO,
	READ,
	READ_END,
	WRITE,
	WRITE_END
};

static const char *const texts[] = {
	FORMAT("sys_enter_ioctl", "1", FIELD("fd", "8") FIELD("cmd", "16")),
	FORMAT("sys_exit_ioctl", "2", FIELD("ret", "8")),
	FORMAT("sys_enter_clock_gettime", "3", FIELD("which_clock", "8")),
	FORMAT("sys_exit_clock_gettime", "4", FIELD("ret", "8")),
	FORMAT("kvm_hvc_arm64", "5", FIELD("vcpu_pc", "8") FIELD("r0", "16")),
	FORMAT("kvm_inj_virq", "6", FIELD("vector", "8") FIELD("reinjected", "16")),
	FORMAT("local_timer_entry", "7", FIELD("vector", "8")),
	FORMAT("reschedule_entry", "8", FIELD("vector", "8")),
	FORMAT("kvm_mmio", "9", FIELD("type", "8") FIELD("len", "16") FIELD("gpa", "24") FIELD("val", "32")),
	FORMAT("rwmmio_read", "10", FIELD("addr", "8") FIELD("width", "16")),
	FORMAT("rwmmio_post_read", "11", FIELD("addr", "8") FIELD("width", "16") FIELD("val", "24")),
	FORMAT("rwmmio_write", "12", FIELD("addr", "8") FIELD("width", "16") FIELD("val", "24")),
	FORMAT("rwmmio_post_write", "13", FIELD("addr", "8") FIELD("width", "16") FIELD("val", "24")),
};

#define PRECISE	 0xc0403d08 /* PTP_SYS_OFFSET_PRECISE */
#define TCGETS	 0x5401
#define PTP_FD3	 0xffffffe3 /* ~3 << 3 | 3: descriptor 3's clock */
#define REALTIME 0

struct one {
	uint64_t time;
	uint16_t type;
	int32_t pid;
	unsigned int cpu;
	uint64_t v[4]; /* the fields */
};

static void take(struct marks *m, const struct one *all, size_t n, bool host)
{
	struct dat_text formats[ARRAY_SIZE(texts)];

	*m = (struct marks){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		formats[i] = (struct dat_text){ texts[i], strlen(texts[i]) };
	assert_int_equal(host ? marks_learn_host(m, formats, ARRAY_SIZE(texts))
			      : marks_learn_guest(m, formats, ARRAY_SIZE(texts)),
			 0);
	for (size_t i = 0; i < n; i++) {
		uint8_t data[40] = { 0 };
		struct page_event ev = { .ts = all[i].time, .data = data, .len = sizeof(data) };

		memcpy(data, &all[i].type, 2);
		data[2] = all[i].type > VIRQ; /* common_flags: interrupts are off */
		memcpy(data + 4, &all[i].pid, 4);
		memcpy(data + 8, all[i].v, sizeof(all[i].v));
		assert_int_equal(host ? marks_take_host(m, &ev) : marks_take_guest(m, &ev, all[i].cpu), 0);
	}
}

static void expect_guest(const struct one *all, size_t n, const struct sync_deed *want, size_t n_want)
{
	struct sync_guest g = { .first = 1, .last = 1000 };
	struct marks m;

	take(&m, all, n, false);
	assert_int_equal(marks_finish_guest(&m, &g), 0);
	assert_int_equal(g.n_deeds, n_want);
	for (size_t i = 0; i < n_want; i++) {
		assert_int_equal(g.deeds[i].a, want[i].a);
		assert_int_equal(g.deeds[i].b, want[i].b);
		assert_int_equal(g.deeds[i].key, want[i].key);
		assert_int_equal(g.deeds[i].kind, want[i].kind);
	}
	free(g.deeds);
	marks_release(&m);
}

static void test_ioctl(void **state)
{
	const struct one all[] = {
		{ 10, IOCTL, 7, 0, { 3, PRECISE } }, { 20, IOCTL_END, 7, 0, { 0 } },
		{ 30, IOCTL, 7, 0, { 1, TCGETS } },  { 40, IOCTL_END, 7, 0, { 0 } },
		{ 50, IOCTL, 7, 0, { 3, PRECISE } }, { 55, IOCTL, 8, 1, { 1, TCGETS } },
		{ 58, IOCTL_END, 8, 1, { 0 } },	     { 60, IOCTL_END, 7, 1, { 0 } },
	};
	const struct sync_deed want[] = { { 10, 20, 0, 0, SYNC_PTP }, { 50, 60, 0, 0, SYNC_PTP } };

	expect_guest(all, ARRAY_SIZE(all), want, ARRAY_SIZE(want));
}

/* What lacks its end lasts until the task's next call; what lacks its beginning, from its last. */
static void test_lost(void **state)
{
	const struct one all[] = {
		{ 10, IOCTL_END, 7, 0, { 0 } },	     { 20, IOCTL, 7, 0, { 3, PRECISE } },
		{ 30, IOCTL, 7, 0, { 1, TCGETS } },  { 40, IOCTL_END, 7, 0, { 0 } },
		{ 50, IOCTL_END, 7, 0, { 0 } },	     { 60, IOCTL, 8, 0, { 1, TCGETS } },
		{ 70, IOCTL, 8, 0, { 3, PRECISE } },
	};
	const struct sync_deed want[] = { { 1, 10, 0, 0, SYNC_PTP },
					  { 20, 30, 0, 0, SYNC_PTP },
					  { 40, 50, 0, 0, SYNC_PTP },
					  { 70, 1000, 0, 0, SYNC_PTP } };

	expect_guest(all, ARRAY_SIZE(all), want, ARRAY_SIZE(want));
}

/* A clock of a descriptor, not the others; an ioctl within it ends nothing. */
static void test_gettime(void **state)
{
	const struct one all[] = {
		{ 10, GETTIME, 7, 0, { REALTIME } }, { 20, GETTIME_END, 7, 0, { 0 } },
		{ 30, GETTIME, 7, 0, { PTP_FD3 } },  { 35, IOCTL_END, 9, 0, { 0 } },
		{ 40, GETTIME_END, 7, 0, { 0 } },
	};
	const struct sync_deed want[] = { { 1, 35, 0, 0, SYNC_PTP }, { 30, 40, 0, 0, SYNC_PTP } };

	expect_guest(all, ARRAY_SIZE(all), want, ARRAY_SIZE(want));
}

static void test_host(void **state)
{
	const struct one all[] = {
		{ 20, HVC, 101, 0, { 0, 0x86000001 } },
		{ 10, HVC, 100, 0, { 0, 0x86000001 } },
		{ 30, HVC, 100, 0, { 0, 0x84000000 } },
	};
	struct sync_host h = { .begin = 1 };
	struct marks m;

	take(&m, all, ARRAY_SIZE(all), true);
	assert_int_equal(marks_finish_host(&m, &h), 0);
	assert_int_equal(h.n_deeds, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(h.deeds[i].a, 10 * (i + 1));
		assert_int_equal(h.deeds[i].b, h.deeds[i].a);
		assert_int_equal(h.deeds[i].pid, 100 + i);
		assert_int_equal(h.deeds[i].kind, SYNC_PTP);
	}
	free(h.deeds);
	marks_release(&m);
}

/* An injection came after whatever had interrupts on, and after the vector taken before. */
static void test_vectors(void **state)
{
	const struct one all[] = {
		{ 10, IOCTL, 7, 0, { 1, TCGETS } },   { 20, TIMER, 7, 0, { 236, 0 } },
		{ 30, RESCHEDULE, 7, 0, { 253, 0 } }, { 40, IOCTL_END, 7, 0, { 0 } },
		{ 50, TIMER, 7, 0, { 236, 0 } },
	};
	const struct sync_tick want[] = { { 20, 10, 0, 236, true },
					  { 30, 20, 0, 253, true },
					  { 50, 40, 0, 236, true } };
	struct marks m;

	take(&m, all, ARRAY_SIZE(all), false);
	assert_int_equal(m.n_ticks, ARRAY_SIZE(want));
	for (size_t i = 0; i < m.n_ticks; i++) {
		assert_int_equal(m.ticks[i].time, want[i].time);
		assert_int_equal(m.ticks[i].clear, want[i].clear);
		assert_int_equal(m.ticks[i].line, want[i].line);
		assert_true(m.ticks[i].each);
	}
	marks_next_cpu(&m);
	assert_true(!m.clear && !m.taken);
	marks_release(&m);
}

static void test_injections(void **state)
{
	const struct one all[] = {
		{ 30, VIRQ, 100, 0, { 236, 0 } },
		{ 20, VIRQ, 100, 0, { 236, 1 } },
		{ 10, VIRQ, 100, 0, { 253, 0 } },
	};
	struct sync_host h = { .begin = 1 };
	struct marks m;

	take(&m, all, ARRAY_SIZE(all), true);
	assert_int_equal(marks_finish_host(&m, &h), 0);
	assert_int_equal(h.n_raises, 2);
	assert_int_equal(h.raises[0].time, 30);
	assert_int_equal(h.raises[0].line, 236);
	assert_int_equal(h.raises[1].time, 10);
	assert_int_equal(h.raises[1].line, 253);
	free(h.raises);
	marks_release(&m);
}

#define VIRTUAL 0xffffffc08116d000ull
#define IPA	0x9000000ull

/* The same deeds on both sides, whatever differs between them, and no other two the same. */
static void test_mmio(void **state)
{
	const struct one guest[] = {
		{ 10, READ, 7, 0, { VIRTUAL + 0x18, 16 } },
		{ 12, WRITE, 7, 0, { VIRTUAL, 16, 0x78 } }, /* an interrupt's */
		{ 14, WRITE_END, 7, 0, { VIRTUAL, 16, 0x78 } },
		{ 20, READ_END, 7, 0, { VIRTUAL + 0x18, 16, 0x90 } },
		{ 30, WRITE, 7, 0, { VIRTUAL, 16, 0x79 } },
		{ 40, WRITE_END, 7, 1, { VIRTUAL, 16, 0x79 } },
		{ 50, WRITE, 7, 0, { VIRTUAL, 32, 0x79 } },
		{ 60, WRITE_END, 7, 0, { VIRTUAL, 32, 0x79 } },
		{ 70, WRITE, 7, 0, { VIRTUAL + 4, 16, 0x79 } },
		{ 80, WRITE_END, 7, 0, { VIRTUAL + 4, 16, 0x79 } },
	};
	const struct one host[] = {
		{ 111, MMIO, 100, 0, { 0, 2, IPA + 0x18, 0 } },
		{ 113, MMIO, 100, 0, { 2, 2, IPA, 0xff0078 } },
		{ 119, MMIO, 100, 0, { 1, 2, IPA + 0x18, 0x90 } },
		{ 135, MMIO, 100, 0, { 2, 2, IPA, 0x79 } },
		{ 155, MMIO, 100, 0, { 2, 4, IPA, 0x79 } },
		{ 175, MMIO, 100, 0, { 2, 2, IPA + 4, 0x79 } },
	};
	struct sync_guest g = { .first = 1, .last = 1000 };
	struct sync_host h = { .begin = 1 };
	struct marks m;

	take(&m, guest, ARRAY_SIZE(guest), false);
	assert_int_equal(marks_finish_guest(&m, &g), 0);
	marks_release(&m);
	take(&m, host, ARRAY_SIZE(host), true);
	assert_int_equal(marks_finish_host(&m, &h), 0);
	marks_release(&m);
	assert_int_equal(g.n_deeds, 5);
	assert_int_equal(h.n_deeds, 5);
	for (size_t i = 0; i < 5; i++)
		for (size_t k = 0; k < 5; k++) {
			const struct sync_deed *x = &g.deeds[i], *y = &h.deeds[k];
			bool inside = x->a + 100 < y->a && y->b < x->b + 100;
			bool nested = x->a == 10 && y->a == 113;

			assert_int_equal(x->kind, SYNC_MMIO);
			assert_int_equal(x->key == y->key, inside && !nested);
		}
	free(g.deeds);
	free(h.deeds);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ioctl),	cmocka_unit_test(test_lost),
		cmocka_unit_test(test_gettime), cmocka_unit_test(test_host),
		cmocka_unit_test(test_vectors), cmocka_unit_test(test_injections),
		cmocka_unit_test(test_mmio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
