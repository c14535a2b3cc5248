// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat from a script, for export.t. A line of standard input is one of
 *
 *   id HEX				TRACEID
 *   guest NAME HEX [CPU:PID]...	a GUEST of that TRACEID
 *   shift HEX NS			TIME_SHIFT against the file of that TRACEID
 *   uname TEXT
 *   clock NAME				TRACECLOCK
 *   tsc MULT SHIFT			TSC2NSEC
 *   cpus N				of each buffer; those above 3 are empty
 *   task PID COMM
 *   process PID COMMAND		a PROCMAPS
 *   buffer NAME			what follows goes there; at first the top buffer
 *   lost CPU N				events lost before the CPU's next record
 *   TS CPU PID EVENT VALUE...		a record; values are separated by tabs
 *   raw TS CPU HEX...			a record of these bytes
 * \xNN is a byte in values and names.
 *
 * usage: export-trace OUT < SCRIPT
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat/options.h"
#include "dat/offset.h"
#include "dat/page.h"
#include "dat/writer.h"

#define FORMATS	 "tests/data/formats"
#define CPUS	 4 /* that may have records */
#define CPUS_MAX 2048
#define BUFFERS	 4
#define FIELDS	 8

struct field {
	const char *decl;
	unsigned int offset, size;
	bool is_signed;
};

