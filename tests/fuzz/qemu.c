// SPDX-License-Identifier: GPL-2.0-only
/* A file of QEMU's trace events, of any content: what is made of it can be read, and has as many events as
 * the import said. */
#include "file-events.h"
#include "convert/import/import.h"
#include "base/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct qemu_opts o = { 0 };
	struct qemu_result r;
	char in[128], out[128];

	snprintf(in, sizeof(in), "%s/in", scratch_dir());
	snprintf(out, sizeof(out), "%s/out.dat", scratch_dir());
	o.input = in;
	o.output = out;
	fuzz_must(!write_file_at(AT_FDCWD, in, data, size));
	if (!qemu_import(&o, &r))
		fuzz_must(file_events(out) == r.events);
	scratch_clear();
	return 0;
}
