// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probe for CNTVOFF against a fake tracefs. What the kernel does by itself
 * when an instance is made or removed is done here, in mkdirat() and unlinkat().
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "fake-tracefs.h"
#include "file/dat/page.h"
#include "record/clock/cntvoff.h"
#include "base/array.h"

#define CPUS	 3
#define CLOSED	 1 /* its pages cannot be opened */
#define PROBE_ID 1234

/* Of the probe's event. */
#define FORMAT(cntvoff, size)                                                                                \
	"name: voff\nID: 1234\nformat:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                       \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"                                         \
	"\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"                                 \
	"\tfield:u64 " cntvoff ";\toffset:16;\tsize:" size ";\tsigned:0;\n"                                  \
	"\tfield:s32 id;\toffset:24;\tsize:4;\tsigned:1;\n"                                                  \
	"\tfield:s32 vm;\toffset:28;\tsize:4;\tsigned:1;\n\n"                                                \
	"print fmt: \"(%lx)\", REC->__probe_ip\n"

#define HEADER_PAGE(data)                                                                                    \
	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"                                           \
	"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"                                          \
	"\tfield: char overwrite;\toffset:8;\tsize:1;\tsigned:0;\n"                                          \
	"\tfield: char data;\toffset:16;\tsize:" data ";\tsigned:0;\n"

static struct fake fake;
static struct undo *undo;
static char instance[64], event[32];
static int instance_cpus;   /* that the kernel has */
static bool event_outlives; /* the instance */

/* ---- the kernel ------------------------------------------------------------------ */

static const char *raw_of(int cpu)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/trace_pipe_raw", instance, cpu);
	return path;
}

static const char *in_instance(const char *file)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	return path;
}

static const char *enable_file(void)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/events/hyptrace/%s/enable", instance, event);
	return path;
}

int mkdirat(int dirfd, const char *path, mode_t mode)
{
	int ret = (int)syscall(SYS_mkdirat, dirfd, path, mode);

	if (ret || strcmp(path, instance))
		return ret;
	fake_put(&fake, in_instance("buffer_size_kb"), "7\n");
	fake_put(&fake, in_instance("trace_clock"), "[local] boot\n");
	fake_put(&fake, enable_file(), "0\n");
	for (int cpu = 0; cpu < instance_cpus; cpu++)
		fake_put(&fake, raw_of(cpu), "");
	if (instance_cpus > CLOSED) {
		unlinkat(fake.fd, raw_of(CLOSED), 0);
		assert_int_equal(symlinkat("trace_pipe_raw", fake.fd, raw_of(CLOSED)), 0);
	}
	return 0;
}

int unlinkat(int dirfd, const char *path, int flags)
{
	char whole[160];

	if (!(flags & AT_REMOVEDIR) || strcmp(path, instance))
		return (int)syscall(SYS_unlinkat, dirfd, path, flags);
	event_outlives = *fake_get(&fake, "dynamic_events") == 'f';
	snprintf(whole, sizeof(whole), "%s/%s", fake.dir, path);
	return nftw(whole, fake_rm, 16, FTW_DEPTH | FTW_PHYS);
}

static int setup(void **state)
{
	char format[96];

	fake_open(&fake);
	snprintf(event, sizeof(event), "voff_%d", (int)getpid());
	snprintf(instance, sizeof(instance), "instances/hyptrace-voff-%d", (int)getpid());
	snprintf(format, sizeof(format), "events/hyptrace/%s/format", event);
	fake_put(&fake, "dynamic_events", "");
	fake_put(&fake, "instances/other", "");
	fake_put(&fake, "events/header_page", HEADER_PAGE("4080"));
	fake_put(&fake, format, FORMAT("voff", "8"));
	instance_cpus = CPUS;
	event_outlives = false;
	return undo_open(&undo, fake.dir, AT_FDCWD, NULL, &fake.to);
}

static int teardown(void **state)
{
	undo_free(undo);
	fake_close(&fake);
	return 0;
}

/* ---- pages ------------------------------------------------------------------------ */

static int to_raw(void *ctx, const void *page, size_t size)
{
	int fd = openat(fake.fd, raw_of(*(int *)ctx), O_WRONLY | O_APPEND);
	int ret = fd < 0 ? -errno : write_all(fd, page, size);

	close(fd);
	return ret;
}

struct load {
	uint64_t time, cntvoff;
	int32_t vm, pid, id;
	uint64_t lost; /* before it */
};

