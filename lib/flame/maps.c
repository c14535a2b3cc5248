// SPDX-License-Identifier: LGPL-2.1-or-later
/* The maps that a profile has of the processes that it met. */
#include "flame/maps.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "read/timeline.h"
#include "util/array.h"

struct flame_map_event {
	unsigned int id; /* UINT_MAX: the file has none */
	struct field_load tgid, from, len, offset, build_id, path;
};

struct flame_maps_reader {
	struct flame_maps *maps;
	const struct inputs *in;
	struct flame_map_event *events; /* by input */
};

/* ---- records ---------------------------------------------------------------------------- */

static struct field_load flame_map_field(struct tep_event *e, const char *name)
{
	return field_load(tep_find_field(e, name));
}

static void flame_map_event_open(struct flame_map_event *to, const struct input *in)
{
	struct tep_event *e = tep_find_event_by_name(in->tep, "hyptrace", "map");

	*to = (struct flame_map_event){ .id = UINT_MAX };
	if (!e)
		return;
	to->tgid = flame_map_field(e, "tgid");
	to->from = flame_map_field(e, "from");
	to->len = flame_map_field(e, "len");
	to->offset = flame_map_field(e, "offset");
	to->build_id = flame_map_field(e, "build_id");
	to->path = flame_map_field(e, "path");
	if (to->tgid.kind == FIELD_NUMBER && to->from.kind == FIELD_NUMBER && to->len.kind == FIELD_NUMBER &&
	    to->offset.kind == FIELD_NUMBER)
		to->id = (unsigned int)e->id;
}

/* The elf of that name and build id, made if need be. NULL: out of memory. */
static struct flame_elf *flame_maps_elf(struct flame_maps *m, const struct flame_elf_key *key)
{
	struct flame_elf *elf;

	for (size_t i = m->n_elves; i--;) /* neighbours are most often of one file */
		if (flame_elf_is(m->elves[i], key))
			return m->elves[i];
	elf = flame_elf_new(key);
	if (elf && array_push(&m->elves, &m->n_elves, &elf, sizeof(elf))) {
		flame_elf_free(elf);
		elf = NULL;
	}
	return elf;
}

static int flame_map_take(struct flame_maps *m, const struct flame_map_event *e, const struct merge_record *r)
{
	struct flame_mapped to = { .ts = r->ts };
	struct flame_elf_key key = { 0 };
	const uint8_t *path;
	uint64_t tgid, len;

	if (!field_load_number(&e->tgid, r->data, r->len, &tgid) ||
	    !field_load_number(&e->from, r->data, r->len, &to.from) ||
	    !field_load_number(&e->len, r->data, r->len, &len) ||
	    !field_load_number(&e->offset, r->data, r->len, &to.offset) ||
	    field_load_bytes(&e->path, r->data, r->len, &path, &key.path_len) != 1 || !len ||
	    len > UINT64_MAX - to.from)
		return 0;
	field_load_bytes(&e->build_id, r->data, r->len, &key.id, &key.id_len);
	key.path = (const char *)path;
	key.path_len = strnlen(key.path, key.path_len);
	to.pid = (int32_t)tgid;
	to.to = to.from + len;
	to.elf = flame_maps_elf(m, &key);
	return to.elf ? array_push(&m->v, &m->n, &to, sizeof(to)) : -ENOMEM;
}

/* ---- files -------------------------------------------------------------------------------- */

static bool flame_maps_want(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct flame_maps_reader *r = ctx;

	return r->events[input].id != UINT_MAX &&
	       !strcmp(reader_info(r->in->v[input].reader)->buffers[buffer].name, "profile");
}

static int flame_mapped_cmp(const void *a, const void *b)
{
	const struct flame_mapped *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->ts < y->ts ? -1 : x->ts > y->ts;
}

static int flame_maps_walk(struct flame_maps_reader *r, struct timeline *t)
{
	struct merge_run run = { 0 };
	int ret;

	while ((ret = timeline_take(t, &run)) > 0) {
		for (size_t i = 0; i < run.n && ret > 0; i++) {
			size_t input = timeline_stream(t, &run.v[i])->input;
			int error = 0;

			if (timeline_id(&run.v[i]) == r->events[input].id)
				error = flame_map_take(&r->maps[input], &r->events[input], &run.v[i]);
			ret = error ? error : ret;
		}
		if (ret < 0)
			break;
	}
	merge_run_release(&run);
	return ret < 0 ? ret : 0;
}

int flame_maps_read(struct flame_maps *v, const struct inputs *in)
{
	struct flame_maps_reader r = { .maps = v, .in = in };
	struct timeline *t = NULL;
	bool any = false;
	int ret = 0;

	r.events = calloc(in->n + 1, sizeof(*r.events));
	if (!r.events)
		return -ENOMEM;
	for (size_t i = 0; i < in->n; i++) {
		flame_map_event_open(&r.events[i], &in->v[i]);
		any = any || r.events[i].id != UINT_MAX;
	}
	if (any)
		ret = timeline_open(&t, in, flame_maps_want, &r, NULL) ?: flame_maps_walk(&r, t);
	for (size_t i = 0; i < in->n; i++)
		array_sort(v[i].v, v[i].n, sizeof(*v[i].v), flame_mapped_cmp);
	timeline_close(t);
	free(r.events);
	return ret;
}

void flame_maps_release(struct flame_maps *m)
{
	for (size_t i = 0; i < m->n_elves; i++)
		flame_elf_free(m->elves[i]);
	free(m->elves);
	free(m->v);
	*m = (struct flame_maps){ 0 };
}

/* ---- addresses ------------------------------------------------------------------------------ */

static bool flame_mapped_before(const void *entry, const void *pid)
{
	return ((const struct flame_mapped *)entry)->pid < *(const int32_t *)pid;
}

static const struct flame_mapped *flame_maps_find(const struct flame_maps *m, int32_t pid, uint64_t ts,
						  uint64_t addr)
{
	size_t i = array_lower_bound(m->v, m->n, sizeof(*m->v), flame_mapped_before, &pid);
	const struct flame_mapped *last = NULL, *next = NULL;

	for (; i < m->n && m->v[i].pid == pid && m->v[i].from <= addr; i++) {
		const struct flame_mapped *at = &m->v[i];

		if (addr >= at->to)
			continue;
		if (at->ts <= ts)
			last = last && last->ts > at->ts ? last : at;
		else
			next = next && next->ts <= at->ts ? next : at;
	}
	return last ? last : next;
}

bool flame_maps_text(const struct flame_maps *m, int64_t pid, uint64_t ts, uint64_t addr, struct buf *out)
{
	const struct flame_mapped *at = flame_maps_find(m, (int32_t)pid, ts, addr);

	if (at)
		flame_elf_text(at->elf, addr - at->from + at->offset, out);
	return at;
}
