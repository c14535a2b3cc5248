// SPDX-License-Identifier: GPL-2.0-only
/* A guest's memory of any content, set up while it is looked at and then changed: its rings as the host reads
 * them. */
#include "record/marks/ring.h"
#include "base/clock.h"
#include "base/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t counted;

static int take(void *ctx, struct ring_block *b, const struct ring_event *v)
{
	if (b->from > b->seen || (b->events && b->events != b->count))
		abort();
	for (uint32_t i = 0; i < b->events; i++)
		counted += v[i].time + v[i].arg[RING_ARGS - 1];
	return 0;
}

/* The first half is what there is at first, the second half what comes then. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct ring *r = NULL;
	size_t half = size / 2;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || pwrite_all(fd, data, half, 0) || ring_open(&r, path))
		abort();
	ring_look(r, boot_ns(), false, take, NULL);
	if (pwrite_all(fd, data + half, size - half, 0))
		abort();
	ring_look(r, boot_ns(), false, take, NULL);
	ring_look(r, boot_ns(), true, take, NULL);
	ring_close(r);
	close(fd);
	return 0;
}
