// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace sync: computes the offsets of guests' clocks from recordings, with a bound on each, prints them
 * and writes them into the files. */
#include <math.h>

#include "base/outfile.h"
#include "base/svg.h"
#include "cmd.h"
#include "file/dat/options.h"
#include "sync/align.h"

struct sync_job {
	struct files_opts f;
	bool write, check;
	const char *plot;
	const struct inputs *in;
	struct offsets found;
	const struct log *log;
};

/* Guest time in the middle of the capture. */
static uint64_t guest_middle(const struct offsets_guest *g)
{
	return g->events.first + (g->events.last - g->events.first) / 2;
}

static bool in_ticks(const struct offsets_guest *g)
{
	return clock_in_ticks(g->file->time.clock);
}

static int add_encoded(struct dat_options *o, uint16_t id, struct buf *b)
{
	int ret = buf_status(b) ?: dat_options_add(o, id, b->data, b->len);

	buf_release(b);
	return ret;
}

/* True: the GUEST option is of a guest that gets a new one. */
static bool has_new_map(const struct sync_job *job, const struct reader_option *o)
{
	struct offset_guest g;
	bool renewed = false;

	if (offset_guest_decode(o->data.data, o->data.len, &g))
		return false;
	for (size_t i = 0; i < job->found.n_guests; i++)
		renewed = renewed || (job->found.guests[i].result.n_points &&
				      job->found.guests[i].file->trace_id == g.trace_id);
	offset_guest_release(&g);
	return renewed;
}

/* All options of the file but those that are written anew. */
static int keep_options(const struct sync_job *job, const struct input *in, struct dat_options *o)
{
	const struct reader_info *info = reader_info(in->reader);
	int ret = 0;

	for (size_t i = 0; i < info->n_options && !ret; i++) {
		const struct reader_option *one = &info->options[i];
		bool renewed = in == job->found.host ? one->id == DAT_GUEST && has_new_map(job, one)
						     : one->id == DAT_TIME_SHIFT || one->id == DAT_TSC2NSEC;

		if (!renewed && !dat_writes_option(one->id))
			ret = dat_options_add(o, one->id, one->data.data, one->data.len);
	}
	return ret;
}

/* Checks that FILE.orig is not there yet, or is this recording's. Logged. */
static int check_original(const struct sync_job *job, const struct input *in)
{
	char *end = realpath(in->path, NULL), *orig = end ? str_printf("%s.orig", end) : NULL;
	char *paths[] = { end, orig };
	struct inputs both = { 0 };
	uint64_t times[2][2], damaged = 0;
	struct stat st;
	int ret = !orig ? -ENOMEM : lstat(orig, &st) ? 0 : S_ISREG(st.st_mode) ? 1 : -EINVAL;

	ret = ret == 1 ? inputs_open(&both, paths, 2, FILETIME_RAW, job->log) : ret;
	for (size_t i = 0; i < both.n && !ret; i++)
		ret = part_extent(&both.v[i], 1, 0, 0, &times[i][0], &times[i][1], &damaged);
	if (ret != -ENOMEM && (ret || (both.n && (both.v[0].trace_id != both.v[1].trace_id ||
						  memcmp(times[0], times[1], sizeof(times[0]))))))
		ret = log_fail(job->log, ret ?: -EEXIST,
			       "'%s' is there, and not of this recording: nothing is written; move it away",
			       orig);
	inputs_release(&both);
	free(orig);
	free(end);
	return ret;
}

/* As NAME.orig: a hard link, so that the file is there all the time; the first one kept stays. */
static int keep_original(const struct outfile *o)
{
	char *orig = str_printf("%s.orig", o->name);
	int ret = orig ? 0 : -ENOMEM;

	if (orig && linkat(o->dir, o->name, o->dir, orig, 0) < 0 && errno != EEXIST)
		ret = -errno;
	free(orig);
	return ret;
}

/* The file with these options in place of those that it has, the writer's own left out. */
static int write_file(const struct sync_job *job, const struct input *in, const struct dat_options *o,
		      const char *what)
{
	const struct dat_source source = { .name = in->path, .reader = in->reader };
	const struct dat_copy copy = { .v = &source, .n = 1, .options = o->v, .n_options = o->n };
	struct outfile out;
	int ret = outfile_open(&out, in->path, false, job->log);

	ret = ret ?: outfile_close(&out, dat_copy(&copy, out.fd, in->path, job->log) ?: keep_original(&out));
	if (!ret)
		log_info(job->log, "%s: %s written, the original is %s.orig", in->path, what, in->path);
	return ret;
}

