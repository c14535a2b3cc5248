// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events that hold stacks or calls, and the stacks of a run's records with their
 * functions, by every core; whose they are. */
#include <fnmatch.h>
#include <limits.h>

#include "ask/flame/flame-priv.h"

/* Ftrace's own code in a stack (kernel/trace/trace.c). */
#define TRAMPOLINE INT_MAX
/* No address: newer kernels put the length before a synthetic event's stack. */
#define LENGTH_MAX 4096

/* NULL system: the hypervisor's. */
static const struct flame_row {
	const char *system, *name;
	enum flame_kind kind;
	const char *where, *second, *number;
} flame_rows[] = {
	{ "ftrace", "kernel_stack", FLAME_KERNEL_STACK, "caller", NULL, "size" },
	{ "ftrace", "user_stack", FLAME_USER_STACK, "caller", NULL, "tgid" },
	{ "ftrace", "funcgraph_entry", FLAME_ENTRY, "func", NULL, "depth" },
	{ "ftrace", "fgraph_retaddr_entry", FLAME_ENTRY, "func", NULL, "depth" },
	{ "ftrace", "funcgraph_exit", FLAME_EXIT, "func", NULL, "depth" },
	{ "ftrace", "function", FLAME_FUNCTION, "parent_ip", "ip", NULL },
	{ "ftrace", "func_repeats", FLAME_FUNCTION, "parent_ip", "ip", "count" },
	{ "hyptrace", "sample", FLAME_SAMPLE, "kernel", "user", "tgid" },
	{ NULL, "func", FLAME_HYP_FUNC, "ip", NULL, NULL },
	{ NULL, "func_ret", FLAME_HYP_RET, "ip", NULL, NULL },
};

static struct field_load flame_field(struct tep_event *e, const char *name)
{
	return field_load(name ? tep_find_field(e, name) : NULL);
}

/* Addresses are 64 bits wide: alone, or those that lie one behind the other. */
static bool flame_field_fits(const struct field_load *l, enum flame_kind kind)
{
	if (kind == FLAME_SAMPLE)
		return l->kind == FIELD_LOC;
	return kind <= FLAME_USER_STACK ? l->kind == FIELD_BYTES : l->kind == FIELD_NUMBER && l->size == 8;
}

/*
 * The field of `__get_stacktrace(stack)` in a print format: so kernels print a synthetic event's stack
 * (kernel/trace/trace_events_synth.c). libtraceevent 1.7 does not know the word, so the text is looked at.
 */
static void flame_array_open(struct flame_input *in, const struct dat_text *text)
{
	static const char word[] = "__get_stacktrace(", number[] = "\nID: ";
	const char *name = memmem(text->data, text->len, word, strlen(word)), *end = text->data + text->len;
	const char *at = memmem(text->data, text->len, number, strlen(number)), *close;
	const struct known_event *k;
	struct flame_event *to;
	unsigned int id = 0;
	char field[128] = "";

	if (!name || !at)
		return;
	name += strlen(word);
	close = memchr(name, ')', (size_t)(end - name));
	if (!close || close - name >= (ptrdiff_t)sizeof(field))
		return;
	memcpy(field, name, (size_t)(close - name));
	for (at += strlen(number); at < end && *at >= '0' && *at <= '9' && id <= UINT16_MAX; at++)
		id = 10 * id + (unsigned int)(*at - '0');
	k = input_event(in->in, id);
	if (!*field || !k)
		return;
	to = &in->events[k->event->id];
	to->pid = k->pid;
	to->where = flame_field(k->event, field);
	if (to->where.kind == FIELD_LOC || to->where.kind == FIELD_BYTES)
		to->kind = FLAME_ARRAY;
}

int flame_events_open(struct flame_input *in)
{
	const struct reader_info *info = reader_info(in->in->reader);

	in->events = calloc(in->in->n_known + 1, sizeof(*in->events));
	if (!in->events)
		return -ENOMEM;
	in->n_events = in->in->n_known;
	for (unsigned int id = 0; id < in->n_events; id++) {
		const struct flame_row *r = flame_rows, *end = r + ARRAY_SIZE(flame_rows);
		const struct known_event *k = input_event(in->in, id);
		struct flame_event *to = &in->events[id];

		while (k && r < end &&
		       ((r->system ? strcmp(r->system, k->event->system) != 0 : !k->hyp) ||
			strcmp(r->name, k->event->name) != 0))
			r++;
		if (!k || r == end)
			continue;
		to->pid = k->pid;
		to->where = flame_field(k->event, r->where);
		to->second = flame_field(k->event, r->second);
		to->number = flame_field(k->event, r->number);
		to->from = flame_field(k->event, "calltime");
		to->to = flame_field(k->event, "rettime");
		to->mode = flame_field(k->event, "mode");
		to->hz = flame_field(k->event, "hz");
		to->comm = flame_field(k->event, "comm");
		if (flame_field_fits(&to->where, r->kind) &&
		    (!r->second || flame_field_fits(&to->second, r->kind)))
			to->kind = r->kind;
	}
	for (size_t i = 0; i < info->n_formats; i++)
		flame_array_open(in, &info->formats[i].text);
	return 0;
}

