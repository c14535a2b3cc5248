/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYPTEXT_PATTERN_H
#define HYPTRACE_HYPTEXT_PATTERN_H

#include "record/hyp/hypevents.h"

/*
 * A print format taken apart: literals and conversions of single fields. From it come the way back (an
 * event's text into its fields) and a print format that libtraceevent understands. For lib/record/hyp only.
 */

enum conv {
	CONV_NONE,   /* only the literal: the last item */
	CONV_SIGNED, /* %d %i */
	CONV_UNSIGNED,
	CONV_HEX,
	CONV_CHAR,
	CONV_STRING,  /* %s of a char array */
	CONV_REASON,  /* %s of __hyp_enter_exit_reason_str() */
	CONV_POINTER, /* %p */
	CONV_SYMBOL,  /* %ps: no way back */
};

struct pattern_item {
	char *literal; /* before the conversion, "%%" undone */
	size_t literal_len;
	enum conv conv;
	char letter;  /* of the conversion */
	size_t field; /* index into the event's fields */
	unsigned int width;
	bool zero, left, wide; /* flags 0 and -, 8 bytes */
};

struct hyptext_pattern {
	struct pattern_item *v; /* the last one is CONV_NONE */
	size_t n;
	bool invertible; /* the text determines the fields */
};

/*
 * *out is NULL (and the result 0) when the print format has anything that is not
 * understood or that libtraceevent would print differently. -ENOMEM.
 */
int hyptext_pattern_new(const struct event_format *f, struct hyptext_pattern **out);
void hyptext_pattern_free(struct hyptext_pattern *p);

/* The reason's text is left to the caller: it is numbered only when all of the line matches. */
struct pattern_reason {
	const char *text; /* NULL: the pattern has none */
	size_t len;
	size_t field;
};

/*
 * Parses the text after the event's name into rec, a zeroed record in the written form. False: this
 * format does not print such a text.
 */
bool hyptext_pattern_match(const struct hyptext_pattern *p, const struct event_format *f, const char *text,
			   size_t len, uint8_t *rec, struct pattern_reason *reason);

/* Bytes of the header in the kernel's own records, and where a field is in the written record. */
unsigned int hyp_kernel_header(const struct event_format *f);
size_t hyp_written_offset(const struct event_format *f, const struct event_field *field);

/*
 * Longest text kept in a record, and longest fixed body of one: with header and
 * string it must fit into a page.
 */
#define HYP_TEXT_MAX   3840
#define HYP_BODY_MAX   3840
#define HYP_RECORD_MAX 4000

#endif
