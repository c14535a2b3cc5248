// SPDX-License-Identifier: LGPL-2.1-or-later
/* A spool as a source of evidence: what was recorded, before it becomes a file. */
#include "session/spool-source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spool/range.h"

static int walk_spool(const struct sync_source *s, size_t buffer, unsigned int cpu, sync_page_fn take,
		      void *to)
{
	size_t size = s->buffers[buffer].layout.size;
	struct spool_range range;
	int fd = spool_pages_open(s->from, buffer, cpu, &range), ret = 0;
	void *page;

	if (fd < 0)
		return fd;
	page = malloc(size);
	if (!page)
		ret = -ENOMEM;
	for (uint64_t at = range.from; !ret && at < range.to; at += size) {
		if (pread(fd, page, size, (off_t)at) != (ssize_t)size)
			break;
		ret = take(to, cpu, page, size);
	}
	close(fd);
	free(page);
	return ret;
}

static int list_spool_buffers(struct sync_source *s, const struct spool *spool)
{
	size_t n = spool_n_buffers(spool);
	struct page_layout layout;
	int ret = spool_page_layout(spool, &layout);

	if (ret)
		return ret;
	s->buffers = calloc(n + 1, sizeof(*s->buffers));
	if (!s->buffers)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct spool_buffer *b = spool_buffer(spool, i);
		bool ours = !strncmp(b->kind, "hyp-", 4) || !strcmp(b->kind, "profile"); /* our own pages */

		s->buffers[i] = (struct sync_buffer){ ours ? page_layout_default : layout, b->n_cpus };
		s->buffers[i].layout.size = b->page_size;
	}
	s->n_buffers = n;
	return 0;
}

/* What makes no sense says nothing. */
static int spool_source_pauses(struct sync_source *s, const struct spool *spool)
{
	struct buf body = { 0 };
	int ret = spool_get_text(spool, "pauses", &body);

	if (!ret && body.len)
		ret = pauses_decode(body.data, body.len, NULL, &s->pauses);
	buf_release(&body);
	return ret == -ENOENT || ret == -EBADMSG ? 0 : ret;
}

int spool_source_open(struct spool_source *s, const struct spool *spool)
{
	int ret;

	*s = (struct spool_source){ .source = { .walk = walk_spool, .from = spool } };
	ret = spool_formats_load(&s->formats, spool, NULL);
	if (!ret)
		ret = list_spool_buffers(&s->source, spool) ?: spool_source_pauses(&s->source, spool);
	if (ret) {
		spool_source_close(s);
		return ret;
	}
	s->source.formats = s->formats.texts;
	s->source.n_formats = s->formats.n_texts;
	return 0;
}

void spool_source_close(struct spool_source *s)
{
	free(s->source.buffers);
	pauses_release(&s->source.pauses);
	spool_formats_release(&s->formats);
	*s = (struct spool_source){ 0 };
}
