// SPDX-License-Identifier: GPL-2.0-only
/* Questions to a guest about its counter: a peer that answers late is not waited for longer than is said. */
#include "record/drain/peer-priv.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "file/wire/msg.h"

#define LATE_MS	 1500 /* each answer: by itself within the 2 s for all of the last ones */
#define LIMIT_MS 15000

/* Answers each question, late, until the other end is closed. */
static void *late_agent(void *arg)
{
	int fd = *(int *)arg;
	struct msg_reader *r = calloc(1, sizeof(*r));
	struct msg_wait w = { .deadline = INT64_MAX, .stop_fd = -1 };
	struct msg_sync sync;
	struct msg m;

	while (!msg_recv(fd, r, &w, &m) && !msg_get_sync(&m, &sync)) {
		struct msg_counter_shot shot = { 0 };
		struct buf b = { 0 };

		if (!msg_sync_is(&sync, MSG_SYNC_COUNTER, MSG_COUNTER_ASK) ||
		    msg_get_sync_number(&sync, &shot.number))
			break;
		shot.clock = boot_ns();
		usleep(LATE_MS * 1000);
		msg_add_counter_shot(&b, &shot);
		msg_send_buf(fd, &b, &w);
	}
	free(r);
	return NULL;
}

static void test_late_answers(void **state)
{
	struct peer_clock *c;
	pthread_t thread;
	int64_t begin = msg_now();
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	assert_int_equal(pthread_create(&thread, NULL, late_agent, &sv[1]), 0);
	assert_int_equal(peer_clock_start(&c, sv[0], 100), 0);
	assert_non_null(peer_clock_log(c));
	assert_true(msg_now() - begin < LIMIT_MS);
	peer_clock_free(c);
	pthread_join(thread, NULL);
	close(sv[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
