// SPDX-License-Identifier: LGPL-2.1-or-later
/* The texts of a spool: formats, symbols, statistics, whole files each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spool/spool-priv.h"

#define TEXT_MAX (256u << 20)

static int text_name(char *out, size_t size, const char *name)
{
	if (strchr(name, '/') || name[0] == '.' || !*name)
		return -EINVAL;
	return (size_t)snprintf(out, size, "texts/%s", name) < size ? 0 : -ENAMETOOLONG;
}

int spool_put_text(struct spool *s, const char *name, const void *data, size_t len)
{
	char path[128];
	int ret = text_name(path, sizeof(path), name);

	if (ret)
		return ret;
	ret = write_file_at(spool_dirfd(s), path, data, len);
	if (ret) /* a part of it is of no use, and takes room on a full disk */
		unlinkat(spool_dirfd(s), path, 0);
	return ret;
}

int spool_append_text(struct spool *s, const char *name, const void *data, size_t len)
{
	char path[128];
	int fd, ret = text_name(path, sizeof(path), name);

	if (ret)
		return ret;
	fd = openat(spool_dirfd(s), path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = write_all(fd, data, len);
	close(fd);
	return ret;
}

int spool_get_text(const struct spool *s, const char *name, struct buf *out)
{
	char path[128];
	int ret = text_name(path, sizeof(path), name) ?: read_file_at(s->dirfd, path, TEXT_MAX, out);

	return ret == -ENOENT && s->whole ? spool_get_text(s->whole, name, out) : ret;
}

int spool_page_layout(const struct spool *s, struct page_layout *out)
{
	return page_layout_read((s->whole ?: s)->dirfd, "texts/header_page", out);
}
