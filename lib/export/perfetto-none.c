// SPDX-License-Identifier: LGPL-2.1-or-later
/* Instead of the other lib/perfetto-*.c where libprotobuf-c is missing. */
#include <errno.h>

#include "export/perfetto.h"

bool perfetto_built(void)
{
	return false;
}

int perfetto_new(struct perfetto **out, int fd, const struct inputs *in, const struct hypertrace_desc *desc,
		 const struct log *log)
{
	*out = NULL;
	return -ENOSYS;
}

void perfetto_free(struct perfetto *p)
{
}

int perfetto_record(void *ctx, const struct export_record *r)
{
	return -ENOSYS;
}

int perfetto_finish(struct perfetto *p)
{
	return -ENOSYS;
}
