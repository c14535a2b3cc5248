// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays the hypervisor of a FAKE Android device (fake-android.c):
 *
 *   feed-android DIR SCENARIO
 *
 * writes pages into the FIFOs, returns when all of them have been read, and
 * prints what `trace-cmd report -t` must show of them, in order of time:
 *
 *   [CPU] SEC.NSEC: EVENT: TEXT
 *   CPU:N [N EVENTS DROPPED]
 *
 * Pages are laid out here by hand, as arch/arm64/kvm/hyp/nvhe/trace.c does it;
 * the text comes straight from the values.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "fake-android.h"

#define PAGE_BYTES    4096 /* what a read of trace_pipe_raw gives, whatever header_page says */
#define HEADER_BYTES  16   /* u64 time stamp, local_t commit */
#define VALUES	      7
#define TIME_EXTEND   30
#define MISSED	      ((int64_t)INT32_MIN) /* RB_MISSED_EVENTS is a negative int in the kernel */
#define MISSED_STORED (1 << 30)
#define PATIENCE      20 /* s; then nobody reads any more */

struct cpu {
	int fd;
	uint8_t page[PAGE_BYTES];
	size_t used; /* bytes, 0: no page begun */
	uint64_t last;
	bool missed; /* of this page */
	bool inside; /* the last of its hyp_enter and hyp_exit was a hyp_enter */
	uint64_t missed_count;
};

struct expect {
	uint64_t ts;
	size_t nr; /* order among equal times */
	char text[256];
};

struct feed {
	const struct layout *l;
	const char *dir;		      /* of the tree */
	const struct event *events[N_EVENTS]; /* those of the layout */
	unsigned int n_events;
	struct cpu cpus[CPUS];
	struct expect *v;
	size_t n;
	uint64_t start; /* ns of the boot clock: a recorder may distrust other times */
	uint64_t seed;
};

/* ---- what must be seen --------------------------------------------------------------- */

