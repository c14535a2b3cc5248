// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat for path.t out of lines of standard input:
 *
 *	CPU TIME PID[h|s] EVENT [VALUE...]	a record; its fields in the order of events[]; h: in an
 *						interrupt, s: in a softirq
 *	CPU lost N				so many events were lost
 *
 * TIME is in ns; of a guest's file too, whose clock is the host's, with that bound (-: without).
 * usage: path-trace OUT TRACEID shift HOST-TRACEID BOUND < LINES
 *        path-trace OUT TRACEID [guest TRACEID NAME PID...] < LINES
 */
#define MAKER_CPUS 4
#include "trace-maker.h"

/* clang-format off */
#define assert_true(x)		do { if (!(x)) abort(); } while (0)
#define assert_non_null(x)	assert_true((x) != NULL)
#define assert_int_equal(a, b)	assert_true((a) == (b))
#define fail_msg(...)		abort()
/* clang-format on */

#include "../unit/plugin-rig.h"

static struct rig_event events[] = {
	{ .sys = "irq",
	  .name = "irq_handler_entry",
	  .fields = "int irq; __data_loc char[] name",
	  .print_fmt = "\"irq=%d name=%s\", REC->irq, __get_str(name)" },
	{ .sys = "irq",
	  .name = "irq_handler_exit",
	  .fields = "int irq; int ret",
	  .print_fmt = "\"irq=%d\", REC->irq" },
	{ .sys = "irq",
	  .name = "softirq_raise",
	  .fields = "unsigned int vec",
	  .print_fmt = "\"vec=%u\", REC->vec" },
	{ .sys = "irq",
	  .name = "softirq_entry",
	  .fields = "unsigned int vec",
	  .print_fmt = "\"vec=%u\", REC->vec" },
	{ .sys = "irq",
	  .name = "softirq_exit",
	  .fields = "unsigned int vec",
	  .print_fmt = "\"vec=%u\", REC->vec" },
	{ .sys = "kvm",
	  .name = "kvm_entry",
	  .fields = "unsigned long vcpu_pc",
	  .print_fmt = "\"PC: 0x%016lx\", REC->vcpu_pc" },
	{ .sys = "kvm",
	  .name = "kvm_exit",
	  .fields = "int ret; unsigned int esr_ec; unsigned long vcpu_pc",
	  .print_fmt = "\"ret=%d ec=%u\", REC->ret, REC->esr_ec" },
	{ .sys = "kvm",
	  .name = "kvm_vcpu_wakeup",
	  .fields = "__u64 ns",
	  .print_fmt = "\"wait time %llu ns\", REC->ns" },
	{ .sys = "kvm",
	  .name = "vgic_update_irq_pending",
	  .fields = "unsigned long vcpu_id; __u32 irq; bool level",
	  .print_fmt = "\"VCPU: %ld, IRQ %d, level: %d\", REC->vcpu_id, REC->irq, REC->level" },
	{ .sys = "sched",
	  .name = "sched_switch",
	  .fields = "int prev_pid; s64 prev_state; int next_pid; int prev_prio; int next_prio",
	  .print_fmt = "\"%d [%lld] ==> %d\", REC->prev_pid, REC->prev_state, REC->next_pid" },
	{ .sys = "sched", .name = "sched_waking", .fields = "int pid", .print_fmt = "\"pid=%d\", REC->pid" },
	{ .sys = "sched",
	  .name = "sched_wakeup_new",
	  .fields = "int pid",
	  .print_fmt = "\"pid=%d\", REC->pid" },
	{ .sys = "timer",
	  .name = "hrtimer_start",
	  .fields = "u64 hrtimer",
	  .print_fmt = "\"hrtimer=0x%llx\", REC->hrtimer" },
	{ .sys = "timer",
	  .name = "hrtimer_expire_entry",
	  .fields = "u64 hrtimer",
	  .print_fmt = "\"hrtimer=0x%llx\", REC->hrtimer" },
};

static const struct rig_event *find_event(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(events); i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	fprintf(stderr, "path-trace: no event %s\n", name ? name : "");
	exit(1);
}

/* "PID[h|s] EVENT VALUE..."; a word that is no number is a name behind the fields */
static void put_record(struct page_writer *cpu, uint64_t ts, char *rest)
{
	uint64_t values[RIG_FIELDS_MAX] = { 0 };
	char *save, *pid_word = strtok_r(rest, " ", &save), *flag, *word;
	int pid = (int)strtol(pid_word, &flag, 10);
	const struct rig_event *e = find_event(strtok_r(NULL, " ", &save));
	const char *tail = "";
	struct buf b = { 0 };

	for (size_t n = 0; (word = strtok_r(NULL, " ", &save)) && n < e->n; n++) {
		char *end;

		values[n] = strtoull(word, &end, 0);
		if (*end) {
			tail = word;
			values[n] = (strlen(word) + 1) << 16 | e->len;
		}
	}
	rig_record(e, values, tail, *tail ? strlen(tail) + 1 : 0, &b);
	b.data[2] = *flag == 'h' ? 8 : *flag == 's' ? 16 : 0;
	memcpy(b.data + 4, &pid, sizeof(pid));
	must(page_write(cpu, ts, b.data, b.len));
	buf_release(&b);
}

