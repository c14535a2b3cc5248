// SPDX-License-Identifier: LGPL-2.1-or-later
/* Changes tracefs, and puts it back: each old value is in the journal before the new one is written. */
#include "record/tracefs/undo.h"
#include "record/plan/plan.h"
#include "base/cursor.h"

#include <sys/file.h>
#include <time.h>

#define VALUE_MAX (1u << 20)

#define CMDLINES_MAX 32768 /* the kernel's PID_MAX_DEFAULT */

/* A buffer is busy until its last reader is gone: worth a moment. */
#define BUSY_TRIES   10
#define BUSY_WAIT_NS 20000000L

/*
 * The journal of undo.h: entries in memory and, one line each, in a file. The file is input like any other
 * when it is read back.
 */

enum entry_op { ENTRY_WRITE, ENTRY_LIST, ENTRY_RMDIR };

struct entry {
	enum entry_op op;
	char *path;
	char *value; /* "" for ENTRY_RMDIR */
	off_t at;    /* offset of its line in the file */
};

struct journal {
	struct entry *v;
	size_t n;
	int fd; /* -1: in memory only */
	off_t end;
};

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
	value = strchr(path, '\t');
	if (op == ARRAY_SIZE(op_names) || !value != (op == ENTRY_RMDIR))
		return -EBADMSG;
	if (value)
		*value++ = 0;
	if (unescape(path) || (value && unescape(value)) || !entry_ok(op, path, value ?: ""))
		return -EBADMSG;
	return journal_keep(j, op, path, value ?: "", at);
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

/* Drops the newest entry, in the file too. */
static void journal_pop(struct journal *j)
{
	struct entry *e = &j->v[--j->n];

	j->end = e->at;
	/* a journal that cannot be cut gets the same changes undone twice: harmless */
	if (j->fd >= 0 && !ftruncate(j->fd, e->at))
		lseek(j->fd, e->at, SEEK_SET);
	entry_release(e);
}

/* Writes the line to the file, then keeps the entry. */
static int journal_add(struct journal *j, enum entry_op op, const char *path, const char *value)
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
	if (!ret) {
		j->end += (off_t)line.len;
		ret = j->fd < 0 ? 0 : write_all(j->fd, line.data, line.len);
		if (ret)
			journal_pop(j);
	}
	buf_release(&line);
	return ret;
}

/* ---- changes ---- */

struct undo {
	int dirfd;
	struct journal journal;
	struct locks locks;
	char *refused;
	struct log log;
};

int undo_lock(struct undo *u, const char *path)
{
	/* each makes and removes events of its own name there, in any order */
	if (!strcmp(path, "dynamic_events"))
		return 0;
	return locks_take(&u->locks, u->dirfd, path, u->journal.fd, &u->log);
}

