// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace sync: computes the offsets of guests' clocks from recordings, with a bound on each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sync-priv.h"

struct sync_line {
	bool json, write, check, quiet;
	const char *plot;
};

#define SYNC(field) .off = offsetof(struct sync_line, field)

static const struct opt sync_rows[] = {
	OPT('j', "json", NULL, "for programs", opts_set_flag, SYNC(json)),
	OPT('p', "plot", "FILE", "draw the offset's range over time as SVG", opts_set_text, SYNC(plot)),
	OPT('w', "write", NULL, "put the offsets into the files; the originals are kept as FILE.orig",
	    opts_set_flag, SYNC(write)),
	OPT('c', "check", NULL,
	    "exit status 1 when events lie where their vCPU could not run, with\n"
	    "the files' own offsets (or with the computed ones if they have none)",
	    opts_set_flag, SYNC(check)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, SYNC(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

static const struct opts_table sync_table = {
	.command = "sync",
	.usage = "usage: hyptrace sync [--json] [--plot FILE.svg] [--write] [--check] HOST.dat "
		 "GUEST.dat...\n"
		 "\n"
		 "Computes the offset of each guest's clock from when its vCPUs could run, with a\n"
		 "bound, and what the offsets in the files would do to causality.\n"
		 "\n",
	.rows = sync_rows,
	.n = ARRAY_SIZE(sync_rows),
};

/* ---- files ------------------------------------------------------------------------- */

static void close_trace(struct trace_file *f)
{
	sync_source_release(&f->source);
	reader_close(f->reader);
	if (f->fd >= 0)
		close(f->fd);
}

/* "local [boot] mono": boot */
static void find_clock(struct trace_file *f)
{
	const struct reader_option *o = reader_option(f->reader, DAT_TRACECLOCK);
	char text[512];

	if (!o)
		return;
	snprintf(text, sizeof(text), "%.*s", (int)(o->data.len < 511 ? o->data.len : 511), o->data.data);
	if (strchr(text, '['))
		sscanf(strchr(text, '[') + 1, "%31[^]]", f->clock);
}

static int open_trace(struct trace_file *f, const char *path, const struct log *log)
{
	const struct reader_option *id;
	int ret;

	f->path = path;
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	ret = f->fd < 0 ? -errno : reader_open(&f->reader, f->fd, log);
	if (!ret)
		ret = sync_source_reader(&f->source, f->reader);
	if (ret) {
		log_err(log, "cannot read '%s': %s", path, strerror(-ret));
		return ret;
	}
	id = reader_option(f->reader, DAT_TRACEID);
	if (id && id->data.len >= sizeof(f->id))
		memcpy(&f->id, id->data.data, sizeof(f->id));
	find_clock(f);
	return 0;
}

/* The host's GUEST option of this guest, if it has one. */
static bool guest_option(const struct sync_job *job, const struct guest_file *g, struct offset_guest *out)
{
	const struct reader_info *info = reader_info(job->host.reader);

	for (size_t i = 0; i < info->n_options && g->file.id; i++) {
		const struct reader_option *o = &info->options[i];

		if (o->id != DAT_GUEST || offset_guest_decode(o->data.data, o->data.len, out))
			continue;
		if (out->trace_id == g->file.id)
			return true;
		offset_guest_release(out);
	}
	return false;
}

/* "dir/trace-NAME.dat": NAME */
static char *name_of(const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t len = strlen(base);

	if (len > 4 && !strcmp(base + len - 4, ".dat"))
		len -= 4;
	if (len > 6 && !strncmp(base, "trace-", 6)) {
		base += 6;
		len -= 6;
	}
	return strndup(base, len);
}

static int read_shift(struct guest_file *g, const struct log *log)
{
	const struct reader_option *o = reader_option(g->file.reader, DAT_TIME_SHIFT);
	int ret = o ? offset_shift_decode(o->data.data, o->data.len, &g->shift) : 0;

	if (ret)
		log_warn(log, "%s: its TIME_SHIFT makes no sense", g->file.path);
	g->has_shift = o && !ret;
	return ret == -ENOMEM ? ret : 0;
}

/* With the vCPU threads of the host's GUEST option, as far as it has them. */
static int solve_guest_with(struct sync_job *job, struct guest_file *g, const struct offset_guest *option)
{
	int ret = sync_guest_read(&g->events, &g->file.source);

	if (ret)
		return ret;
	ret = sync_input_make(&g->in, &job->windows, &g->events, option->vcpus, option->n, &g->pids);
	if (ret)
		return ret;
	if (g->events.n_cpus)
		ret = sync_solve(&g->in, &g->result, job->log);
	if (ret)
		return ret;
	ret = read_shift(g, job->log);
	if (ret || !g->has_shift)
		return ret;
	return sync_check(&g->in, &g->result, &g->shift, &g->check);
}

static int solve_guest(struct sync_job *job, struct guest_file *g)
{
	struct offset_guest option = { 0 };
	int ret = -ENOMEM;

	g->name = guest_option(job, g, &option) ? strdup(option.name) : name_of(g->file.path);
	if (strcmp(job->host.clock, g->file.clock))
		log_warn(job->log, "%s is in the clock '%s' and %s in '%s'", job->host.path, job->host.clock,
			 g->file.path, g->file.clock);
	if (g->name)
		ret = solve_guest_with(job, g, &option);
	if (!ret && g->result.map_changed)
		log_warn(job->log, "%s: the vCPU threads given for it are others'", g->file.path);
	offset_guest_release(&option);
	return ret;
}

static void sync_job_release(struct sync_job *job)
{
	for (size_t i = 0; i < job->n_guests; i++) {
		struct guest_file *g = &job->guests[i];

		free(g->name);
		free(g->pids);
		sync_guest_release(&g->events);
		sync_result_release(&g->result);
		offset_shift_release(&g->shift);
		close_trace(&g->file);
	}
	free(job->guests);
	sync_host_release(&job->windows);
	close_trace(&job->host);
}

static int sync_job_read(struct sync_job *job, char **paths, int n)
{
	int ret = open_trace(&job->host, paths[0], job->log);

	if (ret)
		return ret;
	ret = sync_host_read(&job->windows, &job->host.source, job->log);
	if (ret)
		return ret;
	if (!job->windows.windows.n)
		log_warn(job->log, "%s has no kvm_entry and kvm_exit events: record with -e kvm",
			 job->host.path);
	job->guests = calloc((size_t)n, sizeof(*job->guests));
	if (!job->guests)
		return -ENOMEM;
	for (int i = 1; i < n; i++) {
		struct guest_file *g = &job->guests[job->n_guests++];

		g->file.fd = -1;
		g->result.method = "none";
		ret = open_trace(&g->file, paths[i], job->log);
		if (ret)
			return ret;
		ret = solve_guest(job, g);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- the command ----------------------------------------------------------------------- */

static bool any_outside(const struct sync_job *job)
{
	for (size_t i = 0; i < job->n_guests; i++) {
		const struct guest_file *g = &job->guests[i];

		if (g->has_shift ? g->check.outside : g->result.outside)
			return true;
	}
	return false;
}

static int show_json(const struct sync_job *job)
{
	struct buf text = { 0 };
	int ret;

	print_json(job, &text);
	ret = buf_status(&text);
	if (!ret)
		fputs(buf_str(&text), stdout);
	buf_release(&text);
	return ret;
}

static int sync_outputs(struct sync_job *job, const struct sync_line *o)
{
	int ret = o->json ? show_json(job) : 0;

	if (ret)
		return ret;
	if (!o->json && !o->quiet)
		print_table(job, stdout);
	if (fflush(stdout) || ferror(stdout))
		return -EIO;
	ret = o->plot ? plot_svg(job, o->plot) : 0;
	return ret || !o->write ? ret : write_files(job);
}

static int sync_run(const struct sync_line *o, char **paths, int n)
{
	struct console console = { .quiet = o->quiet };
	struct log log = console_as_log(&console);
	struct sync_job job = { .host.fd = -1, .log = &log };
	int ret = sync_job_read(&job, paths, n), status;

	if (!ret)
		ret = sync_outputs(&job, o);
	if (ret)
		log_err(&log, "cannot synchronise: %s", strerror(-ret));
	status = ret || (o->check && any_outside(&job)) ? EXIT_FAILED : EXIT_OK;
	sync_job_release(&job);
	return status;
}

int cmd_sync(int argc, char **argv)
{
	struct sync_line o = { 0 };
	struct opts_error err;
	int ret = opts_parse(&sync_table, &argc, argv, &o, &err);

	if (ret)
		return command_stopped(&sync_table, ret, &err);
	if (argc < 3) {
		command_usage(&sync_table, stderr);
		return EXIT_USAGE;
	}
	return sync_run(&o, argv + 1, argc - 1);
}
