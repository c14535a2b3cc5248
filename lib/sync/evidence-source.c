// SPDX-License-Identifier: LGPL-2.1-or-later
/* A trace.dat as a source of evidence: its buffers' pages, its formats, its clock. */
#include "sync/evidence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dat/reader.h"

static int walk_reader(const struct sync_source *s, size_t buffer, unsigned int cpu, sync_page_fn page,
		       void *to)
{
	const struct reader_buffer *b = &reader_info(s->from)->buffers[buffer];
	struct reader_pages *pages;
	const uint8_t *data;
	int ret = reader_pages_open(&pages, s->from, buffer, cpu);

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
	const struct reader_option *pauses = reader_option(r, DAT_PAUSES);
	const struct reader_info *info = reader_info(r);

	*s = (struct sync_source){ .walk = walk_reader, .from = r };
	s->formats = calloc(info->n_formats + 1, sizeof(*s->formats));
	s->buffers = calloc(info->n_buffers + 1, sizeof(*s->buffers));
	if (!s->formats || !s->buffers) {
		sync_source_release(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < info->n_formats; i++)
		s->formats[i] = info->formats[i].text;
	s->n_formats = info->n_formats;
	if (pauses && pauses_decode(pauses->data.data, pauses->data.len, NULL, &s->pauses) == -ENOMEM) {
		sync_source_release(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < info->n_buffers; i++) {
		s->buffers[i] = (struct sync_buffer){ info->layout, (unsigned int)info->buffers[i].n_cpus };
		s->buffers[i].layout.size = info->buffers[i].page_size;
	}
	s->n_buffers = info->n_buffers;
	s->steady = is_steady(r);
	return 0;
}

void sync_source_release(struct sync_source *s)
{
	free(s->buffers);
	free(s->formats);
	pauses_release(&s->pauses);
	*s = (struct sync_source){ 0 };
}
