// SPDX-License-Identifier: LGPL-2.1-or-later
/* Addresses, and sockets to and from a guest. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "file/wire/transport.h"
#include "base/array.h"

#define LONG_NAME 90 /* of a directory; two of them are more than sun_path takes */

/* ---- addresses ---------------------------------------------------------------------------- */

static void test_text(void **state)
{
	static const char *const texts[] = { "vsock:823", "vsock:3:823", "tcp:192.0.2.1:5000",
					     "tcp:[2001:db8::1]:5000", "unix:/run/agent" };
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct transport_addr a = { .cid = TRANSPORT_CID_ANY };

		assert_int_equal(transport_parse(&a, texts[i]), 0);
		assert_string_equal(transport_text(&a, text, sizeof(text)), texts[i]);
	}
}

/* What is left out stays as it was. */
static void test_left_out(void **state)
{
	static const char *const texts[] = { "vsock", "tcp:192.0.2.1", "tcp:2001:db8::1", "tcp:[::1]" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct transport_addr a = { .port = 823, .cid = 7 };

		assert_int_equal(transport_parse(&a, texts[i]), 0);
		assert_int_equal(a.port, 823);
		assert_int_equal(a.cid, 7);
	}
}

static void test_bad_text(void **state)
{
	static const char *const texts[] = {
		"",	     "vsocks",	   "vsock:",	    "vsock:x",		"vsock:3:",
		"vsock::3",  "tcp:",	   "tcp:localhost", "tcp:192.0.2.1:",	"tcp:192.0.2.1:65536",
		"tcp:[::1",  "tcp:[::1]x", "unix:",	    "vsock:4294967296", "tcp:192.0.2.256",
		"/run/agent"
	};
	char path[200] = "unix:/";

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct transport_addr a = { 0 };

		if (transport_parse(&a, texts[i]) != -EINVAL)
			fail_msg("'%s' is taken", texts[i]);
	}
	memset(path + 6, 'x', 110);
	assert_int_equal(transport_parse(&(struct transport_addr){ 0 }, path), -ENAMETOOLONG);
}

static bool same(const char *x, const char *y)
{
	struct transport_addr a = { 0 }, b = { 0 };

	assert_int_equal(transport_parse(&a, x), 0);
	assert_int_equal(transport_parse(&b, y), 0);
	return transport_same_host(&a, &b);
}

static void test_same_host(void **state)
{
	assert_true(same("tcp:192.0.2.1:1", "tcp:192.0.2.1:2"));
	assert_false(same("tcp:192.0.2.1", "tcp:192.0.2.2"));
	assert_true(same("tcp:2001:db8::1", "tcp:2001:DB8:0:0::1"));
	assert_false(same("tcp:2001:db8::1", "tcp:2001:db8::2"));
	assert_true(same("vsock:3:1", "vsock:3:2"));
	assert_false(same("vsock:3:1", "vsock:4:1"));
	assert_false(same("vsock:3:1", "tcp:192.0.2.1"));
}

/* ---- UNIX sockets ------------------------------------------------------------------------- */

struct place {
	char dir[400];
	struct transport_addr a;
	int fd;
};

