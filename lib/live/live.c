// SPDX-License-Identifier: LGPL-2.1-or-later
/* Looks at a recording that goes on: which of its pages are there, and a trace.dat of some of them. */
#include "live/live-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/repair.h"
#include "spool/range.h"

/* ---- opening ---------------------------------------------------------------------------- */

static int live_spool(struct live *l, const char *output, const struct log *log)
{
	char *beside = str_printf("%s.spool", output);
	struct stat st;
	int ret;

	if (!beside)
		return -ENOMEM;
	ret = spool_open_live(&l->spool, stat(output, &st) || !S_ISDIR(st.st_mode) ? beside : output, log);
	free(beside);
	return ret == -EBADMSG ? -EAGAIN : ret; /* keys and buffers are still being written */
}

/* Whose pages are ours, and whose the kernel's. */
static int live_layouts(struct live *l)
{
	struct page_layout kernel;
	int ret = spool_page_layout(l->spool, &kernel);
	uint32_t max = 0;

	if (ret)
		return ret;
	l->trims = calloc(l->file->n_buffers + 1, sizeof(*l->trims));
	l->layouts = calloc(l->file->n_buffers + 1, sizeof(*l->layouts));
	l->taken = calloc(l->file->n_buffers + 1, sizeof(*l->taken));
	if (!l->trims || !l->layouts || !l->taken)
		return -ENOMEM;
	for (size_t i = 0; i < l->file->n_buffers; i++) {
		struct dat_buffer *b = &l->file->buffers[i];
		const char *kind = spool_buffer(l->spool, i)->kind;

		l->layouts[i] =
			!strncmp(kind, "hyp-", 4) || !strcmp(kind, "profile") ? page_layout_default : kernel;
		l->layouts[i].size = b->page_size;
		max = b->page_size > max ? b->page_size : max;
		l->trims[i] = (struct live_trim){ .of = l, .layout = &l->layouts[i] };
		b->fix_page = live_trim_page; /* the job's own takes all pages from the first on */
		b->fix_ctx = &l->trims[i];
		l->taken[i] = calloc(b->n_cpus, sizeof(**l->taken));
		if (!l->taken[i])
			return -ENOMEM;
		for (unsigned int cpu = 0; cpu < b->n_cpus; cpu++)
			b->cpus[cpu].size = 0;
	}
	l->page = malloc(max + 1);
	return l->page ? 0 : -ENOMEM;
}

/* All its files stay open, for a recorder that has done its work removes them. */
static int live_load(struct live *l, const char *output, const struct log *log)
{
	int ret = live_spool(l, output, log);

	if (ret)
		return ret;
	if (!spool_is_recording(l->spool)) {
		const char *state = spool_get(l->spool, "state");

		return state ? -ENOENT : -EAGAIN;
	}
	ret = dat_job_open(&l->job, l->spool, log);
	if (ret)
		return ret == -ENOENT ? -EAGAIN : ret;
	l->file = dat_job_file(l->job);
	l->file->version = 7;
	l->file->compression = "none";
	return live_layouts(l);
}

int live_open(struct live **out, const char *output, const struct log *log)
{
	struct live *l = calloc(1, sizeof(*l));
	int ret = l ? live_load(l, output, log) : -ENOMEM;

	if (ret)
		live_close(l);
	else
		*out = l;
	return ret;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	for (size_t i = 0; l->taken && i < l->file->n_buffers; i++)
		free(l->taken[i]);
	free(l->taken);
	free(l->layouts);
	free(l->trims);
	free(l->page);
	dat_job_close(l->job);
	spool_close(l->spool);
	buf_release(&l->cmdlines);
	free(l);
}

bool live_is_early(const struct live *l)
{
	return spool_wants_repair(l->spool);
}

bool live_forgets(const struct live *l)
{
	return spool_has_ranges(l->spool);
}

/* ---- looking ---------------------------------------------------------------------------- */

/* The hypervisor's last page is written again and again as it grows. */
static uint64_t live_pages_end(const struct live *l, size_t buffer, uint64_t size, bool ended)
{
	const struct spool_buffer *b = spool_buffer(l->spool, buffer);
	uint64_t end = size / b->page_size * b->page_size;

	return !ended && end && !strncmp(b->kind, "hyp-", 4) ? end - b->page_size : end;
}

/* What the recorder has thrown away is gone here too. */
static void live_drop_gone(struct live *l, size_t buffer, unsigned int cpu)
{
	struct dat_cpu *c = &l->file->buffers[buffer].cpus[cpu];
	uint64_t from = spool_pages_from(l->spool, buffer, cpu);

	if (from <= c->offset)
		return;
	c->size = c->offset + c->size > from ? c->offset + c->size - from : 0;
	c->offset = from;
	l->taken[buffer][cpu] = 0;
}

int live_look(struct live *l, bool *ended)
{
	bool more = false;

	*ended = !spool_is_recording(l->spool); /* before the sizes: none grows behind it */
	for (size_t i = 0; i < l->file->n_buffers; i++) {
		struct dat_buffer *b = &l->file->buffers[i];

		for (unsigned int cpu = 0; cpu < b->n_cpus; cpu++) {
			struct dat_cpu *c = &b->cpus[cpu];
			struct stat st;
			uint64_t end;

			if (fstat(c->fd, &st) < 0)
				return -errno;
			end = live_pages_end(l, i, (uint64_t)st.st_size, *ended);
			more = more || end > c->offset + c->size;
			if (end > c->offset)
				c->size = end - c->offset;
			if (live_forgets(l))
				live_drop_gone(l, i, cpu);
		}
	}
	return more;
}

