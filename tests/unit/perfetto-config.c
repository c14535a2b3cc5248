// SPDX-License-Identifier: GPL-2.0-only
/* Perfetto's text configuration: what of it becomes a plan, what a note, what an error. */
#include "record/plan/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/opts.h"

/* The plan as text: buffers with events and sizes, the duration, notes. */
static int config(const char *text, struct buf *out)
{
	struct record_plan plan = { 0 };
	struct opts_error err = { "" };
	int ret;

	assert_non_null(record_plan_add_buffer(&plan, ""));
	ret = perfetto_config(&plan, text, strlen(text), &err);
	for (size_t i = 0; i < plan.n_buffers && !ret; i++) {
		const struct buffer_plan *b = &plan.buffers[i];

		buf_printf(out, "%s%s:", b->name, b->is_hyp ? "(hyp)" : "");
		for (size_t e = 0; e < b->n_events; e++)
			buf_printf(out, " %s", b->events[e].name);
		if (b->size_kb)
			buf_printf(out, " b=%d", (int)b->size_kb);
		buf_addstr(out, "; ");
	}
	if (!ret)
		buf_printf(out, "%d ms", (int)plan.duration_ms);
	for (size_t i = 0; i < plan.notes.n && !ret; i++)
		buf_printf(out, " (%s)", plan.notes.v[i]);
	if (ret)
		buf_addstr(out, err.text);
	record_plan_release(&plan);
	return ret;
}

static void gives(const char *text, int want_ret, const char *want)
{
	struct buf out = { 0 };

	assert_int_equal(config(text, &out), want_ret);
	assert_string_equal(buf_str(&out), want);
	buf_release(&out);
}

/* As Android's page on hypervisor tracing has it. */
static const char android[] = "duration_ms: 10000\n"
			      "\n"
			      "buffers: {\n"
			      "    size_kb: 8960\n"
			      "    fill_policy: DISCARD\n"
			      "}\n"
			      "\n"
			      "data_sources: {\n"
			      "    config {\n"
			      "        name: \"linux.ftrace\"\n"
			      "        ftrace_config {\n"
			      "            instance_name: \"hyp\"\n"
			      "            ftrace_events: \"hyp/hyp_enter\"\n"
			      "            ftrace_events: \"hyp/hyp_exit\"\n"
			      "        }\n"
			      "    }\n"
			      "}\n";

static void test_android(void **state)
{
	gives(android, 0,
	      ":; hyp(hyp): hyp:hyp_enter hyp:hyp_exit; 10000 ms (buffers.size_kb) (buffers.fill_policy)");
}

static void test_sources(void **state)
{
	gives("# two sources, the second's instance comes last\n"
	      "data_sources { config { name: 'linux.ftrace' ftrace_config <\n"
	      "  ftrace_events: [\"sched/sched_switch\", \"kvm/*\"]; ftrace_events: 'ftrace/print'\n"
	      "  ftrace_events: \"hyp/\" \"hyp_enter\", buffer_size_kb: 4096\n"
	      "  atrace_categories: \"gfx\" atrace_categories: \"view\" > } }\n"
	      "data_sources: [{ config { ftrace_config { ftrace_events: 'irq_handler_entry' instance_name: "
	      "'mine' } } },\n"
	      "  { config { name: 'linux.process_stats' } }]\n"
	      "duration_ms: 250",
	      0,
	      ": sched:sched_switch kvm:* b=4096; hyp(hyp): hyp:hyp_enter b=4096; mine: irq_handler_entry; "
	      "250 ms "
	      "(data_sources.config.ftrace_config.atrace_categories) (linux.process_stats)");
	gives("", 0, ":; 0 ms");
}

static void test_wrong(void **state)
{
	gives("duration_ms: ten", -EINVAL, "line 1: not a number");
	gives("\n\nbuffers {", -EINVAL, "line 3: a block without end");
	gives("a: 'x\n'", -EINVAL, "line 1: a string without end");
	gives("a: 'x\\n'", -EINVAL, "line 1: a string with escapes");
	gives("a [1", -EINVAL, "line 1: expected ':' or '{'");
	gives("a: [1", -EINVAL, "line 1: a list without end");
	gives("a:", -EINVAL, "line 1: a value is missing");
	gives("}", -EINVAL, "line 1: a field's name is missing");
	gives("data_sources { config { ftrace_config { instance_name: '../x' } } }", -EINVAL,
	      "line 1: not a name for an instance");
	gives("a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{", -EINVAL, "line 1: blocks within blocks");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_android),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
