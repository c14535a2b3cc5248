// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tree of stacks: names, order, weights, its limit; folded text; the picture; symbols. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ask/flame/flame.h"
#include "ask/flame/flame-priv.h"
#include "base/array.h"

/* ---- helpers ---------------------------------------------------------------------------- */

/* A stack "a;b;c", as it is, which weighs n. */
static void add(struct flame_tree *t, size_t side, const char *stack, uint64_t n)
{
	uint32_t frame = FLAME_ROOT, name;

	for (;; stack++) {
		size_t len = strcspn(stack, ";");

		assert_int_equal(flame_tree_name(t, stack, len, &name), 0);
		assert_int_equal(flame_tree_child(t, frame, name, &frame), 0);
		stack += len;
		if (!*stack)
			break;
	}
	flame_tree_add(t, frame, side, FLAME_SAMPLES, n);
}

static int fold_line(void *ctx, const char *stack, const uint64_t self[FLAME_SIDES])
{
	buf_printf(ctx, "%s %llu %llu\n", stack, (unsigned long long)self[0], (unsigned long long)self[1]);
	return 0;
}

static void assert_folded(const struct flame_tree *t, const char *expected)
{
	struct buf b = { 0 };

	assert_int_equal(flame_fold(t, FLAME_SAMPLES, fold_line, &b), 0);
	assert_string_equal(buf_str(&b), expected);
	buf_release(&b);
}

static struct flame_tree *tree(size_t max)
{
	struct flame_tree *t;

	assert_int_equal(flame_tree_new(&t, max), 0);
	return t;
}

/* ---- the tree ---------------------------------------------------------------------------- */

static void test_order(void **state)
{
	struct flame_tree *t = tree(FLAME_FRAMES_MAX);

	add(t, 0, "b;y", 1);
	add(t, 0, "b;x;z", 2);
	add(t, 1, "a", 3);
	add(t, 0, "b", 4);
	add(t, 0, "b;y", 5);
	assert_folded(t, "a 0 3\n"
			 "b 4 0\n"
			 "b;x;z 2 0\n"
			 "b;y 6 0\n");
	assert_int_equal(flame_tree_total(t, 0, FLAME_SAMPLES), 12);
	assert_int_equal(flame_tree_total(t, 1, FLAME_SAMPLES), 3);
	assert_int_equal(flame_tree_total(t, 0, FLAME_NS), 0);
	flame_tree_add(t, FLAME_ROOT, 0, FLAME_NS, UINT64_MAX);
	flame_tree_add(t, FLAME_ROOT, 0, FLAME_NS, 2);
	assert_int_equal(flame_tree_total(t, 0, FLAME_NS), UINT64_MAX);
	flame_tree_free(t);
}

static int frame_line(void *ctx, const struct flame_frame *f, const uint64_t *begin)
{
	buf_printf(ctx, "%zu %s %d+%d/%d\n", f->depth, f->name, (int)begin[0], (int)f->self[0],
		   (int)f->total[0]);
	return 0;
}

static void test_walk(void **state)
{
	struct flame_tree *t = tree(FLAME_FRAMES_MAX);
	struct buf b = { 0 };

	add(t, 0, "b;y", 1);
	add(t, 0, "b;x;z", 2);
	add(t, 0, "b", 4);
	add(t, 0, "c;none", 0);
	add(t, 0, "a", 8);
	assert_int_equal(flame_tree_walk(t, FLAME_SAMPLES, frame_line, &b), 0);
	assert_string_equal(buf_str(&b), "1 a 0+8/8\n"
					 "1 b 8+4/7\n"
					 "2 x 12+0/2\n"
					 "3 z 12+2/2\n"
					 "2 y 14+1/1\n");
	buf_release(&b);
	flame_tree_free(t);
}

