// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace view: recordings as one HTML page with a timeline and tables. */

#include "cmd.h"
#include "ask/why/why.h"
#include "convert/view/view.h"
#include "base/decode/mark-lines.h"
#include "base/outfile.h"
#include "base/program.h"

struct view_opts {
	struct files_opts f;
	const char *output, *title, *desc;
	bool diff, full, open;
};

#define VIEW(field) .off = offsetof(struct view_opts, field)

static const struct opt view_rows[] = {
	OPT('o', "output", "OUT", "the page (trace.html); - is standard output", opts_set_text, VIEW(output)),
	OPT('t', "title", "TEXT", "title of the page, in place of the files' names", opts_set_text,
	    VIEW(title)),
	OPT('d', "diff", NULL, "two recordings side by side, and what differs by more than the noise",
	    opts_set_flag, VIEW(diff)),
	OPT(0, "full", NULL, "every span, also beyond 300,000, where short ones are summed", opts_set_flag,
	    VIEW(full)),
	OPT(0, "open", NULL, "open the page with xdg-open", opts_set_flag, VIEW(open)),
	OPT_SPANS_DESC(VIEW(desc)),
	OPT_FILES(FILES),
};

const struct opts_table view_table = {
	.command = "view",
	.usage = "usage: hyptrace view [-o OUT] [OPTION...] [FILE...]\n"
		 "       hyptrace view --diff [-o OUT] [OPTION...] A [GUEST...] B [GUEST...]\n"
		 "\n"
		 "Writes one HTML page that shows recordings, trace.dat or the FILEs: a timeline of\n"
		 "CPUs, the hypervisor, vCPUs and guests' tasks, and the tables of stat. It needs no\n"
		 "network. Files of guests join their host's.\n"
		 "\n",
	OPT_ROWS(view_rows),
};

static int latency_json_preset(const struct inputs *in, const struct latency_preset *p, struct json *j,
			       uint64_t *damaged)
{
	struct latency_question q = { 0 };
	struct latency_answer l = { .in = in, .q = &q };
	struct latency *found = NULL;
	uint64_t met = 0, n = 0;
	int ret;

	latency_preset_plan(p, in, &q.plan);
	ret = latency_open(&found, in, &q.plan, NULL);
	if (!ret && latency_fed(found)) {
		ret = latency_read(found, NULL, &met);
		merge_damage_join(damaged, met);
		l.found = latency_result(found);
	}
	for (size_t i = 0; i < l.found.n_rows && !ret; i++)
		n += l.found.rows[i].stages[q.plan.n_points - 1].n;
	if (n) {
		json_object(j);
		json_key_str(j, "preset", p->name);
		json_key_str(j, "summary", p->summary);
		json_key_array(j, "rows");
		for (size_t i = 0; i < l.found.n_rows; i++) {
			const struct histogram *h = &l.found.rows[i].stages[q.plan.n_points - 1];
			uint64_t from, to, in_bucket;
			char key[LATENCY_ROW_NAME];

			if (!h->n)
				continue;
			json_object(j);
			json_key_str(j, "key", latency_row_name(&l, &l.found.rows[i], key));
			json_key_u64(j, "p50", histogram_at(h, 0.5));
			json_key_u64(j, "p99", histogram_at(h, 0.99));
			json_key_array(j, "buckets");
			for (size_t at = 0; histogram_next(h, &at, &from, &to, &in_bucket);)
				JSON_ROW(j, from, to, in_bucket);
			json_array_end(j);
			json_object_end(j);
		}
		json_array_end(j);
		json_object_end(j);
	}
	latency_close(found);
	return ret == -EINVAL ? 0 : ret; /* a field is not there */
}

/* All presets of latency that these files can feed, as an array with their distributions. */
static int latency_json(const struct inputs *in, struct buf *out, uint64_t *damaged)
{
	struct json j = { .out = out, .compact = true };
	const struct latency_preset *p;
	int ret = 0;

	json_array(&j);
	for (size_t i = 0; (p = latency_preset_at(i)) && !ret; i++)
		ret = latency_json_preset(in, p, &j, damaged);
	json_array_end(&j);
	return ret;
}

