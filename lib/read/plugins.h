/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PLUGINS_H
#define HYPTRACE_PLUGINS_H

#include <traceevent/event-parse.h>

#include "base/log.h"
#include "base/decode/event-text.h"

/*
 * Decoders of events, by libtraceevent's interface for plugins: ours, which are linked into the program, and
 * after them those of others that libtraceevent finds. Files of ours that it finds are passed over. The
 * static file (HYPTRACE_STATIC) loads no others.
 */
struct plugins;

/* The caller unloads *out in any case; one thread at a time (libtraceevent). 0 or -ENOMEM. */
int plugins_load(struct plugins **out, struct tep_handle *tep, const struct log *log);
void plugins_unload(struct plugins *p, struct tep_handle *tep);
/* The file of the program or the plugin that prints the event, in memory that stays. */
const char *plugins_file(const struct tep_event *event);
/* Returns the answer of our plugin about its handler (event_text_ask), EVENT_TEXT_ALONE for others. */
enum event_text_answer plugins_ask(const struct tep_event *event, const struct event_text **rows, size_t *n);

#endif
