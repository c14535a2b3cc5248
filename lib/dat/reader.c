// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "dat/reader-priv.h"

#define SECTION_HEAD	   16 /* u16 id, u16 flags, u32 name, u64 size */
#define SECTION_COMPRESSED 1
#define FRONT_MAX	   256 /* magic, version, compression: strings of a few bytes */
#define CLOCK_MAX	   4096

int reader_bad(const struct reader *r, const char *what)
{
	log_err(r->log, "not a whole trace.dat: %s", what);
	return -EBADMSG;
}

int reader_read(const struct reader *r, uint64_t offset, void *data, size_t len)
{
	size_t done = 0;

	if (offset > r->size || len > r->size - offset)
		return -EBADMSG;
	while (done < len) {
		ssize_t n = pread(r->fd, (uint8_t *)data + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

int reader_unzip(const void *in, size_t csize, void *out, size_t usize)
{
	size_t n = ZSTD_decompress(out, usize, in, csize);

	return ZSTD_isError(n) || n != usize ? -EBADMSG : 0;
}

/* A block: u32 compressed, u32 plain size, data. */
static int unzip_body(struct buf *body)
{
	struct cursor c = cursor_at(body->data, body->len);
	uint32_t csize = cursor_u32(&c), usize = cursor_u32(&c);
	const void *in = cursor_take(&c, csize);
	struct buf plain = { 0 };
	int ret;

	if (!in || usize > READER_BODY_MAX)
		return -EBADMSG;
	plain.data = malloc(usize ? usize : 1);
	if (!plain.data)
		return -ENOMEM;
	plain.len = plain.cap = usize;
	ret = reader_unzip(in, csize, plain.data, usize);
	if (ret) {
		buf_release(&plain);
		return ret;
	}
	buf_release(body);
	*body = plain;
	return 0;
}

/* Room for bytes that live as long as the reader; NULL: out of memory. */
static struct buf *add_body(struct reader *r)
{
	struct buf *v = realloc(r->bodies, (r->n_bodies + 1) * sizeof(*v));

	if (!v)
		return NULL;
	r->bodies = v;
	v[r->n_bodies] = (struct buf){ 0 };
	return &v[r->n_bodies++];
}

int reader_body(struct reader *r, uint64_t offset, uint64_t len, bool zipped, struct cursor *out)
{
	struct buf *b;
	int ret;

	if (len > READER_BODY_MAX || offset > r->size || len > r->size - offset)
		return reader_bad(r, "a section reaches beyond the file");
	b = add_body(r);
	if (!b)
		return -ENOMEM;
	*b = (struct buf){ .data = malloc(len ? len : 1), .len = len, .cap = len };
	if (!b->data)
		return -ENOMEM;
	ret = reader_read(r, offset, b->data, len);
	if (!ret && zipped)
		ret = r->zstd ? unzip_body(b) : -EBADMSG;
	if (ret)
		return reader_bad(r, "a section cannot be read");
	*out = cursor_at(b->data, b->len);
	return 0;
}

/* ---- version 7 ---------------------------------------------------------------------- */

static int section_at(struct reader *r, uint64_t offset, uint16_t want, struct cursor *out)
{
	uint8_t head[SECTION_HEAD] = { 0 };
	struct cursor c = cursor_at(head, sizeof(head));
	uint16_t id, flags;
	int ret = reader_read(r, offset, head, sizeof(head));

	if (ret)
		return reader_bad(r, "a section lies beyond the file");
	id = cursor_u16(&c);
	flags = cursor_u16(&c);
	cursor_u32(&c);
	if (id != want)
		return reader_bad(r, "a section is not what its option says");
	ret = reader_body(r, offset + SECTION_HEAD, cursor_u64(&c), flags & SECTION_COMPRESSED, out);
	r->sections_size += ret ? 0 : cursor_left(out);
	if (r->sections_size > READER_SECTIONS_MAX)
		return reader_bad(r, "its sections are too large together");
	return ret;
}

static int take_buffer(struct reader *r, struct cursor c)
{
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
		struct reader_cpu *cpu = &b->cpus[i];

		cpu->cpu = cursor_u32(&c);
		cpu->offset = cursor_u64(&c);
		cpu->size = cursor_u64(&c);
		if (cpu->cpu >= READER_CPUS_MAX)
			return reader_bad(r, "a CPU's number");
		if (cpu->offset > r->size || cpu->size > r->size - cpu->offset)
			return reader_bad(r, "a CPU's pages lie beyond the file");
	}
	return 0;
}

static int take_option(struct reader *r, uint16_t id, const void *data, uint32_t len)
{
	struct cursor c = cursor_at(data, len), body;
	int ret;

	if (id == DAT_BUFFER)
		return take_buffer(r, c);
	if (id == DAT_STRINGS || id == DAT_BUFFER_TEXT)
		return 0;
	if (id < DAT_HEADER_INFO || id > DAT_CMDLINES)
		return reader_add_option(r, id, data, len);
	ret = section_at(r, cursor_u64(&c), id, &body);
	if (c.bad)
		return reader_bad(r, "an option is too short");
	return ret ? ret : reader_part(r, id, &body);
}

static int take_options(struct reader *r, struct cursor *c, uint64_t *next)
{
	int ret = 0;

	*next = 0;
	while (!ret && cursor_left(c)) {
		uint16_t id = cursor_u16(c);
		uint32_t len = cursor_u32(c);
		const void *data = cursor_take(c, len);
		struct cursor d = cursor_at(data, data ? len : 0);

		if (c->bad)
			return reader_bad(r, "an option is cut off");
		if (id == DAT_DONE) {
			*next = len >= 8 ? cursor_u64(&d) : 0;
			return 0;
		}
		ret = take_option(r, id, data, len);
	}
	return ret;
}

static int open_v7(struct reader *r, struct cursor *c)
{
	const char *name = cursor_str(c), *version = cursor_str(c);
	uint64_t next = cursor_u64(c), last = 0;
	int ret = 0;

	if (c->bad || !version)
		return reader_bad(r, "the front");
	r->info.compression = name;
	r->zstd = !strcmp(name, "zstd");
	if (!r->zstd && strcmp(name, "none")) {
		log_err(r->log, "compressed with %s, which is not supported", name);
		return -ENOTSUP;
	}
	while (next && !ret) {
		struct cursor body;

		/* writers append; a chain that goes back may be a ring */
		if (next <= last)
			return reader_bad(r, "its options go backwards");
		last = next;
		ret = section_at(r, next, DAT_DONE, &body);
		if (!ret)
			ret = take_options(r, &body, &next);
	}
	return ret;
}

/* ---- version 6 ---------------------------------------------------------------------- */

/* Behind the table, when there is a TRACECLOCK: u64 size, "[boot]" or "local [boot] ...". */
static int take_v6_clock(struct reader *r, struct cursor *c, struct reader_buffer *b)
{
	uint64_t len = cursor_u64(c);
	const char *text = len < CLOCK_MAX ? cursor_take(c, (size_t)len) : NULL;
	const char *open = text ? memchr(text, '[', (size_t)len) : NULL;
	const char *close = open ? memchr(open, ']', (size_t)(text + len - open)) : NULL;
	struct buf *copy = close ? add_body(r) : NULL;

	/* stock takes the local clock then */
	if (!close)
		return 0;
	if (!copy)
		return -ENOMEM;
	buf_add(copy, open + 1, (size_t)(close - open - 1));
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
		b->cpus[i].cpu = i;
		b->cpus[i].offset = cursor_u64(c);
		b->cpus[i].size = cursor_u64(c);
		if (b->cpus[i].offset > r->size || b->cpus[i].size > r->size - b->cpus[i].offset)
			return reader_bad(r, "a CPU's pages lie beyond the file");
	}
	return reader_option(r, DAT_TRACECLOCK) ? take_v6_clock(r, c, b) : 0;
}

struct v6_instance {
	uint64_t offset;
	const char *name;
};

static int take_instance(struct reader *r, const void *data, uint32_t len, struct v6_instance *v, size_t *n)
{
	struct cursor c = cursor_at(data, len);

	if (*n == READER_BUFFERS_MAX)
		return reader_bad(r, "too many buffers");
	v[*n].offset = cursor_u64(&c);
	v[*n].name = cursor_str(&c);
	if (c.bad)
		return reader_bad(r, "a buffer's description");
	++*n;
	return 0;
}

static int v6_options(struct reader *r, struct cursor *c, struct v6_instance *v, size_t *n)
{
	int ret = 0;

	while (!ret) {
		uint16_t id = cursor_u16(c);
		uint32_t len;
		const void *data;

		if (id == DAT_DONE)
			return c->bad ? reader_bad(r, "its options are cut off") : 0;
		len = cursor_u32(c);
		data = cursor_take(c, len);
		if (!data)
			return reader_bad(r, "an option is cut off");
		ret = id == DAT_BUFFER ? take_instance(r, data, len, v, n)
				       : reader_add_option(r, id, data, len);
	}
	return ret;
}

static int v6_buffers(struct reader *r, struct cursor *c, const struct cursor *whole, uint32_t n_cpus)
{
	struct v6_instance *v = calloc(READER_BUFFERS_MAX, sizeof(*v));
	const char *mark = cursor_take(c, 10);
	size_t n = 0;
	int ret = v ? 0 : -ENOMEM;

	/* the agent's metadata ends here */
	if (!ret && mark && !memcmp(mark, "options  ", 10)) {
		ret = v6_options(r, c, v, &n);
		mark = NULL;
	} else if (mark) {
		c->p -= 10;
	}
	if (!ret && cursor_left(c) >= 10 && !memcmp(c->p, "flyrecord", 10))
		ret = take_flyrecord(r, c, "", n_cpus);
	for (size_t i = 0; i < n && !ret; i++) {
		struct cursor at = *whole;

		if (!cursor_take(&at, v[i].offset < SIZE_MAX ? (size_t)v[i].offset : SIZE_MAX))
			ret = reader_bad(r, "a buffer lies beyond the file");
		else
			ret = take_flyrecord(r, &at, v[i].name, n_cpus);
	}
	free(v);
	return ret;
}

/* All but the pages is read at once; the pages come last, so the front of the file is enough. */
static int open_v6(struct reader *r, uint64_t front)
{
	uint64_t len = r->size < READER_BODY_MAX ? r->size : READER_BODY_MAX;
	struct cursor whole, c;
	uint32_t n_cpus;
	int ret = reader_body(r, 0, len, false, &whole);

	if (ret)
		return ret;
	r->info.compression = "none";
	c = whole;
	cursor_take(&c, front);
	for (uint16_t id = DAT_HEADER_INFO; id <= DAT_CMDLINES && !ret; id++)
		ret = reader_part(r, id, &c);
	if (ret)
		return ret;
	n_cpus = cursor_u32(&c);
	if (c.bad || n_cpus > READER_CPUS_MAX)
		return reader_bad(r, "the number of CPUs");
	return v6_buffers(r, &c, &whole, n_cpus);
}

/* ---- both ------------------------------------------------------------------------------ */

static int open_file(struct reader *r)
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
	if ((strcmp(version, "6") && strcmp(version, "7")) || endian || longs != 8) {
		log_err(r->log, "version %.8s, %s-endian, %u-byte longs: not supported", version,
			endian ? "big" : "little", longs);
		return -ENOTSUP;
	}
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
	r->log = log;
	r->info.layout = page_layout_default;
	ret = fstat(fd, &st) < 0 ? -errno : 0;
	r->size = ret ? 0 : (uint64_t)st.st_size;
	if (!ret)
		ret = open_file(r);
	if (ret) {
		reader_close(r);
		return ret;
	}
	*out = r;
	return 0;
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
