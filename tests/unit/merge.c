// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records of several files by time, and what their options make of the times. */
#include "dat-fixture.h"

#include "file/dat/options.h"
#include "read/inputs.h"
#include "read/timeline.h"

struct opened {
	int fds[2];
	struct merge_input in[2];
	size_t n;
};

static void add_file(struct opened *o, struct fixture *x, const char *name, unsigned int flags)
{
	struct reader *r;

	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	o->fds[o->n] = open(x->path, O_RDONLY);
	assert_true(o->fds[o->n] >= 0);
	assert_int_equal(reader_open(&r, o->fds[o->n], NULL), 0);
	o->in[o->n] = (struct merge_input){ .name = name, .reader = r };
	assert_int_equal(filetime_read(&o->in[o->n].time, r, flags, NULL), 0);
	o->n++;
}

static void close_files(struct opened *o)
{
	for (size_t i = 0; i < o->n; i++) {
		filetime_release(&o->in[i].time);
		reader_close((struct reader *)o->in[i].reader);
		close(o->fds[i]);
	}
	o->n = 0;
}

/* "INPUT/BUFFER/CPU TS TYPE[ missed N][ paused][ gap]\n" for each record. */
static void put_record(struct buf *out, const struct merge *m, const struct merge_record *r)
{
	const struct merge_stream *s = merge_stream(m, r);
	uint16_t type;

	buf_printf(out, "%zu/%zu/%u %llu", s->input, s->buffer, s->cpu, (unsigned long long)r->ts);
	if (r->data) {
		assert_true(r->len >= sizeof(type));
		memcpy(&type, r->data, sizeof(type));
		buf_printf(out, " %u", type);
	}
	if (r->missed)
		buf_printf(out, " missed %lld", (long long)r->missed);
	if (r->paused)
		buf_addstr(out, " paused");
	if (r->gap)
		buf_addstr(out, " gap");
	buf_addstr(out, "\n");
}

static void put_run(struct buf *out, const struct merge *m, const struct merge_run *run)
{
	for (size_t i = 0; i < run->n; i++)
		put_record(out, m, &run->v[i]);
}

static void expect_merge_told(struct opened *o, merge_want *want, bool pauses, const char *expected)
{
	struct merge_run run = { 0 };
	struct buf out = { 0 };
	struct merge *m;
	int ret;

	assert_int_equal(merge_open(&m, o->in, o->n, want, NULL, NULL), 0);
	if (pauses)
		merge_tell_pauses(m);
	while ((ret = merge_take(m, &run)) == 1)
		put_run(&out, m, &run);
	assert_int_equal(ret, 0);
	assert_int_equal(merge_take(m, &run), 0);
	assert_int_equal(merge_damaged(m), 0);
	merge_run_release(&run);
	merge_close(m);
	assert_string_equal(buf_str(&out), expected);
	buf_release(&out);
}

static void expect_merge(struct opened *o, merge_want *want, const char *expected)
{
	expect_merge_told(o, want, false, expected);
}

/* The guest's clock is 1000 us behind the host's on CPU 0. */
static void shift_guest(struct fixture *x)
{
	const struct offset_point points[] = { { 0, 1000000, 1, 0 }, { 9000000, 1000000, 1, 0 } };
	struct offset_shift s;
	struct buf b = { 0 };

	assert_int_equal(offset_shift_fill(&s, 1, 1, points, 2), 0);
	offset_shift_encode(&s, &b);
	assert_int_equal(dat_options_add(&x->options, DAT_TIME_SHIFT, b.data, b.len), 0);
	buf_release(&b);
	offset_shift_release(&s);
}

static bool only_cpu_1(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	return cpu == 1;
}

