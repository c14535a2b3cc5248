// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the kernel's perf events tell, as records that libtraceevent reads. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "record/profile/profile.h"
#include "tep.h"
#include "base/array.h"

#define FIRST_ID 700
#define NOBODY	 0x3ffffff0 /* no kernel has such a pid */

struct setup {
	struct profile *p;
	struct page_writer w;
	struct drain_stats st;
	struct tep_handle *tep;
	char out[65536]; /* a line per record: "ts [lost] pid text" */
	size_t len;
	struct buf rec; /* a perf record */
};

static void say(struct setup *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct setup *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	s->len += (size_t)vsnprintf(s->out + s->len, sizeof(s->out) - s->len, fmt, ap);
	va_end(ap);
	assert_true(s->len < sizeof(s->out));
}

static int take_page(void *ctx, const void *page, size_t size)
{
	struct setup *s = ctx;
	struct page_reader r;
	struct page_event ev;
	char text[8192];
	const struct tep_event *sample = tep_find_event_by_name(s->tep, PROFILE_SYSTEM, PROFILE_SAMPLE);

	assert_int_equal(page_reader_init(&r, &page_layout_default, page, size), 0);
	if (r.missed)
		say(s, "lost %llu\n", (unsigned long long)r.missed_count);
	while (page_next(&r, &ev) == 1) {
		uint8_t data[4096];
		unsigned long long hz = 0;
		int32_t pid;

		memcpy(data, ev.data, ev.len);
		memcpy(&pid, data + 4, 4);
		judge_print(s->tep, data, ev.len, text, sizeof(text));
		if (data[0] + 256 * data[1] == sample->id)
			tep_read_number_field(tep_find_field((struct tep_event *)sample, "hz"), data, &hz);
		say(s, "%llu %d %s", (unsigned long long)ev.ts, pid, text);
		if (hz)
			say(s, " hz=%llu", hz);
		say(s, "\n");
	}
	return 0;
}

static int set_up(void **state)
{
	struct setup *s = calloc(1, sizeof(*s));

	assert_int_equal(profile_reopen(&s->p, 1, 4096), 0);
	s->p->first_id = FIRST_ID;
	assert_int_equal(page_writer_init(&s->w, 4096, take_page, s), 0);
	s->tep = tep_alloc();
	tep_set_long_size(s->tep, 8);
	tep_set_page_size(s->tep, 4096);
	for (size_t i = 0; i < PROFILE_EVENTS; i++) {
		struct buf text = { 0 };

		profile_format(i, FIRST_ID, &text);
		assert_int_equal(tep_parse_event(s->tep, buf_str(&text), text.len, PROFILE_SYSTEM), 0);
		buf_release(&text);
	}
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct setup *s = *state;

	profile_close(s->p);
	page_writer_release(&s->w);
	tep_free(s->tep);
	buf_release(&s->rec);
	free(s);
	return 0;
}

/* ---- perf's records ---------------------------------------------------------------------- */

static void begin_record(struct setup *s, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = { type, misc, 0 };

	s->rec.len = 0;
	buf_add(&s->rec, &h, sizeof(h));
}

static void add_u32(struct setup *s, uint32_t a, uint32_t b)
{
	buf_add(&s->rec, &a, 4);
	buf_add(&s->rec, &b, 4);
}

static void add_u64(struct setup *s, uint64_t v)
{
	buf_add(&s->rec, &v, 8);
}

/* NUL-ended, and to a multiple of 8 */
static void add_text(struct setup *s, const char *text)
{
	size_t n = strlen(text) + 1;

	buf_add(&s->rec, text, n);
	buf_add(&s->rec, "\0\0\0\0\0\0\0", -n & 7);
}

static int take(struct setup *s)
{
	struct perf_event_header *h = (void *)s->rec.data;

	h->size = (uint16_t)s->rec.len;
	return profile_take(s->p, h, s->rec.len, &s->w, &s->st);
}

/* pid, tid, time, CPU */
static int take_at(struct setup *s, uint64_t ts)
{
	add_u32(s, 1, 1);
	add_u64(s, ts);
	add_u64(s, 0);
	return take(s);
}

