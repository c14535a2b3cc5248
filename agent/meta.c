// SPDX-License-Identifier: GPL-2.0-only
/* The head of a trace.dat that the recorder puts before the pages. */
#include "serving-state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file/dat/options.h"
#include "file/dat/out.h"
#include "base/array.h"
#include "base/files.h"

/*
 * Metadata that the recorder puts before the pages: a trace.dat of version 7, not compressed, up to
 * its strings; the recorder adds options and buffers by itself. It is made in a memfd, piece by
 * piece: kallsyms can be larger than all the memory the agent should take.
 */

#define TEXT_MAX (1u << 20)
#define COPY_MAX (128u << 20)

struct out {
	struct dat_out o;
	const struct serving *s;
	const struct strlist *systems; /* with an event switched on */
	struct buf strings;
	struct buf options;
	uint64_t size_at; /* of the section begun */
};

/* ---- sections ---------------------------------------------------------------- */

static void meta_begin(struct out *w, uint16_t id, const char *name)
{
	dat_out_u16(&w->o, id);
	dat_out_u16(&w->o, 0);
	dat_out_u32(&w->o, (uint32_t)w->strings.len);
	w->size_at = w->o.pos;
	dat_out_u64(&w->o, 0);
	buf_add(&w->strings, name, strlen(name) + 1);
}

static void meta_end(struct out *w)
{
	dat_out_patch(&w->o, w->size_at, w->o.pos - w->size_at - 8);
}

static void meta_option(struct out *w, uint16_t id, const void *data, uint32_t len)
{
	buf_add(&w->options, &id, sizeof(id));
	buf_add(&w->options, &len, sizeof(len));
	buf_add(&w->options, data, len);
}

/* ---- texts of tracefs ---------------------------------------------------------------- */

static int meta_text64(struct out *w, int dirfd, const char *path)
{
	struct buf text = { 0 };
	int ret = read_file_at(dirfd, path, TEXT_MAX, &text);

	if (!ret) {
		dat_out_u64(&w->o, text.len);
		dat_out_write(&w->o, text.data, text.len);
	}
	buf_release(&text);
	return ret;
}

/* Piece by piece, its size (32 or 64 bits) before it. What there is not, or not for us, is empty. */
static void meta_copy(struct out *w, int dirfd, const char *path, int size_bytes)
{
	uint64_t at = w->o.pos, len = 0;
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	uint32_t rest = 0;
	char piece[4096];
	ssize_t n = 0;

	if (fd < 0 && errno != ENOENT && errno != EACCES && errno != EPERM && dirfd >= 0)
		w->o.err = -errno;
	dat_out_u32(&w->o, 0);
	if (size_bytes == 8)
		dat_out_u32(&w->o, 0);
	while (fd >= 0 && len < COPY_MAX && (n = read(fd, piece, sizeof(piece))) > 0) {
		dat_out_write(&w->o, piece, (size_t)n);
		len += (uint64_t)n;
	}
	if (n < 0)
		w->o.err = -errno;
	fd_close(&fd);
	if (size_bytes == 8) {
		dat_out_patch(&w->o, at, len);
		return;
	}
	dat_out_flush(&w->o);
	rest = (uint32_t)len;
	if (!w->o.err && pwrite(w->o.fd, &rest, sizeof(rest), (off_t)at) != sizeof(rest))
		w->o.err = -EIO;
}

static int meta_formats(struct out *w, const char *system)
{
	int dirfd = undo_dirfd(w->s->undo), ret;
	struct strlist names = { 0 };
	char path[640];
	size_t n = 0;

	snprintf(path, sizeof(path), "events/%s", system);
	ret = read_dir_at(dirfd, path, &names);
	/* kept: those with a format */
	for (size_t i = 0; i < names.n; i++) {
		char *name = names.v[i];

		snprintf(path, sizeof(path), "events/%s/%s/format", system, name);
		names.v[i] = names.v[n];
		names.v[n] = name;
		n += file_there(dirfd, path);
	}
	dat_out_u32(&w->o, (uint32_t)n);
	for (size_t i = 0; i < n && !ret; i++) {
		snprintf(path, sizeof(path), "events/%s/%s/format", system, names.v[i]);
		ret = meta_text64(w, dirfd, path);
	}
	strlist_release(&names);
	return ret;
}

static int meta_systems(struct out *w)
{
	const struct strlist *s = w->systems;
	uint32_t n = 0;
	int ret = 0;

	for (size_t i = 0; i < s->n; i++)
		n += strcmp(s->v[i], "ftrace") != 0;
	dat_out_u32(&w->o, n);
	for (size_t i = 0; i < s->n && !ret; i++) {
		if (!strcmp(s->v[i], "ftrace"))
			continue;
		dat_out_write(&w->o, s->v[i], strlen(s->v[i]) + 1);
		ret = meta_formats(w, s->v[i]);
	}
	return ret;
}

