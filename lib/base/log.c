// SPDX-License-Identifier: LGPL-2.1-or-later
/* Passes messages to the callback. */
#include "base/log.h"

#include <stdarg.h>

#include "base/escape.h"
#include "base/strings.h"

static void log_format(const struct log *log, enum log_level level, const char *fmt, va_list ap, int error)
{
	char msg[4096], line[2 * sizeof(msg)];
	size_t len;

	if (!log || !log->fn)
		return;
	vsnprintf(msg, sizeof(msg), fmt, ap);
	len = strlen(msg);
	if (error)
		snprintf(msg + len, sizeof(msg) - len, ": %s", errno_text(error));
	log->fn(log->ctx, level, escape_line(line, sizeof(line), msg));
}

void log_msg(const struct log *log, enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_format(log, level, fmt, ap, 0);
	va_end(ap);
}

int log_fail(const struct log *log, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_format(log, LOG_ERROR, fmt, ap, 0);
	va_end(ap);
	return error;
}

int log_fail_errno(const struct log *log, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_format(log, LOG_ERROR, fmt, ap, error);
	va_end(ap);
	return error;
}
