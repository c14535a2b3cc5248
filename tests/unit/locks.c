// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recordings that overlap: whichever begin, end, are killed and recovered in
 * whichever order, one of a buffer at a time is let in, and in the end tracefs is
 * as it was before. On a fake tracefs; real ones are in tests/lab/t/13-restore.t.
 */
#include "record/tracefs/undo.h"
#include "fake-tracefs.h"
#include "base/array.h"

#include <fcntl.h>
#include <errno.h>

#define RECS 3

static struct fake fake;

/* What a recording changes: which buffers it therefore has to hold. */
static const struct kind {
	const char *name, *instance; /* to be made, unless there */
	const char *files[2];
	unsigned int holds; /* bits */
} kinds[] = {
	{ "top", NULL, { "trace_clock", "events/a/b/enable" }, 1 },
	{ "old", "instances/old", { "instances/old/trace_clock" }, 2 },
	{ "old and a file of the top",
	  "instances/old",
	  { "instances/old/trace_clock", "saved_cmdlines_size" },
	  3 },
	{ "new", "instances/new", { NULL }, 4 },
	{ "hypervisor", NULL, { "remotes/hypervisor/buffer_size_kb" }, 8 },
};

static struct rec {
	const struct kind *kind;
	struct undo *u;
	bool active; /* it was let in, and is not undone */
	char journal[96];
} recs[RECS];

static const char *const files[] = {
	"trace_clock",
	"saved_cmdlines_size",
	"events/a/b/enable",
	"instances/old/trace_clock",
	"remotes/hypervisor/buffer_size_kb",
};

static int setup(void **state)
{
	fake_open(&fake);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		fake_put(&fake, files[i], "before\n");
	for (size_t i = 0; i < RECS; i++)
		snprintf(recs[i].journal, sizeof(recs[i].journal), "%s/journal%zu", fake.root, i);
	return 0;
}

static int teardown(void **state)
{
	fake_close(&fake);
	return 0;
}

/* ---- one recording ------------------------------------------------------------ */

static int rec_change(struct rec *r)
{
	const struct kind *k = r->kind;
	int ret = k->instance ? undo_mkdir(r->u, k->instance) : 0;

	ret = ret == -EEXIST ? 0 : ret;
	if (k->instance && !ret)
		ret = undo_lock(r->u, k->instance);
	for (size_t i = 0; i < ARRAY_SIZE(k->files) && k->files[i] && !ret; i++)
		ret = undo_write(r->u, k->files[i], r->journal + strlen(r->journal) - 1);
	return ret;
}

static void rec_end(struct rec *r)
{
	if (!r->active)
		return;
	assert_int_equal(undo_all(r->u), 0);
	undo_free(r->u);
	unlink(r->journal);
	r->active = false;
}

static bool rec_may_begin(const struct rec *r)
{
	for (size_t i = 0; i < RECS; i++)
		if (recs[i].active && recs[i].kind->holds & r->kind->holds)
			return false;
	return true;
}

static void rec_begin(struct rec *r)
{
	bool may = rec_may_begin(r);
	int ret;

	assert_int_equal(undo_open(&r->u, fake.dir, AT_FDCWD, r->journal, NULL), 0);
	ret = rec_change(r);
	assert_int_equal(ret, may ? 0 : -EBUSY);
	r->active = true;
	if (ret)
		rec_end(r);
}

/* All that a kill leaves is the journal. */
static void rec_kill(struct rec *r)
{
	if (r->active)
		undo_free(r->u);
}

static void rec_recover(struct rec *r)
{
	if (!r->active)
		return;
	assert_int_equal(undo_load(&r->u, fake.dir, AT_FDCWD, r->journal, &fake.to), 0);
	rec_end(r);
}

static void check_as_before(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_string_equal(fake_line(&fake, files[i]), "before");
	assert_int_not_equal(faccessat(fake.fd, "instances/new", F_OK, 0), 0);
	for (size_t i = 0; i < RECS; i++)
		assert_false(recs[i].active);
}

