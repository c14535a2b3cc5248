// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pages written by page_write and read back by page_next and by libtraceevent's kbuffer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <traceevent/kbuffer.h>

#include "base/array.h"
#include "base/buf.h"
#include "file/dat/page.h"

#define PAGE_MAX 65536

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: char overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

static uint64_t rnd_state;

static uint64_t rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state;
}

/* ---- header_page ---------------------------------------------------------- */

static void layout_of_mainline(void **state)
{
	struct page_layout l;

	assert_int_equal(page_layout_parse(header_page, strlen(header_page), &l), 0);
	assert_memory_equal(&l, &page_layout_default, sizeof(l));
}

static void layout_of_early_android(void **state)
{
	static const char text[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				   "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				   "\tfield: char data;\toffset:16;\tsize:16368";
	struct page_layout l;

	assert_int_equal(page_layout_parse(text, strlen(text), &l), 0);
	assert_int_equal(l.size, 16384);
	assert_int_equal(l.data_offset, 16);
	assert_int_equal(l.commit_offset, 8);
}

static void layout_of_32_bits(void **state)
{
	static const char text[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				   "\tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n"
				   "\tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n";
	struct page_layout l;

	assert_int_equal(page_layout_parse(text, strlen(text), &l), 0);
	assert_int_equal(l.commit_size, 4);
	assert_int_equal(l.data_offset, 12);
	assert_int_equal(l.size, 4096);
}

static void layout_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"no fields here",
		"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n",
		"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n",
		"\tfield: local_t commit;\toffset:8;\tsize:3;\n\tfield: char "
		"data;\toffset:16;\tsize:4080;\n",
		"\tfield: local_t commit;\toffset:8;\tsize:8;\n\tfield: char "
		"data;\toffset:8;\tsize:4080;\n",
		"\tfield: local_t commit;\toffset:8;\tsize:8;\n\tfield: char "
		"data;\toffset:16;\tsize:0;\n",
		"\tfield: local_t commit;\toffset:8;\tsize:8;\n\tfield: char "
		"data;\toffset:16;\tsize:99999999999999;\n",
		"\tfield: u64 timestamp;\toffset:4;\tsize:8;\n\tfield: local_t "
		"commit;\toffset:12;\tsize:8;\n"
		"\tfield: char data;\toffset:20;\tsize:4080;\n",
	};
	struct page_layout l;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(page_layout_parse(bad[i], strlen(bad[i]), &l), -EBADMSG);
}

/* ---- round trips ------------------------------------------------------------ */

struct rec {
	uint64_t ts;
	uint64_t lost; /* before it; UINT64_MAX: unknown number */
	size_t len;
	uint8_t data[256];
};

struct sink {
	struct buf pages;
	size_t size;
};

static int keep_page(void *ctx, const void *page, size_t size)
{
	struct sink *s = ctx;

	assert_int_equal(size, s->size);
	buf_add(&s->pages, page, size);
	return 0;
}

static void write_recs(struct sink *s, const struct rec *recs, size_t n)
{
	struct page_writer w;

	assert_int_equal(page_writer_init(&w, s->size, keep_page, s), 0);
	for (size_t i = 0; i < n; i++) {
		if (recs[i].lost)
			assert_int_equal(page_write_lost(&w, recs[i].lost == UINT64_MAX ? 0 : recs[i].lost),
					 0);
		assert_int_equal(page_write(&w, recs[i].ts, recs[i].data, recs[i].len), 0);
		if (!(rnd() % 16))
			assert_non_null(page_writer_peek(&w));
	}
	assert_int_equal(page_flush(&w, true), 0);
	assert_null(page_writer_peek(&w));
	page_writer_release(&w);
	assert_int_equal(s->pages.len % s->size, 0);
}

static size_t padded(size_t len)
{
	return len ? (len + 3) & ~(size_t)3 : 4;
}

