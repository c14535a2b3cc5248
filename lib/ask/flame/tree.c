// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tree of stacks: names once, frames by their parent and name. */
#include "ask/flame/flame.h"

#include "base/arena.h"
#include "base/escape.h"
#include "base/map.h"

#define NAME_MAX_LEN 255

struct tree_frame {
	uint32_t parent, name, depth;
	uint64_t self[FLAME_SIDES][FLAME_WEIGHTS];
};

struct flame_tree {
	struct arena texts;
	const char **names; /* by number, from 1 on */
	size_t n_names;
	struct map by_name, by_place; /* of names, of frames */
	struct tree_met {	      /* the last frame of a text at an address */
		const char *text;
		uint32_t parent, name, frame;
	} met[64];
	struct tree_frame *frames;
	size_t n, max, depth; /* of the deepest */
	uint32_t others;
};

static const char *tree_clean(const char *name, size_t n, char to[NAME_MAX_LEN + 1])
{
	const uint8_t *p = (const uint8_t *)name, *end = p + strnlen(name, n);
	size_t len = 0, from = 0;

	while (p < end && len < NAME_MAX_LEN) {
		size_t one = utf8_len(p, (size_t)(end - p)), bad = escape_control(p, (size_t)(end - p));

		if (!one || bad || *p == '\t' || *p == '\n') {
			to[len++] = '?';
			p += bad ? bad : 1;
			continue;
		}
		if (len + one > NAME_MAX_LEN)
			break;
		memcpy(to + len, p, one);
		len += one;
		if (*p == ';')
			to[len - 1] = ':';
		p += one;
	}
	while (len && to[len - 1] == ' ')
		len--;
	to[len] = '\0';
	from = strspn(to, " ");
	return to[from] ? to + from : FLAME_UNKNOWN;
}

static bool tree_name_same(const void *names, size_t i, const void *wanted)
{
	return !strcmp(((const char *const *)names)[i], wanted);
}

int flame_tree_name(struct flame_tree *t, const char *name, size_t n, uint32_t *out)
{
	char room[NAME_MAX_LEN + 1], *text;
	const char *clean = tree_clean(name, n, room);
	size_t len = strlen(clean);
	uint32_t hash = map_hash_bytes(clean, len);
	size_t at = map_find(&t->by_name, hash, tree_name_same, t->names, clean);

	*out = at == MAP_NONE ? 0 : (uint32_t)at;
	if (*out || t->n_names > t->max)
		return 0;
	text = arena_alloc(&t->texts, len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, clean, len + 1);
	*out = (uint32_t)t->n_names;
	return map_push(&t->by_name, hash, &t->names, &t->n_names, &text, sizeof(text));
}

static bool tree_frame_same(const void *frames, size_t i, const void *wanted)
{
	const struct tree_frame *f = &((const struct tree_frame *)frames)[i], *w = wanted;

	return f->parent == w->parent && f->name == w->name;
}

int flame_tree_child(struct flame_tree *t, uint32_t parent, uint32_t name, uint32_t *out)
{
	struct tree_frame f = { .parent = parent, .name = name };
	uint32_t hash = map_hash((uint64_t)parent << 32 | name);
	size_t at;

	*out = t->others;
	if (parent == t->others || !name)
		return 0;
	at = map_find(&t->by_place, hash, tree_frame_same, t->frames, &f);
	if (at != MAP_NONE)
		*out = (uint32_t)at;
	if (at != MAP_NONE || t->n > t->max)
		return 0;
	f.depth = t->frames[parent].depth + 1;
	t->depth = f.depth > t->depth ? f.depth : t->depth;
	*out = (uint32_t)t->n;
	return map_push(&t->by_place, hash, &t->frames, &t->n, &f, sizeof(f));
}

/* Most are words that stay where they are, and are found without being cleaned and hashed. */
int flame_tree_named(struct flame_tree *t, uint32_t parent, const char *name, uint32_t *out)
{
	struct tree_met *met = &t->met[map_hash((uintptr_t)name ^ parent) % ARRAY_SIZE(t->met)];
	int ret = 0;

	if (met->text != name || met->parent != parent || !met->name || strcmp(name, t->names[met->name])) {
		met->text = name;
		met->parent = parent;
		ret = flame_tree_name(t, name, SIZE_MAX, &met->name)
			      ?: flame_tree_child(t, parent, met->name, &met->frame);
		met->name = ret ? 0 : met->name;
	}
	*out = met->frame;
	return ret;
}

static void tree_count(uint64_t *to, uint64_t n)
{
	if (__builtin_add_overflow(*to, n, to))
		*to = UINT64_MAX;
}

void flame_tree_add(struct flame_tree *t, uint32_t frame, size_t side, enum flame_weight w, uint64_t n)
{
	tree_count(&t->frames[frame].self[side][w], n);
}

uint32_t flame_tree_names(const struct flame_tree *t)
{
	return (uint32_t)t->n_names;
}

const char *flame_tree_text(const struct flame_tree *t, uint32_t name)
{
	return t->names[name];
}

uint64_t flame_tree_total(const struct flame_tree *t, size_t side, enum flame_weight w)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		tree_count(&n, t->frames[i].self[side][w]);
	return n;
}

uint64_t flame_tree_others(const struct flame_tree *t, size_t side, enum flame_weight w)
{
	return t->frames[t->others].self[side][w];
}

