// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat from a timeline, one event a line on standard input:
 *
 *	BUFFER CPU PID MICROSECONDS EVENT [VALUE]...
 *
 * BUFFER is "top" or "hyp"; the values are those of the event's fields, in their
 * order; the last of print and of guest_hypertrace is the text to the line's end.
 * Lines of a buffer's CPU must be in order of time.
 *
 * usage: timeline OUT TRACEID [GUEST-TRACEID GUEST-NAME VCPU-PID...] < LINES
 */
#include <ctype.h>
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

#include "file/dat/options.h"
#include "file/dat/page.h"
#include "file/dat/writer.h"
#include "base/files.h"

#define FORMATS	 "tests/data/formats"
#define CPUS	 3
#define START_NS 1000000000ull

enum { TOP, HYP, BUFFERS };

/* ftrace's, kvm's and the hypervisor's of mainline and Android, as hyptrace writes them */
static struct rig_event events[] = {
	{ .sys = "ftrace",
	  .name = "print",
	  .fields = "unsigned long ip; char buf[]",
	  .print_fmt = "\"%ps: %s\", (void *)REC->ip, REC->buf" },
	{ .sys = "kvm",
	  .name = "kvm_entry",
	  .fields = "unsigned long vcpu_pc",
	  .print_fmt = "\"PC: 0x%016lx\", REC->vcpu_pc" },
	{ .sys = "kvm",
	  .name = "kvm_exit",
	  .fields = "int ret; unsigned int esr_ec; unsigned long vcpu_pc",
	  .print_fmt = "\"%d\", REC->ret" },
	{ .sys = "kvm",
	  .name = "kvm_guest_fault",
	  .fields = "unsigned long vcpu_pc; unsigned long hsr; unsigned long hxfar; "
		    "unsigned long ipa",
	  .print_fmt = "\"ipa 0x%lx\", REC->ipa" },
	{ .sys = "kvm",
	  .name = "kvm_mmio",
	  .fields = "u32 type; u32 len; u64 gpa; u64 val",
	  .print_fmt = "\"%u\", REC->type" },
	{ .sys = "kvm",
	  .name = "kvm_wfx_arm64",
	  .fields = "unsigned long vcpu_pc; bool is_wfe",
	  .print_fmt = "\"guest executed wf%c at: 0x%016lx\", REC->is_wfe ? 'e' : 'i', "
		       "REC->vcpu_pc" },
	{ .sys = "kvm",
	  .name = "kvm_get_timer_map",
	  .fields = "unsigned long vcpu_id; int direct_vtimer; int direct_ptimer; int emul_ptimer",
	  .print_fmt = "\"%d\", REC->direct_vtimer" },
	{ .sys = "kvm",
	  .name = "kvm_timer_save_state",
	  .fields = "unsigned long ctl; u64 cval; int timer_idx",
	  .print_fmt = "\"%d\", REC->timer_idx" },
	{ .sys = "kvm",
	  .name = "kvm_timer_update_irq",
	  .fields = "unsigned long vcpu_id; __u32 irq; int level",
	  .print_fmt = "\"%d\", REC->level" },
	{ .sys = "kvm",
	  .name = "kvm_irq_line",
	  .fields = "unsigned int type; int vcpu_idx; int irq_num; int level",
	  .print_fmt = "\"%d\", REC->level" },
	{ .sys = "kvm",
	  .name = "vgic_update_irq_pending",
	  .fields = "unsigned long vcpu_id; __u32 irq; bool level",
	  .print_fmt = "\"%d\", REC->level" },
	{ .sys = "hypertrace",
	  .name = "guest_hypertrace",
	  .fields = "u32 client; u64 arg1; __data_loc char[] guest",
	  .print_fmt = "\"client=%u arg1=%llu guest=%s\", REC->client, REC->arg1, __get_str(guest)" },
	{ .sys = "hypervisor",
	  .name = "hyp_enter",
	  .fields = "u8 reason; pid_t vcpu",
	  .packed = true,
	  .print_fmt = "\"reason=%u vcpu=%d\", REC->reason, REC->vcpu" },
	{ .sys = "hypervisor",
	  .name = "hyp_exit",
	  .fields = "u8 reason; pid_t vcpu",
	  .packed = true,
	  .print_fmt = "\"reason=%u vcpu=%d\", REC->reason, REC->vcpu" },
	{ .sys = "hypervisor",
	  .name = "host_mem_abort",
	  .fields = "u64 esr; u64 addr",
	  .packed = true,
	  .print_fmt = "\"esr=0x%llx addr=0x%llx\", REC->esr, REC->addr" },
};

struct cpu {
	FILE *pages;
	int fd;
	struct page_writer w;
};

static struct cpu cpus[BUFFERS][CPUS];

static int to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(*(int *)ctx, page, size);
}

static struct dat_text file_text(const char *path)
{
	struct buf b = { 0 };

	assert_int_equal(read_file(path, 1 << 20, &b), 0);
	return (struct dat_text){ buf_str(&b), b.len }; /* kept until the program ends */
}

static struct dat_text format_text(struct rig_event *e)
{
	struct buf b = { 0 };

	rig_format(e, &b);
	return (struct dat_text){ buf_str(&b), b.len };
}

static struct rig_event *event(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	return NULL;
}

