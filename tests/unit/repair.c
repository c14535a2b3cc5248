// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A spool's hypervisor times repaired by what the whole recording shows: captures of
 * simulated CPUs of a plain-nVHE host, whose true times are known at every record.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "file/dat/page.h"
#include "nvhe-sim.h"
#include "record/drain/spool-to-dat.h"
#include "spool-fixture.h"
#include "base/files.h"

#define FIRST_ID   500 /* hyp_enter, hyp_exit, hyp_unknown, hyp_cntvoff */
#define CNTVOFF_ID 503
#define CPUS	   2
#define PAGE	   4096
#define LOST	   7

/* ---- the spool -------------------------------------------------------------------- */

static void add_event(struct buf *out, const char *name, int id)
{
	struct buf f = { 0 };

	buf_printf(
		&f,
		"name: %s\nID: %d\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
		"\tfield:u8 reason;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:pid_t vcpu;\toffset:3;\tsize:4;\tsigned:1;\n\n"
		"print fmt: \"reason=%%s vcpu=%%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu\n",
		name, id);
	remote_events_add(out, &f);
	buf_release(&f);
}

static int setup(void **state)
{
	const struct spool_buffer hyp = { "hyp", "boot", "remotes/hypervisor", "hyp-text", PAGE, CPUS };
	struct buf formats = { 0 };
	struct fixture *f;

	spool_setup(state);
	f = *state;
	assert_int_equal(spool_add_buffer(f->s, &hyp), 0);
	add_event(&formats, "hyp_enter", 0);
	add_event(&formats, "hyp_exit", 1);
	assert_int_equal(remote_events_save(f->s, FIRST_ID, "hypervisor", false, &formats), 0);
	buf_release(&formats);
	return 0;
}

/* A spool of its own for each of many captures. */
static void again(void **state)
{
	spool_teardown(state);
	setup(state);
}

static int to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(*(int *)ctx, page, size);
}

static size_t make_record(const struct record *r, uint8_t *out)
{
	const int32_t vcpu = r->vcpu;
	uint8_t reason = 0;
	uint16_t id;

	while (strcmp(hyp_reasons[reason], r->reason))
		reason++;
	id = FIRST_ID + !(reason == 1 || reason == 4 || reason == 5); /* hvc, host_abort, guest_exit */
	memset(out, 0, HYP_HEADER_SIZE);
	memcpy(out, &id, sizeof(id));
	out[HYP_HEADER_SIZE] = reason;
	memcpy(out + HYP_HEADER_SIZE + 1, &vcpu, sizeof(vcpu));
	return HYP_HEADER_SIZE + 5;
}

/* As a recorder leaves it: times as recorded. */
static void put_cpu(struct fixture *f, unsigned int cpu, const struct sim *s)
{
	int fd = spool_pages_fd(f->s, 0, cpu);
	struct page_writer w;
	uint8_t rec[64];

	assert_int_equal(page_writer_init(&w, PAGE, to_fd, &fd), 0);
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].lost)
			assert_int_equal(page_write_lost(&w, LOST), 0);
		assert_int_equal(page_write(&w, s->v[i].ts, rec, make_record(&s->v[i], rec)), 0);
	}
	assert_int_equal(page_flush(&w, true), 0);
	page_writer_release(&w);
	close(fd);
}

static struct buf get_cpu(const struct fixture *f, unsigned int cpu)
{
	int fd = spool_pages_fd(f->s, 0, cpu);
	struct buf out = { 0 };
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(read_file(path, 64 << 20, &out), 0);
	close(fd);
	return out;
}

/* ---- what came of it -------------------------------------------------------------- */

struct seen {
	int64_t worst;	    /* error of any record */
	size_t wrong;	    /* records that are off by more than ERROR_MAX */
	size_t lost;	    /* marks */
	size_t cntvoffs;    /* records of CNTVOFF */
	uint64_t narrowest; /* of these, ns */
};

