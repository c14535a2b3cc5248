// SPDX-License-Identifier: LGPL-2.1-or-later
#include "record/peer-meta.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dat/reader.h"

static int put(struct spool *spool, const char *name, struct dat_text t)
{
	return t.len ? spool_put_text(spool, name, t.data, t.len) : 0;
}

static int put_formats(struct spool *spool, const struct reader_info *info)
{
	struct buf all = { 0 };
	int ret;

	for (size_t i = 0; i < info->n_formats; i++) {
		buf_printf(&all, "%s %zu\n", info->formats[i].system, info->formats[i].text.len);
		buf_add(&all, info->formats[i].text.data, info->formats[i].text.len);
	}
	ret = buf_status(&all);
	if (!ret)
		ret = spool_put_text(spool, "formats", all.data, all.len);
	buf_release(&all);
	return ret;
}

/* Those that we write ourselves would be there twice. */
static bool own(uint16_t id)
{
	return id == DAT_TIME_SHIFT || id == DAT_GUEST || id == DAT_CPUCOUNT || id == DAT_CPUSTAT ||
	       id == DAT_TRACEID || id == DAT_VERSION;
}

static int put_options(struct spool *spool, const struct reader_info *info, bool (*leave_out)(uint16_t id))
{
	struct buf all = { 0 };
	int ret;

	for (size_t i = 0; i < info->n_options; i++) {
		const struct reader_option *o = &info->options[i];
		uint32_t len = (uint32_t)o->data.len;

		if (leave_out(o->id))
			continue;
		buf_add(&all, &o->id, sizeof(o->id));
		buf_add(&all, &len, sizeof(len));
		buf_add(&all, o->data.data, o->data.len);
	}
	ret = buf_status(&all);
	if (!ret)
		ret = spool_put_text(spool, "options", all.data, all.len);
	buf_release(&all);
	return ret;
}

int spool_keep_info(struct spool *spool, const struct reader_info *info, bool (*leave_out)(uint16_t id))
{
	int ret = put(spool, "header_page", info->header_page);

	if (!ret)
		ret = put(spool, "header_event", info->header_event);
	if (!ret)
		ret = put(spool, "kallsyms", info->kallsyms);
	if (!ret)
		ret = put(spool, "printk_formats", info->printk);
	if (!ret)
		ret = put(spool, "saved_cmdlines", info->cmdlines);
	if (!ret)
		ret = put_formats(spool, info);
	return ret ? ret : put_options(spool, info, leave_out);
}

int peer_meta_keep(struct spool *spool, const struct buf *metadata, const struct log *log)
{
	int fd = memfd_create("metadata", MFD_CLOEXEC);
	struct reader *r = NULL;
	int ret = fd < 0 ? -errno : write_all(fd, metadata->data, metadata->len);

	if (!ret)
		ret = reader_open(&r, fd, log);
	if (!ret)
		ret = spool_keep_info(spool, reader_info(r), own);
	reader_close(r);
	if (fd >= 0)
		close(fd);
	return ret;
}
