/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PRINTFMT_H
#define HYPTRACE_PRINTFMT_H

#include "util/base.h"

/*
 * Print formats of the host's kernel that libtraceevent cannot parse, in other
 * words for the same: `a ?: b` becomes `a ? a : b`, and the functions of
 * include/linux/string_choices.h become the choice that they make. kvm_sys_access
 * of Linux 7 has both, and stock report prints [FAILED TO PARSE] for it. And "%c" of
 * `a ? 'e' : 'i'` becomes "%s" of `a ? "e" : "i"`: for kvm_wfx_arm64 stock prints wf>c<.
 */

/*
 * Appends a format file's text, rewritten: 1. 0: nothing needed it; -E2BIG: the print format
 * is, or would become, longer than any kernel's; nothing was added. -ENOMEM.
 */
int printfmt_rewrite(const char *text, size_t len, struct buf *out);

#endif
