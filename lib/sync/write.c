// SPDX-License-Identifier: LGPL-2.1-or-later
/* A trace.dat written anew beside itself with other options, and put in its place. */
#include "sync/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/dat/copy.h"
#include "base/outfile.h"
#include "base/strings.h"

/* As NAME.orig: a hard link, so that the file is there all the time; the first one kept stays. */
static int keep_original(const struct outfile *o)
{
	char *orig = str_printf("%s.orig", o->name);
	struct stat st;
	int ret = 0;

	if (!orig)
		return -ENOMEM;
	if (linkat(o->dir, o->name, o->dir, orig, 0) < 0)
		ret = -errno;
	if (ret == -EEXIST && !fstatat(o->dir, orig, &st, AT_SYMLINK_NOFOLLOW)) {
		ret = S_ISREG(st.st_mode) ? 0 : -EINVAL;
		if (ret)
			log_err(o->log, "'%s.orig' is there, and no file: the original cannot be kept",
				o->path);
	}
	free(orig);
	return ret;
}

int sync_rewrite(const struct reader *r, const char *path, const struct dat_option *options, size_t n,
		 const struct log *log)
{
	const struct dat_source source = { path, r };
	const struct dat_copy copy = { .v = &source, .n = 1, .options = options, .n_options = n };
	struct outfile out;
	int ret = outfile_open(&out, path, false, log);

	return ret ?: outfile_close(&out, dat_copy(&copy, out.fd, path, log) ?: keep_original(&out));
}
