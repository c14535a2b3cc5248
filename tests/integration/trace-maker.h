/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_TRACE_MAKER_H
#define TESTS_TRACE_MAKER_H

/*
 * A trace.dat made of lines, for make-trace.c and tests that make up machines: maker_open(), maker_line() for
 * each, maker_write(). The lines, in which \xNN is a byte:
 *
 *   # ...
 *   event [packed] SYSTEM:NAME[#ID] [FIELD; FIELD ...] | PRINT-FMT
 *	an event; a FIELD is as C has it, @OFFSET or @OFFSET:SIZE after it where it is not aligned
 *   TS CPU PID[h|s] [SYSTEM:]EVENT [VALUE...]
 *	a record; h: in an interrupt, s: in a softirq. TS: ns, or seconds with a point. VALUEs are
 *	separated by tabs if the first one comes after a tab, else by blanks. Each is the next field's,
 *	or FIELD=VALUE's. Those of an array, which comes last, are separated by blanks; an array called
 *	caller is as long as its values. @SYMBOL[+N]: an address. =BYTES: all of the record after its
 *	common fields
 *   raw TS CPU HEX...	a record of these bytes
 *   cut N | size N	at most N bytes of the next record; at least N of all that follow
 *   lost CPU N		events lost before the CPU's next record; 0: an unknown number
 *   buffer NAME	the records that follow go there; at first into the main buffer
 *   cpus N		of each buffer (4); those above 7 are empty
 *   systems NAME...	of a FORMATS.dat that follows, ftrace's formats and theirs, not all
 *   id HEX | guest NAME HEX [CPU:PID]... | shift HEX [NS [BOUND [PPM]]]
 *	TRACEID, a GUEST of one, TIME_SHIFT against one with its bound in ns, and what it grows by
 *   wall TRACE UTC SLACK MAX EST TAI
 *	a sample of the time of day (file/dat/options.h), -1: an unknown error; two at most
 *   date US		DATE
 *   uname TEXT | command TEXT | clock NAME | tsc MULT SHIFT | process PID COMMAND | maps PID PATH
 *START-END... UNAME, the command line of record, TRACECLOCK, TSC2NSEC, PROCMAPS task PID COMM | symbol HEX
 *NAME [MODULE] | kallsyms LINE | printk LINE | compression NAME
 */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/array.h"
#include "file/dat/format.h"
#include "file/dat/offset.h"
#include "file/dat/options.h"
#include "file/dat/page.h"
#include "file/dat/writer.h"
#include "base/files.h"

#define MAKER_BUFFERS	 4
#define MAKER_CPUS	 65
#define MAKER_CPUS_MAX	 2048
#define MAKER_EVENTS_MAX 65000
#define MAKER_FIRST_ID	 100
#define MAKER_RECORD_MAX 4096

struct maker_buffer {
	char *name;
	int fd[MAKER_CPUS];
	struct page_writer w[MAKER_CPUS];
	struct dat_cpu cpus[MAKER_CPUS_MAX];
};

struct maker_event {
	const char *system;
	struct dat_text text;
	struct event_format format;
};

/* Nothing is freed: the program ends soon. */
static struct {
	struct maker_buffer buffers[MAKER_BUFFERS], *buffer;
	size_t n_buffers;
	struct maker_event *events;
	size_t n_events, n_formats; /* of FORMATS.dat, which come first */
	struct dat_file file;
	struct dat_options options;
	struct buf cmdlines, kallsyms, printk, wall;
	const char *clock, *systems;
	uint32_t n_cpus;
	size_t cut, least;
} maker = { .file = { .version = 7, .page_size = 4096 }, .clock = "mono", .n_cpus = 4, .cut = SIZE_MAX };

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

static inline void must(int ret)
{
	if (ret)
		die(strerror(ret < 0 ? -ret : EINVAL));
}

static inline struct dat_text text_of(struct buf *b)
{
	return (struct dat_text){ buf_str(b), b->len };
}

static inline struct dat_text text_of_file(const char *path)
{
	struct buf b = { 0 };

	must(read_file(path, 1 << 20, &b));
	return text_of(&b);
}

/* \xNN in place; returns the length. */
static inline size_t unescape(char *s)
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

