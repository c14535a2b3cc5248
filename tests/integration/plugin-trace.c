// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat for plugins.t: each line of standard input becomes a line in
 * trace_marker, then one record of each of the hypervisor's events follows, as
 * kernels of the three generations have them and as hyptrace writes them.
 * usage: plugin-trace OUT < LINES
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
#define assert_true(x)		do { if (!(x)) abort(); } while (0)
#define assert_non_null(x)	assert_true((x) != NULL)
#define assert_int_equal(a, b)	assert_true((a) == (b))
#define fail_msg(...)		abort()
/* clang-format on */

#include "../unit/plugin-rig.h"

#include "dat/options.h"
#include "dat/page.h"
#include "dat/writer.h"

#define FORMATS "tests/data/formats"
#define FFA	"u64 func_id; u64 res_a1; u64 res_a2; u64 res_a3; u64 res_a4; int handled; int err"

#define REASON_FMT "\"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu"
#define HYP(event_name, event_fields, fmt)                                                                   \
	{                                                                                                    \
		.sys = "hypervisor", .name = event_name, .fields = event_fields, .packed = true,             \
		.print_fmt = fmt                                                                             \
	}

static struct rig_event print = { .sys = "ftrace",
				  .name = "print",
				  .fields = "unsigned long ip; char buf[]",
				  .print_fmt = "\"%ps: %s\", (void *)REC->ip, REC->buf",
				  .id = 5 };

static struct {
	struct rig_event event;
	uint64_t values[RIG_FIELDS_MAX];
} hyp[] = {
	{ HYP("hyp_enter", "u8 reason; pid_t vcpu", REASON_FMT), { 5, 100 } },
	{ HYP("host_hcall", "unsigned int id; u8 invalid", "\"id=%u invalid=%u\", REC->id, REC->invalid"),
	  { 9, 0 } },
	{ HYP("host_smc", "u64 id; u8 forwarded", "\"id=%llu forwarded=%u\", REC->id, REC->forwarded"),
	  { 0xc4000003, 1 } },
	{ HYP("host_mem_abort", "u64 esr; u64 addr", "\"esr=0x%llx addr=0x%llx\", REC->esr, REC->addr"),
	  { 0x93c08047, 0x40001000 } },
	{ HYP("host_ffa_call", FFA, "\"ffa_func=0x%llx\", REC->func_id"),
	  { 0x84000073, 1, 2, 3, 0x1a, 1, 0 } },
	{ HYP("psci_mem_protect", "u64 count; u64 was", "\"count=%llu was=%llu\", REC->count, REC->was"),
	  { 2, 1 } },
	{ HYP("iommu_idmap", "u64 from; u64 to; int prot", "\"from=0x%llx\", REC->from"),
	  { 0x40000000, 0x40004000, 7 } },
	{ HYP("iommu_idmap_complete", "bool map", "\"map=%d\", REC->map"), { 1 } },
	{ HYP("vcpu_illegal_trap", "u64 esr", "\"esr_el2=%llx\", REC->esr"), { 0x62300069 } },
	{ HYP("power_lock", "pid_t vm; u64 device; bool lock; int ret", "\"vm=%d\", REC->vm"),
	  { 100, 0x1000, 1, 0 } },
	{ HYP("func", "unsigned long ip; unsigned long parent",
	      "\"%ps <- %ps\", (void *)REC->ip, (void *)REC->parent"),
	  { 0x1000, 0x2000 } },
	{ HYP("__hyp_printk", "u16 fmt_id; u64 a; u64 b; u64 c; u64 d", "hyp_printk_fmt(REC->fmt_id)"),
	  { 3, 1, 2, 3, 4 } },
	{ HYP("selftest", "u64 id", "\"id=%llu\", REC->id"), { 7 } },
	{ HYP("vendor_thing", "u32 what", "\"what=%u\", REC->what"), { 8 } },
	{ HYP("hyp_exit", "u8 reason; pid_t vcpu", REASON_FMT), { 7, 100 } },
	/* Android's */
	{ { .sys = "hyp", .name = "hyp_enter", .fields = "", .print_fmt = "\" \", " }, { 0 } },
	{ { .sys = "hyp", .name = "hyp_exit", .fields = "", .print_fmt = "\" \", " }, { 0 } },
};

