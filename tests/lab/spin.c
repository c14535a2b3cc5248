// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps a CPU in one place: in this program, in the code of a guest, or in visits to the hypervisor, by a
 * guest that does little but HVCs. The task is called spin-PLACE.
 *
 * usage: spin host|guest|hvc SECONDS
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CODE 0x10000 /* its address in the guest */

/*
 * Code of the guests: one that stands still, and one that calls. Up to 131071 rounds, a generated number, lie
 * between two calls: at one pace they would keep step with the samples, most of which would find the same
 * place.
 */
__asm__(".globl still, calls, calls_end\n"
	"still:		b still\n"
	"calls:		mov w5, #1\n"
	"		movz w6, #0x660d\n"
	"		movk w6, #0x19, lsl #16\n"
	"next:		madd w5, w5, w6, w6\n"
	"		lsr w7, w5, #15\n"
	"wait:		subs w7, w7, #1\n"
	"		b.gt wait\n"
	"		mov w0, #0x84000000\n" /* PSCI_VERSION */
	"		hvc #0\n"
	"		b next\n"
	"calls_end:\n");
extern const char still[], calls[], calls_end[];

static volatile sig_atomic_t over;

static void spin_end(int signal)
{
	over = signal;
}

static int spin_in_guest(const char *code, size_t len)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), vm = ioctl(kvm, KVM_CREATE_VM, 0);
	int vcpu = ioctl(vm, KVM_CREATE_VCPU, 0), size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	void *page = mmap(NULL, CODE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region memory = { .guest_phys_addr = CODE,
						      .memory_size = CODE,
						      .userspace_addr = (uintptr_t)page };
	struct kvm_vcpu_init init;
	uint64_t pc = CODE;
	struct kvm_one_reg reg = { KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE |
					   KVM_REG_ARM_CORE_REG(regs.pc),
				   (uintptr_t)&pc };

	if (kvm < 0 || vm < 0 || vcpu < 0 || size <= 0 || page == MAP_FAILED)
		return -1;
	memcpy(page, code, len);
	__builtin___clear_cache(page, (char *)page + len);
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &memory) || ioctl(vm, KVM_ARM_PREFERRED_TARGET, &init) ||
	    ioctl(vcpu, KVM_ARM_VCPU_INIT, &init) || ioctl(vcpu, KVM_SET_ONE_REG, &reg))
		return -1;
	while (!over)
		if (!ioctl(vcpu, KVM_RUN, 0) || errno != EINTR) /* it is not to need its VMM */
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction end = { .sa_handler = spin_end };
	char name[16];
	int ret = 0;

	if (argc != 3)
		return 2;
	snprintf(name, sizeof(name), "spin-%s", argv[1]);
	prctl(PR_SET_NAME, name);
	sigaction(SIGALRM, &end, NULL);
	alarm((unsigned int)atoi(argv[2]));
	if (!strcmp(argv[1], "guest"))
		ret = spin_in_guest(still, (size_t)(calls - still));
	else if (!strcmp(argv[1], "hvc"))
		ret = spin_in_guest(calls, (size_t)(calls_end - calls));
	else
		while (!over)
			;
	if (ret)
		perror("spin: no guest");
	return !!ret;
}
