// SPDX-License-Identifier: GPL-2.0-only
/* The libtraceevent plugins, loaded as a tool loads them: what they print of an event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "plugin-rows.h"
#include "base/files.h"
#include "base/strings.h"

/* ---- load order ----------------------------------------------------------------------- */

/* The directory of the stock plugins: libtraceevent has loaded them. */
static bool stock_dir(char *out, size_t size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[PATH_MAX + 128], *path;
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f)) {
		path = strchr(line, '/');
		if (!path || !strstr(path, "/plugin_kvm.so"))
			continue;
		*strstr(path, "/plugin_kvm.so") = 0;
		snprintf(out, size, "%s", path);
		found = true;
	}
	fclose(f);
	return found;
}

static void check_both_archs(const char *first, bool stock, const char *last)
{
	struct rig_event arm = KVM_EXIT, arm_entry = KVM("kvm_entry", "unsigned long vcpu_pc");
	struct rig_event x86 = { .sys = "kvm",
				 .name = "kvm_exit",
				 .fields = "unsigned int exit_reason; unsigned long guest_rip; u32 isa; "
					   "u64 info1; u64 info2" };
	struct rig_event x86_entry = KVM("kvm_entry", "unsigned int vcpu_id; unsigned long rip");
	const uint64_t trap[] = { 2, 0x16, 0x1000 }, hlt[] = { 12, 0xffffffff81000000, 1, 0, 0 };
	const uint64_t entry[] = { 1, 0xffffffff81000000 };
	struct buf b = { 0 };
	struct rig r;

	arm.id = x86.id = 300;
	arm_entry.id = x86_entry.id = 301;
	rig_open(&r, first, stock, last);
	rig_add(&r, &arm);
	rig_add(&r, &arm_entry);
	rig_record(&arm, trap, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, b.len),
			    "TRAP: HSR_EC: 0x0016 (HVC64), PC: 0x0000000000001000");
	rig_record(&arm_entry, trap + 2, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, b.len), "PC: 0x0000000000001000");
	rig_close(&r);

	rig_open(&r, first, stock, last);
	rig_add(&r, &x86);
	rig_add(&r, &x86_entry);
	rig_record(&x86, hlt, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, b.len), "reason HLT rip 0xffffffff81000000 info 0 0");
	rig_record(&x86_entry, entry, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, b.len), " vcpu 1 rip 0xffffffff81000000");
	rig_close(&r);
	buf_release(&b);
}

static void test_order(void **state)
{
	char stock[PATH_MAX];
	struct rig r;
	bool found;

	rig_open(&r, NULL, true, NULL);
	found = stock_dir(stock, sizeof(stock));
	rig_close(&r);
	if (!found)
		skip();
	check_both_archs(NULL, true, rig_plugins());
	check_both_archs(rig_plugins(), true, NULL);
	check_both_archs(rig_plugins(), false, stock);
	check_both_archs(rig_plugins(), true, rig_plugins()); /* ours twice: installed, and in the tree */
	check_both_archs(rig_plugins(), true, stock);	      /* stock's twice */
}

/* The decoy does not outlive its work: a tool that looks for events finds the file's own. */
static void test_decoy(void **state)
{
	struct rig_event e = KVM_EXIT;
	const uint64_t values[] = { 0, 0, 0 };
	struct buf b = { 0 };
	struct rig r;

	e.id = 300;
	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &e);
	assert_int_equal(tep_find_event_by_name(r.tep, "kvm", "kvm_exit")->id, 300);
	rig_record(&e, values, NULL, 0, &b);
	rig_print(&r, b.data, b.len);
	for (int i = 0; i < tep_get_events_count(r.tep); i++) {
		struct tep_event *event = tep_get_event(r.tep, i);

		if (!strcmp(event->name, "kvm_exit"))
			assert_true(event->id == 300 || strcmp(event->system, "kvm") != 0);
	}
	rig_close(&r);
	buf_release(&b);
}

/* ---- trace_marker -------------------------------------------------------------------------- */

#define PRINT                                                                                                \
	{                                                                                                    \
		"ftrace", "print", "unsigned long ip; char buf[]", "\"%ps: %s\", (void *)REC->ip, REC->buf", \
			.id = 5                                                                              \
	}