static void test_names(void **state)
{
	static const struct {
		const char *name, *clean;
	} rows[] = {
		{ "plain", "plain" },
		{ "a;b", "a:b" },
		{ " two words ", "two words" },
		{ "", FLAME_UNKNOWN },
		{ "   ", FLAME_UNKNOWN },
		{ "tab\tnewline\nescape\x1b[31m", "tab?newline?escape?[31m" },
		{ "\xc3\xa4\xff\xc3", "\xc3\xa4??" },
		{ "left\xe2\x80\xae", "left?" },
	};
	struct flame_tree *t = tree(FLAME_FRAMES_MAX);
	char longer[400], cut[300] = { 0 };
	uint32_t frame, again;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(flame_tree_named(t, FLAME_ROOT, rows[i].name, &frame), 0);
		assert_int_equal(flame_tree_named(t, FLAME_ROOT, rows[i].clean, &again), 0);
		assert_int_equal(frame, again);
	}
	/* not in the middle of a letter */
	memset(longer, 'x', sizeof(longer));
	memcpy(longer + 254, "\xc3\xa4", 3);
	memset(cut, 'x', 254);
	assert_int_equal(flame_tree_named(t, FLAME_ROOT, longer, &frame), 0);
	assert_int_equal(flame_tree_named(t, FLAME_ROOT, cut, &again), 0);
	assert_int_equal(frame, again);
	flame_tree_free(t);
}

/* Beyond the limit, of frames as of names, nothing is lost but where it was. */
static void test_limit(void **state)
{
	struct flame_tree *t = tree(5);
	char stack[64];

	add(t, 0, "a;b", 1);
	for (int i = 0; i < 100; i++) {
		snprintf(stack, sizeof(stack), "a;b;f%d;deep;er", i);
		add(t, 0, stack, 1);
	}
	add(t, 1, "a;b", 2);
	assert_folded(t, "[others] 100 0\n"
			 "a;b 1 2\n");
	assert_int_equal(flame_tree_others(t, 0, FLAME_SAMPLES), 100);
	assert_int_equal(flame_tree_others(t, 1, FLAME_SAMPLES), 0);
	flame_tree_free(t);
}

/* Many, in another order: the tables grow, and what comes out is the same. */
static void test_many(void **state)
{
	struct flame_tree *one = tree(FLAME_FRAMES_MAX), *other = tree(FLAME_FRAMES_MAX);
	struct buf a = { 0 }, b = { 0 };
	char stack[64];

	for (unsigned int i = 0; i < 20000; i++) {
		unsigned int k = i * 7919u % 20000;

		snprintf(stack, sizeof(stack), "m;%u;%u;%u", i % 7, i % 501, i);
		add(one, 0, stack, i);
		snprintf(stack, sizeof(stack), "m;%u;%u;%u", k % 7, k % 501, k);
		add(other, 0, stack, k);
	}
	assert_int_equal(flame_fold(one, FLAME_SAMPLES, fold_line, &a), 0);
	assert_int_equal(flame_fold(other, FLAME_SAMPLES, fold_line, &b), 0);
	assert_string_equal(buf_str(&a), buf_str(&b));
	buf_release(&a);
	buf_release(&b);
	flame_tree_free(one);
	flame_tree_free(other);
}

static void test_scaled(void **state)
{
	assert_int_equal(flame_scaled(10, 100, 50), 5);
	assert_int_equal(flame_scaled(1, 3, 2), 0);
	assert_int_equal(flame_scaled(7, 0, 2), 0);
	assert_int_equal(flame_scaled(UINT64_MAX, UINT64_MAX, 12), 12);
}

/* ---- the picture ----------------------------------------------------------------------------- */

static void test_svg(void **state)
{
	struct flame_tree *t = tree(FLAME_FRAMES_MAX);
	struct flame_picture p = { t, FLAME_SAMPLES, "a <title> & more", "about", false };
	struct buf b = { 0 };
	uint64_t hidden;

	add(t, 0, "host;task;std::vector<int>&", 19999);
	add(t, 0, "host;task;narrow;er", 1);
	add(t, 0, "guest:\"x\xef\xbf\xbf;task", 20000);
	assert_int_equal(flame_svg(&p, &b, &hidden), 0);
	assert_int_equal(hidden, 2);
	assert_non_null(strstr(buf_str(&b), "a &lt;title&gt; &amp; more"));
	assert_non_null(
		strstr(buf_str(&b), "<title>std::vector&lt;int&gt;&amp;\n19999 samples, 50.00 %</title>"));
	assert_non_null(
		strstr(buf_str(&b), "<title>guest:&quot;x\xef\xbf\xbd\n20000 samples, 50.00 %</title>"));
	b.len = 0;
	add(t, 1, "host;task;only after", 1);
	p.diff = true;
	assert_int_equal(flame_svg(&p, &b, &hidden), 0);
	assert_non_null(strstr(buf_str(&b), "<title>only after\n0 samples, 0.00 % before; 1 samples, "
					    "100.00 % after: +100.00</title>"));
	buf_release(&b);
	flame_tree_free(t);
	/* nothing at all */
	t = tree(FLAME_FRAMES_MAX);
	p = (struct flame_picture){ t, FLAME_NS, "", "", true };
	assert_int_equal(flame_svg(&p, &b, &hidden), 0);
	buf_release(&b);
	flame_tree_free(t);
}

