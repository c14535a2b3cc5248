// SPDX-License-Identifier: LGPL-2.1-or-later
/* Unpacks zstd with contexts that are made once: to give memory back and take it again costs a tenth. */
#include "dat/unzip.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define KEPT 16

struct unzips {
	pthread_mutex_t lock;
	ZSTD_DCtx *v[KEPT];
	size_t n;
};

struct unzips *unzips_new(void)
{
	struct unzips *u = calloc(1, sizeof(*u));

	if (u)
		pthread_mutex_init(&u->lock, NULL);
	return u;
}

void unzips_free(struct unzips *u)
{
	if (!u)
		return;
	while (u->n)
		ZSTD_freeDCtx(u->v[--u->n]);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

static ZSTD_DCtx *unzips_take(struct unzips *u)
{
	ZSTD_DCtx *d = NULL;

	pthread_mutex_lock(&u->lock);
	if (u->n)
		d = u->v[--u->n];
	pthread_mutex_unlock(&u->lock);
	return d ? d : ZSTD_createDCtx();
}

static void unzips_give(struct unzips *u, ZSTD_DCtx *d)
{
	pthread_mutex_lock(&u->lock);
	if (u->n < KEPT) {
		u->v[u->n++] = d;
		d = NULL;
	}
	pthread_mutex_unlock(&u->lock);
	ZSTD_freeDCtx(d);
}

int unzip(struct unzips *u, const void *in, size_t csize, void *out, size_t usize)
{
	ZSTD_DCtx *d = unzips_take(u);
	size_t n;

	if (!d)
		return -ENOMEM;
	n = ZSTD_decompressDCtx(d, out, usize, in, csize);
	unzips_give(u, d);
	if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
		return -ENOMEM;
	return ZSTD_isError(n) || n != usize ? -EBADMSG : 0;
}