static const struct {
	const char *line, *text;
} marker_rows[] = {
	/* the seeds: crosvm's guide, QEMU's hypertrace document */
	{ "503 VirtioFs Enter: release - (self.tag: \"mtdroot\")(inode: 42)(handle: 35)\n",
	  "crosvm 503 VirtioFs enter release self.tag=\"mtdroot\", inode=42, handle=35" },
	{ "503 VirtioFs Exit: release", "crosvm 503 VirtioFs exit release" },
	{ "512 VirtioFs Enter: process_fs_queue - (slot: 0)",
	  "crosvm 512 VirtioFs enter process_fs_queue slot=0" },
	{ "512 VirtioFs Exit: process_fs_queue", "crosvm 512 VirtioFs exit process_fs_queue" },
	{ "guest_hypertrace cpu=0x5602e1f49c10  arg1=1 arg2=0x000000000000cafe "
	  "arg3=0x000000000000dead arg4=0x000000000000beef\n",
	  "guest_hypertrace cpu=0x5602e1f49c10 arg1=1 arg2=0xcafe arg3=0xdead arg4=0xbeef" },
	{ "23071@1473096086.756117:guest_hypertrace cpu=0x5602e1f49c10  arg1=0 "
	  "arg2=0x000000000000cafe arg3=0x000000000000dead arg4=0x000000000000beef",
	  "guest_hypertrace cpu=0x5602e1f49c10 arg1=0 arg2=0xcafe arg3=0xdead arg4=0xbeef" },
	/* an Exit without its category, a name with spaces, values with all kinds of brackets */
	{ "7 Exit: handle RxTap event", "crosvm 7 exit handle RxTap event" },
	{ "8 VirtioScsi Enter: READ(10)", "crosvm 8 VirtioScsi enter READ(10)" },
	{ "9 USB Enter: a - b - (x: Some(\"a)(\\\"b\"))(y)", "crosvm 9 USB enter a - b "
							     "x=Some(\"a)(\\\"b\"), y=" },
	{ "9 USB Enter: open - (x: (1", "crosvm 9 USB enter open - (x: (1" },
	/* other lines are as stock prints them */
	{ "Hello world.", "tracing_mark_write: Hello world." },
	{ "fuse server: handle_message: in_header=InHeader { len: 64 }",
	  "tracing_mark_write: fuse server: handle_message: in_header=InHeader { len: 64 }" },
	{ "99999999999999999999 A Enter: b", "tracing_mark_write: 99999999999999999999 A Enter: b" },
	{ "5 Enter: ", "tracing_mark_write: 5 Enter: " },
	{ "guest_hypertrace arg1=x", "tracing_mark_write: guest_hypertrace arg1=x" },
	{ "guest_hypertrace arg2=1", "tracing_mark_write: guest_hypertrace arg2=1" },
	{ "guest_hypertraced arg1=1", "tracing_mark_write: guest_hypertraced arg1=1" },
	{ "", "tracing_mark_write: " },
};

static void check_markers(const char *first, const char *last)
{
	const uint64_t ip[] = { 0xffff800080001000 };
	struct rig_event e = PRINT;
	struct buf b = { 0 };
	struct rig r;

	rig_open(&r, first, true, last);
	tep_register_function(r.tep, (char *)"tracing_mark_write", ip[0], NULL);
	tep_register_function(r.tep, (char *)"end", ip[0] + 0x1000, NULL);
	rig_add(&r, &e);
	for (size_t i = 0; i < ARRAY_SIZE(marker_rows); i++) {
		rig_record(&e, ip, marker_rows[i].line, strlen(marker_rows[i].line) + 1, &b);
		assert_string_equal(rig_print(&r, b.data, b.len), marker_rows[i].text);
	}
	rig_close(&r);
	buf_release(&b);
}

static void link_plugin(const char *dir, const char *name)
{
	char *from = str_printf("%s/%s", rig_plugins(), name), *to = str_printf("%s/%s", dir, name);

	assert_int_equal(symlink(from, to), 0);
	free(from);
	free(to);
}

static void remove_dir(const char *dir, const char *name)
{
	char *path = str_printf("%s/%s", dir, name);

	unlink(path);
	rmdir(dir);
	free(path);
}

