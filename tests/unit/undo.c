// SPDX-License-Identifier: GPL-2.0-only
/*
 * The journal of changes, on a fake tracefs of plain files (fake-tracefs.h):
 * what is noted before a change, what is written to put it back.
 */
#include "record/tracefs/undo.h"
#include "fake-tracefs.h"
#include "base/array.h"

#include <errno.h>
#include <time.h>

static struct fake fake;

static int setup(void **state)
{
	fake_open(&fake);
	return 0;
}

static int teardown(void **state)
{
	fake_close(&fake);
	return 0;
}

static const char *journal_path(void)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/journal", fake.root);
	return path;
}

static const char *journal(void)
{
	return fake_get(&fake, "../journal");
}

static struct undo *begin(void)
{
	struct undo *u;

	assert_int_equal(undo_open(&u, fake.dir, AT_FDCWD, journal_path(), &fake.to), 0);
	return u;
}

/* As after a kill -9: only the file is left. */
static struct undo *again(struct undo *u)
{
	undo_free(u);
	assert_int_equal(undo_load(&u, fake.dir, AT_FDCWD, journal_path(), &fake.to), 0);
	return u;
}

static void test_values(void **state)
{
	static const struct {
		const char *path, *text, *noted;
	} cases[] = {
		{ "tracing_on", "1\n", "write\ttracing_on\t1\n" },
		{ "trace_clock", "local [boot] mono\n", "write\ttrace_clock\tboot\n" },
		{ "trace_clock", "[local] boot mono\n", "write\ttrace_clock\tlocal\n" },
		{ "current_tracer", "function\n", "write\tcurrent_tracer\tfunction\n" },
		{ "buffer_size_kb", "7 (expanded: 1408)\n", "write\tbuffer_size_kb\t1408\n" },
		{ "buffer_size_kb", "1410\n", "write\tbuffer_size_kb\t1410\n" },
		{ "hyp/buffer_size_kb", "7 (unloaded)\n", "write\thyp/buffer_size_kb\t7\n" },
		{ "hyp/buffer_size_kb", "7 (loaded)\n", "write\thyp/buffer_size_kb\t7\n" },
		{ "buffer_subbuf_size_kb", "4\n", "write\tbuffer_subbuf_size_kb\t4\n" },
		{ "tracing_cpumask", "ff,ffffffff\n", "write\ttracing_cpumask\tff,ffffffff\n" },
		{ "saved_cmdlines_size", "128\n", "write\tsaved_cmdlines_size\t128\n" },
		{ "saved_cmdlines_size", "45874\n", "write\tsaved_cmdlines_size\t32768\n" },
		{ "max_graph_depth", "0\n", "write\tmax_graph_depth\t0\n" },
		{ "options/stacktrace", "0\n", "write\toptions/stacktrace\t0\n" },
		{ "events/a/b/enable", "0\n", "write\tevents/a/b/enable\t0\n" },
		{ "events/a/b/enable", "1*\n", "write\tevents/a/b/enable\t1\n" },
		{ "events/a/b/filter", "none\n", "write\tevents/a/b/filter\t0\n" },
		{ "events/a/b/filter", "name == \"[x]\"\n", "write\tevents/a/b/filter\tname == \"[x]\"\n" },
		{ "events/a/b/filter", "foo == 1\n^\nparse_error: Field not found\n",
		  "write\tevents/a/b/filter\tfoo == 1\n" },
		{ "options/odd", "100% \xc3\xa9\ttab\n", "write\toptions/odd\t100%25 %c3%a9%09tab\n" },
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct undo *u = begin();

		fake_put(&fake, cases[n].path, cases[n].text);
		assert_int_equal(undo_write(u, cases[n].path, "22"), 0);
		assert_string_equal(journal(), cases[n].noted);
		assert_string_equal(fake_line(&fake, cases[n].path), "22");
		u = again(u);
		assert_int_equal(undo_all(u), 0);
		assert_string_equal(journal(), "");
		undo_free(u);
		unlink(journal_path());
	}
	assert_string_equal(fake_line(&fake, "trace_clock"), "local");
	assert_string_equal(fake_line(&fake, "events/a/b/filter"), "foo == 1");
	assert_string_equal(fake_line(&fake, "options/odd"), "100% \xc3\xa9\ttab");
	assert_string_equal(fake.log, "");
}