/* ---- symbols ------------------------------------------------------------------------------- */

static void assert_symbol(const struct flame_symbols *s, uint64_t addr, const char *expected)
{
	size_t i = flame_symbols_find(s, addr);
	struct buf b = { 0 };

	if (i < s->n)
		flame_symbol_text(s, i, &b);
	assert_string_equal(buf_str(&b), expected);
	buf_release(&b);
}

static void assert_address(const struct flame_maps *m, int64_t pid, uint64_t addr, const char *expected)
{
	struct buf b = { 0 };

	assert_int_equal(flame_maps_text(m, pid, 1000, addr, &b), *expected != 0);
	assert_string_equal(buf_str(&b), expected);
	buf_release(&b);
}

static void test_symbols(void **state)
{
	static const char kallsyms[] = "ffff800080003000 t later\n"
				       "ffff800080001000 T first\n"
				       "ffff800080001000 T alias\n"
				       "ffff800080002000 t in_module\t[kvm_arm]\n"
				       "0000000000000000 T hidden\n"
				       "ffff800080002100 A absolute\n"
				       "ffff800080002200 t $x\n"
				       "no address\n"
				       "ffff800080002300 t\n"
				       "\n"
				       "fffff800080002300000 t too_long\n"
				       "ffff800090000000 t odd [not closed";
	static const char maps[] = "7 3 program\n"
				   "20000 30000 /usr/lib/libc.so.6\n"
				   "10000 20000 /usr/lib/libc.so.6\n"
				   "50000 60000 program\n"
				   "70000 60000 /backwards\n";
	static const char odd[] = "not hexadecimal\n10000 20000 /x";
	struct reader_option options[] = { { DAT_PROCMAPS, { maps, sizeof(maps) - 1 } },
					   { DAT_PROCMAPS, { odd, sizeof(odd) - 1 } },
					   { DAT_PROCMAPS, { "", 0 } } };
	struct reader_info info = { .kallsyms = { kallsyms, sizeof(kallsyms) - 1 },
				    .options = options,
				    .n_options = ARRAY_SIZE(options) };
	struct flame_maps m = { 0 };
	struct flame_symbols s;

	assert_int_equal(flame_symbols_read(&s, &info), 0);
	assert_int_equal(s.n, 5);
	assert_symbol(&s, 0xffff800080000fff, "");
	assert_symbol(&s, 0xffff800080001000, "first");
	assert_symbol(&s, 0xffff800080001fff, "first");
	assert_symbol(&s, 0xffff800080002ffc, "in_module [kvm_arm]");
	assert_symbol(&s, 0xffff800080003000 + (1 << 20), "later");
	assert_symbol(&s, 0xffff800080003001 + (1 << 20), "");
	assert_symbol(&s, 0xffff800090000000, "odd");
	assert_symbol(&s, UINT64_MAX, "");
	assert_int_equal(flame_procmaps_read(&m, &info), 0);
	assert_address(&m, 7, 0x10010, "libc.so.6+0x10");
	assert_address(&m, 7, 0x20010, "libc.so.6+0x10010");
	assert_address(&m, 7, 0x30000, "");
	assert_address(&m, 7, 0x50001, "program+0x1");
	assert_address(&m, 8, 0x10010, "");
	flame_maps_release(&m);
	flame_symbols_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order), cmocka_unit_test(test_walk),    cmocka_unit_test(test_names),
		cmocka_unit_test(test_limit), cmocka_unit_test(test_many),    cmocka_unit_test(test_scaled),
		cmocka_unit_test(test_svg),   cmocka_unit_test(test_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
