/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HIST_TEXT_H
#define HYPTRACE_HIST_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Text of an event's `hist` file (kernel/trace/trace_events_hist.c), whose histograms have the keys pid,
 * perhaps one more, perhaps lat.log2, and the value lat:
 *   { pid:        112, by: sh (50 bytes), lat: ~ 2^24 } hitcount:          1  lat:   13640495
 */

#define HIST_WORD 16 /* TASK_COMM_LEN */

struct hist_entry {
	uint64_t pid;
	char key[8];	      /* of the key after pid: "by", "ec"; "": none */
	char word[HIST_WORD]; /* value of "by": valid UTF-8 without controls; all workers are "kworker" */
	uint64_t number;      /* value of another key */
	int log2;	    /* lat lies above 2^(log2 - 1) and is at most 2^log2, 0 to 64; -1: no such key */
	uint64_t hits, lat; /* lat: the sum */
};

struct hist_totals {
	uint64_t entries; /* of the fullest histogram */
	uint64_t dropped; /* events without room, of all histograms */
	uint64_t bad;	  /* entries of another form, which were skipped */
};

/* Gives each entry to `take`, and adds to the totals. 0 or the first error of take. A task's name cannot
 * forge an entry. */
int hist_text_read(const void *text, size_t len, int (*take)(void *ctx, const struct hist_entry *e),
		   void *ctx, struct hist_totals *totals);

#endif