static void test_no_change(void **state)
{
	struct undo *u = begin();

	fake_put(&fake, "trace_clock", "local [boot] mono\n");
	fake_put(&fake, "events/a/b/filter", "none\n");
	fake_put(&fake, "buffer_size_kb", "7 (expanded: 1408)\n");
	assert_int_equal(undo_write(u, "trace_clock", "boot"), 0);
	assert_int_equal(undo_write(u, "events/a/b/filter", "0"), 0);
	assert_int_equal(undo_write(u, "buffer_size_kb", "1408"), 0);
	assert_int_equal(undo_write(u, "nothing", "1"), -ENOENT);
	assert_string_equal(journal(), "");
	assert_int_equal(undo_mark(u), 0);
	assert_string_equal(fake_get(&fake, "trace_clock"), "local [boot] mono\n");
	undo_free(u);
}

static void test_newest_first(void **state)
{
	struct undo *u = begin();
	size_t mark;

	fake_put(&fake, "a", "1\n");
	assert_int_equal(undo_write(u, "a", "2"), 0);
	assert_int_equal(undo_at_end(u, "b", "x"), 0);
	mark = undo_mark(u);
	assert_int_equal(undo_write(u, "a", "3"), 0);
	assert_int_equal(undo_save(u, "a"), 0);
	assert_int_equal(undo_poke(u, "a", "4"), 0);
	assert_string_equal(journal(), "write\ta\t1\nwrite\tb\tx\nwrite\ta\t2\nwrite\ta\t3\n");
	assert_int_equal(undo_to(u, mark), 0);
	assert_string_equal(fake_line(&fake, "a"), "2");
	assert_string_equal(journal(), "write\ta\t1\nwrite\tb\tx\n");
	u = again(u);
	assert_int_equal(undo_all(u), 1); /* b is not there */
	assert_string_equal(fake_line(&fake, "a"), "1");
	assert_string_equal(fake.log, "cannot put 'b' back: No such file or directory\n");
	/* it stays, and what is older is put back once more */
	assert_string_equal(journal(), "write\ta\t1\nwrite\tb\tx\n");
	fake_put(&fake, "b", "y\n");
	u = again(u);
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_line(&fake, "b"), "x");
	assert_string_equal(journal(), "");
	undo_free(u);
}

static void test_lists(void **state)
{
	static const struct {
		const char *path, *text, *noted;
	} cases[] = {
		{ "set_event", "kvm:kvm_exit\nsched:sched_switch\n", "kvm:kvm_exit%0asched:sched_switch%0a" },
		{ "set_event", "*:*:mod:bridge\n", "*:*:mod:bridge%0a" },
		{ "set_event", "soft:off\nsoft:on\n", "soft:on%0a" },
		{ "instances/x/set_event", "soft:off\nsoft:on\n", "soft:off%0asoft:on%0a" },
		{ "set_event_pid", "1\n2\n", "1%0a2%0a" },
		{ "set_ftrace_pid", "no pid\n", "" },
		{ "set_ftrace_filter", "#### all functions enabled ####\n", "" },
		{ "set_ftrace_filter", "schedule\nbr_init [bridge]\nx:mod:y\nschedule:traceoff:unlimited\n",
		  "schedule%0abr_init:mod:bridge%0ax:mod:y%0a" },
		{ "set_graph_function", "schedule\nbr_init [bridge]\n", "schedule%0abr_init%0a" },
		{ "set_graph_notrace", "#### no functions disabled ####\n", "" },
	};

	fake_put(&fake, "events/soft/off/enable", "0*\n");
	fake_put(&fake, "events/soft/on/enable", "1*\n");
	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct undo *u = begin();
		char want[256];

		snprintf(want, sizeof(want), "list\t%s\t%s\n", cases[n].path, cases[n].noted);
		fake_put(&fake, cases[n].path, cases[n].text);
		assert_int_equal(undo_list(u, cases[n].path, ""), 0);
		assert_string_equal(journal(), want);
		assert_string_equal(fake_get(&fake, cases[n].path), *cases[n].noted ? "" : cases[n].text);
		u = again(u);
		assert_int_equal(undo_all(u), 0);
		undo_free(u);
		unlink(journal_path());
	}
	assert_string_equal(fake_get(&fake, "set_event"), "soft:on\n");
	assert_string_equal(fake_get(&fake, "set_event_pid"), "1\n2\n");
	assert_string_equal(fake_get(&fake, "set_graph_function"), "schedule\nbr_init\n");
}

