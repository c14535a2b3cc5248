/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CELL_H
#define HYPTRACE_CELL_H

#include "base/std.h"

/* A value of a table's row. Zero-initialised = NULL. */
struct cell {
	enum cell_kind { CELL_NULL, CELL_NUMBER, CELL_TEXT, CELL_COPY, CELL_FAILED } kind;
	union {
		int64_t number;
		/* CELL_TEXT: lives as long as the files, unchanged; CELL_COPY: until the next cell is made */
		const char *text;
	};
};

/* The same of a column whose type is known. */
union value {
	int64_t number;	  /* VALUE_NULL: NULL */
	const char *text; /* as of CELL_TEXT; NULL: NULL */
};

#define VALUE_NULL INT64_MIN
#define VALUES_MAX 512 /* of a column, given at once */

/*
 * Receives a table: values of each column, column by column, one by one or many at once, then the number of
 * rows that they are.
 */
struct cell_sink {
	int (*cell)(void *ctx, size_t column, struct cell v);
	void (*values)(void *ctx, size_t column, const union value *v, size_t n);
	int (*rows)(void *ctx, size_t n);
};

#endif
