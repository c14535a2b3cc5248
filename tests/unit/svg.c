// SPDX-License-Identifier: GPL-2.0-only
/* Pictures: text that XML accepts, ticks, axes and legends. */
#include "base/array.h"
#include "base/svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_text(void **state)
{
	static const struct {
		const char *text, *want;
		size_t n, letters; /* letters: 0: svg_text() */
	} rows[] = {
		{ "a <b> & \"c\" 'd'", "a &lt;b&gt; &amp; &quot;c&quot; 'd'", SIZE_MAX, 0 },
		{ "\x1b[2J\xff\xef\xbf\xbf\u00e4", "\xef\xbf\xbd[2J\xef\xbf\xbd\xef\xbf\xbd\u00e4", SIZE_MAX,
		  0 },
		{ "abcdef", "abc", 3, 0 },
		{ "abcdef", "abcdef", 0, 6 },
		{ "abcdef", "abcd\u2026", 0, 5 },
		{ "\u00e4\u00e4\u00e4", "\u00e4\u2026", 0, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf b = { 0 };

		if (rows[i].letters)
			svg_short(&b, rows[i].text, rows[i].letters);
		else
			svg_text(&b, rows[i].text, rows[i].n);
		assert_string_equal(buf_str(&b), rows[i].want);
		buf_release(&b);
	}
}

static void test_step(void **state)
{
	static const double rows[][2] = { { 100, 20 }, { 34, 5 }, { 7, 1 },	 { 1, 0.2 },
					  { 18, 2 },   { 0, 1 },  { 1.5e9, 2e8 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_true(svg_step(rows[i][0]) > rows[i][1] * 0.999 &&
			    svg_step(rows[i][0]) < rows[i][1] * 1.001);
}

static void tick_label(double value, char room[SVG_LABEL])
{
	snprintf(room, SVG_LABEL, "[%.0f]", value);
}

static void test_plot(void **state)
{
	struct buf b = { 0 };
	struct svg_plot p = {
		&b, 100, 50, 200, 40, { "time (s)", 0, 10, 0, NULL }, { "n & m", 0, 4, 2, tick_label }
	};
	double x = 10;

	svg_begin(&b, 320, 140, "", ".own { }\n");
	svg_title(&b, 10, 0, 12, "a.dat: what?", "3 things");
	svg_legend(&b, &x, 30, SVG_BOX, "fill=\"red\"", "red ones");
	svg_axes(&p);
	svg_end(&b);
	assert_true(svg_x(&p, 0) == 100 && svg_x(&p, 10) == 300 && svg_y(&p, 0) == 90 && svg_y(&p, 4) == 50);
	assert_true(x > 10);
	assert_non_null(strstr(buf_str(&b), ">time (s)</text>"));
	assert_non_null(strstr(buf_str(&b), ">n &amp; m</text>"));
	assert_non_null(strstr(buf_str(&b), "x=\"180.0\" y=\"106.0\" text-anchor=\"middle\">4</text>"));
	assert_non_null(strstr(buf_str(&b), "x=\"94.0\" y=\"74.0\" text-anchor=\"end\">[2]</text>"));
	assert_non_null(strstr(buf_str(&b), "<title>a.dat: what?</title>a.dat: w\u2026</text>"));
	assert_non_null(strstr(buf_str(&b), ">red ones</text>"));
	assert_non_null(strstr(buf_str(&b), ".own { }\n</style>"));
	assert_string_equal(buf_str(&b) + b.len - 7, "</svg>\n");
	/* no ticks */
	b.len = 0;
	p.x.step = p.y.step = -1;
	svg_axes(&p);
	assert_null(strstr(buf_str(&b), "tick"));
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_plot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