static void see_cntvoff(struct seen *seen, const struct page_event *ev, const int64_t *truth)
{
	struct cntvoff_record c;

	assert_true(ev->len >= sizeof(c));
	memcpy(&c, ev->data, sizeof(c));
	assert_int_equal(c.pid, c.vcpu);
	assert_in_range(c.vcpu, 87, 92);
	assert_true(c.low <= (uint64_t)truth[(c.vcpu - 87) / 2] &&
		    (uint64_t)truth[(c.vcpu - 87) / 2] <= c.high);
	assert_true((int64_t)c.low <= c.offset && c.offset <= (int64_t)c.high);
	if (c.high - c.low < seen->narrowest)
		seen->narrowest = c.high - c.low;
	seen->cntvoffs++;
}

/* Every record is there, in order, with its mark of a loss. truth: CNTVOFF of each VM; NULL: not to be looked
 * at. */
static struct seen look(const struct fixture *f, unsigned int cpu, const struct sim *s, const int64_t *truth)
{
	struct buf pages = get_cpu(f, cpu);
	struct seen seen = { .narrowest = UINT64_MAX };
	uint64_t last = 0;
	size_t i = 0;

	assert_int_equal(pages.len % PAGE, 0);
	for (size_t at = 0; at < pages.len; at += PAGE) {
		struct page_reader r;
		struct page_event ev;
		uint8_t want[64];
		uint16_t id;

		assert_int_equal(page_reader_init(&r, &page_layout_default, pages.data + at, PAGE), 0);
		if (r.missed) {
			assert_int_equal(r.missed_count, LOST);
			assert_true(i == s->n || s->v[i].lost);
			seen.lost++;
		}
		while (page_next(&r, &ev) == 1) {
			int64_t error;

			memcpy(&id, ev.data, sizeof(id));
			if (id == CNTVOFF_ID) {
				if (truth)
					see_cntvoff(&seen, &ev, truth);
				continue;
			}
			assert_true(i < s->n);
			assert_memory_equal(ev.data, want, make_record(&s->v[i], want));
			error = llabs((int64_t)ev.ts - s->v[i].truth);
			seen.worst = error > seen.worst ? error : seen.worst;
			seen.wrong += error > ERROR_MAX;
			if (seen.worst <= ERROR_MAX)
				assert_true(ev.ts >= last);
			last = ev.ts;
			i++;
		}
	}
	assert_int_equal(i, s->n);
	buf_release(&pages);
	return seen;
}

static void repair(struct fixture *f)
{
	assert_int_equal(spool_want_repair(f->s), 0);
	assert_int_equal(spool_repair(f->s, NULL), 0);
}

static const int64_t three_vms[] = { 9947590123, 64123456789, 9987590123 };

/* ---- right times ------------------------------------------------------------------ */

/* Each VM's first load on the CPU takes long, or the recording begins inside a span. */
static void first_spans(void **state)
{
	for (uint64_t seed = 1; seed < 60; seed++) {
		struct seen seen;
		struct sim s;

		again(state);
		sim_init(&s, seed);
		s.text = seed % 2;
		for (size_t i = 0; i < 3; i++) {
			if (i || seed % 4) {
				sim_host(&s);
				sim_record(&s, "hvc", 0);
				s.now += 20 * USEC << rnd(&s) % 6;
				s.offset = three_vms[i];
				sim_record(&s, "eret_host", 0);
			} else {
				s.offset = three_vms[i];
				s.written = (uint64_t)(s.now - s.offset);
			}
			sim_runs(&s, 87 + (int)i * 2);
			sim_hypercall(&s, 0);
			sim_guests(&s, three_vms, i + 1, 10);
		}
		put_cpu(*state, 0, &s);
		repair(*state);
		seen = look(*state, 0, &s, three_vms);
		assert_in_range(seen.worst, 0, ERROR_MAX);
		assert_in_range(seen.cntvoffs, 3, 60);
		assert_in_range(seen.narrowest, 0, 15 * USEC);
		sim_free(&s);
	}
}

