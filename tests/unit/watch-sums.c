// SPDX-License-Identifier: LGPL-2.1-or-later
/* Text of the kernel's histograms, and what becomes of their entries from look to look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "record/watch/watch-sums.h"
#include "base/buf.h"

/* ---- the text --------------------------------------------------------------------------------- */

struct taken {
	struct hist_entry v[8];
	size_t n;
};

static int take_one(void *ctx, const struct hist_entry *e)
{
	struct taken *t = ctx;

	if (t->n == 8)
		return -1;
	t->v[t->n++] = *e;
	return 0;
}

/* As Linux 7.3 in the lab shows them; the first name is another program's own choice. */
static const char lab_text[] =
	"# event histogram\n#\n"
	"# trigger info: hist:keys=pid,by:vals=hitcount,lat:sort=hitcount:size=2048 [active]\n#\n\n"
	"{ pid:        112, by: a } hit: 9                                         } hitcount:         89  "
	"lat: 1598159623\n"
	"{ pid:        113, by: kworker/u18:1                                      } hitcount:          1  "
	"lat:     376289\n"
	"\nTotals:\n    Hits: 113\n    Entries: 13\n    Dropped: 2\n\n\n"
	"# event histogram\n#\n"
	"# trigger info: hist:keys=pid:vals=hitcount,lat:sort=hitcount:size=2048 if prev != 0 [active]\n#\n\n"
	"{ pid:        113 } hitcount:          8  lat:   38314376\n"
	"\nTotals:\n    Hits: 113\n    Entries: 1\n    Dropped: 5\n"
	"{ pid:        112, ec:         24, lat: ~ 2^9  } hitcount:          3  lat:       1400\n";

static void test_text(void **state)
{
	struct hist_totals totals = { 0 };
	struct taken t = { 0 };

	assert_int_equal(hist_text_read(lab_text, sizeof(lab_text) - 1, take_one, &t, &totals), 0);
	assert_int_equal(t.n, 4);
	assert_int_equal(t.v[0].pid, 112);
	assert_string_equal(t.v[0].key, "by");
	assert_string_equal(t.v[0].word, "a } hit: 9");
	assert_int_equal(t.v[0].hits, 89);
	assert_int_equal(t.v[0].lat, 1598159623);
	assert_string_equal(t.v[1].word, "kworker");
	assert_string_equal(t.v[2].key, "");
	assert_int_equal(t.v[2].hits, 8);
	assert_true(t.v[2].filtered && !t.v[1].filtered);
	assert_string_equal(t.v[3].key, "ec");
	assert_int_equal(t.v[3].number, 24);
	assert_int_equal(t.v[3].log2, 9);
	assert_int_equal(totals.entries, 13);
	assert_int_equal(totals.dropped, 7);
	assert_int_equal(totals.bad, 0);
}

/* A name of at most 15 bytes, padded as the kernel does. */
static void add_named(struct buf *b, const char *name)
{
	buf_printf(b, "{ pid:          7, by: %-50s } hitcount:          1  lat:         10\n", name);
}

static void test_hostile_names(void **state)
{
	static const char *const names[][2] = {
		{ "\n{ pid: 9 } hit", "?{ pid: 9 } hit" },
		{ "\x1b[2J\xff\"\\", "?[2J?\"\\" },
		{ "Stra\xc3\x9f"
		  "e",
		  "Stra\xc3\x9f"
		  "e" },
		{ "    Dropped: 99", "    Dropped: 99" },
		{ "cut \xe2\x82", "cut ??" },
		{ "", "" },
	};
	struct hist_totals totals = { 0 };
	struct taken t = { 0 };
	struct buf b = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		add_named(&b, names[i][0]);
	assert_int_equal(hist_text_read(b.data, b.len, take_one, &t, &totals), 0);
	assert_int_equal(t.n, sizeof(names) / sizeof(*names));
	for (size_t i = 0; i < t.n; i++) {
		assert_int_equal(t.v[i].pid, 7);
		assert_string_equal(t.v[i].word, names[i][1]);
	}
	assert_int_equal(totals.dropped + totals.bad + totals.entries, 0);
	buf_release(&b);
}

static void test_bad_text(void **state)
{
	static const char *const lines[] = {
		"{ pid: }\n",
		"{ pid: 99999999999999999999 } hitcount: 1  lat: 1\n",
		"{ pid: 1, lat: ~ 2^65 } hitcount: 1  lat: 1\n",
		"{ pid: 1, by: short } hitcount: 1  lat: 1\n",
		"{ pid: 1, much-too-long: 1 } hitcount: 1  lat: 1\n",
		"{ pid: 1, a: 1, b: 2 } hitcount: 1  lat: 1\n",
		"{ pid: 1 } hitcount: 1\n",
		"{ pid: 1 } hitcount: 1  lat: x",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct hist_totals totals = { 0 };
		struct taken t = { 0 };

		assert_int_equal(hist_text_read(lines[i], strlen(lines[i]), take_one, &t, &totals), 0);
		assert_int_equal(t.n, 0);
		assert_int_equal(totals.bad, 1);
	}
}

/* ---- the sums --------------------------------------------------------------------------------- */

static void add_by(struct watch_sums *s, int pid, const char *name, uint64_t ns)
{
	struct hist_entry e = { .pid = (uint64_t)pid, .key = "by", .hits = 1, .lat = ns };

	snprintf(e.word, sizeof(e.word), "%s", name);
	assert_int_equal(watch_sums_add(s, WATCH_BY, &e), 0);
}

