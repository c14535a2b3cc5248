/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ANONYMIZE_H
#define HYPTRACE_ANONYMIZE_H

#include "base/buf.h"
#include "base/log.h"
#include "base/siphash.h"
#include <traceevent/event-parse.h>

/* export --anonymize: names become keyed hashes, addresses are left out. hyptrace-export(1) has the rules. */

/* Reads the key. -errno, which the log explains. */
int anonymize_key(struct siphash_key *key, const char *path, const struct log *log);
/* The text from `begin` on becomes its hash, unless it is one that every machine has, as "host". */
void anonymize_text(const struct siphash_key *key, struct buf *text, size_t begin);

/* Whether values of an event's field are left out: addresses, and what may be one. */
bool anonymize_drops_field(const struct tep_event *e, const struct tep_format_field *f);
/* For a column of a table of hyptrace sql. */
enum anonymize { ANONYMIZE_KEEP, ANONYMIZE_HASH, ANONYMIZE_DROP };
enum anonymize anonymize_column(const char *table, const char *column, bool text);

#endif
