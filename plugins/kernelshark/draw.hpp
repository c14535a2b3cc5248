/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_DRAW_HPP
#define HYPTRACE_DRAW_HPP

#include <kernelshark/KsPlugins.hpp>

#include "row-spans.h"

/*
 * Draws spans over a graph: the hypervisor's in a strip along its top, crosvm's and
 * hypertrace's along its bottom. What is too narrow for a box of its own is summed
 * up in bins of a few columns, which show each reason's share.
 */
void draw_spans(KsCppArgV *argv, const struct shown *const *v, size_t n);

/* The colours with their names, over the time axis; over the uppermost graph, nothing over others. */
void draw_colours(KsCppArgV *argv, const struct spans *spans);

/* KernelShark's window, for the marks of a double click. */
void draw_init(void *window);
/* The rows are others now. */
void draw_unselect();

#endif