/* Adds the data of a recording to the page's; *damaged: places in its files. */
static int view_recording(const struct view_opts *o, const struct strlist *paths, struct buf *page,
			  uint64_t *damaged, const struct log *log)
{
	static const struct view_answer answers[] = { { "latency", latency_json }, { "flame", flame_json } };
	uint64_t met = 0;
	struct reading reading = { 0 };
	struct view_job job = { .reading = &reading,
				.full = o->full,
				.answers = answers,
				.n_answers = ARRAY_SIZE(answers),
				.damaged = &met };
	struct hyptrace *files = NULL;
	struct mark_desc *desc = NULL;
	struct stat_run *stat = NULL;
	struct finding_job *why = NULL;
	struct view_reader *reader = NULL;
	struct buf tables = { 0 }, findings = { 0 };
	const struct inputs *in;
	char *names = NULL;
	int ret = desc_read(o->desc, &desc, log)
			  ?: command_open(&files, paths, o->diff ? COMMAND_TICKS_ONLY : 0, &o->f.times, log);

	if (ret)
		goto out;
	in = handle_inputs(files);
	ret = strcmp(o->output, "-") ? output_check(o->output, in, log) : 0;
	names = picture_title(in, "what ran where, and when?");
	job.title = o->title && !o->diff ? o->title : names;
	ret = ret ?: names ? reading_open(&reading, in, desc, log) : -ENOMEM;
	ret = ret ?: stat_join(&stat, &reading) ?: findings_join(&why, &reading) ?: view_join(&reader, &job);
	ret = ret ?: reading_run(&reading);
	merge_damage_join(&met, reading_damaged(&reading));
	ret = ret ?: stat_json(stat, &tables) ?: why_json(in, paths, &o->f.times, why, &findings);
	job.tables = buf_str(&tables);
	job.findings = buf_str(&findings);
	ret = ret ?: job.tables && job.findings ? view_data(reader, page) : -ENOMEM;
	*damaged += met;
out:
	view_leave(reader);
	findings_close(why);
	stat_leave(stat);
	reading_close(&reading);
	hyptrace_close(files);
	mark_desc_free(desc);
	buf_release(&tables);
	buf_release(&findings);
	free(names);
	return ret;
}

/* Two recordings: the answer of diff, then each one's data. */
static int view_comparison(const struct view_opts *o, const struct buf sides[2], struct buf *page,
			   uint64_t *damaged, const struct log *log)
{
	struct buf text = { 0 };
	struct json j = { .out = &text, .compact = true };
	int ret;

	json_object(&j);
	json_key_str(&j, "title", o->title ?: "What differs from recording A to recording B?");
	json_key(&j, "diff");
	ret = diff_json(sides, &o->f.times, &text, damaged, log);
	j.keyed = false;
	json_object_end(&j);
	ret = ret ?: buf_status(&text) ?: view_pack(&text, page);
	for (size_t i = 0; i < 2 && !ret; i++) {
		struct strlist paths = { 0 };

		ret = diff_files((const char *)sides[i].data, &paths);
		ret = ret ?: view_recording(o, &paths, page, damaged, log);
		strlist_release(&paths);
	}
	buf_release(&text);
	return ret;
}

static int view_run(void *opts, const struct log *log)
{
	const struct view_opts *o = opts;
	struct buf sides[2] = { { 0 } }, page = { 0 };
	uint64_t damaged = 0;
	struct outfile out;
	int ret = o->diff ? diff_sides(&o->f.files, sides, log)
				    ?: view_comparison(o, sides, &page, &damaged, log)
			  : view_recording(o, &o->f.files, &page, &damaged, log);

	if (!ret && !strcmp(o->output, "-"))
		ret = stdout_written(view_write(&page, STDOUT_FILENO), log);
	else if (!ret)
		ret = outfile_open(&out, o->output, true, log)
			      ?: outfile_close(&out, view_write(&page, out.fd));
	if (!ret && o->open) {
		const char *const argv[] = { "xdg-open", o->output, NULL };
		struct buf text = { 0 };

		if (program_output(argv, &text, 1 << 16, 10000))
			ret = log_fail(log, -EIO, "xdg-open did not open '%s': open it in a browser",
				       o->output);
		buf_release(&text);
	}
	buf_release(&page);
	buf_release(&sides[0]);
	buf_release(&sides[1]);
	return log_damage(log, damaged) ?: ret;
}

int cmd_view(int argc, char **argv)
{
	struct view_opts o = { .output = "trace.html" };

	return command_read(&view_table, argc, argv, &o, NULL, view_run);
}
