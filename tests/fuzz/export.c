// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Both exporters over records of any content. Each record in the input: the event,
 * the CPU, lost events, the length, then so many bytes.
 */
#include <fcntl.h>
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

#include "dat/options.h"
#include "export/json-lines.h"
#include "dat/offset.h"
#include "dat/page.h"
#include "export/perfetto.h"

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

/* A file without records that has the formats. */
static int make_file(void)
{
	struct offset_vcpu vcpu = { 0, 7 };
	struct offset_guest guest = { .name = (char *)"vm", .trace_id = 2, .n = 1, .vcpus = &vcpu };
	struct dat_text formats[ARRAY_SIZE(events)], header = { 0 }, header_event = { "none", 4 };
	struct dat_system systems[ARRAY_SIZE(events)];
	struct dat_cpu cpu = { .fd = -1 };
	struct dat_buffer top = { .name = "", .clock = "boot", .page_size = 4096, .n_cpus = 1, .cpus = &cpu };
	struct dat_options options = { 0 };
	struct dat_file f = {
		.version = 7, .page_size = 4096, .systems = systems, .buffers = &top, .n_buffers = 1
	};
	struct buf b = { 0 }, page = { 0 };
	int fd = memfd_create("formats", MFD_CLOEXEC);

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
	return fd;
}

static const struct inputs *open_once(void)
{
	static struct inputs in;
	static char path[64];
	char *paths[] = { path };

	if (in.n)
		return &in;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", make_file());
	assert_int_equal(inputs_open(&in, paths, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&in, NULL), 0);
	return &in;
}

/* The next record of the input, its bytes with room behind them as libtraceevent wants it. */
static bool next(struct cursor *c, const struct inputs *in, struct padded *room, struct timeline_record *r)
{
	uint8_t event = cursor_u8(c), cpu = cursor_u8(c), lost = cursor_u8(c), len = cursor_u8(c);
	const void *data = cursor_take(c, len);
	static uint64_t ts;

	if (c->bad)
		return false;
	*r = (struct timeline_record){ .in = in->v,
				       .buffer = reader_info(in->v[0].reader)->buffers,
				       .cpu = cpu % 4,
				       .ts = ++ts - (lost & 2),
				       .missed = lost & 1 ? -1 : 0,
				       .id = FIRST_ID + event % (ARRAY_SIZE(events) + 1),
				       .pid = 7 + (cpu & 64) };
	if (len)
		r->tep = padded_record(room, data, len);
	if (len)
		r->event = tep_find_event(in->v[0].tep, (int)r->id);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct padded room;
	const struct inputs *in = open_once();
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct cursor c = cursor_at(data, size);
	struct export_json *json = export_json_new(fd);
	struct timeline_record r;
	struct perfetto *p = NULL;

	assert_true(room.data || !padded_init(&room));
	assert_true(!perfetto_new(&p, fd, in, NULL, NULL));
	while (next(&c, in, &room, &r)) {
		assert_int_equal(export_json_record(json, &r), 0);
		assert_int_equal(perfetto_record(p, &r), 0);
	}
	assert_int_equal(export_json_flush(json), 0);
	assert_int_equal(perfetto_finish(p), 0);
	export_json_free(json);
	perfetto_free(p);
	close(fd);
	return 0;
}
