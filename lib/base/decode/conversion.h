/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CONVERSION_H
#define HYPTRACE_CONVERSION_H

#include "base/std.h"

/* A conversion of a print format, in printf's order: "-08.3ll" and the letter. */
struct conversion {
	bool left, zero, alternate; /* '-', '0', '#' */
	bool plus;		    /* '+' or ' ' */
	bool width_is_arg, precision_is_arg;
	int width;	    /* at most CONVERSION_MOST; 0: none */
	int precision;	    /* likewise; -1: none */
	const char *length; /* "ll", "h" ...: n_length of hlLzZt */
	size_t n_length;
	char letter; /* any byte; users know theirs, and what follows a 'p' */
};

#define CONVERSION_MOST 65535

/* Scans the bytes after '%' up to and with the letter. Returns the end; NULL: there is no letter before
 * `end`. */
const char *conversion_scan(const char *s, const char *end, struct conversion *c);

/* True if the length is of these letters only. */
bool conversion_length_of(const struct conversion *c, const char *letters);

#endif
