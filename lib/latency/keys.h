/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_KEYS_H
#define HYPTRACE_LATENCY_KEYS_H

#include "util/base.h"

/* What events must have in common: a value, and whose value it is. */
struct latency_key {
	uint64_t scope, value;
};

/* Keys with numbers from 0 on, in the order in which they came. Zero-initialised = empty. */
struct latency_keys {
	struct latency_key *v;
	size_t n;
	uint32_t *table; /* open addressing: 1 + number; at most half full */
	size_t room;
};

/* SIZE_MAX: it is not there. */
size_t latency_keys_find(const struct latency_keys *k, const struct latency_key *key);
/* One that is not there yet; its number is n - 1 then. -ENOMEM. */
int latency_keys_add(struct latency_keys *k, const struct latency_key *key);
void latency_keys_release(struct latency_keys *k);

#endif