static void test_list_lines(void **state)
{
	struct undo *u = begin();

	fake_put(&fake, "set_event", "a:b\n");
	assert_int_equal(undo_list(u, "set_event", "c:d\ne:f"), 0);
	assert_string_equal(fake_get(&fake, "set_event"), "c:d\ne:f\n");
	assert_int_equal(undo_add(u, "set_event", "g:h"), 0);
	assert_string_equal(fake_get(&fake, "set_event"), "c:d\ne:f\ng:h\n");
	assert_string_equal(journal(), "list\tset_event\ta:b%0a\nlist\tset_event\tc:d%0ae:f%0a\n");
	assert_int_equal(undo_list(u, "no/such", "x"), -ENOENT);
	assert_null(undo_refused(u));
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_get(&fake, "set_event"), "a:b\n");

	/* what an empty list gets by other ways goes again, too */
	fake_put(&fake, "set_event", "");
	assert_int_equal(undo_list(u, "set_event", ""), 0);
	fake_put(&fake, "set_event", "a:b\n");
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_get(&fake, "set_event"), "");

	/* shown newest first, written oldest first */
	fake_put(&fake, "set_event", "a:mod:x\ni:j\nb:mod:x\nk:l\n");
	assert_int_equal(undo_list(u, "set_event", ""), 0);
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_get(&fake, "set_event"), "i:j\nk:l\nb:mod:x\na:mod:x\n");
	undo_free(u);
}

/*
 * A plain file does not act on '!': what is looked at is what was written over
 * its beginning.
 */
static void test_triggers(void **state)
{
	static const char before[] = "# Available triggers:\n# traceon traceoff\n";
	static const char with[] = "stacktrace:unlimited\ntraceoff:count=5 if x > 3\n"
				   "hist:keys=a:vals=hitcount if y [active]\n"
				   "hist:keys=b:vals=hitcount if z [paused]\n"
				   "enable_event:kvm:kvm_exit:unlimited\n";
	struct undo *u = begin();

	fake_put(&fake, "events/a/b/trigger", before);
	assert_int_equal(undo_add(u, "events/a/b/trigger", "traceoff:1 if p"), 0);
	assert_string_equal(journal(), "list\tevents/a/b/trigger\t\n");
	fake_put(&fake, "events/a/b/trigger", "traceoff:count=1 if p\n");
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_line(&fake, "events/a/b/trigger"), "!traceoff:1 if p");

	fake_put(&fake, "events/a/b/trigger", with);
	assert_int_equal(undo_save(u, "events/a/b/trigger"), 0); /* no list: only to compare */
	undo_drop(u, 0);
	assert_int_equal(undo_add(u, "events/a/b/trigger", "snapshot"), 0);
	assert_string_equal(journal(), "list\tevents/a/b/trigger\tstacktrace%0atraceoff:5 if x > 3%0a"
				       "hist:keys=a:vals=hitcount if y%0a"
				       "hist:keys=b:vals=hitcount:pause if z%0a"
				       "enable_event:kvm:kvm_exit%0a\n");
	/* as the kernel would show it now, one gone: only the difference is written */
	fake_put(&fake, "events/a/b/trigger",
		 "snapshot:unlimited\ntraceoff:count=5 if x > 3\n"
		 "hist:keys=a:vals=hitcount if y [active]\n"
		 "hist:keys=b:vals=hitcount if z [paused]\n"
		 "enable_event:kvm:kvm_exit:unlimited\n............................");
	assert_int_equal(undo_all(u), 0);
	assert_memory_equal(fake_get(&fake, "events/a/b/trigger"), "!....", 2);
	assert_non_null(strstr(fake_get(&fake, "events/a/b/trigger"), "!snapshot\nstacktrace\n"));
	undo_free(u);
}

