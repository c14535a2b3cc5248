# SPDX-License-Identifier: GPL-2.0-only
# What hyptrace records: HYPTRACE_KERNEL = "host el2", or "guest", in the configuration. Other kernels'
# recipes take the same files.
FILESEXTRAPATHS:prepend := "${THISDIR}/hyptrace:"

HYPTRACE_KERNEL ?= ""
SRC_URI += "${@' '.join('file://%s.cfg' % f for f in d.getVar('HYPTRACE_KERNEL').split())}"
