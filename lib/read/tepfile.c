// SPDX-License-Identifier: LGPL-2.1-or-later
/* Fills a tep_handle of libtraceevent from a trace.dat, and gives it records that it can read safely. */
#include "read/tepfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* libtraceevent wants its texts to end with a NUL, and some of them to be its own. */
static int tepfile_text(struct tep_handle *tep, const struct dat_text *text,
			int (*parse)(struct tep_handle *tep, const char *text))
{
	char *copy;

	if (!text->len)
		return 0;
	copy = malloc(text->len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text->data, text->len);
	copy[text->len] = '\0';
	parse(tep, copy); /* a line that makes no sense ends the table there */
	free(copy);
	return 0;
}

static unsigned int tepfile_cpus(const struct reader_info *info)
{
	size_t max = 0;

	for (size_t i = 0; i < info->n_buffers; i++)
		max = info->buffers[i].n_cpus > max ? info->buffers[i].n_cpus : max;
	return (unsigned int)max;
}

static void parse_formats(struct tep_handle *tep, const struct reader_info *info, size_t *failed)
{
	for (size_t i = 0; i < info->n_formats; i++) {
		const struct reader_format *f = &info->formats[i];

		if (tep_parse_event(tep, f->text.data, f->text.len, f->system) && failed)
			++*failed;
	}
}

static bool reaches_beyond(const struct tep_format_field *f)
{
	for (; f; f = f->next)
		if (f->offset < 0 || f->size < 0 || f->offset > TEPFILE_RECORD_MAX - f->size)
			return true;
	return false;
}

static int check_offsets(struct tep_handle *tep, const struct log *log)
{
	int n = tep_get_events_count(tep);

	for (int i = 0; i < n; i++) {
		const struct tep_event *e = tep_get_event(tep, i);

		if (!reaches_beyond(e->format.common_fields) && !reaches_beyond(e->format.fields))
			continue;
		log_err(log, "the format of event '%s' has a field where no record reaches", e->name);
		return -EBADMSG;
	}
	return 0;
}

int tepfile_load(struct tep_handle *tep, const struct reader *r, size_t *failed, const struct log *log)
{
	const struct reader_info *info = reader_info(r);
	int ret;

	if (failed)
		*failed = 0;
	/* the reader takes no others */
	tep_set_file_bigendian(tep, TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, 8);
	tep_set_page_size(tep, (int)info->page_size);
	tep_set_cpus(tep, (int)tepfile_cpus(info));
	tep_parse_header_page(tep, (char *)info->header_page.data, info->header_page.len, 8);
	parse_formats(tep, info, failed);
	ret = check_offsets(tep, log);
	if (ret)
		return ret;
	if (tepfile_text(tep, &info->kallsyms, tep_parse_kallsyms) ||
	    tepfile_text(tep, &info->printk, tep_parse_printk_formats) ||
	    tepfile_text(tep, &info->cmdlines, tep_parse_saved_cmdlines))
		return -ENOMEM;
	return 0;
}

/* ---- records ---------------------------------------------------------------------- */

#define PAGE_MAX    (1u << 20)
#define PADDED_ROOM (PAGE_MAX + TEPFILE_RECORD_MAX)

int padded_init(struct padded *p)
{
	p->data = calloc(1, PADDED_ROOM);
	return p->data ? 0 : -ENOMEM;
}

void padded_release(struct padded *p)
{
	free(p->data);
	*p = (struct padded){ 0 };
}

void padded_record(struct padded *p, const struct merge_record *m, struct tep_record *out)
{
	size_t len = m->len < PAGE_MAX ? m->len : PAGE_MAX; /* it lay in a page */

	if (p->used > len)
		memset(p->data + len, 0, p->used - len);
	memcpy(p->data, m->data, len);
	p->used = len;
	*out = (struct tep_record){ .ts = m->ts,
				    .missed_events = m->missed,
				    .record_size = (int)len,
				    .size = (int)len,
				    .data = p->data,
				    .cpu = (int)m->cpu,
				    .ref_count = 1 };
}
