// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat for report.t out of lines of standard input:
 *
 *	CPU TIME PID EVENT [VALUE...]	a record; its fields in the order of events[]
 *	CPU lost N			so many events were lost; 0: an unknown number
 *
 * CPU is 0 or 1, with an i in front one of the instance "inst"; TIME is in ns.
 * usage: report-trace OUT < LINES
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

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
#define CPUS	2

static struct rig_event events[] = {
	{ .sys = "ftrace",
	  .name = "funcgraph_entry",
	  .fields = "unsigned long func; int depth",
	  .print_fmt = "\"--> %ps (%d)\", (void *)REC->func, REC->depth",
	  .id = 11 },
	{ .sys = "ftrace",
	  .name = "funcgraph_exit",
	  .fields = "unsigned long func; int depth; unsigned int overrun; u64 calltime; u64 rettime",
	  .print_fmt = "\"<-- %ps (%d)\", (void *)REC->func, REC->depth",
	  .id = 10 },
	{ .sys = "ftrace",
	  .name = "kernel_stack",
	  .fields = "int size; unsigned long caller[8]",
	  .print_fmt = "\"%ps\", (void *)REC->caller[0]",
	  .id = 4 },
	{ .sys = "sched",
	  .name = "sched_wakeup",
	  .fields = "int pid; int prio; int success",
	  .print_fmt = "\"pid=%d prio=%d\", REC->pid, REC->prio",
	  .id = 300 },
	{ .sys = "sched",
	  .name = "sched_switch",
	  .fields = "int prev_pid; int next_pid; int next_prio",
	  .print_fmt = "\"%d ==> %d\", REC->prev_pid, REC->next_pid",
	  .id = 301 },
};

struct cpu {
	int fd;
	struct page_writer w;
};

static int to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(((struct cpu *)ctx)->fd, page, size);
}

static struct dat_text file_text(const char *path)
{
	struct buf b = { 0 };

	assert_int_equal(read_file(path, 1 << 20, &b), 0);
	return (struct dat_text){ buf_str(&b), b.len };
}

static const struct rig_event *find_event(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	fail_msg("no such event");
	return NULL;
}

/* "PID EVENT VALUE..."; values beyond the fields are a stack's */
static void put_record(struct cpu *cpu, uint64_t ts, char *rest)
{
	uint64_t values[RIG_FIELDS_MAX] = { 0 }, tail[8];
	char *save, *word = strtok_r(rest, " ", &save);
	int pid = atoi(word);
	const struct rig_event *e = find_event(strtok_r(NULL, " ", &save));
	struct buf b = { 0 };
	size_t n = 0, more = 0;

	while ((word = strtok_r(NULL, " ", &save))) {
		if (n < e->n)
			values[n++] = strtoull(word, NULL, 0);
		else
			tail[more++] = strtoull(word, NULL, 0);
	}
	rig_record(e, values, tail, more * 8, &b);
	memcpy(b.data + 4, &pid, sizeof(pid));
	assert_int_equal(page_write(&cpu->w, ts, b.data, b.len), 0);
	buf_release(&b);
}

static void put_line(struct cpu cpus[2][CPUS], char *line)
{
	bool instance = *line == 'i';
	char *end;
	struct cpu *cpu = &cpus[instance][strtoul(line + instance, &end, 10) % CPUS];

	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(end, " lost ", 6)) {
		assert_int_equal(page_write_lost(&cpu->w, strtoull(end + 6, NULL, 10)), 0);
	} else {
		uint64_t ts = strtoull(end, &end, 10);

		put_record(cpu, ts, end);
	}
}

/* The formats of a system, which stand together in events[]. */
static struct dat_system formats_of(const char *sys)
{
	struct dat_text *texts = calloc(ARRAY_SIZE(events), sizeof(*texts));
	struct dat_system s = { .name = sys, .formats = texts };

	assert_non_null(texts);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct buf b = { 0 };

		if (strcmp(events[i].sys, sys))
			continue;
		rig_format(&events[i], &b);
		texts[s.n++] = (struct dat_text){ buf_str(&b), b.len }; /* kept until the end */
	}
	return s;
}

int main(int argc, char **argv)
{
	static const char kallsyms[] = "ffff800080001000 t outer\n"
				       "ffff800080002000 t inner\n"
				       "ffff800080003000 t end\n";
	struct dat_system ftrace = formats_of("ftrace"), sched = formats_of("sched");
	struct dat_cpu dat_cpus[2][CPUS];
	struct dat_buffer buffers[2] = { { .name = "" }, { .name = "inst" } };
	struct cpu cpus[2][CPUS];
	struct dat_options options = { 0 };
	struct dat_file f = { .version = 7,
			      .page_size = 4096,
			      .header_page = file_text(FORMATS "/header_page"),
			      .header_event = file_text(FORMATS "/header_event"),
			      .ftrace = ftrace.formats,
			      .n_ftrace = ftrace.n,
			      .systems = &sched,
			      .n_systems = 1,
			      .kallsyms = { kallsyms, strlen(kallsyms) },
			      .cmdlines = { "100 CPU 0/KVM\n101 bash\n102 a-very-long-name\n", 45 },
			      .buffers = buffers };
	char line[1024];
	int out;

	if (argc != 2)
		return 2;
	for (int i = 0; i < 2 * CPUS; i++) {
		struct cpu *c = &cpus[0][0] + i;

		c->fd = memfd_create("cpu", MFD_CLOEXEC);
		assert_int_equal(page_writer_init(&c->w, 4096, to_fd, c), 0);
	}
	while (fgets(line, sizeof(line), stdin))
		put_line(cpus, line);
	for (int b = 0; b < 2; b++) {
		uint64_t bytes = 0;

		for (int i = 0; i < CPUS; i++) {
			assert_int_equal(page_flush(&cpus[b][i].w, true), 0);
			dat_cpus[b][i] = (struct dat_cpu){ .fd = cpus[b][i].fd };
			dat_cpus[b][i].size = (uint64_t)lseek(cpus[b][i].fd, 0, SEEK_END);
			bytes += dat_cpus[b][i].size;
		}
		buffers[b].clock = "mono";
		buffers[b].page_size = 4096;
		buffers[b].n_cpus = CPUS;
		buffers[b].cpus = dat_cpus[b];
		f.n_buffers += !b || bytes;
	}
	assert_int_equal(dat_options_add_clock(&options, "mono"), 0);
	f.options = options.v;
	f.n_options = options.n;
	out = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return out < 0 || dat_write(&f, out, NULL) ? 1 : 0;
}
