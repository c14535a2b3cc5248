// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The directory that holds a recording until its trace.dat is written. It is opened
 * again only when nobody else could have made it; all numbers in it are bounded here.
 */
#include "spool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/spool-priv.h"
#include "spool/trust.h"
#include "util/array.h"

#define RESERVE_STEP (4u << 20)

/* The strings of a buffer, in the order of its file; the numbers follow. */
static const struct {
	const char *key;
	size_t offset;
} buffer_texts[] = {
	{ "name", offsetof(struct spool_buffer, name) },
	{ "clock", offsetof(struct spool_buffer, clock) },
	{ "path", offsetof(struct spool_buffer, path) },
	{ "kind", offsetof(struct spool_buffer, kind) },
};

static const char **buffer_text(const struct spool_buffer *b, size_t i)
{
	return (const char **)((uintptr_t)b + buffer_texts[i].offset);
}

static void spool_buffer_release(struct spool_buffer *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(buffer_texts); i++)
		free((void *)(uintptr_t)*buffer_text(b, i));
}

static int buffer_set_text(struct spool_buffer *b, size_t i, const char *value)
{
	const char **text = buffer_text(b, i);

	free((void *)(uintptr_t)*text);
	*text = strdup(value);
	return *text ? 0 : -ENOMEM;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_buffers; i++)
		spool_buffer_release(&s->buffers[i]);
	free(s->buffers);
	strlist_release(&s->keys);
	strlist_release(&s->values);
	fd_close(&s->reserve_fd);
	fd_close(&s->session_fd);
	fd_close(&s->dirfd);
	free(s->dir);
	free(s);
}

static struct spool *spool_new(const char *dir)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->dirfd = s->session_fd = s->reserve_fd = -1;
	s->dir = strdup(dir);
	if (!s->dir) {
		spool_close(s);
		return NULL;
	}
	for (char *end = s->dir + strlen(s->dir); end > s->dir + 1 && end[-1] == '/';)
		*--end = 0;
	return s;
}

/* Only when it is its caller's alone: from then on a name in it leads to what it did then. */
static int open_trusted(struct spool *s, const struct log *log)
{
	s->dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->dirfd < 0 ? -errno : spool_trust(s->dirfd, s->dir, log);
}

static int keep_key(void *ctx, const char *key, const char *value)
{
	struct spool *s = ctx;
	int ret = strlist_add(&s->keys, key);

	if (ret)
		return ret;
	ret = strlist_add(&s->values, value);
	if (ret) /* the lists stay of one length */
		free(s->keys.v[--s->keys.n]);
	return ret;
}

/* ---- making and removing it --------------------------------------------------------------- */

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

/* Where it is now: its path may have come to lead elsewhere. */
static int remove_dir(const struct spool *s)
{
	int parent = openat(s->dirfd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC), ret;

	if (parent < 0)
		return -errno;
	ret = unlinkat(parent, basename(s->dir), AT_REMOVEDIR) < 0 ? -errno : 0;
	close(parent);
	return ret;
}

/* What is in it only when it is locked, and so trusted. A kill half-way leaves nothing to recover. */
static int remove_all(struct spool *s)
{
	static const char *const dirs[] = { "pages",	  "pages.new", SPOOL_REPAIRED,
					    SPOOL_JOINED, "buffers",   "texts" };
	static const char *const files[] = { "reserve", "range", "range.new", "undo", "session" };

	if (s->session_fd < 0)
		return remove_dir(s);
	spool_set(s, "state", "removed");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		remove_files(s->dirfd, dirs[i]);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		unlinkat(s->dirfd, files[i], 0);
	return remove_dir(s);
}

