// SPDX-License-Identifier: LGPL-2.1-or-later
/* Texts into the spool: event formats, symbols and names, of tracefs and /proc or of another trace.dat. */
#include "record/drain/spool-to-dat.h"

#include <zstd.h>

#include "base/cursor.h"
#include "base/workers.h"
#include "record/clock/counter.h"

#define FORMAT_MAX (1u << 20)
#define NAMES_MAX  (128u << 20)

void formats_add(struct buf *formats, const char *system, const void *format, size_t len)
{
	buf_printf(formats, "%s %zu\n", system, len);
	buf_add(formats, format, len);
}

static int collect_system(int dirfd, const char *system, struct buf *out, unsigned int *max_id)
{
	struct strlist events = { 0 };
	char path[300];
	int ret;

	snprintf(path, sizeof(path), "events/%s", system);
	ret = read_dir_at(dirfd, path, &events);
	for (size_t i = 0; i < events.n && !ret; i++) {
		struct buf format = { 0 };
		char event[600];
		unsigned int id;

		snprintf(event, sizeof(event), "%s/%s/format", path, events.v[i]);
		ret = read_file_at(dirfd, event, FORMAT_MAX, &format);
		if (!ret) {
			const char *text = buf_str(&format), *line = text ? strstr(text, "\nID:") : NULL;

			id = line && sscanf(line + 1, "ID: %u", &id) == 1 ? id : 0;
			if (id > *max_id)
				*max_id = id;
			formats_add(out, system, format.data, format.len);
		}
		buf_release(&format);
		/* enable and filter of the system, and events that vanish while we look */
		if (ret == -ENOENT || ret == -ENOTDIR)
			ret = 0;
	}
	strlist_release(&events);
	return ret;
}

static int keep_file(int dirfd, const char *path, const char *name, size_t max, struct spool *spool)
{
	struct buf text = { 0 };
	int ret = read_file_at(dirfd, path, max, &text) ?: spool_put_text(spool, name, text.data, text.len);

	buf_release(&text);
	return ret;
}

int collect_formats(int tracing_dirfd, const struct strlist *systems, struct spool *spool,
		    unsigned int *max_id, const struct log *log)
{
	struct buf formats = { 0 };
	int ret;

	*max_id = 0;
	ret = keep_file(tracing_dirfd, "events/header_page", "header_page", FORMAT_MAX, spool) ?:
	      keep_file(tracing_dirfd, "events/header_event", "header_event", FORMAT_MAX, spool) ?:
	      collect_system(tracing_dirfd, "ftrace", &formats, max_id);
	for (size_t i = 0; i < systems->n && !ret; i++)
		if (strcmp(systems->v[i], "ftrace"))
			ret = collect_system(tracing_dirfd, systems->v[i], &formats, max_id);
	ret = ret ?: buf_status(&formats) ?: spool_put_text(spool, "formats", formats.data, formats.len);
	if (ret)
		log_err(log, "cannot read the event formats: %s", errno_text(ret));
	buf_release(&formats);
	return ret;
}

/* Without them a recording is still one; -ENOSPC: no room for them. */
static int keep_names(int dirfd, const char *name, struct spool *spool, const struct log *log)
{
	int ret = keep_file(dirfd, name, name, NAMES_MAX, spool);

	if (ret && ret != -ENOSPC && ret != -ENOENT)
		log_warn(log, "cannot read %s: %s; names are left out", name, errno_text(ret));
	return ret == -ENOSPC ? ret : 0;
}

int collect_names(int tracing_dirfd, struct spool *spool, const struct log *log)
{
	int ret = keep_names(tracing_dirfd, "printk_formats", spool, log);
	int error = keep_names(tracing_dirfd, "saved_cmdlines", spool, log);

	return ret ?: error;
}

/* As one frame; the whole text at once is a quarter less work than pieces of it. */
static void read_symbols(void *symbols, size_t i)
{
	struct kernel_symbols *k = symbols;
	char *path = str_printf("%s/proc/kallsyms", k->root ?: "");
	struct buf text = { 0 };
	int ret = path ? read_file(path, NAMES_MAX, &text) : -ENOMEM;
	size_t room = ZSTD_compressBound(text.len), zipped = 0;
	uint32_t plain = (uint32_t)text.len;

	k->text.len = 0;
	if (!ret && plain && buf_room(&k->text, sizeof(plain) + room)) { /* a kernel may have none */
		buf_add(&k->text, &plain, sizeof(plain));
		zipped = ZSTD_compress(k->text.data + sizeof(plain), room, text.data, plain, 1);
	}
	ret = ret ?: buf_status(&k->text) ?: ZSTD_isError(zipped) ? -EIO : 0;
	k->error = ret == -ENOENT ? 0 : ret;
	k->text.len += ret ? 0 : zipped;
	buf_release(&text);
	free(path);
}

