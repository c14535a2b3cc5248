// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes a trace.dat anew: a part of it, pieces of it together, or all of it with other options. */
#include "file/dat/reader.h"

#include "base/cursor.h"
#include "base/files.h"
#include "base/map.h"

/* Everything that the new file is made of. */
struct copying {
	const struct dat_copy *c;
	const struct reader_info *info; /* of the first source */
	struct dat_file file;
	struct dat_option *options;
	int pages; /* those that are written, unpacked */
	uint64_t used;
	size_t seen; /* options, for CPUSTAT texts */
	struct buf names;
	const struct log *log;
};

/* Formats of one system stand together; those of "ftrace" come by themselves. */
static int copy_systems(struct copying *w)
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

static bool pid_listed(const void *pids, size_t i, const void *wanted)
{
	return ((const uint64_t *)pids)[i] == *(const uint64_t *)wanted;
}

/* Joins the sources' tables of task names, lines "PID NAME"; the last source's name of a pid counts. */
static int copy_names(struct copying *w)
{
	struct map seen = { 0 };
	uint64_t *pids = NULL, pid;
	const char *name;
	size_t n = 0, len;
	int ret = 0;

	w->file.cmdlines = w->info->cmdlines;
	if (w->c->n == 1)
		return 0;
	for (size_t k = w->c->n; k-- && !ret;) {
		const struct dat_text *t = &reader_info(w->c->v[k].reader)->cmdlines;
		struct cursor c = cursor_at(t->data, t->len);

		while (!ret && reader_task(&c, &pid, &name, &len)) {
			if (map_find(&seen, map_hash(pid), pid_listed, pids, &pid) != MAP_NONE)
				continue;
			buf_add_u64(&w->names, pid);
			buf_add(&w->names, " ", 1);
			buf_add(&w->names, name, len);
			buf_add(&w->names, "\n", 1);
			ret = map_push(&seen, map_hash(pid), &pids, &n, &pid, sizeof(pid));
		}
	}
	map_release(&seen);
	free(pids);
	w->file.cmdlines = (struct dat_text){ (const char *)w->names.data, w->names.len };
	return ret ?: buf_status(&w->names);
}

/* The file's own options; those of the writer are made anew. */
static int copy_own_options(struct copying *w)
{
	const struct reader_info *info = w->info;

	w->file.options = w->c->options;
	w->file.n_options = w->c->n_options;
	if (w->c->options)
		return 0;
	w->options = calloc(info->n_options + 1, sizeof(*w->options));
	if (!w->options)
		return -ENOMEM;
	w->file.options = w->options;
	for (size_t i = 0; i < info->n_options; i++) {
		const struct reader_option *o = &info->options[i];

		if (!dat_writes_option(o->id))
			w->options[w->file.n_options++] =
				(struct dat_option){ o->id, o->data.data, (uint32_t)o->data.len };
	}
	return 0;
}

/* Pages of one CPU on their way. */
struct copied_cpu {
	struct copying *w;
	struct page_layout layout;
	unsigned int cpu;
	struct page_writer writer; /* for pages at the edges */
	uint64_t last;		   /* time of the record that was seen last */
	int order;		   /* what `wanted` said of it */
	bool gap;		   /* the next page is marked: events are missing before it */
	uint64_t bytes;		   /* written */
};

static int copy_put(void *ctx, const void *page, size_t size)
{
	struct copied_cpu *p = ctx;
	int ret;

	if (p->gap) {
		page = memmove(p->writer.page, page, size);
		page_mark_missed(&p->layout, p->writer.page);
		p->gap = false;
	}
	ret = write_all(p->w->pages, page, size);
	p->bytes += ret ? 0 : size;
	return ret;
}

static int copy_wanted(const struct copied_cpu *p, uint64_t ts)
{
	const struct dat_copy *c = p->w->c;

	return c->wanted ? c->wanted(c->ctx, p->cpu, ts) : 0;
}

/* Writes the wanted records of a page that has others, too. */
static int copy_edge(struct copied_cpu *p, const uint8_t *page)
{
	struct page_reader r;
	struct page_event ev;
	bool first = true;
	int ret = page_reader_init(&r, &p->layout, page, p->layout.size), next;

	if (p->layout.data_offset != page_layout_default.data_offset)
		return log_fail(p->w->log, -ENOTSUP, "pages of a 32-bit kernel cannot be divided");
	while (!ret && (next = page_next(&r, &ev)) != 0) {
		if (next < 0) { /* damaged from here on */
			ret = page_write_lost(&p->writer, 0);
			break;
		}
		if (!copy_wanted(p, ev.ts)) {
			if (first && r.missed)
				ret = page_write_lost(&p->writer, r.missed_count);
			ret = ret ?: page_write(&p->writer, ev.ts, ev.data, ev.len);
		}
		first = false;
	}
	return ret ?: page_flush(&p->writer, true);
}

