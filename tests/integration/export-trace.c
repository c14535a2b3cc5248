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
#define MAKER_CPUS 4
#include "trace-maker.h"

#define FIELDS 8

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
	{ "hypertrace",
	  "guest_hypertrace",
	  { { "u32 client", 8, 4, false },
	    { "int vcpu", 12, 4, true },
	    { "u64 arg1", 16, 8, false },
	    { "u64 arg2", 24, 8, false },
	    { "__data_loc char[] guest", 32, 4, false } },
	  "\"client=%u arg1=0x%llx\", REC->client, REC->arg1" },
};

#define FIRST_ID 100

/* ---- records ------------------------------------------------------------------------ */

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

static void put_record(struct maker_buffer *b, char *line)
{
	uint8_t rec[2048] = { 0 };
	char name[64], sys[64] = "", *values;
	unsigned long long ts;
	unsigned int cpu;
	int pid, used;

	if (sscanf(line, "%llu %u %d %63s%n", &ts, &cpu, &pid, name, &used) != 4 || cpu >= MAKER_CPUS)
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

static void put_raw(struct maker_buffer *b, const char *line)
{
	uint8_t rec[256];
	unsigned long long ts;
	unsigned int cpu, byte;
	size_t len = 0;
	int used;

	if (sscanf(line, "%llu %u%n", &ts, &cpu, &used) != 2 || cpu >= MAKER_CPUS)
		die(line);
	for (line += used; sscanf(line, "%2x%n", &byte, &used) == 1; line += used)
		rec[len++] = (uint8_t)byte;
	must(page_write(&b->w[cpu], ts, rec, len));
}

/* ---- the script ----------------------------------------------------------------------- */

static uint32_t n_cpus = MAKER_CPUS;

static void put_process(const char *line)
{
	static const char maps[] = "1000-2000 r-xp 00000000 00:00 1 /bin/program\n";
	int pid, used;

	if (sscanf(line, "%d %n", &pid, &used) != 1)
		die(line);
	must(dat_options_add_procmaps(&maker.options, pid, line + used, maps, strlen(maps)));
}

/* The rest of a line that begins with the word, with its bytes, or NULL. */
static char *name_after(char *line, const char *word)
{
	char *rest = after(line, word);

	if (rest)
		unescape(rest);
	return rest;
}

static struct maker_buffer *take_line(struct maker_buffer *b, char *line)
{
	unsigned int n, shift;
	char *rest;

	if (maker_line(b, line))
		return b;
	if ((rest = after(line, "shift")))
		put_shift(rest, 1);
	else if ((rest = name_after(line, "uname")))
		must(dat_options_add_text(&maker.options, DAT_UNAME, rest));
	else if ((rest = after(line, "clock")))
		must(dat_options_add_clock(&maker.options, rest));
	else if ((rest = after(line, "tsc")) && sscanf(rest, "%u %u", &n, &shift) == 2)
		must(dat_options_add_tsc2nsec(&maker.options, n, shift, 0));
	else if ((rest = after(line, "cpus")) && sscanf(rest, "%u", &n) == 1 && n >= MAKER_CPUS &&
		 n <= MAKER_CPUS_MAX)
		n_cpus = n;
	else if ((rest = after(line, "process")))
		put_process(rest);
	else if ((rest = name_after(line, "buffer")))
		return maker_add(rest);
	else if ((rest = after(line, "raw")))
		put_raw(b, rest);
	else
		put_record(b, line);
	return b;
}

/* ---- the file --------------------------------------------------------------------------- */

static struct dat_text format_text(size_t i)
{
	const struct event *e = &events[i];
	struct buf b = { 0 };

	maker_format_begin(&b, e->name, FIRST_ID + i);
	for (size_t f = 0; f < FIELDS && e->fields[f].decl; f++)
		buf_printf(&b, "\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", e->fields[f].decl,
			   e->fields[f].offset, e->fields[f].size, e->fields[f].is_signed);
	buf_printf(&b, "\nprint fmt: %s\n", e->print_fmt);
	return maker_text(b);
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
	struct dat_file f = maker_file();

	f.ftrace = &ftrace;
	f.n_ftrace = 1;
	f.systems = systems;
	f.n_systems = make_systems(systems, texts);
	maker_end(&f, "mono", n_cpus);
	maker_write(&f, path);
}

int main(int argc, char **argv)
{
	struct maker_buffer *b = maker_add("");
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
