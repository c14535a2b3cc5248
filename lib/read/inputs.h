/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_INPUTS_H
#define HYPTRACE_INPUTS_H

#include "read/merge.h"
#include "dat/offset.h"
#include "read/tepfile.h"

/*
 * The trace.dat files that are looked at together, each with what libtraceevent
 * needs to read its records, and which of them is whose guest.
 */
struct input {
	const char *path; /* the caller's */
	int fd;
	struct reader *reader;
	struct filetime time;
	struct tep_handle *tep;
	struct tep_plugin_list *plugins;
	size_t format_failures; /* formats that libtraceevent could not parse */

	/* By inputs_open only. */
	uint64_t trace_id; /* 0: none */
	char *machine;	   /* the guest's name, else the file's without ".dat" */
	bool guest;
	/* the guests that this file tells of, with the host threads of their vCPUs */
	struct offset_guest *guests;
	size_t n_guests;
};

struct inputs {
	struct input *v;
	size_t n;
};

/*
 * One file, in two steps: between them the caller may correct in->time, and give
 * in->tep flags and handlers, which come before the plugins and the formats that
 * input_load adds. flags: FILETIME_*. The log says what is wrong with which file:
 * -errno. *in must be released in any case.
 */
int input_open(struct input *in, const char *path, unsigned int flags, const struct log *log);
int input_load(struct input *in, const struct log *log);
void input_release(struct input *in);
/* For merge_open, as long as *in is open. */
struct merge_input input_for_merge(const struct input *in);

/* All files, loaded and with whose guest they are. The rest as input_open. */
int inputs_open(struct inputs *in, const struct strlist *paths, const struct log *log);
void inputs_release(struct inputs *in);
/* The vCPU that a host thread runs, by the file's GUEST options; NULL: none is known. */
const struct offset_vcpu *input_vcpu(const struct input *in, int64_t tid, const struct offset_guest **guest);

#endif
