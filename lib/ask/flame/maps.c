// SPDX-License-Identifier: LGPL-2.1-or-later
/* The maps that a profile has of the processes that it met. */
#include "ask/flame/flame-priv.h"
#include "base/cursor.h"

#include <limits.h>

struct flame_map_event {
	unsigned int id; /* UINT_MAX: the file has none */
	struct field_load tgid, from, len, offset, build_id, path;
};

struct flame_maps_reader {
	const struct inputs *in;
	struct flame_map_event *events; /* by input */
};

static int flame_map_add(struct flame_maps *m, struct flame_mapped *to, const struct flame_elf_key *key)
{
	for (size_t i = m->n_elves; i-- && !to->elf;) /* neighbours are most often of one file */
		to->elf = flame_elf_is(m->elves[i], key) ? m->elves[i] : NULL;
	if (!to->elf) {
		to->elf = flame_elf_new(key);
		if (!to->elf || array_push(&m->elves, &m->n_elves, &to->elf, sizeof(to->elf))) {
			flame_elf_free(to->elf);
			return -ENOMEM;
		}
	}
	return array_push(&m->v, &m->n, to, sizeof(*to));
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
	return flame_map_add(m, &to, &key);
}

static bool flame_maps_want(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct flame_maps_reader *r = ctx;

	return r->events[input].id != UINT_MAX &&
	       !strcmp(reader_info(r->in->v[input].reader)->buffers[buffer].name, "profile");
}

static int flame_mapped_cmp(const void *a, const void *b)
{
	const struct flame_mapped *x = a, *y = b;

	return ORDER(x->pid, y->pid) ?: ORDER(x->from, y->from) ?: ORDER(x->ts, y->ts);
}

/* "PID LINES COMMAND", then lines "START END PATH"; numbers are hexadecimal. */
static int flame_procmap_take(struct flame_maps *m, const struct dat_text *text)
{
	struct cursor c = cursor_at(text->data, text->len);
	char line[PATH_MAX + 64];
	unsigned int pid = 0;
	const char *at;
	size_t len;
	int ret = 0;

	for (bool first = true; !ret && cursor_line(&c, &at, &len); first = false) {
		struct flame_elf_key key = { .id = (const uint8_t *)"" };
		struct flame_mapped to = { .pid = (int32_t)pid };
		int path = 0;

		snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line)), at);
		if (first && (sscanf(line, "%x", &pid) != 1 || pid > INT32_MAX))
			break;
		if (first || sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &to.from, &to.to, &path) != 2 ||
		    !path || !line[path] || to.from >= to.to)
			continue;
		key.path = line + path;
		key.path_len = strlen(key.path);
		ret = flame_map_add(m, &to, &key);
	}
	return ret;
}

int flame_procmaps_read(struct flame_maps *m, const struct reader_info *info)
{
	int ret = 0;

	for (size_t i = 0; i < info->n_options && !ret; i++)
		if (info->options[i].id == DAT_PROCMAPS)
			ret = flame_procmap_take(m, &info->options[i].data);
	array_sort(m->v, m->n, sizeof(*m->v), flame_mapped_cmp);
	for (size_t i = 1; i < m->n; i++) /* a file's mappings lie one behind the other */
		if (m->v[i].pid == m->v[i - 1].pid && m->v[i].elf == m->v[i - 1].elf)
			m->v[i].offset = m->v[i - 1].offset + m->v[i].from - m->v[i - 1].from;
	return ret;
}

int flame_maps_read(struct flame_maps *v, const struct inputs *in)
{
	struct inputs whole = *in; /* maps may have been recorded before the part of time that is read */
	struct flame_maps_reader r = { .in = in };
	struct merge_run run = { 0 };
	struct timeline *t = NULL;
	bool any = false;
	int ret = 0;

	r.events = calloc(in->n + 1, sizeof(*r.events));
	if (!r.events)
		return -ENOMEM;
	for (size_t i = 0; i < in->n; i++) {
		struct flame_map_event *to = &r.events[i];
		const struct {
			const char *name;
			struct field_load *to;
			bool number;
		} fields[] = { { "tgid", &to->tgid, true },
			       { "from", &to->from, true },
			       { "len", &to->len, true },
			       { "offset", &to->offset, true },
			       { "build_id", &to->build_id, false },
			       { "path", &to->path, false } };
		struct tep_event *e = tep_find_event_by_name(in->v[i].tep, "hyptrace", "map");
		bool fits = e;

		ret = ret ?: flame_procmaps_read(&v[i], reader_info(in->v[i].reader));
		for (size_t k = 0; e && k < ARRAY_SIZE(fields); k++) {
			*fields[k].to = field_load(tep_find_field(e, fields[k].name));
			fits = fits && (!fields[k].number || fields[k].to->kind == FIELD_NUMBER);
		}
		to->id = fits ? (unsigned int)e->id : UINT_MAX;
		any = any || fits;
	}
	whole.from = whole.to = 0;
	if (any && !ret)
		ret = timeline_open(&t, &whole, flame_maps_want, &r, NULL);
	while (t && !ret && (ret = merge_take(t->merge, &run)) > 0) {
		ret = 0;
		for (size_t i = 0; i < run.n && !ret; i++) {
			size_t input = merge_stream(t->merge, &run.v[i])->input;

			if (timeline_id(&run.v[i]) == r.events[input].id)
				ret = flame_map_take(&v[input], &r.events[input], &run.v[i]);
		}
	}
	for (size_t i = 0; i < in->n; i++)
		array_sort(v[i].v, v[i].n, sizeof(*v[i].v), flame_mapped_cmp);
	merge_run_release(&run);
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

static bool flame_mapped_before(const void *entry, const void *pid)
{
	return ((const struct flame_mapped *)entry)->pid < *(const int32_t *)pid;
}

bool flame_maps_text(const struct flame_maps *m, int64_t pid, uint64_t ts, uint64_t addr, struct buf *out)
{
	int32_t of = (int32_t)pid;
	size_t i = array_lower_bound(m->v, m->n, sizeof(*m->v), flame_mapped_before, &of);
	const struct flame_mapped *last = NULL, *next = NULL;

	for (; i < m->n && m->v[i].pid == of && m->v[i].from <= addr; i++) {
		const struct flame_mapped *at = &m->v[i];

		if (addr >= at->to)
			continue;
		if (at->ts <= ts)
			last = last && last->ts > at->ts ? last : at;
		else
			next = next && next->ts <= at->ts ? next : at;
	}
	last = last ?: next;
	if (last)
		flame_elf_text(last->elf, addr - last->from + last->offset, out);
	return last;
}
