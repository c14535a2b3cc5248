// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pages reach the spool whole, spliced or copied. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/drain/source.h"
#include "base/files.h"

#define PAGE 4096u
#define LEN  (5 * PAGE + 100)

struct fixture {
	int in[2], out;
	struct drain_stats stats;
	struct drain drain;
	struct splice m;
	uint8_t sent[LEN], kept[2 * LEN];
};

static int temp_file(int flags)
{
	char path[] = "/tmp/hyptrace-splice-XXXXXX";
	int ret, fd = mkstemp(path);

	assert_true(fd >= 0);
	ret = open(path, O_RDWR | flags);
	close(fd);
	unlink(path);
	return ret;
}

/* The other end of in[0] has sent all and is closed. */
static struct fixture *begin(int flags, size_t size, bool padded)
{
	struct fixture *f = calloc(1, sizeof(*f));

	for (size_t i = 0; i < LEN; i++)
		f->sent[i] = (uint8_t)(i * 7 + i / PAGE + 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->in), 0);
	f->out = temp_file(flags);
	assert_true(f->out >= 0);
	f->drain = (struct drain){ .out = f->out, .stats = &f->stats };
	assert_int_equal(splice_open(&f->m, f->in[0], size, padded, &f->drain), 0);
	return f;
}

static void send_all(struct fixture *f)
{
	assert_int_equal(write_all(f->in[1], f->sent, LEN), 0);
	close(f->in[1]);
}

/* Until the end: what is in the file. */
static size_t move_all(struct fixture *f)
{
	ssize_t n;

	while ((n = splice_move(&f->m)) > 0)
		;
	assert_int_equal(n, 0);
	assert_int_equal(lseek(f->out, 0, SEEK_SET), 0);
	n = read_all(f->out, f->kept, sizeof(f->kept));
	assert_int_equal(f->stats.bytes, n);
	return (size_t)n;
}

static void end(struct fixture *f)
{
	splice_close(&f->m);
	close(f->in[0]);
	close(f->out);
	free(f);
}

static void test_spliced(void **state)
{
	struct fixture *f = begin(0, PAGE, false);

	assert_int_equal(splice_move(&f->m), -EAGAIN);
	send_all(f);
	assert_int_equal(move_all(f), LEN);
	assert_memory_equal(f->kept, f->sent, LEN);
	assert_false(f->m.copying);
	end(f);
}

/* A file opened to append takes no splice (EINVAL): what is in the pipe by then is not lost. */
static void test_copied(void **state)
{
	struct fixture *f = begin(O_APPEND, PAGE, false);

	send_all(f);
	assert_int_equal(move_all(f), LEN);
	assert_memory_equal(f->kept, f->sent, LEN);
	assert_true(f->m.copying);
	end(f);
}

/* The last page is filled up with zeros. */
static void test_padded(void **state)
{
	static const uint8_t zeros[PAGE];
	struct fixture *f = begin(0, PAGE, true);

	send_all(f);
	f->m.copying = true;
	assert_int_equal(move_all(f), 6 * PAGE);
	assert_memory_equal(f->kept, f->sent, LEN);
	assert_memory_equal(f->kept + LEN, zeros, 6 * PAGE - LEN);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spliced),
		cmocka_unit_test(test_copied),
		cmocka_unit_test(test_padded),
	};

	return cmocka_run_group_tests_name("splice", tests, NULL, NULL);
}
