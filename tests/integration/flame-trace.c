// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat with stacks and calls from a script, for flame.t. A line of standard input is one of
 *
 *   id HEX | guest NAME HEX | shift HEX	TRACEID, a GUEST of it, TIME_SHIFT of 0 ns against it
 *   symbol HEX NAME [MODULE]		a function, which records name @NAME, or @NAME+N
 *   kallsyms TEXT			a line of it as it is
 *   task PID COMM
 *   maps PID PATH START-END...		a PROCMAPS
 *   buffer NAME			what follows goes there; at first the top buffer
 *   lost CPU N				events lost before the CPU's next record
 *   TS CPU PID EVENT NUMBER...		a record; numbers beyond an event's fields are a stack's
 *   cut N				of the next record but the first N bytes are written
 * \xNN is a byte in names. usage: flame-trace OUT < SCRIPT
 */
#define MAKER_CPUS 4
#include "trace-maker.h"

#define FIELDS 6

/* Fields as Linux 7.2 has them on arm64; one of size 0 is what remains of the numbers. */
static const struct event {
	const char *sys, *name;
	struct field {
		const char *decl;
		unsigned int offset, size;
	} fields[FIELDS];
	const char *print_fmt;
} events[] = {
	{ "ftrace",
	  "kernel_stack",
	  { { "int size", 8, 4 }, { "unsigned long caller[8]", 16, 64 } },
	  "\"=> %ps\", (void *)REC->caller[0]" },
	{ "ftrace",
	  "user_stack",
	  { { "unsigned int tgid", 8, 4 }, { "unsigned long caller[8]", 16, 64 } },
	  "\"=> %ps\", (void *)REC->caller[0]" },
	{ "ftrace",
	  "funcgraph_entry",
	  { { "unsigned long func", 8, 8 }, { "unsigned long depth", 16, 8 } },
	  "\"--> %ps (%lu)\", (void *)REC->func, REC->depth" },
	{ "ftrace",
	  "funcgraph_exit",
	  { { "unsigned long func", 8, 8 },
	    { "unsigned int depth", 24, 4 },
	    { "unsigned int overrun", 28, 4 },
	    { "unsigned long long calltime", 32, 8 },
	    { "unsigned long long rettime", 40, 8 } },
	  "\"<-- %ps (%u)\", (void *)REC->func, REC->depth" },
	{ "ftrace",
	  "function",
	  { { "unsigned long ip", 8, 8 }, { "unsigned long parent_ip", 16, 8 } },
	  "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip" },
	{ "ftrace",
	  "func_repeats",
	  { { "unsigned long ip", 8, 8 }, { "unsigned long parent_ip", 16, 8 }, { "u16 count", 24, 2 } },
	  "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip" },
	{ "sched",
	  "sched_switch",
	  { { "pid_t prev_pid", 24, 4 },
	    { "long prev_state", 32, 8 },
	    { "pid_t next_pid", 56, 4 },
	    { "char next_comm[16]", 64, 16 } },
	  "\"%d ==> %d\", REC->prev_pid, REC->next_pid" },
	{ "sched", "sched_waking", { { "pid_t pid", 8, 4 } }, "\"pid=%d\", REC->pid" },
	{ "synthetic",
	  "slow",
	  { { "u64 lat", 8, 8 }, { "__data_loc long[] stack", 16, 4 } },
	  "\"lat=%llu, stack=%s\", REC->lat, __get_stacktrace(stack)" },
	{ "hypervisor",
	  "hyp_enter",
	  { { "u8 reason", 8, 1 }, { "pid_t vcpu", 9, 4 } },
	  "\"reason=%s\", __print_symbolic(REC->reason, { 1, \"hvc\" }, { 5, \"guest_exit\" })" },
	{ "hypervisor",
	  "hyp_exit",
	  { { "u8 reason", 8, 1 }, { "pid_t vcpu", 9, 4 } },
	  "\"reason=%s\", __print_symbolic(REC->reason, { 6, \"eret_host\" }, { 7, \"eret_guest\" })" },
	{ "hypervisor",
	  "func",
	  { { "unsigned long ip", 8, 8 }, { "unsigned long parent", 16, 8 } },
	  "\"%ps <- %ps\", (void *)REC->ip, (void *)REC->parent" },
	{ "hypervisor", "func_ret", { { "unsigned long ip", 8, 8 } }, "\"%ps\", (void *)REC->ip" },
};

/* libtracecmd takes ids next to some of the ftrace events for those of others */
#define EVENT_ID(i) (300 + 5 * (i))

static size_t cut = SIZE_MAX;
static struct buf kallsyms;
static struct symbol {
	char name[300];
	uint64_t addr;
} symbols[64];
static size_t n_symbols;

/* ---- records ------------------------------------------------------------------------ */

static uint64_t number(const char *word)
{
	size_t n = strcspn(word, "+");

	if (*word != '@')
		return strtoull(word, NULL, 0);
	for (size_t i = 0; i < n_symbols; i++)
		if (strlen(symbols[i].name) == n - 1 && !strncmp(symbols[i].name, word + 1, n - 1))
			return symbols[i].addr + (word[n] ? strtoull(word + n + 1, NULL, 0) : 0);
	die(word);
	return 0;
}

