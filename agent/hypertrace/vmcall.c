// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events as hypercalls of x86: KVM's kvm_hypercall event has all five numbers, and is there
 * before KVM refuses the call to a program (arch/x86/kvm/x86.c, ____kvm_emulate_hypercall()).
 */
#include "guest-priv.h"

#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static int amd;

/* Without KVM below the instruction would end the program. */
static int vmcall_open(const char *at)
{
	unsigned int eax, ebx, ecx, edx, text[3];

	(void)at;
	__cpuid(1, eax, ebx, ecx, edx);
	if (!(ecx >> 31))
		return -ENODEV;
	__cpuid(0x40000000, eax, text[0], text[1], text[2]);
	if (memcmp(text, "KVMKVMKVM\0\0", sizeof(text)))
		return -ENODEV;
	__cpuid(0, eax, text[0], text[2], text[1]);
	amd = !memcmp(text, "AuthenticAMD", sizeof(text)) || !memcmp(text, "HygonGenuine", sizeof(text));
	return 0;
}

static void vmcall_emit(uint32_t client, const uint64_t *arg)
{
	uint64_t nr = HYPERTRACE_VMCALL, a2 = hypertrace_shape.args > 1 ? arg[1] : 0,
		 a3 = hypertrace_shape.args > 2 ? arg[2] : 0;

	if (amd)
		asm volatile("vmmcall"
			     : "+a"(nr)
			     : "b"((uint64_t)client), "c"(arg[0]), "d"(a2), "S"(a3)
			     : "memory");
	else
		asm volatile("vmcall"
			     : "+a"(nr)
			     : "b"((uint64_t)client), "c"(arg[0]), "d"(a2), "S"(a3)
			     : "memory");
}
#else
static int vmcall_open(const char *at)
{
	(void)at;
	return -ENOTSUP;
}

static void vmcall_emit(uint32_t client, const uint64_t *arg)
{
	(void)client;
	(void)arg;
}
#endif

const struct hypertrace_way hypertrace_vmcall = {
	.name = "vmcall",
	.open = vmcall_open,
	.emit = vmcall_emit,
};
