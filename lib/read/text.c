// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compiled texts (a stand-in). */
#include "read/text.h"

#include <errno.h>

int text_compile(struct text_program **out, struct tep_event *event, bool raw, const char **why)
{
	*out = NULL;
	*why = "nothing is compiled yet";
	return -ENOTSUP;
}

void text_free(struct text_program *p)
{
}

void text_print(const struct text_program *p, const void *data, size_t len, struct buf *out)
{
}

size_t text_tasks(const struct text_program *p, const struct text_task **v)
{
	return 0;
}