/* A stack behind the fields, or in place of one of 8 callers. */
static size_t put_stack(const struct field *f, uint8_t *rec, size_t len, char *words)
{
	size_t at = strstr(f->decl, "__data_loc") ? (len + 7) & ~(size_t)7 : f->offset, from = at;
	char *word;

	while ((word = strsep(&words, " "))) {
		uint64_t v = number(word);

		memcpy(rec + at, &v, 8);
		at += 8;
	}
	if (from != f->offset) {
		uint32_t loc = (uint32_t)(at - from) << 16 | (uint32_t)from;

		memcpy(rec + f->offset, &loc, 4);
	}
	return at > len ? at : len;
}

static void put_record(struct maker_buffer *b, char *line)
{
	uint8_t rec[4000] = { 0 };
	unsigned long long ts;
	unsigned int cpu;
	char name[64], *words;
	size_t i = 0, len = 8;
	uint16_t id;
	int pid, used;

	if (sscanf(line, "%llu %u %d %63s%n", &ts, &cpu, &pid, name, &used) != 4 || cpu >= MAKER_CPUS)
		die(line);
	while (i < ARRAY_SIZE(events) && strcmp(events[i].name, name))
		i++;
	if (i == ARRAY_SIZE(events))
		die(line);
	id = (uint16_t)EVENT_ID(i);
	memcpy(rec, &id, 2);
	memcpy(rec + 4, &pid, 4);
	words = line[used] ? line + used + 1 : NULL;
	for (const struct field *f = events[i].fields; f->decl && words; f++) {
		uint64_t v;

		len = f->offset + f->size > len ? f->offset + f->size : len;
		if (!strncmp(f->decl, "char", 4)) {
			strncpy((char *)rec + f->offset, strsep(&words, " "), f->size - 1);
			continue;
		}
		if (strchr(f->decl, '[')) {
			len = put_stack(f, rec, len, words);
			break;
		}
		v = number(strsep(&words, " "));
		memcpy(rec + f->offset, &v, f->size);
	}
	len = len < cut ? len : cut;
	cut = SIZE_MAX;
	must(page_write(&b->w[cpu], ts, rec, (len + 3) & ~(size_t)3));
}

/* ---- the script ----------------------------------------------------------------------- */

static void put_symbol(char *line)
{
	struct symbol *s = &symbols[n_symbols++];
	char module[64] = "";
	unsigned long long addr;

	if (n_symbols > ARRAY_SIZE(symbols) || sscanf(line, "%llx %299s %63s", &addr, s->name, module) < 2)
		die(line);
	s->addr = addr;
	buf_printf(&kallsyms, "%016llx t ", addr);
	unescape(s->name);
	buf_printf(&kallsyms, "%s%s%s\n", s->name, *module ? "\t" : "", module);
}

static void put_maps(char *line)
{
	struct buf maps = { 0 };
	char path[256];
	int pid, used;

	if (sscanf(line, "%d %255s%n", &pid, path, &used) != 2)
		die(line);
	line += used;
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		buf_printf(&maps, "%s r-xp 00000000 00:00 1 %s\n", word, path);
	must(dat_options_add_procmaps(&maker.options, pid, "command", buf_str(&maps), maps.len));
}

static struct maker_buffer *take_line(struct maker_buffer *b, char *line)
{
	char *rest;

	if (maker_line(b, line))
		return b;
	if ((rest = after(line, "shift")))
		put_shift(rest, 1);
	else if ((rest = after(line, "symbol")))
		put_symbol(rest);
	else if ((rest = after(line, "kallsyms")))
		buf_printf(&kallsyms, "%s\n", rest);
	else if ((rest = after(line, "maps")))
		put_maps(rest);
	else if ((rest = after(line, "buffer")))
		return maker_add(rest);
	else if ((rest = after(line, "cut")))
		cut = strtoul(rest, NULL, 0);
	else
		put_record(b, line);
	return b;
}

/* ---- the file --------------------------------------------------------------------------- */

static struct dat_text format_text(size_t i)
{
	const struct event *e = &events[i];
	struct buf b = { 0 };

	maker_format_begin(&b, e->name, EVENT_ID(i));
	for (size_t f = 0; f < FIELDS && e->fields[f].decl; f++)
		buf_printf(&b, "\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:0;\n", e->fields[f].decl,
			   e->fields[f].offset, e->fields[f].size);
	buf_printf(&b, "\nprint fmt: %s\n", e->print_fmt);
	return maker_text(b);
}

static void write_file(const char *path)
{
	struct dat_text texts[ARRAY_SIZE(events)];
	struct dat_system systems[ARRAY_SIZE(events)];
	struct dat_file f = maker_file();

	f.compression = "none"; /* so that a byte that is changed is one of a record */
	f.ftrace = texts;
	f.systems = systems;
	f.kallsyms = maker_text(kallsyms);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		texts[i] = format_text(i);
		if (!strcmp(events[i].sys, "ftrace"))
			f.n_ftrace++;
		else
			systems[f.n_systems++] = (struct dat_system){ events[i].sys, 1, &texts[i] };
	}
	maker_end(&f, "mono", MAKER_CPUS);
	maker_write(&f, path);
}

int main(int argc, char **argv)
{
	struct maker_buffer *b = maker_add("");
	char line[16384];

	if (argc != 2)
		die("usage: flame-trace OUT < SCRIPT");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (*line && *line != '#')
			b = take_line(b, line);
	}
	write_file(argv[1]);
	_exit(0); /* nothing was freed, for nothing needs to be */
}
