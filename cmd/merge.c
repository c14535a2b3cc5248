// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace merge: joins pieces of a recording, of the host and of its guests, into one file each. */
#include "cmd.h"

struct merge_opts {
	struct files_opts f;
	const char *output;
};

#define MERGE(field) .off = offsetof(struct merge_opts, field)

static const struct opt merge_rows[] = {
	OPT('o', "output", "FILE", "the file to write; guests' files are next to it", opts_set_text,
	    MERGE(output)),
	OPT_NO_GUESTS(FILES(times.no_guests)),
	OPT_INPUT(FILES(files)),
	OPT_QUIET(FILES(quiet)),
	OPT_HELP,
};

const struct opts_table merge_table = {
	.command = "merge",
	.usage = "usage: hyptrace merge -o OUT.dat [-q] PIECE...\n"
		 "\n"
		 "Joins pieces of a recording, from hyptrace cut or record --rotate, in the order of\n"
		 "their time. Pieces of its guests become files next to OUT.dat.\n"
		 "\n",
	OPT_ROWS(merge_rows),
};

struct merge_piece {
	uint64_t first, last; /* times of its records; UINT64_MAX, 0: none */
	uint64_t number;
	struct dat_source source;
};

/* N of "NAME.N.dat", as cut --per and record --rotate name pieces; 0: none. */
static uint64_t piece_number(const char *path)
{
	const char *name = basename(path), *at = name + strlen(name);

	while (at > name && !(at[-1] == '.' && isdigit((unsigned char)*at)))
		at--;
	return strtoull(at, NULL, 10);
}

/* Marks pieces, in the order of time, before which numbers are missing. Those without records are last. */
static void mark_gaps(struct merge_piece *v, size_t n, const struct log *log)
{
	for (size_t k = 1; k < n && v[k].first != UINT64_MAX; k++) {
		const struct merge_piece *before = &v[k - 1];
		uint64_t missing = v[k].number - before->number - 1;

		for (size_t e = n; missing && e-- > k && v[e].first == UINT64_MAX;)
			missing -= v[e].number > before->number && v[e].number < v[k].number;
		if ((!missing && before->number) || v[k].first <= before->last)
			continue;
		v[k].source.gap = true;
		log_warn(log, "the numbers of '%s' and '%s' are not consecutive: a loss is marked between",
			 before->source.name, v[k].source.name);
	}
}

/* True: no piece of the same machine comes before it. */
static bool is_first(const struct inputs *in, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (in->v[k].trace_id == in->v[i].trace_id)
			return false;
	return true;
}

static int merge_files(void *opts, const struct log *log)
{
	struct merge_opts *o = opts;
	const struct inputs *in;
	struct strlist made = { 0 };
	int ret = command_files(&o->f, COMMAND_UNLOADED, &in, log);
	size_t at = 0;

	for (size_t i = 0; !ret && i < in->n; i++)
		if (is_first(in, i))
			ret = output_add(o->output, in, i, 0, &made, log);
	for (size_t i = 0; in && i < in->n && !ret; i++) {
		struct merge_piece *pieces;
		struct dat_source *v;
		struct dat_copy copy = { 0 };
		uint64_t damaged = 0; /* damaged pages are copied as they are */

		if (!is_first(in, i))
			continue;
		pieces = calloc(in->n, sizeof(*pieces));
		copy.v = v = calloc(in->n, sizeof(*v));
		ret = pieces && v ? 0 : -ENOMEM;
		for (size_t k = i; k < in->n && !ret; k++) {
			struct merge_piece *p = &pieces[copy.n];

			if (in->v[k].trace_id != in->v[i].trace_id)
				continue;
			*p = (struct merge_piece){ .number = piece_number(in->v[k].path),
						   .source = { in->v[k].path, in->v[k].reader, false } };
			ret = part_extent(&in->v[k], 1, 0, 0, &p->first, &p->last, &damaged);
			if (ret == -ENODATA) /* it joins at the end */
				ret = 0;
			copy.n++;
		}
		if (!ret) {
			qsort(pieces, copy.n, sizeof(*pieces), compare_u64);
			mark_gaps(pieces, copy.n, log);
			for (size_t k = 0; k < copy.n; k++)
				v[k] = pieces[k].source;
			ret = output_copy(&copy, made.v[at++], log);
		}
		free(pieces);
		free(v);
	}
	output_made(&made, ret, log);
	return ret;
}

static bool merge_check(void *opts)
{
	const struct merge_opts *o = opts;
	const char *wrong = !o->output	       ? "-o is needed: the file to write"
			    : o->f.files.n < 2 ? "two pieces or more are needed"
					       : NULL;

	return options_good("hyptrace merge", wrong);
}

int cmd_merge(int argc, char **argv)
{
	struct merge_opts o = { .f.times.no_sync = true };

	return command_read(&merge_table, argc, argv, &o, merge_check, merge_files);
}