int spool_remove(struct spool *s)
{
	int ret = remove_all(s);

	spool_close(s);
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

static int make_files(struct spool *s)
{
	int ret = lock_session(s, O_CREAT | O_EXCL);

	if (ret)
		return ret;
	if (mkdirat(s->dirfd, "texts", 0700) < 0 || mkdirat(s->dirfd, "buffers", 0700) < 0 ||
	    mkdirat(s->dirfd, "pages", 0700) < 0)
		return -errno;
	return spool_set(s, "spool", "1");
}

int spool_create(struct spool **out, const char *dir, const struct log *log)
{
	struct spool *s = spool_new(dir);
	int ret;

	if (!s)
		return -ENOMEM;
	if (mkdir(s->dir, 0700) < 0) {
		ret = -errno;
		goto out;
	}
	ret = open_trusted(s, log) ?: make_files(s);
	if (!ret) {
		*out = s;
		return 0;
	}
	remove_all(s);
out:
	if (ret == -EEXIST)
		log_err(log, "'%s' is there already: run `hyptrace recover %s`, or remove it", dir, dir);
	else
		log_err(log, "cannot make the spool '%s': %s", dir, errno_text(ret));
	spool_close(s);
	return ret;
}

/* ---- opening one that was left ----------------------------------------------------------- */

/* "key<TAB>value" lines; fn gets NUL-ended copies. A last line without newline was cut by a kill. */
static int load_pairs(struct spool *s, const char *name, size_t max,
		      int (*fn)(void *ctx, const char *key, const char *value), void *ctx)
{
	struct buf text = { 0 };
	int ret = read_file_at(s->dirfd, name, max, &text);
	char *nl, *tab;

	for (char *p = ret ? NULL : (char *)buf_str(&text); p && !ret && (nl = strchr(p, '\n')); p = nl + 1) {
		*nl = 0;
		tab = strchr(p, '\t');
		if (tab)
			*tab = 0;
		ret = tab ? fn(ctx, p, tab + 1) : -EBADMSG;
	}
	ret = ret ?: buf_status(&text);
	buf_release(&text);
	return ret;
}

static int load_buffer_key(void *ctx, const char *key, const char *value)
{
	struct spool_buffer *b = ctx;
	uint64_t n;

	for (size_t i = 0; i < ARRAY_SIZE(buffer_texts); i++)
		if (!strcmp(key, buffer_texts[i].key))
			return buffer_set_text(b, i, value);
	if (parse_u64(value, &n))
		return -EBADMSG;
	if (!strcmp(key, "page_size") && n >= 512 && n <= (1u << 20) && !(n & (n - 1)))
		b->page_size = (uint32_t)n;
	else if (!strcmp(key, "cpus") && n && n <= UINT32_MAX)
		b->n_cpus = (unsigned int)n;
	else
		return -EBADMSG;
	return 0;
}

/* A zeroed one behind the others, not yet counted; or NULL. */
static struct spool_buffer *next_buffer(struct spool *s)
{
	struct spool_buffer *v = array_grow(s->buffers, s->n_buffers, sizeof(*v));

	if (!v)
		return NULL;
	s->buffers = v;
	v[s->n_buffers] = (struct spool_buffer){ 0 };
	return &v[s->n_buffers];
}

/* -ENOENT: it was the last one before this. */
static int load_buffer(struct spool *s, const struct log *log)
{
	struct spool_buffer *b;
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "buffers/%zu", s->n_buffers);
	if (faccessat(s->dirfd, name, F_OK, 0) < 0)
		return -errno;
	if (s->n_buffers == SPOOL_BUFFERS_MAX) {
		log_err(log, "'%s' has more than %d buffers", s->dir, SPOOL_BUFFERS_MAX);
		return -EBADMSG;
	}
	b = next_buffer(s);
	if (!b)
		return -ENOMEM;
	s->n_buffers++;
	ret = load_pairs(s, name, 65536, load_buffer_key, b);
	if (ret)
		return ret;
	if (b->n_cpus > SPOOL_CPUS_MAX) {
		log_err(log, "'%s/%s' has more than %d CPUs", s->dir, name, SPOOL_CPUS_MAX);
		return -EBADMSG;
	}
	for (size_t i = 0; i < ARRAY_SIZE(buffer_texts); i++)
		if (!*buffer_text(b, i))
			return -EBADMSG;
	return b->page_size && b->n_cpus ? 0 : -EBADMSG;
}

static int open_session(struct spool *s)
{
	if (!s->read_only)
		return lock_session(s, 0);
	s->session_fd = openat(s->dirfd, "session", O_RDONLY | O_CLOEXEC);
	return s->session_fd < 0 ? -errno : 0;
}

static int load_spool(struct spool *s, const struct log *log)
{
	const char *version;
	int ret;

	ret = open_trusted(s, log) ?: open_session(s) ?: load_pairs(s, "session", 1 << 20, keep_key, s);
	if (ret)
		return ret;
	version = spool_get(s, "spool");
	if (!version || strcmp(version, "1"))
		return -EBADMSG;
	do
		ret = load_buffer(s, log);
	while (!ret);
	return ret == -ENOENT ? 0 : ret;
}

