// SPDX-License-Identifier: GPL-2.0-only
/* The option engine: words and a table in, fields, operands and messages out. */
#include "base/opts.h"
#include "base/array.h"
#include "base/strings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct fields {
	bool quiet;
	const char *file, *port, *glob;
	uint64_t n, wait, size;
	struct strlist inputs;
};

static int take_maybe(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return opts_set_text(ctx, o, arg ? arg : "none", err);
}

#define AT(field) .off = offsetof(struct fields, field)

static const struct opt rows[] = {
	OPT_HEADING("Files"),
	OPT('f', "file", "FILE", "a file", opts_set_text, AT(file)),
	OPT('i', NULL, "FILE", "an input\nor more", opts_add_text, AT(inputs)),
	OPT('q', "quiet", NULL, "no words", opts_set_flag, AT(quiet)),
	OPT('p', "probe", "[=PORT]", "perhaps at a port", take_maybe, AT(port)),
	OPT('g', "glob", "[GLOB]", "perhaps some", take_maybe, AT(glob)),
	OPT(0, "number", "N", "3 to 9", opts_set_number, AT(n), .min = 3, .max = 9),
	OPT_DURATION('w', "wait", "a while", UNIT_S, UNIT_MS, AT(wait), .min = 100, .max = 3600000),
	OPT('l', NULL, "WORD", "a word", opts_set_text, AT(file),
	    .words = "one two three four five six seven eight nine ten eleven"),
	OPT_SIZE('s', NULL, "so much", 0, 1, AT(size), .max = 1 << 30),
	OPT(0, "numb", NULL, "a shorter name", opts_set_flag, AT(quiet)),
	OPT('h', "help", NULL, "this", opts_help),
	OPT_REFUSED('x', "excuse", NULL, "do without"),
};

static const struct opts_table table = {
	.command = "test", .usage = "usage: test\n", .foot = "end\n", .rows = rows, .n = ARRAY_SIZE(rows)
};
static const struct opts_table strict = {
	.rows = rows, .n = ARRAY_SIZE(rows), .in_order = true, .whole_names = true
};

struct line {
	const struct opts_table *table;
	const char *words[8];
	const char *want; /* "-" and what is wrong, or the fields and operands */
};

/* clang-format off */
static const struct line lines[] = {
	{ &table, { "-f", "a", "b", "-q", "c" }, "file=a quiet b c" },
	{ &table, { "-fa", "--file=b", "--quiet" }, "file=b quiet" },
	{ &table, { "-qfa" }, "file=a quiet" },
	{ &table, { "-f", "-q" }, "file=-q" },
	{ &table, { "--qu", "--fi", "x" }, "file=x quiet" },
	{ &table, { "b", "--", "-q", "c" }, "b -q c" },
	{ &table, { "-", "-q" }, "quiet -" },
	{ &table, { "-p", "5" }, "port=none 5" },
	{ &table, { "-p5", "--probe=6" }, "port=6" },
	{ &table, { "-g", "a*", "b" }, "glob=a* b" },
	{ &table, { "-g", "-q" }, "glob=none quiet" },
	{ &table, { "-g" }, "glob=none" },
	{ &table, { "-i", "a", "-ib" }, "i=a i=b" },
	{ &table, { "--number", "9" }, "n=9" },
	{ &table, { "--numb" }, "quiet" },
	{ &table, { "--number", "2" }, "- --number 2: must be at least 3" },
	{ &table, { "--number", "10" }, "- --number 10: must be at most 9" },
	{ &table, { "--number=" }, "- --number '': not a number" },
	{ &table, { "-w", "2", "-s", "1.5K" }, "wait=2000 size=1536" },
	{ &table, { "-w", "0.1001s" }, "wait=101" },
	{ &table, { "--wait=61min" }, "- -w 61min: must be at most 1h" },
	{ &table, { "-w", "99ms" }, "- -w 99ms: must be at least 100ms" },
	{ &table, { "-w", "2x" }, "- -w 2x: not a duration such as 250us, 10ms, 2s" },
	{ &table, { "-s", "5" }, "- -s 5: not a size such as 64K, 8M, 2G" },
	{ &table, { "-s", "99999999999T" }, "- -s 99999999999T: must be at most 1G" },
	{ &table, { "--num" }, "- unknown or ambiguous option '--num': did you mean '--numb'? (see hyptrace test -h)" },
	{ &table, { "-z" }, "- unknown or ambiguous option '-z' (see hyptrace test -h)" },
	{ &table, { "--golb=x" },
	  "- unknown or ambiguous option '--golb': did you mean '--glob'? (see hyptrace test -h)" },
	{ &table, { "--excuses" }, "- unknown or ambiguous option '--excuses' (see hyptrace test -h)" },
	{ &table, { "--file" }, "- option '--file' needs an argument" },
	{ &table, { "-qf" }, "- option '-f' needs an argument" },
	{ &table, { "--quiet=yes" }, "- option '--quiet' takes no argument" },
	{ &table, { "--excuse" }, "- -x is not served: do without" },
	{ &table, { "a", "-h", "-z" }, "help" },
	{ &strict, { "-q", "a", "-q", "-z" }, "quiet a -q -z" },
	{ &strict, { "--qu" }, "- option '--qu' is not known here" },
	{ &strict, { "--=x" }, "- option '--' is not known here" },
};
/* clang-format on */