/* ---- all orders ------------------------------------------------------------------ */

static void (*const ended[])(struct rec *) = { rec_begin, rec_end };
static void (*const killed[])(struct rec *) = { rec_begin, rec_kill, rec_recover };

struct order {
	void (*const *steps)(struct rec *);
	size_t n_steps, n_recs;
	size_t seq[3 * RECS]; /* which recording has its next step */
	size_t runs;
};

static void order_run(struct order *o)
{
	size_t at[RECS] = { 0 };

	for (size_t i = 0; i < o->n_steps * o->n_recs; i++)
		o->steps[at[o->seq[i]]++](&recs[o->seq[i]]);
	check_as_before();
	o->runs++;
}

static void order_all(struct order *o, size_t len, size_t *left)
{
	if (len == o->n_steps * o->n_recs)
		order_run(o);
	for (size_t i = 0; i < o->n_recs; i++) {
		if (!left[i])
			continue;
		left[i]--;
		o->seq[len] = i;
		order_all(o, len + 1, left);
		left[i]++;
	}
}

static size_t orders_of(void (*const *steps)(struct rec *), size_t n_steps, size_t n_recs)
{
	struct order o = { .steps = steps, .n_steps = n_steps, .n_recs = n_recs };
	size_t left[RECS];

	for (size_t i = 0; i < RECS; i++)
		left[i] = n_steps;
	order_all(&o, 0, left);
	return o.runs;
}

/* Every choice of buffers, the order of the recordings apart. */
static size_t all_kinds(void (*const *steps)(struct rec *), size_t n_steps, size_t n_recs)
{
	size_t runs = 0;

	for (size_t a = 0; a < ARRAY_SIZE(kinds); a++)
		for (size_t b = a; b < ARRAY_SIZE(kinds); b++)
			for (size_t c = b; c < (n_recs == 3 ? ARRAY_SIZE(kinds) : b + 1); c++) {
				recs[0].kind = &kinds[a];
				recs[1].kind = &kinds[b];
				recs[2].kind = &kinds[c];
				runs += orders_of(steps, n_steps, n_recs);
			}
	return runs;
}

static void test_two_overlap(void **state)
{
	assert_int_equal(all_kinds(ended, 2, 2), 15 * 6);
}

static void test_three_overlap(void **state)
{
	assert_int_equal(all_kinds(ended, 2, 3), 35 * 90);
}

/* That somebody died is known by a link in /run. */
static bool may_note(void)
{
	if (!access("/run", W_OK))
		return true;
	skip();
	return false;
}

static void test_two_killed(void **state)
{
	if (may_note())
		assert_int_equal(all_kinds(killed, 3, 2), 15 * 20);
}

static void test_three_killed(void **state)
{
	if (!may_note())
		return;
	for (size_t i = 0; i < RECS; i++)
		recs[i].kind = &kinds[0];
	assert_int_equal(orders_of(killed, 3, 3), 1680);
}

/* ---- what is said ---------------------------------------------------------------- */

static void begin_as(struct rec *r, size_t kind)
{
	r->kind = &kinds[kind];
	assert_int_equal(undo_open(&r->u, fake.dir, AT_FDCWD, r->journal, &fake.to), 0);
	r->active = true;
}