static void put_loads(int cpu, const struct load *v, size_t n)
{
	struct page_writer w;

	assert_int_equal(page_writer_init(&w, 4096, to_raw, &cpu), 0);
	for (size_t i = 0; i < n; i++) {
		uint8_t rec[32] = { 0 };

		memcpy(rec, &(uint16_t){ PROBE_ID }, 2);
		memcpy(rec + 4, &v[i].pid, 4);
		memcpy(rec + 16, &v[i].cntvoff, 8);
		memcpy(rec + 24, &v[i].id, 4);
		memcpy(rec + 28, &v[i].vm, 4);
		if (v[i].lost)
			assert_int_equal(page_write_lost(&w, v[i].lost), 0);
		assert_int_equal(page_write(&w, v[i].time, rec, sizeof(rec)), 0);
	}
	assert_int_equal(page_flush(&w, true), 0);
	page_writer_release(&w);
}

#define PUT(cpu, ...)                                                                                        \
	do {                                                                                                 \
		const struct load v_[] = { __VA_ARGS__ };                                                    \
		put_loads(cpu, v_, ARRAY_SIZE(v_));                                                          \
	} while (0)

static void assert_span(const struct cntvoff_log *l, size_t i, struct cntvoff_span want)
{
	assert_in_range(i, 0, l->n_spans - 1);
	assert_int_equal(l->spans[i].vm, want.vm);
	assert_int_equal(l->spans[i].cntvoff, want.cntvoff);
	assert_int_equal(l->spans[i].first, want.first);
	assert_int_equal(l->spans[i].last, want.last);
	assert_int_equal(l->spans[i].vague, want.vague);
	assert_int_equal(l->spans[i].lossy, want.lossy);
}

/* ---- tests ------------------------------------------------------------------------ */

static void probe_comes_and_goes(void **state)
{
	struct cntvoff_probe *p;
	char define[256], remove[64];

	snprintf(define, sizeof(define),
		 "f:hyptrace/%s kvm_timer_vcpu_load voff=vcpu->kvm->arch.timer_data.voffset "
		 "id=vcpu->vcpu_id vm=vcpu->kvm->userspace_pid",
		 event);
	snprintf(remove, sizeof(remove), "-:hyptrace/%s", event);
	assert_int_equal(cntvoff_probe_open(&p, undo, "boot"), 0);
	assert_string_equal(fake_line(&fake, "dynamic_events"), define);
	assert_string_equal(fake_line(&fake, in_instance("buffer_size_kb")), "128");
	assert_string_equal(fake_line(&fake, in_instance("trace_clock")), "boot");
	assert_string_equal(fake_line(&fake, enable_file()), "1");
	cntvoff_probe_free(p);
	assert_int_equal(undo_all(undo), 0);
	/* the kernel does not remove an event that an instance uses */
	assert_true(event_outlives);
	assert_int_not_equal(faccessat(fake.fd, instance, F_OK, 0), 0);
	assert_string_equal(fake_line(&fake, "dynamic_events"), remove);
}

static void loads_come_in_order_of_time(void **state)
{
	struct cntvoff_log l = { 0 };
	struct cntvoff_probe *p;

	assert_int_equal(cntvoff_probe_open(&p, undo, "boot"), 0);
	assert_int_equal(cntvoff_probe_drain(p, &l), 0);
	assert_int_equal(l.n_spans, 0);
	PUT(0, { 100, 5, 90, 91, 0, 0 }, { 300, 5, 90, 91, 0, 0 }, { 310, 1ull << 40, 80, 81, 0, 0 });
	PUT(2, { 200, 7, 90, 92, 1, 0 });
	assert_int_equal(cntvoff_probe_drain(p, &l), 0);
	assert_int_equal(l.n_spans, 4);
	assert_span(&l, 0, (struct cntvoff_span){ 90, 5, 100, 100, false, false });
	assert_span(&l, 1, (struct cntvoff_span){ 90, 7, 200, 200, false, false });
	assert_span(&l, 2, (struct cntvoff_span){ 90, 5, 300, 300, false, false });
	assert_span(&l, 3, (struct cntvoff_span){ 80, 1ull << 40, 310, 310, false, false });
	assert_int_equal(l.n_vcpus, 3);
	for (size_t i = 0; i < l.n_vcpus; i++)
		assert_int_equal(l.vcpus[i].pid, l.vcpus[i].vm + 1 + (int)l.vcpus[i].id);
	/* what was taken does not come again */
	PUT(0, { 400, 5, 90, 93, 0, 0 });
	assert_int_equal(cntvoff_probe_drain(p, &l), 0);
	assert_int_equal(l.n_spans, 4);
	assert_span(&l, 2, (struct cntvoff_span){ 90, 5, 300, 400, false, false });
	assert_int_equal(l.vcpus[0].pid, 93);
	cntvoff_log_release(&l);
	cntvoff_probe_free(p);
}

