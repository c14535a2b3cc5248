// SPDX-License-Identifier: LGPL-2.1-or-later
/* The journal of undo: entries in memory and in a file, which is checked when it is read back. */
#include "record/tracefs/undo-priv.h"
#include "record/tracefs/dir.h"
#include "base/cursor.h"

#include <sys/file.h>

#define JOURNAL_MAX (64u << 20)

static const char *const op_names[] = {
	[ENTRY_WRITE] = "write",
	[ENTRY_LIST] = "list",
	[ENTRY_RMDIR] = "rmdir",
};

static void add_escaped(struct buf *b, const char *s)
{
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;

		if (ch == '%' || ch < 0x20 || ch > 0x7e)
			buf_printf(b, "%%%02x", ch);
		else
			buf_add(b, s, 1);
	}
}

/* In place; -EBADMSG for anything that add_escaped() would not have written. */
static int unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;

		if (ch < 0x20 || ch > 0x7e)
			return -EBADMSG;
		if (ch == '%') {
			int hi = hex_value(s[1]);
			int lo = hi < 0 ? -1 : hex_value(s[2]);

			if (lo < 0 || !(hi << 4 | lo))
				return -EBADMSG;
			ch = (unsigned char)(hi << 4 | lo);
			s += 2;
		}
		*to++ = (char)ch;
	}
	*to = 0;
	return 0;
}

static bool entry_ok(enum entry_op op, const char *path, const char *value)
{
	if (!tracefs_path_ok(path))
		return false;
	if (op == ENTRY_RMDIR)
		return !*value && !strncmp(path, "instances/", 10) && !strchr(path + 10, '/');
	return op == ENTRY_LIST || !strchr(value, '\n');
}

static void entry_release(struct entry *e)
{
	free(e->path);
	free(e->value);
}

static int journal_keep(struct journal *j, enum entry_op op, const char *path, const char *value, off_t at)
{
	struct entry *e = array_next(&j->v, j->n, sizeof(*e));

	if (!e)
		return -ENOMEM;
	*e = (struct entry){ .op = op, .path = strdup(path), .value = strdup(value), .at = at };
	if (e->path && e->value) {
		j->n++;
		return 0;
	}
	entry_release(e);
	return -ENOMEM;
}

static int journal_parse_line(struct journal *j, char *line, off_t at)
{
	char *path = strchr(line, '\t'), *value;
	size_t op;

	if (!path)
		return -EBADMSG;
	*path++ = 0;
	for (op = 0; op < ARRAY_SIZE(op_names) && strcmp(line, op_names[op]); op++)
		;
	if (op == ARRAY_SIZE(op_names))
		return -EBADMSG;
	value = strchr(path, '\t');
	if (!value != (op == ENTRY_RMDIR))
		return -EBADMSG;
	if (value)
		*value++ = 0;
	if (unescape(path) || (value && unescape(value)))
		return -EBADMSG;
	if (!entry_ok(op, path, value ? value : ""))
		return -EBADMSG;
	return journal_keep(j, op, path, value ? value : "", at);
}

int journal_create(struct journal *j, int dirfd, const char *path)
{
	*j = (struct journal){ .fd = -1 };
	if (!path)
		return 0;
	j->fd = openat(dirfd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (j->fd < 0)
		return -errno;
	flock(j->fd, LOCK_EX | LOCK_NB);
	return 0;
}

static int journal_parse(struct journal *j, const struct buf *text, size_t *number)
{
	struct cursor c = cursor_at(text->data, text->len);
	const char *line;
	size_t len;

	for (*number = 1; cursor_line(&c, &line, &len); ++*number) {
		off_t at = (off_t)((const uint8_t *)line - text->data);
		char *copy;
		int ret;

		/* no newline: cut by the writer's death before the change was made */
		if ((size_t)at + len == text->len)
			break;
		if (memchr(line, 0, len))
			return -EBADMSG;
		copy = strndup(line, len);
		ret = copy ? journal_parse_line(j, copy, at) : -ENOMEM;
		free(copy);
		if (ret)
			return ret;
		j->end = at + (off_t)len + 1;
	}
	return 0;
}

int journal_load(struct journal *j, int dirfd, const char *path, size_t *line)
{
	struct buf text = { 0 };
	struct stat st;
	int ret = 0;

	/* a recording writes to the journal; links and devices are refused */
	*j = (struct journal){ .fd = openat(dirfd, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) };
	*line = 0;
	if (j->fd < 0)
		return -errno;
	if (fstat(j->fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -EBADMSG;
	else if (flock(j->fd, LOCK_EX | LOCK_NB) < 0)
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
	ret = ret ?: read_fd(j->fd, JOURNAL_MAX, &text) ?: journal_parse(j, &text, line);
	if (!ret && lseek(j->fd, j->end, SEEK_SET) < 0)
		ret = -errno;
	buf_release(&text);
	if (ret)
		journal_close(j);
	return ret;
}

void journal_close(struct journal *j)
{
	for (size_t i = 0; i < j->n; i++)
		entry_release(&j->v[i]);
	free(j->v);
	fd_close(&j->fd);
	*j = (struct journal){ .fd = -1 };
}

int journal_add(struct journal *j, enum entry_op op, const char *path, const char *value)
{
	struct buf line = { 0 };
	off_t at = j->end;
	int ret;

	if (!entry_ok(op, path, value))
		return -EINVAL;
	buf_printf(&line, "%s\t", op_names[op]);
	add_escaped(&line, path);
	if (op != ENTRY_RMDIR) {
		buf_addstr(&line, "\t");
		add_escaped(&line, value);
	}
	buf_addstr(&line, "\n");
	ret = buf_status(&line) ?: journal_keep(j, op, path, value, at);
	if (ret)
		goto out;
	j->end += (off_t)line.len;
	if (j->fd >= 0)
		ret = write_all(j->fd, line.data, line.len);
	if (ret)
		journal_pop(j);
out:
	buf_release(&line);
	return ret;
}

void journal_pop(struct journal *j)
{
	struct entry *e = &j->v[--j->n];

	j->end = e->at;
	/* a journal that cannot be cut gets the same changes undone twice: harmless */
	if (j->fd >= 0 && !ftruncate(j->fd, e->at))
		lseek(j->fd, e->at, SEEK_SET);
	entry_release(e);
}
