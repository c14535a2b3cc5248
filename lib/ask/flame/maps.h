/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FLAME_MAPS_H
#define HYPTRACE_FLAME_MAPS_H

#include "ask/flame/elf.h"
#include "read/inputs.h"

/* Mappings of processes over time: a file's hyptrace:map records (record --profile). */
struct flame_maps {
	struct flame_mapped {
		uint64_t from, to, ts;
		uint64_t offset; /* in the file, of from */
		int32_t pid;
		struct flame_elf *elf; /* of all that are it; it is the maps' own */
	} * v;			       /* by pid, from, ts */
	size_t n;
	struct flame_elf **elves;
	size_t n_elves;
};

/* Of all inputs, which are loaded, into as many maps. -ENOMEM; they are to be released in any case. */
int flame_maps_read(struct flame_maps *v, const struct inputs *in);
void flame_maps_release(struct flame_maps *m);
/*
 * Appends what an address of a process is: by what was mapped there last before ts, else first after it, for
 * a sample may come before the maps were read. "function", where the file with that build id is found, else
 * "file+0x1234" with the offset in the file. False: nothing is known.
 */
bool flame_maps_text(const struct flame_maps *m, int64_t pid, uint64_t ts, uint64_t addr, struct buf *out);

#endif