static void test_mixed(void **state)
{
	struct undo *u = begin();

	fake_put(&fake, "events/kvm/enable", "X\n");
	fake_put(&fake, "events/kvm/one/enable", "0\n");
	fake_put(&fake, "events/kvm/two/enable", "1\n");
	fake_put(&fake, "events/kvm/filter", "none\n");
	assert_int_equal(undo_write(u, "events/kvm/enable", "1"), 0);
	assert_int_equal(undo_mark(u), 2);
	assert_non_null(strstr(journal(), "write\tevents/kvm/one/enable\t0\n"));
	assert_non_null(strstr(journal(), "write\tevents/kvm/two/enable\t1\n"));
	assert_string_equal(fake_line(&fake, "events/kvm/enable"), "1");
	undo_drop(u, 0);
	assert_string_equal(journal(), "");

	fake_put(&fake, "buffer_size_kb", "X\n");
	fake_put(&fake, "per_cpu/cpu0/buffer_size_kb", "100\n");
	fake_put(&fake, "per_cpu/cpu1/buffer_size_kb", "200\n");
	assert_int_equal(undo_write(u, "buffer_size_kb", "1408"), 0);
	fake_put(&fake, "per_cpu/cpu0/buffer_size_kb", "1408\n");
	fake_put(&fake, "per_cpu/cpu1/buffer_size_kb", "1408\n");
	assert_int_equal(undo_mark(u), 2);
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_line(&fake, "per_cpu/cpu0/buffer_size_kb"), "100");
	assert_string_equal(fake_line(&fake, "per_cpu/cpu1/buffer_size_kb"), "200");
	undo_free(u);
}

static void test_instance(void **state)
{
	struct undo *u = begin();

	fake_put(&fake, "instances/old/a", "1\n");
	assert_int_equal(undo_mkdir(u, "instances/old"), -EEXIST);
	assert_string_equal(journal(), "");
	assert_int_equal(undo_mkdir(u, "instances/new"), 0);
	assert_int_equal(undo_mkdir(u, "elsewhere/new"), -EINVAL);
	assert_string_equal(journal(), "rmdir\tinstances/new\n");
	/* changes in it go with it; those in one with a longer name do not */
	fake_put(&fake, "instances/new/a", "1\n");
	fake_put(&fake, "instances/newer/a", "1\n");
	assert_int_equal(undo_write(u, "instances/new/a", "2"), 0);
	assert_int_equal(undo_list(u, "instances/new/a", "3"), 0);
	/* what keeps it from being removed goes before it */
	assert_int_equal(undo_at_end(u, "instances/new/a", "!4"), 0);
	assert_int_equal(undo_write(u, "instances/newer/a", "2"), 0);
	assert_string_equal(journal(), "rmdir\tinstances/new\nwrite\tinstances/new/a\t!4\n"
				       "write\tinstances/newer/a\t1\n");
	u = again(u);
	assert_int_equal(undo_to(u, 1), 0);
	assert_string_equal(fake_line(&fake, "instances/new/a"), "!4");
	unlinkat(fake.fd, "instances/new/a", 0); /* tracefs removes the files itself */
	assert_int_equal(undo_all(u), 0);
	assert_int_not_equal(faccessat(fake.fd, "instances/new", F_OK, 0), 0);
	assert_string_equal(fake_line(&fake, "instances/newer/a"), "1");
	undo_free(u);
}

/* One that cannot be removed is at least switched off. */
static void test_instance_stays(void **state)
{
	struct undo *u = begin();

	fake_put(&fake, "instances/old/a", "1\n");
	assert_int_equal(undo_mkdir(u, "instances/new"), 0);
	fake_put(&fake, "instances/new/tracing_on", "1\n");
	fake_put(&fake, "instances/new/set_event", "a:b\n");
	assert_int_equal(undo_all(u), 1);
	assert_string_equal(fake_get(&fake, "instances/new/tracing_on"), "0\n");
	assert_string_equal(fake_get(&fake, "instances/new/set_event"), "");
	assert_string_equal(fake.log, "cannot remove 'instances/new': Directory not empty\n");
	undo_free(u);
}

static void test_failed_change(void **state)
{
	struct undo *u = begin();

	fake_put(&fake, "a", "1\n");
	assert_int_equal(mkdirat(fake.fd, "dir", 0755), 0);
	assert_int_equal(undo_poke(u, "dir", "1"), -EISDIR);
	assert_int_equal(undo_write(u, "dir", "1"), -EISDIR);
	assert_int_equal(symlinkat("a", fake.fd, "link"), 0);
	assert_int_equal(undo_write(u, "link", "2"), -ELOOP);
	assert_string_equal(journal(), "");
	assert_string_equal(fake_line(&fake, "a"), "1");
	undo_free(u);
}

