/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_SVG_H
#define HYPTRACE_LATENCY_SVG_H

#include "analysis/histogram.h"

/* Durations in ns as bars over a logarithmic axis of time, with percentiles: an SVG that stands alone. */
void latency_svg(const struct histogram *h, const char *title, struct buf *out);

#endif
