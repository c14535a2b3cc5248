// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pages of a spool: their files, the ranges of them that count, other pages in their place, parts of
 * spools. */
#include "record/spool/spool-priv.h"

#define RESERVE_STEP (4u << 20)

static int open_pages(const struct spool *s, const char *dir, size_t buffer, unsigned int cpu, int flags)
{
	char name[48];
	int fd;

	snprintf(name, sizeof(name), "%s/%zu.%u", dir, buffer, cpu);
	fd = openat(s->dirfd, name, O_RDWR | O_CLOEXEC | flags, 0600);
	return fd < 0 ? -errno : fd;
}

static int spool_pages_find(const struct spool *s, size_t buffer, unsigned int cpu, bool *rewritten)
{
	int fd = s->read_only ? -ENOENT : open_pages(s, SPOOL_REPAIRED, buffer, cpu, 0);

	if (fd == -ENOENT && !s->read_only)
		fd = open_pages(s, SPOOL_JOINED, buffer, cpu, 0);
	*rewritten = fd != -ENOENT;
	if (fd == -ENOENT)
		fd = open_pages(s->whole ?: s, "pages", buffer, cpu, s->read_only ? 0 : O_CREAT);
	return fd;
}

int spool_pages_fd(const struct spool *s, size_t buffer, unsigned int cpu)
{
	bool rewritten;
	int fd = spool_pages_find(s, buffer, cpu, &rewritten);

	if (fd < 0)
		return fd;
	if (lseek(fd, 0, SEEK_END) < 0) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

/*
 * The file "range": the number (and 8 bytes unused), then a range for each CPU that a buffer may have: a
 * sparse file in which each has its place.
 */
static off_t range_at(size_t buffer, unsigned int cpu)
{
	return (off_t)((1 + buffer * SPOOL_CPUS_MAX + cpu) * sizeof(struct spool_range));
}

/* {0, UINT64_MAX} without a range. */
static struct spool_range range_read(const struct spool *s, off_t at)
{
	struct spool_range r = { 0, UINT64_MAX };
	int fd = openat(s->dirfd, "range", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return r;
	if (pread(fd, &r, sizeof(r), at) != sizeof(r))
		r = (struct spool_range){ 0, UINT64_MAX };
	close(fd);
	return r;
}

bool spool_has_ranges(const struct spool *s)
{
	return file_there(s->dirfd, "range");
}

uint64_t spool_pages_from(const struct spool *s, size_t buffer, unsigned int cpu)
{
	return range_read(s, range_at(buffer, cpu)).from;
}

int spool_pages_open(const struct spool *s, size_t buffer, unsigned int cpu, struct spool_range *out)
{
	struct stat st;
	bool rewritten;
	int fd = spool_pages_find(s, buffer, cpu, &rewritten);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	/* of what was rewritten all counts */
	*out = rewritten ? (struct spool_range){ 0, UINT64_MAX } : range_read(s, range_at(buffer, cpu));
	out->to = out->to < (uint64_t)st.st_size ? out->to : (uint64_t)st.st_size;
	out->from = out->from < out->to ? out->from : out->to;
	/* a page that a full disk or a kill cut off is no page */
	out->to -= (out->to - out->from) % s->buffers[buffer].page_size;
	return fd;
}

int spool_pages_walk(const struct spool *s, size_t buffer, unsigned int cpu, size_t before,
		     spool_page_fn *take, void *ctx)
{
	const size_t size = s->buffers[buffer].page_size;
	struct spool_range range = { 0 };
	int fd = spool_pages_open(s, buffer, cpu, &range);
	void *page = fd < 0 ? NULL : malloc(size);
	int ret = fd < 0 ? fd : page ? 0 : -ENOMEM;

	before *= size;
	range.from -= range.from < before ? range.from : before;
	for (uint64_t at = range.from; !ret && at < range.to; at += size) {
		ssize_t n = pread_all(fd, page, size, at);

		ret = n < 0 ? (int)n : take(ctx, page, size);
		if (ret == 1)
			ret = pwrite_all(fd, page, size, at);
	}
	free(page);
	fd_close(&fd);
	return ret;
}

int spool_set_ranges(struct spool *s, uint64_t number, const struct spool_range *ranges)
{
	const struct spool_range head = { .from = number };
	int fd = openat(s->dirfd, "range.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), ret;

	if (fd < 0)
		return -errno;
	ret = pwrite_all(fd, &head, sizeof(head), 0);
	for (size_t i = 0; i < s->n_buffers && !ret; i++) {
		const size_t n = s->buffers[i].n_cpus;

		ret = pwrite_all(fd, ranges, n * sizeof(*ranges), (uint64_t)range_at(i, 0));
		ranges += n;
	}
	close(fd);
	if (!ret && renameat(s->dirfd, "range.new", s->dirfd, "range") < 0)
		ret = -errno;
	return ret;
}

static int punch(int fd, uint64_t bytes)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0 ? -errno : 0;
}

int spool_forget(struct spool *s, size_t buffer, unsigned int cpu, uint64_t from)
{
	int fd = from ? spool_pages_fd(s, buffer, cpu) : -1, ret;

	if (fd < 0)
		return from ? fd : 0;
	ret = punch(fd, from);
	close(fd);
	return ret;
}

int spool_can_forget(int dirfd)
{
	static const char name[] = ".hyptrace-punch";
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), ret;

	if (fd < 0)
		return -errno;
	ret = write_all(fd, "", 1) ?: punch(fd, 1);
	close(fd);
	unlinkat(dirfd, name, 0);
	return ret;
}

char *spool_numbered(const struct spool *s, uint64_t number)
{
	const char *output = spool_get(s, "output");
	size_t stem;

	if (!output || !number)
		return output ? strdup(output) : NULL;
	stem = path_stem(output);
	return str_printf("%.*s.%03" PRIu64 "%s", (int)stem, output, number, output + stem);
}

char *spool_output(const struct spool *s)
{
	struct spool_range head = range_read(s, 0);

	return spool_numbered(s, head.from);
}

char *spool_next_output(const struct spool *s)
{
	uint64_t number = range_read(s, 0).from;
	char *path = spool_numbered(s, number);
	struct stat file, range;

	if (!path || stat(path, &file) || fstatat(s->dirfd, "range", &range, 0) ||
	    file.st_mtim.tv_sec < range.st_mtim.tv_sec ||
	    (file.st_mtim.tv_sec == range.st_mtim.tv_sec && file.st_mtim.tv_nsec < range.st_mtim.tv_nsec))
		return path;
	free(path);
	return spool_numbered(s, number + 1);
}

int spool_rewrite_fd(const struct spool *s, size_t buffer, unsigned int cpu)
{
	return open_pages(s, "pages.new", buffer, cpu, O_CREAT | O_TRUNC);
}

int spool_rewrite_end(struct spool *s, const char *purpose)
{
	return renameat(s->dirfd, "pages.new", s->dirfd, purpose) < 0 ? -errno : 0;
}

bool spool_is_rewritten(const struct spool *s, const char *purpose)
{
	return file_there(s->dirfd, purpose);
}

void spool_drop_missing_cpus(struct spool *s)
{
	for (size_t i = 0; i < s->n_buffers; i++) {
		unsigned int n = 0;
		char name[48];

		do
			snprintf(name, sizeof(name), "pages/%zu.%u", i, n);
		while (file_there(s->dirfd, name) && ++n < s->buffers[i].n_cpus);
		s->buffers[i].n_cpus = n ? n : 1;
	}
}

int spool_reserve(struct spool *s, uint64_t recorded)
{
	uint64_t want = (recorded / 4 / RESERVE_STEP + 1) * RESERVE_STEP;
	int ret;

	if (want <= s->reserved)
		return 0;
	if (s->reserve_fd < 0)
		s->reserve_fd = openat(s->dirfd, "reserve", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->reserve_fd < 0)
		return -errno;
	ret = -posix_fallocate(s->reserve_fd, 0, (off_t)want);
	if (!ret)
		s->reserved = want;
	return ret;
}

void spool_free_reserve(struct spool *s)
{
	fd_close(&s->reserve_fd);
	s->reserved = 0;
	unlinkat(s->dirfd, "reserve", 0);
}

int spool_part(struct spool **out, const struct spool *whole, const struct log *log)
{
	char *dir = str_printf("%s.part", whole->dir);
	struct buf options = { 0 };
	struct spool *part = NULL;
	int ret = dir ? spool_create(&part, dir, log) : -ENOMEM;

	free(dir);
	if (ret)
		return ret;
	for (size_t i = 0; i < whole->keys.n && !ret; i++) {
		const char *key = whole->keys.v[i];

		/* recover has nothing to do with a part */
		if (strcmp(key, "state") && strcmp(key, "boot_id"))
			ret = spool_set(part, key, whole->values.v[i]);
	}
	/* a text that the part appends to begins with the whole's content */
	if (!ret && !spool_get_text(whole, "options", &options))
		ret = spool_put_text(part, "options", options.data, options.len);
	buf_release(&options);
	for (size_t i = 0; i < whole->n_buffers && !ret; i++)
		ret = spool_add_buffer(part, &whole->buffers[i]);
	if (ret) {
		spool_remove(part);
		return ret;
	}
	part->whole = whole;
	*out = part;
	return 0;
}

bool spool_is_part(const struct spool *s)
{
	return s->whole;
}

void spool_remove_part(const struct spool *whole)
{
	char *dir = str_printf("%s.part", whole->dir);
	struct spool *part;

	if (dir && !spool_open(&part, dir, NULL))
		spool_remove(part);
	free(dir);
}