static inline uint64_t number(const char *word)
{
	size_t n = strcspn(word, "+");
	char *name;
	ENTRY *found;

	if (*word != '@')
		return strtoull(word, NULL, 0);
	name = strndup(word, n);
	found = hsearch((ENTRY){ .key = name }, FIND);
	free(name);
	if (!found)
		die(word);
	return *(uint64_t *)found->data + (word[n] ? strtoull(word + n + 1, NULL, 0) : 0);
}

/* ---- buffers ------------------------------------------------------------------------------ */

static inline int to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(*(int *)ctx, page, size);
}

static inline void take_buffer(char *name)
{
	unescape(name);
	for (maker.buffer = maker.buffers; maker.buffer < maker.buffers + maker.n_buffers; maker.buffer++)
		if (!strcmp(maker.buffer->name, name))
			return;
	if (maker.n_buffers++ == MAKER_BUFFERS)
		die("too many buffers");
	maker.buffer->name = strdup(name);
	for (int i = 0; i < MAKER_CPUS; i++) {
		maker.buffer->fd[i] = memfd_create("pages", MFD_CLOEXEC);
		must(maker.buffer->fd[i] < 0
			     ? -errno
			     : page_writer_init(&maker.buffer->w[i], 4096, to_fd, &maker.buffer->fd[i]));
	}
}

static inline struct page_writer *writer(unsigned int cpu)
{
	if (cpu >= MAKER_CPUS || cpu >= maker.n_cpus)
		die("no such CPU");
	return &maker.buffer->w[cpu];
}

/* ---- events ---------------------------------------------------------------------------------- */

static inline void add_event(const char *system, struct dat_text text)
{
	struct maker_event e = { .system = system, .text = text };
	ENTRY one = { .data = (void *)(uintptr_t)(maker.n_events + 1) };

	must(event_format_parse(text.data, text.len, &e.format));
	must(array_push(&maker.events, &maker.n_events, &e, sizeof(e)));
	one.key = str_printf("%s:%s", system, e.format.name);
	hsearch(one, ENTER); /* an entry that is there stays: the first of a name is meant */
	one.key = str_printf(":%s", e.format.name);
	if (!hsearch(one, ENTER))
		die("too many events");
}

static inline size_t type_size(const char *field)
{
	static const struct {
		const char *type;
		size_t size;
	} types[] = { { "__data_loc", 4 },   { "unsigned long", 8 },
		      { "unsigned int", 4 }, { "unsigned", 4 },
		      { "long", 8 },	     { "int", 4 },
		      { "pid_t", 4 },	     { "bool", 1 },
		      { "char", 1 },	     { "u8", 1 },
		      { "s8", 1 },	     { "u16", 2 },
		      { "u32", 4 },	     { "__u32", 4 },
		      { "u64", 8 },	     { "s64", 8 },
		      { "__u64", 8 } };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strncmp(field, types[i].type, strlen(types[i].type)))
			return types[i].size;
	return 1;
}

/* "unsigned long caller[8]@16:64" to a line of the format; *at: the place after the field before, and after
 * it. */
static inline void put_field(struct buf *b, char *field, bool packed, size_t *at)
{
	char *place = strchr(field, '@'), *array = strchr(field, '[');
	size_t align = type_size(field), size = align, offset;

	if (place)
		*place++ = '\0';
	if (array && strncmp(field, "__data_loc", 10) != 0)
		size *= strtoul(array + 1, NULL, 10);
	offset = packed ? *at : (*at + align - 1) / align * align;
	if (place)
		sscanf(place, "%zu:%zu", &offset, &size);
	buf_printf(b, "\tfield:%s;\toffset:%zu;\tsize:%zu;\tsigned:%d;\n", field, offset, size,
		   *field == 's' || !strncmp(field, "int", 3) || !strncmp(field, "pid_t", 5) ||
			   !strncmp(field, "long", 4));
	*at = offset + size;
}

