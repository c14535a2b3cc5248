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
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat/offset.h"
#include "dat/options.h"
#include "dat/page.h"
#include "dat/writer.h"

#define FORMATS "tests/data/formats"
#define CPUS	4
#define BUFFERS 2
#define FIELDS	6

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

static struct buffer {
	char name[64];
	int fd[CPUS];
	struct page_writer w[CPUS];
	struct dat_cpu cpus[CPUS];
} buffers[BUFFERS];
static size_t n_buffers, cut = SIZE_MAX;
static struct dat_options options;
static struct buf cmdlines, kallsyms;
static struct symbol {
	char name[300];
	uint64_t addr;
} symbols[64];
static size_t n_symbols;

static void die(const char *what)
{
	fprintf(stderr, "flame-trace: %s\n", what);
	exit(1);
}

static void must(int ret)
{
	if (ret)
		die(strerror(ret < 0 ? -ret : EINVAL));
}

/* ---- pages ------------------------------------------------------------------------ */

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

static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		unsigned int c;

		if (s[0] == '\\' && s[1] == 'x' && sscanf(s + 2, "%2x", &c) == 1) {
			*to++ = (char)c;
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

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

static void put_record(struct buffer *b, char *line)
{
	uint8_t rec[4000] = { 0 };
	unsigned long long ts;
	unsigned int cpu;
	char name[64], *words;
	size_t i = 0, len = 8;
	uint16_t id;
	int pid, used;

	if (sscanf(line, "%llu %u %d %63s%n", &ts, &cpu, &pid, name, &used) != 4 || cpu >= CPUS)
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

static void put_guest(const char *line)
{
	struct offset_guest g = { 0 };
	struct buf b = { 0 };
	char name[64];
	unsigned long long id;

	if (sscanf(line, "%63s %llx", name, &id) != 2)
		die(line);
	unescape(name);
	g.name = name;
	g.trace_id = id;
	offset_guest_encode(&g, &b);
	must(dat_options_add(&options, DAT_GUEST, b.data, b.len));
}

static void put_shift(const char *line)
{
	struct offset_shift s = { 0 };
	struct offset_knot k = { .scaling = 1 };
	struct buf b = { 0 };

	must(offset_shift_fill(&s, strtoull(line, NULL, 16), CPUS, &k, 1));
	offset_shift_encode(&s, &b);
	must(dat_options_add(&options, DAT_TIME_SHIFT, b.data, b.len));
}

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
	must(dat_options_add_procmaps(&options, pid, "command", buf_str(&maps), maps.len));
}

static struct buffer *take_line(struct buffer *b, char *line)
{
	char *rest = strchr(line, ' ');
	unsigned int cpu, n;

	if (!rest)
		die(line);
	*rest++ = '\0';
	if (!strcmp(line, "id")) {
		must(dat_options_add_traceid(&options, strtoull(rest, NULL, 16)));
	} else if (!strcmp(line, "guest")) {
		put_guest(rest);
	} else if (!strcmp(line, "shift")) {
		put_shift(rest);
	} else if (!strcmp(line, "symbol")) {
		put_symbol(rest);
	} else if (!strcmp(line, "kallsyms")) {
		buf_printf(&kallsyms, "%s\n", rest);
	} else if (!strcmp(line, "task")) {
		unescape(rest);
		buf_printf(&cmdlines, "%s\n", rest);
	} else if (!strcmp(line, "maps")) {
		put_maps(rest);
	} else if (!strcmp(line, "buffer")) {
		return add_buffer(rest);
	} else if (!strcmp(line, "cut")) {
		cut = strtoul(rest, NULL, 0);
	} else if (!strcmp(line, "lost") && sscanf(rest, "%u %u", &cpu, &n) == 2 && cpu < CPUS) {
		must(page_write_lost(&b->w[cpu], n));
	} else {
		rest[-1] = ' ';
		put_record(b, line);
	}
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
		   e->name, EVENT_ID(i));
	for (size_t f = 0; f < FIELDS && e->fields[f].decl; f++)
		buf_printf(&b, "\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:0;\n", e->fields[f].decl,
			   e->fields[f].offset, e->fields[f].size);
	buf_printf(&b, "\nprint fmt: %s\n", e->print_fmt);
	return (struct dat_text){ buf_str(&b), b.len };
}

static void write_file(const char *path)
{
	struct dat_text texts[ARRAY_SIZE(events)];
	struct dat_system systems[ARRAY_SIZE(events)];
	struct dat_buffer dat_buffers[BUFFERS];
	struct dat_file f = { .version = 7,
			      .compression = "none", /* so that a byte that is changed is one of a record */
			      .page_size = 4096,
			      .header_page = file_text(FORMATS "/header_page"),
			      .header_event = file_text(FORMATS "/header_event"),
			      .ftrace = texts,
			      .systems = systems,
			      .kallsyms = { buf_str(&kallsyms), kallsyms.len },
			      .cmdlines = { buf_str(&cmdlines), cmdlines.len },
			      .options = options.v,
			      .n_options = options.n,
			      .buffers = dat_buffers,
			      .n_buffers = n_buffers };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		texts[i] = format_text(i);
		if (!strcmp(events[i].sys, "ftrace"))
			f.n_ftrace++;
		else
			systems[f.n_systems++] = (struct dat_system){ events[i].sys, 1, &texts[i] };
	}
	for (size_t i = 0; i < n_buffers; i++) {
		struct buffer *b = &buffers[i];

		for (uint32_t c = 0; c < CPUS; c++) {
			must(page_flush(&b->w[c], true));
			b->cpus[c] = (struct dat_cpu){ .fd = b->fd[c],
						       .size = (uint64_t)lseek(b->fd[c], 0, SEEK_END) };
		}
		dat_buffers[i] = (struct dat_buffer){
			.name = b->name, .clock = "mono", .page_size = 4096, .n_cpus = CPUS, .cpus = b->cpus
		};
	}
	must(fd < 0 ? -errno : dat_write(&f, fd, NULL));
}

int main(int argc, char **argv)
{
	struct buffer *b = add_buffer("");
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
