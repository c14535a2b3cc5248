/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PEER_META_H
#define HYPTRACE_PEER_META_H

#include "dat/reader.h"
#include "spool/spool.h"

/*
 * The texts and options of a trace.dat into the spool, as dat_from_spool() takes
 * them. Options are kept in the text "options": for each u16 id, u32 length,
 * bytes; not those that leave_out names. 0 or -errno.
 */
int spool_keep_info(struct spool *spool, const struct reader_info *info, bool (*leave_out)(uint16_t id));
/*
 * The same of an agent's metadata (a trace.dat that ends before its buffers, of
 * version 6 or 7, compressed or not). page_size: of its pages, bytes. -EBADMSG: no
 * file can be made from it.
 */
int peer_meta_keep(struct spool *spool, const struct buf *metadata, uint32_t page_size,
		   const struct log *log);

#endif
