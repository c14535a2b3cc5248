// SPDX-License-Identifier: LGPL-2.1-or-later
/* A raw record of any content. */
#include <errno.h>

#include "hyp-events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *out = malloc(size + HYP_RECORD_EXTRA);
	struct hypevents e;
	ssize_t n;

	hyp_events_init(&e, true);
	n = hypraw_record(&e, data, size, out, size + HYP_RECORD_EXTRA);
	if (n < 0 ? n != -EBADMSG : n < HYP_HEADER_SIZE || (size_t)n > size + HYP_RECORD_EXTRA)
		abort();
	if (size && hypraw_record(&e, data, size, out, size + HYP_RECORD_EXTRA - 1) >= 0)
		abort();
	hypevents_release(&e);
	free(out);
	return 0;
}