static void put_line(struct maker_buffer *b, char *line)
{
	char *end;
	struct page_writer *cpu = &b->w[strtoul(line, &end, 10) % MAKER_CPUS];

	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(end, " lost ", 6)) {
		must(page_write_lost(cpu, strtoull(end + 6, NULL, 10)));
	} else {
		uint64_t ts = strtoull(end, &end, 10);

		put_record(cpu, ts, end);
	}
}

/* The formats by their systems, which stand together in events[]. */
static size_t put_formats(struct dat_system *systems)
{
	static struct dat_text texts[ARRAY_SIZE(events)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct buf b = { 0 };

		events[i].id = 300 + (int)i;
		rig_format(&events[i], &b);
		texts[i] = maker_text(b);
		if (!n || strcmp(systems[n - 1].name, events[i].sys) != 0)
			systems[n++] = (struct dat_system){ .name = events[i].sys, .formats = &texts[i] };
		systems[n - 1].n++;
	}
	return n;
}

/* The guest's clock is the host's: nothing is added, but the bound is not 0. */
static void add_shift(struct dat_options *o, char **argv)
{
	const struct offset_knot knots[] = { { 0, 0, 1, 0 }, { 1000000000000, 0, 1, 0 } };
	uint64_t bound = strtoull(argv[1], NULL, 0), bounds[] = { bound, bound };
	struct offset_shift s = { 0 };
	struct buf b = { 0 };

	assert_int_equal(offset_shift_fill(&s, strtoull(argv[0], NULL, 0), MAKER_CPUS, knots, 2), 0);
	s.flags = OFFSET_INTERPOLATE;
	if (*argv[1] != '-')
		assert_int_equal(offset_shift_set_bounds(&s, bounds, 2, "counter", "hard"), 0);
	offset_shift_encode(&s, &b);
	assert_int_equal(dat_options_add(o, DAT_TIME_SHIFT, b.data, b.len), 0);
	offset_shift_release(&s);
	buf_release(&b);
}

static void add_guest(struct dat_options *o, char **argv, int n)
{
	struct offset_vcpu vcpus[MAKER_CPUS];
	struct offset_guest g = { argv[1], strtoull(argv[0], NULL, 0), (uint32_t)(n - 2), vcpus };
	struct buf b = { 0 };

	for (uint32_t i = 0; i < g.n; i++)
		vcpus[i] = (struct offset_vcpu){ i, (uint32_t)strtoul(argv[2 + i], NULL, 0) };
	offset_guest_encode(&g, &b);
	assert_int_equal(dat_options_add(o, DAT_GUEST, b.data, b.len), 0);
	buf_release(&b);
}

static void add_options(struct dat_options *o, int argc, char **argv)
{
	assert_int_equal(dat_options_add_traceid(o, strtoull(argv[2], NULL, 0)), 0);
	assert_int_equal(dat_options_add_clock(o, "boot"), 0);
	if (argc > 5 && !strcmp(argv[3], "shift"))
		add_shift(o, argv + 4);
	else if (argc > 5)
		add_guest(o, argv + 4, argc - 4 < MAKER_CPUS + 2 ? argc - 4 : MAKER_CPUS + 2);
}

int main(int argc, char **argv)
{
	static const char comms[] = "10 disk\n20 net\n30 shell\n40 batch\n100 CPU 0/KVM\n101 CPU 1/KVM\n"
				    "110 vhost-99\n120 hog\n130 qemu\n";
	struct dat_system systems[ARRAY_SIZE(events)];
	struct maker_buffer *b = maker_add("");
	struct dat_file f = maker_file();
	char line[1024];

	if (argc < 3)
		return 2;
	f.systems = systems;
	f.n_systems = put_formats(systems);
	f.cmdlines = (struct dat_text){ comms, sizeof(comms) - 1 };
	while (fgets(line, sizeof(line), stdin))
		if (*line != '#' && *line != '\n')
			put_line(b, line);
	add_options(&maker.options, argc, argv);
	maker_end(&f, "boot", MAKER_CPUS);
	maker_write(&f, argv[1]);
	return 0;
}