int live_write(struct live *l, int fd, const struct log *log)
{
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return dat_write(l->file, fd, log);
}

/* ---- dropping --------------------------------------------------------------------------- */

static uint64_t *live_taken_of(const struct live *l, const char *buffer, unsigned int cpu)
{
	for (size_t i = 0; i < l->file->n_buffers; i++)
		if (!strcmp(l->file->buffers[i].name, buffer) && cpu < l->file->buffers[i].n_cpus)
			return &l->taken[i][cpu];
	return NULL;
}

uint64_t live_taken(const struct live *l, const char *buffer, unsigned int cpu)
{
	const uint64_t *taken = live_taken_of(l, buffer, cpu);

	return taken ? *taken : 0;
}

int live_take(struct live *l, const char *buffer, unsigned int cpu, uint64_t n)
{
	uint64_t *taken = live_taken_of(l, buffer, cpu);

	if (!taken)
		return -EINVAL;
	*taken += n;
	return 0;
}

/* The page at that place of the file; -EIO: it is not there. */
static int live_page(struct live *l, size_t buffer, const struct dat_cpu *c, uint64_t at)
{
	size_t size = l->layouts[buffer].size;
	ssize_t n = pread_all(c->fd, l->page, size, at);

	return n < 0 ? (int)n : (size_t)n < size ? -EIO : 0;
}

static void live_drop(struct live *l, size_t buffer, struct dat_cpu *c)
{
	c->offset += l->layouts[buffer].size;
	c->size -= l->layouts[buffer].size;
}

/* As the merge finds them: none behind a damage. */
static uint64_t live_count(const struct live *l, size_t buffer)
{
	const struct page_layout *layout = &l->layouts[buffer];
	struct page_reader r;
	struct page_event ev;
	uint64_t n = 0;

	if (page_reader_init(&r, layout, l->page, layout->size))
		return 0;
	while (page_next(&r, &ev) == 1)
		n++;
	return n;
}

static int live_drop_taken_of(struct live *l, size_t buffer, unsigned int cpu)
{
	struct dat_cpu *c = &l->file->buffers[buffer].cpus[cpu];
	uint64_t *taken = &l->taken[buffer][cpu];

	while (*taken) {
		int ret = live_page(l, buffer, c, c->offset);
		uint64_t n = ret ? 0 : live_count(l, buffer);

		if (ret || n > *taken)
			return ret;
		*taken -= n;
		live_drop(l, buffer, c);
	}
	return 0;
}

int live_drop_taken(struct live *l)
{
	int ret = 0;

	for (size_t i = 0; i < l->file->n_buffers; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus && !ret; cpu++)
			ret = live_drop_taken_of(l, i, cpu);
	return ret;
}

/* When the page at that place began. */
static int live_begin(struct live *l, size_t buffer, const struct dat_cpu *c, uint64_t at, uint64_t *ts)
{
	int ret = live_page(l, buffer, c, at);

	memcpy(ts, l->page, sizeof(*ts));
	return ret;
}

static int live_drop_older_of(struct live *l, size_t buffer, struct dat_cpu *c, uint64_t than, bool *dropped)
{
	size_t size = l->layouts[buffer].size;

	while (c->size > size) {
		uint64_t next;
		int ret = live_begin(l, buffer, c, c->offset + size, &next);

		if (ret || next >= than)
			return ret;
		live_drop(l, buffer, c);
		*dropped = true;
	}
	return 0;
}

int live_drop_older(struct live *l, uint64_t ns)
{
	uint64_t newest = 0, ts;
	bool dropped = false;
	int ret = 0;

	for (size_t i = 0; i < l->file->n_buffers; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus && !ret; cpu++) {
			const struct dat_cpu *c = &l->file->buffers[i].cpus[cpu];

			if (!c->size)
				continue;
			ret = live_begin(l, i, c, c->offset + c->size - l->layouts[i].size, &ts);
			newest = !ret && ts > newest ? ts : newest;
		}
	for (size_t i = 0; i < l->file->n_buffers; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus && !ret; cpu++)
			ret = live_drop_older_of(l, i, &l->file->buffers[i].cpus[cpu],
						 newest > ns ? newest - ns : 0, &dropped);
	return ret ?: dropped;
}

/* ---- the newest record ------------------------------------------------------------------------ */

static uint64_t live_last(const struct live *l, size_t buffer)
{
	const struct page_layout *layout = &l->layouts[buffer];
	struct page_reader r;
	struct page_event ev;
	uint64_t ts = 0;

	if (page_reader_init(&r, layout, l->page, layout->size))
		return 0;
	while (page_next(&r, &ev) == 1)
		ts = ev.ts;
	return ts;
}

static int live_newest(struct live *l, uint64_t *newest)
{
	int ret = 0;

	*newest = 0;
	for (size_t i = 0; i < l->file->n_buffers; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus && !ret; cpu++) {
			const struct dat_cpu *c = &l->file->buffers[i].cpus[cpu];
			uint64_t ts;

			if (!c->size)
				continue;
			ret = live_page(l, i, c, c->offset + c->size - l->layouts[i].size);
			ts = ret ? 0 : live_last(l, i);
			*newest = ts > *newest ? ts : *newest;
		}
	return ret;
}

int live_cut(struct live *l, uint64_t ns, uint64_t *newest)
{
	int ret = live_drop_older(l, ns);

	ret = ret < 0 ? ret : live_newest(l, newest);
	l->from = *newest > ns ? *newest - ns : 0;
	return ret;
}
