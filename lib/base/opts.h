/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_OPTS_H
#define HYPTRACE_OPTS_H

#include "base/buf.h"
#include "base/strings.h"

/*
 * Command lines by a table, in getopt_long's grammar: the options of every command, those of the agent, and
 * those that a recorder sends to an agent. There is no state but the caller's.
 */

/* Why a command line was refused: one line, lower case, no full stop. */
struct opts_error {
	char text[512];
};

enum { OPTS_STOP = 1 };

struct opt;
/*
 * Takes one option; arg: NULL when there is none. 0 continues, OPTS_STOP (-h) ends
 * without error; -errno with the reason in err (-ENOMEM needs none).
 */
typedef int opt_set(void *ctx, const struct opt *o, const char *arg, struct opts_error *err);

/* One option, served or not. One with neither letter nor name is a heading of the usage text. */
struct opt {
	char key;	  /* the short letter, 0: none */
	const char *name; /* long name, without "--" */
	const char *arg;  /* name of its argument; "[X]": the next word unless that is an option;
			   * "[=X]": only what stands in the same word */
	const char *help; /* '\n' begins a further line */
	opt_set *set;
	size_t off;		  /* of the field that `set` fills, in ctx */
	uint64_t min, max;	  /* opts_set_number, opts_set_amount: what the field may be */
	const struct unit *units; /* opts_set_amount: of a duration or a size ... */
	uint64_t unit,
		plain; /* ... ns or bytes of 1 in the field, and of a number without a unit (0: needs one) */
	const char *text;    /* what `set` puts into the field instead of the argument */
	const char *words;   /* of which the argument is one, or a list, with blanks between; NULL: any */
	const char *instead; /* it is refused, with this advice; not in the usage text */
	unsigned int flags;  /* the table's own */
};

/* Rows of a table; the fields that a row has besides are named: .off = ... */
/* clang-format off */
#define OPT(k, n, a, h, fn, ...) { .key = k, .name = n, .arg = a, .help = h, .set = fn, __VA_ARGS__ }
#define OPT_REFUSED(k, n, a, text, ...) { .key = k, .name = n, .arg = a, .instead = text, __VA_ARGS__ }
#define OPT_DURATION(k, n, h, plain_ns, field_ns, ...) \
	OPT(k, n, "DURATION", h, opts_set_amount, .units = duration_units, .plain = plain_ns, .unit = field_ns, __VA_ARGS__)
#define OPT_SIZE(k, n, h, plain_bytes, field_bytes, ...) \
	OPT(k, n, "SIZE", h, opts_set_amount, .units = size_units, .plain = plain_bytes, .unit = field_bytes, __VA_ARGS__)
#define OPT_HEADING(h) { .help = h }
/* clang-format on */

struct opts_table {
	const char *command; /* "record"; NULL: words that came from another machine */
	const char *usage;   /* the usage text before the options ... */
	const char *foot;    /* ... and after them; NULL: nothing */
	const struct opt *rows;
	size_t n;
	bool in_order;	   /* options end at the first other word */
	bool whole_names;  /* long names may not be shortened */
	opt_set *dispatch; /* sees each option instead of the row's `set`; NULL: that one */
};

/*
 * argv[0] is the command's own name, argv[*argc] is NULL. 0, OPTS_STOP or
 * -errno with the reason in err; afterwards the *argc words from argv[0] on are
 * the name and what is no option. Prints nothing.
 */
int opts_parse(const struct opts_table *t, int *argc, char **argv, void *ctx, struct opts_error *err);

/* Functions for `set`: the field is a bool, a borrowed or a malloc'ed string, a 64-bit number (amount: of
 * the row's unit, rounded up), a strlist. */
opt_set opts_set_flag, opts_set_text, opts_set_copy, opts_set_number, opts_set_amount, opts_add_text,
	opts_help;

/* Both fill err and return -EINVAL; the second with the option and its argument before the reason. */
int opts_error(struct opts_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int opts_wrong(struct opts_error *err, const struct opt *o, const char *arg, const char *why);
/* The same for an argument that is none of the row's words, which the message lists. */
int opts_wrong_word(struct opts_error *err, const struct opt *o, const char *arg);

/* "-b" or "--user" */
const char *opt_name(const struct opt *o, char text[32]);

/* The text for -h: head, options that are served, foot. */
void opts_usage(const struct opts_table *t, struct buf *out);

#endif
