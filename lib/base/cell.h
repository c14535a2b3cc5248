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

#define CELLS_MAX 512 /* of a column, given at once */

/*
 * Receives a table: some cells of each column, column by column, then the number of rows that they are. Of
 * those given at once the last one alone can be CELL_COPY.
 */
struct cell_sink {
	int (*cells)(void *ctx, size_t column, const struct cell *v, size_t n);
	int (*rows)(void *ctx, size_t n);
};

#endif