static void test_clear(void **state)
{
	struct undo *u = begin();

	fake_put(&fake, "trace", "much\ntext\n");
	assert_int_equal(undo_poke(u, "trace", ""), 0);
	assert_string_equal(fake_get(&fake, "trace"), "");
	assert_string_equal(journal(), "");
	undo_free(u);
}

static void test_in_memory(void **state)
{
	struct undo *u;

	fake_put(&fake, "a", "1\n");
	assert_int_equal(undo_open(&u, fake.dir, AT_FDCWD, NULL, &fake.to), 0);
	assert_int_equal(undo_write(u, "a", "2"), 0);
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_line(&fake, "a"), "1");
	undo_free(u);
	assert_int_equal(undo_open(&u, "/no/such/dir", AT_FDCWD, NULL, &fake.to), -ENOENT);
	assert_string_equal(fake.log, "cannot open the tracing directory '/no/such/dir': "
				      "No such file or directory\n");
}

static void test_journal_in_use(void **state)
{
	struct undo *u = begin(), *other;
	char want[256];

	assert_int_equal(undo_open(&other, fake.dir, AT_FDCWD, journal_path(), NULL), -EEXIST);
	assert_int_equal(undo_load(&other, fake.dir, AT_FDCWD, journal_path(), &fake.to), -EBUSY);
	snprintf(want, sizeof(want), "the journal '%s' belongs to a recording that still runs\n",
		 journal_path());
	assert_string_equal(fake.log, want);
	undo_free(u);
	assert_int_equal(undo_load(&other, fake.dir, AT_FDCWD, journal_path(), NULL), 0);
	undo_free(other);
}

static int load_text(const char *text, size_t len)
{
	struct undo *u = NULL;
	int ret;

	assert_int_equal(write_file_at(fake.fd, "../journal", text, len), 0);
	ret = undo_load(&u, fake.dir, AT_FDCWD, journal_path(), &fake.to);
	undo_free(ret ? NULL : u);
	return ret;
}

static void test_hostile_journal(void **state)
{
	static const char *const bad[] = {
		"write\t/etc/passwd\tx\n",
		"write\t../x\tx\n",
		"write\ta/../../x\tx\n",
		"write\ta/..\tx\n",
		"write\t.\tx\n",
		"write\t./a\tx\n",
		"write\ta//b\tx\n",
		"write\ta/\tx\n",
		"write\t\tx\n",
		"write\ta%2f..%2f..%2fb\tx\n",
		"write\ta%0ab\tx\n",
		"write\ta\n",
		"write\ta\tx%0ay\n",
		"write\ta\tx\ty\n",
		"write\ta\tx%\n",
		"write\ta\tx%2\n",
		"write\ta\tx%zz\n",
		"write\ta\tx%00\n",
		"write\ta\tx\x01\n",
		"write\ta\t\xc3\xa9\n",
		"rmdir\ta\n",
		"rmdir\tinstances\n",
		"rmdir\tinstances/a/b\n",
		"rmdir\tinstances/a\tx\n",
		"enable\tevents/enable\t1\n",
		"unlink\ta\tx\n",
		"write\n",
		"\n",
		"write a x\n",
	};
	char long_path[2000];

	for (size_t n = 0; n < ARRAY_SIZE(bad); n++) {
		int ret = load_text(bad[n], strlen(bad[n]));

		if (ret != -EBADMSG)
			print_error("case %zu: %s", n, bad[n]);
		assert_int_equal(ret, -EBADMSG);
	}
	memset(long_path, 'a', sizeof(long_path));
	memcpy(long_path, "write\t", 6);
	memcpy(long_path + sizeof(long_path) - 3, "\tx\n", 3);
	assert_int_equal(load_text(long_path, sizeof(long_path)), -EBADMSG);
	assert_int_equal(load_text("write\ta\tb\0c\n", 12), -EBADMSG);
	fake.log[0] = 0;
	assert_int_equal(load_text("write\ta\tb\nwrite\t/\tb\n", 20), -EBADMSG);
	assert_non_null(strstr(fake.log, "makes no sense at line 2\n"));
	assert_int_equal(load_text("", 0), 0);
}