static int sample(struct setup *s, uint16_t misc, uint64_t ts, int32_t tgid, int32_t tid,
		  const uint64_t *chain, size_t n)
{
	begin_record(s, PERF_RECORD_SAMPLE, misc);
	add_u64(s, n > 1 ? chain[1] : 0x1234);
	add_u32(s, (uint32_t)tgid, (uint32_t)tid);
	add_u64(s, ts);
	add_u64(s, 0);
	add_u64(s, n);
	buf_add(&s->rec, chain, n * sizeof(*chain));
	return take(s);
}

static void named(struct setup *s, int32_t tgid, int32_t tid, const char *comm, bool exec)
{
	begin_record(s, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
	add_u32(s, (uint32_t)tgid, (uint32_t)tid);
	add_text(s, comm);
	assert_int_equal(take_at(s, 1), 0);
}

/* libtraceevent prints __print_array as "7001 7002", since 1.8 as "{0x1b59,0x1b5a}": as before. */
static void arrays_as_before(char *s)
{
	char *to = s;

	for (bool in = false; *s;) {
		if (in && isxdigit((unsigned char)*s)) {
			to += sprintf(to, "%llu", strtoull(s, &s, 16));
			continue;
		}
		in = (in || *s == '{') && *s != '}';
		if (!strchr("{},", *s))
			*to++ = *s;
		else if (*s == ',')
			*to++ = ' ';
		s++;
	}
	*to = 0;
}

static void expect(struct setup *s, const char *expected)
{
	assert_int_equal(page_flush(&s->w, true), 0);
	s->out[s->len] = 0;
	arrays_as_before(s->out);
	assert_string_equal(s->out, expected);
	s->len = 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_sample(void **state)
{
	static const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 7001, 7002, PERF_CONTEXT_USER, 11, 12 };
	struct setup *s = *state;

	named(s, NOBODY, NOBODY, "program", true);
	named(s, NOBODY, NOBODY + 1, "thread", false);
	assert_int_equal(sample(s, PERF_RECORD_MISC_KERNEL, 100, NOBODY, NOBODY + 1, chain, 6), 0);
	assert_int_equal(sample(s, PERF_RECORD_MISC_USER, 200, NOBODY, NOBODY, chain + 3, 3), 0);
	assert_int_equal(sample(s, PERF_RECORD_MISC_KERNEL, 300, 0, 0, chain, 2), 0);
	expect(s, "100 1073741809 comm=thread tgid=1073741808 mode=kernel ip=0x1b59 kernel=7001 7002 user=11 "
		  "12\n"
		  "200 1073741808 comm=program tgid=1073741808 mode=user ip=0xb kernel= user=11 12\n"
		  "300 0 comm=swapper tgid=0 mode=kernel ip=0x1b59 kernel=7001 user=\n");
	assert_int_equal(s->st.events, 3);
}

/* What the kernel says of a guest's stack, if anything, is none of the host's. */
static void test_guest(void **state)
{
	static const uint64_t chain[] = { PERF_CONTEXT_GUEST_KERNEL, 5, PERF_CONTEXT_GUEST_USER, 6 };
	struct setup *s = *state;

	named(s, NOBODY, NOBODY, "CPU 0/KVM", true);
	assert_int_equal(sample(s, PERF_RECORD_MISC_GUEST_KERNEL, 1, NOBODY, NOBODY, chain, 4), 0);
	s->p->hz = 499;
	assert_int_equal(sample(s, PERF_RECORD_MISC_GUEST_USER, 2, NOBODY, NOBODY, NULL, 0), 0);
	expect(s, "1 1073741808 comm=CPU 0/KVM tgid=1073741808 mode=guest_kernel ip=0x5 kernel= user=\n"
		  "2 1073741808 comm=CPU 0/KVM tgid=1073741808 mode=guest_user ip=0x1234 kernel= user= "
		  "hz=499\n");
}

/* Stacks that are too long for a page lose their outermost frames. */
static void test_deep(void **state)
{
	uint64_t chain[2 * 600];
	struct setup *s = *state;

	chain[0] = PERF_CONTEXT_KERNEL;
	for (size_t i = 1; i < 1200; i++)
		chain[i] = i;
	chain[600] = PERF_CONTEXT_USER;
	named(s, NOBODY, NOBODY, "deep", true);
	assert_int_equal(sample(s, PERF_RECORD_MISC_KERNEL, 1, NOBODY, NOBODY, chain, 1200), 0);
	assert_int_equal(page_flush(&s->w, true), 0);
	arrays_as_before(s->out);
	assert_non_null(strstr(s->out, " 239 240 user=601 "));
	assert_non_null(strstr(s->out, " 839 840\n"));
	assert_int_equal(s->st.bad, 0);
}

static void test_names(void **state)
{
	static const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 1 };
	struct setup *s = *state;
	char expected[128];
	int32_t self = getpid();

	named(s, NOBODY, NOBODY, "parent", false);
	begin_record(s, PERF_RECORD_FORK, 0);
	add_u32(s, NOBODY + 2, NOBODY);
	add_u32(s, NOBODY + 2, NOBODY);
	add_u64(s, 1);
	assert_int_equal(take_at(s, 1), 0);
	sample(s, PERF_RECORD_MISC_KERNEL, 1, NOBODY + 2, NOBODY + 2, chain, 2);
	named(s, NOBODY + 2, NOBODY + 2, "sixteen characters", true);
	sample(s, PERF_RECORD_MISC_KERNEL, 2, NOBODY + 2, NOBODY + 2, chain, 2);
	sample(s, PERF_RECORD_MISC_KERNEL, 3, NOBODY + 3, NOBODY + 3, chain, 2);
	expect(s, "1 1073741810 comm=parent tgid=1073741810 mode=kernel ip=0x1 kernel=1 user=\n"
		  "2 1073741810 comm=sixteen charact tgid=1073741810 mode=kernel ip=0x1 kernel=1 user=\n"
		  "3 1073741811 comm= tgid=1073741811 mode=kernel ip=0x1 kernel=1 user=\n");
	sample(s, PERF_RECORD_MISC_KERNEL, 4, self, self, chain, 2);
	snprintf(expected, sizeof(expected), "4 %d comm=profile tgid=%d mode=kernel ip=0x1 kernel=1 user=\n",
		 self, self);
	expect(s, expected);
}