static void expect(struct feed *f, uint64_t ts, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void expect(struct feed *f, uint64_t ts, const char *fmt, ...)
{
	struct expect *e;
	va_list ap;

	if (!(f->n & (f->n - 1))) /* full at every power of two */
		f->v = realloc(f->v, (f->n ? 2 * f->n : 1) * sizeof(*f->v));
	if (!f->v)
		die("realloc");
	e = &f->v[f->n];
	*e = (struct expect){ .ts = ts, .nr = f->n++ };
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}

static void expect_event(struct feed *f, unsigned int cpu, uint64_t ts, const char *name, const char *text)
{
	expect(f, ts, "[%03u] %llu.%09llu: %s:%s%s", cpu, (unsigned long long)ts / 1000000000,
	       (unsigned long long)ts % 1000000000, name, *text ? " " : "", text);
}

static int by_time(const void *a, const void *b)
{
	const struct expect *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->nr < y->nr ? -1 : 1;
}

/* ---- pages ----------------------------------------------------------------------------- */

static void send(struct cpu *c, const void *data, size_t len)
{
	if (write(c->fd, data, len) != (ssize_t)len)
		die("write");
}

static void wait_until_read(struct cpu *c)
{
	int left = 1;

	while (!ioctl(c->fd, FIONREAD, &left) && left)
		usleep(1000);
}

static void send_page(struct cpu *c, uint64_t commit)
{
	if (c->missed && c->missed_count) {
		memcpy(c->page + HEADER_BYTES + commit, &c->missed_count, 8);
		commit += MISSED_STORED;
	}
	if (c->missed)
		commit += (uint64_t)MISSED;
	memcpy(c->page + 8, &commit, 8);
	send(c, c->page, PAGE_BYTES);
	c->used = 0;
	c->missed = false;
	c->missed_count = 0;
}

static void end_page(struct cpu *c)
{
	if (c->used)
		send_page(c, c->used - HEADER_BYTES);
}

static void begin_page(struct cpu *c, uint64_t ts)
{
	memset(c->page, 0, sizeof(c->page));
	memcpy(c->page, &ts, 8);
	c->used = HEADER_BYTES;
	c->last = ts;
}

static void put_u32(struct cpu *c, uint32_t v)
{
	memcpy(c->page + c->used, &v, 4);
	c->used += 4;
}

/* Lengths are exact, so that the next event may begin at any byte. */
static void put_event(struct feed *f, unsigned int cpu, uint64_t ts, const void *data, size_t len)
{
	struct cpu *c = &f->cpus[cpu];
	uint64_t delta = ts - c->last;
	size_t need = 8 + len + (delta >> 27 ? 8 : 0);

	if (c->used + need > HEADER_BYTES + f->l->data_size)
		end_page(c);
	if (!c->used) {
		begin_page(c, ts);
		delta = 0;
	}
	if (delta >> 27) {
		put_u32(c, (uint32_t)(delta << 5 | TIME_EXTEND));
		put_u32(c, (uint32_t)(delta >> 27));
		delta = 0;
	}
	put_u32(c, (uint32_t)(delta << 5)); /* type_len 0: the length follows */
	put_u32(c, (uint32_t)len + 4);
	memcpy(c->page + c->used, data, len);
	c->used += len;
	c->last = ts;
}

/* ---- records ----------------------------------------------------------------------------- */

/* What of 64 bits a field can hold, widened again as C does it. */
static uint64_t fit(const struct field *fd, uint64_t v)
{
	if (!strcmp(fd->type, "bool"))
		return v & 1;
	if (!strcmp(fd->name, "prot"))
		return v & 7;
	/* addresses above all symbols of whatever kernel runs the test: shown as numbers */
	if (!strcmp(fd->type, "unsigned long"))
		return v | 0xfffffffffffff000;
	if (fd->size == 1)
		return (uint8_t)v;
	if (fd->size == 2)
		return (uint16_t)v;
	if (fd->size == 4)
		return fd->is_signed ? (uint64_t)(int32_t)v : (uint32_t)v;
	return v;
}

static size_t pack(const struct event *e, unsigned int id, uint64_t v[VALUES], uint8_t *out)
{
	const char *list = e->fields;
	const uint16_t type = (uint16_t)id;
	struct field fd;
	size_t n = 2;

	memcpy(out, &type, 2);
	for (int i = 0; next_field(&list, &fd); i++) {
		v[i] = fit(&fd, v[i]);
		memcpy(out + n, &v[i], fd.size); /* little endian, as arm64 and x86 are */
		n += fd.size;
	}
	return n;
}

/* One record of event number `nr`; its values are made of `bits`. */
static void record(struct feed *f, unsigned int cpu, uint64_t ts, unsigned int nr, uint64_t bits)
{
	const struct event *e = f->events[nr];
	uint64_t v[VALUES];
	uint8_t data[128];
	char text[200];

	for (unsigned int i = 0; i < VALUES; i++)
		v[i] = bits * (i + 1);
	put_event(f, cpu, ts, data, pack(e, f->l->first_id + nr, v, data));
	snprintf(text, sizeof(text), e->shows, v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
	expect_event(f, cpu, ts, e->name, text);
}

static unsigned int event_nr(const struct feed *f, const char *name)
{
	for (unsigned int i = 0; i < f->n_events; i++)
		if (!strcmp(f->events[i]->name, name))
			return i;
	die(name);
	return 0;
}

/* Any event, but hyp_enter and hyp_exit in turns, as a CPU enters and leaves. */
static unsigned int some_event(struct feed *f, unsigned int cpu, unsigned int nr)
{
	struct cpu *c = &f->cpus[cpu];

	if (strcmp(f->events[nr]->name, "hyp_enter") && strcmp(f->events[nr]->name, "hyp_exit"))
		return nr;
	c->inside = !c->inside;
	return event_nr(f, c->inside ? "hyp_enter" : "hyp_exit");
}

/* ---- scenarios ------------------------------------------------------------------------------ */

/* Each event once, on CPUs 0 and 1 in turn. */
static void feed_events(struct feed *f)
{
	for (unsigned int i = 0; i < f->n_events; i++)
		record(f, i % 2, f->start + i * 1001, i, 0x1000000080000001 + 16 * i);
}

static uint64_t random_u64(struct feed *f)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return f->seed;
}

/* Some hundred pages; now and then a time that needs more than its 27 bits. */
static void feed_bulk(struct feed *f)
{
	uint64_t ts = f->start;

	for (unsigned int i = 0; i < 12000; i++) {
		uint64_t r = random_u64(f);

		ts += 1 + r % 5000 + (r % 3000 ? 0 : 140000000);
		record(f, (unsigned int)(r >> 20) % CPUS, ts,
		       some_event(f, (unsigned int)(r >> 20) % CPUS, (unsigned int)(r >> 30) % f->n_events),
		       random_u64(f));
	}
}

static void hcall(struct feed *f, unsigned int n)
{
	record(f, 0, f->start + n * 1000, event_nr(f, "host_hcall"), n);
}

/* What no kernel should hand out, and some do. hcalls 1..9 and the unknown record are good. */
static void feed_faults(struct feed *f)
{
	static const uint8_t unknown[] = { 99, 0, 0xde, 0xad, 0xbe, 0xef, 0x42 };
	uint8_t cut[] = { (uint8_t)(f->l->first_id + event_nr(f, "host_hcall")), 0, 1, 2 };
	struct cpu *c = &f->cpus[0];

	hcall(f, 1);
	put_event(f, 0, f->start + 1500, unknown, sizeof(unknown));
	expect_event(f, 0, f->start + 1500, "hyp_unknown", "id=99 de ad be ef 42");
	hcall(f, 2);
	end_page(c);

	expect(f, f->start + 3000, "CPU:0 [42 EVENTS DROPPED]");
	hcall(f, 3);
	c->missed = true;
	c->missed_count = 42;
	end_page(c);

	expect(f, f->start + 4000, "CPU:0 [EVENTS DROPPED]"); /* how many is not known */
	hcall(f, 4);
	c->missed = true;
	end_page(c);

	begin_page(c, f->start + 4500); /* a page that says it is longer than a page */
	send_page(c, PAGE_BYTES + 904);

	expect(f, f->start + 5000, "CPU:0 [EVENTS DROPPED]");
	hcall(f, 5);
	put_event(f, 0, f->start + 5500, cut, sizeof(cut)); /* a record shorter than its format */
	hcall(f, 6);
	end_page(c);

	hcall(f, 7);
	put_u32(c, 1000 << 5); /* an event that runs over the end of the page's data */
	put_u32(c, 2000);
	c->used += 20;
	end_page(c);

	expect(f, f->start + 8000, "CPU:0 [EVENTS DROPPED]");
	hcall(f, 8);
	end_page(c);
	begin_page(c, f->start + 8500); /* an empty page */
	end_page(c);
	hcall(f, 9);
}

/* As the first page of a CPU whose other reader has the second one. */
static void feed_shared(struct feed *f)
{
	struct cpu *c = &f->cpus[0];

	record(f, 0, f->start, event_nr(f, "hyp_enter"), 0);
	hcall(f, 1);
	record(f, 0, f->start + 2000, event_nr(f, "hyp_exit"), 0);
	end_page(c);

	expect(f, f->start + 3000, "CPU:0 [EVENTS DROPPED]");
	record(f, 0, f->start + 3000, event_nr(f, "hyp_exit"), 0);
	record(f, 0, f->start + 4000, event_nr(f, "hyp_enter"), 0);
	end_page(c);

	expect(f, f->start + 5000, "CPU:0 [7 EVENTS DROPPED]"); /* this the kernel has counted */
	record(f, 0, f->start + 5000, event_nr(f, "hyp_enter"), 0);
	c->missed = true;
	c->missed_count = 7;
	end_page(c);
	record(f, 0, f->start + 6000, event_nr(f, "hyp_exit"), 0);
}

static const char some_text[] = "[000]\t  100.000001: hyp_enter  \n"
				"[000]\t  100.000002: host_hcall id=7 invalid=0\n"
				"[000]\t  100.000003: hyp_exit  \n";

static void expect_text(struct feed *f)
{
	expect_event(f, 0, 100000001000, "hyp_enter", "");
	expect_event(f, 0, 100000002000, "host_hcall", "id=7 invalid=0");
	expect_event(f, 0, 100000003000, "hyp_exit", "");
}

/* Android 16 before July 2025: trace_pipe_raw hands out trace_pipe's text, a line's end by itself. */
static void feed_text(struct feed *f)
{
	const size_t part = 60;

	expect_text(f);
	send(&f->cpus[0], some_text, part);
	wait_until_read(&f->cpus[0]);
	send(&f->cpus[0], some_text + part, sizeof(some_text) - 1 - part);
	wait_until_read(&f->cpus[0]);
}

/* The other bug: its struct buffer_data_read_page in place of the page that this points to. */
static void feed_struct(struct feed *f)
{
	static const uint64_t page[PAGE_BYTES / 8] = { 0, 0xffffff8002ed4000, 0, 0xffffff800204c1c0 };
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/per_cpu/cpu0/trace_pipe", f->dir, f->l->dir);
	fd = open(path, O_WRONLY);
	if (fd >= 0) { /* else the test has taken it away */
		expect(f, 0, "CPU:0 [EVENTS DROPPED]");
		expect_text(f);
		if (write(fd, some_text, sizeof(some_text) - 1) < 0)
			die(path);
		close(fd);
	}
	send(&f->cpus[0], page, sizeof(page));
	wait_until_read(&f->cpus[0]);
}

static const struct scenario {
	const char *name;
	void (*feed)(struct feed *f);
	bool pages; /* it ends with some */
} scenarios[] = {
	{ "events", feed_events, true }, { "bulk", feed_bulk, true },  { "faults", feed_faults, true },
	{ "shared", feed_shared, true }, { "text", feed_text, false }, { "struct", feed_struct, false },
};

/* ---- */

static void open_feed(struct feed *f, const char *dir)
{
	char path[4096];

	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts) && !f->l; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, layouts[i].dir);
		if (!access(path, F_OK))
			f->l = &layouts[i];
	}
	if (!f->l)
		die(dir);
	for (size_t i = 0; i < N_EVENTS; i++)
		if (events[i].in & f->l->in)
			f->events[f->n_events++] = &events[i];
	for (int i = 0; i < CPUS; i++) {
		snprintf(path, sizeof(path), "%s/%s/per_cpu/cpu%d/trace_pipe_raw", dir, f->l->dir, i);
		f->cpus[i].fd = open(path, O_WRONLY); /* waits for the reader */
		if (f->cpus[i].fd < 0)
			die(path);
	}
}

