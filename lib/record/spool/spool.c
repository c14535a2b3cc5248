// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The directory that holds a recording until its trace.dat is written: its keys, buffers and texts. It is
 * reopened only if no other user could have made it; all its numbers are bounded here.
 */
#include "record/spool/spool.h"

#include <sys/file.h>

#define TEXT_MAX (256u << 20)

struct spool {
	char *dir;
	int dirfd;
	int session_fd; /* locked */
	int reserve_fd;
	bool read_only; /* somebody else's, who records into it */
	uint64_t reserved;
	struct strlist keys, values;
	struct spool_buffer *buffers;
	size_t n_buffers;
	const struct spool *whole; /* source of a part's pages and missing texts; NULL: no part */
};

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

static int trust_entries(const struct spool *s, const char *path, const struct log *log);

/* path: below s->dir; "": that itself, a directory and open. */
static int trust_path(const struct spool *s, const char *path, const struct log *log)
{
	struct stat st;
	const char *why;

	if (fstatat(s->dirfd, path, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		return errno == ENOENT ? 0 : -errno; /* a live recorder removes files */
	why = file_distrust(&st);
	if (!why && S_ISDIR(st.st_mode) && strchr(path, '/'))
		why = "it is a directory where none belongs";
	if (!why)
		return S_ISDIR(st.st_mode) ? trust_entries(s, path, log) : 0;
	return log_fail(log, -EPERM, "'%s%s%s' is not trusted: %s", s->dir, *path ? "/" : "", path, why);
}

static int trust_entries(const struct spool *s, const char *path, const struct log *log)
{
	struct strlist names = { 0 };
	int ret = read_dir_at(s->dirfd, *path ? path : ".", &names);

	for (size_t i = 0; i < names.n && !ret; i++) {
		char *below = str_printf("%s%s%s", path, *path ? "/" : "", names.v[i]);

		ret = below ? trust_path(s, below, log) : -ENOMEM;
		free(below);
	}
	strlist_release(&names);
	return ret;
}

/*
 * Opens the spool's directory if it and all in it, two levels deep, belong to the effective user: plain files
 * with one name and directories, not writable for others (a group's right by an ACL shows in the mode). From
 * then on no other user can change the target of a name in it. -EPERM: they do not (logged).
 */
static int open_trusted(struct spool *s, const struct log *log)
{
	s->dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->dirfd < 0 ? -errno : trust_path(s, "", log);
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

int spool_rewrite_begin(struct spool *s)
{
	remove_files(s->dirfd, "pages.new");
	return mkdirat(s->dirfd, "pages.new", 0700) < 0 ? -errno : 0;
}

/*
 * Removes its files only when it is locked, and so trusted. A kill half-way leaves nothing to recover. The
 * directory goes by its present path: the old one may lead elsewhere by now.
 */
int spool_remove(struct spool *s)
{
	static const char *const dirs[] = { "pages",	  "pages.new", SPOOL_REPAIRED,
					    SPOOL_JOINED, "buffers",   "texts" };
	static const char *const files[] = { "reserve", "range", "range.new", "undo", "session" };
	int parent, ret;

	if (s->session_fd >= 0) {
		spool_set(s, "state", "removed");
		for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
			remove_files(s->dirfd, dirs[i]);
		for (size_t i = 0; i < ARRAY_SIZE(files); i++)
			unlinkat(s->dirfd, files[i], 0);
	}
	parent = openat(s->dirfd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ret = parent < 0 || unlinkat(parent, basename(s->dir), AT_REMOVEDIR) < 0 ? -errno : 0;
	fd_close(&parent);
	spool_close(s);
	return ret;
}

/* Locks it, too, unless it is somebody else's. */
static int open_session(struct spool *s, int flags)
{
	flags |= s->read_only ? O_RDONLY : O_RDWR | O_APPEND;
	s->session_fd = openat(s->dirfd, "session", O_CLOEXEC | flags, 0600);
	if (s->session_fd < 0)
		return -errno;
	if (!s->read_only && flock(s->session_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

int spool_create(struct spool **out, const char *dir, const struct log *log)
{
	struct spool *s = spool_new(dir);
	int ret;

	if (!s)
		return -ENOMEM;
	if (mkdir(s->dir, 0700) < 0) {
		ret = -errno;
		spool_close(s);
	} else {
		ret = open_trusted(s, log) ?: open_session(s, O_CREAT | O_EXCL);
		if (!ret && (mkdirat(s->dirfd, "texts", 0700) < 0 || mkdirat(s->dirfd, "buffers", 0700) < 0 ||
			     mkdirat(s->dirfd, "pages", 0700) < 0))
			ret = -errno;
		ret = ret ?: spool_set(s, "spool", "1");
		if (!ret) {
			*out = s;
			return 0;
		}
		spool_remove(s);
	}
	if (ret == -EEXIST)
		log_err(log, "'%s' is there already: run `hyptrace recover %s`, or remove it", dir, dir);
	else
		log_err(log, "cannot make the spool '%s': %s", dir, errno_text(ret));
	return ret;
}

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

/* -ENOENT: it was the last one before this. */
static int load_buffer(struct spool *s, const struct log *log)
{
	struct spool_buffer *b;
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "buffers/%zu", s->n_buffers);
	if (faccessat(s->dirfd, name, F_OK, 0) < 0)
		return -errno;
	if (s->n_buffers == SPOOL_BUFFERS_MAX)
		return log_fail(log, -EBADMSG, "'%s' has more than %d buffers", s->dir, SPOOL_BUFFERS_MAX);
	b = array_next(&s->buffers, s->n_buffers, sizeof(*b));
	if (!b)
		return -ENOMEM;
	s->n_buffers++;
	ret = load_pairs(s, name, 65536, load_buffer_key, b);
	if (ret)
		return ret;
	if (b->n_cpus > SPOOL_CPUS_MAX)
		return log_fail(log, -EBADMSG, "'%s/%s' has more than %d CPUs", s->dir, name, SPOOL_CPUS_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(buffer_texts); i++)
		if (!*buffer_text(b, i))
			return -EBADMSG;
	return b->page_size && b->n_cpus ? 0 : -EBADMSG;
}

static int open_spool(struct spool **out, const char *dir, bool read_only, const struct log *log)
{
	struct spool *s = spool_new(dir);
	const char *version;
	int ret;

	if (!s)
		return -ENOMEM;
	s->read_only = read_only;
	ret = open_trusted(s, log) ?: open_session(s, 0) ?: load_pairs(s, "session", 1 << 20, keep_key, s);
	version = ret ? NULL : spool_get(s, "spool");
	if (!ret && (!version || strcmp(version, "1")))
		ret = -EBADMSG;
	if (!ret) {
		do
			ret = load_buffer(s, log);
		while (!ret);
		ret = ret == -ENOENT ? 0 : ret;
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

static int boot_id_read(char id[64])
{
	return read_line_at(AT_FDCWD, id, 64, "/proc/sys/kernel/random/boot_id");
}

int spool_set_boot_id(struct spool *s)
{
	char id[64];

	return boot_id_read(id) ?: spool_set(s, "boot_id", id);
}

int spool_is_this_boot(const struct spool *s, bool *same)
{
	const char *then = spool_get(s, "boot_id");
	char id[64];
	int ret = then ? boot_id_read(id) : 0;

	*same = then && !ret && !strcmp(id, then);
	return ret;
}

int spool_add_buffer(struct spool *s, const struct spool_buffer *b)
{
	struct spool_buffer *copy = array_next(&s->buffers, s->n_buffers, sizeof(*copy));
	struct buf text = { 0 };
	char name[32];
	int ret = 0;

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(buffer_texts) && !ret; i++)
		ret = buffer_set_text(copy, i, *buffer_text(b, i));
	copy->page_size = b->page_size;
	copy->n_cpus = b->n_cpus;
	snprintf(name, sizeof(name), "buffers/%zu", s->n_buffers);
	for (size_t i = 0; i < ARRAY_SIZE(buffer_texts); i++)
		buf_printf(&text, "%s\t%s\n", buffer_texts[i].key, *buffer_text(b, i));
	buf_printf(&text, "page_size\t%u\ncpus\t%u\n", b->page_size, b->n_cpus);
	/* whole or not at all: a kill between would make a spool that is damaged */
	ret = ret ?: buf_status(&text) ?: write_file_at(s->dirfd, "buffers/new", text.data, text.len);
	if (!ret && renameat(s->dirfd, "buffers/new", s->dirfd, name) < 0)
		ret = -errno;
	buf_release(&text);
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

	if (ret)
		return ret;
	ret = write_file_at(spool_dirfd(s), path, data, len);
	if (ret) /* a part of it is of no use, and takes room on a full disk */
		unlinkat(spool_dirfd(s), path, 0);
	return ret;
}

int spool_append_text(struct spool *s, const char *name, const void *data, size_t len)
{
	char path[128];
	int fd, ret = text_name(path, sizeof(path), name);

	if (ret)
		return ret;
	fd = openat(spool_dirfd(s), path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = write_all(fd, data, len);
	close(fd);
	return ret;
}

int spool_get_text(const struct spool *s, const char *name, struct buf *out)
{
	char path[128];
	int ret = text_name(path, sizeof(path), name) ?: read_file_at(s->dirfd, path, TEXT_MAX, out);

	return ret == -ENOENT && s->whole ? spool_get_text(s->whole, name, out) : ret;
}

int spool_page_layout(const struct spool *s, struct page_layout *out)
{
	return page_layout_read((s->whole ?: s)->dirfd, "texts/header_page", out);
}

/* ---- pages: their files, the ranges of them that count, other pages in their place, parts of spools ---- */

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
	int fd = spool_pages_find(s, buffer, cpu, &rewritten), ret;
	off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

	if (fd < 0 || (end >= 0 && lseek(fd, end - end % s->buffers[buffer].page_size, SEEK_SET) >= 0))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
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
	struct spool_range r;
	int fd = openat(s->dirfd, "range", O_RDONLY | O_CLOEXEC);
	bool there = fd >= 0 && pread(fd, &r, sizeof(r), at) == sizeof(r);

	fd_close(&fd);
	return there ? r : (struct spool_range){ 0, UINT64_MAX };
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
	return spool_numbered(s, range_read(s, 0).from);
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
