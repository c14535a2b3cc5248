// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes large trace.dat files of small ones, by repetition: the pages of each CPU again and
 * again, their times moved on by the length of all files together. Everything else is as it was.
 * Files that belong together (a host's and its guests') are to be grown together.
 * usage: grow [-c none|zstd] [-v 6|7] EVENTS IN OUT [IN OUT]...
 * EVENTS: at least so many in the OUTs together. Prints how many there are, and of how many times.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../integration/dat-texts.h"
#include "file/dat/page.h"
#include "read/filetime.h"

#define FILES 16

/* A buffer's pages as they were, and which of a CPU's comes next. */
struct seed {
	const struct page_layout *layout;
	struct seed_cpu {
		struct buf pages;
		size_t at;
		uint64_t moved;
	} * cpus;
	uint64_t step; /* of time as it stands in pages, by repetition */
};

struct grown {
	const char *in, *out;
	struct reader *reader;
	struct filetime time;
	struct dat_file file;
	struct seed *seeds;	      /* by buffer */
	uint64_t events, first, last; /* times corrected */
};

static void __attribute__((noreturn, format(printf, 2, 3))) die(int error, const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	fputs("grow: ", stderr);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fprintf(stderr, "%s%s\n", error ? ": " : "", error ? strerror(-error) : "");
	exit(1);
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	if (!p)
		die(-ENOMEM, "too large");
	return p;
}

/* ---- moving a page in time ---------------------------------------------------------- */

/* Kernel kernel/trace/ring_buffer.c: the type in the low five bits, a delta of 27 above. */
enum { TYPE_DATA = 0, TYPE_PADDING = 29, TYPE_EXTEND = 30, TYPE_STAMP = 31 };
#define TS_SHIFT 27

/* Absolute times inside the page, whose records have all been read once. */
static void move_stamps(uint8_t *p, const uint8_t *end, uint64_t by)
{
	while (p + 8 <= end) {
		uint32_t head[2];
		unsigned int type;
		uint64_t stamp;

		memcpy(head, p, sizeof(head));
		type = head[0] & 31;
		if (type == TYPE_PADDING && !(head[0] >> 5))
			return;
		if (type == TYPE_STAMP) {
			stamp = ((uint64_t)head[1] << TS_SHIFT | head[0] >> 5) + by;
			head[0] = (uint32_t)stamp << 5 | TYPE_STAMP;
			head[1] = (uint32_t)(stamp >> TS_SHIFT);
			memcpy(p, head, sizeof(head));
		}
		if (type == TYPE_STAMP || type == TYPE_EXTEND)
			p += 8;
		else
			p += 4 + (type == TYPE_PADDING || type == TYPE_DATA ? head[1] : type * 4);
	}
}

static int next_page(void *ctx, unsigned int number, void *page, size_t size)
{
	struct seed *s = ctx;
	struct seed_cpu *cpu = &s->cpus[number];
	struct page_reader r;
	uint64_t ts;

	memcpy(page, cpu->pages.data + cpu->at, size);
	memcpy(&ts, page, sizeof(ts));
	ts += cpu->moved;
	memcpy(page, &ts, sizeof(ts));
	if (cpu->moved && !page_reader_init(&r, s->layout, page, size))
		move_stamps((uint8_t *)page + s->layout->data_offset, r.end, cpu->moved);
	cpu->at += size;
	if (cpu->at == cpu->pages.len) {
		cpu->at = 0;
		cpu->moved += s->step;
	}
	return 0;
}

/* ---- reading ---------------------------------------------------------------------------- */

static void count_page(struct grown *g, unsigned int cpu, const uint8_t *page, size_t size)
{
	struct page_event ev;
	struct page_reader r;
	int ret = page_reader_init(&r, &reader_info(g->reader)->layout, page, size);

	while (!ret && (ret = page_next(&r, &ev)) == 1) {
		uint64_t ts = filetime_apply(&g->time, cpu, ev.ts);

		g->first = ts < g->first ? ts : g->first;
		g->last = ts > g->last ? ts : g->last;
		g->events++;
		ret = 0;
	}
	if (ret < 0)
		die(ret, "%s", g->in);
}

static void read_cpu(struct grown *g, size_t buffer, size_t i, struct seed_cpu *cpu)
{
	const struct reader_buffer *b = &reader_info(g->reader)->buffers[buffer];
	struct reader_pages *pages;
	const uint8_t *page;
	int ret = reader_pages_open(&pages, g->reader, buffer, i);

	if (ret)
		die(ret, "%s", g->in);
	while ((ret = reader_pages_next(pages, &page)) == 1) {
		count_page(g, b->cpus[i].cpu, page, b->page_size);
		buf_add(&cpu->pages, page, b->page_size);
	}
	if (ret || cpu->pages.bad)
		die(ret ? ret : -ENOMEM, "%s", g->in);
	reader_pages_close(pages);
}