/*
 * What is out of the FIFO need not be on disk yet. But the reader takes one page
 * after the other: with an empty one gone too, all before it are.
 */
static void wait_for_all_pages(struct cpu *c)
{
	end_page(c);
	wait_until_read(c);
	begin_page(c, 0);
	end_page(c);
	wait_until_read(c);
}

int main(int argc, char **argv)
{
	static struct feed f = { .seed = 0x9e3779b97f4a7c15 };
	struct timespec now;
	const struct scenario *s = scenarios, *end = s + sizeof(scenarios) / sizeof(*s);

	while (argc == 3 && s < end && strcmp(s->name, argv[2]))
		s++;
	if (argc != 3 || s == end) {
		fprintf(stderr, "usage: feed-android DIR events|bulk|faults|shared|text|struct\n");
		return 2;
	}
	alarm(PATIENCE);
	f.dir = argv[1];
	open_feed(&f, argv[1]);
	clock_gettime(CLOCK_BOOTTIME, &now);
	f.start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	s->feed(&f);
	for (int i = 0; i < CPUS && s->pages; i++)
		wait_for_all_pages(&f.cpus[i]);
	if (f.n)
		qsort(f.v, f.n, sizeof(*f.v), by_time);
	for (size_t i = 0; i < f.n; i++)
		puts(f.v[i].text);
	free(f.v);
	return 0;
}
