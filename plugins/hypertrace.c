// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * hypertrace events: as QEMU's ftrace backend or a guest's library writes them
 * into trace_marker, and as records of an event guest_hypertrace of any system.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hypertrace.h"
#include "plugin.h"

#define DESC_MAX (1u << 20) /* bytes of a description */

const char TEP_PLUGIN_ALIAS[] = "hypertrace";

struct tep_plugin_option TEP_PLUGIN_OPTIONS[] = {
	{ .name = (char *)"desc",
	  .plugin_alias = (char *)"hypertrace",
	  .description = (char *)"file with the events' names and arguments",
	  .value = "" },
	{ .name = NULL },
};

/* Read at the first event, since options may come after the loader. */
static struct hypertrace_desc *desc;
static bool desc_read;
static unsigned int users;

static const struct hypertrace_desc *description(void)
{
	const char *path = TEP_PLUGIN_OPTIONS[0].value;
	struct buf b = { 0 };
	unsigned int line = 0;
	int ret;

	if (desc_read)
		return desc;
	desc_read = true;
	if (!path || !*path)
		return NULL;
	ret = read_file(path, DESC_MAX, &b);
	if (!ret)
		ret = hypertrace_desc_parse(b.data, b.len, &desc, &line);
	if (ret && line)
		plugin_warn("hypertrace", "%s:%u: not understood", path, line);
	else if (ret)
		plugin_warn("hypertrace", "cannot read %s: %s", path, strerror(-ret));
	buf_release(&b);
	return desc;
}

static void print_event(struct trace_seq *s, const struct hypertrace_event *e)
{
	struct buf b = { 0 };

	hypertrace_text(description(), e, &b);
	if (buf_str(&b))
		trace_seq_puts(s, buf_str(&b));
	buf_release(&b);
}

/* A line in trace_marker. */
static int decode_print(struct trace_seq *s, struct tep_record *record, struct tep_event *event,
			void *context)
{
	struct view v = { event, record, false };
	struct hypertrace_event e;
	struct relay *r = context;
	const char *text;
	size_t len;

	relay_retire(r);
	if (!view_text(&v, "buf", &text, &len) || !hypertrace_line_parse(text, len, &e))
		return relay_pass(r, s, record, event);
	print_event(s, &e);
	return 0;
}

/* Fields arg1, arg2, ... or an array args of 64-bit numbers. */
static void read_args(struct view *v, struct hypertrace_event *e)
{
	const uint8_t *data;
	char name[16];
	size_t len;

	while (e->n_args < HYPERTRACE_ARGS_MAX) {
		snprintf(name, sizeof(name), "arg%zu", e->n_args + 1);
		if (!view_has(v, name))
			break;
		e->arg[e->n_args++] = view_u64(v, name);
	}
	if (e->n_args || !view_bytes(v, "args", &data, &len))
		return;
	for (; len >= 8 && e->n_args < HYPERTRACE_ARGS_MAX; data += 8, len -= 8)
		e->arg[e->n_args++] = tep_read_number(v->event->tep, data, 8);
}

static int decode_record(struct trace_seq *s, struct tep_record *record, struct tep_event *event,
			 void *context)
{
	struct view v = { event, record, false };
	struct hypertrace_event e = { 0 };

	e.has_cpu = view_has(&v, "cpu");
	e.cpu = view_u64(&v, "cpu");
	e.has_client = view_has(&v, "client");
	e.client = view_u64(&v, "client");
	read_args(&v, &e);
	if (v.bad)
		trace_seq_puts(s, "[record too short]");
	else if (e.n_args)
		print_event(s, &e);
	else
		return -1;
	return 0;
}

int TEP_PLUGIN_LOADER(struct tep_handle *tep)
{
	users++;
	tep_register_event_handler(tep, -1, NULL, HYPERTRACE_EVENT, decode_record, NULL);
	return relay_new(tep, "ftrace", "print", decode_print);
}

int TEP_PLUGIN_UNLOADER(struct tep_handle *tep)
{
	tep_unregister_event_handler(tep, -1, NULL, HYPERTRACE_EVENT, decode_record, NULL);
	relays_free(tep);
	if (!--users) {
		hypertrace_desc_free(desc);
		desc = NULL;
		desc_read = false;
	}
	return 0;
}