static int items_room(struct flame_items *own, size_t addresses)
{
	return array_reach(&own->v, &own->room, own->n + 1, sizeof(*own->v))
		       ?: array_reach(&own->addresses, &own->room_addresses, own->n_addresses + addresses,
				      sizeof(*own->addresses));
}

void flame_items_free(void *own)
{
	struct flame_items *o = own;

	free(o->v);
	free(o->addresses);
	free(o->last);
	free(o);
}

static void items_address(struct flame_items *own, const struct flame_symbols *symbols, uint64_t addr)
{
	size_t symbol = symbols ? flame_symbols_find(symbols, addr) : 0;

	own->addresses[own->n_addresses++] = (struct flame_address){
		addr, symbols && symbol < symbols->n && symbol < UINT32_MAX ? (uint32_t)symbol : UINT32_MAX
	};
}

/* Up to n addresses from data on; a 0, or all bits, is the end. */
static void items_stack(const struct flame_input *in, struct flame_items *own, const struct flame_item *item,
			const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i++, data += 8) {
		uint64_t addr;

		memcpy(&addr, data, 8);
		if (!addr || addr == UINT64_MAX)
			return;
		if (item->kind == FLAME_KERNEL_STACK && addr == TRAMPOLINE)
			continue;
		if (item->kind == FLAME_ARRAY && addr < LENGTH_MAX && !i)
			continue;
		items_address(own, item->kind == FLAME_USER_STACK ? NULL : &in->symbols, addr);
	}
}

static uint64_t item_number(const struct field_load *l, const struct merge_record *m, uint64_t none)
{
	uint64_t v;

	return l->kind == FIELD_NUMBER && field_load_number(l, m->data, m->len, &v) ? v : none;
}

static int item_fill(const struct flame_input *in, const struct flame_event *e, const struct merge_record *m,
		     struct flame_items *own, struct flame_item *item)
{
	uint64_t said, from, to, addr;
	const uint8_t *data, *user;
	size_t n, n_user;

	item->pid = timeline_pid(&e->pid, m);
	item->number = item_number(&e->number, m, item->kind == FLAME_FUNCTION ? 1 : 0);
	item->tgid = item->kind == FLAME_USER_STACK ? (int32_t)item->number : item->pid;
	if (item->kind == FLAME_SAMPLE) {
		item->tgid = (int32_t)item->number;
		item->number = item_number(&e->mode, m, 0);
		said = item_number(&e->hz, m, 0);
		item->ns = said ? 1000000000 / said : 0;
		/* the kernel's stack, then the user's that it lies within */
		item->cut = field_load_bytes(&e->where, m->data, m->len, &data, &n) != 1;
		item->cut |= field_load_bytes(&e->second, m->data, m->len, &user, &n_user) != 1;
		if (items_room(own, n / 8 + n_user / 8))
			return -ENOMEM;
		items_stack(in, own, item, data, n / 8);
		for (size_t i = 0; i < n_user / 8; i++) {
			memcpy(&addr, user + 8 * i, 8);
			items_address(own, NULL, addr);
		}
	} else if (item->kind == FLAME_ARRAY) {
		item->cut = field_load_bytes(&e->where, m->data, m->len, &data, &n) != 1;
		if (items_room(own, n / 8))
			return -ENOMEM;
		items_stack(in, own, item, data, n / 8);
	} else if (item->kind <= FLAME_USER_STACK) {
		/*
		 * kernel_stack holds more callers than its format says, user_stack as many; both may claim
		 * more than there are.
		 */
		n = m->len > e->where.offset ? (m->len - e->where.offset) / 8 : 0;
		said = item->kind == FLAME_KERNEL_STACK ? item_number(&e->number, m, n) : n;
		item->cut = said > n;
		n = said < n ? (size_t)said : n;
		if (items_room(own, n))
			return -ENOMEM;
		items_stack(in, own, item, m->data + e->where.offset, n);
	} else {
		from = item_number(&e->from, m, UINT64_MAX);
		to = item_number(&e->to, m, 0);
		if (items_room(own, 2))
			return -ENOMEM;
		item->ns = from <= to ? to - from : FLAME_NO_TIME;
		/* a record that ends before its addresses is none */
		if (!field_load_number(&e->where, m->data, m->len, &addr))
			return 0;
		items_address(own, &in->symbols, addr);
		if (e->second.kind == FIELD_NUMBER && field_load_number(&e->second, m->data, m->len, &addr))
			items_address(own, &in->symbols, addr);
	}
	return 0;
}