/* "[packed] SYSTEM:NAME[#ID] [FIELDS] | PRINT-FMT" */
static inline void take_event(char *line)
{
	bool packed = !strncmp(line, "packed ", 7);
	char *system = line + (packed ? 7 : 0), *name = strchr(system, ':'), *fields, *print_fmt;
	size_t id = MAKER_FIRST_ID + maker.n_events - maker.n_formats, at = 8;
	struct buf b = { 0 };

	print_fmt = strstr(line, " | ");
	if (!name || !print_fmt)
		die(line);
	*name++ = *print_fmt = '\0';
	fields = name + strcspn(name, " ");
	if (*fields)
		*fields++ = '\0';
	if (strchr(name, '#')) {
		id = strtoul(strchr(name, '#') + 1, NULL, 10);
		*strchr(name, '#') = '\0';
	}
	unescape(system);
	unescape(name);
	buf_printf(&b,
		   "name: %s\nID: %zu\nformat:\n"
		   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		   "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		   "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		   name, id);
	for (char *field; (field = strsep(&fields, ";"));) {
		field += strspn(field, " ");
		if (*field)
			put_field(&b, field, packed, &at);
	}
	buf_printf(&b, "\nprint fmt: %s\n", print_fmt + 3);
	add_event(strdup(system), text_of(&b));
}

static inline const struct maker_event *find_event(const char *name)
{
	char key[600];
	ENTRY *found;

	snprintf(key, sizeof(key), "%s%s", strchr(name, ':') ? "" : ":", name);
	found = hsearch((ENTRY){ .key = key }, FIND);
	if (!found)
		die(name);
	return &maker.events[(uintptr_t)found->data - 1];
}

/* ---- records ----------------------------------------------------------------------------------- */

struct maker_record {
	uint8_t data[MAKER_RECORD_MAX];
	size_t len;
};

static inline void put_bytes(struct maker_record *r, size_t at, const void *data, size_t len)
{
	if (at + len > sizeof(r->data))
		die("a record that is too long");
	memcpy(r->data + at, data, len);
	r->len = at + len > r->len ? at + len : r->len;
}

static inline bool is_moved(const struct event_field *f)
{
	return !strncmp(f->type, "__data_loc", 10);
}

static inline bool is_text(const struct event_field *f)
{
	return strstr(f->type, "char") && (is_moved(f) || strchr(f->name, '['));
}

static inline bool is_array(const struct event_field *f)
{
	return !is_text(f) && (is_moved(f) || strchr(f->name, '['));
}

/* The items of an array: into its place, or after all. */
static inline void put_items(struct maker_record *r, const struct event_field *f, char *value, size_t size)
{
	size_t from = is_moved(f) ? (r->len + 7) & ~(size_t)7 : f->offset, at = from;
	uint32_t loc;

	for (char *word; (word = strsep(&value, " ")); at += size) {
		uint64_t v = number(word);

		put_bytes(r, at, &v, size);
	}
	loc = (uint32_t)(at - from) << 16 | (uint32_t)from;
	if (is_moved(f))
		put_bytes(r, f->offset, &loc, sizeof(loc));
}

static inline void put_value(struct maker_record *r, const struct event_field *f, char *value)
{
	uint64_t v;
	size_t n;

	if (is_array(f)) {
		put_items(r, f, value, type_size(f->type + (is_moved(f) ? strlen("__data_loc ") : 0)));
		return;
	}
	n = unescape(value);
	if (is_moved(f)) {
		uint32_t loc = (uint32_t)(n + 1) << 16 | (uint32_t)r->len;

		put_bytes(r, f->offset, &loc, sizeof(loc));
		put_bytes(r, r->len, value, n + 1);
	} else if (is_text(f)) {
		put_bytes(r, f->offset, value, !f->size ? n + 1 : n < f->size ? n : f->size);
	} else {
		v = number(value);
		put_bytes(r, f->offset, &v, f->size);
	}
}

/* True: "FIELD=VALUE" was one. */
static inline bool put_named(struct maker_record *r, const struct event_format *f, char *word)
{
	char *value = strchr(word, '=');
	const struct event_field *field;

	if (!value)
		return false;
	*value = '\0';
	field = event_format_field(f, word);
	*value = '=';
	if (field)
		put_value(r, field, value + 1);
	return field;
}

static inline void put_values(struct maker_record *r, const struct event_format *f, char *values, bool tabs)
{
	for (size_t i = 0; values && (tabs || *values);) {
		const struct event_field *field = i < f->n_fields ? &f->fields[i] : NULL;
		char *value = values;

		if (field && !tabs && is_array(field))
			values = NULL;
		else
			strsep(&values, tabs ? "\t" : " ");
		if (!tabs && (!*value || put_named(r, f, value)))
			continue;
		if (!field)
			die("a value too many");
		put_value(r, field, value);
		i++;
	}
}

