/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LOG_H
#define HYPTRACE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/*
 * Takes a module's messages: one line without a newline, lower case, no full
 * stop. Passed down by the command; a NULL log or a NULL fn drops the message.
 */
struct log {
	void (*fn)(void *ctx, enum log_level level, const char *msg);
	void *ctx;
};

/*
 * The message, at most 4095 bytes of it, goes to log->fn; see struct log. What names in it
 * would do to a terminal or to the line is shown instead (escape.h).
 */
void log_msg(const struct log *log, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The message as an error. Returns error. */
int log_fail(const struct log *log, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, with ": " and errno_text(error) after it. */
int log_fail_errno(const struct log *log, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_err(log, ...)   log_msg(log, LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...)  log_msg(log, LOG_WARN, __VA_ARGS__)
#define log_info(log, ...)  log_msg(log, LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_msg(log, LOG_DEBUG, __VA_ARGS__)

#endif