static void test_messages(void **state)
{
	static const char *const want[] = {
		"another hyptrace (pid %d) records the top buffer, which 'trace_clock' is part of: wait for "
		"its "
		"end, or record into another instance (-B NAME)\n",
		"another hyptrace (pid %d) records the buffer 'old': wait for its end, or record into "
		"another "
		"instance (-B NAME)\n",
		"another hyptrace (pid %d) records the top buffer, which 'saved_cmdlines_size' is part of: "
		"wait "
		"for its end, or record into another instance (-B NAME)\n",
		"another hyptrace (pid %d) records the buffer 'new': wait for its end, or record into "
		"another "
		"instance (-B NAME)\n",
		"another hyptrace (pid %d) records the hypervisor's buffer, which "
		"'remotes/hypervisor/buffer_size_kb' is part of: wait for its end\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		char text[300];

		fake.log[0] = 0;
		/* of two that it needs, the second one is refused */
		begin_as(&recs[0], i == 2 ? 0 : i);
		assert_int_equal(rec_change(&recs[0]), 0);
		begin_as(&recs[1], i);
		assert_int_equal(rec_change(&recs[1]), -EBUSY);
		snprintf(text, sizeof(text), want[i], (int)getpid());
		assert_string_equal(fake.log, text);
		rec_end(&recs[1]);
		rec_end(&recs[0]);
		check_as_before();
	}
}

static void test_begin_after_a_kill(void **state)
{
	char text[400];

	if (!may_note())
		return;
	begin_as(&recs[0], 0);
	assert_int_equal(rec_change(&recs[0]), 0);
	rec_kill(&recs[0]);
	begin_as(&recs[1], 0);
	assert_int_equal(rec_change(&recs[1]), -EBUSY);
	snprintf(text, sizeof(text),
		 "a killed agent's recording still holds the top buffer; start hyptrace-agent again, which "
		 "puts back what its journal '%s' has\n",
		 recs[0].journal);
	assert_string_equal(fake.log, text);
	rec_end(&recs[1]);
	rec_recover(&recs[0]);
	check_as_before();
}

/* A journal that is gone holds nobody up; one that was moved meanwhile waits for the other's end. */
static void test_recover_beside_another(void **state)
{
	char moved[120];

	begin_as(&recs[0], 0);
	assert_int_equal(rec_change(&recs[0]), 0);
	rec_kill(&recs[0]);
	snprintf(moved, sizeof(moved), "%s.moved", recs[0].journal);
	assert_int_equal(rename(recs[0].journal, moved), 0);
	begin_as(&recs[1], 0);
	assert_int_equal(rec_change(&recs[1]), 0);
	assert_int_equal(undo_load(&recs[0].u, fake.dir, AT_FDCWD, moved, &fake.to), -EBUSY);
	assert_non_null(strstr(fake.log, "records the top buffer"));
	assert_string_equal(fake_line(&fake, "trace_clock"), "1");
	rec_end(&recs[1]);
	assert_int_equal(undo_load(&recs[0].u, fake.dir, AT_FDCWD, moved, &fake.to), 0);
	rec_end(&recs[0]);
	check_as_before();
}

/* An event that each makes for itself, and removes by its name, needs no lock. */
static void test_dynamic_events(void **state)
{
	fake_put(&fake, "dynamic_events", "");
	begin_as(&recs[0], 0);
	assert_int_equal(rec_change(&recs[0]), 0);
	begin_as(&recs[1], 1);
	assert_int_equal(undo_at_end(recs[1].u, "dynamic_events", "-:hyptrace/mine"), 0);
	rec_end(&recs[0]);
	rec_end(&recs[1]);
	check_as_before();
}

/* The lock is let go with the buffer; that one of the same name is another. */
static void test_removed_and_made_anew(void **state)
{
	begin_as(&recs[0], 3);
	assert_int_equal(rec_change(&recs[0]), 0);
	assert_int_equal(undo_all(recs[0].u), 0);
	begin_as(&recs[1], 3);
	assert_int_equal(rec_change(&recs[1]), 0);
	rec_end(&recs[0]);
	begin_as(&recs[2], 3);
	assert_int_equal(rec_change(&recs[2]), -EBUSY);
	rec_end(&recs[2]);
	rec_end(&recs[1]);
	check_as_before();
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_two_overlap),
		T(test_three_overlap),
		T(test_two_killed),
		T(test_three_killed),
		T(test_messages),
		T(test_begin_after_a_kill),
		T(test_dynamic_events),
		T(test_recover_beside_another),
		T(test_removed_and_made_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