static inline void write_record(unsigned int cpu, uint64_t ts, struct maker_record *r)
{
	size_t len = r->len < maker.least ? maker.least : r->len;

	len = len < maker.cut ? len : maker.cut;
	maker.cut = SIZE_MAX;
	must(page_write(writer(cpu), ts, r->data, (len + 3) & ~(size_t)3));
}

static inline uint64_t take_time(char *word)
{
	char digits[10] = "000000000", *point = strchr(word, '.');

	if (!point)
		return strtoull(word, NULL, 10);
	memcpy(digits, point + 1, strnlen(point + 1, 9));
	return strtoull(word, NULL, 10) * 1000000000 + strtoull(digits, NULL, 10);
}

/* "TS CPU PID EVENT VALUE..." */
static inline void take_record(char *line)
{
	struct maker_record r = { .len = 8 };
	char *ts = strsep(&line, " "), *cpu = strsep(&line, " "), *pid_text = strsep(&line, " "), *name,
	     *flag;
	const struct maker_event *e;
	bool tabs;
	uint16_t id;
	int pid;

	if (!line)
		die(ts);
	pid = (int)strtol(pid_text, &flag, 10);
	name = line;
	line += strcspn(line, " \t");
	tabs = *line == '\t';
	if (*line)
		*line++ = '\0';
	unescape(name);
	e = find_event(name);
	for (size_t i = 0; i < e->format.n_fields; i++) {
		const struct event_field *f = &e->format.fields[i];
		size_t end = f->offset + f->size;

		if (end > r.len && end < sizeof(r.data) && strncmp(f->name, "caller[", 7) != 0)
			r.len = end;
	}
	id = (uint16_t)e->format.id;
	put_bytes(&r, 0, &id, sizeof(id));
	put_bytes(&r, 2, &(uint8_t){ *flag == 'h' ? 8 : *flag == 's' ? 16 : 0 }, 1);
	put_bytes(&r, 4, &pid, sizeof(pid));
	if (*line == '=') {
		r.len = 8;
		put_bytes(&r, 8, line + 1, unescape(line + 1));
	} else {
		put_values(&r, &e->format, line, tabs);
	}
	write_record((unsigned int)strtoul(cpu, NULL, 10), take_time(ts), &r);
}

static inline void take_raw(const char *line)
{
	struct maker_record r = { .len = 0 };
	unsigned long long ts;
	unsigned int cpu, byte;
	int used;

	if (sscanf(line, "%llu %u%n", &ts, &cpu, &used) != 2)
		die(line);
	for (line += used; sscanf(line, "%2x%n", &byte, &used) == 1; line += used)
		put_bytes(&r, r.len, &(uint8_t){ (uint8_t)byte }, 1);
	must(page_write(writer(cpu), ts, r.data, r.len));
}

/* ---- options and texts ----------------------------------------------------------------------------
 */

/* "NAME HEX [CPU:PID]..." */
static inline void take_guest(char *line)
{
	struct offset_vcpu vcpus[MAKER_CPUS];
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
	for (line += used;
	     g.n < MAKER_CPUS && sscanf(line, " %u:%u%n", &vcpus[g.n].cpu, &vcpus[g.n].pid, &used) == 2;
	     line += used)
		g.n++;
	offset_guest_encode(&g, &b);
	must(dat_options_add(&maker.options, DAT_GUEST, b.data, b.len));
}

