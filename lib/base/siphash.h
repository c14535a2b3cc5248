/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SIPHASH_H
#define HYPTRACE_SIPHASH_H

#include "base/std.h"

/* SipHash-2-4 (Aumasson and Bernstein, 2012): a hash that nobody computes, or tells from chance, without the
 * key. */
struct siphash_key {
	uint64_t v[2];
};

uint64_t siphash(const struct siphash_key *key, const void *data, size_t len);

#endif
