// SPDX-License-Identifier: LGPL-2.1-or-later
/* Mainline's trace_pipe, as seen in the lab, into records and what report prints of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tep.h"
#include "base/array.h"

#define TYPE "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
#define HYP_FIELDS                                                                                           \
	"\tfield:u8 reason;\toffset:2;\tsize:1;\tsigned:0;\n"                                                \
	"\tfield:pid_t vcpu;\toffset:3;\tsize:4;\tsigned:1;\n\n"                                             \
	"print fmt: \"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu\n"

static const char *const formats[] = {
	"name: hyp_enter\nID: 0\nformat:\n" TYPE HYP_FIELDS,
	"name: hyp_exit\nID: 1\nformat:\n" TYPE HYP_FIELDS,
	"name: selftest\nID: 2\nformat:\n" TYPE
	"\tfield:u64 id;\toffset:2;\tsize:8;\tsigned:0;\n\nprint fmt: \"id=%llu\", REC->id\n",
	"name: hyp_printk\nID: 3\nformat:\n" TYPE
	"\tfield:u16 fmt_id;\toffset:2;\tsize:2;\tsigned:0;\n\nprint fmt: \"%s\", "
	"what(REC->fmt_id)\n",
};

struct setup {
	struct hypevents e;
	struct hyptext *t;
	struct tep_handle *tep;
	char out[65536]; /* a line per record: "cpu ts [lost] name text" */
	size_t len;
	int refuse;
};

static int set_up_as(void **state, bool raw)
{
	struct setup *s = calloc(1, sizeof(*s));

	assert_int_equal(hypevents_init(&s->e, "hypervisor"), 0);
	s->e.raw = raw;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		assert_int_equal(hypevents_add(&s->e, formats[i], strlen(formats[i])), 0);
	assert_int_equal(hypevents_number(&s->e, 700), 0);
	s->t = hyptext_new(&s->e);
	assert_non_null(s->t);
	*state = s;
	return 0;
}

static int set_up(void **state)
{
	return set_up_as(state, false);
}

static int set_up_raw(void **state)
{
	return set_up_as(state, true);
}

static int tear_down(void **state)
{
	struct setup *s = *state;

	tep_free(s->tep);
	hyptext_free(s->t);
	hypevents_release(&s->e);
	free(s);
	return 0;
}

static int note(void *ctx, const struct hyprecord *r)
{
	struct setup *s = ctx;
	char text[4096], lost[32] = "";
	int32_t pid;
	uint16_t id;

	if (s->refuse)
		return s->refuse;
	if (!s->tep)
		s->tep = judge_new(&s->e);
	memcpy(&id, r->data, 2);
	memcpy(&pid, r->data + HYP_PID_OFFSET, 4);
	judge_print(s->tep, r->data, r->len, text, sizeof(text));
	if (r->lost)
		snprintf(lost, sizeof(lost), " lost=%llu", (unsigned long long)r->lost);
	s->len += (size_t)snprintf(s->out + s->len, sizeof(s->out) - s->len, "%u %llu pid=%d%s %s: %s\n",
				   r->cpu, (unsigned long long)r->ts, pid, lost,
				   id < 704 ? s->e.v[id - 700].fmt.name : "hyp_unknown", text);
	return 0;
}

static void feed(struct setup *s, const char *text)
{
	assert_int_equal(hyptext_feed(s->t, text, strlen(text), note, s), 0);
}

static const char sample[] = "[003]\t   80.929138: hyp_enter reason=hvc vcpu=0\n"
			     "[003]\t   80.929140: hyp_exit reason=eret_guest vcpu=87\n"
			     "CPU:3 [LOST 12 EVENTS]\n"
			     "CPU:0 [LOST 5 EVENTS]\n"
			     "CPU:3 [LOST 3 EVENTS]\n"
			     "[003]\t   80.929300: hyp_enter reason=guest_exit vcpu=87\n"
			     "[000]\t576460855.000001: selftest id=18446744073709551615\n"
			     "[1023]\t    0.000000: UNKNOWN id=77\n"
			     "[001]\t   81.000000: hyp_printk mapped 3 pages, 100% done\n";

static const char expected[] = "3 80929138000 pid=0 hyp_enter: reason=hvc vcpu=0\n"
			       "3 80929140000 pid=87 hyp_exit: reason=eret_guest vcpu=87\n"
			       "3 80929300000 pid=87 lost=15 hyp_enter: reason=guest_exit vcpu=87\n"
			       "0 576460855000001000 pid=0 lost=5 selftest: id=18446744073709551615\n"
			       "1023 0 pid=0 hyp_unknown: id=77 \n"
			       "1 81000000000 pid=0 hyp_printk: mapped 3 pages, 100% done\n";

static void sample_text(void **state)
{
	struct setup *s = *state;

	feed(s, sample);
	assert_string_equal(s->out, expected);
	assert_int_equal(hyptext_bad_lines(s->t), 0);
	assert_int_equal(hyptext_pending_lost(s->t, 1), 0);
}

