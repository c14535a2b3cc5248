// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All exporters over a file with records of any content. Each record in the input: the event,
 * the CPU, lost events, the length, then so many bytes.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define assert_true(x)                                                                                       \
	do {                                                                                                 \
		if (!(x))                                                                                    \
			abort();                                                                             \
	} while (0)
#define assert_non_null(x)     assert_true((x) != NULL)
#define assert_int_equal(a, b) assert_true((a) == (b))
#define fail_msg(...)	       abort()

#include "../unit/plugin-rig.h"

#include "file/dat/options.h"
#include "file/dat/offset.h"
#include "file/dat/page.h"
#include "convert/export/export.h"
#include "recipe.h"
#include "base/cursor.h"
#include "base/files.h"
#include "base/strings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIRST_ID 300
#define REASON                                                                                               \
	"\"reason=%s vcpu=%d\", __print_symbolic(REC->reason, { 5, \"guest_exit\" }, { 7, "                  \
	"\"eret_guest\" }), REC->vcpu"

static struct rig_event events[] = {
	{ .sys = "ftrace", .name = "print", .fields = "unsigned long ip; char buf[]" },
	{ .sys = "kvm", .name = "kvm_entry", .fields = "unsigned long vcpu_pc" },
	{ .sys = "kvm", .name = "kvm_exit", .fields = "int ret; unsigned int esr_ec; unsigned long vcpu_pc" },
	{ .sys = "irq", .name = "irq_handler_entry", .fields = "int irq; __data_loc char[] name" },
	{ .sys = "vendor",
	  .name = "thing",
	  .fields = "bool b; s64 n; __data_loc u64[] list; __data_loc char[] text" },
	{ .sys = "hypervisor",
	  .name = "hyp_enter",
	  .fields = "u8 reason; pid_t vcpu",
	  .packed = true,
	  .print_fmt = REASON },
	{ .sys = "hypervisor",
	  .name = "hyp_exit",
	  .fields = "u8 reason; pid_t vcpu",
	  .packed = true,
	  .print_fmt = REASON },
	{ .sys = "hypervisor", .name = "host_mem_abort", .fields = "u64 esr; u64 addr", .packed = true },
	{ .sys = "hypervisor", .name = "host_smc", .fields = "u64 id; u8 forwarded", .packed = true },
	{ .sys = "hyp", .name = "hyp_enter", .fields = "" },
	{ .sys = "hyp", .name = "hyp_exit", .fields = "" },
};

#define CPUS 4

/* Pages of one CPU. */
struct pages {
	struct page_writer w;
	struct buf bytes;
};

static int put_page(void *bytes, const void *page, size_t size)
{
	buf_add(bytes, page, size);
	return 0;
}

/* The next record of the input, with the id of one of the events, or of none. */
static bool next(struct cursor *c, struct pages *pages)
{
	uint8_t event = cursor_u8(c), cpu = cursor_u8(c), lost = cursor_u8(c), len = cursor_u8(c);
	const void *data = cursor_take(c, len);
	uint16_t id = FIRST_ID + event % (ARRAY_SIZE(events) + 1);
	struct page_writer *w = &pages[cpu % CPUS].w;
	uint8_t record[256 + 4] = { 0 };
	static uint64_t ts;

	if (c->bad)
		return false;
	memcpy(record, data, len);
	memcpy(record, &id, sizeof(id));
	if (len >= 8)
		memcpy(record + 4, &(int){ 7 + (cpu & 64) }, 4);
	if (lost & 1)
		assert_int_equal(page_write_lost(w, lost >> 2), 0);
	if (len)
		assert_int_equal(page_write(w, ++ts - (lost & 2), record, (len + 3u) & ~3u), 0);
	return true;
}

static void fill_cpus(struct cursor *c, int fd, struct dat_cpu *cpus)
{
	struct pages pages[CPUS] = { 0 };
	uint64_t at = 0;

	for (size_t i = 0; i < CPUS; i++)
		assert_int_equal(page_writer_init(&pages[i].w, 4096, put_page, &pages[i].bytes), 0);
	while (next(c, pages))
		;
	for (size_t i = 0; i < CPUS; i++) {
		assert_int_equal(page_flush(&pages[i].w, true), 0);
		assert_int_equal(write_all(fd, pages[i].bytes.data, pages[i].bytes.len), 0);
		cpus[i] = (struct dat_cpu){ .fd = fd, .offset = at, .size = pages[i].bytes.len };
		at += pages[i].bytes.len;
		page_writer_release(&pages[i].w);
		buf_release(&pages[i].bytes);
	}
}

