#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <qemu-hypertrace.h>

int main(int argc, char **argv)
{
	char *base = NULL;
	if (argc > 1) {
		base = argv[1];
	}

	/* In 'user' mode this path must be the same we will use to start QEMU. */
	if (qemu_hypertrace_init(base) != 0) {
		perror("error: qemu_hypertrace_init");
		abort();
	}

	/* Set additional event arguments (unused in this example) */
	uint64_t client = 0;
	uint64_t *data = qemu_hypertrace_data(client);
	data[0] = 0xcafe;
	data[1] = 0xdead;
	data[2] = 0xbeef;

	/* Emit event to start tracing */
	qemu_hypertrace(client, 1);

	/* Computation in between that we want to trace */
	printf("Some computation...\n");

	/* Emit event to stop tracing */
	qemu_hypertrace(client, 0);
}
