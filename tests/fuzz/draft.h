/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_FUZZ_DRAFT_H
#define TESTS_FUZZ_DRAFT_H

/*
 * Files made by a recipe: FILE0 and FILE1, trace.dats, and TEXT. A recipe that begins as a
 * trace.dat is one. Steps:
 *
 *   v N     the file's version, 6 or 7
 *   h n k p the texts header_page, cmdlines, kallsyms, printk_formats
 *   f       an event's format, in the system of the last s
 *   s       ... whose name this is
 *   o ID    an option
 *   b N     a buffer of this name; N: its clock
 *   g CPU   a page as it is
 *   e NS    a record, NS after the one before it, in the last page
 *   x AT    bytes over what was written
 *   w       the next file: a guest's
 *   t       the text of trace_pipe that import reads
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "recipe.h"

#include "file/dat/options.h"
#include "file/dat/page.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/files.h"
#include "base/strings.h"

#define DRAFT_FILES	2
#define PAGE	4096u
#define TEXTS	64
#define BUFFERS 4
#define CPUS	3

static const char *const clocks[] = { "boot", "local", "x86-tsc", "mono", "counter", "[", "" };

/* A trace.dat in the making: what dat_write takes, and where its pages are gathered. */
struct draft {
	struct dat_file f;
	struct dat_text texts[TEXTS];
	struct dat_system systems[TEXTS];
	char *names[TEXTS + BUFFERS];
	size_t n_names;
	struct dat_buffer buffers[BUFFERS];
	struct dat_cpu cpus[BUFFERS][CPUS];
	struct dat_options options;
	struct buf patches; /* of struct recipe_step */
	uint8_t page[PAGE];
	size_t used; /* of page, 0: it is not begun */
	uint64_t ts;
};

static inline const char *keep_name(struct draft *d, const struct recipe_step *s)
{
	char *name = strndup((const char *)s->data, s->len);

	if (!name)
		abort();
	if (d->n_names == ARRAY_SIZE(d->names)) {
		free(name);
		return "full";
	}
	return d->names[d->n_names++] = name;
}

static inline struct dat_text as_text(const struct recipe_step *s)
{
	return (struct dat_text){ (const char *)s->data, s->len };
}

static inline struct dat_cpu *draft_cpu(struct draft *d, uint64_t cpu)
{
	return &d->cpus[d->f.n_buffers - 1][cpu % CPUS];
}

static inline void put_page(struct draft *d, uint64_t cpu, const void *page)
{
	struct dat_cpu *c = draft_cpu(d, cpu);

	if (c->fd < 0)
		c->fd = memfd_create("pages", MFD_CLOEXEC);
	if (c->fd < 0 || write_all(c->fd, page, PAGE))
		abort();
	c->size += PAGE;
}

static inline void page_end(struct draft *d)
{
	uint64_t commit = d->used - 16;

	if (!d->used)
		return;
	memcpy(d->page + 8, &commit, 8);
	put_page(d, 0, d->page);
	memset(d->page, 0, PAGE);
	d->used = 0;
}

/* include/linux/ring_buffer.h: the length in words and the time since the record before. */
static inline void add_record(struct draft *d, const struct recipe_step *s)
{
	size_t len = s->len > 28 * 4 ? 28 * 4 : s->len;
	uint32_t words = (uint32_t)(len + 3) / 4, head = words | (uint32_t)s->arg << 5;

	if (d->used + 4 + words * 4 > PAGE)
		page_end(d);
	d->ts += s->arg & 0x7ffffff;
	if (!d->used) {
		memcpy(d->page, &d->ts, 8);
		d->used = 16;
		head = words;
	}
	memcpy(d->page + d->used, &head, 4);
	memcpy(d->page + d->used + 4, s->data, len);
	d->used += 4 + words * 4;
}

static inline void add_page(struct draft *d, const struct recipe_step *s)
{
	uint8_t page[PAGE] = { 0 };

	page_end(d);
	memcpy(page, s->data, s->len < PAGE ? s->len : PAGE);
	put_page(d, s->arg, page);
}

static inline void add_buffer(struct draft *d, const char *name, uint64_t clock)
{
	struct dat_buffer *b = &d->buffers[d->f.n_buffers];

	if (d->f.n_buffers == BUFFERS)
		return;
	page_end(d);
	for (size_t i = 0; i < CPUS; i++)
		d->cpus[d->f.n_buffers][i].fd = -1;
	*b = (struct dat_buffer){ .name = name,
				  .clock = clocks[clock % ARRAY_SIZE(clocks)],
				  .page_size = PAGE,
				  .n_cpus = CPUS,
				  .cpus = d->cpus[d->f.n_buffers] };
	d->f.n_buffers++;
}

