// SPDX-License-Identifier: LGPL-2.1-or-later
/* Filters against tep_filter_match: made-up ones over all events of our captures, records of all kinds. */
#include "read/filter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "read/timeline.h"
#include "base/field.h"
#include "base/array.h"
#include "base/strings.h"
#include "../leaks.h"

#define DATA "tests/data/"
#ifdef __SANITIZE_ADDRESS__ /* the plain program has them all */
#define FILTERS 6
#define EVERY	4 /* event of formats-*.dat, which have thousands */
#define WANTED	3000
#else
#define FILTERS 24
#define EVERY	1
#define WANTED	10000
#endif
#define KEPT	   6  /* of an event's real records */
#define MADE	   10 /* records of an event */
#define RECORD_MAX 65535
/* In front of the judge's record is a byte that it reads; behind it are zeros. */
#define FRONT 64
#define BACK  (1 << 19)

/* ---- chance ------------------------------------------------------------------------- */

static uint64_t state_of_chance = 88172645463325252;

static uint64_t chance(void)
{
	uint64_t x = state_of_chance;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return state_of_chance = x;
}

static size_t below(size_t n)
{
	return (size_t)(chance() % n);
}

#define ONE_OF(v) ((v)[below(ARRAY_SIZE(v))])

/* ---- records ------------------------------------------------------------------------- */

struct sample {
	uint8_t *data;
	size_t len;
};

struct samples {
	struct sample v[KEPT + MADE];
	size_t n;
};

static void sample_add(struct samples *s, const void *data, size_t len)
{
	struct sample *one = &s->v[s->n++];

	one->data = malloc(len + 1);
	assert_non_null(one->data);
	memcpy(one->data, data, len);
	one->len = len;
}

static void samples_release(struct samples *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].data);
	s->n = 0;
}

static size_t end_of_fields(const struct tep_event *e)
{
	size_t end = 8;

	for (const struct tep_format_field *f = e->format.fields; f; f = f->next)
		if ((size_t)f->offset + (size_t)f->size > end)
			end = (size_t)f->offset + (size_t)f->size;
	return end;
}

/* Most texts and their places make sense. */
static void make_sense(const struct tep_event *e, uint8_t *data, size_t len)
{
	for (const struct tep_format_field *f = e->format.fields; f; f = f->next) {
		uint32_t at, base = (uint32_t)f->offset + 4;

		if (!(f->flags & TEP_FIELD_IS_DYNAMIC) || !below(4))
			continue;
		at = (uint32_t)below(len);
		if (f->flags & TEP_FIELD_IS_RELATIVE)
			at = at > base ? at - base : 0;
		at |= (uint32_t)below(12) << 16;
		memcpy(data + f->offset, &at, sizeof(at));
	}
}

/* Of any length, of bytes that are mostly text, zeros or anything. */
static void make_record(const struct tep_event *e, struct samples *to)
{
	static const char letters[] = "abBckT0/-:x %.";
	uint16_t id = (uint16_t)e->id;
	size_t end = end_of_fields(e), len = end + below(40), kind = below(4);
	uint8_t *data = malloc(len);

	assert_non_null(data);
	for (size_t i = 0; i < len; i++)
		data[i] = kind == 1 && below(4)	  ? 0
			  : kind == 2 && below(8) ? (uint8_t)letters[below(sizeof(letters))]
						  : (uint8_t)chance();
	make_sense(e, data, len);
	memcpy(data, &id, sizeof(id));
	if (below(2))
		memcpy(data + 4, (uint32_t[]){ (uint32_t)below(300) }, 4);
	if (!below(3)) /* it ends too early */
		len = 2 + below(len - 1);
	sample_add(to, data, len);
	free(data);
}

/* ---- expressions ----------------------------------------------------------------------- */

struct expression {
	struct buf text;
	const struct tep_event *event;
	const struct samples *samples; /* some values are theirs */
};

