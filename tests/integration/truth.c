// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares a guest's TIME_SHIFT with the truth (tests/lab/clockshots.c).
 *
 * usage: truth GUEST.dat HOST-SHOTS GUEST-SHOTS [HOST.dat [verbose]]
 * Prints one line, in ns:
 *	method M class C points N outside N between N median N worst N error A..B truth N room N vouched N%
 * outside: points where the truth, itself known to +- `truth`, is not within the
 * bound that the file states (worst: by how much); between: points at a jump that
 * no shot is near; error: of the points' offsets against the truth; vouched: events
 * of the guest that lie between two points with a bound (those without one claim
 * nothing, and are not judged).
 * room: what the windows of HOST.dat allow an offset to be off, to either side, before an
 * event of the guest is outside of all (in the worst stretch without a jump); 0: not asked.
 * Points of a file without bounds are all "outside", their errors are told.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/dat/offset.h"
#include "file/dat/reader.h"
#include "sync/evidence.h"

#define JUMP_NS 100000 /* two shots that differ by more have a jump between them */

struct shot {
	int64_t boot, value, slack;
};

struct shots {
	struct shot *v;
	size_t n;
};

static int read_shots(const char *path, const char *who, struct shots *out)
{
	FILE *f = fopen(path, "r");
	char line[256], word[16];
	struct shot s;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%15s %" SCNd64 " %" SCNd64 " %" SCNd64, word, &s.boot, &s.value,
			   &s.slack) != 4 ||
		    strcmp(word, who))
			continue;
		out->v = realloc(out->v, (out->n + 1) * sizeof(s));
		if (!out->v)
			abort();
		out->v[out->n++] = s;
	}
	fclose(f);
	return out->n ? 0 : -1;
}

static size_t last_before(const struct shots *s, int64_t boot)
{
	size_t i = 0;

	while (i + 1 < s->n && s->v[i + 1].boot <= boot)
		i++;
	return i;
}

/*
 * The guest's shots hold the host's CLOCK_REALTIME: its difference to
 * CLOCK_BOOTTIME is taken away, so that value = the true offset at boot.
 */
static int64_t to_offsets(struct shots *guest, const struct shots *host)
{
	int64_t slack = 0;

	for (size_t i = 0; i < guest->n; i++) {
		struct shot *g = &guest->v[i];
		const struct shot *h = &host->v[0];

		for (size_t k = 0; k < host->n; k++)
			if (llabs(host->v[k].boot - g->value) < llabs(h->boot - g->value))
				h = &host->v[k];
		g->slack += h->slack;
		g->value -= h->value + g->boot;
		slack = g->slack > slack ? g->slack : slack;
	}
	return slack;
}

struct sums {
	unsigned int outside, between;
	int64_t worst, low, high;
};

static void judge(struct sums *s, int64_t error, int64_t slack, uint64_t bound)
{
	int64_t over = llabs(error) - slack - (int64_t)bound;

	s->low = error < s->low ? error : s->low;
	s->high = error > s->high ? error : s->high;
	if (over <= 0)
		return;
	s->outside++;
	s->worst = over > s->worst ? over : s->worst;
}

static void check(const struct offset_shift *shift, const struct shots *truth, int verbose, struct sums *s)
{
	const struct offset_table *t = &shift->cpus[0];

	for (uint32_t k = 0; k < t->n; k++) {
		size_t i = last_before(truth, (int64_t)t->v[k].time), j = i + 1 < truth->n ? i + 1 : i;
		const struct shot *a = &truth->v[i], *b = &truth->v[j];
		int64_t a_err = t->v[k].offset - a->value, b_err = t->v[k].offset - b->value;
		int64_t err = llabs(a_err) < llabs(b_err) ? a_err : b_err;

		if (k < shift->n_bounds && shift->bounds[k] == UINT64_MAX)
			continue;
		if (verbose)
			printf("# %" PRIu64 " offset %" PRId64 " bound %" PRIu64 " error %" PRId64
			       " or %" PRId64 "\n",
			       t->v[k].time, t->v[k].offset, k < shift->n_bounds ? shift->bounds[k] : 0,
			       a_err, b_err);
		s->between += llabs(a->value - b->value) > JUMP_NS;
		judge(s, err, a->slack > b->slack ? a->slack : b->slack,
		      k < shift->n_bounds ? shift->bounds[k] : 0);
	}
}

/* Percent of the events. */
static double vouched(const struct offset_shift *shift, const struct sync_guest *g)
{
	const struct offset_table *t = &shift->cpus[0];
	uint64_t all = 0, good = 0;

	for (size_t c = 0; c < g->n_cpus; c++)
		for (size_t i = 0, k = 0; i < g->cpus[c].n; i++) {
			uint64_t at = g->cpus[c].times[i];

			while (k + 1 < t->n && t->v[k + 1].time <= at)
				k++;
			all++;
			good += t->v[k].time <= at && k + 1 < t->n && k + 1 < shift->n_bounds &&
				shift->bounds[k] != UINT64_MAX && shift->bounds[k + 1] != UINT64_MAX;
		}
	return all ? 100.0 * (double)good / (double)all : 0;
}

/* ---- what the windows allow -------------------------------------------------- */

#define ROOM_EVENTS 100 /* a stretch with fewer says little */

struct room {
	uint64_t low, high; /* to the beginning and the end of the innermost windows, at least */
	size_t n;
};

static void narrow(struct room *r, const struct sync_input *in, int32_t pid, uint64_t at)
{
	uint64_t low = UINT64_MAX, high = UINT64_MAX;

	for (size_t i = 0; i < in->n_windows; i++) {
		const struct sync_window *w = &in->windows[i];

		if (w->unknown || w->pid != pid || at < w->a || at > w->b)
			continue;
		low = at - w->a < low ? at - w->a : low;
		high = w->b - at < high ? w->b - at : high;
	}
	if (low == UINT64_MAX)
		return;
	r->low = low < r->low ? low : r->low;
	r->high = high < r->high ? high : r->high;
	r->n++;
}

