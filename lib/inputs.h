/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_INPUTS_H
#define HYPTRACE_INPUTS_H

#include "filetime.h"
#include "offset.h"
#include "tepfile.h"

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
	uint64_t trace_id;  /* 0: none */
	char *machine;	    /* the guest's name, else the file's without ".dat" */
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
 * Opens the files with libtraceevent's plugins. The log says what is wrong with
 * which file: -errno. *in must be released in any case.
 */
int inputs_open(struct inputs *in, const struct strlist *paths, const struct log *log);
void inputs_release(struct inputs *in);
/* The vCPU that a host thread runs, by the file's GUEST options; NULL: none is known. */
const struct offset_vcpu *input_vcpu(const struct input *in, int64_t tid,
				     const struct offset_guest **guest);

#endif
