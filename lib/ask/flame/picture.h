/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FLAME_SVG_H
#define HYPTRACE_FLAME_SVG_H

#include "ask/flame/tree.h"
#include "base/buf.h"

/* A flame graph as one SVG: it needs nothing else, and with its script it zooms, searches and shows names. */

/* Frames that are narrower are left out: shares of the whole. */
#define FLAME_NARROWEST 0.0002

struct flame_picture {
	const struct flame_tree *tree;
	enum flame_weight weight;
	const char *title, *about; /* about: the line below it */
	/* Frames are as wide as the mean of their shares in both recordings, red where the second has more.
	 */
	bool diff;
};

/* *hidden: how many frames are too narrow. -ENOMEM. */
int flame_svg(const struct flame_picture *p, struct buf *out, uint64_t *hidden);

#endif