static bool item_is_stack(const struct flame *f, const struct merge_record *m)
{
	const struct flame_input *in = &f->v[merge_stream(f->t->merge, m)->input];
	unsigned int id = timeline_id(m);

	return id < in->n_events && in->events[id].kind == FLAME_KERNEL_STACK;
}

static int items_record(const struct flame *f, const struct merge_run *run, size_t i, struct flame_items *own)
{
	const struct merge_record *m = &run->v[i];
	const struct merge_stream *s = merge_stream(f->t->merge, m);
	const struct flame_input *in = &f->v[s->input];
	unsigned int id = timeline_id(m);
	const struct flame_event *e = id < in->n_events ? &in->events[id] : NULL;
	uint32_t before = own->last[m->stream];
	struct flame_item item = { .ts = m->ts,
				   .at = (uint32_t)i,
				   .first = (uint32_t)own->n_addresses,
				   .stream = m->stream,
				   .cpu = s->cpu,
				   .input = (uint16_t)s->input };
	int ret;

	own->last[m->stream] = (uint32_t)i + 1;
	if (in->skip || !e || e->kind == FLAME_NONE)
		return 0;
	item.kind = (uint8_t)e->kind;
	ret = item_fill(in, e, m, own, &item);
	if (ret)
		return ret;
	item.n = (uint32_t)(own->n_addresses - item.first);
	item.before = item.kind == FLAME_ARRAY || item.kind == FLAME_SAMPLE ? (uint32_t)i + 1 : before;
	item.after_stack = before && item_is_stack(f, &run->v[before - 1]);
	own->v[own->n++] = item;
	return 0;
}

int flame_items_work(void *ctx, struct pass_run *run)
{
	const struct flame *f = ctx;
	struct flame_items *own = run->own ? run->own : (run->own = calloc(1, sizeof(*own)));
	int ret = 0;

	if (own && !own->last)
		own->last = calloc(f->n_streams + 1, sizeof(*own->last));
	if (!own || !own->last)
		return -ENOMEM;
	own->n = own->n_addresses = 0;
	for (size_t i = 0; i < run->records->n && !ret; i++)
		ret = items_record(f, run->records, i, own);
	/* the last record of each stream; its place in `last` is 0 again */
	for (size_t i = ret ? 0 : run->records->n; i--;) {
		const struct merge_record *m = &run->records->v[i];

		if (!own->last[m->stream])
			continue;
		own->last[m->stream] = 0;
		if (items_room(own, 0))
			return -ENOMEM;
		own->v[own->n++] = (struct flame_item){ .at = (uint32_t)run->records->n,
							.before = (uint32_t)i + 1,
							.stream = m->stream,
							.kind = FLAME_TAIL,
							.after_stack = item_is_stack(f, m) };
	}
	return ret;
}

/* Beside pids: pid 0 is another task on each CPU, and so is the hypervisor. */
#define KEY_IDLE(cpu) (-1 - (int64_t)(cpu))
#define KEY_HYP(cpu)  (INT64_MIN + (int64_t)(cpu))
#define KEY_NONE      INT64_MAX /* a record without a pid */

static int64_t flame_task_key(int32_t pid, uint32_t cpu)
{
	return pid > 0 ? pid : pid ? KEY_NONE : KEY_IDLE(cpu);
}

bool flame_listed(const struct strlist *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], name) || !fnmatch(l->v[i], name, 0))
			return true;
	return !l->n;
}

