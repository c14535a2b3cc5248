// SPDX-License-Identifier: LGPL-2.1-or-later
/* A trace.dat made of anything: opened, and all its pages read. */
#include <sys/mman.h>
#include <unistd.h>

#include "reader.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct reader *r;

	if (fd < 0)
		return 0;
	if (!write_all(fd, data, size) && !reader_open(&r, fd, NULL)) {
		const struct reader_info *i = reader_info(r);

		for (size_t b = 0; b < i->n_buffers; b++)
			for (size_t c = 0; c < i->buffers[b].n_cpus && c < 64; c++)
				read_pages(r, b, c);
		reader_close(r);
	}
	close(fd);
	return 0;
}
