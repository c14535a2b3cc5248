/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_OPTS_H
#define HYPTRACE_CMD_OPTS_H

#include "util/base.h"

/* Command lines in the grammar of a trace-cmd command, by a table. */

/*
 * One option, served or not. One with neither letter nor name is a heading of
 * the usage text; one with `instead` is refused with that text.
 */
struct opt_row {
	char key;	  /* the short letter, 0: none */
	const char *name; /* long name, without "--" */
	const char *arg;  /* name of its argument; "[x]": may be left out */
	const char *help;
	const char *instead;
};

struct opts_table {
	const char *command; /* "record" */
	const void *rows;    /* structs that begin with a struct opt_row, */
	size_t n, size;	     /* so many of that size */
	bool in_order;	     /* options end at the first other word */
};

struct opts_error {
	char text[512]; /* one line, lower case, no full stop */
};

enum { OPTS_STOP = 1 };

/* arg: NULL when there is none. 0 goes on, OPTS_STOP (-h) ends without error; -errno. */
typedef int opts_apply(void *ctx, const struct opt_row *row, const char *arg);

/*
 * argv[0] is the command's own name. 0, OPTS_STOP or -errno with the reason in
 * err; then argv from getopt's optind on is what is no option. Prints nothing.
 */
int opts_parse(const struct opts_table *t, int argc, char **argv, opts_apply *apply, void *ctx,
	       struct opts_error *err);
/* Fills err; returns -EINVAL. */
int opts_error(struct opts_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int opts_verror(struct opts_error *err, const char *fmt, va_list ap);

/* "-b" or "--user" */
const char *opt_name(const struct opt_row *o, char text[32]);

/* The headings and options that are served, for -h. */
void opts_usage(const struct opts_table *t, struct buf *out);

#endif