static int open_spool(struct spool **out, const char *dir, bool read_only, const struct log *log)
{
	struct spool *s = spool_new(dir);
	int ret = -ENOMEM;

	if (s) {
		s->read_only = read_only;
		ret = load_spool(s, log);
	}
	if (ret)
		spool_close(s);
	else
		*out = s;
	return ret;
}

int spool_open(struct spool **out, const char *dir, const struct log *log)
{
	return open_spool(out, dir, false, log);
}

int spool_open_live(struct spool **out, const char *dir, const struct log *log)
{
	return open_spool(out, dir, true, log);
}

bool spool_is_recording(struct spool *s)
{
	const char *state;

	if (!flock(s->session_fd, LOCK_SH | LOCK_NB)) {
		flock(s->session_fd, LOCK_UN);
		return false;
	}
	strlist_release(&s->keys);
	strlist_release(&s->values);
	if (load_pairs(s, "session", 1 << 20, keep_key, s))
		return false;
	state = spool_get(s, "state");
	return state && !strcmp(state, "armed");
}

/* ---- keys ---------------------------------------------------------------------- */

const char *spool_dir(const struct spool *s)
{
	return s->dir;
}

int spool_dirfd(const struct spool *s)
{
	return s->dirfd;
}

int spool_set(struct spool *s, const char *key, const char *value)
{
	struct buf line = { 0 };
	int ret;

	if (strpbrk(key, "\t\n") || strchr(value, '\n'))
		return -EINVAL;
	buf_printf(&line, "%s\t%s\n", key, value);
	ret = buf_status(&line) ?: write_all(s->session_fd, line.data, line.len);
	buf_release(&line);
	return ret ?: keep_key(s, key, value);
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
	int ret = boot_id_read(&id) ?: spool_set(s, "boot_id", (char *)id.data);

	buf_release(&id);
	return ret;
}

int spool_is_this_boot(const struct spool *s, bool *same)
{
	const char *then = spool_get(s, "boot_id");
	struct buf id = { 0 };
	int ret = then ? boot_id_read(&id) : 0;

	*same = then && !ret && !strcmp((char *)id.data, then);
	buf_release(&id);
	return ret;
}

/* ---- buffers and pages ------------------------------------------------------------------- */

static int write_buffer(const struct spool *s, const struct spool_buffer *b)
{
	struct buf text = { 0 };
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "buffers/%zu", s->n_buffers);
	for (size_t i = 0; i < ARRAY_SIZE(buffer_texts); i++)
		buf_printf(&text, "%s\t%s\n", buffer_texts[i].key, *buffer_text(b, i));
	buf_printf(&text, "page_size\t%u\ncpus\t%u\n", b->page_size, b->n_cpus);
	/* whole or not at all: a kill between would make a spool that is damaged */
	ret = buf_status(&text) ?: write_file_at(s->dirfd, "buffers/new", text.data, text.len);
	if (!ret && renameat(s->dirfd, "buffers/new", s->dirfd, name) < 0)
		ret = -errno;
	buf_release(&text);
	return ret;
}

int spool_add_buffer(struct spool *s, const struct spool_buffer *b)
{
	struct spool_buffer *copy = next_buffer(s);
	int ret = 0;

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(buffer_texts) && !ret; i++)
		ret = buffer_set_text(copy, i, *buffer_text(b, i));
	copy->page_size = b->page_size;
	copy->n_cpus = b->n_cpus;
	ret = ret ?: write_buffer(s, b);
	if (ret)
		spool_buffer_release(copy);
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

static int open_pages(const struct spool *s, const char *dir, size_t buffer, unsigned int cpu, int flags)
{
	char name[48];
	int fd;

	snprintf(name, sizeof(name), "%s/%zu.%u", dir, buffer, cpu);
	fd = openat(s->dirfd, name, O_RDWR | O_CLOEXEC | flags, 0600);
	return fd < 0 ? -errno : fd;
}

int spool_pages_find(const struct spool *s, size_t buffer, unsigned int cpu, bool *rewritten)
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

/* ---- other pages in the place of these ------------------------------------------- */

int spool_rewrite_begin(struct spool *s)
{
	remove_files(s->dirfd, "pages.new");
	return mkdirat(s->dirfd, "pages.new", 0700) < 0 ? -errno : 0;
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

/* ---- room for the file ------------------------------------------------------------------- */

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
