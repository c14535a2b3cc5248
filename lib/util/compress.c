// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocks compressed with zstd, each a frame of its own. */
#include "util/compress.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

struct zip {
	ZSTD_CCtx *ctx;
	int level;
};

struct zip *zip_open(int level)
{
	struct zip *z;

	if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel()) {
		errno = EINVAL;
		return NULL;
	}
	z = calloc(1, sizeof(*z));
	if (!z)
		return NULL;
	z->level = level ? level : ZSTD_CLEVEL_DEFAULT;
	z->ctx = ZSTD_createCCtx();
	if (!z->ctx) {
		free(z);
		errno = ENOMEM;
		return NULL;
	}
	return z;
}

void zip_close(struct zip *z)
{
	if (!z)
		return;
	ZSTD_freeCCtx(z->ctx);
	free(z);
}

const char *zip_version(void)
{
	return ZSTD_versionString();
}

size_t zip_bound(size_t len)
{
	return ZSTD_compressBound(len);
}

ssize_t zip_block(struct zip *z, const void *in, size_t len, void *out, size_t cap)
{
	size_t n = ZSTD_compressCCtx(z->ctx, out, cap, in, len, z->level);

	return ZSTD_isError(n) ? -EIO : (ssize_t)n;
}