/* "HEX [NS [BOUND [PPM]]]" */
static inline void take_shift(char *line)
{
	struct offset_shift s = { 0 };
	struct offset_point k[2] = { { .scaling = 1 }, { .scaling = 1, .time = 1ull << 60 } };
	uint64_t bounds[2] = { 0 };
	struct buf b = { 0 };
	unsigned long long peer, bound = 0;
	long long ns = 0, ppm = 0;
	int n = sscanf(line, "%llx %lld %llu %lld", &peer, &ns, &bound, &ppm);

	if (n < 1)
		die(line);
	k[0].offset = ns;
	k[1].time = ppm ? 1ull << 36 : k[1].time; /* in 64 bits, as stock has it */
	k[1].offset = ns + (int64_t)k[1].time * ppm / 1000000;
	bounds[0] = bounds[1] = bound;
	must(offset_shift_fill(&s, peer, maker.n_cpus < MAKER_CPUS ? maker.n_cpus : MAKER_CPUS, k,
			       n > 2 ? 2 : 1));
	if (n > 2)
		must(offset_shift_set_bounds(&s, bounds, 2, "counter", "hard"));
	offset_shift_encode(&s, &b);
	must(dat_options_add(&maker.options, DAT_TIME_SHIFT, b.data, b.len));
}

static inline void take_maps(char *line, bool process)
{
	struct buf maps = { 0 };
	char *pid = strsep(&line, " "), *path = process ? line : strsep(&line, " ");

	if (process)
		buf_addstr(&maps, "1000-2000 r-xp 00000000 00:00 1 /bin/program\n");
	for (char *word; !process && (word = strsep(&line, " "));)
		buf_printf(&maps, "%s r-xp 00000000 00:00 1 %s\n", word, path);
	must(dat_options_add_procmaps(&maker.options, atoi(pid), process ? path : "command", buf_str(&maps),
				      maps.len));
}

static inline void take_symbol(char *line)
{
	char name[300], module[64] = "";
	unsigned long long addr;
	uint64_t *copy = malloc(sizeof(*copy));

	if (!copy || sscanf(line, "%llx %299s %63s", &addr, name, module) < 2)
		die(line);
	*copy = addr;
	hsearch((ENTRY){ .key = str_printf("@%s", name), .data = copy }, ENTER);
	unescape(name);
	buf_printf(&maker.kallsyms, "%016llx t %s%s%s\n", addr, name, *module ? "\t" : "", module);
}

/* ---- lines -------------------------------------------------------------------------------------------- */

/* The rest of a line that begins with the word, or NULL. */
static inline char *after(char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && (line[n] == ' ' || !line[n]) ? line + n + (line[n] == ' ') : NULL;
}

static inline void maker_line(char *line)
{
	unsigned int cpu, n;
	char *rest;

	if (!*line || *line == '#')
		return;
	if ((rest = after(line, "event"))) {
		take_event(rest);
	} else if ((rest = after(line, "raw"))) {
		take_raw(rest);
	} else if ((rest = after(line, "cut"))) {
		maker.cut = strtoul(rest, NULL, 0);
	} else if ((rest = after(line, "size"))) {
		maker.least = strtoul(rest, NULL, 0);
		if (maker.least > MAKER_RECORD_MAX)
			die(line);
	} else if ((rest = after(line, "lost")) && sscanf(rest, "%u %u", &cpu, &n) == 2) {
		must(page_write_lost(writer(cpu), n));
	} else if ((rest = after(line, "buffer"))) {
		take_buffer(rest);
	} else if ((rest = after(line, "cpus"))) {
		maker.n_cpus = (uint32_t)strtoul(rest, NULL, 0);
		if (!maker.n_cpus || maker.n_cpus > MAKER_CPUS_MAX)
			die(line);
	} else if ((rest = after(line, "systems"))) {
		maker.systems = strdup(rest);
	} else if ((rest = after(line, "id"))) {
		must(dat_options_add_traceid(&maker.options, strtoull(rest, NULL, 16)));
	} else if ((rest = after(line, "guest"))) {
		take_guest(rest);
	} else if ((rest = after(line, "shift"))) {
		take_shift(rest);
	} else if ((rest = after(line, "wall"))) {
		uint64_t v[6] = { 0 };

		for (size_t i = 0; i < ARRAY_SIZE(v); i++)
			v[i] = (uint64_t)strtoll(rest, &rest, 10);
		buf_add(&maker.wall, v, sizeof(v));
	} else if ((rest = after(line, "date"))) {
		must(dat_options_add_date(&maker.options, strtoll(rest, NULL, 10)));
	} else if ((rest = after(line, "uname"))) {
		unescape(rest);
		must(dat_options_add_text(&maker.options, DAT_UNAME, rest));
	} else if ((rest = after(line, "command"))) {
		unescape(rest);
		must(dat_options_add_text(&maker.options, DAT_COMMAND, rest));
	} else if ((rest = after(line, "clock"))) {
		maker.clock = strdup(rest);
		must(dat_options_add_clock(&maker.options, rest));
	} else if ((rest = after(line, "tsc")) && sscanf(rest, "%u %u", &cpu, &n) == 2) {
		must(dat_options_add_tsc2nsec(&maker.options, cpu, n, 0));
	} else if ((rest = after(line, "process"))) {
		take_maps(rest, true);
	} else if ((rest = after(line, "maps"))) {
		take_maps(rest, false);
	} else if ((rest = after(line, "task"))) {
		unescape(rest);
		buf_printf(&maker.cmdlines, "%s\n", rest);
	} else if ((rest = after(line, "symbol"))) {
		take_symbol(rest);
	} else if ((rest = after(line, "kallsyms"))) {
		buf_printf(&maker.kallsyms, "%s\n", rest);
	} else if ((rest = after(line, "printk"))) {
		buf_printf(&maker.printk, "%s\n", rest);
	} else if ((rest = after(line, "compression"))) {
		maker.file.compression = strdup(rest);
	} else {
		take_record(line);
	}
}