static void test_order(void **state)
{
	struct fixture *x = *state;
	struct opened o = { 0 };

	for_each_form(x, form)
	{
		struct pages *top = add_buffer(x, "", 4096, 2), *hyp = add_buffer(x, "hyp", 4096, 2);

		add_entry(&top[0], 2000000, 87);
		add_exit(&top[0], 2000500, 87);
		add_entry(&top[1], 2000000, 87);
		add_hyp(&hyp[1], 2000000, HYP_EXIT, ERET_GUEST, 87);
		add_hyp(&hyp[1], 2000400, HYP_ENTER, GUEST_EXIT, 87);
		add_file(&o, x, "host", 0);
		drop_buffers(x);
		top = add_buffer(x, "", 4096, 2);
		hyp = add_buffer(x, "inst", 4096, 2);
		add_switch(&top[0], 1000000, "a", 1, "b", 2);
		add_switch(&top[0], 1000450, "b", 2, "a", 1);
		add_switch(&top[1], 1000450, "b", 2, "a", 1); /* has no offset of its own */
		add_switch(&hyp[0], 1000300, "a", 1, "b", 2);
		shift_guest(x);
		add_file(&o, x, "guest", 0);
		expect_merge(&o, NULL,
			     "1/0/1 1000450 244\n"
			     "0/0/0 2000000 62\n"
			     "0/0/1 2000000 62\n"
			     "1/0/0 2000000 244\n"
			     "0/1/1 2000000 20002\n"
			     "1/1/0 2000300 244\n"
			     "0/1/1 2000400 20001\n"
			     "1/0/0 2000450 244\n"
			     "0/0/0 2000500 61\n");
		expect_merge(&o, only_cpu_1,
			     "1/0/1 1000450 244\n"
			     "0/0/1 2000000 62\n"
			     "0/1/1 2000000 20002\n"
			     "0/1/1 2000400 20001\n");
		close_files(&o);
		drop_buffers(x);
		dat_options_release(&x->options);
	}
}

static void test_lost(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 3);
	struct opened o = { 0 };

	add_entry(&top[0], 1000, 87);
	pages_cut(&top[0]);
	add_entry(&top[0], 2000, 87);
	top[0].lost = 7;
	pages_cut(&top[0]);
	add_entry(&top[0], 3000, 87);
	add_entry(&top[0], 3001, 87);
	top[0].lost = -1;
	pages_cut(&top[0]);
	/* a loss that nothing follows; and one before an empty page and a record */
	add_entry(&top[1], 1500, 87);
	pages_cut(&top[1]);
	top[1].used = 16;
	top[1].lost = 3;
	pages_cut(&top[1]);
	top[2].used = 16;
	top[2].lost = 4;
	pages_cut(&top[2]);
	add_entry(&top[2], 2500, 87);
	top[2].lost = 5;
	add_file(&o, x, "host", 0);
	expect_merge(&o, NULL,
		     "0/0/0 1000 62 gap\n"
		     "0/0/1 1500 62 gap\n"
		     "0/0/1 1500 missed 3\n"
		     "0/0/0 2000 62 missed 7 gap\n"
		     "0/0/2 2500 62 missed 9\n"
		     "0/0/0 3000 62 missed -1\n"
		     "0/0/0 3001 62\n");
	close_files(&o);
}

#define MANY 10000

