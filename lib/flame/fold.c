// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tree of stacks as lines of folded text. */
#include "flame/fold.h"

#include <errno.h>

struct fold {
	struct buf path;
	struct buf ends; /* size_t by depth: where the frame ends in the path */
	flame_line *line;
	void *ctx;
};

static int fold_visit(void *ctx, const struct flame_frame *frame, const uint64_t *begin)
{
	struct fold *f = ctx;
	size_t above = (frame->depth - 1) * sizeof(size_t), end = 0;

	f->ends.len = above;
	if (above)
		memcpy(&end, f->ends.data + above - sizeof(end), sizeof(end));
	f->path.len = end;
	buf_addstr(&f->path, end ? ";" : "");
	buf_addstr(&f->path, frame->name);
	end = f->path.len;
	buf_add(&f->ends, &end, sizeof(end));
	if (!buf_str(&f->path) || f->ends.bad)
		return -ENOMEM;
	return frame->self[0] || frame->self[1] ? f->line(f->ctx, buf_str(&f->path), frame->self) : 0;
}

int flame_fold(const struct flame_tree *t, enum flame_weight w, flame_line *line, void *ctx)
{
	struct fold f = { .line = line, .ctx = ctx };
	int ret = flame_tree_walk(t, w, fold_visit, &f);

	buf_release(&f.path);
	buf_release(&f.ends);
	return ret;
}

uint64_t flame_scaled(uint64_t n, uint64_t of, uint64_t to)
{
	return of ? (uint64_t)((unsigned __int128)n * to / of) : 0;
}