void kernel_symbols_read(struct kernel_symbols *k, struct spool *spool)
{
	if (k->reader)
		return;
	k->spool = spool;
	k->reader = workers_beside(read_symbols, k);
}

void kernel_symbols_keep(struct kernel_symbols *k, const struct log *log)
{
	workers_free(k->reader);
	k->reader = NULL;
	if (!k->error && k->text.len)
		k->error = spool_put_text(k->spool, "kallsyms.zst", k->text.data, k->text.len);
	if (k->error)
		log_warn(log, "the kernel's symbols are left out: %s", errno_text(k->error));
	k->error = 0;
	buf_release(&k->text);
}

void kernel_symbols_release(struct kernel_symbols *k)
{
	workers_free(k->reader);
	buf_release(&k->text);
}

int collect_pids(struct spool *spool, const int *pids, size_t n)
{
	struct buf listed = { 0 }, more = { 0 };
	const char *line;
	size_t len;
	int ret = spool_get_text(spool, "saved_cmdlines", &listed);

	if (ret && ret != -ENOENT)
		goto out; /* so that atoi() finds an end */
	ret = buf_str(&listed) ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && !ret; i++) {
		struct cursor c = cursor_at(listed.data, listed.len);
		bool there = false;
		char comm[64];

		while (!there && cursor_line(&c, &line, &len))
			there = atoi(line) == pids[i];
		if (!there && !read_line_at(AT_FDCWD, comm, sizeof(comm), "/proc/%d/comm", pids[i]))
			buf_printf(&more, "%d %s\n", pids[i], comm);
	}
	if (!ret && more.len)
		ret = spool_append_text(spool, "saved_cmdlines", more.data, more.len);
out:
	buf_release(&listed);
	buf_release(&more);
	return ret;
}

#define FORMATS_MAX (32u << 20) /* of a kernel: some 5 MB */

static int keep_text(struct spool *spool, const char *name, struct dat_text t)
{
	return t.len ? spool_put_text(spool, name, t.data, t.len) : 0;
}

int spool_keep_info(struct spool *spool, const struct reader_info *info, bool (*leave_out)(uint16_t id))
{
	struct buf formats = { 0 }, options = { 0 };
	struct dat_text symbols;
	int ret;

	for (size_t i = 0; i < info->n_formats; i++)
		formats_add(&formats, info->formats[i].system, info->formats[i].text.data,
			    info->formats[i].text.len);
	for (size_t i = 0; i < info->n_options; i++) {
		const struct reader_option *o = &info->options[i];

		if (!leave_out(o->id))
			dat_add_option(&options, o->id, o->data.data, (uint32_t)o->data.len);
	}
	ret = buf_status(&formats) ?: buf_status(&options);
	if (formats.len > FORMATS_MAX)
		ret = -EFBIG;
	ret = ret ?:
	      keep_text(spool, "header_page", info->header_page) ?:
	      keep_text(spool, "header_event", info->header_event) ?:
	      reader_symbols(info, &symbols) ?:
	      keep_text(spool, "kallsyms", symbols) ?:
	      keep_text(spool, "printk_formats", info->printk) ?:
	      keep_text(spool, "saved_cmdlines", info->cmdlines) ?:
	      spool_put_text(spool, "formats", formats.data, formats.len) ?:
	      spool_put_text(spool, "options", options.data, options.len);
	buf_release(&formats);
	buf_release(&options);
	return ret;
}

int collect_wall(struct spool *spool)
{
	const char *clock = spool_get(spool, "clock");
	int id = clock ? clock_marker_system(clock) : -1, ret;
	struct buf samples = { 0 };
	struct wall_sample now;

	if (id < 0)
		return 0;
	wall_shoot(id, &now);
	ret = spool_get_text(spool, "wall", &samples);
	samples.len = samples.len < sizeof(now) ? 0 : sizeof(now);
	buf_add(&samples, &now, sizeof(now));
	ret = ret && ret != -ENOENT ? ret : buf_status(&samples);
	ret = ret ?: spool_put_text(spool, "wall", samples.data, samples.len);
	buf_release(&samples);
	return ret;
}