/* Runs end where they may, all streams' records are there, and what comes behind is told. */
static void test_runs(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 2), *hyp = add_buffer(x, "hyp", 4096, 1);
	struct merge_run run = { 0 }, kept = { .most = 1500 }, few = { 0 };
	const uint32_t none[KVM_EXIT + 1] = { 0 };
	struct merge_record next;
	struct opened o = { 0 };
	size_t total = 0, runs = 0;
	struct merge *m;
	uint64_t ts = 0;

	for (int i = 0; i < MANY; i++)
		add_entry(&top[i % 2], 1000 + 10 * (uint64_t)i, 87);
	add_hyp(&hyp[0], 500, HYP_EXIT, ERET_GUEST, 87);
	add_hyp(&hyp[0], 2000000, HYP_ENTER, GUEST_EXIT, 87);
	add_file(&o, x, "host", 0);
	assert_int_equal(merge_open(&m, o.in, o.n, NULL, NULL, NULL), 0);
	assert_int_equal(merge_take(m, &kept), 1);
	assert_int_equal(kept.n, 1500);
	assert_int_equal(kept.v[0].ts, 500);
	assert_int_equal(merge_ahead(m, 0, 1, &next), 1);
	assert_int_equal(next.ts, 2000000);
	for (; merge_take(m, &run) == 1; runs++) {
		for (size_t i = 0; i < run.n; ts = run.v[i++].ts)
			assert_true(run.v[i].ts > ts);
		total += run.n;
	}
	assert_true(runs > 1);
	assert_int_equal(kept.n + total, MANY + 2);
	assert_int_equal(merge_ahead(m, 0, 0, &next), 0);
	/* the first run's records are still there */
	for (size_t i = 1; i < kept.n; i++)
		assert_memory_equal(kept.v[i].data, &(uint16_t){ KVM_ENTRY }, 2);
	merge_close(m);
	/* pages that are passed over make a run, too */
	assert_int_equal(merge_open(&m, o.in, o.n, NULL, NULL, NULL), 0);
	merge_events(m, 0, none, ARRAY_SIZE(none));
	for (runs = 0; merge_take(m, &few) == 1; runs++)
		assert_true(few.n < MERGE_RUN_MAX / 4);
	assert_true(runs > 1);
	merge_run_release(&kept);
	merge_run_release(&run);
	merge_run_release(&few);
	merge_close(m);
	close_files(&o);
}

/* Without an event: what is beside a loss, and each CPU's first and last, are there; so is all of the other. */
static void test_events(void **state)
{
	const uint32_t asked[KVM_EXIT + 1] = { [KVM_EXIT] = 1 };
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 1), *hyp = add_buffer(x, "hyp", 4096, 1);
	struct merge_run run = { 0 };
	struct opened o = { 0 };
	struct buf out = { 0 };
	size_t exits = 0, others = 0;
	struct merge *m;

	for (uint64_t ts = 1000; ts < 2000; ts++)
		(ts % 100 ? add_entry : add_exit)(&top[0], ts, 87);
	add_hyp(&hyp[0], 1500, HYP_ENTER, GUEST_EXIT, 87);
	add_hyp(&hyp[0], 1501, HYP_EXIT, ERET_GUEST, 87);
	add_hyp(&hyp[0], 1502, HYP_ENTER, GUEST_EXIT, 87);
	pages_cut(&top[0]);
	add_entry(&top[0], 2000, 87);
	top[0].lost = 7;
	add_file(&o, x, "host", 0);
	assert_int_equal(merge_open(&m, o.in, o.n, NULL, NULL, NULL), 0);
	merge_events(m, 0, asked, ARRAY_SIZE(asked));
	while (merge_take(m, &run) == 1)
		for (size_t i = 0; i < run.n; i++) {
			put_record(&out, m, &run.v[i]);
			if (timeline_id(&run.v[i]) == KVM_EXIT)
				exits++;
			else
				others++;
		}
	assert_int_equal(exits, 10);
	assert_true(others < 40);
	assert_non_null(strstr(buf_str(&out), "0/0/0 1999 62 gap\n0/0/0 2000 62 missed 7\n"));
	assert_non_null(strstr(buf_str(&out), "0/1/0 1500 20001\n0/1/0 1502 20001\n"));
	merge_run_release(&run);
	merge_close(m);
	close_files(&o);
	buf_release(&out);
}