static int write_guest_file(const struct sync_job *job, const struct offsets_guest *g)
{
	struct dat_options o = { 0 };
	struct filetime host;
	struct buf bytes = { 0 };
	int ret = keep_options(job, g->file, &o);

	offset_shift_encode(&g->file->time.shift, &bytes); /* handle_sync's */
	ret = add_encoded(&o, DAT_TIME_SHIFT, &bytes) ?: ret;
	/* the guest's times, shifted, are the host's: shown in seconds if those are, by the same rate */
	ret = ret ?: filetime_read(&host, job->found.host->reader, 0, NULL);
	if (!ret) {
		if (host.seconds)
			ret = dat_options_add_tsc2nsec(&o, host.mult ? host.mult : 1, host.tsc_shift, 0);
		filetime_release(&host);
	}
	ret = ret ?: write_file(job, g->file, &o, "offsets");
	dat_options_release(&o);
	return ret;
}

/* The guests' vCPU threads go into the host's file. */
static int write_host_file(const struct sync_job *job)
{
	struct dat_options o = { 0 };
	int ret = keep_options(job, job->found.host, &o);

	for (size_t i = 0; i < job->found.n_guests && !ret; i++) {
		const struct offsets_guest *g = &job->found.guests[i];
		const struct sync_result *r = &g->result;
		struct buf bytes = { 0 };
		uint32_t n = 0;

		if (!r->n_points || !g->file->trace_id)
			continue;
		for (size_t k = 0; k < r->n_vcpus; k++)
			n = r->vcpus[k].cpu >= n ? r->vcpus[k].cpu + 1 : n;
		if (sync_guest_option(r, NULL, 0, n, g->name, g->file->trace_id, &bytes))
			bytes.bad = true;
		ret = add_encoded(&o, DAT_GUEST, &bytes);
	}
	ret = ret ?: write_file(job, job->found.host, &o, "vCPU threads");
	dat_options_release(&o);
	return ret;
}

static int write_files(struct sync_job *job)
{
	bool any = false;
	int ret = 0;

	for (size_t i = 0; i < job->in->n && !ret; i++)
		ret = check_original(job, &job->in->v[i]);
	for (size_t i = 0; i < job->found.n_guests && !ret; i++) {
		const struct offsets_guest *g = &job->found.guests[i];

		any |= g->result.n_points > 0;
		if (g->result.n_points)
			ret = write_guest_file(job, g);
		else
			log_warn(job->log, "%s: no offset was found; the file is unchanged", g->file->path);
	}
	return ret ?: any ? write_host_file(job) : 0;
}

static const char *unit_of(const struct offsets_guest *g)
{
	return in_ticks(g) ? "ticks" : "ns";
}

/* The half width there, or at the nearest place that has one. */
static uint64_t middle_bound(const struct offsets_guest *g)
{
	uint64_t bound = sync_bound(&g->result, guest_middle(g));

	return bound == UINT64_MAX ? sync_median_bound(&g->result) : bound;
}

static void print_guest_table(const struct offsets_guest *g, struct answer *a)
{
	const struct sync_result *r = &g->result;
	size_t matched = 0;

	for (size_t i = 0; i < r->n_vcpus; i++)
		matched += r->vcpus[i].pid != 0;
	answer_text(a, "%s\n  %s", ESCAPED(g->name), sync_class_name(r->class));
	if (!r->n_points) {
		answer_text(a, ": no offset found\n");
		return;
	}
	answer_text(a, ", by %s, %zu of %zu vCPUs matched\n", r->method, matched, r->n_vcpus);
	answer_text(a, "  vCPU threads:");
	for (size_t i = 0; i < r->n_vcpus; i++)
		if (r->vcpus[i].pid)
			answer_text(a, " %u=%d", r->vcpus[i].cpu, r->vcpus[i].pid);
		else
			answer_text(a, " %u=?", r->vcpus[i].cpu);
	answer_text(a, "\n  offset %" PRId64 " %s +- %" PRIu64 " at %" PRIu64 ", drift %+.3f ppm",
		    sync_offset(r, guest_middle(g)), unit_of(g), middle_bound(g), guest_middle(g),
		    sync_drift_ppm(r));
	if (r->n_jumps)
		answer_text(a, ", %zu jump%s", r->n_jumps, r->n_jumps == 1 ? "" : "s");
	answer_text(a, "\n  coverage %.3f %%, %" PRIu64 " of %" PRIu64 " events outside\n",
		    sync_coverage(r) * 100, r->outside, r->events);
}

