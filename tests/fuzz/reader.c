// SPDX-License-Identifier: LGPL-2.1-or-later
/* A trace.dat made of anything: opened, all its pages read, and all records by time; and as its option of
 * pauses. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file/dat/options.h"
#include "read/merge.h"
#include "base/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_pages(const struct reader *r, size_t buffer, size_t cpu)
{
	struct reader_pages *p;
	const uint8_t *page;

	if (reader_pages_open(&p, r, buffer, cpu))
		return;
	while (reader_pages_next(p, &page) == 1)
		;
	reader_pages_close(p);
}

static bool few_cpus(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	return cpu < 64;
}

/* Each record's bytes can be copied, and the one behind it can be asked for. */
static void merge_records(const struct reader *r)
{
	struct merge_input in[2] = { { .name = "a", .reader = r }, { .name = "b", .reader = r } };
	struct merge_run run = { 0 };
	struct merge_record next;
	struct buf copy = { 0 };
	struct merge *m;

	if (!filetime_read(&in[0].time, r, 0, NULL) && !merge_open(&m, in, 2, few_cpus, NULL, NULL)) {
		while (merge_take(m, &run) == 1) {
			copy.len = 0;
			for (size_t i = 0; i < run.n; i++)
				buf_add(&copy, run.v[i].data, run.v[i].len);
			if (merge_ahead(m, 0, 0, &next))
				buf_add(&copy, next.data, next.len);
		}
		merge_close(m);
		merge_run_release(&run);
	}
	filetime_release(&in[0].time);
	buf_release(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct pauses pauses;
	struct wall wall;
	struct reader *r;
	uint64_t bound;

	pauses_decode(data, size, &pauses);
	for (size_t i = 0; i < pauses.n; i++)
		if (pauses.v[i].from > pauses.v[i].to || (i && pauses.v[i].from < pauses.v[i - 1].to))
			abort();
	pauses_release(&pauses);
	if (!wall_decode(data, size, &wall))
		for (size_t i = 0; i < size; i++)
			wall_at(&wall, wall.v[0].trace + ((uint64_t)data[i] << data[i] % 56), &bound);
	if (fd < 0)
		return 0;
	if (!write_all(fd, data, size) && !reader_open(&r, fd, NULL)) {
		const struct reader_info *i = reader_info(r);
		struct dat_text symbols;
		struct buf copy = { 0 };

		if (!reader_symbols(i, &symbols))
			buf_add(&copy, symbols.data, symbols.len);
		buf_release(&copy);
		for (size_t b = 0; b < i->n_buffers; b++)
			for (size_t c = 0; c < i->buffers[b].n_cpus && c < 64; c++)
				read_pages(r, b, c);
		merge_records(r);
		reader_close(r);
	}
	close(fd);
	return 0;
}
