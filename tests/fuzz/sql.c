// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queries of any text over two captures: none may crash, and each ends when it is interrupted. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask/sql/sql.h"
#include "../leaks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS_MAX 200

static struct inputs inputs;
static struct sql *sql;
static size_t rows, runs;

static int fuzz_begin(void *ctx, const char *const *names, size_t n)
{
	return 0;
}

static int fuzz_row(void *ctx, const struct sql_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].kind == SQL_TEXT && strlen(v[i].text) == SIZE_MAX)
			abort();
	if (++rows > ROWS_MAX)
		sql_interrupt(sql);
	return 0;
}

static int fuzz_end(void *ctx)
{
	return 0;
}

/* A query may ask for years of work: it ends when it is told to, or the next alarm kills. */
static void fuzz_alarm(int sig)
{
	signal(SIGALRM, SIG_DFL);
	alarm(20);
	sql_interrupt(sql);
}

static void fuzz_open(void)
{
	static char *paths[] = { "tests/data/functions/trace.dat", "tests/data/functions/trace-Guest.dat" };

	/* what queries made goes */
	if (++runs % 64 == 0) {
		sql_close(sql);
		sql = NULL;
	}
	if (sql)
		return;
	if (!inputs.n && (inputs_open(&inputs, paths, 2, 0, NULL) || inputs_load(&inputs, NULL))) {
		fprintf(stderr, "cannot open %s: run this from the source tree\n", paths[0]);
		exit(1);
	}
	if (sql_open(&sql, &inputs, NULL)) {
		fprintf(stderr, "cannot open %s: run this from the source tree\n", paths[0]);
		exit(1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sql_sink sink = { fuzz_begin, fuzz_row, fuzz_end };
	char *text = strndup((const char *)data, size), why[SQL_WHY_MAX];
	struct strlist notes;

	fuzz_open();
	rows = 0;
	signal(SIGALRM, fuzz_alarm);
	alarm(1);
	if (text)
		sql_run(sql, text, &sink, NULL, why);
	alarm(0);
	notes = sql_notes(sql);
	strlist_release(&notes);
	free(text);
	return 0;
}
