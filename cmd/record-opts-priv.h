/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_RECORD_OPTS_PRIV_H
#define HYPTRACE_RECORD_OPTS_PRIV_H

#include "record-opts.h"

/* What the option table (record-opts.c) and its functions (record-opts-set.c) share. */

struct parse {
	struct record_plan *plan;
	struct opts_error *err;
	size_t buffer;	   /* the one that options belong to: the last -B, 0 = top */
	bool has_event;	   /* -f and -R have an event to belong to */
	bool negate;	   /* -v */
	bool guest;	   /* options are for the last -A */
	bool guest_negate; /* -v among them */
	bool output;	   /* -o was given */
};

struct opt;
typedef int opt_set(struct parse *p, const struct opt *o, const char *arg);

/* One row per option of trace-cmd record, served or not. */
struct opt {
	struct opt_row row; /* first: opts.h */
	opt_set *set;
	size_t off;	  /* of the field that `set` fills, in the plan or the buffer */
	bool for_guest;	  /* after -A it is the guest's, and goes to its agent as it is */
	bool host;	  /* means nothing for the hypervisor's buffer */
	const char *also; /* what `set` puts into the field instead of the argument */
};

/* Both fill err and return -errno. */
int opts_fail(struct parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int opts_no_memory(struct parse *p);

/* Hands an option on to the guest of the last -A. */
int opts_for_guest(struct parse *p, const struct opt *o, const char *arg);

/* The buffer that options now belong to. */
struct buffer_plan *opts_buffer(struct parse *p);

/* into the plan's field at o->off */
opt_set set_flag, set_text, set_u64;
/* into the current buffer's field at o->off */
opt_set set_buffer_u64, add_to_list;
opt_set set_help, set_sleep, set_depth, set_prio, set_event, set_filter, set_trigger, set_negate, set_buffer,
	set_tracer, set_clock, set_cpumask, set_pids, set_output, set_compression, set_version, set_guest,
	set_guest_name, set_tsync, set_tsync_interval;

#endif