/* They may have been of any VM, and its next load may be on another CPU, or come later. */
static void losses_are_told(void **state)
{
	struct cntvoff_log l = { 0 };
	struct cntvoff_probe *p;

	assert_int_equal(cntvoff_probe_open(&p, undo, "boot"), 0);
	PUT(0, { 100, 5, 90, 91, 0, 0 }, { 110, 5, 80, 81, 0, 0 }, { 120, 5, 70, 71, 0, 0 });
	assert_int_equal(cntvoff_probe_drain(p, &l), 0);
	PUT(0, { 200, 6, 90, 91, 0, 3 });
	PUT(2, { 210, 6, 80, 81, 0, 0 });
	assert_int_equal(cntvoff_probe_drain(p, &l), 0);
	PUT(2, { 300, 6, 90, 91, 0, 0 }, { 310, 7, 90, 91, 0, 0 }, { 320, 6, 70, 71, 0, 0 });
	assert_int_equal(cntvoff_probe_drain(p, &l), 0);
	assert_int_equal(l.n_spans, 7);
	assert_span(&l, 3, (struct cntvoff_span){ 90, 6, 200, 300, true, false });
	assert_span(&l, 4, (struct cntvoff_span){ 80, 6, 210, 210, true, true });
	assert_span(&l, 5, (struct cntvoff_span){ 90, 7, 310, 310, false, false });
	assert_span(&l, 6, (struct cntvoff_span){ 70, 6, 320, 320, true, false });
	cntvoff_log_release(&l);
	cntvoff_probe_free(p);
}

/* Other events, records that are too short, and a page that is damaged. */
static void nonsense_is_passed_over(void **state)
{
	struct cntvoff_log l = { 0 };
	struct page_writer w;
	struct cntvoff_probe *p;
	uint8_t rec[32] = { 0 }, page[4096];
	int cpu = 0;

	assert_int_equal(cntvoff_probe_open(&p, undo, "boot"), 0);
	assert_int_equal(page_writer_init(&w, 4096, to_raw, &cpu), 0);
	memcpy(rec, &(uint16_t){ PROBE_ID + 1 }, 2);
	assert_int_equal(page_write(&w, 10, rec, sizeof(rec)), 0);
	memcpy(rec, &(uint16_t){ PROBE_ID }, 2);
	assert_int_equal(page_write(&w, 20, rec, 28), 0);
	assert_int_equal(page_flush(&w, true), 0);
	page_writer_release(&w);
	memset(page, 0xff, sizeof(page));
	PUT(0, { 100, 5, 90, 91, 0, 0 });
	assert_int_equal(to_raw(&cpu, page, sizeof(page)), 0);
	PUT(0, { 200, 7, 90, 91, 0, 0 });
	assert_int_equal(cntvoff_probe_drain(p, &l), 0);
	assert_int_equal(l.n_spans, 2);
	assert_span(&l, 0, (struct cntvoff_span){ 90, 5, 100, 100, false, true });
	assert_span(&l, 1, (struct cntvoff_span){ 90, 7, 200, 200, true, true });
	cntvoff_log_release(&l);
	cntvoff_probe_free(p);
}

/* Nothing of it is left, and nothing for the undo. */
static void refuse(int want, bool made)
{
	struct cntvoff_probe *p = NULL;

	assert_int_equal(cntvoff_probe_open(&p, undo, "boot"), want);
	assert_null(p);
	assert_int_equal(undo_mark(undo), 0);
	assert_int_not_equal(faccessat(fake.fd, instance, F_OK, 0), 0);
	if (made)
		assert_memory_equal(fake_get(&fake, "dynamic_events"), "-:hyptrace/voff_", 16);
}

static void kernel_without_such_events(void **state)
{
	unlinkat(fake.fd, "dynamic_events", 0);
	refuse(-ENOENT, false);
}

static void format_without_the_field(void **state)
{
	char path[96];

	snprintf(path, sizeof(path), "events/hyptrace/%s/format", event);
	fake_put(&fake, path, FORMAT("other", "8"));
	refuse(-EINVAL, true);
	fake_put(&fake, path, FORMAT("voff", "4"));
	refuse(-EINVAL, true);
}

static void pages_too_large(void **state)
{
	fake_put(&fake, "events/header_page", HEADER_PAGE("131056"));
	refuse(-EMSGSIZE, true);
}

static void instance_without_cpus(void **state)
{
	instance_cpus = 0;
	refuse(-ENOENT, true);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(probe_comes_and_goes),    T(loads_come_in_order_of_time), T(losses_are_told),
		T(nonsense_is_passed_over), T(kernel_without_such_events),  T(format_without_the_field),
		T(pages_too_large),	    T(instance_without_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