static inline void add_format(struct draft *d, const struct recipe_step *s)
{
	struct dat_system *system = &d->systems[d->f.n_systems];
	size_t used = 0;

	for (size_t i = 0; i <= d->f.n_systems && i < TEXTS; i++)
		used += d->systems[i].n;
	if (used == TEXTS || d->f.n_systems == TEXTS)
		return;
	if (!system->name)
		system->name = "sys";
	if (!system->formats)
		system->formats = d->texts + used;
	d->texts[used] = as_text(s);
	system->n++;
}

static inline void begin_system(struct draft *d, const struct recipe_step *s)
{
	if (d->f.n_systems + 1 >= TEXTS)
		return;
	if (d->systems[d->f.n_systems].n)
		d->f.n_systems++;
	d->systems[d->f.n_systems].name = keep_name(d, s);
}

static inline void draft_step(struct draft *d, const struct recipe_step *s)
{
	switch (s->key) {
	case 'v':
		d->f.version = s->arg & 1 ? 7 : 6;
		break;
	case 'h':
		d->f.header_page = as_text(s);
		break;
	case 'n':
		d->f.cmdlines = as_text(s);
		break;
	case 'k':
		d->f.kallsyms = as_text(s);
		break;
	case 'p':
		d->f.printk = as_text(s);
		break;
	case 's':
		begin_system(d, s);
		break;
	case 'f':
		add_format(d, s);
		break;
	case 'o':
		dat_options_add(&d->options, (uint16_t)s->arg, s->data, s->len);
		break;
	case 'b':
		add_buffer(d, keep_name(d, s), s->arg);
		break;
	case 'g':
		add_page(d, s);
		break;
	case 'e':
		add_record(d, s);
		break;
	case 'x':
		buf_add(&d->patches, s, sizeof(*s));
		break;
	}
}

static struct buf usual_header;

static inline void draft_init(struct draft *d)
{
	memset(d, 0, sizeof(*d));
	if (!usual_header.len && read_file("tests/data/formats/header_page", 1 << 20, &usual_header))
		abort();
	d->f.version = 7;
	d->f.page_size = PAGE;
	d->f.header_page = (struct dat_text){ buf_str(&usual_header), usual_header.len };
	d->f.header_event = (struct dat_text){ "none", 4 };
	d->f.systems = d->systems;
	d->f.buffers = d->buffers;
	d->ts = 1000000;
	add_buffer(d, "", 0);
}

static inline void draft_patch(const struct draft *d, int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	for (size_t i = 0; i + sizeof(struct recipe_step) <= d->patches.len; i += sizeof(struct recipe_step)) {
		struct recipe_step s;

		memcpy(&s, d->patches.data + i, sizeof(s));
		if (end > 0 && pwrite(fd, s.data, s.len, (off_t)(s.arg % (uint64_t)end)) < 0)
			abort();
	}
}

/* What the writer refuses is an empty file. */
static inline void draft_write(struct draft *d, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	page_end(d);
	d->f.n_systems += d->systems[d->f.n_systems].n > 0;
	d->f.options = d->options.v;
	d->f.n_options = d->options.n;
	if (fd < 0)
		abort();
	if (!dat_write(&d->f, fd, NULL))
		draft_patch(d, fd);
	close(fd);
}

static inline void draft_release(struct draft *d)
{
	for (size_t b = 0; b < d->f.n_buffers; b++)
		for (size_t c = 0; c < CPUS; c++)
			if (d->cpus[b][c].fd >= 0)
				close(d->cpus[b][c].fd);
	for (size_t i = 0; i < d->n_names; i++)
		free(d->names[i]);
	dat_options_release(&d->options);
	buf_release(&d->patches);
}

static inline void put_file(const char *name, const void *data, size_t len)
{
	char *path = str_printf("%s/%s", scratch_dir(), name);
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd < 0 || write_all(fd, data, len))
		abort();
	close(fd);
	free(path);
}

static inline void bake(const uint8_t *data, size_t size)
{
	static struct draft drafts[DRAFT_FILES];
	size_t n = 0;
	struct recipe_step s;

	for (size_t i = 0; i < DRAFT_FILES; i++)
		draft_init(&drafts[i]);
	put_file("TEXT", "", 0);
	while (recipe_next(&data, &size, &s)) {
		if (s.key == 'w')
			n = (n + 1) % DRAFT_FILES;
		else if (s.key == 't')
			put_file("TEXT", s.data, s.len);
		else
			draft_step(&drafts[n], &s);
	}
	for (size_t i = 0; i < DRAFT_FILES; i++) {
		char *path = str_printf("%s/FILE%zu", scratch_dir(), i);

		if (!path)
			abort();
		draft_write(&drafts[i], path);
		draft_release(&drafts[i]);
		free(path);
	}
}

/* All of them, in scratch_dir(). */
static inline void put_files(const uint8_t *data, size_t size)
{
	static const char magic[] = "\x17\x08\x44tracing";

	if (size >= sizeof(magic) - 1 && !memcmp(data, magic, sizeof(magic) - 1)) {
		put_file("FILE0", data, size);
		put_file("FILE1", data, size);
		put_file("TEXT", "", 0);
	} else {
		bake(data, size);
	}
}

#endif