static void check_rec(const struct rec *want, uint64_t ts, const void *data, size_t len)
{
	static const uint8_t zeros[4];

	assert_int_equal(ts, want->ts);
	assert_int_equal(len, padded(want->len));
	assert_memory_equal(data, want->data, want->len);
	assert_memory_equal((const uint8_t *)data + want->len, zeros, len - want->len);
}

static void check_with_reader(const struct sink *s, const struct rec *recs, size_t n)
{
	struct page_layout l = page_layout_default;
	size_t i = 0;

	l.size = (unsigned int)s->size;
	for (size_t at = 0; at < s->pages.len; at += s->size) {
		struct page_reader r;
		struct page_event ev;
		uint64_t lost;

		assert_int_equal(page_reader_init(&r, &l, s->pages.data + at, s->size), 0);
		lost = !r.missed ? 0 : r.missed_count ? r.missed_count : UINT64_MAX;
		while (page_next(&r, &ev) == 1) {
			assert_true(i < n);
			assert_int_equal(recs[i].lost, lost);
			check_rec(&recs[i++], ev.ts, ev.data, ev.len);
			lost = 0;
		}
		assert_int_equal(page_next(&r, &ev), 0);
	}
	assert_int_equal(i, n);
}

static void check_with_kbuffer(const struct sink *s, const struct rec *recs, size_t n)
{
	struct kbuffer *k = kbuffer_alloc(KBUFFER_LSIZE_8, KBUFFER_ENDIAN_SAME_AS_HOST);
	size_t i = 0;

	for (size_t at = 0; at < s->pages.len; at += s->size) {
		unsigned long long ts;
		void *data;

		assert_int_equal(kbuffer_load_subbuffer(k, s->pages.data + at), 0);
		for (data = kbuffer_read_event(k, &ts); data; data = kbuffer_next_event(k, &ts)) {
			uint64_t lost = recs[i].lost;

			assert_true(i < n);
			assert_int_equal(kbuffer_missed_events(k), lost == UINT64_MAX ? -1 : (int)lost);
			check_rec(&recs[i++], ts, data, (size_t)kbuffer_event_size(k));
		}
	}
	assert_int_equal(i, n);
	kbuffer_free(k);
}

static struct rec random_rec(uint64_t ts)
{
	static const uint64_t steps[] = {
		1,	    100,       5000, 1ull << 27, (1ull << 27) - 1, 1ull << 35, (1ull << 59) - 1,
		1ull << 59, 1ull << 61
	};
	uint64_t pick = rnd() % 64;
	struct rec r = { .len = rnd() % 2 ? rnd() % 24 : rnd() % sizeof(r.data) };

	r.ts = pick < ARRAY_SIZE(steps) ? ts + steps[pick] : ts + rnd() % 20000;
	if (pick == 20) /* back */
		r.ts = ts - rnd() % 1000000;
	if (pick == 21)
		r.lost = 1 + rnd() % 100000;
	if (pick == 22)
		r.lost = UINT64_MAX;
	for (size_t i = 0; i < r.len; i++)
		r.data[i] = (uint8_t)rnd();
	return r;
}

static void random_streams(void **state)
{
	static const size_t sizes[] = { 512, 4096, 16384, PAGE_MAX };
	enum { N = 4000 };
	struct rec *recs = calloc(N, sizeof(*recs));

	for (rnd_state = 1; rnd_state < 20; rnd_state++) {
		uint64_t keep = rnd_state, ts = rnd() >> 20;
		struct sink s = { .size = sizes[keep % ARRAY_SIZE(sizes)] };

		for (size_t i = 0; i < N; i++) {
			recs[i] = random_rec(ts);
			ts = recs[i].ts;
		}
		write_recs(&s, recs, N);
		check_with_reader(&s, recs, N);
		check_with_kbuffer(&s, recs, N);
		buf_release(&s.pages);
		rnd_state = keep;
	}
	free(recs);
}

