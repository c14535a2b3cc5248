/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEST_SYNC_OPENED_H
#define HYPTRACE_TEST_SYNC_OPENED_H

/* A trace.dat as one side of a synchronisation. Include cmocka.h first. */
#include <fcntl.h>
#include <unistd.h>

#include "file/dat/reader.h"
#include "sync/evidence.h"

struct opened {
	int fd;
	struct reader *reader;
	struct sync_source source;
};

static inline void open_one(struct opened *o, const char *path)
{
	o->fd = open(path, O_RDONLY);
	assert_true(o->fd >= 0);
	assert_int_equal(reader_open(&o->reader, o->fd, NULL), 0);
	assert_int_equal(sync_source_reader(&o->source, o->reader), 0);
}

static inline void close_one(struct opened *o)
{
	sync_source_release(&o->source);
	reader_close(o->reader);
	close(o->fd);
}

#endif
