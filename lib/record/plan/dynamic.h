/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_DYNAMIC_H
#define HYPTRACE_DYNAMIC_H

#include "base/strings.h"

/*
 * Events that are made for a recording: a line of tracefs's dynamic_events, as
 * Documentation/trace/kprobetrace.rst, fprobetrace.rst, eprobetrace.rst and
 * uprobetracer.rst of the kernel have them:
 *   p:virt/kick virtqueue_notify vq=$arg1
 */

/* The rest after the kind and the number at once ("r10:"); NULL: no such line. */
const char *dynamic_behind_kind(const char *line);

/* An -e is such a line and no event's name: a letter, digits, a colon, then a space somewhere. */
bool dynamic_event_defined(const char *text);
/*
 * The event's name as "GROUP:EVENT" (malloc'ed); NULL with the reason in *why: the line does not
 * name both, or has a second line in it. Out of memory: NULL, too, with *why set.
 */
char *dynamic_event_name(const char *line, const char **why);
/*
 * The lines of --preset: ended by NULL. NULL: no such preset. A program's static probes are named,
 * as perf has them: "sdt_qemu:virtio_notify".
 */
const char *const *dynamic_preset(const char *name);

#endif