static int undo_new(struct undo **out, const char *tracing_dir, const struct log *log)
{
	struct undo *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	u->journal.fd = -1;
	if (log)
		u->log = *log;
	u->dirfd = open(tracing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (u->dirfd < 0) {
		ret = log_fail(log, -errno, "cannot open the tracing directory '%s': %s%s", tracing_dir,
			       strerror(errno), errno == EACCES || errno == EPERM ? " (be root)" : "");
		undo_free(u);
		return ret;
	}
	*out = u;
	return 0;
}

int undo_open(struct undo **out, const char *tracing_dir, int dirfd, const char *journal,
	      const struct log *log)
{
	struct undo *u;
	int ret = undo_new(&u, tracing_dir, log);

	if (ret)
		return ret;
	if (journal) {
		u->journal.fd = openat(dirfd, journal, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (u->journal.fd < 0) {
			ret = log_fail_errno(log, -errno, "cannot create the journal '%s'", journal);
			undo_free(u);
			return ret;
		}
		flock(u->journal.fd, LOCK_EX | LOCK_NB);
	}
	*out = u;
	return 0;
}

int undo_load(struct undo **out, const char *tracing_dir, int dirfd, const char *journal,
	      const struct log *log)
{
	struct buf text = { 0 };
	size_t line = 0; /* the number of the one that makes no sense */
	struct journal *j;
	struct undo *u;
	struct stat st;
	int ret = undo_new(&u, tracing_dir, log);

	if (ret)
		return ret;
	j = &u->journal;
	/* a recording writes to the journal; links and devices are refused */
	j->fd = openat(dirfd, journal, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (j->fd < 0 || fstat(j->fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -EBADMSG;
	else if (flock(j->fd, LOCK_EX | LOCK_NB) < 0)
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
	ret = ret ?: read_fd(j->fd, JOURNAL_MAX, &text) ?: journal_parse(j, &text, &line);
	if (!ret && lseek(j->fd, j->end, SEEK_SET) < 0)
		ret = -errno;
	buf_release(&text);
	if (ret == -EBADMSG)
		log_err(log, "the journal '%s' makes no sense at line %zu", journal, line);
	else if (ret == -EBUSY)
		log_err(log, "the journal '%s' belongs to a recording that still runs", journal);
	else if (ret)
		log_err(log, "cannot read the journal '%s': %s", journal, strerror(-ret));
	for (size_t i = 0; i < j->n && !ret; i++) {
		ret = undo_lock(u, j->v[i].path);
		if (ret == -ENOENT) /* a buffer that is gone needs no lock */
			ret = 0;
	}
	if (ret)
		undo_free(u);
	else
		*out = u;
	return ret;
}

void undo_free(struct undo *u)
{
	if (!u)
		return;
	locks_release(&u->locks, !u->journal.n);
	for (size_t i = 0; i < u->journal.n; i++)
		entry_release(&u->journal.v[i]);
	free(u->journal.v);
	fd_close(&u->journal.fd);
	fd_close(&u->dirfd);
	free(u->refused);
	free(u);
}

int undo_dirfd(const struct undo *u)
{
	return u->dirfd;
}

const char *undo_refused(const struct undo *u)
{
	return u->refused;
}

size_t undo_mark(const struct undo *u)
{
	return u->journal.n;
}

static char *trimmed(const char *s, size_t len)
{
	while (len && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	return strndup(s, len);
}

/* Value to write to restore the file's present state. */
static char *shown_value(const char *path, const char *text)
{
	const char *name = basename(path);
	size_t len = strcspn(text, "\n");
	size_t n;
	const char *chosen = chosen_word(text, len, &n), *expanded = strstr(text, "(expanded: ");

	if (!strcmp(name, "filter"))
		return strncmp(text, "none\n", 5) ? trimmed(text, len) : strdup("0");
	if (!strcmp(name, "enable"))
		return strndup(text, strcspn(text, "*\n"));
	/* shown rounded up, maybe beyond what may be written; the largest gives the same */
	if (!strcmp(name, "saved_cmdlines_size") && strtoul(text, NULL, 10) > CMDLINES_MAX)
		return str_printf("%d", CMDLINES_MAX);
	if (!strncmp(name, "buffer_", 7)) {
		if (expanded)
			text = expanded + strlen("(expanded: ");
		return strndup(text, strcspn(text, " )\n"));
	}
	return chosen ? strndup(chosen, n) : trimmed(text, len);
}

int undo_read(struct undo *u, const char *path, char **value)
{
	struct buf text = { 0 };
	int ret = read_file_at(u->dirfd, path, VALUE_MAX, &text);

	*value = !ret && buf_str(&text) ? shown_value(path, buf_str(&text)) : NULL;
	buf_release(&text);
	return ret || *value ? ret : -ENOMEM;
}

/* One write(2), with the newline that echo would add. No O_TRUNC unless asked. */
static int undo_put(struct undo *u, const char *path, const char *value, int flags)
{
	int fd = openat(u->dirfd, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (!(flags & O_TRUNC))
		ret = write_line(fd, value);
	close(fd); /* tracefs refuses at write(2) or at open(2) */
	return ret;
}

/* Changes below an instance of ours end with its rmdir. */
static bool in_own_instance(const struct undo *u, const char *path)
{
	for (size_t i = 0; i < u->journal.n; i++) {
		const struct entry *e = &u->journal.v[i];
		size_t len = strlen(e->path);

		if (e->op == ENTRY_RMDIR && !strncmp(path, e->path, len) && path[len] == '/')
			return true;
	}
	return false;
}

static int undo_note(struct undo *u, enum entry_op op, const char *path, const char *value)
{
	int ret = undo_lock(u, path);

	if (ret)
		return ret;
	ret = journal_add(&u->journal, op, path, value);
	return ret ? log_fail_errno(&u->log, ret, "cannot note the state of '%s' in the journal", path) : 0;
}

/* A file that shows "X": its members differ. */
static int save_members(struct undo *u, const char *path)
{
	const char *name = basename(path);
	bool enable = !strcmp(name, "enable");
	char *dir = str_printf("%.*s%s", (int)(name - path), path, enable ? "." : "per_cpu");
	struct strlist subs = { 0 };
	int ret;

	if (!dir)
		return -ENOMEM;
	if (enable && name > path)
		dir[name - path - 1] = 0; /* "events/kvm/enable": in events/kvm */
	ret = read_dir_at(u->dirfd, dir, &subs);
	for (size_t i = 0; i < subs.n && !ret; i++) {
		char *member = str_printf("%s/%s/%s", dir, subs.v[i], name);

		/* one without the file is passed over */
		if (!member)
			ret = -ENOMEM;
		else if (file_there(u->dirfd, member))
			ret = undo_save(u, member);
		free(member);
	}
	strlist_release(&subs);
	free(dir);
	return ret;
}

static int save_value(struct undo *u, const char *path, const char *value)
{
	if (in_own_instance(u, path))
		return 0;
	return strcmp(value, "X") ? undo_note(u, ENTRY_WRITE, path, value) : save_members(u, path);
}

int undo_save(struct undo *u, const char *path)
{
	char *value = NULL;
	int ret = in_own_instance(u, path) ? 0 : undo_read(u, path, &value) ?: save_value(u, path, value);

	free(value);
	return ret;
}

void undo_drop(struct undo *u, size_t mark)
{
	while (u->journal.n > mark)
		journal_pop(&u->journal);
}

int undo_write(struct undo *u, const char *path, const char *value)
{
	size_t mark = undo_mark(u);
	char *old = NULL;
	int ret = undo_lock(u, path) ?: undo_read(u, path, &old);

	if (!ret && strcmp(old, value) && !(ret = save_value(u, path, old)) &&
	    (ret = undo_put(u, path, value, 0))) {
		if (!strcmp(basename(path), "filter"))
			undo_put(u, path, old, 0);
		undo_drop(u, mark);
	}
	free(old);
	return ret;
}

/* Reads and journals a list; forgets what was refused before. */
static int save_list(struct undo *u, const char *path, struct buf *old)
{
	int ret = list_read(u->dirfd, path, old);

	free(u->refused);
	u->refused = NULL;
	ret = ret ?: buf_str(old) ? 0 : -ENOMEM;
	return ret || in_own_instance(u, path) ? ret : undo_note(u, ENTRY_LIST, path, buf_str(old));
}

int undo_list(struct undo *u, const char *path, const char *value)
{
	struct buf old = { 0 };
	int ret = save_list(u, path, &old);
	size_t len = strlen(value);

	/* "a\nb" and "a\nb\n" are the same list */
	while (len && value[len - 1] == '\n')
		len--;
	while (old.len && old.data[old.len - 1] == '\n')
		old.len--;
	/* kept even when nothing changes now: events are then switched one by one */
	if (!ret && (old.len != len || memcmp(old.data, value, len)))
		ret = list_write(u->dirfd, path, value, false, &u->refused);
	buf_release(&old);
	return ret;
}

int undo_keep_list(struct undo *u, const char *path)
{
	struct buf old = { 0 };
	int ret = save_list(u, path, &old);

	buf_release(&old);
	return ret;
}

int undo_add(struct undo *u, const char *path, const char *line)
{
	size_t mark = undo_mark(u);
	int ret = undo_keep_list(u, path);

	if (ret)
		return ret;
	ret = undo_put(u, path, line, O_APPEND);
	if (ret) {
		u->refused = strdup(line);
		undo_drop(u, mark);
	}
	return ret;
}

/*
 * The parent is held for a moment, so that no other process locks the new directory, which its maker removes.
 */
int undo_mkdir(struct undo *u, const char *path)
{
	size_t mark = undo_mark(u);
	int parent = openat(u->dirfd, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret;

	if (parent >= 0)
		flock(parent, LOCK_EX);
	/* not after the journal's line: a recovery would remove somebody else's instance */
	ret = file_there(u->dirfd, path) ? -EEXIST : journal_add(&u->journal, ENTRY_RMDIR, path, "");
	if (!ret && mkdirat(u->dirfd, path, 0750)) {
		ret = -errno;
		journal_pop(&u->journal);
	}
	if (!ret && (ret = undo_lock(u, path)))
		undo_to(u, mark);
	fd_close(&parent);
	return ret;
}

int undo_poke(struct undo *u, const char *path, const char *value)
{
	return undo_put(u, path, value, *value ? 0 : O_TRUNC);
}

int undo_poke_in(struct undo *u, const char *dir, const char *file, const char *value)
{
	char path[1100];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return undo_poke(u, path, value);
}

int undo_at_end(struct undo *u, const char *path, const char *value)
{
	return undo_note(u, ENTRY_WRITE, path, value);
}

int undo_poke_until_end(struct undo *u, const char *path, const char *value, char *at_end)
{
	size_t mark = undo_mark(u);
	int ret = at_end ? undo_at_end(u, path, at_end) : -ENOMEM;

	free(at_end);
	ret = ret ?: undo_poke(u, path, value);
	if (ret)
		undo_drop(u, mark);
	return ret;
}

int undo_make_event(struct undo *u, const char *line)
{
	const char *file = "dynamic_events", *group = dynamic_behind_kind(line);

	if (!group || !file_there(u->dirfd, file))
		return group ? -ENOENT : -EINVAL;
	return undo_poke_until_end(u, file, line, str_printf("-:%.*s", (int)strcspn(group, " "), group));
}

static int undo_entry_once(struct undo *u, const struct entry *e)
{
	char *refused = NULL;
	int ret = 0;

	switch (e->op) {
	case ENTRY_WRITE:
		ret = undo_put(u, e->path, e->value, 0);
		/* a filter that was refused before is refused again: that is its old state */
		if (ret == -EINVAL && !strcmp(basename(e->path), "filter"))
			ret = 0;
		/* a kill came before what this removes: a probe, a command for a function */
		if (ret == -ENOENT && (*e->value == '-' || *e->value == '!') && file_there(u->dirfd, e->path))
			ret = 0;
		break;
	case ENTRY_LIST:
		ret = list_write(u->dirfd, e->path, e->value, true, &refused);
		if (refused)
			log_err(&u->log, "cannot put '%.*s' back into '%s'", (int)strcspn(refused, "\n"),
				refused, e->path);
		free(refused);
		break;
	case ENTRY_RMDIR:
		if (unlinkat(u->dirfd, e->path, AT_REMOVEDIR) < 0 && errno != ENOENT)
			ret = -errno;
		break;
	}
	return ret;
}

static int undo_entry(struct undo *u, const struct entry *e)
{
	char dir[1100];
	int ret = undo_entry_once(u, e);

	for (int i = 0; ret == -EBUSY && i < BUSY_TRIES; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = BUSY_WAIT_NS }, NULL);
		ret = undo_entry_once(u, e);
	}
	/* files whose directory is gone (a remote, a module's events) need no restoring */
	snprintf(dir, sizeof(dir), "%.*s", (int)(basename(e->path) - e->path), e->path);
	if (!ret || (ret == -ENOENT && *dir && !file_there(u->dirfd, dir)))
		return 0;
	if (e->op == ENTRY_RMDIR) {
		static const char *const files[][2] = {
			{ "tracing_on", "0" },
			{ "set_event", "" },
			{ "current_tracer", "nop" },
		};

		log_err(&u->log, "cannot remove '%s': %s", e->path, strerror(-ret));
		/* An instance that cannot be removed must at least not go on tracing. */
		for (size_t i = 0; i < ARRAY_SIZE(files); i++)
			undo_poke_in(u, e->path, files[i][0], files[i][1]);
	} else {
		log_err(&u->log, "cannot put '%s' back: %s", e->path, strerror(-ret));
	}
	return ret;
}

int undo_to(struct undo *u, size_t mark)
{
	int failed = 0;

	for (size_t i = u->journal.n; i-- > mark;) {
		if (undo_entry(u, &u->journal.v[i]))
			failed++;
		else if (!failed)
			journal_pop(&u->journal);
	}
	return failed;
}

int undo_all(struct undo *u)
{
	return undo_to(u, 0);
}

int undo_end(struct undo *u, const char *journal)
{
	int failed = u ? undo_all(u) : 0;

	if (u && journal && !failed)
		unlink(journal);
	undo_free(u);
	return failed;
}
