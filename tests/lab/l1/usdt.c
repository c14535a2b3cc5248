// SPDX-License-Identifier: GPL-2.0-only
/* A program with a static probe, "qemu:virtio_queue_notify", as the macros of sys/sdt.h make it: five times,
 * if somebody traces it, with a number of 8 bytes and one of 4 that is negative. With arguments it waits for
 * SIGUSR1 before. */
#include <signal.h>
#include <stddef.h>

static volatile unsigned short semaphore __attribute__((section(".probes")));

static void queue_notify(long n, int minus)
{
	__asm__ volatile("990: nop\n"
			 ".pushsection .note.stapsdt,\"?\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f, 994f-993f, 3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b, _.stapsdt.base, semaphore\n"
			 ".asciz \"qemu\"\n"
			 ".asciz \"virtio_queue_notify\"\n"
			 ".asciz \"8@%0 -4@%1\"\n"
			 "994: .balign 4\n"
			 ".popsection\n"
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
			 ".weak _.stapsdt.base\n"
			 ".hidden _.stapsdt.base\n"
			 "_.stapsdt.base: .space 1\n"
			 ".size _.stapsdt.base, 1\n"
			 ".popsection\n"
			 :
			 : "r"(n), "r"(minus), "m"(semaphore));
}

int main(int argc, char **argv)
{
	sigset_t usr1;
	int signal;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	if (argc > 1)
		sigwait(&usr1, &signal);
	for (long i = 0; i < 5 && semaphore; i++)
		queue_notify(i, -1);
	return 0;
}
