// SPDX-License-Identifier: LGPL-2.1-or-later
/* A spool as the synchronisation of clocks reads files. */
#include "session/spool-source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/spool-formats.h"

struct walker {
	const struct spool *spool;
	size_t buffer;
	uint32_t page_size;
};

struct priv {
	struct spool_formats formats;
	struct buf cmdlines;
	struct walker *walkers;
};

static int spool_walk(void *ctx, unsigned int cpu,
		      int (*take)(void *to, unsigned int number, const void *data, size_t len), void *to)
{
	const struct walker *w = ctx;
	void *page = malloc(w->page_size);
	int fd = spool_pages_fd(w->spool, w->buffer, cpu);
	int ret = !page ? -ENOMEM : fd < 0 ? fd : 0;

	for (off_t at = 0; !ret; at += w->page_size) {
		if (pread(fd, page, w->page_size, at) != (ssize_t)w->page_size)
			break;
		ret = take(to, cpu, page, w->page_size);
	}
	if (fd >= 0)
		close(fd);
	free(page);
	return ret;
}

static int open_spool_buffers(struct spool_source *s, struct priv *p, const struct spool *spool)
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

		p->walkers[i] = (struct walker){ .spool = spool, .buffer = i, .page_size = b->page_size };
		*out = (struct sync_buffer){
			.layout = layout, .n_cpus = b->n_cpus, .walk = spool_walk, .ctx = &p->walkers[i]
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
	struct priv *p = calloc(1, sizeof(*p));
	int ret;

	*s = (struct spool_source){ .priv = p };
	if (!p)
		return -ENOMEM;
	ret = spool_formats_load(&p->formats, spool);
	if (ret)
		goto fail;
	ret = open_spool_buffers(s, p, spool);
	if (ret)
		goto fail;
	ret = -ENOMEM;
	if (spool_get_text(spool, "saved_cmdlines", &p->cmdlines) == -ENOMEM)
		goto fail;
	s->source.formats = p->formats.texts;
	s->source.n_formats = p->formats.n_texts;
	s->source.cmdlines = p->cmdlines.len ? buf_str(&p->cmdlines) : NULL;
	s->source.cmdlines_len = p->cmdlines.len;
	return 0;
fail:
	spool_source_close(s);
	return ret;
}

void spool_source_close(struct spool_source *s)
{
	struct priv *p = s->priv;

	free(s->source.buffers);
	if (p) {
		spool_formats_release(&p->formats);
		buf_release(&p->cmdlines);
		free(p->walkers);
	}
	free(p);
	*s = (struct spool_source){ 0 };
}
