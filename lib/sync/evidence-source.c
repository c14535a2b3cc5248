// SPDX-License-Identifier: LGPL-2.1-or-later
/* A trace.dat as a source of evidence: its buffers' pages, its formats, its clock. */
#include "sync/evidence-source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dat/reader.h"

struct reader_walk {
	const struct reader *r;
	size_t buffer;
};

static int walk_reader(void *ctx, unsigned int cpu, sync_page_fn page, void *to)
{
	const struct reader_walk *w = ctx;
	const struct reader_buffer *b = &reader_info(w->r)->buffers[w->buffer];
	struct reader_pages *pages;
	const uint8_t *data;
	int ret = reader_pages_open(&pages, w->r, w->buffer, cpu);

	if (ret)
		return ret;
	while ((ret = reader_pages_next(pages, &data)) == 1) {
		ret = page(to, b->cpus[cpu].cpu, data, b->page_size);
		if (ret)
			break;
	}
	reader_pages_close(pages);
	return ret;
}

/* The text of an option; "" when there is none. Not NUL-ended. */
static bool option_has(const struct reader *r, uint16_t id, const char *word)
{
	const struct reader_option *o = reader_option(r, id);

	return o && memmem(o->data.data, o->data.len, word, strlen(word));
}

/*
 * On arm64 these come straight from the counter, whose rate is told by the architecture. The
 * TSC itself is the host's, moved, or else scaled by far more than a clock drifts.
 */
static bool is_steady(const struct reader *r)
{
	static const char *const clocks[] = { "[local]", "[global]", "[perf]", "[mono_raw]" };
	bool steady = false;

	if (option_has(r, DAT_TRACECLOCK, "[x86-tsc]"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		steady = steady || option_has(r, DAT_TRACECLOCK, clocks[i]);
	return steady && option_has(r, DAT_UNAME, "aarch64");
}

int sync_source_reader(struct sync_source *s, const struct reader *r)
{
	const struct reader_info *info = reader_info(r);
	struct dat_text *formats = calloc(info->n_formats + 1, sizeof(*formats));
	struct reader_walk *walkers = calloc(info->n_buffers + 1, sizeof(*walkers));

	*s = (struct sync_source){ .formats = formats, .n_formats = info->n_formats };
	s->buffers = calloc(info->n_buffers + 1, sizeof(*s->buffers));
	if (!formats || !walkers || !s->buffers) {
		free(formats);
		free(walkers);
		free(s->buffers);
		*s = (struct sync_source){ 0 };
		return -ENOMEM;
	}
	for (size_t i = 0; i < info->n_formats; i++)
		formats[i] = info->formats[i].text;
	for (size_t i = 0; i < info->n_buffers; i++) {
		walkers[i] = (struct reader_walk){ r, i };
		s->buffers[i] = (struct sync_buffer){ .layout = info->layout,
						      .n_cpus = (unsigned int)info->buffers[i].n_cpus,
						      .walk = walk_reader,
						      .ctx = &walkers[i] };
		s->buffers[i].layout.size = info->buffers[i].page_size;
	}
	s->n_buffers = info->n_buffers;
	s->own = walkers;
	s->steady = is_steady(r);
	s->cmdlines = info->cmdlines.data;
	s->cmdlines_len = info->cmdlines.len;
	return 0;
}

void sync_source_release(struct sync_source *s)
{
	if (s->own) {
		free(s->buffers);
		free((void *)s->formats);
	}
	free(s->own);
	*s = (struct sync_source){ 0 };
}