static struct msg_wait within(int ms)
{
	return (struct msg_wait){ .deadline = msg_now() + ms, .stop_fd = -1 };
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/hyptrace-unit.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->a.kind = TRANSPORT_UNIX;
	snprintf(p->a.host, sizeof(p->a.host), "%s/s", p->dir);
	p->fd = transport_listen(&p->a, 0, NULL);
	assert_true(p->fd >= 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	if (p->fd >= 0)
		close(p->fd);
	unlink(p->a.host);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static void test_unix(void **state)
{
	struct place *p = *state;
	struct transport_addr peer;
	struct msg_wait w = within(10000);
	int client = transport_connect(&p->a, &w), server;

	assert_true(client >= 0);
	assert_int_equal(msg_poll(p->fd, POLLIN, &w), 0);
	server = transport_accept(p->fd, &peer);
	assert_true(server >= 0);
	assert_int_equal(peer.kind, TRANSPORT_UNIX);
	assert_true(transport_trusted_user(server));
	assert_true(fcntl(client, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(server, F_GETFL) & O_NONBLOCK);
	assert_int_equal(transport_accept(p->fd, &peer), -EAGAIN);
	close(client);
	close(server);
}

/* A listener that is dead is replaced; one that lives, and what is no socket, are not. */
static void test_taken_path(void **state)
{
	struct place *p = *state;
	struct stat st;
	int fd;

	assert_int_equal(stat(p->a.host, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(transport_listen(&p->a, 1, NULL), -EADDRINUSE);
	close(p->fd);
	p->fd = transport_listen(&p->a, 1, NULL);
	assert_true(p->fd >= 0);
	unlink(p->a.host);
	fd = open(p->a.host, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(transport_listen(&p->a, 1, NULL), -EEXIST);
	assert_int_equal(stat(p->a.host, &st), 0);
	close(fd);
}

/* The kernel takes one more than the backlog. */
static void fill_queue(const struct place *p, int fds[2])
{
	struct msg_wait w = within(0);
	int n = 0;

	while ((fds[n] = transport_connect(&p->a, &w)) >= 0)
		assert_true(++n < 2);
	assert_int_equal(n, 1);
	assert_int_equal(fds[1], -ETIMEDOUT);
}

static void *accept_later(void *arg)
{
	struct place *p = arg;
	struct transport_addr peer;
	struct msg_wait w = within(10000);
	int fd = -EAGAIN;

	usleep(50000);
	for (int i = 0; i < 2; i++) {
		if (!msg_poll(p->fd, POLLIN, &w))
			fd = transport_accept(p->fd, &peer);
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

static void test_full_queue(void **state)
{
	struct place *p = *state;
	struct msg_wait w = within(50);
	pthread_t thread;
	int fds[2], fd;

	fill_queue(p, fds);
	assert_int_equal(transport_connect(&p->a, &w), -ETIMEDOUT);
	w = within(10000);
	w.stop_fd = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(transport_connect(&p->a, &w), -ECANCELED);
	close(w.stop_fd);
	w.stop_fd = -1;
	assert_int_equal(pthread_create(&thread, NULL, accept_later, p), 0);
	fd = transport_connect(&p->a, &w);
	assert_true(fd >= 0);
	pthread_join(thread, NULL);
	close(fd);
	close(fds[0]);
}

static void test_nobody(void **state)
{
	struct place *p = *state;
	struct msg_wait w = within(10000);

	close(p->fd);
	p->fd = -1;
	assert_int_equal(transport_connect(&p->a, &w), -ECONNREFUSED);
	unlink(p->a.host);
	assert_int_equal(transport_connect(&p->a, &w), -ENOENT);
}

/* Bound from within its directory, for no address has room for its path. */
static void test_long_path(void **state)
{
	struct place *p = *state;
	struct msg_wait w = within(10000);
	char cwd[4096];
	int fd;

	unlink(p->a.host);
	close(p->fd);
	for (int i = 0; i < 2; i++) {
		size_t n = strlen(p->dir);

		snprintf(p->dir + n, sizeof(p->dir) - n, "/%0*d", LONG_NAME, 0);
		assert_int_equal(mkdir(p->dir, 0700), 0);
	}
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(p->dir), 0);
	strcpy(p->a.host, "s");
	p->fd = transport_listen(&p->a, 1, NULL);
	assert_true(p->fd >= 0);
	assert_int_equal(chdir(cwd), 0);
	snprintf(p->a.host, sizeof(p->a.host), "%s/s", p->dir);
	assert_int_equal(transport_listen(&p->a, 1, NULL), -ENAMETOOLONG);
	fd = transport_connect(&p->a, &w);
	assert_true(fd >= 0);
	close(fd);
	unlink(p->a.host);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rmdir(p->dir), 0);
		*strrchr(p->dir, '/') = 0;
	}
	/* a name that is too long itself */
	memset(p->a.host, 'x', 150);
	p->a.host[150] = 0;
	assert_int_equal(transport_connect(&p->a, &w), -ENAMETOOLONG);
}

/* ---- CONNECT ---------------------------------------------------------------------------------- */

/* What a VMM says to CONNECT, and what comes of it. */
static const struct {
	const char *answer;
	int ret;
} answers[] = {
	{ "OK 1073741824\n", 0 },   { "OK\n", 0 },	    { "", -ECONNREFUSED },
	{ "ERR\n", -ECONNREFUSED }, { "O", -ECONNREFUSED }, { "220 smtp ready\n", -ECONNREFUSED },
};

static void test_connect(void **state)
{
	char heard[32], rest[8];

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		struct msg_wait w = within(10000);
		int s[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s), 0);
		assert_int_equal(msg_send(s[1], answers[i].answer, strlen(answers[i].answer), &w), 0);
		if (!answers[i].ret)
			assert_int_equal(msg_send(s[1], "rest", 4, &w), 0);
		shutdown(s[1], SHUT_WR);
		assert_int_equal(transport_say_connect(s[0], 823, &w), answers[i].ret);
		assert_int_equal(recv(s[1], heard, sizeof(heard), 0), 12);
		assert_memory_equal(heard, "CONNECT 823\n", 12);
		/* what follows the line is the agent's */
		if (!answers[i].ret)
			assert_int_equal(recv(s[0], rest, sizeof(rest), 0), 4);
		close(s[0]);
		close(s[1]);
	}
}

static void test_connect_hostile(void **state)
{
	struct msg_wait w = within(30);
	char noise[100];
	int s[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s), 0);
	assert_int_equal(transport_say_connect(s[0], 823, &w), -ETIMEDOUT);
	w = within(10000);
	memset(noise, 'O', sizeof(noise));
	assert_int_equal(msg_send(s[1], noise, sizeof(noise), &w), 0);
	assert_int_equal(transport_say_connect(s[0], 823, &w), -EPROTO);
	close(s[0]);
	close(s[1]);
}

/* ---- TCP ------------------------------------------------------------------------------------------- */

static void test_tcp(void **state)
{
	struct transport_addr a = { .kind = TRANSPORT_TCP, .port = TRANSPORT_PORT_ANY, .host = "127.0.0.1" };
	struct transport_addr peer, local;
	struct msg_wait w = within(10000);
	int fd = transport_listen(&a, 1, &a.port), client, server;

	assert_true(fd >= 0);
	assert_in_range(a.port, 1, 65535);
	client = transport_connect(&a, &w);
	assert_true(client >= 0);
	assert_int_equal(msg_poll(fd, POLLIN, &w), 0);
	server = transport_accept(fd, &peer);
	assert_true(server >= 0);
	assert_string_equal(peer.host, "127.0.0.1");
	assert_int_equal(transport_local(server, &local), 0);
	assert_int_equal(local.port, a.port);
	assert_true(transport_same_host(&peer, &local));
	close(client);
	close(server);
	close(fd);
	assert_int_equal(transport_connect(&a, &w), -ECONNREFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_same_host),
		cmocka_unit_test_setup_teardown(test_unix, setup, teardown),
		cmocka_unit_test_setup_teardown(test_taken_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_path, setup, teardown),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_connect_hostile),
		cmocka_unit_test(test_tcp),
	};

	return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