static const struct tep_format_field *any_field(const struct tep_event *e)
{
	size_t n = (size_t)(e->format.nr_common + e->format.nr_fields);
	size_t i = below(n);
	const struct tep_format_field *f = e->format.common_fields;

	if (i >= (size_t)e->format.nr_common) {
		i -= (size_t)e->format.nr_common;
		f = e->format.fields;
	}
	for (; i && f; i--)
		f = f->next;
	return f;
}

static uint64_t any_number(const struct expression *x, const struct tep_format_field *f)
{
	const struct field_load l = field_load_word(f);
	const struct sample *s = &x->samples->v[below(x->samples->n)];

	if (below(2) && l.kind == FIELD_NUMBER)
		return field_load_padded(&l, s->data, s->len) + below(3) - 1;
	return below(3) ? below(20) : chance() >> below(64);
}

static void add_number_test(struct expression *x, const struct tep_format_field *f, const char *name)
{
	static const char *const operators[] = { "==", "!=", "<", ">", "<=", ">=", "&",	 "|",
						 "^",  "+",  "-", "*", "/",  "%",  "<<", ">>" };
	const char *op = ONE_OF(operators);
	uint64_t v = any_number(x, f);

	buf_printf(&x->text, below(2) ? "%s %s %llu" : "%s%s0x%llx", name, op,
		   (unsigned long long)(v ? v : *op == '/' || *op == '%'));
}

/* Texts of a record, without what no filter can have. */
static void add_text(struct expression *x, const struct tep_format_field *f)
{
	static const char *const texts[] = {
		"", "a", "x0", "swapper/0", "trace-cmd", "kvm", "<...>", "vcpu"
	};
	const struct field_load l = field_load(f);
	const struct sample *s = &x->samples->v[below(x->samples->n)];
	const uint8_t *data;
	size_t n;

	if (below(4) == 0 || field_load_bytes(&l, s->data, s->len, &data, &n) != 1) {
		buf_addstr(&x->text, ONE_OF(texts));
		return;
	}
	for (size_t i = 0; i < n && i < 20 && data[i] > ' ' && data[i] < 127; i++)
		if (!strchr("\",:\\[", data[i]))
			buf_add(&x->text, &data[i], 1);
}

static void add_text_test(struct expression *x, const struct tep_format_field *f, const char *name)
{
	static const char *const patterns[] = { ".",	"^s.*", "[0-9]$", "a*b", "TRACE", "/0",
						"k.m$", "^$",	"[^a-z]", "cpu", "0x",	  "_" };

	buf_printf(&x->text, "%s", name);
	switch (below(3)) {
	case 0:
		buf_printf(&x->text, " %s \"%s\"", below(2) ? "=~" : "!~", ONE_OF(patterns));
		return;
	case 1:
		buf_printf(&x->text, " %s \"", below(2) ? "=~" : "!~");
		break;
	default:
		buf_printf(&x->text, "%s\"", below(2) ? "==" : "!=");
	}
	add_text(x, f);
	buf_addstr(&x->text, "\"");
}

static void add_test(struct expression *x)
{
	const struct tep_format_field *f = any_field(x->event);

	switch (below(12)) {
	case 0:
		add_text_test(x, NULL, "COMM");
		return;
	case 1:
		add_number_test(x, NULL, "CPU");
		return;
	case 2:
		if (below(2))
			add_number_test(x, NULL, "no_such_field");
		else
			add_text_test(x, NULL, "no_such_field");
		return;
	}
	/* libtraceevent has a text only of these, or one in memory that it gave back */
	if (f->flags & (TEP_FIELD_IS_STRING | TEP_FIELD_IS_POINTER | TEP_FIELD_IS_LONG) && below(3))
		add_text_test(x, f, f->name);
	else if (field_load_word(f).kind == FIELD_NUMBER) /* it has no number of others */
		add_number_test(x, f, f->name);
	else
		add_number_test(x, NULL, "common_pid");
}

