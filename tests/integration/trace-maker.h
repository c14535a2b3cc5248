/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_TRACE_MAKER_H
#define TESTS_TRACE_MAKER_H

/*
 * What the programs have in common that make a trace.dat from a script: pages of buffers, texts, options and
 * the lines of a script that mean the same in all of them. Nothing is freed: they end soon. MAKER_CPUS: CPUs
 * that may have records; define it before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dat/offset.h"
#include "dat/options.h"
#include "dat/page.h"
#include "dat/writer.h"

#define MAKER_BUFFERS  4
#define MAKER_CPUS_MAX 2048
#define MAKER_VCPUS    8

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

/* ---- pages ------------------------------------------------------------------------ */

struct maker_buffer {
	char name[64];
	int fd[MAKER_CPUS];
	struct page_writer w[MAKER_CPUS];
	struct dat_cpu cpus[MAKER_CPUS_MAX];
};

struct maker {
	struct maker_buffer buffers[MAKER_BUFFERS];
	struct dat_buffer dat[MAKER_BUFFERS];
	size_t n;
	struct dat_options options;
	struct buf cmdlines;
};

static struct maker maker;

static inline int maker_to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(*(int *)ctx, page, size);
}

static inline struct maker_buffer *maker_add(const char *name)
{
	struct maker_buffer *b = &maker.buffers[maker.n++];

	if (maker.n > MAKER_BUFFERS)
		die("too many buffers");
	snprintf(b->name, sizeof(b->name), "%s", name);
	for (int i = 0; i < MAKER_CPUS; i++) {
		b->fd[i] = memfd_create("pages", MFD_CLOEXEC);
		must(b->fd[i] < 0 ? -errno : page_writer_init(&b->w[i], 4096, maker_to_fd, &b->fd[i]));
	}
	return b;
}

/* The buffers, of n_cpus CPUs each (those that have no records are empty), options and tasks into f. */
static inline void maker_end(struct dat_file *f, const char *clock, uint32_t n_cpus)
{
	for (size_t i = 0; i < maker.n; i++) {
		struct maker_buffer *b = &maker.buffers[i];

		for (uint32_t c = 0; c < MAKER_CPUS; c++) {
			must(page_flush(&b->w[c], true));
			b->cpus[c] = (struct dat_cpu){ .fd = b->fd[c],
						       .size = (uint64_t)lseek(b->fd[c], 0, SEEK_END) };
		}
		for (uint32_t c = MAKER_CPUS; c < n_cpus; c++)
			b->cpus[c].fd = -1;
		maker.dat[i] = (struct dat_buffer){
			.name = b->name, .clock = clock, .page_size = 4096, .n_cpus = n_cpus, .cpus = b->cpus
		};
	}
	f->buffers = maker.dat;
	f->n_buffers = maker.n;
	f->options = maker.options.v;
	f->n_options = maker.options.n;
	if (maker.cmdlines.len)
		f->cmdlines = (struct dat_text){ buf_str(&maker.cmdlines), maker.cmdlines.len };
}

static inline void maker_write(const struct dat_file *f, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd < 0 ? -errno : dat_write(f, fd, NULL));
}

/* ---- texts -------------------------------------------------------------------------- */

static inline struct dat_text maker_text(struct buf b)
{
	return (struct dat_text){ buf_str(&b), b.len };
}

static inline struct dat_text maker_file_text(const char *path)
{
	struct buf b = { 0 };

	must(read_file(path, 1 << 20, &b));
	return maker_text(b);
}

/* A file of version 7 with the headers of pages and events, and nothing else. */
static inline struct dat_file maker_file(void)
{
	return (struct dat_file){ .version = 7,
				  .page_size = 4096,
				  .header_page = maker_file_text("tests/data/formats/header_page"),
				  .header_event = maker_file_text("tests/data/formats/header_event") };
}

/* A format as far as the common fields. */
static inline void maker_format_begin(struct buf *b, const char *name, size_t id)
{
	buf_printf(b,
		   "name: %s\nID: %zu\nformat:\n"
		   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		   "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		   "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		   name, id);
}

/* ---- lines of a script ----------------------------------------------------------------- */

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

/* The rest of a line that begins with the word, or NULL. */
static inline char *after(char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && line[n] == ' ' ? line + n + 1 : NULL;
}

/* "NAME HEX [CPU:PID]...": a GUEST of that TRACEID */
static inline void put_guest(const char *line)
{
	struct offset_vcpu vcpus[MAKER_VCPUS];
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
	     g.n < MAKER_VCPUS && sscanf(line, " %u:%u%n", &vcpus[g.n].cpu, &vcpus[g.n].pid, &used) == 2;
	     line += used)
		g.n++;
	offset_guest_encode(&g, &b);
	must(dat_options_add(&maker.options, DAT_GUEST, b.data, b.len));
	buf_release(&b);
}

/*
 * "HEX [NS [BOUND]]": TIME_SHIFT against the file of that TRACEID, with its bound, ns. knots: 1, or 2,
 * between which all times lie.
 */
static inline void put_shift(const char *line, size_t knots)
{
	struct offset_shift s = { 0 };
	struct offset_knot k[2] = { { .scaling = 1 }, { .scaling = 1, .time = 1ull << 60 } };
	uint64_t bounds[2];
	struct buf b = { 0 };
	unsigned long long peer, bound;
	long long ns = 0;
	int n = sscanf(line, "%llx %lld %llu", &peer, &ns, &bound);

	if (n < 1)
		die(line);
	k[0].offset = k[1].offset = ns;
	must(offset_shift_fill(&s, peer, MAKER_CPUS, k, knots));
	bounds[0] = bounds[1] = n == 3 ? bound : 0;
	if (n == 3)
		must(offset_shift_set_bounds(&s, bounds, knots, "test", "hard"));
	offset_shift_encode(&s, &b);
	must(dat_options_add(&maker.options, DAT_TIME_SHIFT, b.data, b.len));
	offset_shift_release(&s);
	buf_release(&b);
}

/* What all scripts have: id, guest, task (its name with \xNN), lost. False: none of these. */
static inline bool maker_line(struct maker_buffer *b, char *line)
{
	unsigned int cpu, n;
	char *rest;

	if ((rest = after(line, "id"))) {
		must(dat_options_add_traceid(&maker.options, strtoull(rest, NULL, 16)));
	} else if ((rest = after(line, "guest"))) {
		put_guest(rest);
	} else if ((rest = after(line, "task"))) {
		unescape(rest);
		buf_printf(&maker.cmdlines, "%s\n", rest);
	} else if ((rest = after(line, "lost")) && sscanf(rest, "%u %u", &cpu, &n) == 2 && cpu < MAKER_CPUS) {
		must(page_write_lost(&b->w[cpu], n));
	} else {
		return false;
	}
	return true;
}

#endif
