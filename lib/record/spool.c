// SPDX-License-Identifier: LGPL-2.1-or-later
/* The directory that a recording is kept in while it runs. */
#include "record/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX     (256u << 20)
#define BUFFERS_MAX  1024
#define CPUS_MAX     65536
#define RESERVE_STEP (4u << 20)

struct spool {
	char *dir;
	int dirfd;
	int session_fd; /* locked */
	int reserve_fd;
	uint64_t reserved;
	struct strlist keys, values;
	struct spool_buffer *buffers;
	size_t n_buffers;
	const struct log *log;
};

static void buffer_release(struct spool_buffer *b)
{
	free((void *)(uintptr_t)b->name);
	free((void *)(uintptr_t)b->clock);
	free((void *)(uintptr_t)b->path);
	free((void *)(uintptr_t)b->kind);
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_buffers; i++)
		buffer_release(&s->buffers[i]);
	free(s->buffers);
	strlist_release(&s->keys);
	strlist_release(&s->values);
	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	if (s->session_fd >= 0)
		close(s->session_fd);
	if (s->dirfd >= 0)
		close(s->dirfd);
	free(s->dir);
	free(s);
}

static struct spool *spool_new(const char *dir, const struct log *log)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->dirfd = s->session_fd = s->reserve_fd = -1;
	s->log = log;
	s->dir = strdup(dir);
	if (!s->dir) {
		spool_close(s);
		return NULL;
	}
	return s;
}

static int remember(struct spool *s, const char *key, const char *value)
{
	int ret = strlist_add(&s->keys, key);

	if (ret)
		return ret;
	ret = strlist_add(&s->values, value);
	if (ret) /* the lists stay of one length */
		free(s->keys.v[--s->keys.n]);
	return ret;
}

