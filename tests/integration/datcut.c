// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cuts a piece out of a trace.dat, for test data: the records of [FROM, TO)
 * seconds in all buffers (as report shows them, of a guest in the host's time),
 * the symbols of functions in it that are named, and everything else.
 * usage: datcut [-s] IN OUT FROM TO [SYMBOL...]
 * -s: without offsets and vCPU threads, as stock leaves a file whose guest's clock it did not synchronise.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/merge.h"
#include "dat-texts.h"
#include "file/dat/offset.h"
#include "file/dat/options.h"
#include "base/array.h"
#include "base/cursor.h"
#include "base/files.h"

struct piece {
	const struct reader_info *info;
	struct dat_file file;
	struct page_writer *writers[2]; /* of the buffers' CPUs; two buffers are enough */
	struct buf symbols;
};

static void die(const char *what)
{
	fprintf(stderr, "datcut: %s\n", what);
	exit(1);
}

static int to_fd(void *ctx, const void *page, size_t size)
{
	struct dat_cpu *cpu = ctx;

	cpu->size += size;
	return write_all(cpu->fd, page, size);
}

static void copy_buffers(struct piece *p)
{
	struct dat_buffer *v = calloc(p->info->n_buffers, sizeof(*v));

	if (!v || p->info->n_buffers > ARRAY_SIZE(p->writers))
		die("too many buffers");
	for (size_t b = 0; b < p->info->n_buffers; b++) {
		const struct reader_buffer *from = &p->info->buffers[b];

		v[b] = (struct dat_buffer){ .name = from->name,
					    .clock = from->clock,
					    .page_size = from->page_size,
					    .n_cpus = (uint32_t)from->n_cpus,
					    .cpus = calloc(from->n_cpus, sizeof(*v[b].cpus)) };
		p->writers[b] = calloc(from->n_cpus, sizeof(struct page_writer));
		if (!v[b].cpus || !p->writers[b])
			die("out of memory");
		for (size_t i = 0; i < from->n_cpus; i++) {
			v[b].cpus[i].fd = memfd_create("cpu", MFD_CLOEXEC);
			if (page_writer_init(&p->writers[b][i], from->page_size, to_fd, &v[b].cpus[i]))
				die("cannot write pages");
		}
	}
	p->file.buffers = v;
	p->file.n_buffers = p->info->n_buffers;
}

/* Leaves out TIME_SHIFT, and the threads of GUEST. */
static void drop_sync(struct piece *p)
{
	struct dat_options kept = { 0 };

	for (size_t i = 0; i < p->file.n_options; i++) {
		const struct dat_option *o = &p->file.options[i];
		struct offset_guest guest;
		struct buf bytes = { 0 };

		if (o->id == DAT_TIME_SHIFT)
			continue;
		if (o->id != DAT_GUEST || offset_guest_decode(o->data, o->len, &guest)) {
			dat_options_add(&kept, o->id, o->data, o->len);
			continue;
		}
		for (uint32_t k = 0; k < guest.n; k++)
			guest.vcpus[k].pid = 0;
		offset_guest_encode(&guest, &bytes);
		dat_options_add(&kept, o->id, bytes.data, bytes.len);
	}
	p->file.options = kept.v;
	p->file.n_options = kept.n;
}

/* "ffff8000800360b0 t kvm_vm_ioctl", of those that are named */
static void copy_symbols(struct piece *p, char **names)
{
	struct dat_text all;
	int ret = reader_symbols(p->info, &all);
	struct cursor c = cursor_at(all.data, all.len);
	const char *line;
	size_t len;

	if (ret)
		die("cannot read the symbols");
	while (cursor_line(&c, &line, &len)) {
		char *text = strndup(line, len), *name = text ? strrchr(text, ' ') : NULL;

		for (char **want = names; name && *want; want++)
			if (!strcmp(name + 1, *want))
				buf_printf(&p->symbols, "%s\n", text);
		free(text);
	}
	p->file.kallsyms = (struct dat_text){ (char *)p->symbols.data, p->symbols.len };
}

static void copy_records(struct piece *p, const struct merge_input *in, double from, double to)
{
	struct merge_run run = { 0 };
	struct merge *m;

	if (merge_open(&m, in, 1, NULL, NULL, NULL))
		die("cannot read");
	while (merge_take(m, &run) == 1)
		for (const struct merge_record *r = run.v; r < run.v + run.n; r++) {
			const struct merge_stream *at = merge_stream(m, r);
			double s = (double)r->ts / 1e9;

			if (r->data && s >= from && s < to &&
			    page_write(&p->writers[at->buffer][at->index], r->raw, r->data, r->len))
				die("cannot write a record");
		}
	merge_run_release(&run);
	if (merge_damaged(m))
		die("damaged");
	merge_close(m);
	for (size_t b = 0; b < p->info->n_buffers; b++)
		for (size_t i = 0; i < p->info->buffers[b].n_cpus; i++)
			if (page_flush(&p->writers[b][i], true))
				die("cannot write a page");
}

int main(int argc, char **argv)
{
	bool stock = argc > 1 && !strcmp(argv[1], "-s");
	struct merge_input in = { 0 };
	struct piece p = { 0 };
	struct reader *r;
	int fd;

	argc -= stock;
	argv += stock;
	if (argc < 5)
		die("usage: datcut [-s] IN OUT FROM TO [SYMBOL...]");
	in.name = argv[1];
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || reader_open(&r, fd, NULL) || filetime_read(&in.time, r, 0, NULL))
		die("cannot read");
	in.reader = r;
	p.info = reader_info(r);
	if (dat_texts(&p.file, p.info))
		die("out of memory");
	if (stock)
		drop_sync(&p);
	p.file.version = 7;
	p.file.compression = "zstd";
	copy_buffers(&p);
	copy_symbols(&p, argv + 5);
	copy_records(&p, &in, atof(argv[3]), atof(argv[4]));
	fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || dat_write(&p.file, fd, NULL))
		die("cannot write");
	return 0;
}
