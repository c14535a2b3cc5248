/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MARK_H
#define HYPTRACE_MARK_H

#include "hypertrace/ring.h"
#include "spool/spool.h"

/*
 * hypertrace:guest_hypertrace, an event of a guest's program at the host's time of its doorbell: with the
 * common header and a print format that libtraceevent parses, so that stock tools read it.
 */
#define MARK_SYSTEM	"hypertrace"
#define MARK_EVENT	"guest_hypertrace"
#define MARK_GUEST_MAX	200 /* bytes of a name that count */
#define MARK_RECORD_MAX 320 /* bytes */

/* Its format goes behind those that the spool has, and its id into the key hypertrace_id. 0 or -errno. */
int mark_keep_format(struct spool *spool, unsigned int id);
/*
 * Makes a record in out, of MARK_RECORD_MAX bytes, with the header of the doorbell's (8 bytes). vcpu: -1: not
 * known. Returns its length.
 */
size_t mark_put(uint8_t *out, unsigned int id, const uint8_t *head, const char *guest, int vcpu,
		uint32_t client, const struct ring_event *ev);

#endif
