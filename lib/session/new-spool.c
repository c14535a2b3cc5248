// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the spools of a host and of its guests begin with. */
#include "session/new-spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_boot_id(char *out, size_t size)
{
	struct buf id = { 0 };
	int ret = read_file("/proc/sys/kernel/random/boot_id", size - 1, &id);

	snprintf(out, size, "%s", ret || !buf_str(&id) ? "" : (char *)id.data);
	out[strcspn(out, "\n")] = 0;
	buf_release(&id);
	return ret;
}

int new_spool(struct spool **out, const char *output, const struct record_plan *plan, const struct log *log)
{
	uint64_t version = plan->file_version ? (uint64_t)plan->file_version : 7;
	char *dir = str_printf("%s.spool", output), boot_id[128];
	int ret = dir ? spool_create(out, dir, log) : -ENOMEM;

	free(dir);
	return ret ?: read_boot_id(boot_id, sizeof(boot_id)) ?: spool_set(*out, "boot_id", boot_id) ?:
	       spool_set_number(*out, "version", version) ?:
	       spool_set(*out, "compression", plan->compression ? plan->compression : "zstd");
}

bool new_spool_same_boot(const struct spool *s)
{
	const char *then = spool_get(s, "boot_id");
	char now[128];

	return then && !read_boot_id(now, sizeof(now)) && !strcmp(then, now);
}