/* Fields as kernels have them; a __data_loc one is text, and so is one of size 0, to the end. */
static const struct event {
	const char *sys, *name;
	struct field fields[FIELDS];
	const char *print_fmt;
} events[] = {
	{ "ftrace",
	  "print",
	  { { "unsigned long ip", 8, 8, false }, { "char buf[]", 16, 0, false } },
	  "\"%s\", REC->buf" },
	{ "sched",
	  "sched_switch",
	  { { "char prev_comm[16]", 8, 16, false },
	    { "pid_t prev_pid", 24, 4, true },
	    { "int prev_prio", 28, 4, true },
	    { "long prev_state", 32, 8, true },
	    { "char next_comm[16]", 40, 16, false },
	    { "pid_t next_pid", 56, 4, true },
	    { "int next_prio", 60, 4, true } },
	  "\"%s:%d ==> %s:%d\", REC->prev_comm, REC->prev_pid, REC->next_comm, REC->next_pid" },
	{ "irq",
	  "irq_handler_entry",
	  { { "int irq", 8, 4, true }, { "__data_loc char[] name", 12, 4, false } },
	  "\"irq=%d name=%s\", REC->irq, __get_str(name)" },
	{ "irq",
	  "irq_handler_exit",
	  { { "int irq", 8, 4, true }, { "int ret", 12, 4, true } },
	  "\"irq=%d\", REC->irq" },
	{ "kvm",
	  "kvm_entry",
	  { { "unsigned long vcpu_pc", 8, 8, false } },
	  "\"PC: 0x%016lx\", REC->vcpu_pc" },
	{ "kvm",
	  "kvm_exit",
	  { { "int ret", 8, 4, true },
	    { "unsigned int esr_ec", 12, 4, false },
	    { "unsigned long vcpu_pc", 16, 8, false } },
	  "\"%s: HSR_EC: 0x%04x (%s), PC: 0x%016lx\", __print_symbolic(REC->ret, { 0, \"IRQ\" }, "
	  "{ 1, \"SERROR\" }, { 2, \"TRAP\" }), REC->esr_ec, __print_symbolic(REC->esr_ec, { 1, \"WFx\" }, "
	  "{ 0x24, \"DABT_LOW\" }), REC->vcpu_pc" },
	{ "kvm",
	  "kvm_guest_fault",
	  { { "unsigned long vcpu_pc", 8, 8, false },
	    { "unsigned long hsr", 16, 8, false },
	    { "unsigned long hxfar", 24, 8, false },
	    { "unsigned long long ipa", 32, 8, false } },
	  "\"ipa %#llx\", REC->ipa" },
	/* not the fields that Perfetto knows */
	{ "kvm",
	  "kvm_mmio",
	  { { "u32 type", 8, 4, false }, { "u64 other", 16, 8, false } },
	  "\"%u\", REC->type" },
	{ "vendor",
	  "thing",
	  { { "bool flag", 8, 1, false },
	    { "s8 small", 9, 1, true },
	    { "u64 big", 16, 8, false },
	    { "u16 list[3]", 24, 6, false },
	    { "__data_loc char[] text", 32, 4, false } },
	  "\"%d\", REC->small" },
	{ "vendor",
	  "wide",
	  { { "s64 below", 8, 8, true }, { "u64 pair[2]", 16, 16, false }, { "u32 small", 32, 4, false } },
	  "\"%u\", REC->small" },
	{ "hypervisor",
	  "hyp_enter",
	  { { "u8 reason", 8, 1, false }, { "pid_t vcpu", 9, 4, true } },
	  "\"reason=%s vcpu=%d\", __print_symbolic(REC->reason, { 0, \"smc\" }, { 1, \"hvc\" }, { 3, "
	  "\"psci\" }, { 5, \"guest_exit\" }, { 6, \"eret_host\" }, { 7, \"eret_guest\" }), REC->vcpu" },
	{ "hypervisor",
	  "hyp_exit",
	  { { "u8 reason", 8, 1, false }, { "pid_t vcpu", 9, 4, true } },
	  "\"reason=%s vcpu=%d\", __print_symbolic(REC->reason, { 0, \"smc\" }, { 1, \"hvc\" }, { 3, "
	  "\"psci\" }, { 5, \"guest_exit\" }, { 6, \"eret_host\" }, { 7, \"eret_guest\" }), REC->vcpu" },
	{ "hypervisor",
	  "host_smc",
	  { { "u64 id", 8, 8, false }, { "u8 forwarded", 16, 1, false } },
	  "\"id=%llu\", REC->id" },
	{ "hyp", "hyp_enter", { { 0 } }, "\" \"" },
	{ "hyp", "hyp_exit", { { 0 } }, "\" \"" },
	{ "hyp",
	  "host_mem_abort",
	  { { "u64 esr", 8, 8, false }, { "u64 addr", 16, 8, false } },
	  "\"esr=0x%llx\", REC->esr" },
	{ "kvm",
	  "kvm_pio",
	  { { "unsigned int rw", 8, 4, false }, { "unsigned int port", 12, 4, false } },
	  "\"pio_%s at 0x%x\", REC->rw ? \"write\" : \"read\", REC->port" },
	{ "kvm",
	  "kvm_msr",
	  { { "unsigned write", 8, 4, false }, { "u32 ecx", 12, 4, false } },
	  "\"msr_%s %x\", REC->write ? \"write\" : \"read\", REC->ecx" },
	{ "kvm", "kvm_hypercall", { { "unsigned long nr", 8, 8, false } }, "\"nr 0x%lx\", REC->nr" },
	{ "kvm",
	  "kvm_hvc_arm64",
	  { { "unsigned long vcpu_pc", 8, 8, false }, { "unsigned long r0", 16, 8, false } },
	  "\"HVC at 0x%016lx (r0: 0x%016lx)\", REC->vcpu_pc, REC->r0" },
	{ "kvm",
	  "kvm_sys_access",
	  { { "bool is_write", 8, 1, false },
	    { "u8 Op0", 9, 1, false },
	    { "u8 Op1", 10, 1, false },
	    { "u8 CRn", 11, 1, false },
	    { "u8 CRm", 12, 1, false },
	    { "u8 Op2", 13, 1, false } },
	  "\"(%d,%d,%d,%d,%d)\", REC->Op0, REC->Op1, REC->CRn, REC->CRm, REC->Op2" },
};

#define FIRST_ID 100