/* Two plugins of ours want the print event: either may be loaded last. */
static void test_markers(void **state)
{
	char crosvm[] = "/tmp/hyptrace-test.XXXXXX", hypertrace[] = "/tmp/hyptrace-test.XXXXXX";

	assert_non_null(mkdtemp(crosvm));
	assert_non_null(mkdtemp(hypertrace));
	link_plugin(crosvm, "crosvm.so");
	link_plugin(hypertrace, "hypertrace.so");
	check_markers(crosvm, hypertrace);
	check_markers(hypertrace, crosvm);
	check_markers(NULL, rig_plugins());
	check_markers(rig_plugins(), rig_plugins());
	remove_dir(crosvm, "crosvm.so");
	remove_dir(hypertrace, "hypertrace.so");
}

/* ---- options --------------------------------------------------------------------------------- */

static char *temp_file(const char *text)
{
	char *path = strdup("/tmp/hyptrace-test.XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	close(fd);
	return path;
}

static void add_option(const char *name, const char *value)
{
	assert_int_equal(tep_plugin_add_option(name, value), 0);
}

static void test_hyp_options(void **state)
{
	struct row rows[] = {
		{ HYP("host_hcall", "unsigned int id; u8 invalid", NULL),
		  { 9, 0 },
		  "id=9 invalid=0 (__kvm_vcpu_run)" },
		{ HYP("func", "unsigned long ip; unsigned long parent", NULL),
		  { 0x1000, 0x1fff },
		  "__kvm_hyp_one <- __kvm_hyp_two+0xf" },
		{ HYP("__hyp_printk", "u16 fmt_id; u64 a; u64 b; u64 c; u64 d", NULL),
		  { 3, 0xfffffff6, 0x1000, 77, 0 },
		  "x=-10 at 0x0000000000001000 77% ok 0x0" },
		{ HYP("__hyp_printk2", "u64 a", NULL), { 1 }, "FALLBACK" },
	};
	char *hcalls = temp_file("9 __kvm_vcpu_run\n");
	char *symbols = temp_file("ffff800080002ff0 t __kvm_hyp_two\n"
				  "ffff800080002000 T __kvm_hyp_one\n");
	char *printk = temp_file("# id format\n3 x=%d at %#018lx %llu%% ok %p\n");
	struct rig r;

	add_option("hyp:hcalls", hcalls);
	add_option("hyp:symbols", symbols);
	add_option("hyp:symbols_offset", "0xffff800080001000");
	add_option("hyp:printk", printk);
	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, rows, ARRAY_SIZE(rows));
	rig_close(&r);
	add_option("hyp:hcalls", "");
	add_option("hyp:symbols", "");
	add_option("hyp:symbols_offset", "");
	add_option("hyp:printk", "");
	unlink(hcalls);
	unlink(symbols);
	unlink(printk);
	free(hcalls);
	free(symbols);
	free(printk);
}

static void test_plain(void **state)
{
	struct row rows[] = {
		{ HYP("host_smc", "u64 id; u8 forwarded", NULL),
		  { 0x84000000, 0 },
		  "id=2214592512 forwarded=0" },
		{ KVM("kvm_handle_sys_reg", "unsigned long hsr"), { 0x623a3016 }, "HSR 0x623a3016" },
	};
	struct rig r;

	add_option("hyp:plain", "1");
	add_option("kvm-arm64:plain", "1");
	rig_open(&r, NULL, true, rig_plugins());
	check_rows(&r, rows, ARRAY_SIZE(rows));
	rig_close(&r);
	add_option("hyp:plain", "0");
	add_option("kvm-arm64:plain", "0");
}

static const char *hypertrace_marker(struct rig *r, const struct rig_event *e, const char *line)
{
	static const uint64_t ip[] = { 0 };
	static struct buf b;

	rig_record(e, ip, line, strlen(line) + 1, &b);
	return rig_print(r, b.data, b.len);
}

