// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * hypertrace events: as QEMU's ftrace backend or a guest's library writes them
 * into trace_marker, and as records of an event guest_hypertrace of any system.
 */
#include <pthread.h>

#include "plugin.h"
#include "base/decode/mark-lines.h"
#include "base/files.h"

#define DESC_MAX (1u << 20) /* bytes of a description */

static struct tep_plugin_option options[] = {
	{ .name = (char *)"desc",
	  .plugin_alias = (char *)"hypertrace",
	  .description = (char *)"file with the events' names and arguments",
	  .value = "" },
	{ .name = NULL },
};

/* Read at the first event, since options may come after the loader. */
static struct mark_desc *desc;
static bool desc_read;
static unsigned int users;

static pthread_mutex_t desc_lock = PTHREAD_MUTEX_INITIALIZER; /* records may be printed in any thread */

static const struct mark_desc *description(void)
{
	const char *path = options[0].value;
	struct buf b = { 0 };
	unsigned int line = 0;
	int ret = 0;

	pthread_mutex_lock(&desc_lock);
	if (!desc_read && path && *path)
		ret = read_file(path, DESC_MAX, &b) ?: mark_desc_parse(b.data, b.len, &desc, &line);
	if (ret && line)
		plugin_warn("hypertrace", "%s:%u: not understood", path, line);
	else if (ret)
		plugin_warn("hypertrace", "cannot read %s: %s", path, strerror(-ret));
	buf_release(&b);
	desc_read = true;
	pthread_mutex_unlock(&desc_lock);
	return desc;
}

static void print_event(struct trace_seq *s, const struct mark_event *e)
{
	struct buf b = { 0 };

	mark_event_text(description(), e, &b);
	if (buf_str(&b))
		trace_seq_puts(s, buf_str(&b));
	buf_release(&b);
}

/* A line in trace_marker. */
static int hypertrace_print(struct trace_seq *s, struct tep_record *record, struct tep_event *event,
			    void *context)
{
	struct view v = { event, record, false };
	struct mark_event e;
	struct relay *r = context;
	const char *text;
	size_t len;

	relay_retire(r);
	if (!view_text(&v, "buf", &text, &len) || !mark_event_parse(text, len, &e))
		return relay_pass(r, s, record, event);
	print_event(s, &e);
	return 0;
}

static int decode_record(struct trace_seq *s, struct tep_record *record, struct tep_event *event,
			 void *context)
{
	struct view v = { event, record, false };
	struct mark_event e;

	if (!mark_record(&v, &e))
		return -1;
	if (v.bad)
		trace_seq_puts(s, "[record too short]");
	else
		print_event(s, &e);
	return 0;
}

/* Lines in trace_marker may be another plugin's. */
enum event_text_answer hyptrace_plugin_text(const struct tep_event *event, const struct event_text **rows,
					    size_t *n)
{
	return strcmp(event->name, MARK_EVENT) ? EVENT_TEXT_ALONE : EVENT_TEXT_TRY;
}

int TEP_PLUGIN_LOADER(struct tep_handle *tep)
{
	tep_plugin_add_options("hypertrace", options);
	users++;
	tep_register_event_handler(tep, -1, NULL, MARK_EVENT, decode_record, NULL);
	return relay_new(tep, "ftrace", "print", hypertrace_print);
}

int TEP_PLUGIN_UNLOADER(struct tep_handle *tep)
{
	tep_plugin_remove_options(options);
	tep_unregister_event_handler(tep, -1, NULL, MARK_EVENT, decode_record, NULL);
	relays_free(tep);
	if (!--users) {
		mark_desc_free(desc);
		desc = NULL;
		desc_read = false;
	}
	return 0;
}
