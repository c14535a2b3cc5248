/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROFILES_H
#define HYPTRACE_PROFILES_H

#include "ask/flame/tree.h"
#include "base/buf.h"

/* The tree of stacks as profiles that other tools open, each stack with its own weight. */
struct flame_profile {
	const struct flame_tree *tree;
	enum flame_weight weight;
	const char *title;
	bool ticks; /* FLAME_NS counts ticks */
	bool diff;  /* both sides: two profiles, or two values of each stack */
};

/* speedscope's JSON (https://www.speedscope.app/file-format-schema.json). -ENOMEM, -errno of fd. */
int profile_speedscope(const struct flame_profile *p, int fd);
/* pprof's Profile message (github.com/google/pprof, proto/profile.proto), not compressed. The same errors. */
int profile_pprof(const struct flame_profile *p, int fd);

#define PROFILE_FLUSH (1u << 16) /* bytes that are worth a write */
/* Writes and empties a buffer that holds at least so many bytes. The same errors. */
int profile_flush(struct buf *out, int fd, size_t least);

#endif