static void test_mark_desc(void **state)
{
	char *desc = temp_file("# the game\n"
			       "1 frame_start  width:u16 height:u32 where:hex\n"
			       "0x2 state what:enum(0=idle,1=busy) ok:bool c:char f:f64 n:s8\n");
	struct rig_event e = PRINT;
	struct row rows[] = {
		{ { "qemu", "guest_hypertrace", "u64 cpu; u64 arg1; u64 arg2; u64 arg3", .id = 0 },
		  { 0x1000, 1, 640, 480 },
		  "guest_hypertrace cpu=0x1000 frame_start(width=640, height=480)" },
	};
	struct rig_event array = { "hypertrace", "guest_hypertrace",
				   "unsigned int client; __data_loc u64[] args", .id = 400 };
	const uint64_t args[] = { 2, 1, 1, 'x', 0x4009000000000000, 0xff };
	uint64_t values[] = { 7, 0 };
	struct buf b = { 0 };
	struct rig r;

	add_option("hypertrace:desc", desc);
	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &e);
	assert_string_equal(hypertrace_marker(&r, &e,
					      "guest_hypertrace arg1=1 arg2=0x10280 arg3=480 "
					      "arg4=0xcafe arg5=5"),
			    "guest_hypertrace frame_start(width=640, height=480, where=0xcafe) "
			    "arg5=0x5");
	assert_string_equal(hypertrace_marker(&r, &e, "guest_hypertrace arg1=9 arg2=1"),
			    "guest_hypertrace arg1=9 arg2=0x1");
	check_rows(&r, rows, ARRAY_SIZE(rows));
	rig_close(&r);

	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &array);
	values[1] = sizeof(args) << 16 | array.len;
	rig_record(&array, values, args, sizeof(args), &b);
	assert_string_equal(rig_print(&r, b.data, b.len),
			    "guest_hypertrace client=7 state(what=busy, ok=true, c='x', f=3.125, n=-1)");
	rig_close(&r);
	add_option("hypertrace:desc", "");
	buf_release(&b);
	unlink(desc);
	free(desc);
}

/* ---- hostile records ---------------------------------------------------------------------------
 */

/* The handler alone, with an exact copy: a byte too far is seen by ASan. */
static void call_handler(struct tep_event *event, const void *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct tep_record rec = { .data = copy, .size = (int)len };
	struct trace_seq s;

	memcpy(copy, data, len);
	trace_seq_init(&s);
	if (event->handler(&s, &rec, event, event->context) < 0)
		assert_int_equal(s.len, 0);
	trace_seq_destroy(&s);
	free(copy);
}

static void test_short(void **state)
{
	struct rig_event events[] = {
		KVM_EXIT,
		KVM("kvm_sys_access", "unsigned long vcpu_pc; bool is_write; const char * name; u8 Op0; "
				      "u8 Op1; u8 CRn; u8 CRm; u8 Op2"),
		HYP("hyp_enter", "u8 reason; pid_t vcpu", NULL),
		HYP("host_mem_abort", "u64 esr; u64 addr", NULL),
		HYP("hyp_printk", "u16 fmt_id; __data_loc u64[] args", NULL),
		PRINT,
		{ "qemu", "guest_hypertrace", "u64 arg1; u64 arg2", .id = 0 },
		{ "qemu", "guest_hypertrace", "__data_loc u64[] args", .id = 0 },
	};
	uint8_t data[64];
	struct rig r;

	rig_open(&r, NULL, true, rig_plugins());
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct tep_event *event;

		events[i].id = 500 + (int)i;
		event = rig_add(&r, &events[i]);
		if (!event->handler)
			continue; /* the second guest_hypertrace: one handler, one event */
		for (int fill = 0; fill < 256; fill += 51) {
			memset(data, fill, sizeof(data));
			for (size_t len = 0; len <= sizeof(data); len++)
				call_handler(event, data, len);
		}
	}
	rig_close(&r);
}

static void test_short_text(void **state)
{
	struct rig_event e = HYP("host_smc", "u64 id; u8 forwarded", NULL);
	const uint64_t values[] = { 0x84000000, 1 };
	struct buf b = { 0 };
	struct rig r;

	e.id = 300;
	rig_open(&r, NULL, true, rig_plugins());
	rig_add(&r, &e);
	rig_record(&e, values, NULL, 0, &b);
	assert_string_equal(rig_print(&r, b.data, 12), "[record too short]");
	rig_close(&r);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	cmocka_unit_test(test_decoy),
		cmocka_unit_test(test_markers), cmocka_unit_test(test_hyp_options),
		cmocka_unit_test(test_plain),	cmocka_unit_test(test_mark_desc),
		cmocka_unit_test(test_short),	cmocka_unit_test(test_short_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
