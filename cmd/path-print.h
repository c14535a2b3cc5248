/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_PATH_PRINT_H
#define HYPTRACE_PATH_PRINT_H

#include "path/read.h"
#include "util/answer.h"

/* What is to be told of a chain, and in what words. */
struct path_answer {
	const struct inputs *in;
	const struct steps *steps; /* for the words of reasons */
	const struct path_moment *moment;
	const struct path *path;
	const struct path_text *texts; /* by nr */
	size_t n_texts;
};

/* The records that prove it, in the order of nr, each once. NULL: no memory. */
struct path_text *path_texts_of(const struct path *p, const struct path_moment *m, size_t *n);
/* To out, in that form. */
void path_print(const struct path_answer *a, enum answer_form form, struct buf *out);

#endif
