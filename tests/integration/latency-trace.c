// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat with the event formats of another from a script, for latency.t. A line of standard
 * input is one of
 *
 *   # ...
 *   id HEX				TRACEID
 *   guest NAME HEX [CPU:PID]...	a GUEST of that TRACEID
 *   shift HEX NS [BOUND]		TIME_SHIFT against the file of that TRACEID; BOUND: its bound, ns
 *   task PID COMM
 *   buffer NAME			what follows goes there; at first the top buffer
 *   lost CPU N				events lost before the CPU's next record
 *   SECONDS CPU PID EVENT [FIELD=VALUE]...	a record; a VALUE of a string ends at the next blank
 *
 * usage: latency-trace FORMATS.dat OUT < SCRIPT
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat-texts.h"
#include "dat/offset.h"
#include "dat/options.h"
#include "dat/page.h"
#include "dat/writer.h"
#include "read/inputs.h"

#define CPUS	8
#define BUFFERS 2

static void die(const char *what)
{
	fprintf(stderr, "latency-trace: %s\n", what);
	exit(1);
}

static void must(int ret)
{
	if (ret)
		die(strerror(ret < 0 ? -ret : EINVAL));
}

static struct buffer {
	char name[64];
	int fd[CPUS];
	struct page_writer w[CPUS];
	struct dat_cpu cpus[CPUS];
} buffers[BUFFERS];
static size_t n_buffers;
static struct inputs formats;
static struct dat_options options;
static struct buf cmdlines;

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

/* ---- records -------------------------------------------------------------------------- */

static size_t record_size(const struct tep_event *e)
{
	size_t end = 8;

	for (const struct tep_format_field *f = e->format.fields; f; f = f->next)
		if ((size_t)f->offset + (size_t)f->size > end)
			end = (size_t)f->offset + (size_t)f->size;
	return end;
}

static void put_value(uint8_t *rec, size_t *len, const struct tep_format_field *f, const char *value)
{
	uint64_t v = strtoull(value, NULL, 0);
	size_t n = strlen(value);

	if (f->flags & TEP_FIELD_IS_DYNAMIC) {
		uint32_t loc = (uint32_t)(n + 1) << 16 | (uint32_t)*len;

		memcpy(rec + f->offset, &loc, 4);
		memcpy(rec + *len, value, n);
		*len += n + 1;
	} else if (f->flags & TEP_FIELD_IS_STRING) {
		memcpy(rec + f->offset, value, n < (size_t)f->size ? n : (size_t)f->size);
	} else {
		memcpy(rec + f->offset, &v, (size_t)f->size);
	}
}

static void put_record(struct buffer *b, char *line)
{
	unsigned long long sec;
	char name[64], ns_text[16] = "", *save, *word;
	uint8_t rec[1024] = { 0 };
	struct tep_event *e;
	unsigned int cpu;
	uint16_t id;
	int pid, used;
	size_t len;

	if (sscanf(line, "%llu.%15[0-9] %u %d %63s%n", &sec, ns_text, &cpu, &pid, name, &used) != 5 ||
	    cpu >= CPUS)
		die(line);
	e = tep_find_event_by_name(formats.v[0].tep, NULL, name);
	if (!e)
		die(name);
	for (size_t i = strlen(ns_text); i < 9; i++)
		ns_text[i] = '0';
	len = record_size(e);
	id = (uint16_t)e->id;
	memcpy(rec, &id, sizeof(id));
	memcpy(rec + 4, &pid, sizeof(pid));
	for (word = strtok_r(line + used, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		struct tep_format_field *f;

		if (!value)
			die(word);
		*value++ = '\0';
		f = tep_find_field(e, word);
		if (!f)
			die(word);
		put_value(rec, &len, f, value);
	}
	must(page_write(&b->w[cpu], sec * 1000000000 + strtoull(ns_text, NULL, 10), rec,
			(len + 3) & ~(size_t)3));
}

/* ---- the script ------------------------------------------------------------------------ */

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
	g.name = name;
	g.trace_id = id;
	for (line += used; g.n < 8 && sscanf(line, " %u:%u%n", &vcpus[g.n].cpu, &vcpus[g.n].pid, &used) == 2;
	     line += used)
		g.n++;
	offset_guest_encode(&g, &b);
	must(dat_options_add(&options, DAT_GUEST, b.data, b.len));
	buf_release(&b);
}

/* Two knots, so that all times lie between them. */
static void put_shift(const char *line)
{
	struct offset_shift s = { 0 };
	struct offset_knot k[2] = { { .scaling = 1 }, { .scaling = 1, .time = 1ull << 60 } };
	uint64_t bounds[2];
	struct buf b = { 0 };
	unsigned long long peer, bound;
	long long ns;
	int n = sscanf(line, "%llx %lld %llu", &peer, &ns, &bound);

	if (n < 2)
		die(line);
	k[0].offset = k[1].offset = ns;
	bounds[0] = bounds[1] = bound;
	must(offset_shift_fill(&s, peer, CPUS, k, 2));
	if (n == 3)
		must(offset_shift_set_bounds(&s, bounds, 2, "test", "hard"));
	offset_shift_encode(&s, &b);
	must(dat_options_add(&options, DAT_TIME_SHIFT, b.data, b.len));
	offset_shift_release(&s);
	buf_release(&b);
}

/* The rest of a line that begins with the word, or NULL. */
static char *after(char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && line[n] == ' ' ? line + n + 1 : NULL;
}

static struct buffer *take_line(struct buffer *b, char *line)
{
	unsigned int cpu, n;
	char *rest;

	if ((rest = after(line, "id")))
		must(dat_options_add_traceid(&options, strtoull(rest, NULL, 16)));
	else if ((rest = after(line, "guest")))
		put_guest(rest);
	else if ((rest = after(line, "shift")))
		put_shift(rest);
	else if ((rest = after(line, "task")))
		buf_printf(&cmdlines, "%s\n", rest);
	else if ((rest = after(line, "buffer")))
		return add_buffer(rest);
	else if ((rest = after(line, "lost")) && sscanf(rest, "%u %u", &cpu, &n) == 2 && cpu < CPUS)
		must(page_write_lost(&b->w[cpu], n));
	else
		put_record(b, line);
	return b;
}

static void write_file(const char *path)
{
	struct dat_buffer dat_buffers[BUFFERS];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	struct dat_file f;

	must(dat_texts(&f, reader_info(formats.v[0].reader)));
	f.version = 7;
	f.compression = "none";
	f.cmdlines = (struct dat_text){ buf_str(&cmdlines), cmdlines.len };
	f.options = options.v;
	f.n_options = options.n;
	f.buffers = dat_buffers;
	f.n_buffers = n_buffers;
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
	char line[2048];

	if (argc != 3)
		die("usage: latency-trace FORMATS.dat OUT < SCRIPT");
	must(inputs_open(&formats, argv + 1, 1, 0, NULL));
	must(inputs_load(&formats, NULL));
	must(dat_options_add_clock(&options, "mono"));
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (*line && *line != '#')
			b = take_line(b, line);
	}
	write_file(argv[2]);
	_exit(0); /* nothing was freed, for nothing needs to be */
}
