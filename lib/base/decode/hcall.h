/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HCALL_H
#define HYPTRACE_HCALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/decode/id-table.h"

/*
 * Names of the hypercalls that the host makes to pKVM (the event host_hcall).
 * The numbers are positions in the kernel's enum __kvm_host_smccc_func, which
 * changes with every kernel, so they come from a file:
 *
 *  - BTF, as in /sys/kernel/btf/vmlinux of that kernel; the prefix
 *    __KVM_HOST_SMCCC_FUNC_ is taken off the names;
 *  - or text: lines "NUMBER NAME", numbers as in C, '#' starts a comment.
 */

/*
 * From the bytes of a file, which are copied. -EBADMSG: neither of the two, or
 * damaged; -ENOENT: a BTF without that enum; -ENOMEM. On error *out is empty.
 */
int hcall_names_parse(const void *data, size_t len, struct id_table *out);
/* The name, owned by `names`, or NULL. The whole function id (0xc6000000 + number) serves as well. */
const char *hcall_name(const struct id_table *names, uint32_t id);

#endif