/* A vCPU stays loaded all the time on one CPU; another one shows its CNTVOFF. */
static void never_put(void **state)
{
	for (int text = 0; text < 2; text++) {
		struct sim a, b;

		again(state);
		sim_init(&a, 3);
		a.text = text;
		sim_guests(&a, three_vms, 3, 50);
		sim_init(&b, 4);
		b.text = text;
		b.offset = three_vms[1];
		b.written = (uint64_t)(b.now - b.offset);
		for (int i = 0; i < 200; i++)
			sim_runs(&b, 89);
		put_cpu(*state, 0, &a);
		put_cpu(*state, 1, &b);
		repair(*state);
		assert_in_range(look(*state, 0, &a, three_vms).worst, 0, ERROR_MAX);
		assert_in_range(look(*state, 1, &b, three_vms).worst, 0, ERROR_MAX + 2 * USEC);
		sim_free(&a);
		sim_free(&b);
	}
}

/* ... which no CPU shows: it began when tracing was switched on, at the earliest. */
static void never_put_anywhere(void **state)
{
	struct sim s;

	sim_init(&s, 4);
	s.offset = three_vms[0];
	s.written = (uint64_t)(s.now - s.offset);
	for (int i = 0; i < 50; i++)
		sim_runs(&s, 87);
	put_cpu(*state, 0, &s);
	assert_int_equal(spool_set_number(((struct fixture *)*state)->s, "hyp_from",
					  (uint64_t)(s.v[0].truth - 30 * MSEC)),
			 0);
	repair(*state);
	assert_in_range(look(*state, 0, &s, three_vms).worst, 25 * MSEC, 35 * MSEC);
	sim_free(&s);
}

/* The VM was stopped in between: its CNTVOFF on one CPU is none of its times on another. */
static void offset_changes(void **state)
{
	static const int64_t stops[] = { 2 * MSEC, 333 * MSEC, 70 * SEC };

	for (uint64_t seed = 1; seed < 30; seed++) {
		struct sim s[CPUS];

		again(state);
		for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
			sim_init(&s[cpu], seed + cpu * 100);
			for (int i = 0; i < 60; i++) {
				if (i % 20 == 19)
					s[cpu].now += stops[seed % 3];
				sim_span(&s[cpu], 87, 20 * SEC + i / 20 * stops[seed % 3]);
				sim_host(&s[cpu]);
			}
			put_cpu(*state, cpu, &s[cpu]);
		}
		repair(*state);
		for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
			assert_in_range(look(*state, cpu, &s[cpu], NULL).worst, 0, ERROR_MAX);
			sim_free(&s[cpu]);
		}
	}
}

/* Marks stay where they are, one without a record behind it as well. */
static void losses(void **state)
{
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct fixture *f;
		struct seen seen;
		size_t lost = 0;
		struct sim s;

		again(state);
		f = *state;
		sim_init(&s, seed);
		sim_guests(&s, three_vms, 1, 300);
		for (size_t at = 60; at + 100 < s.n; at += 20 + rnd(&s) % 100)
			sim_lose(&s, at, at + 1 + rnd(&s) % 40);
		for (size_t i = 0; i < s.n; i++)
			lost += s.v[i].lost;
		put_cpu(f, 0, &s);
		if (seed % 2) { /* the last records are lost */
			int fd = spool_pages_fd(f->s, 0, 0);
			struct page_writer w;

			assert_int_equal(page_writer_init(&w, PAGE, to_fd, &fd), 0);
			assert_int_equal(page_write_lost(&w, LOST), 0);
			assert_int_equal(page_flush(&w, true), 0);
			page_writer_release(&w);
			close(fd);
			lost++;
		}
		repair(f);
		seen = look(f, 0, &s, three_vms);
		assert_in_range(seen.worst, 0, ERROR_MAX);
		assert_int_equal(seen.lost, lost);
		sim_free(&s);
	}
}

/* ---- nothing to do ---------------------------------------------------------------- */

static void same_pages(const struct fixture *f, unsigned int cpu, const struct buf *want)
{
	struct buf have = get_cpu(f, cpu);

	assert_int_equal(have.len, want->len);
	assert_memory_equal(have.data, want->data, want->len);
	buf_release(&have);
}