static void die(const char *what)
{
	fprintf(stderr, "export-trace: %s\n", what);
	exit(1);
}

static void must(int ret)
{
	if (ret)
		die(strerror(ret < 0 ? -ret : EINVAL));
}

/* ---- pages ------------------------------------------------------------------------ */

static struct buffer {
	char name[64];
	int fd[CPUS];
	struct page_writer w[CPUS];
	struct dat_cpu cpus[CPUS_MAX];
} buffers[BUFFERS];
static size_t n_buffers;

static int to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(*(int *)ctx, page, size);
}

static struct buffer *add_buffer(const char *name)
{
	struct buffer *b = &buffers[n_buffers++];

	if (n_buffers > BUFFERS)
		die("too many buffers");
	snprintf(b->name, sizeof(b->name), "%s", name);
	for (int i = 0; i < CPUS; i++) {
		FILE *f = tmpfile();

		b->fd[i] = f ? fileno(f) : -1;
		must(b->fd[i] < 0 ? -errno : page_writer_init(&b->w[i], 4096, to_fd, &b->fd[i]));
	}
	return b;
}

/* ---- records ------------------------------------------------------------------------ */

/* \xNN in place; returns the length. */
static size_t unescape(char *s)
{
	size_t to = 0;

	for (size_t i = 0; s[i]; i++) {
		unsigned int c;

		if (s[i] == '\\' && s[i + 1] == 'x' && sscanf(s + i + 2, "%2x", &c) == 1) {
			s[to++] = (char)c;
			i += 3;
		} else {
			s[to++] = s[i];
		}
	}
	s[to] = 0;
	return to;
}

static void put_value(uint8_t *rec, size_t *len, const struct field *f, char *value)
{
	size_t n = unescape(value);
	uint64_t v = strtoull(value, NULL, 0);

	if (strstr(f->decl, "__data_loc")) {
		uint32_t loc = (uint32_t)(n + 1) << 16 | (uint32_t)*len;

		memcpy(rec + f->offset, &loc, 4);
		memcpy(rec + *len, value, n);
		*len += n + 1;
	} else if (!f->size) {
		memcpy(rec + f->offset, value, n + 1);
		*len = f->offset + n + 1;
	} else if (!strncmp(f->decl, "char", 4)) {
		memcpy(rec + f->offset, value, n < f->size ? n : f->size);
	} else if (strchr(f->decl, '[')) {
		unsigned int item = !strncmp(f->decl, "u64", 3) ? 8 : 2;

		for (unsigned int i = 0; i < f->size; i += item, v++)
			memcpy(rec + f->offset + i, &v, item);
	} else {
		memcpy(rec + f->offset, &v, f->size);
	}
}

static size_t fixed_size(const struct event *e)
{
	size_t end = 8;

	for (size_t i = 0; i < FIELDS && e->fields[i].decl; i++)
		end = e->fields[i].offset + e->fields[i].size;
	return end;
}

static void put_record(struct buffer *b, char *line)
{
	uint8_t rec[2048] = { 0 };
	char name[64], sys[64] = "", *values;
	unsigned long long ts;
	unsigned int cpu;
	int pid, used;

	if (sscanf(line, "%llu %u %d %63s%n", &ts, &cpu, &pid, name, &used) != 4 || cpu >= CPUS)
		die(line);
	if (strchr(name, ':')) {
		sscanf(name, "%63[^:]", sys);
		memmove(name, strchr(name, ':') + 1, strlen(strchr(name, ':')));
	}
	values = line + used;
	if (*values++ != '\t')
		values = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		const struct event *e = &events[i];
		size_t len = fixed_size(e);
		uint16_t id = (uint16_t)(FIRST_ID + i);

		if (strcmp(e->name, name) || (*sys && strcmp(e->sys, sys)))
			continue;
		memcpy(rec, &id, sizeof(id));
		memcpy(rec + 4, &pid, sizeof(pid));
		for (size_t f = 0; f < FIELDS && e->fields[f].decl && values; f++) {
			char *value = strsep(&values, "\t");

			put_value(rec, &len, &e->fields[f], value);
		}
		must(page_write(&b->w[cpu], ts, rec, (len + 3) & ~(size_t)3));
		return;
	}
	die(name);
}

