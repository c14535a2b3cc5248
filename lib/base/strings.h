/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_STRINGS_H
#define HYPTRACE_STRINGS_H

#include "base/array.h"

#include <ctype.h>

/* Zero-initialised = empty; owns copies of its strings. */
struct strlist {
	char **v;
	size_t n;
};

int strlist_add(struct strlist *l, const char *s); /* 0 or -ENOMEM */
/* The same of a malloc'ed string, which is the list's then; NULL: -ENOMEM. */
int strlist_take(struct strlist *l, char *s);
/* Each line of a text, without its newline. */
int strlist_add_lines(struct strlist *l, const void *text, size_t len);
bool strlist_has(const struct strlist *l, const char *s);
void strlist_sort(struct strlist *l); /* by bytes */
void strlist_release(struct strlist *l);

/* Strict decimal (or 0x... hexadecimal) number: the whole string, no sign. -EINVAL, -ERANGE. */
int parse_u64(const char *s, uint64_t *out);

/* Units of durations and sizes: their names, and how many ns or bytes one has. Both end with a NULL name. */
struct unit {
	const char *name;
	uint64_t factor;
};
extern const struct unit duration_units[]; /* ns, us, ms, s, min, h, d */
extern const struct unit size_units[];	   /* B, K, M, G, T: of 1024 */
#define UNIT_US	 1000ull
#define UNIT_MS	 1000000ull
#define UNIT_S	 1000000000ull
#define UNIT_KIB 1024ull

/*
 * A decimal number with a unit, "250us", "1.5s" or "64K", as ns or bytes; plain is the factor of a number
 * without a unit, 0: it needs one. Digits below 1 ns or 1 byte are dropped. -EINVAL, -ERANGE.
 */
int parse_amount(const char *s, const struct unit *units, uint64_t plain, uint64_t *out);
/* The amount as a whole number of the largest unit that fits: "90s", "64K"; returns out. */
const char *amount_text(uint64_t amount, const struct unit *units, char out[32]);

/* The value of a hexadecimal digit; -1: it is none. */
int hex_value(int ch);

/* Finds what a mistyped word was meant to be, among the words that are offered one after the other. */
struct nearest {
	const char *typed;
	size_t len;	       /* of typed */
	const char *word;      /* the nearest so far; NULL: none is near */
	unsigned int distance; /* ... in letters that are wrong, missing, too many, or swapped */
};
void nearest_offer(struct nearest *n, const char *word);

/* strerror for people: what -EBADMSG means here is in no manual of theirs. */
const char *errno_text(int error);

/* Letters, digits and '_' of ASCII, whatever the locale: libtraceevent takes all other bytes for an end. */
static inline bool is_word_char(char ch)
{
	return (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z') || ch == '_';
}
/* Bytes of s up to the first that is none of them nor one of more; at most so many. */
size_t word_len(const char *s, size_t most, const char *more);
/* The *n bytes in brackets, as kernels show what is chosen: "local [boot] mono". NULL: there are none. */
const char *chosen_word(const char *text, size_t len, size_t *n);
/* True if these bytes are such, up to 63 of them: what can be a name in the kernel. */
bool is_word(const char *s, size_t len);

/* Puts a malloc'ed string in place of *to, which it frees. NULL: -ENOMEM, and *to is as it was. */
int str_take(char **to, char *s);
/* malloc'ed printf; NULL when out of memory. */
char *str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Bytes of a path before its last name's extension: 7 of "d.1/out.dat"; without one, all. */
size_t path_stem(const char *path);

struct buf;
/* True if a word, which is not empty, is among words with blanks between. */
bool words_have(const char *words, const char *word);
/* Adds a blank and the word in quotes, so that a shell takes it for one. */
void shell_quote(struct buf *line, const char *word);
/* The same, in quotes only where a shell would take the word apart. */
void shell_word(struct buf *line, const char *word);

#endif
