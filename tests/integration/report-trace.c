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
#define MAKER_CPUS 2
#include "trace-maker.h"

/* clang-format off */
#define assert_true(x)		do { if (!(x)) abort(); } while (0)
#define assert_non_null(x)	assert_true((x) != NULL)
#define assert_int_equal(a, b)	assert_true((a) == (b))
#define fail_msg(...)		abort()
/* clang-format on */

#include "../unit/plugin-rig.h"

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

static const struct rig_event *find_event(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	fail_msg("no such event");
	return NULL;
}

/* "PID EVENT VALUE..."; values beyond the fields are a stack's */
static void put_record(struct page_writer *cpu, uint64_t ts, char *rest)
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
	must(page_write(cpu, ts, b.data, b.len));
	buf_release(&b);
}

static void put_line(char *line)
{
	bool instance = *line == 'i';
	char *end;
	unsigned long n = strtoul(line + instance, &end, 10) % MAKER_CPUS;
	struct page_writer *cpu;

	if (instance && maker.n == 1)
		maker_add("inst");
	cpu = &maker.buffers[instance].w[n];
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(end, " lost ", 6)) {
		must(page_write_lost(cpu, strtoull(end + 6, NULL, 10)));
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
		texts[s.n++] = maker_text(b);
	}
	return s;
}

int main(int argc, char **argv)
{
	static const char kallsyms[] = "ffff800080001000 t outer\n"
				       "ffff800080002000 t inner\n"
				       "ffff800080003000 t end\n";
	struct dat_system ftrace = formats_of("ftrace"), sched = formats_of("sched");
	struct dat_file f = maker_file();
	char line[1024];

	if (argc != 2)
		return 2;
	maker_add("");
	while (fgets(line, sizeof(line), stdin))
		put_line(line);
	must(dat_options_add_clock(&maker.options, "mono"));
	f.ftrace = ftrace.formats;
	f.n_ftrace = ftrace.n;
	f.systems = &sched;
	f.n_systems = 1;
	f.kallsyms = (struct dat_text){ kallsyms, strlen(kallsyms) };
	f.cmdlines = (struct dat_text){ "100 CPU 0/KVM\n101 bash\n102 a-very-long-name\n", 45 };
	maker_end(&f, "mono", MAKER_CPUS);
	maker_write(&f, argv[1]);
	return 0;
}
