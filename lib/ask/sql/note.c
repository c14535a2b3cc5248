// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notes to an answer, each once. */
#include <stdarg.h>

#include "ask/sql/sql-priv.h"

void sql_note(struct sql *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!strlist_has(&s->notes, text))
		strlist_add(&s->notes, text); /* without memory the note is left out */
}
