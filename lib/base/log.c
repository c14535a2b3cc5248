// SPDX-License-Identifier: LGPL-2.1-or-later
/* Passes messages to the callback. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/escape.h"

void log_msg(const struct log *log, enum log_level level, const char *fmt, ...)
{
	char msg[4096], line[2 * sizeof(msg)];
	va_list ap;

	if (!log || !log->fn)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	log->fn(log->ctx, level, escape_line(line, sizeof(line), msg));
}
