// SPDX-License-Identifier: LGPL-2.1-or-later
/* Text of the kernel's histograms: names are clean, and what is summed stays bounded. */
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "record/watch/watch-sums.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take_entry(void *ctx, const struct hist_entry *e)
{
	size_t len = strnlen(e->word, HIST_WORD), n;

	if (len == HIST_WORD || strnlen(e->key, sizeof(e->key)) == sizeof(e->key) || e->log2 < -1 ||
	    e->log2 > 64)
		abort();
	for (size_t i = 0; i < len; i += n) {
		n = utf8_len((const uint8_t *)e->word + i, len - i);
		if (!n || escape_control((const uint8_t *)e->word + i, len - i) || e->word[i] == '\n')
			abort();
	}
	return watch_sums_add(ctx, strcmp(e->key, "by") != 0 ? WATCH_EXIT : WATCH_BY, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct watch_vcpu vcpus[] = { { 7, 0, "a" }, { 112, 0, "b" }, { 113, 1, "b" } };
	struct watch_sums sums = { 0 };
	struct hist_totals totals = { 0 };

	watch_sums_begin(&sums);
	if (!hist_text_read(data, size, take_entry, &sums, &totals) && watch_sums_settle(&sums, vcpus, 3, 2))
		abort();
	watch_sums_release(&sums);
	return 0;
}