static struct dat_text format_text(struct rig_event *e)
{
	struct buf b = { 0 };

	rig_format(e, &b);
	return (struct dat_text){ buf_str(&b), b.len }; /* kept until the program ends */
}

static struct dat_text file_text(const char *path)
{
	struct buf b = { 0 };

	assert_int_equal(read_file(path, 1 << 20, &b), 0);
	return (struct dat_text){ buf_str(&b), b.len };
}

static int to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(*(int *)ctx, page, size);
}

static void put(struct page_writer *w, const struct rig_event *e, const uint64_t *values, const void *tail,
		size_t len)
{
	static uint64_t ts = 1000000000;
	const int pid = 100;
	struct buf b = { 0 };

	rig_record(e, values, tail, len, &b);
	memcpy(b.data + 4, &pid, sizeof(pid));
	assert_int_equal(page_write(w, ts += 1000, b.data, b.len), 0);
	buf_release(&b);
}

static void put_records(struct page_writer *w)
{
	const uint64_t ip[] = { 0xffff800080001000 };
	char line[1024];

	while (fgets(line, sizeof(line), stdin))
		put(w, &print, ip, line, strlen(line) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(hyp); i++)
		put(w, &hyp[i].event, hyp[i].values, NULL, 0);
	assert_int_equal(page_flush(w, true), 0);
}

/* The formats of hyp[] that belong to a system. */
static struct dat_system formats_of(const char *sys, struct dat_text *texts)
{
	struct dat_system s = { .name = sys, .formats = texts };

	for (size_t i = 0; i < ARRAY_SIZE(hyp); i++) {
		hyp[i].event.id = 500 + (int)i;
		if (!strcmp(hyp[i].event.sys, sys))
			texts[s.n++] = format_text(&hyp[i].event);
	}
	return s;
}

int main(int argc, char **argv)
{
	static const char kallsyms[] = "ffff800080001000 t tracing_mark_write\n"
				       "ffff800080002000 t end\n";
	struct dat_text hypervisor[ARRAY_SIZE(hyp)], android[ARRAY_SIZE(hyp)];
	struct dat_text ftrace = format_text(&print);
	struct dat_system systems[] = { formats_of("hypervisor", hypervisor), formats_of("hyp", android) };
	FILE *pages = tmpfile();
	int fd = pages ? fileno(pages) : -1, out;
	struct dat_cpu cpu = { .fd = fd };
	struct dat_buffer top = { .name = "", .clock = "mono", .page_size = 4096, .n_cpus = 1, .cpus = &cpu };
	struct dat_file f = { .version = 7,
			      .page_size = 4096,
			      .header_page = file_text(FORMATS "/header_page"),
			      .header_event = file_text(FORMATS "/header_event"),
			      .ftrace = &ftrace,
			      .n_ftrace = 1,
			      .systems = systems,
			      .n_systems = ARRAY_SIZE(systems),
			      .kallsyms = { kallsyms, strlen(kallsyms) },
			      .cmdlines = { "100 CPU 0/KVM\n", 14 },
			      .buffers = &top,
			      .n_buffers = 1 };
	struct page_writer w;

	if (argc != 2 || fd < 0)
		return 2;
	assert_int_equal(page_writer_init(&w, 4096, to_fd, &fd), 0);
	put_records(&w);
	page_writer_release(&w);
	cpu.size = (uint64_t)lseek(fd, 0, SEEK_END);
	out = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	return out < 0 || dat_write(&f, out, NULL) ? 1 : 0;
}
