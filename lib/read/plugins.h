/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PLUGINS_H
#define HYPTRACE_PLUGINS_H

#include <traceevent/event-parse.h>

#include "decode/event-text.h"
#include "util/base.h"

/*
 * libtraceevent's plugins: those that are installed, or in the static file (HYPTRACE_STATIC)
 * our own, which are linked into it; others cannot be loaded there.
 */

/* The caller unloads; one thread at a time (libtraceevent). NULL: there are none. */
struct tep_plugin_list *plugins_load(struct tep_handle *tep);
void plugins_unload(struct tep_plugin_list *list, struct tep_handle *tep);
/* The file of the plugin that prints the event, in memory that stays; NULL: not known. */
const char *plugins_file(const struct tep_event *event);
/* What a plugin of ours says of its handler (event_text_ask), others EVENT_TEXT_ALONE. */
enum event_text_answer plugins_ask(const struct tep_event *event, const struct event_text **rows, size_t *n);

#endif