static void add_stolen(struct watch_sums *s, int pid, uint64_t ns)
{
	struct hist_entry e = { .pid = (uint64_t)pid, .hits = 1, .lat = ns };

	assert_int_equal(watch_sums_add(s, WATCH_STOLEN, &e), 0);
}

/* ns in the series of a name; that of all others: WATCH_OTHERS. 0 too: it has none. */
static uint64_t series_of(const struct watch_sums *s, int pid, const char *name)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct watch_sum *one = &s->v[i];

		if (one->pid != pid)
			continue;
		if (one->kind == WATCH_STOLEN && !strcmp(name, WATCH_OTHERS))
			return one->rest;
		if (one->kind == WATCH_BY && one->shown && !strcmp(name, one->word))
			return one->all.ns - one->from;
	}
	return 0;
}

/* No series falls, and what all have is what was stolen. */
static void test_names(void **state)
{
	static const struct watch_vcpu vcpus[] = { { 7, 0, "a" } };
	struct watch_sums s = { 0 };

	watch_sums_begin(&s);
	add_stolen(&s, 7, 1111);
	add_by(&s, 7, "a", 1000);
	add_by(&s, 7, "b", 100);
	add_by(&s, 7, "c", 10);
	add_by(&s, 7, WATCH_OTHERS, 1);
	assert_int_equal(watch_sums_settle(&s, vcpus, 1, 2), 0);
	assert_int_equal(series_of(&s, 7, "a"), 1000);
	assert_int_equal(series_of(&s, 7, "b"), 100);
	assert_int_equal(series_of(&s, 7, "c"), 0);
	assert_int_equal(series_of(&s, 7, WATCH_OTHERS), 11);

	/* c takes most now: it gets a series with what it took since, and b's 100 ns do not go to the others
	 */
	watch_sums_begin(&s);
	add_stolen(&s, 7, 6122);
	add_by(&s, 7, "a", 1010);
	add_by(&s, 7, "b", 101);
	add_by(&s, 7, "c", 5010);
	add_by(&s, 7, WATCH_OTHERS, 1);
	assert_int_equal(watch_sums_settle(&s, vcpus, 1, 2), 0);
	assert_int_equal(series_of(&s, 7, "a"), 1010);
	assert_int_equal(series_of(&s, 7, "b"), 0);
	assert_int_equal(series_of(&s, 7, "c"), 5000);
	assert_int_equal(series_of(&s, 7, WATCH_OTHERS), 12);

	/* emptied: the kernel begins at 0, the sums do not */
	watch_sums_emptied(&s);
	watch_sums_begin(&s);
	add_stolen(&s, 7, 5);
	add_by(&s, 7, "a", 5);
	assert_int_equal(watch_sums_settle(&s, vcpus, 1, 2), 0);
	assert_int_equal(series_of(&s, 7, "a"), 1015);
	assert_int_equal(series_of(&s, 7, "c"), 5000);

	/* the vCPU has gone */
	watch_sums_begin(&s);
	assert_int_equal(watch_sums_settle(&s, NULL, 0, 2), 0);
	assert_int_equal(s.n, 0);
	watch_sums_release(&s);
}

static void test_buckets(void **state)
{
	static const struct {
		int log2;
		unsigned int bucket;
	} rows[] = {
		{ 0, 0 }, { 10, 0 }, { 11, 1 }, { 12, 1 }, { 13, 2 }, { 32, 11 }, { 33, 12 }, { 64, 12 }
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct hist_entry e = { .pid = 7, .key = "ec", .number = 1, .log2 = rows[i].log2, .hits = 3 };
		struct watch_sums s = { 0 };

		assert_int_equal(watch_sums_add(&s, WATCH_EXIT, &e), 0);
		assert_int_equal(s.v[0].all.buckets[rows[i].bucket], 3);
		assert_true(rows[i].bucket == WATCH_BUCKETS - 1 || rows[i].log2 == 64 ||
			    1ull << rows[i].log2 <= WATCH_BOUND_NS(rows[i].bucket));
		watch_sums_release(&s);
	}
}

/* 10,000 names, some of two vCPUs: the sums stay bounded, and exits find room still. */
static void test_many_names(void **state)
{
	static const struct watch_vcpu vcpus[] = { { 7, 0, "a" }, { 8, 1, "a" } };
	struct hist_entry e = { .pid = 8, .key = "ec", .number = 1, .log2 = 12, .hits = 1, .lat = 4096 };
	struct watch_sums s = { 0 };
	char name[16];

	watch_sums_begin(&s);
	add_stolen(&s, 7, 10000);
	for (unsigned int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		add_by(&s, 7, name, 1);
	}
	assert_int_equal(watch_sums_add(&s, WATCH_EXIT, &e), 0);
	assert_int_equal(watch_sums_settle(&s, vcpus, 2, 10), 0);
	assert_int_equal(series_of(&s, 7, WATCH_OTHERS), 9990);
	assert_int_equal(s.v[s.n - 1].kind, WATCH_EXIT);
	assert_int_equal(s.no_room + s.n, 10002);
	assert_in_range(s.n, 100, 8193);
	watch_sums_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),	 cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_bad_text), cmocka_unit_test(test_names),
		cmocka_unit_test(test_buckets),	 cmocka_unit_test(test_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