/* Makes the frame of the task, named by its last sample, else by the steps so far. */
static int flame_task_frame(struct flame *f, struct flame_task *t, int32_t pid)
{
	struct flame_input *in = &f->v[t->input];
	const char *idle = pid ? FLAME_UNKNOWN : "swapper";
	const char *known = *t->comm ? t->comm : pid > 0 ? t->name : idle, *comm = known ?: FLAME_UNKNOWN;
	const struct strlist *wanted = &f->opts.tasks;
	const char *text;
	char number[16];

	snprintf(number, sizeof(number), "%d", pid);
	f->text.len = 0;
	buf_printf(&f->text, "%s-%s", comm, number);
	text = buf_str(&f->text);
	t->idle = !pid && !f->opts.idle;
	t->skip =
		in->skip || !text ||
		(!flame_listed(wanted, comm) && !flame_listed(wanted, number) && !flame_listed(wanted, text));
	if (t->skip)
		return text ? 0 : -ENOMEM;
	if (pid <= 0 || (known && !f->opts.pids)) {
		f->text.len = 0;
		buf_addstr(&f->text, comm);
	}
	return buf_str(&f->text) ? flame_tree_named(f->tree, in->frame, buf_str(&f->text), &t->frame)
				 : -ENOMEM;
}

struct flame_task_wanted {
	int64_t key;
	uint32_t input;
};

static bool flame_task_same(const void *tasks, size_t i, const void *wanted)
{
	const struct flame_task *t = ((struct flame_task *const *)tasks)[i];
	const struct flame_task_wanted *w = wanted;

	return t->key == w->key && t->input == w->input;
}

/* NULL: it is not there, or, if it should be made, out of memory. *made: it is new. */
static struct flame_task *flame_task_any(struct flame *f, uint32_t input, int64_t key, bool *made)
{
	const struct flame_task_wanted wanted = { key, input };
	uint32_t hash = map_hash((uint64_t)key ^ (uint64_t)input << 48);
	size_t i = map_find(&f->by_key, hash, flame_task_same, f->tasks, &wanted);

	if (i == MAP_NONE && made) {
		struct flame_task *task = calloc(1, sizeof(*task));

		i = f->n_tasks;
		if (!task || map_push(&f->by_key, hash, &f->tasks, &f->n_tasks, &task, sizeof(task))) {
			free(task);
			return NULL;
		}
		task->input = input;
		task->key = key;
		*made = true;
	}
	return i == MAP_NONE ? NULL : f->tasks[i];
}

struct flame_task *flame_task_get(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu, uint64_t ts)
{
	bool made = false;
	struct flame_task *t = flame_task_any(f, input, flame_task_key(pid, cpu), &made);
	const char *name = pid > 0 ? steps_comm(f->steps, input, pid, ts) : NULL;

	if (!t || (!made && name == t->name))
		return t;
	t->name = name;
	*t->comm = '\0';
	return flame_task_frame(f, t, pid) ? NULL : t;
}

int flame_task_called(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu, uint64_t ts,
		      const char comm[16])
{
	struct flame_task *t = flame_task_get(f, input, pid, cpu, ts);

	if (!t || !strncmp(t->comm, comm, sizeof(t->comm)))
		return t ? 0 : -ENOMEM;
	memcpy(t->comm, comm, sizeof(t->comm));
	return flame_task_frame(f, t, pid);
}

struct flame_task *flame_task_find(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu)
{
	return flame_task_any(f, input, flame_task_key(pid, cpu), NULL);
}

struct flame_task *flame_task_hyp(struct flame *f, uint32_t input, uint32_t cpu)
{
	bool made = false;
	struct flame_task *t = flame_task_any(f, input, KEY_HYP(cpu), &made);

	if (t)
		t->cpu = cpu;
	return t;
}

void flame_count(struct flame *f, const struct flame_task *t, uint32_t frame, enum flame_weight w, uint64_t n)
{
	if (t->skip)
		return;
	if (t->idle)
		f->counts.idle[w] += n;
	else
		flame_tree_add(f->tree, frame, f->v[t->input].side, w, n);
}

int flame_name_of(struct flame *f, uint32_t input, int64_t pid, const struct flame_address *a, uint32_t *out)
{
	struct flame_input *in = &f->v[input];
	bool symbol = a->symbol < in->symbols.n;
	int ret;

	*out = symbol ? in->symbol_names[a->symbol] : 0;
	if (*out)
		return 0;
	f->text.len = 0;
	if (symbol)
		flame_symbol_text(&in->symbols, a->symbol, &f->text);
	else if (!flame_maps_text(&f->maps[input], pid, f->now, a->addr, &f->text))
		buf_printf(&f->text, "0x%" PRIx64, a->addr);
	if (!buf_str(&f->text))
		return -ENOMEM;
	ret = flame_tree_name(f->tree, buf_str(&f->text), f->text.len, out);
	if (symbol)
		in->symbol_names[a->symbol] = *out;
	return ret;
}

/* Below its thread, or its guest's client. */
int flame_span(void *flame, const struct markers_span *span)
{
	struct flame *f = flame;
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
		t = flame_task_get(f, (uint32_t)span->input, span->pid, 0, span->to);
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