static int meta_headers(struct out *w)
{
	static const char *const names[] = { "header_page", "header_event" };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !ret; i++) {
		char path[32] = "events/";

		strcat(path, names[i]);
		dat_out_write(&w->o, names[i], strlen(names[i]) + 1);
		ret = meta_text64(w, undo_dirfd(w->s->undo), path);
	}
	return ret;
}

static int meta_own_formats(struct out *w)
{
	return meta_formats(w, "ftrace");
}

/* Sections without `put` are copies of a file below /proc or the tracing directory. */
static const struct section {
	uint16_t id;
	const char *name;
	int (*put)(struct out *w);
	const char *file;
	int size_bytes;
	bool proc;
} sections[] = {
	{ DAT_HEADER_INFO, "headers", .put = meta_headers },
	{ DAT_FTRACE_EVENTS, "ftrace events", .put = meta_own_formats },
	{ DAT_EVENT_FORMATS, "events format", .put = meta_systems },
	{ DAT_KALLSYMS, "kallsyms", .file = "kallsyms", .size_bytes = 4, .proc = true },
	{ DAT_PRINTK, "printk", .file = "printk_formats", .size_bytes = 4 },
	{ DAT_CMDLINES, "command lines", .file = "saved_cmdlines", .size_bytes = 8 },
};

static int meta_section(struct out *w, const struct section *t)
{
	uint64_t at = w->o.pos;
	int ret = 0;

	meta_begin(w, t->id, t->name);
	if (t->put)
		ret = t->put(w);
	else
		meta_copy(w, t->proc ? w->s->agent->proc_fd : undo_dirfd(w->s->undo), t->file, t->size_bytes);
	meta_end(w);
	meta_option(w, t->id, &at, sizeof(at));
	return ret;
}

/* ---- the file ---------------------------------------------------------------- */

static int meta_all(struct out *w)
{
	uint64_t options_at, at, next = 0;
	int ret = 0;
	static const uint8_t magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g', '7', 0 };
	const uint8_t machine[] = { __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, 8 };
	struct dat_options o = { 0 };
	char path[INSTANCE_PATH];
	struct buf clock = { 0 };

	dat_out_write(&w->o, magic, sizeof(magic));
	dat_out_write(&w->o, machine, sizeof(machine));
	dat_out_u32(&w->o, w->s->page_size);
	/* compression's name and version */
	dat_out_write(&w->o, "none\0", 6);
	options_at = w->o.pos;
	dat_out_u64(&w->o, 0);
	for (size_t i = 0; i < ARRAY_SIZE(sections) && !ret; i++)
		ret = meta_section(w, &sections[i]);
	if (ret)
		return ret;
	instance_file(w->s->inst, path, "trace_clock");
	ret = read_file_at(undo_dirfd(w->s->undo), path, TEXT_MAX, &clock);
	if (!ret)
		ret = buf_str(&clock) ? dat_options_add_clock(&o, buf_str(&clock)) : -ENOMEM;
	ret = ret ?: dat_options_add_uname(&o);
	ret = ret ?: dat_options_add_text(&o, DAT_VERSION, "hyptrace-agent " HYPTRACE_VERSION);
	ret = ret ?: dat_options_add_traceid(&o, w->s->trace_id);
	for (size_t i = 0; i < o.n && !ret; i++)
		meta_option(w, o.v[i].id, o.v[i].data, o.v[i].len);
	meta_option(w, DAT_CPUCOUNT, &w->s->n_cpus, sizeof(w->s->n_cpus));
	meta_option(w, DAT_DONE, &next, sizeof(next));
	dat_options_release(&o);
	buf_release(&clock);
	ret = ret ? ret : buf_status(&w->options);
	if (ret)
		return ret;
	at = w->o.pos;
	meta_begin(w, DAT_DONE, "options");
	dat_out_write(&w->o, w->options.data, w->options.len);
	meta_end(w);
	dat_out_patch(&w->o, options_at, at);
	/* its own name is in it too */
	meta_begin(w, DAT_STRINGS, "strings");
	dat_out_write(&w->o, w->strings.data, w->strings.len);
	meta_end(w);
	return w->strings.bad ? -ENOMEM : dat_out_flush(&w->o);
}

int meta_make(const struct serving *s)
{
	struct strlist systems = { 0 };
	struct out w = { .s = s, .systems = &systems };
	int fd = memfd_create("metadata", MFD_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = instance_systems(s->inst, &systems) ?: dat_out_init(&w.o, fd) ?: meta_all(&w);
	dat_out_release(&w.o);
	strlist_release(&systems);
	buf_release(&w.strings);
	buf_release(&w.options);
	if (!ret && lseek(fd, 0, SEEK_SET) < 0)
		ret = -errno;
	if (!ret)
		return fd;
	log_err(s->log, "cannot put together the event formats: %s", strerror(-ret));
	close(fd);
	return ret;
}
