/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CTF_PRIV_H
#define HYPTRACE_CTF_PRIV_H

#include <babeltrace2/babeltrace.h>

#include "convert/export/export.h"
#include "base/arena.h"

/* Shared by the files of export --ctf. babeltrace2's calls end the program where they are used wrongly. */
struct ctf_field {
	struct field_load load, item; /* item: of an array */
	size_t items;		      /* of an array of always as many; 0: as many as the record has */
	bool is_text, is_signed;
};

/* The records of an event in the streams of a buffer. */
struct ctf_event {
	bt_event_class *class;
	size_t n;
	struct ctf_field v[];
};

struct ctf_buffer {
	bt_stream_class *class;
	struct ctf_event **events; /* by id; NULL: not met yet */
	struct ctf_event *raw;	   /* of records that are written as their bytes */
};

/* A machine is a trace. */
struct ctf_input {
	bt_trace_class *class;
	bt_trace *trace;
	struct ctf_buffer *buffers;
};

#define CTF_QUEUE 8

/* A CPU of a buffer. */
struct ctf_stream {
	size_t index; /* of the timeline's streams */
	const struct merge_stream *at;
	bt_stream *stream;
	bt_packet *packet; /* the one that is open; NULL: none */
	size_t in_packet;  /* events */
	struct merge_run run;
	size_t next;	 /* in the run */
	uint64_t last;	 /* time of what was given last */
	bool begun, any; /* any: there was a packet */
	bool over;
	const bt_message *queue[CTF_QUEUE];
	size_t queued, given;
};

/* Of a stream's records. */
struct ctf_counts {
	uint64_t records, unknown; /* as in struct export_job */
	uint64_t back, raw;	   /* their time was before that of the one before; written as bytes */
};

/* A stream and the graph of babeltrace2 that writes it; nothing of it is another thread's. */
struct ctf {
	const struct timeline *timeline;
	const struct inputs *in;
	struct ctf_stream stream;
	struct ctf_input *v;
	bt_clock_class *clock;
	struct arena kept;
	struct ctf_counts counts;
	int ret; /* why the graph ended */
};

#define CTF_NAME 200 /* bytes */

/* A name that may stand in quotes, and be a file's. */
const char *ctf_name(const char *name, char room[CTF_NAME]);
/* ctf-class.c. -ENOMEM. A trace for each input with a class for the streams of each of its buffers. */
int ctf_classes_open(struct ctf *c, bt_self_component *self);
void ctf_classes_release(struct ctf *c);
int ctf_stream_open(struct ctf *c);
/* NULL: out of memory. */
const struct ctf_event *ctf_event_of(struct ctf *c, const struct merge_stream *at, unsigned int id,
				     const struct known_event *k);
const struct ctf_event *ctf_event_raw(struct ctf *c, const struct merge_stream *at);

/* True if the record has all its fields; the other two fill them. -ENOMEM. */
bool ctf_event_fits(const struct ctf_event *e, const struct merge_record *m);
int ctf_event_fill(const struct ctf_event *e, const struct merge_record *m, int pid, bt_event *event);
int ctf_event_fill_raw(const struct merge_record *m, bt_event *event);

#endif