/* The guest's row, whose cells are these; cells has room for those of its vCPUs and offset points. */
static void sync_guest_row(struct answer *a, const struct offsets_guest *g, struct answer_cell *cells)
{
	static const struct answer_column vcpu_columns[] = { { "cpu", NULL, ANSWER_COUNT },
							     { "pid", NULL, ANSWER_SIGNED } },
					  shift_columns[] = { { "outside", NULL, ANSWER_COUNT },
							      { "worst", NULL, ANSWER_COUNT } },
					  point_columns[] = { { "time", NULL, ANSWER_COUNT },
							      { "offset", NULL, ANSWER_SIGNED },
							      { "bound", NULL, ANSWER_COUNT },
							      { "class", NULL, ANSWER_WORD } };
	const struct sync_result *r = &g->result;
	const struct answer_cell shift_cells[] = { CELL_N(g->check.outside), CELL_N(g->check.worst) };
	struct answer_cell *points = cells + r->n_vcpus * 2;
	const struct answer_list vcpus = { vcpu_columns, 2, cells, r->n_vcpus, false },
				 shift = { shift_columns, 2, shift_cells, 1, true },
				 knots = { point_columns, 4, points, r->n_points, false };

	for (size_t i = 0; i < r->n_vcpus; i++) {
		cells[i * 2] = CELL_N(r->vcpus[i].cpu);
		cells[i * 2 + 1] = CELL_NOT_0((uint64_t)r->vcpus[i].pid);
	}
	for (size_t i = 0; i < r->n_points; i++) {
		points[i * 4] = CELL_N(r->points[i].time);
		points[i * 4 + 1] = CELL_N((uint64_t)r->points[i].offset);
		points[i * 4 + 2] = CELL_BOUND(r->points[i].bound);
		points[i * 4 + 3] = CELL_WORD(sync_class_name(r->points[i].class));
	}
	answer_row(a, (struct answer_cell[]){
			      CELL_WORD(g->name), CELL_WORD(r->method), CELL_WORD(sync_class_name(r->class)),
			      CELL_WORD(unit_of(g)), CELL_N(guest_middle(g)),
			      r->n_points ? CELL_N((uint64_t)sync_offset(r, guest_middle(g))) : CELL_NONE,
			      CELL_BOUND(middle_bound(g)),
			      r->n_points ? CELL_SHARE(sync_drift_ppm(r)) : CELL_NONE,
			      r->n_points ? CELL_SHARE(sync_coverage(r)) : CELL_NONE, CELL_N(r->events),
			      CELL_N(r->outside), CELL_LIST(&vcpus),
			      g->has_shift ? CELL_LIST(&shift) : CELL_NONE, CELL_LIST(&knots) });
}

static void sync_host(const struct sync_job *job, struct answer *a)
{
	static const struct answer_column columns[] = { { "windows", NULL, ANSWER_COUNT },
							{ "checked", NULL, ANSWER_COUNT },
							{ "outside", NULL, ANSWER_COUNT },
							{ "worst", NULL, ANSWER_COUNT } };
	const struct sync_host *h = &job->found.windows;

	answer_object(a, "hyp", columns, ARRAY_SIZE(columns),
		      (struct answer_cell[]){ CELL_N(h->n_hyp), CELL_N(h->hyp_checked), CELL_N(h->hyp_stray),
					      CELL_N(h->hyp_worst) });
	answer_text(a, "%s: %zu windows, %zu of them the hypervisor's", ESCAPED(job->found.host->path),
		    h->windows.n, h->n_hyp);
	if (h->lost)
		answer_text(a, ", events lost at %" PRIu64 " places", h->lost);
	answer_text(a, "\n");
	if (h->hyp_checked)
		answer_text(a,
			    "hyp against host: %" PRIu64 " windows checked, deviation up to %" PRIu64
			    " ns, %" PRIu64 " violation%s\n",
			    h->hyp_checked, h->hyp_worst, h->hyp_stray, h->hyp_stray == 1 ? "" : "s");
}