static inline void maker_open(void)
{
	char top[] = "";

	if (!hcreate(3 * MAKER_EVENTS_MAX))
		die("no memory");
	take_buffer(top);
}

/* ---- the file -------------------------------------------------------------------------------------------
 */

/* The lines' own events, those of a system in a row together. */
static inline void put_formats(void)
{
	struct dat_text *texts = calloc(maker.n_events + 1, sizeof(*texts)), *ftrace = texts;
	struct dat_system *systems = calloc(maker.n_events + 1, sizeof(*systems));
	size_t n = 0;

	must(texts && systems ? 0 : -ENOMEM);
	for (size_t i = 0; i < maker.n_events; i++)
		if (!strcmp(maker.events[i].system, "ftrace"))
			texts[maker.file.n_ftrace++] = maker.events[i].text;
	texts += maker.file.n_ftrace;
	for (size_t i = 0; i < maker.n_events; i++) {
		if (!strcmp(maker.events[i].system, "ftrace"))
			continue;
		if (!n || strcmp(systems[n - 1].name, maker.events[i].system) != 0)
			systems[n++] =
				(struct dat_system){ .name = maker.events[i].system, .formats = texts };
		*texts++ = maker.events[i].text;
		systems[n - 1].n++;
	}
	maker.file.ftrace = ftrace;
	maker.file.systems = systems;
	maker.file.n_systems = n;
	maker.file.header_page = text_of_file("tests/data/formats/header_page");
	maker.file.header_event = text_of_file("tests/data/formats/header_event");
}

static inline void maker_write(const char *path)
{
	static struct dat_buffer dat[MAKER_BUFFERS];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	for (size_t i = 0; i < maker.n_buffers; i++) {
		struct maker_buffer *b = &maker.buffers[i];

		for (uint32_t c = 0; c < maker.n_cpus; c++) {
			if (c >= MAKER_CPUS) {
				b->cpus[c].fd = -1;
				continue;
			}
			must(page_flush(&b->w[c], true));
			b->cpus[c] = (struct dat_cpu){ .fd = b->fd[c],
						       .size = (uint64_t)lseek(b->fd[c], 0, SEEK_END) };
		}
		dat[i] = (struct dat_buffer){ b->name, maker.clock, .page_size = 4096, .n_cpus = maker.n_cpus,
					      .cpus = b->cpus };
	}
	if (maker.wall.len)
		must(dat_options_add(&maker.options, DAT_WALL, maker.wall.data, maker.wall.len));
	maker.file.buffers = dat;
	maker.file.n_buffers = maker.n_buffers;
	maker.file.options = maker.options.v;
	maker.file.n_options = maker.options.n;
	maker.file.cmdlines = text_of(&maker.cmdlines);
	if (maker.kallsyms.len)
		maker.file.kallsyms = text_of(&maker.kallsyms);
	if (maker.printk.len)
		maker.file.printk = text_of(&maker.printk);
	if (!maker.n_formats)
		put_formats();
	must(fd < 0 ? -errno : dat_write(&maker.file, fd, NULL));
}

#endif
