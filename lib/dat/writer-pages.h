/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_DAT_PAGES_H
#define HYPTRACE_DAT_PAGES_H

#include "dat/writer-parts.h"

/* Room for one chunk of the largest pages: all the memory that the pages take. */
int dat_pages_init(struct dat_writer *w);
void dat_pages_release(struct dat_writer *w);

#endif