static int sync_answer(const struct sync_job *job, enum answer_form form)
{
	static const struct answer_column columns[] = {
		{ "name", NULL, ANSWER_WORD },
		{ "method", NULL, ANSWER_WORD },
		{ "class", NULL, ANSWER_WORD },
		{ "unit", NULL, ANSWER_WORD },
		{ "time", NULL, ANSWER_COUNT },
		{ "offset", NULL, ANSWER_SIGNED },
		{ "bound", NULL, ANSWER_COUNT },
		{ "drift_ppm", NULL, ANSWER_REAL },
		{ "coverage", NULL, ANSWER_SHARE },
		{ "events", NULL, ANSWER_COUNT },
		{ "outside", NULL, ANSWER_COUNT },
		{ "vcpus", NULL, ANSWER_LIST },
		{ "file_time_shift", NULL, ANSWER_LIST },
		{ "knots", NULL, ANSWER_LIST },
	};
	struct buf text = { 0 };
	struct answer a;

	answer_begin(&a, form, &text);
	a.indented = true;
	sync_host(job, &a);
	answer_table(&a, "guests", NULL, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < job->found.n_guests; i++) {
		const struct offsets_guest *g = &job->found.guests[i];
		struct answer_cell *cells =
			calloc(g->result.n_vcpus * 2 + g->result.n_points * 4 + 1, sizeof(*cells));

		if (cells)
			sync_guest_row(&a, g, cells);
		else
			text.bad = true;
		free(cells);
		print_guest_table(g, &a);
		if (!g->has_shift)
			answer_text(&a, "  the file has no offsets of its own\n");
		else if (!g->check.events)
			answer_text(&a, "  the file's own offsets cannot be checked\n");
		else
			answer_text(&a,
				    "  with the file's own offsets %" PRIu64 " of %" PRIu64
				    " events are outside, by up to %" PRIu64 " %s\n",
				    g->check.outside, g->check.events, g->check.worst, unit_of(g));
	}
	answer_table_end(&a);
	answer_end(&a);
	return print_answer(&text, job->log);
}

/* ---- --plot: the range of the offsets over time ---- */

#define WIDTH  900
#define HEIGHT 360 /* of each guest */
#define LEFT   90
#define TOP    78
#define DOTS   2000 /* of a file's own samples at most */

/* Times and offsets are drawn against those of the guest's middle; a double is too short for the whole. */
struct sync_plot {
	struct svg_plot svg;
	uint64_t t0;
	int64_t base;
};

static double plot_x(const struct sync_plot *p, uint64_t t)
{
	return svg_x(&p->svg, (double)(int64_t)(t - p->t0) / 1e9);
}

static double plot_y(const struct sync_plot *p, int64_t offset)
{
	return svg_y(&p->svg, (double)(offset - p->base) / 1e3);
}

static void plot_widen(struct sync_plot *p, int64_t offset)
{
	double us = (double)(offset - p->base) / 1e3;

	p->svg.y.low = fmin(p->svg.y.low, us);
	p->svg.y.high = fmax(p->svg.y.high, us);
}

/* True if the offset jumps between these guest times. */
static bool cut_between(const struct sync_result *r, uint64_t a, uint64_t b)
{
	for (size_t i = 0; i < r->n_jumps; i++)
		if (r->jumps[i] && r->points[r->jumps[i]].time > a && r->points[r->jumps[i]].time <= b)
			return true;
	return false;
}