static void show(struct buf *out, const struct fields *f)
{
	if (f->file)
		buf_printf(out, " file=%s", f->file);
	if (f->port)
		buf_printf(out, " port=%s", f->port);
	if (f->glob)
		buf_printf(out, " glob=%s", f->glob);
	if (f->n)
		buf_printf(out, " n=%d", (int)f->n);
	if (f->wait)
		buf_printf(out, " wait=%d", (int)f->wait);
	if (f->size)
		buf_printf(out, " size=%d", (int)f->size);
	if (f->quiet)
		buf_addstr(out, " quiet");
	for (size_t i = 0; i < f->inputs.n; i++)
		buf_printf(out, " i=%s", f->inputs.v[i]);
}

static void test_lines(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char words[9][32] = { "test" }, *argv[10] = { words[0] };
		struct fields f = { 0 };
		struct opts_error err;
		struct buf out = { 0 };
		int argc = 1, ret;

		for (; lines[i].words[argc - 1]; argc++)
			argv[argc] = strcpy(words[argc], lines[i].words[argc - 1]);
		ret = opts_parse(lines[i].table, &argc, argv, &f, &err);
		if (ret == OPTS_STOP)
			buf_addstr(&out, " help");
		else if (ret)
			buf_printf(&out, " - %s", err.text);
		else
			show(&out, &f);
		for (int n = 1; !ret && n < argc; n++)
			buf_printf(&out, " %s", argv[n]);
		assert_true(ret || !argv[argc]);
		assert_string_equal(out.len ? buf_str(&out) + 1 : "", lines[i].want);
		assert_true(ret == OPTS_STOP ||
			    (ret == -EINVAL) == (lines[i].want[0] == '-' && lines[i].want[1] == ' '));
		buf_release(&out);
		strlist_release(&f.inputs);
	}
}

static void test_usage(void **state)
{
	struct buf out = { 0 };

	opts_usage(&table, &out);
	assert_string_equal(buf_str(&out),
			    "usage: test\n"
			    "\nFiles:\n"
			    "  -f, --file FILE        a file\n"
			    "  -i FILE                an input\n"
			    "                         or more\n"
			    "  -q, --quiet            no words\n"
			    "  -p, --probe[=PORT]     perhaps at a port\n"
			    "  -g, --glob [GLOB]      perhaps some\n"
			    "  --number N             3 to 9\n"
			    "  -w, --wait DURATION    a while; a plain number: s\n"
			    "  -l WORD                a word:\n"
			    "                         one two three four five six seven eight nine ten\n"
			    "                         eleven\n"
			    "  -s SIZE                so much\n"
			    "  --numb                 a shorter name\n"
			    "  -h, --help             this\n"
			    "end\n");
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