static void add_expression(struct expression *x, int depth)
{
	size_t terms = 1 + below(3);

	for (size_t i = 0; i < terms; i++) {
		if (i)
			buf_addstr(&x->text, below(2) ? " && " : "||");
		if (!below(4))
			buf_addstr(&x->text, "!");
		if (depth && !below(3)) {
			buf_addstr(&x->text, "(");
			add_expression(x, depth - 1);
			buf_addstr(&x->text, ")");
		} else {
			add_test(x);
		}
	}
}

static void make_expression(struct expression *x)
{
	char why[256];

	do {
		x->text.len = 0;
		buf_printf(&x->text, "%s/%s:", x->event->system, x->event->name);
		add_expression(x, 2);
	} while (x->text.len > 380);
	assert_non_null(buf_str(&x->text));
	if (filter_syntax(buf_str(&x->text), why, sizeof(why)))
		fail_msg("'%s': %s", buf_str(&x->text), why);
}

/* ---- judging ----------------------------------------------------------------------------- */

struct judge {
	struct tep_handle *tep;
	uint8_t *room;
	size_t filters, verdicts, matches;
};

static bool judge_match(struct judge *j, struct tep_event_filter *filter, const struct sample *s, int cpu)
{
	struct tep_record rec = { .data = j->room + FRONT, .size = (int)s->len, .cpu = cpu };
	enum tep_errno ret;

	memcpy(rec.data, s->data, s->len);
	ret = tep_filter_match(filter, &rec);
	memset(rec.data, 0, s->len);
	return ret == TEP_ERRNO__FILTER_MATCH;
}

/* Nothing before or behind it, and at an odd place. */
static bool our_match(const struct filter *f, const struct tep_event *e, const struct sample *s, int cpu)
{
	uint8_t *room = malloc(s->len + 1);
	struct filter_record r = { room + 1, s->len, (unsigned int)e->id, (unsigned int)cpu };
	bool match;

	assert_non_null(room);
	memcpy(room + 1, s->data, s->len);
	match = filter_match(f, &r);
	free(room);
	return match;
}

static void compare(struct judge *j, const struct expression *x, const char *text)
{
	struct tep_event_filter *filter = tep_filter_alloc(j->tep);
	bool wrong = (int)tep_filter_add_filter_str(filter, text) < 0;
	struct filter *ours = NULL;
	char why[1024];

	assert_int_equal(filter_open(&ours, j->tep, text, why, sizeof(why)), wrong ? -EINVAL : 0);
	for (size_t i = 0; i < x->samples->n && !wrong; i++) {
		int cpu = (int)below(9);
		bool want = judge_match(j, filter, &x->samples->v[i], cpu);

		if (our_match(ours, x->event, &x->samples->v[i], cpu) != want)
			fail_msg("%s: record %zu of %zu bytes is %s", text, i, x->samples->v[i].len,
				 want ? "shown by libtraceevent" : "not shown by libtraceevent");
		j->verdicts++;
		j->matches += want;
	}
	j->filters += !wrong;
	filter_free(ours);
	tep_filter_free(filter);
}

static void compare_event(struct judge *j, const struct tep_event *e, struct samples *s, size_t filters)
{
	struct expression x = { .event = e, .samples = s };

	while (s->n < KEPT + MADE)
		make_record(e, s);
	for (size_t i = 0; i < filters; i++) {
		make_expression(&x);
		compare(j, &x, buf_str(&x.text));
	}
	buf_release(&x.text);
}

/* ---- captures ------------------------------------------------------------------------------ */

struct capture {
	struct inputs in;
	struct samples *samples; /* by the event's id */
};