/* The range of the offset, the chosen one, and the samples that the file itself has. */
static void draw_offsets(const struct sync_plot *p, const struct offsets_guest *g)
{
	const struct sync_result *r = &g->result;
	const struct sync_band *b = r->bands;

	/* one filled shape from jump to jump: along the upper ends, and back along the lower ones */
	for (size_t i = 0, end; i < r->n_bands; i = end) {
		for (end = i + 1; end < r->n_bands && !cut_between(r, b[end - 1].time, b[end].time); end++)
			;
		buf_addstr(p->svg.out, "<polygon class=\"band\" points=\"");
		for (size_t k = i; k < end; k++)
			buf_printf(p->svg.out, "%.1f,%.1f ", plot_x(p, b[k].time), plot_y(p, b[k].high));
		for (size_t k = end; k-- > i;)
			buf_printf(p->svg.out, "%.1f,%.1f ", plot_x(p, b[k].time), plot_y(p, b[k].low));
		buf_addstr(p->svg.out, "\"/>\n");
	}
	for (size_t i = 0; i < r->n_points; i++) {
		const struct sync_offset_point *k = &r->points[i];

		if (!i || sync_is_jump(r, i))
			buf_printf(p->svg.out, "%s<polyline class=\"line\" points=\"", i ? "\"/>\n" : "");
		buf_printf(p->svg.out, "%.1f,%.1f ", plot_x(p, k->time), plot_y(p, k->offset));
	}
	if (r->n_points)
		buf_addstr(p->svg.out, "\"/>\n");
	for (uint32_t c = 0, dots = 0; g->has_shift && c < g->shift.n_cpus; c++)
		for (uint32_t i = 0; i < g->shift.cpus[c].n && dots < DOTS; i++, dots++) {
			const struct offset_point *k = &g->shift.cpus[c].v[i];

			buf_printf(p->svg.out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"own\"/>\n",
				   plot_x(p, k->time), plot_y(p, k->offset));
		}
}

static void draw_guest(struct svg_plot svg, const struct sync_job *job, const struct offsets_guest *g)
{
	const struct sync_result *r = &g->result;
	struct sync_plot p = { svg, g->events.first, sync_offset(r, guest_middle(g)) };
	uint64_t last = g->events.last;
	char name[96], about[256], question[128], *title;
	double x = LEFT;

	for (size_t i = 0; i < r->n_bands; i++) {
		plot_widen(&p, r->bands[i].low);
		plot_widen(&p, r->bands[i].high);
	}
	for (uint32_t c = 0; g->has_shift && c < g->shift.n_cpus; c++)
		for (uint32_t i = 0; i < g->shift.cpus[c].n; i++) {
			const struct offset_point *k = &g->shift.cpus[c].v[i];

			plot_widen(&p, k->offset);
			p.t0 = k->time < p.t0 ? k->time : p.t0;
			last = k->time > last ? k->time : last;
		}
	p.svg.y.low -= 0.05 * (p.svg.y.high - p.svg.y.low);
	p.svg.y.high += 0.05 * (p.svg.y.high - p.svg.y.low);
	p.svg.x.high = (double)(last - p.t0 + 1) / 1e9;
	p.svg.x.name = in_ticks(g) ? "guest's time from its first event (10^9 ticks)"
				   : "guest's time from its first event (s)";
	p.svg.y.name = name;
	snprintf(name, sizeof(name), "host - guest, against the middle (%s)",
		 in_ticks(g) ? "1000 ticks" : "us");
	snprintf(about, sizeof(about), "%s: %s, %s; %lld %s in the middle, at %.3f s", g->name,
		 sync_class_name(r->class), r->method, (long long)p.base, in_ticks(g) ? "ticks" : "ns",
		 (double)(guest_middle(g) - p.t0) / 1e9);
	snprintf(question, sizeof(question), "by how much is the host's clock ahead of %s's?", g->name);
	title = picture_title(job->in, question);
	svg_title(svg.out, LEFT, svg.top - TOP, 110, title ?: "", about);
	free(title);
	svg_legend(svg.out, &x, svg.top - 12, SVG_BOX, "class=\"band\"", "possible offsets");
	svg_legend(svg.out, &x, svg.top - 12, SVG_LINE, "class=\"line\"", "chosen offset");
	if (g->has_shift)
		svg_legend(svg.out, &x, svg.top - 12, SVG_DOT, "class=\"own\"", "samples in the file");
	svg_axes(&p.svg);
	draw_offsets(&p, g);
}

/* All guests' bands, lines and own samples as an SVG. */
static int plot_svg(const struct sync_job *job, const char *path)
{
	struct buf out = { 0 };
	struct svg_plot frame = { .out = &out,
				  .left = LEFT,
				  .width = WIDTH - LEFT - 40,
				  .height = HEIGHT - TOP - SVG_AXIS_HEIGHT - 10,
				  .y = { .low = -1, .high = 1 } };
	int ret;

	svg_begin(&out, WIDTH, (double)(job->found.n_guests * HEIGHT), "",
		  ".band { fill: #9bc4e2; stroke: #9bc4e2; }\n"
		  ".line { fill: none; stroke: #14507a; stroke-width: 1.5; }\n"
		  ".own { fill: #c0392b; }\n");
	for (size_t i = 0; i < job->found.n_guests; i++) {
		frame.top = TOP + (double)(i * HEIGHT);
		draw_guest(frame, job, &job->found.guests[i]);
	}
	svg_end(&out);
	ret = output_write(path, &out, job->in, job->log);
	buf_release(&out);
	return ret;
}

