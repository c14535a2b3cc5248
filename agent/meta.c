// SPDX-License-Identifier: GPL-2.0-only
/* The head of a trace.dat that the recorder puts before the pages. */
#include "agent.h"

#include <sys/mman.h>

#include "file/dat/options.h"

/*
 * Metadata that the recorder puts before the pages: a trace.dat of version 7, not compressed, up to
 * its strings; the recorder adds options and buffers by itself. It is made in a memfd, piece by
 * piece: kallsyms can be larger than all the memory the agent should take.
 */

#define TEXT_MAX (1u << 20)
#define COPY_MAX (128u << 20)

struct out {
	struct dat_out o; /* its err is the first error of all */
	const struct serving *s;
	struct buf strings;
	struct dat_options options;
	uint64_t size_at; /* of the section begun */
};

static void meta_check(struct out *w, int ret)
{
	if (ret && !w->o.err)
		w->o.err = ret;
}

/* Begins a section, with an option for its place. */
static void meta_begin(struct out *w, uint16_t id, const char *name)
{
	uint64_t at = w->o.pos;

	if (id != DAT_DONE && id != DAT_STRINGS)
		meta_check(w, dat_options_add(&w->options, id, &at, sizeof(at)));
	dat_out_u16(&w->o, id);
	dat_out_u16(&w->o, 0);
	dat_out_u32(&w->o, (uint32_t)w->strings.len);
	w->size_at = w->o.pos;
	dat_out_u64(&w->o, 0);
	buf_add(&w->strings, name, strlen(name) + 1);
}

static void meta_end(struct out *w)
{
	dat_out_patch(&w->o, w->size_at, w->o.pos - w->size_at - 8, 8);
}

/*
 * Copies a file piece by piece, its size (4 or 8 bytes) before it. Unless it is needed, a file that is not
 * there, or not for us, is empty.
 */
static void meta_copy(struct out *w, int dirfd, const char *path, size_t size_bytes, bool needed)
{
	uint64_t at = w->o.pos, len = 0;
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	char piece[4096];
	ssize_t n = 0;

	if (fd < 0 && (needed || (errno != ENOENT && errno != EACCES && errno != EPERM && dirfd >= 0)))
		meta_check(w, -errno);
	dat_out_u32(&w->o, 0);
	if (size_bytes == 8)
		dat_out_u32(&w->o, 0);
	while (fd >= 0 && len < COPY_MAX && (n = read(fd, piece, sizeof(piece))) > 0) {
		dat_out_write(&w->o, piece, (size_t)n);
		len += (uint64_t)n;
	}
	if (n < 0)
		meta_check(w, -errno);
	fd_close(&fd);
	dat_out_patch(&w->o, at, len, size_bytes);
}

/* A file of the tracing directory. */
static void meta_file(struct out *w, const char *path)
{
	meta_copy(w, undo_dirfd(w->s->undo), path, 8, true);
}

static void meta_formats(struct out *w, const char *system)
{
	int dirfd = undo_dirfd(w->s->undo);
	struct strlist names = { 0 };
	char path[640];
	size_t n = 0;

	snprintf(path, sizeof(path), "events/%s", system);
	meta_check(w, read_dir_at(dirfd, path, &names));
	/* kept: those with a format */
	for (size_t i = 0; i < names.n; i++) {
		char *name = names.v[i];

		snprintf(path, sizeof(path), "events/%s/%s/format", system, name);
		names.v[i] = names.v[n];
		names.v[n] = name;
		n += file_there(dirfd, path);
	}
	dat_out_u32(&w->o, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "events/%s/%s/format", system, names.v[i]);
		meta_file(w, path);
	}
	strlist_release(&names);
}

