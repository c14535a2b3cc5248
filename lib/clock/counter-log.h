/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COUNTER_LOG_H
#define HYPTRACE_COUNTER_LOG_H

#include "clock/counter.h"

/* Question and answer: by the host's counter, and by the guest's in between. */
struct counter_ping {
	uint64_t sent, back;  /* host */
	uint64_t first, last; /* guest: question taken, answer sent */
};

/* Zero-initialised = empty. */
struct counter_log {
	struct counter_shot *shots;
	size_t n_shots;
	struct counter_ping *pings; /* of a guest */
	size_t n_pings;
};

/* Appends a copy. 0 or -ENOMEM. */
int counter_log_shot(struct counter_log *l, const struct counter_shot *s);
int counter_log_ping(struct counter_log *l, const struct counter_ping *p);
/* Leaves it empty. */
void counter_log_release(struct counter_log *l);

#endif
