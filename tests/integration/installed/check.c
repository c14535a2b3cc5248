// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What library.t asks of an installed libhyptrace, as a program of somebody else's:
 * prints a line per question. usage: check HOST.dat GUEST.dat
 */
#include <hyptrace.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* struct hyptrace_event of a header that had no more than these. */
struct old_event {
	size_t size;
	uint64_t time, bound;
	const char *machine;
	unsigned char guard[sizeof(struct hyptrace_event)];
};

struct old_opts {
	size_t size;
	unsigned int flags;
};

struct new_opts {
	struct hyptrace_open_opts known;
	uint64_t unknown;
};

static char last_error[512];

static void keep_error(void *ctx, enum hyptrace_log_level level, const char *message)
{
	if (level == HYPTRACE_ERROR)
		snprintf(last_error, sizeof(last_error), "%s%s", (const char *)ctx, message);
}

static void open_bad(const char *what, const char *path)
{
	char prefix[] = "";
	struct hyptrace_open_opts opts = { sizeof(opts), 0, keep_error, prefix };
	struct hyptrace *h = (struct hyptrace *)prefix;
	int ret = hyptrace_open(&h, &path, 1, &opts);

	printf("%s: %s%s\n", what, strerror(-ret), h ? ", a handle" : "");
}

static const char *name_of(int ret)
{
	return ret ? strerror(-ret) : "fine";
}

static void sizes(const char *const *paths)
{
	struct old_opts old_opts = { sizeof(old_opts), HYPTRACE_RAW_TIMES };
	struct new_opts new_opts = { { sizeof(new_opts), 0, NULL, NULL }, 0 };
	union {
		struct old_event old;
		struct hyptrace_event now;
	} e;
	struct hyptrace *h;
	size_t touched = 0;
	int ret;

	printf("older options: %s\n",
	       name_of(hyptrace_open(&h, paths, 2, (const struct hyptrace_open_opts *)(void *)&old_opts)));
	memset(&e, 0x55, sizeof(e));
	e.old.size = offsetof(struct old_event, guard);
	ret = hyptrace_next(h, &e.now);
	printf("older event: %d %s", ret, e.old.machine);
	for (size_t i = 0; i < sizeof(e.old.guard); i++)
		touched += e.old.guard[i] != 0x55;
	printf(", %zu bytes behind it touched\n", touched);
	e.now.size = 1;
	printf("event without a size: %s\n", name_of(hyptrace_next(h, &e.now)));
	hyptrace_close(h);
	printf("newer options: %s\n", name_of(hyptrace_open(&h, paths, 2, &new_opts.known)));
	hyptrace_close(h);
	new_opts.unknown = 1;
	printf("newer options, used: %s\n", name_of(hyptrace_open(&h, paths, 2, &new_opts.known)));
	hyptrace_close(NULL);
	hyptrace_plan_free(NULL);
}

static void fields(const char *const *paths)
{
	struct hyptrace_event e;
	struct hyptrace_field f;
	struct hyptrace *h;
	size_t n = 0;

	e.size = sizeof(e);
	f.size = sizeof(f);
	if (hyptrace_open(&h, paths, 2, NULL))
		return;
	printf("field of no event: %s\n", name_of(hyptrace_field(h, "next_comm", &f)));
	while (hyptrace_next(h, &e) == 1 && (!e.name || strcmp(e.name, "sched_switch")))
		;
	printf("%s of %s:", e.name, e.system);
	while (!hyptrace_field_at(h, n++, &f))
		printf(f.kind == HYPTRACE_STRING ? " %s=%.0" PRIu64 "%.*s" : " %s=%" PRIu64, f.name, f.number,
		       (int)f.data_size, (const char *)f.data);
	printf("\n%s\n", hyptrace_text(h));
	printf("next_pid: %s\n", name_of(hyptrace_field(h, "next_pid", &f)));
	printf("no_such: %s\n", name_of(hyptrace_field(h, "no_such", &f)));
	hyptrace_close(h);
}

/* Counts what is left; *first: its time. */
static unsigned int rest(struct hyptrace *h, uint64_t *first, const char *only)
{
	struct hyptrace_event e;
	unsigned int n = 0, others = 0;

	for (e.size = sizeof(e); hyptrace_next(h, &e) == 1;) {
		if (!e.data)
			continue;
		if (!n++ && first)
			*first = e.time;
		others += only && (!e.name || strcmp(e.name, only));
	}
	if (others)
		printf("(%u others) ", others);
	return n;
}

