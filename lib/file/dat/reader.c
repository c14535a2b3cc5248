// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens a trace.dat: the front, then the options and sections of version 7 or the parts of version 6. */
#include <sys/stat.h>

#include "file/dat/reader-priv.h"
#include "base/array.h"
#include "base/strings.h"

static struct dat_text take_text(struct cursor *c, uint64_t len)
{
	const char *data = len <= SIZE_MAX ? cursor_take(c, (size_t)len) : NULL;

	if (!data)
		c->bad = true;
	return (struct dat_text){ .data = data ? data : "", .len = data ? (size_t)len : 0 };
}

static int take_headers(struct reader *r, struct cursor *c)
{
	const char *name = cursor_str(c);

	if (!name || strcmp(name, "header_page"))
		return reader_bad(r, "header_page");
	r->info.header_page = take_text(c, cursor_u64(c));
	name = cursor_str(c);
	if (!name || strcmp(name, "header_event"))
		return reader_bad(r, "header_event");
	r->info.header_event = take_text(c, cursor_u64(c));
	if (c->bad)
		return reader_bad(r, "header_event");
	if (page_layout_parse(r->info.header_page.data, r->info.header_page.len, &r->info.layout))
		return reader_bad(r, "header_page");
	return 0;
}

static int take_event_formats(struct reader *r, const char *system, struct cursor *c)
{
	uint32_t n = cursor_u32(c);
	struct reader_format *v;

	/* each takes at least its length */
	if (c->bad || n > cursor_left(c) / 8)
		return reader_bad(r, "the number of event formats");
	v = realloc(r->info.formats, (r->info.n_formats + n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	r->info.formats = v;
	for (uint32_t i = 0; i < n && !c->bad; i++) {
		uint64_t len = cursor_u64(c);

		v[r->info.n_formats++] = (struct reader_format){ system, take_text(c, len) };
	}
	return c->bad ? reader_bad(r, "an event format") : 0;
}

static int take_one(struct reader *r, struct cursor *c, struct dat_text *out, uint64_t len)
{
	*out = take_text(c, len);
	return c->bad ? reader_bad(r, "symbols or names") : 0;
}

/* Takes one part (DAT_HEADER_INFO ... DAT_CMDLINES) into r->info. -EBADMSG (logged), -ENOMEM. */
static int reader_part(struct reader *r, uint16_t id, struct cursor *c)
{
	uint32_t n;
	int ret = 0;

	switch (id) {
	case DAT_HEADER_INFO:
		return take_headers(r, c);
	case DAT_FTRACE_EVENTS:
		return take_event_formats(r, "ftrace", c);
	case DAT_EVENT_FORMATS:
		n = cursor_u32(c);
		if (c->bad || n > cursor_left(c))
			return reader_bad(r, "the number of event systems");
		for (uint32_t i = 0; i < n && !ret; i++) {
			const char *system = cursor_str(c);

			ret = system ? take_event_formats(r, system, c) : reader_bad(r, "an event system");
		}
		return ret;
	case DAT_KALLSYMS:
		return take_one(r, c, &r->info.kallsyms, cursor_u32(c));
	case DAT_PRINTK:
		return take_one(r, c, &r->info.printk, cursor_u32(c));
	default:
		return take_one(r, c, &r->info.cmdlines, cursor_u64(c));
	}
}

/* -ENOMEM. The data stay where they are. */
static int reader_add_option(struct reader *r, uint16_t id, const void *data, size_t len)
{
	struct reader_option option = { id, { data, len } };

	return array_push(&r->info.options, &r->info.n_options, &option, sizeof(option));
}

/* A buffer with room for n_cpus; NULL: out of memory. */
static struct reader_buffer *reader_add_buffer(struct reader *r, const char *name, const char *clock,
					       uint32_t page_size, size_t n_cpus)
{
	struct reader_buffer *v = array_next(&r->info.buffers, r->info.n_buffers, sizeof(*v));

	if (!v)
		return NULL;
	*v = (struct reader_buffer){ .name = name, .clock = clock, .page_size = page_size };
	v->cpus = calloc(n_cpus ? n_cpus : 1, sizeof(*v->cpus));
	if (!v->cpus)
		return NULL;
	v->n_cpus = n_cpus;
	r->info.n_buffers++;
	return v;
}

#define SECTION_HEAD	   16 /* u16 id, u16 flags, u32 name, u64 size */
#define SECTION_COMPRESSED 1
#define FRONT_MAX	   256 /* magic, version, compression: strings of a few bytes */
#define CLOCK_MAX	   4096

/* Place of a CPU's pages: u64 offset, u64 size. A truncated file may hold only some of them. */
static int take_cpu_place(const struct reader *r, struct reader_cpu *out, uint32_t cpu, struct cursor *c)
{
	uint64_t offset = cursor_u64(c), size = cursor_u64(c);

	if (cpu >= READER_CPUS_MAX)
		return reader_bad(r, "a CPU's number");
	if (offset > UINT64_MAX - size)
		return reader_bad(r, "a CPU's pages lie beyond any file");
	*out = (struct reader_cpu){ .cpu = cpu, .offset = offset, .size = size };
	return 0;
}

static int section_at(struct reader *r, uint64_t offset, uint16_t want, struct cursor *out)
{
	uint8_t head[SECTION_HEAD] = { 0 };
	struct cursor c = cursor_at(head, sizeof(head));
	uint16_t id, flags;
	int ret = reader_read(r, offset, head, sizeof(head));

	if (ret)
		return reader_failed(r, ret, "a section lies beyond the file");
	id = cursor_u16(&c);
	flags = cursor_u16(&c);
	cursor_u32(&c);
	if (id != want)
		return reader_bad(r, "a section is not what its option says");
	ret = reader_body(r, offset + SECTION_HEAD, cursor_u64(&c), flags & SECTION_COMPRESSED, out);
	if (ret)
		return ret;
	r->sections_size += cursor_left(out);
	return r->sections_size > READER_SECTIONS_MAX ? reader_bad(r, "its sections are too large together")
						      : 0;
}

static int v7_option(struct reader *r, uint16_t id, const void *data, uint32_t len)
{
	struct cursor c = cursor_at(data, len), body;
	uint64_t at;
	int ret;

	if (id == DAT_BUFFER) {
		const char *name, *clock;
		struct reader_buffer *b;
		uint32_t page_size, n;

		cursor_u64(&c); /* its section: the CPUs' offsets are those of the file */
		name = cursor_str(&c);
		clock = cursor_str(&c);
		page_size = cursor_u32(&c);
		n = cursor_u32(&c);
		if (c.bad || n > READER_CPUS_MAX || n > cursor_left(&c) / 20 || page_size < 64 ||
		    page_size > (1u << 20) || r->info.n_buffers >= READER_BUFFERS_MAX)
			return reader_bad(r, "a buffer's description");
		b = reader_add_buffer(r, name, clock, page_size, n);
		if (!b)
			return -ENOMEM;
		for (uint32_t i = 0; i < n; i++) {
			ret = take_cpu_place(r, &b->cpus[i], cursor_u32(&c), &c);
			if (ret)
				return ret;
		}
		return 0;
	}
	if (id == DAT_STRINGS || id == DAT_BUFFER_TEXT)
		return 0;
	if (id < DAT_HEADER_INFO || id > DAT_CMDLINES)
		return reader_add_option(r, id, data, len);
	at = cursor_u64(&c);
	if (c.bad)
		return reader_bad(r, "an option is too short");
	if (id == DAT_KALLSYMS) {
		r->symbols_at = at;
		r->info.reader = r;
		return 0;
	}
	return section_at(r, at, id, &body) ?: reader_part(r, id, &body);
}

void reader_name(struct reader *r, const char *path)
{
	r->path = path;
}

int reader_symbols(const struct reader_info *info, struct dat_text *out)
{
	struct reader *r = info->reader;
	struct cursor body;
	int ret = r ? section_at(r, r->symbols_at, DAT_KALLSYMS, &body) ?: reader_part(r, DAT_KALLSYMS, &body)
		    : 0;

	if (r && !ret)
		r->info.reader = NULL;
	*out = info->kallsyms;
	return ret ? log_fail_errno(r->log, ret, "%s: cannot read the kernel's symbols", r->path) : 0;
}

static int v7_options(struct reader *r, struct cursor *c, uint64_t *next)
{
	*next = 0;
	while (cursor_left(c)) {
		uint16_t id = cursor_u16(c);
		uint32_t len = cursor_u32(c);
		const void *data = cursor_take(c, len);
		struct cursor d = cursor_at(data, data ? len : 0);
		int ret;

		if (c->bad)
			return reader_bad(r, "an option is cut off");
		if (id == DAT_DONE) {
			*next = len >= 8 ? cursor_u64(&d) : 0;
			return 0;
		}
		ret = v7_option(r, id, data, len);
		if (ret)
			return ret;
	}
	return 0;
}

static int open_v7(struct reader *r, struct cursor *c)
{
	const char *name = cursor_str(c), *version = cursor_str(c);
	uint64_t next = cursor_u64(c), last = 0;

	if (c->bad || !version)
		return reader_bad(r, "the front");
	r->info.compression = name;
	r->zstd = !strcmp(name, "zstd");
	if (!r->zstd && strcmp(name, "none"))
		return log_fail(r->log, -ENOTSUP, "compressed with %s, which is not supported", name);
	while (next) {
		struct cursor body;
		int ret;

		/* writers append; a chain that goes back may be a ring */
		if (next <= last)
			return reader_bad(r, "its options go backwards");
		last = next;
		ret = section_at(r, next, DAT_DONE, &body) ?: v7_options(r, &body, &next);
		if (ret)
			return ret;
	}
	return 0;
}

/* After the table, if there is a TRACECLOCK: u64 size, "[boot]" or "local [boot] ...". */
static int take_v6_clock(struct reader *r, struct cursor *c, struct reader_buffer *b)
{
	uint64_t len = cursor_u64(c);
	const char *text = len < CLOCK_MAX ? cursor_take(c, (size_t)len) : NULL;
	size_t n;
	const char *clock = text ? chosen_word(text, (size_t)len, &n) : NULL;
	struct buf *copy = clock ? reader_add_body(r) : NULL;

	/* stock takes the local clock then */
	if (!clock)
		return 0;
	if (!copy)
		return -ENOMEM;
	buf_add(copy, clock, n);
	b->clock = buf_str(copy);
	return b->clock ? 0 : -ENOMEM;
}

/* "flyrecord", {u64 offset, u64 size} per CPU. */
static int take_flyrecord(struct reader *r, struct cursor *c, const char *name, uint32_t n)
{
	const char *mark = cursor_take(c, 10);
	struct reader_buffer *b;

	if (!mark || memcmp(mark, "flyrecord", 10) || n > cursor_left(c) / 16)
		return reader_bad(r, "a buffer's table of CPUs");
	b = reader_add_buffer(r, name, "", r->info.page_size, n);
	if (!b)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		int ret = take_cpu_place(r, &b->cpus[i], i, c);

		if (ret)
			return ret;
	}
	return reader_option(r, DAT_TRACECLOCK) ? take_v6_clock(r, c, b) : 0;
}

struct v6_instance {
	uint64_t offset;
	const char *name;
};

static int v6_options(struct reader *r, struct cursor *c, struct v6_instance *v, size_t *n)
{
	for (;;) {
		uint16_t id = cursor_u16(c);
		struct cursor body;
		uint32_t len;
		const void *data;

		if (id == DAT_DONE)
			return c->bad ? reader_bad(r, "its options are cut off") : 0;
		len = cursor_u32(c);
		data = cursor_take(c, len);
		if (!data)
			return reader_bad(r, "an option is cut off");
		if (id != DAT_BUFFER) {
			int ret = reader_add_option(r, id, data, len);

			if (ret)
				return ret;
			continue;
		}
		if (*n == READER_BUFFERS_MAX)
			return reader_bad(r, "too many buffers");
		body = cursor_at(data, len);
		v[*n].offset = cursor_u64(&body);
		v[*n].name = cursor_str(&body);
		if (body.bad)
			return reader_bad(r, "a buffer's description");
		++*n;
	}
}

/* Reads each instance's table of CPUs at its option's offset. */
static int v6_instances(struct reader *r, const struct cursor *whole, const struct v6_instance *v, size_t n,
			uint32_t n_cpus)
{
	for (size_t i = 0; i < n; i++) {
		struct cursor at = *whole;
		struct reader_buffer *b;

		if (cursor_take(&at, v[i].offset < SIZE_MAX ? (size_t)v[i].offset : SIZE_MAX)) {
			int ret = take_flyrecord(r, &at, v[i].name, n_cpus);

			if (ret)
				return ret;
			continue;
		}
		/* beyond the end of a truncated file: one CPU with unreadable pages stands for all */
		b = reader_add_buffer(r, v[i].name, "", r->info.page_size, 1);
		if (!b)
			return -ENOMEM;
		b->cpus[0] = (struct reader_cpu){ 0, r->size, r->info.page_size };
	}
	return 0;
}

static bool v6_mark(struct cursor *c, const char mark[10])
{
	return cursor_left(c) >= 10 && !memcmp(c->p, mark, 10);
}

/* All but the pages is read at once; the pages come last, so the front of the file is enough. */
static int open_v6(struct reader *r, uint64_t front)
{
	uint64_t len = r->size < READER_BODY_MAX ? r->size : READER_BODY_MAX;
	struct cursor whole, c;
	uint32_t n_cpus;
	int ret = reader_body(r, 0, len, false, &whole);
	struct v6_instance *v;
	size_t n = 0;

	if (ret)
		return ret;
	r->info.compression = "none";
	c = whole;
	cursor_take(&c, front);
	for (unsigned int id = DAT_HEADER_INFO; id <= DAT_CMDLINES; id++) {
		ret = reader_part(r, id, &c);
		if (ret)
			return ret;
	}
	n_cpus = cursor_u32(&c);
	if (c.bad || n_cpus > READER_CPUS_MAX)
		return reader_bad(r, "the number of CPUs");
	v = calloc(READER_BUFFERS_MAX, sizeof(*v));
	if (!v)
		return -ENOMEM;
	/* the agent's metadata ends before the options */
	if (v6_mark(&c, "options  ")) {
		cursor_take(&c, 10);
		ret = v6_options(r, &c, v, &n);
	}
	if (!ret && v6_mark(&c, "flyrecord"))
		ret = take_flyrecord(r, &c, "", n_cpus);
	ret = ret ?: v6_instances(r, &whole, v, n, n_cpus);
	free(v);
	return ret;
}

static int open_dat(struct reader *r)
{
	static const uint8_t magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	struct cursor c;
	const void *m;
	const char *version;
	uint8_t endian, longs;
	int ret = reader_body(r, 0, r->size < FRONT_MAX ? r->size : FRONT_MAX, false, &c);
	const uint8_t *start = c.p;

	if (ret)
		return ret;
	m = cursor_take(&c, sizeof(magic));
	if (!m || memcmp(m, magic, sizeof(magic)))
		return reader_bad(r, "it does not begin with the magic bytes");
	version = cursor_str(&c);
	endian = cursor_u8(&c);
	longs = cursor_u8(&c);
	r->info.page_size = cursor_u32(&c);
	if (c.bad || r->info.page_size < 64 || r->info.page_size > (1u << 20))
		return reader_bad(r, "the front");
	if ((strcmp(version, "6") && strcmp(version, "7")) || endian || longs != 8)
		return log_fail(r->log, -ENOTSUP, "version %.8s, %s-endian, %u-byte longs: not supported",
				version, endian ? "big" : "little", longs);
	r->info.version = version[0] - '0';
	return r->info.version == 7 ? open_v7(r, &c) : open_v6(r, (uint64_t)(c.p - start));
}

int reader_open(struct reader **out, int fd, const struct log *log)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct stat st;
	int ret;

	if (!r)
		return -ENOMEM;
	r->fd = fd;
	r->path = "trace.dat";
	r->log = log;
	r->info.layout = page_layout_default;
	r->unzips = calloc(1, sizeof(*r->unzips));
	ret = !r->unzips ? -ENOMEM : fstat(fd, &st) < 0 ? -errno : 0;
	if (!ret && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		ret = log_fail(log, -ESPIPE, "a trace.dat must be a regular file, not a pipe or a socket");
	if (!ret) {
		size_t n = 1;

		r->size = (uint64_t)st.st_size;
		ret = open_dat(r);
		/* all CPUs can be read at the same time */
		for (size_t i = 0; i < r->info.n_buffers; i++)
			n += r->info.buffers[i].n_cpus;
		r->block_size = READER_BLOCKS / n < READER_BLOCK_MAX ? READER_BLOCKS / n : READER_BLOCK_MAX;
	}
	if (ret)
		reader_close(r);
	else
		*out = r;
	return ret;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->info.n_buffers; i++)
		free(r->info.buffers[i].cpus);
	for (size_t i = 0; i < r->n_bodies; i++)
		buf_release(&r->bodies[i]);
	free(r->bodies);
	for (void *d; r->unzips && (d = pool_take(r->unzips));)
		ZSTD_freeDCtx(d);
	free(r->unzips);
	free(r->info.buffers);
	free(r->info.formats);
	free(r->info.options);
	free(r);
}

const struct reader_info *reader_info(const struct reader *r)
{
	return &r->info;
}

const struct reader_option *reader_option(const struct reader *r, uint16_t id)
{
	for (size_t i = 0; i < r->info.n_options; i++)
		if (r->info.options[i].id == id)
			return &r->info.options[i];
	return NULL;
}

bool reader_task(struct cursor *lines, uint64_t *pid, const char **name, size_t *len)
{
	while (cursor_line(lines, name, len)) {
		struct cursor at = cursor_at(*name, *len);

		if (!cursor_decimal(&at, pid) || !cursor_accept(&at, ' '))
			continue;
		*name = (const char *)at.p;
		*len = cursor_left(&at);
		return true;
	}
	return false;
}