/* A CPU's records are read after those of another, to which the task went. */
static void test_names_of_two_cpus(void **state)
{
	static const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 1 };
	struct setup *s = *state;

	named(s, NOBODY, NOBODY, "parent", false);
	begin_record(s, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	add_u32(s, NOBODY + 2, NOBODY + 2);
	add_text(s, "program");
	assert_int_equal(take_at(s, 300), 0);
	begin_record(s, PERF_RECORD_FORK, 0);
	add_u32(s, NOBODY + 2, NOBODY);
	add_u32(s, NOBODY + 2, NOBODY);
	add_u64(s, 100);
	assert_int_equal(take_at(s, 100), 0);
	begin_record(s, PERF_RECORD_COMM, 0);
	add_u32(s, NOBODY + 2, NOBODY + 2);
	add_text(s, "earlier");
	assert_int_equal(take_at(s, 200), 0);
	sample(s, PERF_RECORD_MISC_KERNEL, 400, NOBODY + 2, NOBODY + 2, chain, 2);
	expect(s, "400 1073741810 comm=program tgid=1073741810 mode=kernel ip=0x1 kernel=1 user=\n");
}

/* The kernel's own build id, and a process that lives, whose maps come before its first sample in user mode.
 */
static void test_maps(void **state)
{
	static const uint64_t chain[] = { PERF_CONTEXT_USER, 1 };
	static const uint8_t id[24] = { 4, 0, 0, 0, 0xab, 0xcd, 0xef, 0x01 };
	struct setup *s = *state;
	int32_t self = getpid();
	uint8_t own[20];
	char line[64];
	int fd;

	begin_record(s, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	add_u32(s, NOBODY, NOBODY);
	add_u64(s, 0x400000);
	add_u64(s, 0x1000);
	add_u64(s, 0x2000);
	buf_add(&s->rec, id, sizeof(id));
	add_u64(s, 0);
	add_text(s, "/bin/program");
	assert_int_equal(take_at(s, 50), 0);
	expect(s, "50 1073741808 tgid=1073741808 from=0x400000 len=0x1000 offset=0x2000 build_id=abcdef01 "
		  "path=/bin/program\n");

	sample(s, PERF_RECORD_MISC_USER, 60, self, self, chain, 2);
	sample(s, PERF_RECORD_MISC_USER, 61, self, self, chain, 2);
	assert_int_equal(page_flush(&s->w, true), 0);
	fd = open("/proc/self/exe", O_RDONLY);
	assert_int_equal(build_id_read(fd, own), 20);
	close(fd);
	snprintf(line, sizeof(line), "build_id=%02x%02x%02x%02x", own[0], own[1], own[2], own[3]);
	assert_non_null(strstr(s->out, line));
	assert_non_null(strstr(s->out, "/tests/unit/profile\n"));
	assert_non_null(strstr(strstr(s->out, "60 "), "[vdso]"));
	assert_null(strstr(strstr(s->out, "mode=user"), "path="));
}

static void test_lost(void **state)
{
	static const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 1 };
	struct setup *s = *state;

	sample(s, PERF_RECORD_MISC_KERNEL, 1, 0, 0, chain, 2);
	begin_record(s, PERF_RECORD_LOST, 0);
	add_u64(s, 99);
	add_u64(s, 7);
	assert_int_equal(take_at(s, 1), 0);
	sample(s, PERF_RECORD_MISC_KERNEL, 2, 0, 0, chain, 2);
	begin_record(s, PERF_RECORD_THROTTLE, 0);
	add_u64(s, 1);
	add_u64(s, 1);
	add_u64(s, 1);
	assert_int_equal(take_at(s, 1), 0);
	sample(s, PERF_RECORD_MISC_KERNEL, 3, 0, 0, chain, 2);
	expect(s, "1 0 comm=swapper tgid=0 mode=kernel ip=0x1 kernel=1 user=\n"
		  "lost 7\n"
		  "2 0 comm=swapper tgid=0 mode=kernel ip=0x1 kernel=1 user=\n"
		  "lost 0\n"
		  "3 0 comm=swapper tgid=0 mode=kernel ip=0x1 kernel=1 user=\n");
	assert_int_equal(s->st.lost, 8);
}