static void chunks_of_any_length(void **state)
{
	struct setup *s = *state;

	for (size_t n = 1; n < 80; n++) {
		s->len = 0;
		for (size_t at = 0; at < strlen(sample); at += n) {
			size_t left = strlen(sample) - at;

			assert_int_equal(hyptext_feed(s->t, sample + at, left < n ? left : n, note, s), 0);
		}
		assert_string_equal(s->out, expected);
	}
	assert_int_equal(hyptext_bad_lines(s->t), 0);
}

/* Lines that no kernel prints keep their text, with what is known of them. */
static void not_understood(void **state)
{
	static const char text[] = "[000]\t    1.000001: hyp_enter reason=hvc vcpu=\n"
				   "[000]\t    1.000002: hyp_enter reason=hvc vcpu=99999999999\n"
				   "[000]\t    1.000003: hyp_enter reason=a-b vcpu=0\n"
				   "[000]\t    1.000004: hyp_exit reason=hvc vcpu=0 more\n"
				   "[000]\t    1.000005: hyp_exit reason=hvc vcpu=007\n"
				   "[000]\t    1.000006: hyp_exit\n"
				   "[000]\t    1.000007: nobody knows=1\n"
				   "[000]\t    1.000008: UNKNOWN id=x\n"
				   "[000]\t    1.000009: selftest id=18446744073709551616\n"
				   "[000]\t    1.000010: selftest id=-1\n";
	static const char want[] =
		"0 1000001000 pid=0 hyp_unknown: id=0 hyp_enter reason=hvc vcpu=\n"
		"0 1000002000 pid=0 hyp_unknown: id=0 hyp_enter reason=hvc vcpu=99999999999\n"
		"0 1000003000 pid=0 hyp_unknown: id=0 hyp_enter reason=a-b vcpu=0\n"
		"0 1000004000 pid=0 hyp_unknown: id=1 hyp_exit reason=hvc vcpu=0 more\n"
		"0 1000005000 pid=0 hyp_unknown: id=1 hyp_exit reason=hvc vcpu=007\n"
		"0 1000006000 pid=0 hyp_unknown: id=1 hyp_exit\n"
		"0 1000007000 pid=0 hyp_unknown: id=-1 nobody knows=1\n"
		"0 1000008000 pid=0 hyp_unknown: id=-1 UNKNOWN id=x\n"
		"0 1000009000 pid=0 hyp_unknown: id=2 selftest id=18446744073709551616\n"
		"0 1000010000 pid=0 hyp_unknown: id=2 selftest id=-1\n";
	struct setup *s = *state;

	feed(s, text);
	assert_string_equal(s->out, want);
	assert_int_equal(hyptext_bad_lines(s->t), 10);
}

/* Without a CPU or a time there is no record. */
static void not_even_a_time(void **state)
{
	static const char *const bad[] = {
		"rubbish",
		"[EVENT 3 PRINT TOO BIG]",
		"[65536]\t    1.000000: selftest id=1",
		"[99999999999999999999]\t    1.000000: selftest id=1",
		"[-1]\t    1.000000: selftest id=1",
		"[000]    1.000000: selftest id=1",
		"[000]\t    1.00000: selftest id=1",
		"[000]\t    1.0000000: selftest id=1",
		"[000]\t    1: selftest id=1",
		"[000]\t   -1.000000: selftest id=1",
		"[000]\t18446744073.709552: selftest id=1",
		"[000]\t99999999999999999999.000000: selftest id=1",
		"CPU:65536 [LOST 1 EVENTS]",
		"CPU:1 [LOST x EVENTS]",
		"CPU:1 [LOST 1 EVENTS] ",
		"CPU:1 [LOST 18446744073709551616 EVENTS]",
	};
	struct setup *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		feed(s, bad[i]);
		feed(s, "\n");
		assert_int_equal(hyptext_bad_lines(s->t), i + 1);
	}
	assert_string_equal(s->out, "");
	assert_int_equal(hyptext_pending_lost(s->t, 1), 0);
	feed(s, "[000]\t18446744073.709551: selftest id=1\n"); /* the last microsecond there is */
	assert_string_equal(s->out, "0 18446744073709551000 pid=0 selftest: id=1\n");
}

static void lost_without_a_record(void **state)
{
	struct setup *s = *state;

	feed(s, "CPU:7 [LOST 4 EVENTS]\nCPU:65535 [LOST 6 EVENTS]\n");
	assert_int_equal(hyptext_pending_lost(s->t, 7), 4);
	assert_int_equal(hyptext_pending_lost(s->t, 65535), 6);
	feed(s, "[007]\t    1.000000: selftest id=1\n");
	assert_string_equal(s->out, "7 1000000000 pid=0 lost=4 selftest: id=1\n");
	assert_int_equal(hyptext_pending_lost(s->t, 7), 0);
	assert_int_equal(hyptext_pending_lost(s->t, 65535), 6);
	feed(s, "CPU:65535 [LOST 18446744073709551615 EVENTS]\n");
	assert_int_equal(hyptext_pending_lost(s->t, 65535), UINT64_MAX);
}

