/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EVENT_TEXT_H
#define HYPTRACE_EVENT_TEXT_H

#include "base/std.h"

struct tep_event;

/*
 * An event's text as one of our plugins prints it, row by row, so that a reader of many records need
 * not call the plugin for each (lib/read/text.h).
 */
enum event_text_kind {
	EVENT_TEXT_HEX,	     /* of `bits`, with `digits` or more */
	EVENT_TEXT_SIGNED,   /* of 32 bits */
	EVENT_TEXT_NAME,     /* name(event, number), or if that is NULL, the number */
	EVENT_TEXT_HEX_NAME, /* or 0x and the number */
	EVENT_TEXT_TASK,     /* " (comm)" of a pid above 0 that has a name */
	EVENT_TEXT_FUNCTION, /* " (function+0x10)" of a guest, if tep_plugin_kvm_get_func knows it */
};

struct event_text {
	const char *before, *field;
	enum event_text_kind kind;
	uint8_t bits, digits;
	const char *(*name)(const struct tep_event *event, uint64_t value);
};

enum event_text_answer {
	EVENT_TEXT_ALONE,     /* only one thread may call the event's handler, record after record */
	EVENT_TEXT_CALL,      /* several at a time; it prints all records */
	EVENT_TEXT_FUNCTIONS, /* the same; it names functions of the file's kernel */
	EVENT_TEXT_TRY,	      /* several at a time; it leaves records to the print format */
	EVENT_TEXT_LEAVE,     /* it leaves all to the print format */
	EVENT_TEXT_ROWS, /* *rows are the text; records that lack a field of it are "[record too short]" */
};

/*
 * Export of our plugins, "hyptrace_plugin_text". To be asked when all plugins, options and formats are there.
 */
typedef enum event_text_answer event_text_ask(const struct tep_event *event, const struct event_text **rows,
					      size_t *n);

#endif
