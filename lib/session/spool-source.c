// SPDX-License-Identifier: LGPL-2.1-or-later
/* A spool as a source of evidence: what was recorded, before it becomes a file. */
#include "session/spool-source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/spool-formats.h"

struct spool_walk {
	const struct spool *spool;
	size_t buffer;
	uint32_t page_size;
};

struct spool_source_priv {
	struct spool_formats formats;
	struct buf cmdlines;
	struct spool_walk *walkers;
};

static int walk_spool(void *ctx, unsigned int cpu, sync_page_fn take, void *to)
{
	const struct spool_walk *w = ctx;
	int fd = spool_pages_fd(w->spool, w->buffer, cpu), ret = 0;
	void *page;

	if (fd < 0)
		return fd;
	page = malloc(w->page_size);
	if (!page)
		ret = -ENOMEM;
	for (off_t at = 0; !ret; at += w->page_size) {
		if (pread(fd, page, w->page_size, at) != (ssize_t)w->page_size)
			break;
		ret = take(to, cpu, page, w->page_size);
	}
	close(fd);
	free(page);
	return ret;
}

static int source_buffers(struct spool_source *s, struct spool_source_priv *p, const struct spool *spool)
{
	size_t n = spool_n_buffers(spool);
	struct page_layout layout;
	int ret = spool_page_layout(spool, &layout);

	s->source.buffers = calloc(n ? n : 1, sizeof(*s->source.buffers));
	p->walkers = calloc(n ? n : 1, sizeof(*p->walkers));
	if (ret || !s->source.buffers || !p->walkers)
		return ret ? ret : -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct spool_buffer *b = spool_buffer(spool, i);
		struct sync_buffer *out = &s->source.buffers[i];

		p->walkers[i] = (struct spool_walk){ .spool = spool, .buffer = i, .page_size = b->page_size };
		*out = (struct sync_buffer){
			.layout = layout, .n_cpus = b->n_cpus, .walk = walk_spool, .ctx = &p->walkers[i]
		};
		if (!strncmp(b->kind, "hyp-", 4)) /* our own pages */
			out->layout = page_layout_default;
		out->layout.size = b->page_size;
	}
	s->source.n_buffers = n;
	return 0;
}

int spool_source_open(struct spool_source *s, const struct spool *spool)
{
	struct spool_source_priv *p = calloc(1, sizeof(*p));
	int ret;

	*s = (struct spool_source){ .priv = p };
	if (!p)
		return -ENOMEM;
	ret = spool_formats_load(&p->formats, spool);
	if (!ret)
		ret = source_buffers(s, p, spool);
	if (!ret && spool_get_text(spool, "saved_cmdlines", &p->cmdlines) == -ENOMEM)
		ret = -ENOMEM;
	if (ret) {
		spool_source_close(s);
		return ret;
	}
	s->source.formats = p->formats.texts;
	s->source.n_formats = p->formats.n_texts;
	s->source.cmdlines = p->cmdlines.len ? buf_str(&p->cmdlines) : NULL;
	s->source.cmdlines_len = p->cmdlines.len;
	return 0;
}

void spool_source_close(struct spool_source *s)
{
	struct spool_source_priv *p = s->priv;

	free(s->source.buffers);
	if (p) {
		spool_formats_release(&p->formats);
		buf_release(&p->cmdlines);
		free(p->walkers);
	}
	free(p);
	*s = (struct spool_source){ 0 };
}
