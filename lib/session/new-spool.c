// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the spools of a host and of its guests begin with. */
#include "session/new-spool.h"

#include <errno.h>
#include <stdlib.h>

int new_spool(struct spool **out, const char *output, const struct record_plan *plan, const struct log *log)
{
	uint64_t version = plan->file_version ? (uint64_t)plan->file_version : 7;
	char *dir = str_printf("%s.spool", output);
	int ret = dir ? spool_create(out, dir, log) : -ENOMEM;

	free(dir);
	return ret ?: spool_set_boot_id(*out) ?: spool_set_number(*out, "version", version) ?:
	       spool_set(*out, "compression", plan->compression ? plan->compression : "zstd");
}
