/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ROTATE_PRIV_H
#define HYPTRACE_ROTATE_PRIV_H

#include "record/spool/spool.h"
#include "record/session/session-priv.h"
#include "base/array.h"
#include "base/workers.h"

/* Shared by the files of long recordings. */

/* One CPU of one buffer. */
struct rotate_stream {
	struct spool *spool;
	size_t buffer;
	unsigned int cpu;
	uint32_t page_size;
	const struct drain_stats *stats;
};

/* A spool: the host's is the first one, guests' follow. */
struct rotate_piece {
	struct spool *spool;
	size_t first, n; /* of the streams */
	size_t guest;	 /* its number; of the host's: not used */
};

struct rotate_mark {
	double time; /* session_now() */
	uint64_t *at;
};

struct rotate {
	struct session *s;
	struct rotate_piece *pieces;
	size_t n_pieces;
	struct rotate_stream *streams;
	size_t n_streams;
	/* bytes of each stream: where what counts begins; where the file being written ends; scratch */
	uint64_t *from, *to, *now;
	struct spool_range *ranges; /* scratch, as many as streams */
	struct rotate_mark *marks;  /* --flight: where the streams were, the oldest first */
	size_t n_marks;
	uint64_t number; /* of the next file; 0: there is only one */
	double began, cut_at;
	uint64_t lost; /* up to the last cut */
	struct workers *writer;
	bool writing, symbols, asked;
	atomic_bool written, ending;
	int error; /* of the writer */

	struct record_plan dump_plan; /* one buffer, of --dump-on */
	struct instance *dump_on;     /* NULL: none */
	int dump_on_fd;
};

/* All pieces with their streams, and the writer. 0 or -errno, which is logged. */
int rotate_open(struct rotate *r);
/* Present end of each stream, in whole pages. */
void rotate_positions(const struct rotate *r, uint64_t *out);
/* Notes in that spool (its own, or a part) that a piece's pages count from r->from to `to` (NULL: open). */
int rotate_set_ranges(struct rotate *r, const struct rotate_piece *p, struct spool *spool,
		      const uint64_t *to);
/* The log of the host's clocks (0) or of a guest's (1 ...), which grows; NULL: no log. */
struct counter_log *rotate_log(const struct rotate *r, size_t i);
/* Whether a dump is asked for, by signal or event. */
bool rotate_is_asked(struct rotate *r);

#endif
