/* SPDX-License-Identifier: GPL-2.0-only */
/* A new spool in a directory of its own, for the tests of what works on spools. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "record/spool/spool.h"

struct fixture {
	char base[64], dir[80];
	struct spool *s;
};

static int spool_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->base, sizeof(f->base), "/tmp/hyptrace-spool-XXXXXX");
	assert_non_null(mkdtemp(f->base));
	snprintf(f->dir, sizeof(f->dir), "%s/t.spool", f->base);
	assert_int_equal(spool_create(&f->s, f->dir, NULL), 0);
	*state = f;
	return 0;
}

static int spool_teardown(void **state)
{
	struct fixture *f = *state;
	char cmd[128];

	spool_close(f->s);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", f->base);
	assert_int_equal(system(cmd), 0);
	free(f);
	return 0;
}
