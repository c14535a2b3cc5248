// SPDX-License-Identifier: LGPL-2.1-or-later
/* The event formats of a spool as its file will have them. */
#include "record/drain/spool-formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/dat/print-format.h"
#include "record/drain/remote-events.h"
#include "base/array.h"
#include "base/cursor.h"

#define SAID_MAX 8 /* messages about one spool's formats */

static int formats_add_text(struct spool_formats *f, const char *data, size_t len)
{
	struct dat_text text = { .data = data, .len = len };

	return array_push(&f->texts, &f->n_texts, &text, sizeof(text));
}

/* `texts` still moves as it grows: the systems get theirs at the end. */
static int formats_add_system(struct spool_formats *f, const char *name, size_t n)
{
	struct dat_system system = { .name = strdup(name), .n = n };
	int ret = system.name ? array_push(&f->systems, &f->n_systems, &system, sizeof(system)) : -ENOMEM;

	if (ret)
		free((char *)(uintptr_t)system.name);
	return ret;
}

/* "SYSTEM LENGTH" lines, each followed by its text (system-metadata.h). */
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

/* Rewrites what libtraceevent could not parse; leaves out formats unlike any kernel's. */
static int fixup_format(struct spool_formats *f, const char *system, const struct log *log)
{
	static const char head[] = "\nprint fmt: ";
	struct dat_text *t = &f->texts[f->n_fixed];
	struct buf *b = &f->fixed[f->n_fixed++];
	const char *print_fmt = memmem(t->data, t->len, head, strlen(head)), *why;
	struct event_format e;
	int ret;

	ret = print_fmt ? event_format_parse(t->data, t->len, &e) : -EBADMSG;
	if (ret)
		return ret == -ENOMEM ? ret : 0; /* anything else is kept as it is */
	buf_add(b, t->data, (size_t)(print_fmt - t->data) + strlen(head));
	ret = print_format_fixup(&e, b, &why);
	if (ret == -E2BIG) {
		log_warn(f->n_plain++ < SAID_MAX ? log : NULL, "the print format of %s:%s %s: it is left out",
			 system, e.name, why);
		ret = 1;
	}
	event_format_release(&e);
	buf_addstr(b, "\n");
	if (ret == -ENOMEM || !buf_str(b))
		return -ENOMEM;
	if (ret == 1)
		*t = (struct dat_text){ .data = (char *)b->data, .len = b->len };
	return 0;
}

static int fixup_formats(struct spool_formats *f, const struct log *log)
{
	int ret = 0;

	f->fixed = calloc(f->n_texts + 1, sizeof(*f->fixed));
	if (!f->fixed)
		return -ENOMEM;
	for (size_t s = 0; s < f->n_systems; s++)
		for (size_t i = 0; i < f->systems[s].n && !ret; i++)
			ret = fixup_format(f, f->systems[s].name, log);
	if (f->n_plain > SAID_MAX)
		log_warn(log, "%zu print formats are left out in total", f->n_plain);
	return ret;
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

int spool_formats_load(struct spool_formats *f, const struct spool *spool, const struct log *log)
{
	const struct dat_text *t;
	int ret = spool_get_text(spool, "formats", &f->kept);

	ret = ret ?: split_formats(f) ?: fixup_formats(f, log) ?: add_hyp_formats(f, spool);
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
	for (size_t i = 0; i < f->n_fixed; i++)
		buf_release(&f->fixed[i]);
	free(f->fixed);
	hypevents_release(&f->hyp);
	buf_release(&f->kept);
	free(f->systems);
	free(f->texts);
	free(f->hyp_texts);
	*f = (struct spool_formats){ 0 };
}