#define SYNC(field) .off = offsetof(struct sync_job, field)

static const struct opt sync_rows[] = {
	OPT_JSON("for programs", FILES(form)),
	OPT_CSV("the same; each line begins with its table", FILES(form)),
	OPT('p', "plot", "FILE", "draw the offset's range over time as SVG", opts_set_text, SYNC(plot)),
	OPT('w', "write", NULL, "put the offsets into the files; the originals are kept as FILE.orig",
	    opts_set_flag, SYNC(write)),
	OPT('c', "check", NULL,
	    "exit status 1 when events lie where their vCPU could not run, with\n"
	    "the files' own offsets (or with the computed ones if they have none),\n"
	    "or when nothing can be checked",
	    opts_set_flag, SYNC(check)),
	OPT_NO_GUESTS(FILES(times.no_guests)),
	OPT_INPUT(FILES(files)),
	OPT_QUIET(FILES(quiet)),
	OPT_HELP,
};

const struct opts_table sync_table = {
	.command = "sync",
	.usage = "usage: hyptrace sync [--json|--csv] [--plot FILE.svg] [--write] [--check]\n"
		 "                     [HOST.dat [GUEST.dat...]]\n"
		 "\n"
		 "Computes the offset of each guest's clock from when its vCPUs could run, with a\n"
		 "bound, and what the offsets in the files would do to causality.\n"
		 "\n",
	OPT_ROWS(sync_rows),
};

/* False, with a message: events lie where they cannot, or there are none to check. */
static bool sync_passes(const struct sync_job *job)
{
	bool passes = true;

	for (size_t i = 0; i < job->found.n_guests; i++) {
		const struct offsets_guest *g = &job->found.guests[i];
		uint64_t events = g->has_shift ? g->check.events : g->result.events;
		uint64_t outside = g->has_shift ? g->check.outside : g->result.outside;

		if (!events || (!g->has_shift && !g->result.n_points))
			log_err(job->log,
				"%s: nothing can be checked: no event lies between kvm_entry and kvm_exit",
				g->file->path);
		else if (!outside)
			continue;
		else
			log_err(job->log,
				"%s: %" PRIu64 " of %" PRIu64 " events lie where the guest did not run",
				g->file->path, outside, events);
		passes = false;
	}
	return passes;
}

static int sync_run(void *opts, const struct log *log)
{
	struct sync_job *job = opts;
	struct sync_progress progress = { .report = progress_reading, .ctx = log->ctx };
	/* times as recorded: the offsets that the files have are only checked */
	int ret = command_files(&job->f, HYPTRACE_RAW_TIMES | COMMAND_UNLOADED, &job->in, log);

	if (ret)
		return ret;
	job->log = log;
	if (job->in->n < 2)
		return log_fail(
			log, -EINVAL,
			"%s: no guest's file is named with it or lies next to it; run: hyptrace sync %s "
			"GUEST.dat",
			job->f.files.v[0], job->f.files.v[0]);
	ret = handle_sync(job->f.handle, &progress, &job->found);
	progress_end(log->ctx);
	if (!ret && (!job->f.quiet || job->f.form != ANSWER_TEXT) && sync_answer(job, job->f.form))
		return -EIO; /* logged */
	ret = ret || !job->plot ? ret : plot_svg(job, job->plot);
	ret = ret || !job->write ? ret : write_files(job);
	if (ret)
		log_err(log, "cannot synchronise: %s", errno_text(ret));
	if (ret || job->check)
		return ret ?: sync_passes(job) ? 0 : -EBADMSG;
	for (size_t i = 0; i < job->found.n_guests; i++)
		if (job->found.guests[i].result.n_points)
			return 0;
	return log_fail(log, -ENODATA,
			"no offset found: too few guest events between kvm_entry and kvm_exit of %s",
			job->found.host->path);
}

int cmd_sync(int argc, char **argv)
{
	struct sync_job job = { .f.times.no_sync = true };
	int status = command_read(&sync_table, argc, argv, &job, NULL, sync_run);

	offsets_release(&job.found);
	return status;
}
