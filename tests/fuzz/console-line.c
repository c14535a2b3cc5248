// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lines of a console's log: what import takes of one lies in it. */
#include <stdlib.h>
#include <string.h>

#include "convert/import/pftrace-priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size ? size : 1);
	size_t len = size;
	const char *p;

	if (!line)
		return 0;
	if (size)
		memcpy(line, data, size);
	p = import_trace_line(line, &len);
	if (p && (p < line || len > size || p + len > line + size))
		abort();
	free(line);
	return 0;
}