static void test_ahead(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 2), *hyp = add_buffer(x, "hyp", 4096, 1);
	char *path = x->path;
	struct merge_run run = { 0 };
	struct merge_record next;
	struct buf out = { 0 };
	struct inputs in;
	struct timeline *t;

	add_entry(&top[0], 1000, 87);
	add_exit(&top[0], 1200, 87);
	pages_cut(&top[0]);
	add_entry(&top[0], 1300, 87); /* a page of its own */
	add_exit(&top[1], 1100, 87);
	add_hyp(&hyp[0], 1050, HYP_EXIT, ERET_GUEST, 87);
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	assert_int_equal(inputs_open(&in, &path, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&in, NULL), 0);
	assert_int_equal(timeline_open(&t, &in, NULL, NULL, NULL), 0);
	assert_int_equal(merge_take(t->merge, &run), 1);
	for (size_t i = 0; i < run.n; i++) {
		buf_printf(&out, "%llu", (unsigned long long)run.v[i].ts);
		if (timeline_ahead(t, &run, i, &next))
			buf_printf(&out, " > %llu", (unsigned long long)next.ts);
		buf_addstr(&out, "\n");
	}
	assert_string_equal(buf_str(&out), "1000 > 1100\n1050\n1100 > 1200\n1200 > 1300\n1300\n");
	merge_run_release(&run);
	timeline_close(t);
	inputs_release(&in);
	buf_release(&out);
}

static void test_damage(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 1);
	const uint64_t commit = 5000;
	char msg[1024] = "";
	struct log log = { print_log, msg };
	struct merge_run run = { 0 };
	struct buf out = { 0 };
	struct opened o = { 0 };
	struct merge *m;

	add_pages(&top[0], 1000, 4);
	pages_cut(&top[0]);
	/* the second page cannot be; the third ends in the middle of a record */
	assert_int_equal(pwrite(top[0].fd, &commit, 8, 4096 + 8), 8);
	assert_int_equal(pwrite(top[0].fd, &(uint64_t){ 10 }, 8, 2 * 4096 + 8), 8);
	add_file(&o, x, "host.dat", 0);
	assert_int_equal(merge_open(&m, o.in, o.n, NULL, NULL, &log), 0);
	while (merge_take(m, &run) == 1)
		put_run(&out, m, &run);
	merge_run_release(&run);
	assert_int_equal(merge_damaged(m), 2);
	merge_close(m);
	assert_string_equal(buf_str(&out), "0/0/0 1000 62 gap\n0/0/0 4000 62 missed -1\n");
	assert_non_null(strstr(msg, "host.dat: CPU 0 has a damaged page"));
	buf_release(&out);
	close_files(&o);
}

/* The time of one record at 1000000 ns, and whether it is shown in seconds. */
static void expect_time(struct fixture *x, unsigned int flags, uint64_t hz, uint64_t ts, bool seconds)
{
	struct pages *top = add_buffer(x, "", 4096, 1);
	struct opened o = { 0 };
	char expected[64];

	add_entry(&top[0], 1000000, 87);
	add_file(&o, x, "host", flags);
	if (hz)
		filetime_set_hz(&o.in[0].time, hz);
	snprintf(expected, sizeof(expected), "0/0/0 %llu 62\n", (unsigned long long)ts);
	expect_merge(&o, NULL, expected);
	assert_int_equal(o.in[0].time.seconds, seconds);
	close_files(&o);
	drop_buffers(x);
}

static void test_times(void **state)
{
	struct fixture *x = *state;

	for_each_form(x, form)
	{
		struct dat_options *opts = &x->options;

		expect_time(x, 0, 0, 1000000, true);
		dat_options_add_clock(opts, "mono_raw");
		expect_time(x, 0, 0, 1000000, true);
		expect_time(x, FILETIME_RAW, 0, 1000000, false);
		dat_options_release(opts);
		dat_options_add_clock(opts, "boot");
		expect_time(x, 0, 0, 1000000, false);
		expect_time(x, 0, 100000000, 10000000, true);
		dat_options_add_tsc2nsec(opts, 3, 1, 12345);
		dat_options_add_date(opts, 7);
		dat_options_add_text(opts, DAT_OFFSET, "-400");
		expect_time(x, 0, 0, 1506600, true);
		expect_time(x, FILETIME_NO_DATE, 0, 1499600, true);
		expect_time(x, FILETIME_RAW, 0, 1000000, false);
		expect_time(x, 0, 1000000000, 1006600, true);
		dat_options_release(opts);
	}
}