void flame_tree_free(struct flame_tree *t)
{
	if (!t)
		return;
	map_release(&t->by_name);
	map_release(&t->by_place);
	free(t->names);
	free(t->frames);
	arena_release(&t->texts);
	free(t);
}

int flame_tree_new(struct flame_tree **out, size_t frames_max)
{
	struct flame_tree *t = calloc(1, sizeof(*t));
	const char *none = "";
	uint32_t root;
	int ret = -ENOMEM;

	if (!t)
		return ret;
	t->max = frames_max < FLAME_FRAMES_MAX ? frames_max : FLAME_FRAMES_MAX;
	t->others = UINT32_MAX; /* none yet */
	if (array_push(&t->names, &t->n_names, &none, sizeof(none)) ||
	    array_push(&t->frames, &t->n, &(struct tree_frame){ 0 }, sizeof(struct tree_frame)))
		goto fail;
	ret = flame_tree_named(t, FLAME_ROOT, FLAME_OTHERS, &root);
	if (ret)
		goto fail;
	t->others = root;
	*out = t;
	return 0;
fail:
	flame_tree_free(t);
	return ret;
}

static int tree_order_cmp(const void *a, const void *b, void *ctx)
{
	const struct flame_tree *t = ctx;
	const struct tree_frame *x = &t->frames[*(const uint32_t *)a], *y = &t->frames[*(const uint32_t *)b];

	return ORDER(x->parent, y->parent) ?: strcmp(t->names[x->name], t->names[y->name]);
}

struct tree_level {
	uint32_t at, end; /* in order */
	uint64_t begin[FLAME_SIDES];
};

int flame_tree_walk(const struct flame_tree *t, enum flame_weight w, flame_visit *visit, void *ctx)
{
	/* the frames by parent, and by name among those of one parent; the root has no place in it */
	uint32_t *order = calloc(t->n, sizeof(*order));
	/* by frame: the place in order of those below it, one more at the end; and its weight with theirs */
	uint32_t *first = calloc(t->n + 2, sizeof(*first));
	uint64_t(*total)[FLAME_SIDES] = calloc(t->n, sizeof(*total));
	struct tree_level *levels = calloc(t->depth + 3, sizeof(*levels));
	uint32_t *stack = calloc(t->depth + 1, sizeof(*stack));
	size_t n = 0, depth = 1;
	int ret = order && first && total && levels && stack ? 0 : -ENOMEM;

	/* a frame comes behind its parent in the list */
	for (size_t i = ret ? 0 : t->n; i-- > 1;) {
		const struct tree_frame *f = &t->frames[i];

		order[n++] = (uint32_t)i;
		first[f->parent + 1]++;
		for (size_t s = 0; s < FLAME_SIDES; s++) {
			tree_count(&total[i][s], f->self[s][w]);
			tree_count(&total[f->parent][s], total[i][s]);
		}
	}
	for (size_t i = 1; i <= t->n && !ret; i++)
		first[i] += first[i - 1];
	if (!ret) {
		qsort_r(order, n, sizeof(*order), tree_order_cmp, (void *)t);
		levels[1] = (struct tree_level){ .at = first[FLAME_ROOT], .end = first[FLAME_ROOT + 1] };
	}
	while (depth && !ret) {
		struct tree_level *l = &levels[depth], *below = l + 1;
		uint32_t i = l->at < l->end ? order[l->at++] : 0;
		const struct tree_frame *f = &t->frames[i];
		struct flame_frame out = { .name = t->names[f->name], .depth = depth, .stack = stack };

		if (!i) {
			depth--;
			continue;
		}
		if (!total[i][0] && !total[i][1])
			continue;
		stack[depth - 1] = f->name;
		*below = (struct tree_level){ .at = first[i], .end = first[i + 1] };
		for (size_t s = 0; s < FLAME_SIDES; s++) {
			out.self[s] = f->self[s][w];
			out.total[s] = total[i][s];
			below->begin[s] = l->begin[s] + out.self[s];
		}
		ret = visit(ctx, &out, l->begin);
		for (size_t s = 0; s < FLAME_SIDES; s++)
			l->begin[s] += out.total[s];
		depth++;
	}
	free(order);
	free(first);
	free(total);
	free(levels);
	free(stack);
	return ret;
}

struct fold {
	const struct flame_tree *tree;
	struct buf path;
	flame_line *line;
	void *ctx;
};

static int fold_visit(void *ctx, const struct flame_frame *frame, const uint64_t *begin)
{
	struct fold *f = ctx;

	if (!frame->self[0] && !frame->self[1])
		return 0;
	f->path.len = 0;
	for (size_t i = 0; i < frame->depth; i++) {
		buf_addstr(&f->path, i ? ";" : "");
		buf_addstr(&f->path, flame_tree_text(f->tree, frame->stack[i]));
	}
	return buf_str(&f->path) ? f->line(f->ctx, buf_str(&f->path), frame->self) : -ENOMEM;
}

int flame_fold(const struct flame_tree *t, enum flame_weight w, flame_line *line, void *ctx)
{
	struct fold f = { .tree = t, .line = line, .ctx = ctx };
	int ret = flame_tree_walk(t, w, fold_visit, &f);

	buf_release(&f.path);
	return ret;
}

uint64_t flame_scaled(uint64_t n, uint64_t of, uint64_t to)
{
	return of ? (uint64_t)((unsigned __int128)n * to / of) : 0;
}
