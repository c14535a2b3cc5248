/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_USUAL_H
#define HYPTRACE_USUAL_H

#include "guest/guest.h"

/*
 * What `hyptrace record` takes when nothing is named: words of its command line, "record"
 * first. Each adds to words: 0 or -ENOMEM.
 */

/* The hypervisor, KVM and the scheduler, those of them that this tracing directory has. */
int usual_host(struct strlist *words, int tracing);
/* A guest whose agent answers: its address, and the events that show which task ran and why. */
int usual_guest(struct strlist *words, const struct guest *g);

#endif