static void test_wrong_shift(void **state)
{
	struct fixture *x = *state;
	struct filetime t;
	char msg[1024] = "";
	struct log log = { print_log, msg };
	struct opened o = { 0 };
	uint8_t bytes[24] = { [12] = 200 }; /* 200 CPUs in 8 bytes */

	add_buffer(x, "", 4096, 1);
	dat_options_add(&x->options, DAT_TIME_SHIFT, bytes, sizeof(bytes));
	add_file(&o, x, "host", FILETIME_RAW);
	assert_int_equal(filetime_read(&t, o.in[0].reader, 0, &log), -EBADMSG);
	assert_string_equal(msg, "not a whole trace.dat: its TIME_SHIFT");
	close_files(&o);
}

/* A guest's times are wrong by no more than the bounds beside its offsets, and unbounded beyond. */
static void test_bounds(void **state)
{
	static const struct offset_point points[] = { { 1000, 50, 1, 0 },
						      { 2000, 60, 1, 0 },
						      { 3000, 70, 1, 0 } };
	static const uint64_t bounds[] = { 5, 9, 2 };
	struct filetime t = { 0 };

	assert_int_equal(filetime_bound(&t, 1000), UINT64_MAX);
	assert_int_equal(offset_shift_fill(&t.shift, 1, 2, points, 3), 0);
	assert_int_equal(filetime_bound(&t, 1500), UINT64_MAX); /* of stock: no bounds */
	assert_int_equal(offset_shift_set_bounds(&t.shift, bounds, 3, "hyp windows", "hard"), 0);
	assert_int_equal(filetime_bound(&t, 999), UINT64_MAX);
	assert_int_equal(filetime_bound(&t, 1000), 5);
	assert_int_equal(filetime_bound(&t, 1001), 9);
	assert_int_equal(filetime_bound(&t, 2500), 9);
	assert_int_equal(filetime_bound(&t, 3000), 2);
	assert_int_equal(filetime_bound(&t, 3001), UINT64_MAX);
	filetime_release(&t);
	assert_int_equal(offset_shift_fill(&t.shift, 1, 1, points, 1), 0);
	assert_int_equal(offset_shift_set_bounds(&t.shift, bounds, 1, "ping", "ping"), 0);
	assert_int_equal(filetime_bound(&t, 1000), 5);
	filetime_set_hz(&t, 500000000);
	assert_int_equal(filetime_bound(&t, 1000), 10); /* of ticks of 2 ns */
	filetime_release(&t);
}

/* Ticks stay ticks until something says how long one is; a guest's become its host's. */
static void test_ticks(void **state)
{
	struct filetime host = { .clock = "x86-tsc" }, guest = { .clock = "x86-tsc", .mult = 7 };

	assert_true(filetime_in_ticks(&host));
	assert_false(filetime_in_ticks(&guest));
	filetime_set_hz(&host, 0);
	assert_true(filetime_in_ticks(&host));
	filetime_take_rate(&guest, &host);
	assert_true(filetime_in_ticks(&guest) && !guest.seconds);
	filetime_set_hz(&host, 4000000000);
	assert_false(filetime_in_ticks(&host));
	filetime_take_rate(&guest, &host);
	assert_int_equal(filetime_apply(&guest, 0, 4000000000), 1000000000);
	assert_true(guest.seconds);
	assert_false(filetime_in_ticks(&(struct filetime){ .clock = "boot" }));
}

