// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace cut: writes a part of recordings' time, or pieces of one length, as trace.dat files. */
#include "cmd.h"

#define CUT_PIECES_MAX 10000

struct cut_opts {
	struct files_opts f;
	const char *output, *per;
};

#define CUT(field) .off = offsetof(struct cut_opts, field)

static const struct opt cut_rows[] = {
	OPT('o', "output", "FILE", "the file to write; guests' files are next to it", opts_set_text,
	    CUT(output)),
	OPT(0, "per", "DURATION", "pieces that long, FILE.001.dat and so on: 10s, 500ms", opts_set_text,
	    CUT(per)),
	OPT_FILES(FILES),
};

const struct opts_table cut_table = {
	.command = "cut",
	.usage = "usage: hyptrace cut --time FROM,TO -o OUT.dat [OPTION...] [FILE...]\n"
		 "       hyptrace cut --per DURATION -o OUT.dat [OPTION...] [FILE...]\n"
		 "\n"
		 "Writes a part of the time of trace.dat or the FILEs, or pieces of one length, as\n"
		 "trace.dat files with the same options and events. hyptrace merge joins pieces.\n"
		 "\n",
	OPT_ROWS(cut_rows),
};

/* Records of one input in the piece that is being written. */
struct cut_piece {
	const struct filetime *time;
	uint64_t from, to; /* corrected times */
};

static int cut_wanted(void *ctx, unsigned int cpu, uint64_t ts)
{
	const struct cut_piece *p = ctx;
	uint64_t at = filetime_apply(p->time, cpu, ts);

	return at < p->from ? -1 : at >= p->to;
}

static int cut_files(void *opts, const struct log *log)
{
	struct cut_opts *o = opts;
	struct strlist made = { 0 };
	const struct inputs *in;
	uint64_t from, to, first, last, per = 0, damaged = 0; /* damaged pages are copied as they are */
	uint64_t pieces;
	size_t at = 0;
	int ret = command_files(&o->f, COMMAND_NO_TEXTS, &in, log);

	if (ret)
		return ret;
	from = in->from;
	to = in->to ? in->to : UINT64_MAX;
	if (o->per) {
		if (inputs_in_ticks(in) ? parse_u64(o->per, &per)
					: parse_amount(o->per, duration_units, UNIT_S, &per))
			return log_fail(
				log, -EINVAL,
				"times of these files are ticks: give --per in ticks, without a unit");
		ret = part_extent(in->v, in->n, 0, 0, &first, &last, &damaged);
		if (ret)
			return log_fail(log, ret, "there are no records to cut");
		from = from > first ? from : first;
		to = to < last ? to : last + 1;
		if ((to - from) / per >= CUT_PIECES_MAX)
			return log_fail(log, -EINVAL, "--per %s makes more than %d pieces: give a longer one",
					o->per, CUT_PIECES_MAX);
	}
	pieces = from >= to ? 0 : per ? (to - from - 1) / per + 1 : 1;
	for (size_t i = 0; i < in->n; i++)
		for (uint64_t k = 1; k <= pieces && !ret; k++)
			ret = output_add(o->output, in, i, per ? k : 0, &made, log);
	for (size_t i = 0; i < in->n && !ret; i++) {
		const struct reader_info *info = reader_info(in->v[i].reader);
		const struct dat_source source = { .name = in->v[i].path, .reader = in->v[i].reader };
		struct cut_piece piece = { .time = &in->v[i].time, .from = from };
		struct dat_copy copy = { .v = &source, .n = 1, .wanted = cut_wanted, .ctx = &piece };
		size_t n = 0;

		for (size_t b = 0; b < info->n_buffers; b++)
			n += info->buffers[b].n_cpus;
		copy.passed = calloc(n + 1, sizeof(*copy.passed));
		ret = copy.passed ? 0 : -ENOMEM;
		for (; piece.from < to && !ret; piece.from = piece.to) {
			piece.to = per && to - piece.from > per ? piece.from + per : to;
			ret = output_copy(&copy, made.v[at++], log);
		}
		free(copy.passed);
	}
	output_made(&made, ret, log);
	return ret;
}

static bool cut_check(void *opts)
{
	const struct cut_opts *o = opts;
	uint64_t per;
	const char *wrong =
		!o->output ? "-o is needed: the file to write"
		: !o->per && !o->f.times.time.from.anchor && !o->f.times.time.to.anchor
			? "--time or --per is needed: the part of time to write, or the length of pieces"
		: o->per && (parse_amount(o->per, duration_units, UNIT_S, &per) || !per)
			? "--per needs a duration, such as 10s or 500ms"
			: NULL;

	return options_good("hyptrace cut", wrong);
}

int cmd_cut(int argc, char **argv)
{
	struct cut_opts o = { 0 };

	return command_read(&cut_table, argc, argv, &o, cut_check, cut_files);
}