static void overlong_lines(void **state)
{
	struct setup *s = *state;
	char *text = malloc(40000);

	/* longer than a line may be: dropped, whether in one piece or in several */
	memset(text, 'x', 40000);
	text[20000] = '\n';
	memcpy(text, "[000]\t    1.000000: hyp_printk ", 31);
	memcpy(text + 20001, "[000]\t    2.000000: selftest id=2\n", 34);
	assert_int_equal(hyptext_feed(s->t, text, 20035, note, s), 0);
	assert_int_equal(hyptext_bad_lines(s->t), 1);
	for (size_t at = 0; at < 20035; at += 1000)
		assert_int_equal(
			hyptext_feed(s->t, text + at, 20035 - at < 1000 ? 20035 - at : 1000, note, s), 0);
	assert_int_equal(hyptext_bad_lines(s->t), 2);
	assert_string_equal(s->out, "0 2000000000 pid=0 selftest: id=2\n"
				    "0 2000000000 pid=0 selftest: id=2\n");

	/* longer than a record may be: cut */
	s->len = 0;
	text[5000] = '\n';
	assert_int_equal(hyptext_feed(s->t, text, 5001, note, s), 0);
	assert_int_equal(hyptext_bad_lines(s->t), 3);
	assert_int_equal(strspn(strstr(s->out, "hyp_printk: ") + 12, "x"), 3840);
	free(text);
}

static void nul_bytes(void **state)
{
	static const char text[] = "[000]\t    1.000000: hyp_printk a\0b\n"
				   "[000]\t    1.000000: selftest id=1\0\n"
				   "\0[000]\t    1.000000: selftest id=1\n"
				   "[000]\t    1.000000: selftest\0and more than its name\n";
	struct setup *s = *state;

	assert_int_equal(hyptext_feed(s->t, text, sizeof(text) - 1, note, s), 0);
	assert_string_equal(s->out,
			    "0 1000000000 pid=0 hyp_printk: a?b\n"
			    "0 1000000000 pid=0 hyp_unknown: id=2 selftest id=1?\n"
			    "0 1000000000 pid=0 hyp_unknown: id=-1 selftest?and more than its name\n");
	assert_int_equal(hyptext_bad_lines(s->t), 3);
}

static void new_reasons_are_numbered(void **state)
{
	struct setup *s = *state;
	struct tep_handle *tep;
	char text[64];
	uint8_t record[13] = { 700 & 0xff, 700 >> 8, 0, 0, 5, 0, 0, 0, 129, 5, 0, 0, 0 };

	feed(s, "[000]\t    1.000000: hyp_enter reason=nap vcpu=0\n"
		"[000]\t    1.000000: hyp_enter reason=doze vcpu=x\n" /* not a whole line: no reason */
		"[000]\t    1.000000: hyp_enter reason=sleep vcpu=-5\n");
	assert_int_equal(s->e.extra_reasons.n, 2);
	assert_string_equal(s->e.extra_reasons.v[0], "nap");
	assert_string_equal(s->e.extra_reasons.v[1], "sleep");
	tep = judge_new(&s->e);
	judge_print(tep, record, sizeof(record), text, sizeof(text));
	assert_string_equal(text, "reason=sleep vcpu=5");
	tep_free(tep);
}

static void callback_stops(void **state)
{
	struct setup *s = *state;

	s->refuse = -ENOSPC;
	assert_int_equal(hyptext_feed(s->t, sample, strlen(sample), note, s), -ENOSPC);
	assert_string_equal(s->out, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* Text of a kernel whose raw pages are broken: what tells no field, or no reason's number, is kept as it is.
 */
static void in_place_of_raw(void **state)
{
	struct setup *s = *state;

	feed(s, "[001]\t   80.000001: selftest id=5\n"
		"[001]\t   80.000002: hyp_enter reason=hvc vcpu=7\n"
		"[001]\t   80.000003: hyp_printk hello\n");
	assert_string_equal(s->out, "1 80000001000 pid=0 selftest: id=5\n"
				    "1 80000002000 pid=0 hyp_unknown: id=0 hyp_enter reason=hvc vcpu=7\n"
				    "1 80000003000 pid=0 hyp_unknown: id=3 hyp_printk hello\n");
	assert_int_equal(hyptext_bad_lines(s->t), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sample_text),
		TEST(chunks_of_any_length),
		TEST(not_understood),
		TEST(not_even_a_time),
		TEST(lost_without_a_record),
		TEST(overlong_lines),
		TEST(nul_bytes),
		TEST(new_reasons_are_numbered),
		TEST(callback_stops),
		cmocka_unit_test_setup_teardown(in_place_of_raw, set_up_raw, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