/* ---- single facts -------------------------------------------------------------- */

static int count_page(void *ctx, const void *page, size_t size)
{
	++*(int *)ctx;
	return 0;
}

static int refuse_page(void *ctx, const void *page, size_t size)
{
	return -ENOSPC;
}

static void longest_record(void **state)
{
	uint8_t data[4096] = { 1 };
	struct page_writer w;
	int pages = 0;

	assert_int_equal(page_writer_init(&w, 4096, count_page, &pages), 0);
	assert_int_equal(page_max_record(4096), 4064);
	assert_int_equal(page_write(&w, 1, data, 4065), -EMSGSIZE);
	assert_int_equal(page_write_lost(&w, 7), 0);
	assert_int_equal(page_write(&w, 1, data, 4064), 0);
	assert_int_equal(page_write(&w, 2, data, 1), 0);
	assert_int_equal(pages, 1);
	assert_int_equal(page_flush(&w, false), 0);
	assert_int_equal(pages, 2);
	page_writer_release(&w);
}

static void errors_passed_on(void **state)
{
	struct page_writer w;

	assert_int_equal(page_writer_init(&w, 16, refuse_page, NULL), -EINVAL);
	assert_int_equal(page_writer_init(&w, 4096, refuse_page, NULL), 0);
	assert_int_equal(page_write(&w, 10, "abcd", 4), 0);
	assert_int_equal(page_write(&w, 9, "abcd", 4), -ENOSPC);
	page_writer_release(&w);
}

static void losses_add_up(void **state)
{
	struct sink s = { .size = 4096 };
	struct page_reader r;
	struct page_writer w;

	assert_int_equal(page_writer_init(&w, s.size, keep_page, &s), 0);
	assert_int_equal(page_write_lost(&w, 3), 0);
	assert_int_equal(page_write_lost(&w, 4), 0);
	assert_int_equal(page_flush(&w, false), 0);
	assert_int_equal(s.pages.len, 0);
	assert_int_equal(page_flush(&w, true), 0); /* an empty page that says so */
	assert_int_equal(s.pages.len, 4096);
	assert_int_equal(page_reader_init(&r, &page_layout_default, s.pages.data, 4096), 0);
	assert_true(r.missed);
	assert_int_equal(r.missed_count, 7);
	assert_ptr_equal(r.p, r.end);

	assert_int_equal(page_write_lost(&w, 3), 0);
	assert_int_equal(page_write_lost(&w, 0), 0);
	assert_int_equal(page_write_lost(&w, 5), 0);
	assert_int_equal(page_flush(&w, true), 0);
	assert_int_equal(page_reader_init(&r, &page_layout_default, s.pages.data + 4096, 4096), 0);
	assert_true(r.missed);
	assert_int_equal(r.missed_count, 0);
	buf_release(&s.pages);
	page_writer_release(&w);
}

/* A page as the hypervisor writes it: type_len 0, lengths not rounded, 59-bit step backwards. */
static void unrounded_records(void **state)
{
	uint8_t page[4096] = { 0 };
	const uint64_t ts = 117778655000, back = 107831066512;
	const uint64_t delta = (back - ts) & ((1ull << 59) - 1);
	const uint32_t words[] = { 30 | (uint32_t)delta << 5, (uint32_t)(delta >> 27) };
	const uint32_t heads[] = { 0, 7 + 4 };
	const uint64_t commit = 15 + 8 + 15;
	struct page_reader r;
	struct page_event ev;

	memcpy(page, &ts, 8);
	memcpy(page + 8, &commit, 8);
	memcpy(page + 16, heads, 8);
	memcpy(page + 24, "first..", 7);
	memcpy(page + 31, words, 8);
	memcpy(page + 39, heads, 8);
	memcpy(page + 47, "second.", 7);
	assert_int_equal(page_reader_init(&r, &page_layout_default, page, sizeof(page)), 0);
	assert_int_equal(page_next(&r, &ev), 1);
	assert_int_equal(ev.ts, ts);
	assert_int_equal(ev.len, 7);
	assert_memory_equal(ev.data, "first..", 7);
	assert_int_equal(page_next(&r, &ev), 1);
	assert_int_equal(ev.ts, back + (1ull << 59));
	assert_memory_equal(ev.data, "second.", 7);
	assert_int_equal(page_next(&r, &ev), 0);
}