static void capture_open(struct capture *c, const char *name)
{
	char *path = str_printf(DATA "%s", name);
	struct timeline_record r;
	struct timeline *t;

	assert_non_null(path);
	assert_int_equal(inputs_open(&c->in, &path, 1, 0, NULL), 0);
	/* then nearly any address is in some function */
	tep_register_function(c->in.v[0].tep, (char[]){ "first_function" }, 0, NULL);
	tep_register_function(c->in.v[0].tep, (char[]){ "last_function" }, UINT64_MAX, NULL);
	assert_int_equal(inputs_load(&c->in, NULL), 0);
	c->samples = calloc(65536, sizeof(*c->samples));
	assert_non_null(c->samples);
	assert_int_equal(timeline_open(&t, &c->in, NULL, NULL, NULL), 0);
	while (timeline_next(t, &r) == 1)
		if (r.event && r.tep.size <= RECORD_MAX && c->samples[r.id].n < KEPT)
			sample_add(&c->samples[r.id], r.tep.data, (size_t)r.tep.size);
	timeline_close(t);
	free(path);
}

static void capture_close(struct capture *c)
{
	for (size_t i = 0; i < 65536; i++)
		samples_release(&c->samples[i]);
	free(c->samples);
	inputs_release(&c->in);
}

static void test_captures(void **state)
{
	static const struct {
		const char *name;
		size_t filters, every; /* filters for each event, of every so many */
	} rows[] = {
		{ "lab-protected.dat", FILTERS, 1 },	{ "lab-stock-arm64.dat", FILTERS, 1 },
		{ "import-protected.dat", FILTERS, 1 }, { "import-nvhe.dat", FILTERS, 1 },
		{ "x86/trace.dat", FILTERS, 1 },	{ "functions/trace.dat", FILTERS, 1 },
		{ "guest/trace.dat", FILTERS, 1 },	{ "lab-nvhe.dat", FILTERS, 1 },
		{ "formats-arm64.dat", 1, EVERY },	{ "formats-x86.dat", 1, EVERY },
	};
	struct judge j = { .room = calloc(1, FRONT + RECORD_MAX + BACK) };

	assert_non_null(j.room);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct capture c;
		struct tep_event **events;

		capture_open(&c, rows[i].name);
		j.tep = c.in.v[0].tep;
		events = tep_list_events_copy(j.tep, TEP_EVENT_SORT_ID);
		/* behind the file's events are those that a decoder keeps for itself (plugins/relay.c) */
		for (size_t e = 0; events[e] && events[e]->id <= UINT16_MAX; e++)
			if (e % rows[i].every == 0)
				compare_event(&j, events[e], &c.samples[events[e]->id], rows[i].filters);
		free(events);
		capture_close(&c);
	}
	print_message("%zu filters, %zu verdicts, %zu of them matches\n", j.filters, j.verdicts, j.matches);
	assert_true(j.filters > WANTED && j.matches > 5 * WANTED && j.verdicts - j.matches > 5 * WANTED);
	free(j.room);
}

/* ---- where libtraceevent is no judge --------------------------------------------------------- */

static const char format[] = "name: thing\nID: 77\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			     "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
			     "\tfield:int n;\toffset:16;\tsize:4;\tsigned:1;\n"
			     "\tfield:char name[12];\toffset:20;\tsize:12;\tsigned:0;\n"
			     "\tfield:__rel_loc char[] where;\toffset:32;\tsize:4;\tsigned:0;\n"
			     "\tfield:char rest[];\toffset:36;\tsize:0;\tsigned:0;\n\n"
			     "print fmt: \"\"\n";

struct thing {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
	uint64_t ip;
	int32_t n;
	char name[12];
	uint32_t where;
	char rest[8];
};

