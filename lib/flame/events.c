// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which events of a file hold stacks or calls, and where in their records. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flame/flame-priv.h"

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

static const struct flame_row *flame_row_of(const struct known_event *k)
{
	for (size_t i = 0; i < ARRAY_SIZE(flame_rows); i++) {
		const struct flame_row *r = &flame_rows[i];

		if ((r->system ? !strcmp(r->system, k->event->system) : k->hyp) &&
		    !strcmp(r->name, k->event->name))
			return r;
	}
	return NULL;
}

/* Addresses are 64 bits wide: alone, or those that lie one behind the other. */
static bool flame_field_fits(const struct field_load *l, enum flame_kind kind)
{
	if (kind == FLAME_SAMPLE)
		return l->kind == FIELD_LOC;
	return kind <= FLAME_USER_STACK ? l->kind == FIELD_BYTES : l->kind == FIELD_NUMBER && l->size == 8;
}

static void flame_event_open(struct flame_event *to, const struct known_event *k)
{
	const struct flame_row *r = flame_row_of(k);

	if (!r)
		return;
	to->pid = k->pid;
	to->where = flame_field(k->event, r->where);
	to->second = flame_field(k->event, r->second);
	to->number = flame_field(k->event, r->number);
	to->from = flame_field(k->event, "calltime");
	to->to = flame_field(k->event, "rettime");
	to->mode = flame_field(k->event, "mode");
	to->comm = flame_field(k->event, "comm");
	if (flame_field_fits(&to->where, r->kind) && (!r->second || flame_field_fits(&to->second, r->kind)))
		to->kind = r->kind;
}

/* ---- stacks in fields of events ----------------------------------------------------------- */

/*
 * The field of `__get_stacktrace(stack)` in a print format: so kernels print a synthetic event's stack
 * (kernel/trace/trace_events_synth.c). libtraceevent 1.7 does not know the word, so the text is looked at.
 */
static bool flame_array_named(const struct dat_text *text, char name[128])
{
	static const char word[] = "__get_stacktrace(";
	const char *at = memmem(text->data, text->len, word, strlen(word)), *end;
	size_t n;

	if (!at)
		return false;
	at += strlen(word);
	end = memchr(at, ')', text->len - (size_t)(at - text->data));
	n = end ? (size_t)(end - at) : 0;
	if (!n || n >= 128)
		return false;
	memcpy(name, at, n);
	name[n] = '\0';
	return true;
}

static const struct known_event *flame_format_event(const struct input *in, const struct dat_text *text)
{
	static const char word[] = "\nID: ";
	const char *at = memmem(text->data, text->len, word, strlen(word));
	const char *end = text->data + text->len;
	unsigned int id = 0;

	if (!at)
		return NULL;
	for (at += strlen(word); at < end && *at >= '0' && *at <= '9' && id <= UINT16_MAX; at++)
		id = 10 * id + (unsigned int)(*at - '0');
	return input_event(in, id);
}

static void flame_array_open(struct flame_input *in, const struct dat_text *text)
{
	const struct known_event *k;
	struct flame_event *to;
	char name[128];

	if (!flame_array_named(text, name))
		return;
	k = flame_format_event(in->in, text);
	if (!k)
		return;
	to = &in->events[k->event->id];
	to->pid = k->pid;
	to->where = flame_field(k->event, name);
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
		const struct known_event *k = input_event(in->in, id);

		if (k)
			flame_event_open(&in->events[id], k);
	}
	for (size_t i = 0; i < info->n_formats; i++)
		flame_array_open(in, &info->formats[i].text);
	return 0;
}