static void without_steps_nothing_changes(void **state)
{
	struct fixture *f = *state;
	struct buf before;
	struct sim s;

	sim_init(&s, 5);
	for (int i = 0; i < 60; i++) {
		sim_span(&s, 87 + i % 3, 0);
		sim_host(&s);
	}
	put_cpu(f, 0, &s);
	before = get_cpu(f, 0);
	repair(f);
	same_pages(f, 0, &before);
	buf_release(&before);
	sim_free(&s);
}

static void not_wanted(void **state)
{
	struct fixture *f = *state;
	struct buf before;
	struct sim s;

	sim_init(&s, 5);
	sim_guests(&s, three_vms, 3, 10);
	put_cpu(f, 0, &s);
	before = get_cpu(f, 0);
	assert_int_equal(spool_repair(f->s, NULL), 0);
	same_pages(f, 0, &before);
	buf_release(&before);
	sim_free(&s);
}

/* ---- cut short -------------------------------------------------------------------- */

static void reopen(struct fixture *f)
{
	spool_close(f->s);
	f->s = NULL;
	assert_int_equal(spool_open(&f->s, f->dir, NULL), 0);
}

static void once_only(void **state)
{
	struct fixture *f = *state;
	struct buf once;
	struct sim s;

	sim_init(&s, 5);
	sim_guests(&s, three_vms, 3, 100);
	put_cpu(f, 0, &s);
	repair(f);
	once = get_cpu(f, 0);
	repair(f);
	same_pages(f, 0, &once);
	reopen(f);
	repair(f);
	same_pages(f, 0, &once);
	buf_release(&once);
	sim_free(&s);
}

/* The disk is full on the way: all is as it was, and the next one does it. */
static void fails_and_is_repeated(void **state)
{
	struct fixture *f = *state;
	struct rlimit small, all;
	struct buf before[CPUS];
	struct sim s[CPUS];

	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		sim_init(&s[cpu], 5 + cpu);
		sim_guests(&s[cpu], three_vms, 3, cpu ? 1000 : 10);
		put_cpu(f, cpu, &s[cpu]);
		before[cpu] = get_cpu(f, cpu);
	}
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &all);
	small = all;
	small.rlim_cur = before[0].len;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(spool_want_repair(f->s), 0);
	assert_int_equal(spool_repair(f->s, NULL), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &all);
	reopen(f);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		same_pages(f, cpu, &before[cpu]);
		buf_release(&before[cpu]);
	}
	repair(f);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		assert_in_range(look(f, cpu, &s[cpu], three_vms).worst, 0, ERROR_MAX);
		sim_free(&s[cpu]);
	}
}

/* Wherever a kill falls, the next one has all records, repaired. */
static void killed(void **state)
{
	struct fixture *f;
	struct sim s;
	int done = 0;

	sim_init(&s, 5);
	sim_guests(&s, three_vms, 3, 400);
	for (useconds_t after = 0; after < 20000; after += 400) {
		pid_t pid;

		again(state);
		f = *state;
		put_cpu(f, 0, &s);
		put_cpu(f, 1, &s);
		assert_int_equal(spool_want_repair(f->s), 0);
		pid = fork();
		if (!pid)
			_exit(spool_repair(f->s, NULL) ? 1 : 0);
		usleep(after);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		reopen(f);
		done += spool_is_rewritten(f->s, SPOOL_REPAIRED);
		repair(f);
		assert_in_range(look(f, 0, &s, three_vms).worst, 0, ERROR_MAX);
		assert_in_range(look(f, 1, &s, three_vms).worst, 0, ERROR_MAX);
	}
	print_message("%d of 50 were done before the kill\n", done);
	sim_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_spans, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(never_put, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(never_put_anywhere, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(offset_changes, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(losses, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(without_steps_nothing_changes, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(not_wanted, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(once_only, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(fails_and_is_repeated, setup, spool_teardown),
		cmocka_unit_test_setup_teardown(killed, setup, spool_teardown),
	};

	return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