/* Of the shots [from, to), between which nothing jumps; the offset is the best one's. */
static uint64_t stretch_room(const struct sync_input *in, const struct shot *from, const struct shot *to)
{
	struct room r = { UINT64_MAX, UINT64_MAX, 0 };
	const struct shot *best = from;

	for (const struct shot *s = from; s < to; s++)
		best = s->slack < best->slack ? s : best;
	for (size_t c = 0; c < in->n_cpus; c++)
		for (size_t i = 0; i < in->cpus[c].n; i++) {
			int64_t at = (int64_t)in->cpus[c].times[i];

			if (at >= from->boot && at <= to[-1].boot)
				narrow(&r, in, in->pids[c], (uint64_t)(at + best->value));
		}
	return r.n < ROOM_EVENTS ? 0 : (r.low + r.high) / 2;
}

static uint64_t widest_room(const struct sync_input *in, const struct shots *truth)
{
	uint64_t widest = 0, room;

	for (size_t from = 0, i = 1; i <= truth->n; i++) {
		if (i < truth->n && llabs(truth->v[i].value - truth->v[i - 1].value) <= JUMP_NS)
			continue;
		room = stretch_room(in, &truth->v[from], &truth->v[i]);
		widest = room > widest ? room : widest;
		from = i;
	}
	return widest;
}

/* The host's GUEST of that trace id. */
static bool find_guest(const struct reader *host, uint64_t trace_id, struct offset_guest *g)
{
	const struct reader_info *info = reader_info(host);

	for (size_t i = 0; i < info->n_options; i++) {
		const struct dat_text *d = &info->options[i].data;

		if (info->options[i].id != DAT_GUEST || offset_guest_decode(d->data, d->len, g))
			continue;
		if (g->trace_id == trace_id)
			return true;
		offset_guest_release(g);
	}
	return false;
}

static uint64_t room_in(const char *path, const struct reader *guest, const struct sync_guest *events,
			const struct shots *truth)
{
	const struct reader_option *id = reader_option(guest, DAT_TRACEID);
	struct sync_source source = { 0 };
	struct sync_host host = { 0 };
	struct offset_guest g = { 0 };
	struct sync_input in;
	struct reader *r = NULL;
	int32_t *pids = NULL;
	uint64_t trace_id = 0, room = 0;
	int fd = open(path, O_RDONLY);

	if (id && id->data.len >= sizeof(trace_id))
		memcpy(&trace_id, id->data.data, sizeof(trace_id));
	if (fd >= 0 && !reader_open(&r, fd, NULL) && find_guest(r, trace_id, &g) &&
	    !sync_source_reader(&source, r) && !sync_host_read(&host, &source, NULL)) {
		const struct sync_evidence e = { &host, events, g.vcpus, g.n };

		if (!sync_input_make(&in, &e, &pids))
			room = widest_room(&in, truth);
	}
	free(pids);
	sync_host_release(&host);
	sync_source_release(&source);
	offset_guest_release(&g);
	reader_close(r);
	if (fd >= 0)
		close(fd);
	return room;
}

static uint64_t median(const struct offset_shift *shift)
{
	uint32_t n = shift->n_bounds;

	while (n && shift->bounds[n - 1] == UINT64_MAX)
		n--;
	return n ? shift->bounds[n / 2] : 0;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
	struct sums s = { .low = INT64_MAX, .high = INT64_MIN };
	const struct reader_option *o = NULL;
	struct shots host = { 0 }, guest = { 0 };
	struct offset_shift shift = { 0 };
	struct sync_source source = { 0 };
	struct sync_guest events = { 0 };
	double part;
	struct reader *r = NULL;
	int fd, verbose = argc == 6;
	int64_t slack;

	if (argc < 4 || read_shots(argv[2], "host", &host) || read_shots(argv[3], "guest", &guest)) {
		fprintf(stderr, "no shots\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY);
	if (fd >= 0 && !reader_open(&r, fd, NULL))
		o = reader_option(r, DAT_TIME_SHIFT);
	if (!o || offset_shift_decode(o->data.data, o->data.len, &shift) || !shift.n_cpus ||
	    !shift.cpus[0].n) {
		fprintf(stderr, "%s: no TIME_SHIFT\n", argv[1]);
		return 1;
	}
	slack = to_offsets(&guest, &host);
	check(&shift, &guest, verbose, &s);
	if (sync_source_reader(&source, r) || sync_guest_read(&events, &source)) {
		fprintf(stderr, "%s: its events cannot be read\n", argv[1]);
		return 2;
	}
	part = vouched(&shift, &events);
	if (shift.n_bounds)
		qsort(shift.bounds, shift.n_bounds, sizeof(*shift.bounds), by_value);
	printf("method %s class %s knots %u outside %u between %u median %" PRIu64 " worst %" PRId64
	       " error %" PRId64 "..%" PRId64 " truth %" PRId64 " room %" PRIu64 " vouched %.0f%%\n",
	       *shift.method ? shift.method : "-", *shift.class ? shift.class : "-", shift.cpus[0].n,
	       s.outside, s.between, median(&shift), s.worst, s.low, s.high, slack,
	       argc > 4 ? room_in(argv[4], r, &events, &guest) : 0, part);
	sync_guest_release(&events);
	sync_source_release(&source);
	offset_shift_release(&shift);
	reader_close(r);
	close(fd);
	free(host.v);
	free(guest.v);
	return 0;
}
