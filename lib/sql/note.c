// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is to be said of an answer beside its rows. */
#include <stdarg.h>
#include <stdio.h>

#include "sql/sql-priv.h"

void sql_note(struct sql *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!strlist_has(&s->notes, text))
		strlist_add(&s->notes, text); /* one that memory does not last for is not said */
}
