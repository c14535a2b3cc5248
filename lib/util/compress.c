// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocks compressed with zstd, each a frame of its own. */
#include "util/compress.h"

#include <errno.h>
#include <zstd.h>

/* struct zip is zstd's context, which remembers the level. */
struct zip *zip_open(int level)
{
	ZSTD_CCtx *ctx;

	if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel()) {
		errno = EINVAL;
		return NULL;
	}
	ctx = ZSTD_createCCtx();
	if (ctx)
		ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level ? level : ZSTD_CLEVEL_DEFAULT);
	else
		errno = ENOMEM;
	return (struct zip *)ctx;
}

void zip_close(struct zip *z)
{
	ZSTD_freeCCtx((ZSTD_CCtx *)z);
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
	size_t n = ZSTD_compress2((ZSTD_CCtx *)z, out, cap, in, len);

	return ZSTD_isError(n) ? -EIO : (ssize_t)n;
}
