// SPDX-License-Identifier: LGPL-2.1-or-later
/* The event formats of a spool as its file will have them. */
#include "record/spool-formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/printfmt.h"
#include "record/remote-events.h"
#include "util/array.h"

static int formats_add_text(struct spool_formats *f, const char *data, size_t len)
{
	struct dat_text *v = array_grow(f->texts, f->n_texts, sizeof(*v));

	if (!v)
		return -ENOMEM;
	f->texts = v;
	v[f->n_texts++] = (struct dat_text){ .data = data, .len = len };
	return 0;
}

/* `texts` still moves as it grows: the systems get theirs at the end. */
static int formats_add_system(struct spool_formats *f, const char *name, size_t n)
{
	struct dat_system *v = array_grow(f->systems, f->n_systems, sizeof(*v));

	if (!v)
		return -ENOMEM;
	f->systems = v;
	v[f->n_systems] = (struct dat_system){ .name = strdup(name), .n = n };
	return v[f->n_systems++].name ? 0 : -ENOMEM;
}

/* "SYSTEM LENGTH" lines, each with its text behind it (collect.h). */
static int split_formats(struct spool_formats *f)
{
	struct cursor c = cursor_at(f->kept.data, f->kept.len);
	const char *line;
	size_t len;

	while (cursor_line(&c, &line, &len)) {
		char head[160], system[128];
		const char *text;
		size_t n;
		int ret;

		snprintf(head, sizeof(head), "%.*s", (int)(len < sizeof(head) ? len : 0), line);
		text = sscanf(head, "%127s %zu", system, &n) == 2 ? cursor_take(&c, n) : NULL;
		if (!text)
			return -EBADMSG;
		ret = formats_add_text(f, text, n);
		if (!ret && (!f->n_systems || strcmp(f->systems[f->n_systems - 1].name, system)))
			ret = formats_add_system(f, system, 0);
		if (ret)
			return ret;
		f->systems[f->n_systems - 1].n++;
	}
	return 0;
}

/* What libtraceevent could not parse is said in other words. */
static int rewrite_formats(struct spool_formats *f)
{
	f->sanitized = calloc(f->n_texts ? f->n_texts : 1, sizeof(*f->sanitized));
	if (!f->sanitized)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_texts; i++) {
		struct buf *b = &f->sanitized[f->n_sanitized];

		if (!printfmt_rewrite(f->texts[i].data, f->texts[i].len, b))
			continue;
		f->n_sanitized++;
		if (!buf_str(b))
			return -ENOMEM;
		f->texts[i] = (struct dat_text){ .data = (char *)b->data, .len = b->len };
	}
	return 0;
}

static int add_hyp_formats(struct spool_formats *f, const struct spool *spool)
{
	int ret = remote_events_load(&f->hyp, spool);
	size_t n;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	n = remote_n_formats(&f->hyp);
	f->hyp_texts = calloc(n, sizeof(*f->hyp_texts));
	if (!f->hyp_texts)
		return -ENOMEM;
	ret = formats_add_system(f, f->hyp.system, n);
	for (; f->n_hyp_texts < n && !ret; f->n_hyp_texts++) {
		struct buf *b = &f->hyp_texts[f->n_hyp_texts];

		remote_format(&f->hyp, f->n_hyp_texts, b);
		ret = buf_status(b);
		if (!ret)
			ret = formats_add_text(f, buf_str(b), b->len);
	}
	return ret;
}

int spool_formats_load(struct spool_formats *f, const struct spool *spool)
{
	const struct dat_text *t;
	int ret = spool_get_text(spool, "formats", &f->kept);

	ret = ret ?: split_formats(f) ?: rewrite_formats(f) ?: add_hyp_formats(f, spool);
	t = f->texts;
	for (size_t i = 0; i < f->n_systems; t += f->systems[i++].n)
		f->systems[i].formats = t;
	return ret;
}

void spool_formats_release(struct spool_formats *f)
{
	for (size_t i = 0; i < f->n_systems; i++)
		free((char *)(uintptr_t)f->systems[i].name);
	for (size_t i = 0; i < f->n_hyp_texts; i++)
		buf_release(&f->hyp_texts[i]);
	for (size_t i = 0; f->sanitized && i < f->n_sanitized; i++)
		buf_release(&f->sanitized[i]);
	free(f->sanitized);
	hypevents_release(&f->hyp);
	buf_release(&f->kept);
	free(f->systems);
	free(f->texts);
	free(f->hyp_texts);
	*f = (struct spool_formats){ 0 };
}