/* Padding in the middle (a discarded event), an absolute stamp, padding to the end. */
static void padding_and_stamps(void **state)
{
	const uint32_t words[] = {
		2 | 10 << 5,   1,  2,		/* 8 bytes, 10 ns later */
		29 | 1 << 5,   12, 0,  0,	/* discarded, 12 bytes of it counted by array[0] */
		31 | 500 << 5, 3,		/* absolute: 3 << 27 | 500 */
		1 | 5 << 5,    42, 29, 0, 0, 0, /* then nothing */
	};
	const uint64_t ts = 1000, commit = sizeof(words) | 0xffffffff80000000;
	uint8_t page[4096] = { 0 };
	struct page_reader r;
	struct page_event ev;

	memcpy(page, &ts, 8);
	memcpy(page + 8, &commit, 8);
	memcpy(page + 16, words, sizeof(words));
	assert_int_equal(page_reader_init(&r, &page_layout_default, page, sizeof(page)), 0);
	assert_true(r.missed);
	assert_int_equal(r.missed_count, 0);
	assert_int_equal(page_next(&r, &ev), 1);
	assert_int_equal(ev.ts, 1010);
	assert_int_equal(ev.len, 8);
	assert_int_equal(page_next(&r, &ev), 1);
	assert_int_equal(ev.ts, (3ull << 27) + 500 + 5);
	assert_int_equal(ev.len, 4);
	assert_int_equal(page_next(&r, &ev), 0);
}

static void corrupt_pages(void **state)
{
	static const uint32_t bad[][2] = {
		{ 28, 0 }, /* runs over the end */
		{ 0, 3 },  /* array[0] does not even count itself */
		{ 0, 0xfffffff0 },
		{ 29 | 1 << 5, 0 }, /* padding of no length */
		{ 29 | 1 << 5, 4000 },
	};
	uint8_t page[4096] = { 0 };
	struct page_reader r;
	struct page_event ev;
	uint64_t commit = 8;

	memcpy(page + 8, &commit, 8);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memcpy(page + 16, bad[i], 8);
		assert_int_equal(page_reader_init(&r, &page_layout_default, page, sizeof(page)), 0);
		assert_int_equal(page_next(&r, &ev), -EBADMSG);
		assert_int_equal(page_next(&r, &ev), 0);
	}
	commit = 4;
	memcpy(page + 8, &commit, 8);
	memcpy(page + 16, &(uint32_t){ 30 }, 4); /* a time extend cut off */
	assert_int_equal(page_reader_init(&r, &page_layout_default, page, sizeof(page)), 0);
	assert_int_equal(page_next(&r, &ev), -EBADMSG);

	commit = 4081;
	memcpy(page + 8, &commit, 8);
	assert_int_equal(page_reader_init(&r, &page_layout_default, page, sizeof(page)), -EBADMSG);
	assert_int_equal(page_reader_init(&r, &page_layout_default, page, 15), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_of_mainline), cmocka_unit_test(layout_of_early_android),
		cmocka_unit_test(layout_of_32_bits),  cmocka_unit_test(layout_refused),
		cmocka_unit_test(random_streams),     cmocka_unit_test(longest_record),
		cmocka_unit_test(errors_passed_on),   cmocka_unit_test(losses_add_up),
		cmocka_unit_test(unrounded_records),  cmocka_unit_test(padding_and_stamps),
		cmocka_unit_test(corrupt_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