/* A file with those records, and the formats. */
static int make_file(struct cursor *c)
{
	struct offset_vcpu vcpu = { 0, 7 };
	struct offset_guest guest = { .name = (char *)"vm", .trace_id = 2, .n = 1, .vcpus = &vcpu };
	struct dat_text formats[ARRAY_SIZE(events)], header = { 0 }, header_event = { "none", 4 };
	struct dat_system systems[ARRAY_SIZE(events)];
	struct dat_cpu cpus[CPUS];
	struct dat_buffer top = {
		.name = "", .clock = "boot", .page_size = 4096, .n_cpus = CPUS, .cpus = cpus
	};
	struct dat_options options = { 0 };
	struct dat_file f = {
		.version = 7, .page_size = 4096, .systems = systems, .buffers = &top, .n_buffers = 1
	};
	struct buf b = { 0 }, page = { 0 };
	int fd = memfd_create("file", MFD_CLOEXEC), records = memfd_create("records", MFD_CLOEXEC);

	fill_cpus(c, records, cpus);
	assert_int_equal(read_file("tests/data/formats/header_page", 1 << 20, &page), 0);
	header = (struct dat_text){ buf_str(&page), page.len };
	f.header_page = header;
	f.header_event = header_event;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct buf text = { 0 };

		events[i].id = FIRST_ID + (int)i;
		rig_format(&events[i], &text);
		formats[i] = (struct dat_text){ buf_str(&text), text.len };
		systems[f.n_systems++] = (struct dat_system){ events[i].sys, 1, &formats[i] };
	}
	offset_guest_encode(&guest, &b);
	assert_int_equal(dat_options_add(&options, DAT_GUEST, b.data, b.len), 0);
	f.options = options.v;
	f.n_options = options.n;
	f.cmdlines = (struct dat_text){ "7 CPU 0/KVM\n", 12 };
	assert_int_equal(dat_write(&f, fd, NULL), 0);
	dat_options_release(&options);
	buf_release(&b);
	buf_release(&page);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		free((char *)formats[i].data);
	close(records);
	return fd;
}

/* With formats and plugins, for all the files. */
static struct inputs *open_once(void)
{
	static struct inputs in;
	static char path[64];
	char *paths[] = { path };
	struct cursor none = cursor_at(NULL, 0);
	cpu_set_t one;

	if (in.n)
		return &in;
	/* threads would take longer than the rest */
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", make_file(&none));
	assert_int_equal(inputs_open(&in, paths, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&in, NULL), 0);
	return &in;
}

static struct export_job begin(struct inputs *in, int fd)
{
	struct export_job job = { .in = in, .fd = fd };

	assert_int_equal(timeline_open(&job.timeline, in, NULL, NULL, NULL), 0);
	return job;
}

/* Of some inputs: files take longer than the rest. */
static void into_tables(struct inputs *in, uint64_t records)
{
	struct export_job job = begin(in, -1);
	char *dir = str_printf("%s/out", scratch_dir());

	assert_non_null(dir);
	assert_int_equal(export_parquet(&job, dir, NULL), 0);
	assert_int_equal(job.records, records);
	timeline_close(job.timeline);
	scratch_clear();
	free(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_at(data, size);
	struct inputs *in = open_once();
	struct reader *formats = in->v[0].reader;
	int file = make_file(&c), fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct export_job json, perfetto;

	assert_int_equal(reader_open(&in->v[0].reader, file, NULL), 0);
	json = begin(in, fd);
	assert_int_equal(export_json(&json), 0);
	perfetto = begin(in, fd);
	assert_int_equal(export_perfetto(&perfetto, NULL, NULL), 0);
	assert_int_equal(json.records, perfetto.records);
	timeline_close(json.timeline);
	timeline_close(perfetto.timeline);
	if (size % 8 == 0)
		into_tables(in, json.records);
	reader_close(in->v[0].reader);
	in->v[0].reader = formats;
	close(fd);
	close(file);
	return 0;
}
