// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tree of stacks: names once, frames by their parent and name. */
#include "flame/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/arena.h"
#include "util/array.h"
#include "util/visible.h"

#define NAME_MAX_LEN 255
#define TABLE_FIRST  1024

struct tree_frame {
	uint32_t parent, name, depth;
	uint64_t self[FLAME_SIDES][FLAME_WEIGHTS];
};

/* Open addressing, at most half full; 0: free. What it finds is compared by who asks. */
struct tree_table {
	uint32_t *v;
	size_t room, n;
};

struct flame_tree {
	struct arena texts;
	const char **names; /* by number, from 1 on */
	size_t n_names;
	struct tree_table by_name, by_place;
	struct tree_frame *frames;
	size_t n, max, depth; /* of the deepest */
	uint32_t others;
};

/* ---- tables ------------------------------------------------------------------------------ */

static uint64_t tree_mix(uint64_t v)
{
	v *= 0x9e3779b97f4a7c15u;
	v ^= v >> 29;
	v *= 0xbf58476d1ce4e5b9u;
	return v ^ v >> 32;
}

static uint64_t tree_hash_place(uint32_t parent, uint32_t name)
{
	return tree_mix((uint64_t)parent << 32 | name);
}

static uint64_t tree_hash_text(const char *s)
{
	uint64_t h = 14695981039346656037u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 1099511628211u;
	return tree_mix(h);
}

static uint64_t tree_hash_of(const struct flame_tree *t, const struct tree_table *table, uint32_t entry)
{
	if (table == &t->by_name)
		return tree_hash_text(t->names[entry]);
	return tree_hash_place(t->frames[entry].parent, t->frames[entry].name);
}

static void tree_table_put(struct tree_table *table, uint64_t hash, uint32_t entry)
{
	size_t i = hash & (table->room - 1);

	while (table->v[i])
		i = (i + 1) & (table->room - 1);
	table->v[i] = entry;
	table->n++;
}

/* Room for one more. */
static int tree_table_grow(const struct flame_tree *t, struct tree_table *table)
{
	struct tree_table more = { .room = table->room ? 2 * table->room : TABLE_FIRST };

	if (2 * table->n < table->room)
		return 0;
	more.v = calloc(more.room, sizeof(*more.v));
	if (!more.v)
		return -ENOMEM;
	for (size_t i = 0; i < table->room; i++)
		if (table->v[i])
			tree_table_put(&more, tree_hash_of(t, table, table->v[i]), table->v[i]);
	free(table->v);
	*table = more;
	return 0;
}

/* ---- names ------------------------------------------------------------------------------- */

/* One piece of a name into to; returns how many bytes of it that was. */
static size_t tree_clean_piece(const uint8_t *p, size_t left, char *to, size_t *n)
{
	size_t len = utf8_len(p, left), bad = visible_control(p, left);

	if (!len || bad || *p == '\t' || *p == '\n') {
		to[(*n)++] = '?';
		return bad ? bad : 1;
	}
	if (*n + len > NAME_MAX_LEN)
		return left;
	memcpy(to + *n, p, len);
	*n += len;
	if (*p == ';')
		to[*n - 1] = ':';
	return len;
}

static const char *tree_clean(const char *name, size_t n, char to[NAME_MAX_LEN + 1])
{
	const uint8_t *p = (const uint8_t *)name;
	size_t len = 0, from = 0;

	n = strnlen(name, n);
	for (size_t i = 0; i < n && len < NAME_MAX_LEN;)
		i += tree_clean_piece(p + i, n - i, to, &len);
	while (len && to[len - 1] == ' ')
		len--;
	to[len] = '\0';
	from = strspn(to, " ");
	return to[from] ? to + from : FLAME_UNKNOWN;
}

static int tree_name_new(struct flame_tree *t, const char *name, uint64_t hash, uint32_t *out)
{
	size_t len = strlen(name);
	char *text;

	*out = 0;
	if (t->n_names > t->max)
		return 0;
	text = arena_alloc(&t->texts, len + 1);
	if (!text || tree_table_grow(t, &t->by_name) ||
	    array_push(&t->names, &t->n_names, &text, sizeof(text)))
		return -ENOMEM;
	memcpy(text, name, len + 1);
	*out = (uint32_t)t->n_names - 1;
	tree_table_put(&t->by_name, hash, *out);
	return 0;
}

int flame_tree_name(struct flame_tree *t, const char *name, size_t n, uint32_t *out)
{
	char room[NAME_MAX_LEN + 1];
	const char *clean = tree_clean(name, n, room);
	uint64_t hash = tree_hash_text(clean);
	const struct tree_table *table = &t->by_name;

	for (size_t i = hash & (table->room - 1); table->v[i]; i = (i + 1) & (table->room - 1)) {
		*out = table->v[i];
		if (!strcmp(t->names[*out], clean))
			return 0;
	}
	return tree_name_new(t, clean, hash, out);
}

/* ---- frames ------------------------------------------------------------------------------ */

static int tree_frame_new(struct flame_tree *t, uint32_t parent, uint32_t name, uint32_t *out)
{
	struct tree_frame f = { .parent = parent, .name = name, .depth = t->frames[parent].depth + 1 };

	if (tree_table_grow(t, &t->by_place) || array_push(&t->frames, &t->n, &f, sizeof(f)))
		return -ENOMEM;
	*out = (uint32_t)t->n - 1;
	t->depth = f.depth > t->depth ? f.depth : t->depth;
	tree_table_put(&t->by_place, tree_hash_place(parent, name), *out);
	return 0;
}

