// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The directory that holds a recording until its trace.dat is written: its keys, buffers and texts. It is
 * reopened only if no other user could have made it; all its numbers are bounded here.
 */
#include "record/spool/spool.h"

#include <sys/file.h>

#include "record/spool/spool-priv.h"

#define TEXT_MAX (256u << 20)

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

/* Its present path: the old one may lead elsewhere by now. */
static int remove_dir(const struct spool *s)
{
	int parent = openat(s->dirfd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC), ret;

	if (parent < 0)
		return -errno;
	ret = unlinkat(parent, basename(s->dir), AT_REMOVEDIR) < 0 ? -errno : 0;
	close(parent);
	return ret;
}

/* Removes its files only when it is locked, and so trusted. A kill half-way leaves nothing to recover. */
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
	ret = open_trusted(s, log) ?: lock_session(s, O_CREAT | O_EXCL);
	if (!ret && (mkdirat(s->dirfd, "texts", 0700) < 0 || mkdirat(s->dirfd, "buffers", 0700) < 0 ||
		     mkdirat(s->dirfd, "pages", 0700) < 0))
		ret = -errno;
	ret = ret ?: spool_set(s, "spool", "1");
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
	ret = open_trusted(s, log);
	if (!ret && !read_only) {
		ret = lock_session(s, 0);
	} else if (!ret) {
		s->session_fd = openat(s->dirfd, "session", O_RDONLY | O_CLOEXEC);
		ret = s->session_fd < 0 ? -errno : 0;
	}
	ret = ret ?: load_pairs(s, "session", 1 << 20, keep_key, s);
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
