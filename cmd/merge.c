// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace merge: joins pieces of a recording, of the host and of its guests, into one file each. */
#include "cmd.h"
#include "file/dat/copy.h"

struct merge_opts {
	const char *output;
	bool quiet;
	struct times_opts times; /* guests only */
	struct strlist files;
};

#define MERGE(field) .off = offsetof(struct merge_opts, field)

static const struct opt merge_rows[] = {
	OPT('o', "output", "FILE", "the file to write; guests' files are next to it", opts_set_text,
	    MERGE(output)),
	OPT_NO_GUESTS(MERGE(times.no_guests)),
	OPT_INPUT(MERGE(files)),
	OPT_QUIET(MERGE(quiet)),
	OPT_HELP,
};

const struct opts_table merge_table = {
	.command = "merge",
	.usage = "usage: hyptrace merge -o OUT.dat [-q] PIECE...\n"
		 "\n"
		 "Joins pieces of a recording, from hyptrace cut or record --rotate, in the order of\n"
		 "their time. Pieces of its guests become files next to OUT.dat.\n"
		 "\n",
	.rows = merge_rows,
	.n = ARRAY_SIZE(merge_rows),
};

struct merge_piece {
	uint64_t first; /* time of its first record */
	struct dat_source source;
};

static int merge_files(const struct merge_opts *o, const struct log *log)
{
	struct hyptrace *files = NULL;
	struct strlist made = { 0 };
	int ret = command_open(&files, &o->files, COMMAND_UNLOADED, &o->times, log);
	const struct inputs *in = ret ? NULL : handle_inputs(files);

	for (size_t i = 0; in && i < in->n && !ret; i++) {
		struct merge_piece *pieces;
		struct dat_source *v;
		struct dat_copy copy = { 0 };
		uint64_t last, damaged = 0; /* damaged pages are copied as they are */
		size_t k = 0;

		while (in->v[k].trace_id != in->v[i].trace_id)
			k++;
		if (k != i) /* not the first of its machine */
			continue;
		pieces = calloc(in->n, sizeof(*pieces));
		copy.v = v = calloc(in->n, sizeof(*v));
		ret = pieces && v ? 0 : -ENOMEM;
		for (; k < in->n && !ret; k++) {
			struct merge_piece *p = &pieces[copy.n];

			if (in->v[k].trace_id != in->v[i].trace_id)
				continue;
			*p = (struct merge_piece){ .source = { in->v[k].path, in->v[k].reader } };
			ret = part_extent(&in->v[k], 1, &p->first, &last, &damaged);
			if (ret == -ENODATA) /* it joins at the end */
				ret = 0;
			copy.n++;
		}
		if (!ret) {
			qsort(pieces, copy.n, sizeof(*pieces), compare_u64);
			for (k = 0; k < copy.n; k++)
				v[k] = pieces[k].source;
			ret = output_copy(&copy, o->output, in, i, 0, &made, log);
		}
		free(pieces);
		free(v);
	}
	output_made(&made, ret, log);
	hyptrace_close(files);
	return ret;
}

int cmd_merge(int argc, char **argv)
{
	struct merge_opts o = { .times.no_sync = true };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	int status;

	if (!command_files(&merge_table, argc, argv, &o, &o.files, &status))
		goto out;
	if (!o.output || o.files.n < 2) {
		fprintf(stderr, "hyptrace merge: %s\n",
			!o.output ? "-o is needed: the file to write" : "two pieces or more are needed");
		goto out;
	}
	console.quiet = o.quiet;
	status = console_status(&console, merge_files(&o, &log));
out:
	strlist_release(&o.files);
	return status;
}
