/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SVG_H
#define HYPTRACE_SVG_H

#include "base/buf.h"

/*
 * Pictures as SVG, appended to a buf: a document that needs nothing else, titles, plots with axes and
 * legends. Lengths are px; y grows downwards. Out of memory the buf is bad.
 */

/* attributes of the document, style: its own rules after the common ones. Both may be "". */
void svg_begin(struct buf *out, double width, double height, const char *attributes, const char *style);
void svg_end(struct buf *out);

/*
 * A text of at most n bytes as XML accepts it: markup is escaped; controls, invalid UTF-8 and what is no
 * character become U+FFFD.
 */
void svg_text(struct buf *out, const char *text, size_t n);
/* The same, cut to so many letters with an ellipsis. */
void svg_short(struct buf *out, const char *text, size_t letters);

/* Two lines from `top` down: the file and the question; then numbers. Whole if the pointer stays on them. */
void svg_title(struct buf *out, double left, double top, size_t letters, const char *title,
	       const char *about);

#define SVG_LABEL 32

struct svg_axis {
	const char *name; /* and unit: "time (s)" */
	double low, high;
	double step; /* between ticks; 0: a round one by the range; below 0: no ticks */
	/* Writes a tick's label; NULL: the number. */
	void (*label)(double value, char room[SVG_LABEL]);
};

/* A rectangle with a scale in both directions. */
struct svg_plot {
	struct buf *out;
	double left, top, width, height;
	struct svg_axis x, y;
};
#define SVG_AXIS_HEIGHT 44 /* of the labels and the name below a plot */

double svg_x(const struct svg_plot *p, double value);
double svg_y(const struct svg_plot *p, double value);
/* 1, 2 or 5 times a power of ten, which divides the range by four to ten. */
double svg_step(double range);
/* Frame, ticks, labels and names. */
void svg_axes(const struct svg_plot *p);

enum svg_sign { SVG_BOX, SVG_LINE, SVG_DOT };
/* An entry of a legend at *x, which moves after it; how: attributes of the sign, as those of what it stands
 * for. */
void svg_legend(struct buf *out, double *x, double y, enum svg_sign sign, const char *how, const char *name);

#endif