static void seeks_and_filters(const char *const *paths)
{
	static const char *const wrong[] = { "sched_switch:", "no_such_event" };
	uint64_t middle = 0, first = 0;
	unsigned int all, n = 0;
	struct hyptrace_event e;
	struct hyptrace *h;
	char why[256];

	if (hyptrace_open(&h, paths, 2, NULL))
		return;
	all = rest(h, NULL, NULL);
	hyptrace_seek(h, 0);
	for (e.size = sizeof(e); n < all / 2 && hyptrace_next(h, &e) == 1;)
		if (e.data && ++n == all / 2)
			middle = e.time;
	printf("from the middle, whose event counts: %s\n",
	       rest(h, NULL, NULL) == all - n ? "the rest" : "others");
	hyptrace_seek(h, middle);
	n = rest(h, &first, NULL);
	printf("seek back: %s, %s\n", first == middle ? "there" : "elsewhere",
	       n >= all - all / 2 && n <= all - all / 2 + 1 ? "all after it" : "others");
	hyptrace_seek(h, UINT64_MAX);
	printf("seek past the end: %d\n", hyptrace_next(h, &e));
	hyptrace_seek(h, 0);
	printf("filter: %s, ", name_of(hyptrace_filter(h, "sched_switch: next_pid == 114", NULL, 0)));
	printf("%u events\n", rest(h, NULL, "sched_switch"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		why[0] = 0;
		printf("filter '%s': %s", wrong[i], name_of(hyptrace_filter(h, wrong[i], why, sizeof(why))));
		printf(", %s\n", why);
	}
	hyptrace_seek(h, 0);
	printf("the filter before stays: %u events\n", rest(h, NULL, "sched_switch"));
	hyptrace_seek(h, 0);
	hyptrace_filter(h, NULL, NULL, 0);
	printf("without a filter: %s\n", rest(h, NULL, NULL) == all ? "all" : "others");
	hyptrace_close(h);
}

static void spans(const char *const *paths)
{
	unsigned int n[2][4] = { { 0 } }, named[2] = { 0, 0 }, wrong = 0, guests = 0, later = 0;
	uint64_t last = 0, middle = 0;
	struct hyptrace_span s;
	struct hyptrace *h;

	if (hyptrace_open(&h, paths, 2, NULL))
		return;
	for (s.size = sizeof(s); hyptrace_next_span(h, &s) == 1;
	     last = s.how == HYPTRACE_PAIRED ? s.end : last) {
		n[s.kind][s.how]++;
		named[s.kind] += s.reason != NULL;
		wrong += s.end < s.begin || (s.how == HYPTRACE_PAIRED && s.end < last);
		guests += s.guest && !strcmp(s.guest, "Guest") && s.vcpu_thread;
		if (n[HYPTRACE_EXIT][HYPTRACE_PAIRED] == 10 && !middle)
			middle = s.end;
	}
	printf("visits: %u paired, %u lost, %u unfinished, %u without a begin, %u with a reason\n", n[0][0],
	       n[0][1], n[0][2], n[0][3], named[0]);
	printf("exits: %u paired, %u lost, %u unfinished, %u without a begin, %u with a reason\n", n[1][0],
	       n[1][1], n[1][2], n[1][3], named[1]);
	printf("%u in a wrong order, %u of the guest's vCPUs\n", wrong, guests);
	hyptrace_seek(h, middle);
	while (hyptrace_next_span(h, &s) == 1)
		later += s.kind == HYPTRACE_EXIT && s.how == HYPTRACE_PAIRED;
	printf("spans from a time on: %s\n", later == n[1][0] - 9 ? "the rest" : "others");
	s.size = 1;
	hyptrace_seek(h, 0);
	printf("span without a size: %s\n", name_of(hyptrace_next_span(h, &s)));
	hyptrace_close(h);
}

static void offsets(const char *const *paths)
{
	const uint64_t middle = 26377659724;
	struct hyptrace_offset o;
	struct hyptrace_event e;
	struct hyptrace *h;

	o.size = sizeof(o);
	e.size = sizeof(e);
	if (hyptrace_open(&h, paths, 2, NULL))
		return;
	printf("host's offset: %s\n", name_of(hyptrace_offset(h, 0, middle, &o)));
	printf("third file's offset: %s\n", name_of(hyptrace_offset(h, 2, middle, &o)));
	hyptrace_offset(h, 1, middle, &o);
	printf("the file's: %" PRId64 " +- %" PRIu64 ", %s, by %s\n", o.offset, o.bound,
	       *o.class_name ? o.class_name : "-", *o.method ? o.method : "-");
	hyptrace_next(h, &e);
	printf("sync: %s\n", name_of(hyptrace_sync(h)));
	hyptrace_offset(h, 1, middle, &o);
	printf("computed: %" PRId64 " +- %" PRIu64 ", %s, by %s\n", o.offset, o.bound,
	       *o.class_name ? o.class_name : "-", *o.method ? o.method : "-");
	hyptrace_offset(h, 1, 1, &o);
	printf("long before: %s\n", o.bound == HYPTRACE_UNKNOWN ? "unknown" : "bounded");
	while (hyptrace_next(h, &e) == 1 && e.file != 1)
		;
	printf("guest event: %s +- %" PRIu64 "\n", e.machine, e.bound);
	hyptrace_close(h);
	printf("sync of one file: ");
	if (!hyptrace_open(&h, paths, 1, NULL))
		printf("%s\n", name_of(hyptrace_sync(h)));
	hyptrace_close(h);
}

static void plans(void)
{
	static const char *const good[] = { "record", "-e", "sched", "-o", "x.dat", "sleep", "1" };
	static const char *const bad[] = { "record", "--no-such" };
	struct hyptrace_plan *plan;
	char why[256] = "";

	printf("plan: %s\n", name_of(hyptrace_plan_parse(&plan, 7, good, NULL, 0)));
	hyptrace_plan_free(plan);
	printf("wrong plan: %s, ", name_of(hyptrace_plan_parse(&plan, 2, bad, why, sizeof(why))));
	printf("%s%s\n", *why ? "with a reason" : "no reason", plan ? ", a plan" : "");
	printf("no spool: %s\n", name_of(hyptrace_recover("/no/such/spool", NULL, NULL, NULL)));
}

/* ---- threads ------------------------------------------------------------------------- */

struct reading {
	const char *const *paths;
	uint64_t events, sum;
	int ret;
};

static void *read_all_events(void *to)
{
	struct reading *r = to;

	for (int i = 0; i < 5; i++) {
		struct hyptrace_event e;
		struct hyptrace *h;

		e.size = sizeof(e);
		r->ret = hyptrace_open(&h, r->paths, 2, NULL);
		if (r->ret)
			return NULL;
		while ((r->ret = hyptrace_next(h, &e)) == 1) {
			const char *text = hyptrace_text(h);

			r->events++;
			while (text && *text)
				r->sum = r->sum * 31 + (unsigned char)*text++;
		}
		hyptrace_close(h);
	}
	return NULL;
}

static void threads(const char *const *paths)
{
	struct reading r[2] = { { paths, 0, 0, 0 }, { paths, 0, 0, 0 } }, alone = { paths, 0, 0, 0 };
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, read_all_events, &r[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	read_all_events(&alone);
	printf("threads: %s, %s\n", !r[0].ret && !r[1].ret ? "fine" : "failed",
	       r[0].events == alone.events && r[0].sum == alone.sum && r[1].events == alone.events &&
			       r[1].sum == alone.sum && alone.events
		       ? "the same"
		       : "different");
}

int main(int argc, char **argv)
{
	const char *const *paths = (const char *const *)argv + 1;

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("version %u.%u.%u: %s\n", hyptrace_version() >> 16, hyptrace_version() >> 8 & 255,
	       hyptrace_version() & 255,
	       hyptrace_version() == HYPTRACE_VERSION_NUMBER ? "the header's" : "another");
	open_bad("missing file", "/no/such/file");
	printf("%s\n", last_error);
	open_bad("no trace.dat", "/proc/self/cmdline");
	open_bad("a directory", "/");
	sizes(paths);
	fields(paths);
	seeks_and_filters(paths);
	spans(paths);
	offsets(paths);
	plans();
	threads(paths);
	return 0;
}