/* -1: not a line as above */
static int take(char *line)
{
	char buffer[8], name[32], *rest;
	unsigned int cpu, us;
	uint64_t values[RIG_FIELDS_MAX] = { 0 };
	struct rig_event *e;
	struct buf b = { 0 };
	int pid, n = 0, ret;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%7s %u %d %u %31s%n", buffer, &cpu, &pid, &us, name, &n) != 5 || cpu >= CPUS ||
	    !(e = event(name)))
		return -1;
	rest = line + n + (line[n] == ' ');
	if (strcmp(name, "print") != 0)
		for (size_t i = 0; i < e->n; i++)
			values[i] = strtoull(rest, &rest, 0);
	if (!strcmp(name, "print") || !strcmp(name, "guest_hypertrace")) {
		rest += *rest == ' ';
		values[e->n - 1] = (uint64_t)(strlen(rest) + 1) << 16 | e->len; /* __data_loc */
		rig_record(e, values, rest, strlen(rest) + 1, &b);
	} else {
		rig_record(e, values, NULL, 0, &b);
	}
	memcpy(b.data + 4, &pid, sizeof(pid));
	ret = page_write(&cpus[!strcmp(buffer, "hyp")][cpu].w, START_NS + us * 1000ull, b.data, b.len);
	buf_release(&b);
	return ret;
}

static size_t systems_of(struct dat_system *systems)
{
	static struct dat_text formats[ARRAY_SIZE(events)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		events[i].id = 300 + (int)i;
		formats[i] = format_text(&events[i]);
		if (i == 0)
			continue; /* ftrace's own is given apart */
		if (!n || strcmp(systems[n - 1].name, events[i].sys) != 0)
			systems[n++] = (struct dat_system){ .name = events[i].sys, .formats = &formats[i] };
		systems[n - 1].n++;
	}
	return n;
}

/* GUEST: name, trace id, how many CPUs, and of each its number and host thread. */
static void add_guest(struct dat_options *o, char **argv, int n)
{
	uint64_t id = strtoull(argv[0], NULL, 0);
	uint32_t n_cpus = (uint32_t)(n - 2);
	struct buf b = { 0 };

	buf_add(&b, argv[1], strlen(argv[1]) + 1);
	buf_add(&b, &id, sizeof(id));
	buf_add(&b, &n_cpus, sizeof(n_cpus));
	for (uint32_t i = 0; i < n_cpus; i++) {
		uint32_t pair[] = { i, (uint32_t)strtoul(argv[2 + i], NULL, 0) };

		buf_add(&b, pair, sizeof(pair));
	}
	assert_int_equal(dat_options_add(o, DAT_GUEST, b.data, b.len), 0);
	buf_release(&b);
}

static void open_pages(void)
{
	for (int i = 0; i < BUFFERS * CPUS; i++) {
		struct cpu *c = &cpus[i / CPUS][i % CPUS];

		c->pages = tmpfile();
		assert_non_null(c->pages);
		c->fd = fileno(c->pages);
		assert_int_equal(page_writer_init(&c->w, 4096, to_fd, &c->fd), 0);
	}
}

static void close_pages(struct dat_cpu dat[BUFFERS][CPUS])
{
	for (int i = 0; i < BUFFERS * CPUS; i++) {
		struct cpu *c = &cpus[i / CPUS][i % CPUS];

		assert_int_equal(page_flush(&c->w, true), 0);
		page_writer_release(&c->w);
		dat[i / CPUS][i % CPUS] =
			(struct dat_cpu){ .fd = c->fd, .size = (uint64_t)lseek(c->fd, 0, SEEK_END) };
	}
}

int main(int argc, char **argv)
{
	static const char comms[] = "100 worker\n200 CPU 0/KVM\n300 crosvm_fs\n"
				    "1353 qemu-system-aar\n1361 qemu-system-aar\n"
				    "1781 qemu-system-aar\n1795 qemu-system-aar\n";
	struct dat_system systems[ARRAY_SIZE(events)];
	size_t n_systems = systems_of(systems);
	struct dat_text print = format_text(&events[0]);
	struct dat_cpu dat[BUFFERS][CPUS];
	struct dat_options options = { 0 };
	struct dat_buffer buffers[BUFFERS] = {
		{ .name = "", .clock = "boot", .page_size = 4096, .n_cpus = CPUS, .cpus = dat[TOP] },
		{ .name = "hyp", .clock = "boot", .page_size = 4096, .n_cpus = CPUS, .cpus = dat[HYP] },
	};
	struct dat_file f = { .version = 7,
			      .compression = "zstd",
			      .page_size = 4096,
			      .header_page = file_text(FORMATS "/header_page"),
			      .header_event = file_text(FORMATS "/header_event"),
			      .ftrace = &print,
			      .n_ftrace = 1,
			      .systems = systems,
			      .n_systems = n_systems,
			      .cmdlines = { comms, strlen(comms) },
			      .buffers = buffers,
			      .n_buffers = BUFFERS };
	char line[1024];
	int out;

	if (argc < 3)
		return 2;
	open_pages();
	while (fgets(line, sizeof(line), stdin))
		if (*line != '#' && take(line)) {
			fprintf(stderr, "timeline: not understood: %s\n", line);
			return 1;
		}
	close_pages(dat);
	assert_int_equal(dat_options_add_traceid(&options, strtoull(argv[2], NULL, 0)), 0);
	if (argc > 4)
		add_guest(&options, argv + 3, argc - 3);
	f.options = options.v;
	f.n_options = options.n;
	out = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	return out < 0 || dat_write(&f, out, NULL) ? 1 : 0;
}
