// SPDX-License-Identifier: LGPL-2.1-or-later
/* Serves the metrics over HTTP on an address that only this machine can reach. */
#include "record/watch/watcher.h"

#include <arpa/inet.h>
#include <unistd.h>

int serve_parse(struct transport_addr *a, const char *text)
{
	char *tcp = str_printf("tcp:%s", text);
	struct in_addr four;
	struct in6_addr six;
	bool loopback;
	int ret;

	*a = (struct transport_addr){ 0 };
	ret = !tcp ? -ENOMEM : transport_parse(a, !strncmp(text, "unix:", 5) ? text : tcp);
	free(tcp);
	if (ret || a->kind != TRANSPORT_TCP)
		return ret;
	loopback = inet_pton(AF_INET, a->host, &four) == 1
			   ? ntohl(four.s_addr) >> 24 == 127
			   : inet_pton(AF_INET6, a->host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
	return a->port && loopback ? 0 : -EINVAL;
}

#ifdef HYPTRACE_MICROHTTPD
#include <dlfcn.h>
#include <microhttpd.h>

#define SERVE_READERS 8

/* Loaded here only: with the libraries that it needs it would take every command two milliseconds. */
#define MHD_FUNCTIONS(f)                                                                                     \
	f(MHD_start_daemon) f(MHD_stop_daemon) f(MHD_run) f(MHD_get_daemon_info)                             \
		f(MHD_create_response_from_buffer) f(MHD_add_response_header) f(MHD_queue_response)          \
			f(MHD_destroy_response)
#define MHD_POINTER(name) __typeof__(&name) name;
#define MHD_SYMBOL(name)  { offsetof(struct serve_mhd, name), #name },

struct serve_mhd {
	MHD_FUNCTIONS(MHD_POINTER)
};

struct serve {
	struct transport_addr at;
	struct serve_mhd mhd;
	struct MHD_Daemon *daemon;
	struct MHD_Response *text, *not_found;
};

static bool mhd_load(struct serve_mhd *mhd)
{
	static const struct {
		size_t off;
		const char *name;
	} symbols[] = { MHD_FUNCTIONS(MHD_SYMBOL) };
	void *lib = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; i < ARRAY_SIZE(symbols) && lib; i++) {
		void *function = dlsym(lib, symbols[i].name);

		if (!function)
			return false;
		memcpy((char *)mhd + symbols[i].off, &function, sizeof(function));
	}
	return lib;
}

/* The first call for a request has its head only; an answer given then would end the connection. */
static enum MHD_Result serve_answer(void *serve, struct MHD_Connection *c, const char *url,
				    const char *method, const char *version, const char *body,
				    size_t *body_len, void **seen)
{
	struct serve *s = serve;

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		return s->mhd.MHD_queue_response(c, MHD_HTTP_METHOD_NOT_ALLOWED, s->not_found);
	if (*seen && strcmp(url, "/metrics") != 0)
		return s->mhd.MHD_queue_response(c, MHD_HTTP_NOT_FOUND, s->not_found);
	if (*seen)
		return s->mhd.MHD_queue_response(c, MHD_HTTP_OK, s->text);
	*seen = s;
	return MHD_YES;
}

/* A copy of the text. */
static struct MHD_Response *response_new(const struct serve *s, const void *text, size_t len)
{
	struct MHD_Response *r =
		s->mhd.MHD_create_response_from_buffer(len, (void *)text, MHD_RESPMEM_MUST_COPY);

	if (r)
		s->mhd.MHD_add_response_header(r, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	return r;
}

int serve_put(struct serve *s, const struct buf *text)
{
	struct MHD_Response *r = buf_status(text) ? NULL : response_new(s, text->data, text->len);

	if (!r)
		return -ENOMEM;
	if (s->text)
		s->mhd.MHD_destroy_response(s->text);
	s->text = r;
	return 0;
}

int serve_open(struct serve **out, const struct transport_addr *a, const struct log *log)
{
	static const char not_found[] = "GET /metrics is all that there is\n";
	struct serve *s = calloc(1, sizeof(*s));
	char name[160];
	int fd;

	if (!s)
		return -ENOMEM;
	s->at = *a;
	if (!mhd_load(&s->mhd)) {
		free(s);
		return log_fail(log, -ENOTSUP,
				"--listen needs libmicrohttpd.so.12: apt-get install libmicrohttpd12");
	}
	fd = transport_listen(a, SERVE_READERS, NULL);
	if (fd < 0) {
		free(s);
		return log_fail(log, fd, "cannot listen on %s: %s", transport_text(a, name, sizeof(name)),
				errno_text(fd));
	}
	s->not_found = response_new(s, not_found, strlen(not_found));
	if (s->not_found)
		s->daemon = s->mhd.MHD_start_daemon(
			MHD_USE_EPOLL, 0, NULL, NULL, serve_answer, s, MHD_OPTION_LISTEN_SOCKET, fd,
			MHD_OPTION_CONNECTION_LIMIT, (unsigned int)SERVE_READERS,
			MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)SERVE_IDLE_S, MHD_OPTION_END);
	if (!s->daemon) {
		close(fd);
		serve_close(s);
		return log_fail(log, -ENOMEM, "cannot serve metrics: %s", errno_text(-ENOMEM));
	}
	*out = s;
	return 0;
}

int serve_fd(const struct serve *s)
{
	return s->mhd.MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void serve_run(struct serve *s)
{
	s->mhd.MHD_run(s->daemon);
}

void serve_close(struct serve *s)
{
	if (!s)
		return;
	if (s->daemon) {
		s->mhd.MHD_stop_daemon(s->daemon);
		if (s->at.kind == TRANSPORT_UNIX)
			unlink(s->at.host);
	}
	if (s->text)
		s->mhd.MHD_destroy_response(s->text);
	if (s->not_found)
		s->mhd.MHD_destroy_response(s->not_found);
	free(s);
}

#endif
