/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PEER_META_H
#define HYPTRACE_PEER_META_H

#include "dat/reader.h"
#include "record/spool.h"

/*
 * An agent's metadata (a trace.dat that ends before its buffers, of version 6
 * or 7, compressed or not) as the texts that finish.h makes a file from. Its
 * options are kept in the text "options": for each u16 id, u32 length, bytes.
 */
/* The same of any file; leave_out: options that are not kept. */
int spool_keep_info(struct spool *spool, const struct reader_info *info, bool (*leave_out)(uint16_t id));
int peer_meta_keep(struct spool *spool, const struct buf *metadata, const struct log *log);

#endif
