/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ROW_SPANS_H
#define HYPTRACE_ROW_SPANS_H

#include <kernelshark/libkshark-model.h>

#include "shown.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The spans of everything that KernelShark has loaded: the streams of all files,
 * whether or not the plugin was there when they were read.
 */
struct scan; /* opaque */

/* Of the model's rows; NULL: no memory. */
struct scan *scan_new(const struct kshark_trace_histo *histo);
void scan_free(struct scan *s);
/* True: the model still has the rows that were scanned, at the same times. */
bool scan_is_of(const struct scan *s, const struct kshark_trace_histo *histo);

const struct spans *scan_spans(const struct scan *s);
/* The machine of a stream: all buffers of one file are of one machine. */
int scan_machine(int sd);
/*
 * Of a guest's CPU: the host's number and the pid of the vCPU's thread, as the
 * option GUEST of the host's file has them. False: not a guest, or the file does not name it.
 */
bool scan_vcpu(const struct scan *s, int sd, int cpu, int *machine, int *pid);

/*
 * Label of a span, "guest_exit 30.2 us, kvm_guest_fault: ipa 0x9000018 ...": the
 * rows have the words of libtraceevent's plugins. malloc'ed; NULL: no memory.
 */
char *scan_label(const struct kshark_trace_histo *histo, const struct shown *span);

#ifdef __cplusplus
}
#endif

#endif
