// SPDX-License-Identifier: GPL-2.0-only
// Rings the doorbell of an ivshmem device in slot 1 of QEMU's virt machine, twice, and is gone.
	.globl _start
_start:	ldr x0, =0x3f008000	// its configuration, with highmem=off
	ldr w1, =0x10000000
	str w1, [x0, #0x10]
	mov w1, #2
	strh w1, [x0, #4]
	ldr x0, =0x10000000
	ldr w2, [x0, #8]	// IVPosition
	mov w1, #0x1
	movk w1, #0x3, lsl #16
	str w1, [x0, #12]	// client 3, event 1
	add w1, w1, #1
	str w1, [x0, #12]
	ldr x0, =0x84000008	// PSCI SYSTEM_OFF
	hvc #0
1:	wfi
	b 1b