static void read_buffer(struct grown *g, size_t i)
{
	const struct reader_buffer *b = &reader_info(g->reader)->buffers[i];
	struct dat_buffer *out = &g->file.buffers[i];
	struct seed *s = &g->seeds[i];

	*out = (struct dat_buffer){ .name = b->name,
				    .clock = b->clock,
				    .page_size = b->page_size,
				    .fix_page = next_page,
				    .fix_ctx = s };
	for (size_t k = 0; k < b->n_cpus; k++)
		out->n_cpus = b->cpus[k].cpu >= out->n_cpus ? b->cpus[k].cpu + 1 : out->n_cpus;
	out->cpus = zeroed(out->n_cpus, sizeof(*out->cpus));
	*s = (struct seed){ .layout = &reader_info(g->reader)->layout,
			    .cpus = zeroed(out->n_cpus, sizeof(*s->cpus)) };
	for (size_t k = 0; k < b->n_cpus; k++)
		read_cpu(g, i, k, &s->cpus[b->cpus[k].cpu]);
}

static void read_capture(struct grown *g)
{
	int fd = open(g->in, O_RDONLY | O_CLOEXEC);
	int ret = fd < 0 ? -errno : reader_open(&g->reader, fd, NULL);

	if (!ret)
		ret = filetime_read(&g->time, g->reader, 0, NULL);
	if (!ret)
		ret = dat_texts(&g->file, reader_info(g->reader));
	if (ret)
		die(ret, "%s", g->in);
	g->first = UINT64_MAX;
	g->file.n_buffers = reader_info(g->reader)->n_buffers;
	g->file.buffers = zeroed(g->file.n_buffers, sizeof(*g->file.buffers));
	g->seeds = zeroed(g->file.n_buffers, sizeof(*g->seeds));
	for (size_t i = 0; i < g->file.n_buffers; i++)
		read_buffer(g, i);
}

/* ---- writing ---------------------------------------------------------------------------- */

/* Nanoseconds in the file's own ticks, rounded up. */
static uint64_t own_ticks(const struct filetime *t, uint64_t ns)
{
	return t->mult ? (uint64_t)(((unsigned __int128)ns << t->tsc_shift) / t->mult) + 1 : ns;
}

/* The writer reads zeros out of a hole, in whose place come the pages. */
static void write_grown(struct grown *g, uint64_t times, uint64_t length)
{
	int hole = memfd_create("hole", MFD_CLOEXEC), fd, ret;
	uint64_t most = 0;

	for (size_t i = 0; i < g->file.n_buffers; i++) {
		struct dat_buffer *b = &g->file.buffers[i];

		g->seeds[i].step = own_ticks(&g->time, length);
		for (uint32_t k = 0; k < b->n_cpus; k++) {
			uint64_t size = g->seeds[i].cpus[k].pages.len * times;

			b->cpus[k] = (struct dat_cpu){ .fd = hole, .size = size };
			most = size > most ? size : most;
		}
	}
	fd = open(g->out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (hole < 0 || fd < 0 || ftruncate(hole, (off_t)most) < 0)
		die(-errno, "%s", g->out);
	ret = dat_write(&g->file, fd, NULL);
	if (ret || close(fd) < 0)
		die(ret ? ret : -errno, "%s", g->out);
	close(hole);
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: grow [-c none|zstd] [-v 6|7] EVENTS IN OUT [IN OUT]...\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static struct grown v[FILES];
	const char *compression = NULL;
	uint64_t events = 0, first = UINT64_MAX, last = 0, times;
	int version = 0, n = 0, o;

	while ((o = getopt(argc, argv, "c:v:")) != -1) {
		if (o == 'c')
			compression = optarg;
		else if (o == 'v')
			version = atoi(optarg);
		else
			usage();
	}
	if (argc - optind < 3 || (argc - optind) % 2 == 0 || argc - optind > 2 * FILES)
		usage();
	for (int i = optind + 1; i < argc; i += 2, n++) {
		v[n] = (struct grown){ .in = argv[i], .out = argv[i + 1] };
		read_capture(&v[n]);
		v[n].file.compression = compression ? compression : v[n].file.compression;
		v[n].file.version = version ? version : v[n].file.version;
		events += v[n].events;
		first = v[n].first < first ? v[n].first : first;
		last = v[n].last > last ? v[n].last : last;
	}
	if (!events)
		die(0, "no events");
	times = (strtoull(argv[optind], NULL, 10) + events - 1) / events;
	for (int i = 0; i < n; i++)
		write_grown(&v[i], times, last - first + 1);
	printf("%llu events, %llu times %llu\n", (unsigned long long)(events * times),
	       (unsigned long long)times, (unsigned long long)events);
	return 0;
}