int flame_tree_child(struct flame_tree *t, uint32_t parent, uint32_t name, uint32_t *out)
{
	const struct tree_table *table = &t->by_place;

	*out = t->others;
	if (parent == t->others || !name)
		return 0;
	for (size_t i = tree_hash_place(parent, name) & (table->room - 1); table->v[i];
	     i = (i + 1) & (table->room - 1)) {
		const struct tree_frame *f = &t->frames[table->v[i]];

		if (f->parent == parent && f->name == name) {
			*out = table->v[i];
			return 0;
		}
	}
	return t->n > t->max ? 0 : tree_frame_new(t, parent, name, out);
}

int flame_tree_named(struct flame_tree *t, uint32_t parent, const char *name, uint32_t *out)
{
	uint32_t number;
	int ret = flame_tree_name(t, name, SIZE_MAX, &number);

	return ret ?: flame_tree_child(t, parent, number, out);
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

/* ---- the whole --------------------------------------------------------------------------- */

void flame_tree_free(struct flame_tree *t)
{
	if (!t)
		return;
	free(t->by_name.v);
	free(t->by_place.v);
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
	if (array_push(&t->names, &t->n_names, &none, sizeof(none)) || tree_table_grow(t, &t->by_name) ||
	    array_push(&t->frames, &t->n, &(struct tree_frame){ 0 }, sizeof(struct tree_frame)) ||
	    tree_table_grow(t, &t->by_place))
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

/* ---- in the order of names ---------------------------------------------------------------- */

/* By the number of a frame. */
struct tree_view {
	const struct flame_tree *t;
	enum flame_weight w;
	uint32_t *order;		/* the frames by parent, and by name among those of one parent */
	uint32_t *first;		/* where in order those below it begin; one more at the end */
	uint64_t (*total)[FLAME_SIDES]; /* of all below and of itself */
};

static int tree_order_cmp(const void *a, const void *b, void *ctx)
{
	const struct flame_tree *t = ctx;
	const struct tree_frame *x = &t->frames[*(const uint32_t *)a], *y = &t->frames[*(const uint32_t *)b];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return strcmp(t->names[x->name], t->names[y->name]);
}

static void tree_view_release(struct tree_view *v)
{
	free(v->order);
	free(v->first);
	free(v->total);
}

/* The root has no place in the order. A frame comes behind its parent in the list. */
static int tree_view_make(struct tree_view *v)
{
	const struct flame_tree *t = v->t;
	size_t n = 0;

	v->order = calloc(t->n, sizeof(*v->order));
	v->first = calloc(t->n + 2, sizeof(*v->first));
	v->total = calloc(t->n, sizeof(*v->total));
	if (!v->order || !v->first || !v->total)
		return -ENOMEM;
	for (size_t i = t->n; i-- > 1;) {
		const struct tree_frame *f = &t->frames[i];

		v->order[n++] = (uint32_t)i;
		v->first[f->parent + 1]++;
		for (size_t s = 0; s < FLAME_SIDES; s++) {
			tree_count(&v->total[i][s], f->self[s][v->w]);
			tree_count(&v->total[f->parent][s], v->total[i][s]);
		}
	}
	for (size_t i = 1; i <= t->n; i++)
		v->first[i] += v->first[i - 1];
	qsort_r(v->order, n, sizeof(*v->order), tree_order_cmp, (void *)t);
	return 0;
}

struct tree_level {
	uint32_t at, end; /* in order */
	uint64_t begin[FLAME_SIDES];
};

static bool tree_weighs(const uint64_t *total)
{
	return total[0] || total[1];
}

/* The frames below one, with those below them. */
static int tree_walk(const struct tree_view *v, struct tree_level *levels, flame_visit *visit, void *ctx)
{
	size_t depth = 1;
	int ret = 0;

	levels[1] = (struct tree_level){ .at = v->first[FLAME_ROOT], .end = v->first[FLAME_ROOT + 1] };
	while (depth && !ret) {
		struct tree_level *l = &levels[depth], *below = l + 1;
		uint32_t i = l->at < l->end ? v->order[l->at++] : 0;
		const struct tree_frame *f = &v->t->frames[i];
		struct flame_frame out = { .name = v->t->names[f->name], .depth = depth };

		if (!i) {
			depth--;
			continue;
		}
		if (!tree_weighs(v->total[i]))
			continue;
		*below = (struct tree_level){ .at = v->first[i], .end = v->first[i + 1] };
		for (size_t s = 0; s < FLAME_SIDES; s++) {
			out.self[s] = f->self[s][v->w];
			out.total[s] = v->total[i][s];
			below->begin[s] = l->begin[s] + out.self[s];
		}
		ret = visit(ctx, &out, l->begin);
		for (size_t s = 0; s < FLAME_SIDES; s++)
			l->begin[s] += out.total[s];
		depth++;
	}
	return ret;
}

int flame_tree_walk(const struct flame_tree *t, enum flame_weight w, flame_visit *visit, void *ctx)
{
	struct tree_view v = { .t = t, .w = w };
	struct tree_level *levels = calloc(t->depth + 3, sizeof(*levels));
	int ret = levels ? tree_view_make(&v) : -ENOMEM;

	if (!ret)
		ret = tree_walk(&v, levels, visit, ctx);
	tree_view_release(&v);
	free(levels);
	return ret;
}
