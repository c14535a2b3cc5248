// SPDX-License-Identifier: LGPL-2.1-or-later
/* A trace.dat written anew beside itself with other options, and put in its place. */
#include "sync/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/outfile.h"

/* Everything that the new file is made of. */
struct rewrite {
	const struct reader *r;
	const struct reader_info *info;
	struct dat_file file;
	int pages; /* all of them, unpacked */
	uint64_t used;
	size_t seen; /* options, for CPUSTAT texts */
	const struct log *log;
};

/* ---- texts ----------------------------------------------------------------------- */

/* Formats of one system stand together; those of "ftrace" come by themselves. */
static int group_systems(struct rewrite *w)
{
	const struct reader_info *info = w->info;
	struct dat_text *texts = calloc(info->n_formats + 1, sizeof(*texts));
	struct dat_system *systems = calloc(info->n_formats + 1, sizeof(*systems));
	struct dat_system *last = NULL;

	w->file.ftrace = texts;
	w->file.systems = systems;
	if (!texts || !systems)
		return -ENOMEM;
	for (size_t i = 0; i < info->n_formats; i++) {
		const struct reader_format *f = &info->formats[i];

		texts[i] = f->text;
		if (!strcmp(f->system, "ftrace") && w->file.n_ftrace == i) {
			w->file.n_ftrace++;
			continue;
		}
		if (!last || strcmp(last->name, f->system)) {
			last = &systems[w->file.n_systems++];
			*last = (struct dat_system){ .name = f->system, .formats = &texts[i] };
		}
		last->n++;
	}
	return 0;
}

/* The next CPUSTAT text, which the options have in the order of buffers and CPUs. */
static int take_stat(struct rewrite *w, struct dat_cpu *cpu)
{
	const struct reader_option *o;

	while (w->seen < w->info->n_options) {
		o = &w->info->options[w->seen++];
		if (o->id != DAT_CPUSTAT)
			continue;
		cpu->stat = strndup(o->data.data, o->data.len);
		return cpu->stat ? 0 : -ENOMEM;
	}
	return 0;
}

/* ---- pages ------------------------------------------------------------------------- */

static int unpack_cpu(struct rewrite *w, size_t buffer, size_t i, struct dat_cpu *cpu)
{
	uint32_t size = w->info->buffers[buffer].page_size;
	struct reader_pages *pages;
	const uint8_t *page;
	int ret = reader_pages_open(&pages, w->r, buffer, i);

	if (ret)
		return ret;
	cpu->fd = w->pages;
	cpu->offset = w->used;
	cpu->size = 0;
	while ((ret = reader_pages_next(pages, &page)) == 1) {
		ret = write_all(w->pages, page, size);
		if (ret)
			break;
		cpu->size += size;
	}
	w->used += cpu->size;
	reader_pages_close(pages);
	return ret;
}

static int unpack_buffer(struct rewrite *w, size_t i)
{
	const struct reader_buffer *b = &w->info->buffers[i];
	struct dat_buffer *out = &w->file.buffers[i];
	uint32_t n = 0;

	for (size_t k = 0; k < b->n_cpus; k++)
		n = b->cpus[k].cpu >= n ? b->cpus[k].cpu + 1 : n;
	*out = (struct dat_buffer){ .name = b->name, .clock = b->clock, .page_size = b->page_size };
	out->cpus = calloc(n + 1, sizeof(*out->cpus));
	if (!out->cpus)
		return -ENOMEM;
	out->n_cpus = n;
	for (uint32_t k = 0; k < n; k++)
		out->cpus[k].fd = -1;
	for (size_t k = 0; k < b->n_cpus; k++) {
		struct dat_cpu *cpu = &out->cpus[b->cpus[k].cpu];
		int ret = unpack_cpu(w, i, k, cpu);

		if (ret)
			return ret;
		free((void *)cpu->stat); /* a number that is there twice */
		cpu->stat = NULL;
		ret = take_stat(w, cpu);
		if (ret)
			return ret;
	}
	return 0;
}

static int unpack_all(struct rewrite *w)
{
	w->file.buffers = calloc(w->info->n_buffers + 1, sizeof(*w->file.buffers));
	if (!w->file.buffers)
		return -ENOMEM;
	w->file.n_buffers = w->info->n_buffers;
	for (size_t i = 0; i < w->info->n_buffers; i++) {
		int ret = unpack_buffer(w, i);

		if (ret)
			return ret;
	}
	return 0;
}

/* ---- the file ------------------------------------------------------------------------- */

/* A file without a name beside path, which is where there is room for it. */
static int open_beside(const char *path)
{
	char *name = str_printf("%s.pages.XXXXXX", path);
	int fd;

	if (!name)
		return -ENOMEM;
	fd = mkstemp(name);
	if (fd < 0)
		fd = -errno;
	else
		unlink(name);
	free(name);
	return fd;
}

/* As NAME.orig: a hard link, so that the file is there all the time; the first one kept stays. */
static int keep_original(const struct outfile *o)
{
	char *orig = str_printf("%s.orig", o->name);
	struct stat st;
	int ret = 0;

	if (!orig)
		return -ENOMEM;
	if (linkat(o->dir, o->name, o->dir, orig, 0) < 0)
		ret = -errno;
	if (ret == -EEXIST && !fstatat(o->dir, orig, &st, AT_SYMLINK_NOFOLLOW)) {
		if (S_ISREG(st.st_mode))
			ret = 0;
		else
			log_err(o->log, "'%s.orig' is there, and no file: the original cannot be kept",
				o->path);
	}
	free(orig);
	return ret;
}

static int write_beside(struct rewrite *w, const char *path)
{
	struct outfile out;
	int ret = outfile_open(&out, path, false, w->log);

	return ret ? ret : outfile_close(&out, dat_write(&w->file, out.fd, w->log) ?: keep_original(&out));
}

static void rewrite_release(struct rewrite *w)
{
	for (size_t i = 0; i < w->file.n_buffers; i++) {
		for (uint32_t k = 0; k < w->file.buffers[i].n_cpus; k++)
			free((void *)w->file.buffers[i].cpus[k].stat);
		free(w->file.buffers[i].cpus);
	}
	free(w->file.buffers);
	free((void *)w->file.ftrace);
	free((void *)w->file.systems);
	fd_close(&w->pages);
}

int sync_rewrite(const struct reader *r, const char *path, const struct dat_option *options, size_t n,
		 const struct log *log)
{
	const struct reader_info *info = reader_info(r);
	struct rewrite w = { .r = r,
			     .info = info,
			     .file = { .version = info->version,
				       .compression = info->compression,
				       .page_size = info->page_size,
				       .header_page = info->header_page,
				       .header_event = info->header_event,
				       .kallsyms = info->kallsyms,
				       .printk = info->printk,
				       .cmdlines = info->cmdlines,
				       .options = options,
				       .n_options = n },
			     .log = log };
	int ret;

	w.pages = open_beside(path);
	ret = w.pages < 0 ? w.pages : group_systems(&w);
	if (ret)
		goto out;
	ret = unpack_all(&w);
	if (ret)
		goto out;
	ret = write_beside(&w, path);
out:
	rewrite_release(&w);
	return ret;
}
