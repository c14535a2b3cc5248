/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FILTER_PRIV_H
#define HYPTRACE_FILTER_PRIV_H

#include "read/filter.h"
#include "util/field.h"

/* Where a test leads: to another, or here. */
enum { FILTER_REJECT, FILTER_ACCEPT, FILTER_FIRST };

/* One comparison, of a field with a constant. */
struct filter_test {
	enum { FILTER_IS_NUMBER, FILTER_IS_TEXT, FILTER_IS_PATTERN } kind;
	enum filter_of {
		FILTER_OF_WORD,	    /* the field's bytes, as a number */
		FILTER_OF_CPU,	    /* the record's */
		FILTER_OF_COMM,	    /* its task's name */
		FILTER_OF_STRING,   /* a string in the record */
		FILTER_OF_FUNCTION, /* the name of the function that the number is in */
	} of;
	uint32_t yes, no;	/* index of the next test, FILTER_REJECT or FILTER_ACCEPT */
	struct field_load load; /* of COMM: the pid's */
	union {
		struct {
			enum tep_filter_exp_type exp; /* TEP_FILTER_EXP_NONE: the field itself ... */
			uint64_t with;
			enum tep_filter_cmp_type cmp; /* ... is compared */
			uint64_t value;
		} number;
		struct {
			const char *s;
			size_t len;
		} text;
		regex_t *pattern;
	};
};

struct filter {
	struct tep_event_filter *parsed; /* strings and patterns are its */
	struct filter_test *tests;
	size_t n;
	uint32_t *entry; /* by the event's id: its first test, FILTER_REJECT or FILTER_ACCEPT */
	size_t n_entries;
};

/* What has been parsed, into tests. -ENOMEM. */
int filter_compile(struct filter *f);

#endif
