/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_DAT_TEXTS_H
#define TESTS_DAT_TEXTS_H

/* What a trace.dat says besides its pages, for one that is made of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file/dat/reader.h"

/*
 * Texts, formats and options, but for CPUSTAT, which counts another file's records. They
 * belong to the reader, the lists to nobody: programs that end soon. -ENOMEM.
 */
static inline int dat_texts(struct dat_file *f, const struct reader_info *info)
{
	struct dat_text *texts = calloc(info->n_formats + 1, sizeof(*texts));
	struct dat_system *systems = calloc(info->n_formats + 1, sizeof(*systems)), *last = NULL;
	struct dat_option *options = calloc(info->n_options + 1, sizeof(*options));

	if (!texts || !systems || !options)
		return -ENOMEM;
	*f = (struct dat_file){ .version = info->version,
				.compression = info->compression,
				.page_size = info->page_size,
				.header_page = info->header_page,
				.header_event = info->header_event,
				.printk = info->printk,
				.cmdlines = info->cmdlines,
				.ftrace = texts,
				.systems = systems,
				.options = options };
	if (reader_symbols(info, &f->kallsyms))
		return -EBADMSG;
	for (size_t i = 0; i < info->n_formats; i++) {
		const char *system = info->formats[i].system;

		texts[i] = info->formats[i].text;
		if (!strcmp(system, "ftrace") && f->n_ftrace == i) {
			f->n_ftrace++;
			continue;
		}
		if (!last || strcmp(last->name, system)) {
			last = &systems[f->n_systems++];
			*last = (struct dat_system){ .name = system, .formats = &texts[i] };
		}
		last->n++;
	}
	for (size_t i = 0; i < info->n_options; i++) {
		const struct reader_option *o = &info->options[i];

		if (!dat_writes_option(o->id))
			options[f->n_options++] =
				(struct dat_option){ o->id, o->data.data, (uint32_t)o->data.len };
	}
	return 0;
}

#endif