static bool thing_matches(struct tep_handle *tep, const char *text, const struct thing *t, size_t len)
{
	const struct sample s = { (uint8_t *)t, len };
	struct filter *f;
	char why[1024];
	bool match;

	if (filter_syntax(text, why, sizeof(why)) || filter_open(&f, tep, text, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	match = our_match(f, tep_find_event(tep, 77), &s, 3);
	filter_free(f);
	return match;
}

static struct tep_handle *thing_tep(void)
{
	struct tep_handle *tep = tep_alloc();

	assert_non_null(tep);
	assert_int_equal(tep_parse_event(tep, format, sizeof(format) - 1, "test"), 0);
	tep_register_function(tep, (char[]){ "run_it" }, 0x1000, NULL);
	tep_register_function(tep, (char[]){ "behind" }, 0x2000, NULL);
	tep_register_comm(tep, "worker", 12);
	return tep;
}

static void test_alone(void **state)
{
	/* its name ends with the field, without a 0 */
	static const struct thing t = { 77,
					0,
					0,
					12,
					0x1234,
					-2,
					{ 't', 'w', 'e', 'l', 'v', 'e', ' ', 'b', 'y', 't', 'e', 's' },
					5 << 16 | 1,
					"_rest" };
	static const char *const yes[] = {
		/* a number as a text */
		"thing: n =~ \"^0xfff*e$\" && n == \"0xfffffffffffffffe\"",
		"thing: CPU == \"0x3\" && CPU =~ \"3\"",
		"thing: common_flags == \"0x0\"",
		/* an address as its function's name */
		"thing: ip == \"run_it\" && ip =~ \"RUN\" && ip != \"behind\" && ip >= 0x1000",
		/* no number at all is 0 */
		"thing: name == 0 && rest == 0",
		"thing: name == \"twelve bytes\" && rest == \"_rest\"",
		"thing: where == \"rest\"",
		"thing: COMM == \"worker\" && COMM !~ \"x\"",
	};
	static const char *const no[] = {
		/* libtraceevent ends the process here */
		"thing: n / 0",
		"thing: n % 0",
		"thing: !(n / 0)",
		"thing: n == 0xfffffffffffffffe && n / 0",
		/* libtraceevent 1.7 has no such field */
		"thing: TIMESTAMP > 0",
		/* an operation with a text */
		"thing: n + \"a\" || n == 0xfffffffffffffffe",
		"thing: rest == \"rest\"",
	};
	struct tep_handle *tep = thing_tep();

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		if (!thing_matches(tep, yes[i], &t, sizeof(t)))
			fail_msg("not shown: %s", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (thing_matches(tep, no[i], &t, sizeof(t)))
			fail_msg("shown: %s", no[i]);
	/* cut off in the middle */
	assert_true(thing_matches(tep, "thing: n == 0xfffe && name == \"\"", &t, 18));
	assert_true(thing_matches(tep, "thing: name == \"twel\"", &t, 24));
	tep_free(tep);
}

/* A text at a place relative to its field, of which the captures have none. */
static void test_relative(void **state)
{
	struct judge j = { .tep = thing_tep(), .room = calloc(1, FRONT + RECORD_MAX + BACK) };
	struct samples s = { 0 };

	assert_non_null(j.room);
	tep_register_function(j.tep, (char[]){ "first_function" }, 0, NULL);
	tep_register_function(j.tep, (char[]){ "last_function" }, UINT64_MAX, NULL);
	compare_event(&j, tep_find_event(j.tep, 77), &s, 300);
	samples_release(&s);
	tep_free(j.tep);
	free(j.room);
}

/* Of an event that the filter does not name, and of an id that is none. */
static void test_others(void **state)
{
	struct tep_handle *tep = thing_tep();
	struct filter_record r = { (const uint8_t *)"M\0\0\0\0\0\0", 8, 77, 0 };
	struct filter *f;
	char why[1024];

	assert_int_equal(filter_open(&f, tep, "test", why, sizeof(why)), 0);
	assert_true(filter_match(f, &r));
	r.id = 78;
	assert_false(filter_match(f, &r));
	r.id = 0;
	assert_false(filter_match(f, &r));
	r.id = UINT32_MAX;
	assert_false(filter_match(f, &r));
	filter_free(f);
	assert_int_equal(filter_open(&f, tep, "nothing", why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "no event found");
	tep_free(tep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captures),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
