// SPDX-License-Identifier: LGPL-2.1-or-later
/* Spans that programs mark, as frames below each other, with the time that is their own. */
#include <errno.h>

#include "ask/states/markers.h"
#include "ask/flame/flame-priv.h"

/* Below its thread, or its guest's client. */
static int flame_span(void *ctx, const struct markers_span *span)
{
	struct flame *f = ctx;
	const struct flame_input *in = &f->v[span->input];
	const struct flame_task *t;
	struct flame_task client = { .input = (uint32_t)span->input };
	uint32_t frame;
	int ret = 0;

	if (span->client) {
		client.skip = in->skip || !flame_listed(&f->opts.tasks, span->client);
		if (!client.skip)
			ret = flame_tree_named(f->tree, in->frame, span->client, &client.frame);
		t = &client;
	} else {
		t = flame_task_get(f, (uint32_t)span->input, span->pid, 0);
	}
	if (!t || t->skip || ret)
		return t ? ret : -ENOMEM;
	frame = t->frame;
	for (size_t i = 0; i < span->n && !ret; i++)
		ret = flame_tree_named(f->tree, frame, span->names[i], &frame);
	if (ret)
		return ret;
	flame_count(f, t, frame, FLAME_NS, span->own);
	flame_count(f, t, frame, FLAME_CALLS, 1);
	return 0;
}

int flame_spans_open(struct flame *f, const struct inputs *in)
{
	int ret = f->opts.spans ? markers_open(&f->spans, in, f->t, f->opts.desc) : 0;

	if (f->spans)
		markers_listen(f->spans, flame_span, f);
	return ret;
}

void flame_spans_end(struct flame *f)
{
	struct markers_cut cut;

	markers_finish(f->spans);
	cut = markers_cut(f->spans);
	f->counts.open = cut.begins + cut.ends;
	f->counts.others = cut.others;
}