/* One without readable records is wanted or not by the time in its header, else as the page before. */
static int copy_page(struct copied_cpu *p, const uint8_t *page)
{
	struct page_reader r;
	struct page_event ev;
	bool some = false, others = false;
	int ret = page_reader_init(&r, &p->layout, page, p->layout.size);

	if (!ret)
		p->order = copy_wanted(p, r.ts);
	if (p->order > 0)
		return 0;
	while (!ret && (ret = page_next(&r, &ev)) == 1) {
		p->order = copy_wanted(p, ev.ts);
		p->last = ev.ts;
		some |= !p->order;
		others |= p->order != 0;
		ret = 0;
	}
	if (some && others)
		return copy_edge(p, page);
	return others || p->order ? 0 : copy_put(p, page, p->layout.size);
}

/* Pages of a CPU of one source. passed: see struct dat_copy. */
static int copy_cpu_pages(struct copied_cpu *p, const struct dat_source *s, size_t buffer, size_t cpu,
			  uint64_t *passed)
{
	uint64_t last = p->last;
	struct reader_pages *pages;
	const uint8_t *page;
	struct page_reader first;
	int ret = reader_pages_open(&pages, s->reader, buffer, cpu);

	if (ret)
		return ret;
	p->order = 0;
	/* 0: all its pages come before */
	ret = passed && *passed ? reader_pages_seek(pages, *passed * p->layout.size) : 1;
	for (bool begun = false; ret == 1 && p->order <= 0; begun = true) {
		ret = reader_pages_next(pages, &page);
		if (ret != 1)
			break;
		if (!begun && !page_reader_init(&first, &p->layout, page, p->layout.size) &&
		    first.ts < last) {
			log_err(p->w->log, "%s overlaps the piece before it: CPU %u goes back in time",
				s->name, p->cpu);
			ret = -EINVAL;
			break;
		}
		ret = copy_page(p, page) ?: 1;
		if (passed && p->order < 0)
			++*passed;
	}
	reader_pages_close(pages);
	if (ret == -EBADMSG)
		log_err(p->w->log, "%s: CPU %u has damaged pages", s->name, p->cpu);
	return ret < 0 ? ret : 0;
}

/* The same CPU of the same buffer in a source; false: it has none. */
static bool copy_find(const struct reader_info *info, const struct reader_buffer *like, unsigned int cpu,
		      size_t *buffer, size_t *index)
{
	for (*buffer = 0; *buffer < info->n_buffers; ++*buffer) {
		const struct reader_buffer *b = &info->buffers[*buffer];

		for (*index = 0; !strcmp(b->name, like->name) && *index < b->n_cpus; ++*index)
			if (b->cpus[*index].cpu == cpu)
				return true;
	}
	return false;
}

static int unpack_cpu(struct copying *w, size_t buffer, size_t i, struct dat_cpu *cpu, uint64_t *passed)
{
	const struct reader_buffer *b = &w->info->buffers[buffer];
	struct copied_cpu p = { .w = w, .layout = w->info->layout, .cpu = b->cpus[i].cpu };
	int ret = page_writer_init(&p.writer, b->page_size, copy_put, &p);

	p.layout.size = b->page_size;
	for (size_t k = 0; k < w->c->n && !ret; k++) {
		size_t at = buffer, index = i;

		p.gap |= w->c->v[k].gap;
		if (!k || copy_find(reader_info(w->c->v[k].reader), b, p.cpu, &at, &index))
			ret = copy_cpu_pages(&p, &w->c->v[k], at, index, passed);
	}
	if (!ret && p.gap && p.last) { /* no page came after it */
		p.writer.last_ts = p.last;
		ret = page_write_lost(&p.writer, 0) ?: page_flush(&p.writer, true);
	}
	page_writer_release(&p.writer);
	cpu->fd = w->pages;
	cpu->offset = w->used;
	cpu->size = p.bytes;
	w->used += p.bytes;
	return ret;
}