static void meta_sections(struct out *w)
{
	const int dirfd = undo_dirfd(w->s->undo);
	struct strlist systems = { 0 }; /* with an event switched on */
	uint32_t n = 0;

	meta_begin(w, DAT_HEADER_INFO, "headers");
	dat_out_write(&w->o, "header_page", sizeof("header_page"));
	meta_file(w, "events/header_page");
	dat_out_write(&w->o, "header_event", sizeof("header_event"));
	meta_file(w, "events/header_event");
	meta_end(w);

	meta_begin(w, DAT_FTRACE_EVENTS, "ftrace events");
	meta_formats(w, "ftrace");
	meta_end(w);

	meta_check(w, instance_systems(w->s->inst, &systems));
	for (size_t i = 0; i < systems.n; i++)
		n += strcmp(systems.v[i], "ftrace") != 0;
	meta_begin(w, DAT_EVENT_FORMATS, "events format");
	dat_out_u32(&w->o, n);
	for (size_t i = 0; i < systems.n; i++) {
		if (!strcmp(systems.v[i], "ftrace"))
			continue;
		dat_out_write(&w->o, systems.v[i], strlen(systems.v[i]) + 1);
		meta_formats(w, systems.v[i]);
	}
	meta_end(w);
	strlist_release(&systems);

	meta_begin(w, DAT_KALLSYMS, "kallsyms");
	meta_copy(w, w->s->agent->proc_fd, "kallsyms", 4, false);
	meta_end(w);
	meta_begin(w, DAT_PRINTK, "printk");
	meta_copy(w, dirfd, "printk_formats", 4, false);
	meta_end(w);
	meta_begin(w, DAT_CMDLINES, "command lines");
	meta_copy(w, dirfd, "saved_cmdlines", 8, false);
	meta_end(w);
}

static int meta_options(struct out *w)
{
	struct dat_options *o = &w->options;
	const uint64_t next = 0;
	char path[INSTANCE_PATH];
	struct buf clock = { 0 };
	int ret;

	instance_file(w->s->inst, path, "trace_clock");
	ret = read_file_at(undo_dirfd(w->s->undo), path, TEXT_MAX, &clock);
	ret = ret ?: buf_str(&clock) ? dat_options_add_clock(o, buf_str(&clock)) : -ENOMEM;
	buf_release(&clock);
	return ret ?:
	       dat_options_add_uname(o) ?:
	       dat_options_add_text(o, DAT_VERSION, "hyptrace-agent " HYPTRACE_VERSION) ?:
	       dat_options_add_traceid(o, w->s->trace_id) ?:
	       dat_options_add(o, DAT_CPUCOUNT, &w->s->n_cpus, sizeof(w->s->n_cpus)) ?:
	       dat_options_add(o, DAT_DONE, &next, sizeof(next));
}

int meta_make(const struct serving *s)
{
	struct out w = { .s = s };
	int fd = memfd_create("metadata", MFD_CLOEXEC), ret;
	uint64_t options_at, at;

	if (fd < 0)
		return -errno;
	ret = dat_out_init(&w.o, fd);
	if (ret)
		goto out;
	dat_out_magic(&w.o, 7, s->page_size);
	/* compression's name and version */
	dat_out_write(&w.o, "none\0", 6);
	options_at = w.o.pos;
	dat_out_u64(&w.o, 0);
	meta_sections(&w);
	meta_check(&w, meta_options(&w));
	at = w.o.pos;
	meta_begin(&w, DAT_DONE, "options");
	for (size_t i = 0; i < w.options.n; i++) {
		const struct dat_option *o = &w.options.v[i];

		dat_out_u16(&w.o, o->id);
		dat_out_u32(&w.o, o->len);
		dat_out_write(&w.o, o->data, o->len);
	}
	meta_end(&w);
	dat_out_patch(&w.o, options_at, at, 8);
	/* its own name is in it too */
	meta_begin(&w, DAT_STRINGS, "strings");
	dat_out_write(&w.o, w.strings.data, w.strings.len);
	meta_end(&w);
	ret = w.strings.bad ? -ENOMEM : dat_out_flush(&w.o);
out:
	dat_out_release(&w.o);
	dat_options_release(&w.options);
	buf_release(&w.strings);
	if (!ret && lseek(fd, 0, SEEK_SET) < 0)
		ret = -errno;
	if (!ret)
		return fd;
	log_err(s->log, "cannot put together the event formats: %s", strerror(-ret));
	close(fd);
	return ret;
}