/* A file is read though one of its guests has no name that makes sense. */
static void test_wrong_guest(void **state)
{
	struct fixture *x = *state;
	char msg[1024] = "", *path = x->path;
	struct log log = { print_log, msg };
	struct inputs in;

	add_buffer(x, "", 4096, 1);
	dat_options_add(&x->options, DAT_GUEST, "x", 1);
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	assert_int_equal(inputs_open(&in, &path, 1, 0, &log), 0);
	assert_non_null(strstr(msg, "one of its GUEST options makes no sense"));
	assert_int_equal(in.v[0].n_guests, 0);
	inputs_release(&in);
}

static void add_pauses(struct fixture *x, const char *clock, const struct pause *v, size_t n)
{
	struct pauses p = { .v = (struct pause *)v, .n = n };
	struct buf b = { 0 };

	dat_options_release(&x->options);
	pauses_encode(&p, clock, &b);
	assert_int_equal(dat_options_add(&x->options, DAT_PAUSES, b.data, b.len), 0);
	buf_release(&b);
}

/* CPU 0 stops before the first pause and comes back behind the second one, CPU 1 writes in the first one. */
static void test_pauses(void **state)
{
	static const struct pause v[] = { { 2500, 7000 }, { 8500, 8600 } };
	struct fixture *x = *state;
	struct opened o = { 0 };
	struct pages *top = add_buffer(x, "", 4096, 2);

	add_pauses(x, "boot", v, 2);
	add_entry(&top[0], 1000, 87);
	add_exit(&top[0], 9000, 87);
	add_entry(&top[1], 1500, 87);
	add_exit(&top[1], 2600, 87);
	add_entry(&top[1], 8000, 87);
	add_exit(&top[1], 8100, 87);
	add_file(&o, x, "host", 0);
	expect_merge(&o, NULL,
		     "0/0/0 1000 62 gap\n"
		     "0/0/1 1500 62 gap\n"
		     "0/0/1 2600 61 paused gap\n"
		     "0/0/1 8000 62 paused\n"
		     "0/0/1 8100 61\n"
		     "0/0/0 9000 61 paused\n");
	expect_merge_told(&o, NULL, true,
			  "0/0/0 1000 62\n"
			  "0/0/1 1500 62\n"
			  "0/0/0 2500 gap\n"
			  "0/0/1 2500 gap\n"
			  "0/0/1 2600 paused\n"
			  "0/0/1 2600 61\n"
			  "0/0/1 2600 gap\n"
			  "0/0/0 7000 paused\n"
			  "0/0/1 7000 paused\n"
			  "0/0/1 8000 62\n"
			  "0/0/1 8100 61\n"
			  "0/0/0 8500 gap\n"
			  "0/0/0 8600 paused\n"
			  "0/0/0 9000 61\n");
	close_files(&o);
}

/* A loss tells more than a pause; another clock's, and nonsense, say nothing. */
static void test_no_pauses(void **state)
{
	static const struct pause v[] = { { 2500, 7000 } }, back[] = { { 7000, 2500 } };
	static const char plain[] = "0/0/0 1000 62 gap\n0/0/0 9000 61 missed 3\n";
	struct fixture *x = *state;
	struct opened o = { 0 };
	struct pages *top = add_buffer(x, "", 4096, 1);

	add_entry(&top[0], 1000, 87);
	pages_cut(&top[0]);
	top[0].lost = 3;
	add_exit(&top[0], 9000, 87);
	add_pauses(x, "boot", v, 1);
	add_file(&o, x, "host", 0);
	expect_merge_told(&o, NULL, true, plain);
	close_files(&o);
	add_pauses(x, "local", v, 1);
	add_file(&o, x, "host", 0);
	expect_merge(&o, NULL, plain);
	close_files(&o);
	add_pauses(x, "boot", back, 1);
	add_file(&o, x, "host", 0);
	expect_merge(&o, NULL, plain);
	close_files(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_shift, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_guest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pauses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_pauses, setup, teardown),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_ticks),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