/* Of each record every beginning; and a chain that claims to be longer than its record. */
static void test_damaged(void **state)
{
	static const uint32_t types[] = { PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2, PERF_RECORD_COMM,
					  PERF_RECORD_FORK,   PERF_RECORD_LOST,	 PERF_RECORD_THROTTLE };
	struct setup *s = *state;

	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		for (size_t len = sizeof(struct perf_event_header); len < 128; len++) {
			struct perf_event_header *h;

			begin_record(s, types[t], PERF_RECORD_MISC_MMAP_BUILD_ID);
			while (s->rec.len < len)
				buf_add(&s->rec, "\x7f", 1);
			h = malloc(len); /* what is behind it is not read */
			memcpy(h, s->rec.data, len);
			h->size = (uint16_t)len;
			assert_int_equal(profile_take(s->p, h, len, &s->w, &s->st), 0);
			free(h);
		}
	assert_true(s->st.bad > 100);
	assert_int_equal(s->st.events, 0);
	assert_true(s->st.lost >= s->st.bad);
}

static void test_build_id(void **state)
{
	uint8_t id[20];
	int fd = open("/proc/self/status", O_RDONLY);

	assert_int_equal(build_id_read(fd, id), 0);
	close(fd);
	assert_int_equal(build_id_read(-1, id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sample, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_guest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_deep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_of_two_cpus, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_maps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
		cmocka_unit_test(test_build_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
