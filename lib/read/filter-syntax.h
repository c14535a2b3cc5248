/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FILTER_SYNTAX_H
#define HYPTRACE_FILTER_SYNTAX_H

#include <stddef.h>

/*
 * Checks a foreign filter "EVENT,...[: EXPRESSION]" before libtraceevent gets it:
 * version 1.7 reads through a NULL pointer when a filter ends in the middle of a
 * comparison, and writes past its error text when a wrong one is long.
 *
 * 0, or -EINVAL with a line in why: operators need something on both sides,
 * comparisons to be joined by && and ||, parentheses to be closed. Whether an
 * event has the fields is not checked.
 */
int filter_syntax(const char *filter, char *why, size_t size);

#endif
