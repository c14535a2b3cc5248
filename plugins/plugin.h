/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PLUGIN_H
#define HYPTRACE_PLUGIN_H

#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "base/decode/event-text.h"

/*
 * Shared by the libtraceevent plugins: reading a record's fields within its bounds, tables of events, and
 * overriding another plugin's handler of an event.
 */

/*
 * Symbols that libtraceevent looks up in a plugin; all others are hidden (plugin.map). The loader registers
 * the options: since 1.9 libtraceevent does not look for them.
 */
int TEP_PLUGIN_LOADER(struct tep_handle *tep);
int TEP_PLUGIN_UNLOADER(struct tep_handle *tep);
event_text_ask hyptrace_plugin_text;

struct mark_event;

/* A record and its event. A read beyond the record's bytes gives 0 or "" and sets bad. */
struct view {
	struct tep_event *event;
	const struct tep_record *record;
	bool bad;
};

/* True: the format has it, as an integer of 1, 2, 4 or 8 bytes. */
bool view_has(const struct view *v, const char *field);
/* Sign-extended when the field is signed; 0 when the format does not have it. */
uint64_t view_u64(struct view *v, const char *field);
static inline int64_t view_s64(struct view *v, const char *field)
{
	return (int64_t)view_u64(v, field);
}
/* The bytes of a string, array or __data_loc field. False: the format has none. */
bool view_bytes(struct view *v, const char *field, const uint8_t **data, size_t *len);
/* The same up to the first NUL, without trailing line ends. */
bool view_text(struct view *v, const char *field, const char **text, size_t *len);

/*
 * A record of an event guest_hypertrace of any system: fields arg1, arg2, ... or an
 * array args of 64-bit numbers, and cpu and client where there are such. False: the
 * format has no arguments. v->bad: the record is shorter than its format.
 */
bool mark_record(struct view *v, struct mark_event *e);

/* " (comm)" of the task of a field's pid; " (function+0x10)" of a guest's pc. Nothing if unknown. */
void view_put_task(struct trace_seq *s, struct view *v, const char *field);
void view_put_function(struct trace_seq *s, struct view *v, const char *pc);

/*
 * Functions of a guest are the program's to find, which has the guest's file: trace-cmd
 * report and hyptrace do. NULL in programs that do not.
 */
extern __typeof__(tep_plugin_kvm_get_func) tep_plugin_kvm_get_func __attribute__((weak));
extern __typeof__(tep_plugin_kvm_put_func) tep_plugin_kvm_put_func __attribute__((weak));

#define NEEDS_MAX 8
#define ROWS_MAX  6

/* One event: it is printed when its format has all the integer fields that print or the rows read. */
struct decoder {
	const char *event;
	void (*print)(struct trace_seq *s,
		      struct view *v); /* NULL: the first member of a struct row_decoder */
	const char *needs[NEEDS_MAX];  /* NULL-ended unless full */
};

/* Decoder made of rows; rows without a field are unused. */
struct row_decoder {
	struct decoder d;
	struct event_text rows[ROWS_MAX];
	const struct tep_plugin_option *plain; /* set: without tasks and functions, which come last */
};

/*
 * libtraceevent's handler; context is the decoder. -1 with nothing printed for a
 * format without the fields; "[record too short]" for a record without them.
 */
int decode(struct trace_seq *s, struct tep_record *record, struct tep_event *event, void *context);
/* The answer of event_text_ask where d prints the event, by decode. NULL: EVENT_TEXT_ALONE. */
enum event_text_answer decoder_text(const struct decoder *d, const struct tep_event *event,
				    const struct event_text **rows, size_t *n);
/* The one of that name among n, of `size` bytes each; NULL: none. */
const struct decoder *decoder_find(const struct decoder *v, size_t n, size_t size, const char *event);
/* tep_register_event_handler() or tep_unregister_event_handler() */
typedef __typeof__(tep_register_event_handler) handler_change;
/* Registers or unregisters n decoders of that system, which must stay between the two. */
void decoders_change(handler_change *change, struct tep_handle *tep, const char *sys, const struct decoder *v,
		     size_t n);

/* ---- more than one plugin for an event -------------------------------------------- */

/*
 * libtraceevent keeps one handler for an event, that of the plugin loaded last. With a relay we are asked
 * first wherever we were in that order, and hand on what is not ours to the one that would have been asked
 * without us.
 *
 * By a decoy: an event of the same system and name with an id that no trace has. While it is parsed it
 * takes the handler that was registered before ours, and a plugin that registers later finds the decoy and
 * puts its handler there, instead of in front of ours in the list that the trace's own event is looked up in.
 * At the first record the decoy has done its work and gets another name.
 */
struct relay;

/*
 * Registers func, which gets the relay as its context. sys and event must stay.
 * -1: no memory, func is not registered.
 */
int relay_new(struct tep_handle *tep, const char *sys, const char *event, tep_event_handler_func func);
/* All relays of that tep in this plugin. */
void relays_free(struct tep_handle *tep);
/* Calls the next handler in line; -1 and nothing printed when there is none. */
int relay_pass(struct relay *r, struct trace_seq *s, struct tep_record *record, struct tep_event *event);
/* To be called by func at its start. */
void relay_retire(struct relay *r);

/* A plugin has no log: a line on standard error, "hyptrace <plugin>: ...". */
void plugin_warn(const char *plugin, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