static void put_raw(struct buffer *b, const char *line)
{
	uint8_t rec[256];
	unsigned long long ts;
	unsigned int cpu, byte;
	size_t len = 0;
	int used;

	if (sscanf(line, "%llu %u%n", &ts, &cpu, &used) != 2 || cpu >= CPUS)
		die(line);
	for (line += used; sscanf(line, "%2x%n", &byte, &used) == 1; line += used)
		rec[len++] = (uint8_t)byte;
	must(page_write(&b->w[cpu], ts, rec, len));
}

/* ---- the script ----------------------------------------------------------------------- */

static struct dat_options options;
static struct buf cmdlines;
static uint32_t n_cpus = CPUS;

static void put_guest(const char *line)
{
	struct offset_vcpu vcpus[8];
	struct offset_guest g = { .vcpus = vcpus };
	struct buf b = { 0 };
	char name[64];
	unsigned long long id;
	int used;

	if (sscanf(line, "%63s %llx%n", name, &id, &used) != 2)
		die(line);
	unescape(name);
	g.name = name;
	g.trace_id = id;
	for (line += used; g.n < 8 && sscanf(line, " %u:%u%n", &vcpus[g.n].cpu, &vcpus[g.n].pid, &used) == 2;
	     line += used)
		g.n++;
	offset_guest_encode(&g, &b);
	must(dat_options_add(&options, DAT_GUEST, b.data, b.len));
	buf_release(&b);
}

static void put_shift(const char *line)
{
	struct offset_shift s = { 0 };
	struct offset_knot k = { .scaling = 1 };
	struct buf b = { 0 };
	unsigned long long peer;
	long long ns;

	if (sscanf(line, "%llx %lld", &peer, &ns) != 2)
		die(line);
	k.offset = ns;
	must(offset_shift_fill(&s, peer, CPUS, &k, 1));
	offset_shift_encode(&s, &b);
	must(dat_options_add(&options, DAT_TIME_SHIFT, b.data, b.len));
	offset_shift_release(&s);
	buf_release(&b);
}

static void put_process(const char *line)
{
	static const char maps[] = "1000-2000 r-xp 00000000 00:00 1 /bin/program\n";
	int pid, used;

	if (sscanf(line, "%d %n", &pid, &used) != 1)
		die(line);
	must(dat_options_add_procmaps(&options, pid, line + used, maps, strlen(maps)));
}

/* The rest of a line that begins with the word, or NULL. */
static char *after(char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && line[n] == ' ' ? line + n + 1 : NULL;
}

/* The same with its bytes. */
static char *name_after(char *line, const char *word)
{
	char *rest = after(line, word);

	if (rest)
		unescape(rest);
	return rest;
}

static struct buffer *take_line(struct buffer *b, char *line)
{
	unsigned int cpu, n, shift;
	char *rest;

	if ((rest = after(line, "id")))
		must(dat_options_add_traceid(&options, strtoull(rest, NULL, 16)));
	else if ((rest = after(line, "guest")))
		put_guest(rest);
	else if ((rest = after(line, "shift")))
		put_shift(rest);
	else if ((rest = name_after(line, "uname")))
		must(dat_options_add_text(&options, DAT_UNAME, rest));
	else if ((rest = after(line, "clock")))
		must(dat_options_add_clock(&options, rest));
	else if ((rest = after(line, "tsc")) && sscanf(rest, "%u %u", &n, &shift) == 2)
		must(dat_options_add_tsc2nsec(&options, n, shift, 0));
	else if ((rest = after(line, "cpus")) && sscanf(rest, "%u", &n) == 1 && n >= CPUS && n <= CPUS_MAX)
		n_cpus = n;
	else if ((rest = name_after(line, "task")))
		buf_printf(&cmdlines, "%s\n", rest);
	else if ((rest = after(line, "process")))
		put_process(rest);
	else if ((rest = name_after(line, "buffer")))
		return add_buffer(rest);
	else if ((rest = after(line, "lost")) && sscanf(rest, "%u %u", &cpu, &n) == 2 && cpu < CPUS)
		must(page_write_lost(&b->w[cpu], n));
	else if ((rest = after(line, "raw")))
		put_raw(b, rest);
	else
		put_record(b, line);
	return b;
}

