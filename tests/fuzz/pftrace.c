// SPDX-License-Identifier: GPL-2.0-only
/*
 * A Perfetto trace of any content: what is made of it can be read, and says as many events as the import did.
 */
#include "file-events.h"
#include "convert/import/import.h"
#include "base/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pftrace_opts o = { 0 };
	struct pftrace_result r;
	char in[128], out[128];
	uint64_t n = 0;

	snprintf(in, sizeof(in), "%s/in", scratch_dir());
	snprintf(out, sizeof(out), "%s/out.dat", scratch_dir());
	o.input = in;
	o.output = out;
	fuzz_must(!write_file_at(AT_FDCWD, in, data, size));
	if (!pftrace_import(&o, &r)) {
		for (size_t i = 0; i < r.files.n; i++)
			n += file_events(r.files.v[i]);
		fuzz_must(n == r.events);
	}
	strlist_release(&r.files);
	scratch_clear();
	return 0;
}
