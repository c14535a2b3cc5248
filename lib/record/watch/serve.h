/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SERVE_H
#define HYPTRACE_SERVE_H

#include "base/log.h"
#include "file/wire/transport.h"

/*
 * Serves one text over HTTP, GET /metrics, to this machine only. There is no thread: the caller polls. At
 * most eight readers have a connection, and one that stands still loses it after SERVE_IDLE_S.
 */
struct serve;

#define SERVE_IDLE_S 5

/* "unix:PATH", "127.0.0.1:PORT" or "[::1]:PORT". -EINVAL: another machine could reach it, or no address. */
int serve_parse(struct transport_addr *a, const char *text);
#ifdef HYPTRACE_MICROHTTPD
/* 0 or -errno, logged. serve_put() comes before the first serve_run(). */
int serve_open(struct serve **out, const struct transport_addr *a, const struct log *log);
/* Takes the place of the text so far, whose readers get the rest of it. -ENOMEM. */
int serve_put(struct serve *s, const struct buf *text);
/* Readable: serve_run() has something to do; it looks for idle readers, too. */
int serve_fd(const struct serve *s);
void serve_run(struct serve *s);
/* Takes NULL. */
void serve_close(struct serve *s);
#else
#define serve_open(out, a, log)                                                                              \
	log_fail(log, -ENOTSUP,                                                                              \
		 "this hyptrace was built without libmicrohttpd, which --listen needs; install "             \
		 "libmicrohttpd-dev and build it again, or write a file: --metrics FILE")
#define serve_put(s, text) 0
#define serve_fd(s)	   -1
#define serve_run(s)	   (void)0
#define serve_close(s)	   (void)0
#endif

#endif
