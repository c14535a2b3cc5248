/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FLAME_FOLD_H
#define HYPTRACE_FLAME_FOLD_H

#include "flame/tree.h"

/*
 * Stacks as folded text, "a;b;c 12", which flamegraph.pl and speedscope read: each in which something is
 * counted once, in the order of names. What line gives that is not 0 ends it. -ENOMEM.
 */
typedef int flame_line(void *ctx, const char *stack, const uint64_t self[FLAME_SIDES]);
int flame_fold(const struct flame_tree *t, enum flame_weight w, flame_line *line, void *ctx);

/*
 * What n of a recording that weighs `of` is in one that weighs `to`, rounded down: how difffolded.pl -n
 * makes two recordings alike. of 0: 0.
 */
uint64_t flame_scaled(uint64_t n, uint64_t of, uint64_t to);

#endif
