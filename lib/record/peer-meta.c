// SPDX-License-Identifier: LGPL-2.1-or-later
/* The texts and options of a trace.dat, an agent's metadata for one, as a spool keeps them. */
#include "record/peer-meta.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dat/page.h"
#include "dat/reader.h"
#include "record/spool-formats.h"

#define FORMATS_MAX (32u << 20) /* of a kernel: some 5 MB */

static int keep_text(struct spool *spool, const char *name, struct dat_text t)
{
	return t.len ? spool_put_text(spool, name, t.data, t.len) : 0;
}

/* Those that we write ourselves would be there twice. */
static bool is_ours(uint16_t id)
{
	return id == DAT_TIME_SHIFT || id == DAT_GUEST || id == DAT_CPUCOUNT || id == DAT_CPUSTAT ||
	       id == DAT_TRACEID || id == DAT_VERSION;
}

int spool_keep_info(struct spool *spool, const struct reader_info *info, bool (*leave_out)(uint16_t id))
{
	struct buf formats = { 0 }, options = { 0 };
	int ret;

	for (size_t i = 0; i < info->n_formats; i++) {
		buf_printf(&formats, "%s %zu\n", info->formats[i].system, info->formats[i].text.len);
		buf_add(&formats, info->formats[i].text.data, info->formats[i].text.len);
	}
	for (size_t i = 0; i < info->n_options; i++) {
		const struct reader_option *o = &info->options[i];
		uint32_t len = (uint32_t)o->data.len;

		if (leave_out(o->id))
			continue;
		buf_add(&options, &o->id, sizeof(o->id));
		buf_add(&options, &len, sizeof(len));
		buf_add(&options, o->data.data, o->data.len);
	}
	ret = buf_status(&formats) ?: buf_status(&options);
	if (formats.len > FORMATS_MAX)
		ret = -EFBIG;
	ret = ret ?:
	      keep_text(spool, "header_page", info->header_page) ?:
	      keep_text(spool, "header_event", info->header_event) ?:
	      keep_text(spool, "kallsyms", info->kallsyms) ?:
	      keep_text(spool, "printk_formats", info->printk) ?:
	      keep_text(spool, "saved_cmdlines", info->cmdlines) ?:
	      spool_put_text(spool, "formats", formats.data, formats.len) ?:
	      spool_put_text(spool, "options", options.data, options.len);
	buf_release(&formats);
	buf_release(&options);
	return ret;
}

/* Options that no agent has to give spoil the file when it is written: later is too late. */
static int check_kept_options(const struct spool *spool)
{
	struct buf kept = { 0 };
	int ret = spool_get_text(spool, "options", &kept);
	struct cursor c = cursor_at(kept.data, kept.len);

	while (!ret && cursor_left(&c)) {
		uint16_t id = cursor_u16(&c);

		cursor_take(&c, cursor_u32(&c));
		if (c.bad || id == DAT_DONE || id == DAT_BUFFER ||
		    (id >= DAT_STRINGS && id <= DAT_BUFFER_TEXT))
			ret = -EBADMSG;
	}
	buf_release(&kept);
	return ret;
}

/* So do texts that are missing, or do not fit its pages. */
static int check_kept_texts(const struct spool *spool, uint32_t page_size)
{
	struct page_layout layout;
	struct spool_formats formats = { 0 };
	struct buf event = { 0 };
	int ret = spool_page_layout(spool, &layout) ?: spool_get_text(spool, "header_event", &event);

	if (!ret)
		ret = layout.data_offset >= page_size ? -EBADMSG : spool_formats_load(&formats, spool, NULL);
	spool_formats_release(&formats);
	buf_release(&event);
	return ret == -ENOENT ? -EBADMSG : ret;
}

int peer_meta_keep(struct spool *spool, const struct buf *metadata, uint32_t page_size, const struct log *log)
{
	int fd = memfd_create("metadata", MFD_CLOEXEC);
	struct reader *r = NULL;
	int ret;

	if (fd < 0)
		return -errno;
	ret = write_all(fd, metadata->data, metadata->len) ?: reader_open(&r, fd, log);
	ret = ret ?: spool_keep_info(spool, reader_info(r), is_ours) ?:
		  check_kept_texts(spool, page_size) ?: check_kept_options(spool);
	reader_close(r);
	close(fd);
	return ret;
}