/* ---- the file --------------------------------------------------------------------------- */

static struct dat_text file_text(const char *path)
{
	struct buf b = { 0 };

	must(read_file(path, 1 << 20, &b));
	return (struct dat_text){ buf_str(&b), b.len };
}

static struct dat_text format_text(size_t i)
{
	const struct event *e = &events[i];
	struct buf b = { 0 };

	buf_printf(&b,
		   "name: %s\nID: %zu\nformat:\n"
		   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		   "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		   "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		   e->name, FIRST_ID + i);
	for (size_t f = 0; f < FIELDS && e->fields[f].decl; f++)
		buf_printf(&b, "\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", e->fields[f].decl,
			   e->fields[f].offset, e->fields[f].size, e->fields[f].is_signed);
	buf_printf(&b, "\nprint fmt: %s\n", e->print_fmt);
	return (struct dat_text){ buf_str(&b), b.len };
}

static size_t make_systems(struct dat_system *systems, struct dat_text *texts)
{
	size_t n = 0;

	for (size_t i = 1; i < ARRAY_SIZE(events); i++) {
		texts[i] = format_text(i);
		if (!n || strcmp(systems[n - 1].name, events[i].sys))
			systems[n++] = (struct dat_system){ .name = events[i].sys, .formats = &texts[i] };
		systems[n - 1].n++;
	}
	return n;
}

static void write_file(const char *path)
{
	struct dat_text ftrace = format_text(0), texts[ARRAY_SIZE(events)];
	struct dat_system systems[ARRAY_SIZE(events)];
	struct dat_buffer dat_buffers[BUFFERS];
	struct dat_file f = { .version = 7,
			      .page_size = 4096,
			      .header_page = file_text(FORMATS "/header_page"),
			      .header_event = file_text(FORMATS "/header_event"),
			      .ftrace = &ftrace,
			      .n_ftrace = 1,
			      .systems = systems,
			      .n_systems = make_systems(systems, texts),
			      .cmdlines = { (char *)cmdlines.data, cmdlines.len },
			      .options = options.v,
			      .n_options = options.n,
			      .buffers = dat_buffers,
			      .n_buffers = n_buffers };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (size_t i = 0; i < n_buffers; i++) {
		struct buffer *b = &buffers[i];

		for (uint32_t c = 0; c < CPUS; c++) {
			must(page_flush(&b->w[c], true));
			b->cpus[c] = (struct dat_cpu){ .fd = b->fd[c],
						       .size = (uint64_t)lseek(b->fd[c], 0, SEEK_END) };
		}
		for (uint32_t c = CPUS; c < n_cpus; c++)
			b->cpus[c].fd = -1;
		dat_buffers[i] = (struct dat_buffer){
			.name = b->name, .clock = "mono", .page_size = 4096, .n_cpus = n_cpus, .cpus = b->cpus
		};
	}
	must(fd < 0 ? -errno : dat_write(&f, fd, NULL));
}

int main(int argc, char **argv)
{
	struct buffer *b = add_buffer("");
	char line[2048];

	if (argc != 2)
		die("usage: export-trace OUT < SCRIPT");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (*line)
			b = take_line(b, line);
	}
	write_file(argv[1]);
	_exit(0); /* nothing was freed, for nothing needs to be */
}
