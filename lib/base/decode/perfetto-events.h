/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PERFETTO_EVENTS_H
#define HYPTRACE_PERFETTO_EVENTS_H

#include "base/std.h"

/* Perfetto's traces: protos/perfetto/trace/ of its tree, as of v58, has the numbers. */

/* A higher CPU is none: trace_processor gives up on its trace. */
#define PERFETTO_CPUS 1024

/* Fields of messages; export writes a message's fields in their order. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_FTRACE_EVENTS = 1,
	PACKET_PROCESS_TREE = 2,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_FTRACE_STATS = 34,
	PACKET_STATE_CLEARED = 41,
	PACKET_DROPPED = 42,
	PACKET_SYSTEM_INFO = 45,
	PACKET_COMPRESSED = 50,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_FIRST_ON_SEQUENCE = 87,
	PACKET_MACHINE_ID = 98,
	PACKET_REMOTE_CLOCK_SYNC = 107,
	PACKET_TASK_RENAME = 120,
	PACKET_ZSTD = 133
};
enum { SEQ_INCREMENTAL_STATE_CLEARED = 1, SEQ_NEEDS_INCREMENTAL_STATE = 2 }; /* of PACKET_SEQUENCE_FLAGS */
enum { INFO_UTSNAME = 1, INFO_MACHINE_NAME = 17 };
enum { UTS_SYSNAME = 1, UTS_VERSION = 2, UTS_RELEASE = 3, UTS_MACHINE = 4, UTS_END };
enum { TREE_PROCESS = 1, TREE_THREAD = 2, TASK_PID = 1, TASK_COMM = 2, PROCESS_CMDLINE = 3 };
enum {
	BUNDLE_CPU = 1,
	BUNDLE_EVENT = 2,
	BUNDLE_LOST = 3,
	BUNDLE_COMPACT = 4,
	BUNDLE_CLOCK = 5,
	BUNDLE_ERROR = 8,
	BUNDLE_DESCRIBED = 11
};
/* Of an event; its own message has its perfetto_event.number. */
enum { EVENT_TIMESTAMP = 1, EVENT_PID = 2, EVENT_FLAGS = 5, EVENT_GENERIC = 327 };
enum { GENERIC_NAME = 1, GENERIC_FIELD = 2 };
enum { GENERIC_FIELD_NAME = 1, GENERIC_STR = 3, GENERIC_INT = 4, GENERIC_UINT = 5 };

struct perfetto_event {
	uint32_t number; /* in Perfetto's FtraceEvent; 0: it has no message of its own */
	bool written;	 /* by export; others become generic events, which Perfetto shows as well */
	const char *system, *name;
	/*
	 * "TYPE NAME=NUMBER;...": in the kernel's order, with the numbers of Perfetto's message. TYPE: u8 to
	 * u64, s8 to s64, sym (an address that Perfetto made the number of a symbol), char16 (a text of
	 * that many bytes), text (of any length), rest (likewise, the last one, which ends the record).
	 * + before it: only older kernels have the field; it is written, but not expected.
	 */
	const char *fields;
	const char *print_fmt; /* the kernel's; NULL: Perfetto lacks a field that it wants */
};

/* The event of a number, or of a name of len bytes; NULL: none. */
const struct perfetto_event *perfetto_event_numbered(uint32_t number);
const struct perfetto_event *perfetto_event_named(const char *name, size_t len);
/* The message that export writes an event as; NULL: none. Android's generations of "hypervisor" differ. */
const struct perfetto_event *perfetto_event_written(const char *system, const char *name);

struct perfetto_field {
	enum perfetto_kind {
		PERFETTO_NUMBER,
		PERFETTO_SYMBOL,
		PERFETTO_CHARS,
		PERFETTO_TEXT,
		PERFETTO_REST
	} kind;
	char name[64];
	uint32_t number;
	unsigned int size; /* bytes in the kernel's record; of PERFETTO_TEXT and _REST 0 */
	bool is_signed, old;
};

/* Takes the next field off *fields. False: there is none. */
bool perfetto_field_next(const char **fields, struct perfetto_field *f);

#endif