static int unpack_buffer(struct copying *w, size_t i, uint64_t *passed)
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
		int ret = unpack_cpu(w, i, k, cpu, passed ? &passed[k] : NULL);

		if (ret)
			return ret;
		free((void *)cpu->stat); /* a number that is there twice */
		cpu->stat = NULL;
		/* the next CPUSTAT text, which the options have in the order of buffers and CPUs */
		while (w->seen < w->info->n_options && !cpu->stat) {
			const struct reader_option *o = &w->info->options[w->seen++];

			if (o->id != DAT_CPUSTAT)
				continue;
			cpu->stat = strndup(o->data.data, o->data.len);
			if (!cpu->stat)
				return -ENOMEM;
		}
	}
	return 0;
}

/* A file without a name beside path, which is where there is room for it. */
static int open_beside(const char *path)
{
	char *name = str_printf("%s.pages.XXXXXX", path);
	int fd = name ? mkstemp(name) : -1;

	if (fd < 0)
		fd = name ? -errno : -ENOMEM;
	else
		unlink(name);
	free(name);
	return fd;
}

/* True if another source can be a piece of the same recording. */
static bool copy_fits(const struct copying *w, const struct dat_source *s)
{
	static const uint16_t ids[] = { DAT_TRACEID, DAT_TIME_SHIFT };
	const struct reader *first = w->c->v[0].reader;
	const struct reader_info *a = w->info, *b = reader_info(s->reader);
	bool same = a->page_size == b->page_size && a->n_buffers == b->n_buffers &&
		    a->n_formats == b->n_formats && a->header_page.len == b->header_page.len;
	const char *what = same ? NULL : "its buffers or events";

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		const struct reader_option *x = reader_option(first, ids[i]),
					   *y = reader_option(s->reader, ids[i]);

		if (!x != !y ||
		    (x && (x->data.len != y->data.len || memcmp(x->data.data, y->data.data, x->data.len))))
			what = ids[i] == DAT_TRACEID ? "its TRACEID" : "its clock's offsets";
	}
	for (size_t i = 0; same && i < a->n_formats; i++)
		if (a->formats[i].text.len != b->formats[i].text.len ||
		    memcmp(a->formats[i].text.data, b->formats[i].text.data, a->formats[i].text.len))
			what = "its events' formats";
	for (size_t i = 0; same && i < a->n_buffers; i++)
		if (strcmp(a->buffers[i].name, b->buffers[i].name) ||
		    a->buffers[i].page_size != b->buffers[i].page_size)
			what = "its buffers";
	if (what)
		log_err(w->log, "%s is no piece of the recording of %s: %s differ", s->name, w->c->v[0].name,
			what);
	return !what;
}

int dat_copy(const struct dat_copy *c, int fd, const char *path, const struct log *log)
{
	const struct reader_info *info = reader_info(c->v[0].reader);
	struct copying w = { .c = c,
			     .info = info,
			     .file = { .version = info->version,
				       .compression = info->compression,
				       .page_size = info->page_size,
				       .header_page = info->header_page,
				       .header_event = info->header_event,
				       .printk = info->printk },
			     .log = log };
	uint64_t *passed = c->passed;
	int ret;

	w.pages = open_beside(path);
	ret = w.pages < 0 ? w.pages : reader_symbols(info, &w.file.kallsyms);
	ret = ret ?: copy_systems(&w) ?: copy_names(&w) ?: copy_own_options(&w);
	for (size_t i = 1; i < c->n && !ret; i++)
		ret = copy_fits(&w, &c->v[i]) ? 0 : -EINVAL;
	w.file.buffers = calloc(info->n_buffers + 1, sizeof(*w.file.buffers));
	w.file.n_buffers = w.file.buffers ? info->n_buffers : 0;
	ret = ret ?: w.file.buffers ? 0 : -ENOMEM;
	for (size_t i = 0; i < info->n_buffers && !ret; i++) {
		ret = unpack_buffer(&w, i, passed);
		passed = passed ? passed + info->buffers[i].n_cpus : NULL;
	}
	ret = ret ?: dat_write(&w.file, fd, log);
	for (size_t i = 0; i < w.file.n_buffers; i++) {
		for (uint32_t k = 0; w.file.buffers[i].cpus && k < w.file.buffers[i].n_cpus; k++)
			free((void *)w.file.buffers[i].cpus[k].stat);
		free(w.file.buffers[i].cpus);
	}
	free(w.file.buffers);
	free((void *)w.file.ftrace);
	free((void *)w.file.systems);
	free(w.options);
	buf_release(&w.names);
	fd_close(&w.pages);
	return ret;
}