/* The line that the writer's death cut: its change was not made. */
static void test_cut_journal(void **state)
{
	struct undo *u;

	fake_put(&fake, "a", "9\n");
	fake_put(&fake, "b", "9\n");
	fake_put(&fake, "../journal", "write\ta\t1\nwrite\tb\t12");
	assert_int_equal(undo_load(&u, fake.dir, AT_FDCWD, journal_path(), &fake.to), 0);
	assert_int_equal(undo_mark(u), 1);
	assert_int_equal(undo_write(u, "b", "8"), 0); /* goes where the cut line was */
	assert_string_equal(journal(), "write\ta\t1\nwrite\tb\t9\n");
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_line(&fake, "a"), "1");
	assert_string_equal(fake_line(&fake, "b"), "9");
	undo_free(u);
}

static void test_damaged_journal(void **state)
{
	static const char good[] = "write\ttrace_clock\tlocal\nlist\tset_event\ta:b%0ac:d%0a\n"
				   "rmdir\tinstances/x\nwrite\tevents/a/b/enable\t0\n";
	unsigned int seed = 1;

	for (int n = 0; n < 3000; n++) {
		char text[sizeof(good)];
		size_t len = sizeof(good) - 1;
		int ret;

		memcpy(text, good, sizeof(good));
		for (int k = 0; k < 3; k++)
			text[rand_r(&seed) % len] = (char)rand_r(&seed);
		ret = load_text(text, len);
		assert_true(!ret || ret == -EBADMSG);
	}
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void test_many_events(void **state)
{
	struct buf list = { 0 };
	struct undo *u = begin();
	double t = seconds();

	for (int n = 0; n < 2000; n++)
		buf_printf(&list, "system%d:event_with_a_long_name_%d\n", n / 20, n);
	fake_put(&fake, "set_event", buf_str(&list));
	assert_int_equal(undo_list(u, "set_event", ""), 0);
	u = again(u);
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_get(&fake, "set_event"), buf_str(&list));
	t = seconds() - t;
	print_message("2000 events cleared and put back in %.3f s\n", t);
	assert_true(t < 2);
	undo_free(u);
	buf_release(&list);
}

/* Long lists of functions go by their numbers. */
static void test_many_functions(void **state)
{
	struct buf all = { 0 }, some = { 0 }, want = { 0 };
	struct undo *u = begin();

	for (int n = 0; n < 1000; n++)
		buf_printf(&all, "func%03d%s\n", 999 - n, n % 2 ? "" : " [mod]");
	buf_addstr(&all, "func998\n"); /* a second one of that name */
	fake_put(&fake, "available_filter_functions", buf_str(&all));
	for (int n = 0; n < 40; n++)
		buf_printf(&some, "func%03d%s\n", 998 - n, n % 2 ? " [mod]" : "");
	buf_addstr(&some, "gone\n");
	/* those of modules come last, and last one first */
	for (int n = 0; n < 40; n += 2)
		buf_printf(&want, "%d\n%s", n + 2, n ? "" : "1001\n");
	buf_addstr(&want, "gone\n");
	for (int n = 39; n > 0; n -= 2)
		buf_printf(&want, "%d\n", n + 2);
	fake_put(&fake, "set_ftrace_filter", buf_str(&some));
	assert_int_equal(undo_list(u, "set_ftrace_filter", ""), 0);
	assert_int_equal(undo_all(u), 0);
	assert_string_equal(fake_get(&fake, "set_ftrace_filter"), buf_str(&want));
	undo_free(u);
	buf_release(&all);
	buf_release(&some);
	buf_release(&want);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_values),		 T(test_no_change),	  T(test_newest_first),
		T(test_lists),		 T(test_list_lines),	  T(test_triggers),
		T(test_mixed),		 T(test_instance),	  T(test_instance_stays),
		T(test_failed_change),	 T(test_clear),		  T(test_in_memory),
		T(test_journal_in_use),	 T(test_hostile_journal), T(test_cut_journal),
		T(test_damaged_journal), T(test_many_events),	  T(test_many_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
