/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SAMPLES_H
#define HYPTRACE_SAMPLES_H

#include "util/base.h"

/*
 * The records of a profile, as any event's: with the common header, in pages of a buffer of their own, and
 * with print formats that libtraceevent parses, so that stock tools read them. hyptrace:sample is one sample;
 * hyptrace:map says that a process has (part of) a file mapped for execution from now on.
 */
#define PROFILE_SYSTEM "hyptrace"
#define PROFILE_SAMPLE "sample"
#define PROFILE_MAP    "map"
#define PROFILE_EVENTS 2 /* ids: sample, then map */

#define PROFILE_FRAMES_MAX 240 /* of a stack: with both a record still fits a page; kernels stop at 127 */
#define PROFILE_PATH_MAX   1024
#define PROFILE_RECORD_MAX 4000 /* bytes */

/* Modes are perf's (PERF_RECORD_MISC_CPUMODE): 1 kernel, 2 user, 3 hypervisor, 4 guest kernel, 5 guest user.
 */
struct profile_sample {
	uint64_t ip;
	int32_t tgid, tid;
	uint8_t mode;
	char comm[16];
	const uint64_t *kernel, *user; /* addresses from the innermost on; at most PROFILE_FRAMES_MAX count */
	size_t n_kernel, n_user;
};

struct profile_map {
	int32_t tgid, tid;
	uint64_t from, len, offset; /* offset: in the file, bytes */
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0: not known */
	const char *path;
	size_t path_len; /* at most PROFILE_PATH_MAX count */
};

/* The format of event i below PROFILE_EVENTS, as a file of tracefs has it. */
void profile_format(size_t i, unsigned int first_id, struct buf *out);
/* Make a record in out, of PROFILE_RECORD_MAX bytes; return its length. */
size_t profile_put_sample(uint8_t *out, unsigned int first_id, const struct profile_sample *s);
size_t profile_put_map(uint8_t *out, unsigned int first_id, const struct profile_map *m);

#endif