static int lock_session(struct spool *s, int flags)
{
	s->session_fd = openat(s->dirfd, "session", O_RDWR | O_APPEND | O_CLOEXEC | flags, 0600);
	if (s->session_fd < 0)
		return -errno;
	if (flock(s->session_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

int spool_create(struct spool **out, const char *dir, const struct log *log)
{
	struct spool *s = spool_new(dir, log);
	int ret;

	if (!s)
		return -ENOMEM;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
		ret = -errno;
		goto fail;
	}
	s->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dirfd < 0) {
		ret = -errno;
		goto fail;
	}
	ret = lock_session(s, O_CREAT | O_EXCL);
	if (ret)
		goto fail;
	if (mkdirat(s->dirfd, "texts", 0700) < 0 || mkdirat(s->dirfd, "buffers", 0700) < 0 ||
	    mkdirat(s->dirfd, "pages", 0700) < 0) {
		ret = -errno;
		goto fail;
	}
	ret = spool_set(s, "spool", "1");
	if (ret)
		goto fail;
	*out = s;
	return 0;
fail:
	spool_close(s);
	return ret;
}

/* "key<TAB>value" lines; fn gets NUL-ended copies. A last line without newline was cut by a kill. */
static int each_pair(struct buf *text, int (*fn)(void *ctx, const char *key, const char *value), void *ctx)
{
	char *p = (char *)buf_str(text), *nl, *tab;
	int ret = p ? 0 : -ENOMEM;

	while (!ret && (nl = strchr(p, '\n'))) {
		*nl = 0;
		tab = strchr(p, '\t');
		if (!tab)
			return -EBADMSG;
		*tab = 0;
		ret = fn(ctx, p, tab + 1);
		p = nl + 1;
	}
	return ret;
}

static int load_key(void *ctx, const char *key, const char *value)
{
	return remember(ctx, key, value);
}

static int load_buffer_key(void *ctx, const char *key, const char *value)
{
	struct spool_buffer *b = ctx;
	const char **text = !strcmp(key, "name")    ? &b->name
			    : !strcmp(key, "clock") ? &b->clock
			    : !strcmp(key, "path")  ? &b->path
			    : !strcmp(key, "kind")  ? &b->kind
						    : NULL;
	uint64_t n;

	if (text) {
		free((void *)(uintptr_t)*text);
		*text = strdup(value);
		return *text ? 0 : -ENOMEM;
	}
	if (parse_u64(value, &n))
		return -EBADMSG;
	if (!strcmp(key, "page_size") && n >= 512 && n <= (1u << 20) && !(n & (n - 1)))
		b->page_size = (uint32_t)n;
	else if (!strcmp(key, "cpus") && n && n <= CPUS_MAX)
		b->n_cpus = (unsigned int)n;
	else
		return -EBADMSG;
	return 0;
}

static int grow_buffers(struct spool *s)
{
	struct spool_buffer *v = realloc(s->buffers, (s->n_buffers + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	s->buffers = v;
	v[s->n_buffers] = (struct spool_buffer){ 0 };
	return 0;
}

static int load_buffers(struct spool *s)
{
	for (;;) {
		struct buf text = { 0 };
		struct spool_buffer *b;
		char name[32];
		int ret;

		snprintf(name, sizeof(name), "buffers/%zu", s->n_buffers);
		ret = read_file_at(s->dirfd, name, 65536, &text);
		if (ret == -ENOENT)
			return 0;
		if (!ret)
			ret = s->n_buffers < BUFFERS_MAX ? grow_buffers(s) : -EBADMSG;
		if (ret) {
			buf_release(&text);
			return ret;
		}
		b = &s->buffers[s->n_buffers++];
		ret = each_pair(&text, load_buffer_key, b);
		buf_release(&text);
		if (!ret && (!b->name || !b->clock || !b->path || !b->kind || !b->page_size || !b->n_cpus))
			ret = -EBADMSG;
		if (ret)
			return ret;
	}
}

static int rewrite_complete(struct spool *s);

int spool_open(struct spool **out, const char *dir, const struct log *log)
{
	struct spool *s = spool_new(dir, log);
	struct buf text = { 0 };
	int ret;

	if (!s)
		return -ENOMEM;
	s->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = s->dirfd < 0 ? -errno : lock_session(s, 0);
	if (!ret)
		ret = read_file_at(s->dirfd, "session", 1 << 20, &text);
	if (!ret)
		ret = each_pair(&text, load_key, s);
	buf_release(&text);
	if (!ret && (!spool_get(s, "spool") || strcmp(spool_get(s, "spool"), "1")))
		ret = -EBADMSG;
	if (!ret)
		ret = load_buffers(s);
	if (!ret)
		ret = rewrite_complete(s);
	if (ret) {
		spool_close(s);
		return ret;
	}
	*out = s;
	return 0;
}

static void remove_files(int parent, const char *name)
{
	DIR *d = open_dir_at(parent, name);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	unlinkat(parent, name, AT_REMOVEDIR);
}

int spool_remove(struct spool *s)
{
	int ret;

	remove_files(s->dirfd, "pages");
	remove_files(s->dirfd, "pages.new");
	remove_files(s->dirfd, "rewritten");
	remove_files(s->dirfd, "buffers");
	remove_files(s->dirfd, "texts");
	unlinkat(s->dirfd, "reserve", 0);
	unlinkat(s->dirfd, "undo", 0);
	unlinkat(s->dirfd, "session", 0);
	ret = rmdir(s->dir) < 0 ? -errno : 0;
	spool_close(s);
	return ret;
}

const char *spool_dir(const struct spool *s)
{
	return s->dir;
}

char *spool_path(const struct spool *s, const char *name)
{
	return str_printf("%s/%s", s->dir, name);
}

int spool_set(struct spool *s, const char *key, const char *value)
{
	struct buf line = { 0 };
	int ret;

	if (strpbrk(key, "\t\n") || strchr(value, '\n'))
		return -EINVAL;
	buf_printf(&line, "%s\t%s\n", key, value);
	ret = buf_status(&line);
	if (!ret)
		ret = write_all(s->session_fd, line.data, line.len);
	buf_release(&line);
	return ret ? ret : remember(s, key, value);
}

int spool_set_number(struct spool *s, const char *key, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return spool_set(s, key, text);
}

const char *spool_get(const struct spool *s, const char *key)
{
	for (size_t i = s->keys.n; i--;)
		if (!strcmp(s->keys.v[i], key))
			return s->values.v[i];
	return NULL;
}

uint64_t spool_get_number(const struct spool *s, const char *key, uint64_t otherwise)
{
	const char *value = spool_get(s, key);
	uint64_t n;

	return value && !parse_u64(value, &n) ? n : otherwise;
}

static int boot_id_read(struct buf *out)
{
	int ret = read_file("/proc/sys/kernel/random/boot_id", 128, out);

	if (ret)
		return ret;
	if (!buf_str(out))
		return -ENOMEM;
	out->data[strcspn((char *)out->data, "\n")] = 0;
	return 0;
}

int spool_set_boot_id(struct spool *s)
{
	struct buf id = { 0 };
	int ret = boot_id_read(&id);

	if (!ret)
		ret = spool_set(s, "boot_id", (char *)id.data);
	buf_release(&id);
	return ret;
}

bool spool_is_this_boot(const struct spool *s)
{
	const char *then = spool_get(s, "boot_id");
	struct buf id = { 0 };
	bool same = then && !boot_id_read(&id) && !strcmp((char *)id.data, then);

	buf_release(&id);
	return same;
}

static int text_name(char *out, size_t size, const char *name)
{
	if (strchr(name, '/') || name[0] == '.' || !*name)
		return -EINVAL;
	return (size_t)snprintf(out, size, "texts/%s", name) < size ? 0 : -ENAMETOOLONG;
}

int spool_put_text(struct spool *s, const char *name, const void *data, size_t len)
{
	char path[128];
	int ret = text_name(path, sizeof(path), name);

	return ret ? ret : write_file_at(s->dirfd, path, data, len);
}

int spool_append_text(struct spool *s, const char *name, const void *data, size_t len)
{
	char path[128];
	int fd, ret = text_name(path, sizeof(path), name);

	if (ret)
		return ret;
	fd = openat(s->dirfd, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = write_all(fd, data, len);
	close(fd);
	return ret;
}

int spool_get_text(const struct spool *s, const char *name, struct buf *out)
{
	char path[128];
	int ret = text_name(path, sizeof(path), name);

	return ret ? ret : read_file_at(s->dirfd, path, TEXT_MAX, out);
}

int spool_page_layout(const struct spool *s, struct page_layout *out)
{
	return page_layout_read(s->dirfd, "texts/header_page", out);
}

static char *dup_or_null(const char *s)
{
	return s ? strdup(s) : NULL;
}

int spool_add_buffer(struct spool *s, const struct spool_buffer *b)
{
	struct buf text = { 0 };
	struct spool_buffer *copy;
	char name[32];
	int ret = grow_buffers(s);

	if (ret)
		return ret;
	copy = &s->buffers[s->n_buffers];
	*copy = *b;
	copy->name = dup_or_null(b->name);
	copy->clock = dup_or_null(b->clock);
	copy->path = dup_or_null(b->path);
	copy->kind = dup_or_null(b->kind);
	snprintf(name, sizeof(name), "buffers/%zu", s->n_buffers);
	buf_printf(&text, "name\t%s\nclock\t%s\npath\t%s\nkind\t%s\npage_size\t%u\ncpus\t%u\n", b->name,
		   b->clock, b->path, b->kind, b->page_size, b->n_cpus);
	ret = buf_status(&text);
	if (!ret && (!copy->name || !copy->clock || !copy->path || !copy->kind))
		ret = -ENOMEM;
	if (!ret)
		ret = write_file_at(s->dirfd, name, text.data, text.len);
	buf_release(&text);
	if (ret)
		buffer_release(copy);
	else
		s->n_buffers++;
	return ret;
}

size_t spool_n_buffers(const struct spool *s)
{
	return s->n_buffers;
}

const struct spool_buffer *spool_buffer(const struct spool *s, size_t i)
{
	return i < s->n_buffers ? &s->buffers[i] : NULL;
}

int spool_pages_fd(const struct spool *s, size_t buffer, unsigned int cpu)
{
	char name[48];
	int fd;

	snprintf(name, sizeof(name), "pages/%zu.%u", buffer, cpu);
	fd = openat(s->dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (lseek(fd, 0, SEEK_END) < 0) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

/* ---- other pages in the place of these ------------------------------------------- */

int spool_rewrite_begin(struct spool *s)
{
	remove_files(s->dirfd, "pages.new");
	return mkdirat(s->dirfd, "pages.new", 0700) < 0 ? -errno : 0;
}

int spool_rewrite_fd(const struct spool *s, size_t buffer, unsigned int cpu)
{
	char name[48];
	int fd;

	snprintf(name, sizeof(name), "pages.new/%zu.%u", buffer, cpu);
	fd = openat(s->dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* Moves the files of rewritten/, if there is one, to pages/. */
static int rewrite_complete(struct spool *s)
{
	DIR *d = open_dir_at(s->dirfd, "rewritten");
	struct dirent *e;
	int ret = 0;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (!ret && (e = readdir(d))) {
		char name[300];

		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "pages/%s", e->d_name);
		ret = renameat(dirfd(d), e->d_name, s->dirfd, name) < 0 ? -errno : 0;
	}
	closedir(d);
	if (!ret)
		ret = spool_set(s, "rewritten", "1");
	if (!ret && unlinkat(s->dirfd, "rewritten", AT_REMOVEDIR) < 0)
		ret = -errno;
	return ret;
}

int spool_rewrite_end(struct spool *s)
{
	if (renameat(s->dirfd, "pages.new", s->dirfd, "rewritten") < 0)
		return -errno;
	return rewrite_complete(s);
}

bool spool_is_rewritten(const struct spool *s)
{
	return spool_get(s, "rewritten");
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
	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	s->reserve_fd = -1;
	s->reserved = 0;
	unlinkat(s->dirfd, "reserve", 0);
}
