// SPDX-License-Identifier: LGPL-2.1-or-later
/* From a spool to a trace.dat. */
#include "record/finish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat/options.h"
#include "dat/pauses.h"
#include "hyp/events.h"
#include "dat/page.h"
#include "record/repair.h"
#include "record/spool-formats.h"
#include "spool/range.h"
#include "record/tasks.h"
#include "dat/writer.h"
#include "util/outfile.h"

/* Everything a dat_file points to. */
struct job {
	struct spool *spool;
	const struct dat_from_spool_opts *o;
	struct dat_file file;
	struct dat_options options;
	struct buf header_page, header_event, kallsyms, printk, cmdlines;
	struct spool_formats formats;
	struct pids *pids; /* one per buffer */
};

/* ---- pids of hypervisor records ------------------------------------------------- */

struct pids {
	struct tasks **tasks; /* per CPU; NULL: no switches known */
	int *fds;
	unsigned int n_cpus;
	struct page_layout layout;
};

static int fill_pids(void *ctx, unsigned int cpu, void *page, size_t size)
{
	struct pids *p = ctx;
	struct page_reader r;
	struct page_event ev;

	if (cpu >= p->n_cpus || !p->tasks[cpu] || page_reader_init(&r, &p->layout, page, size))
		return 0;
	while (page_next(&r, &ev) == 1) {
		int32_t pid;

		if (ev.len < HYP_HEADER_SIZE)
			continue;
		memcpy(&pid, ev.data + HYP_PID_OFFSET, sizeof(pid));
		if (pid)
			continue;
		pid = tasks_pid(p->tasks[cpu], ev.ts);
		/* the record lies in `page`, which is ours to change */
		if (pid > 0)
			memcpy((uint8_t *)page + (ev.data - (uint8_t *)page) + HYP_PID_OFFSET, &pid,
			       sizeof(pid));
	}
	return tasks_error(p->tasks[cpu]);
}

static void pids_release(struct pids *p)
{
	for (unsigned int i = 0; i < p->n_cpus; i++) {
		tasks_free(p->tasks[i]);
		close(p->fds[i]);
	}
	free(p->tasks);
	free(p->fds);
}

static const struct dat_text *format_named(const struct job *j, const char *system, const char *event)
{
	char name[128];

	snprintf(name, sizeof(name), "name: %s\n", event);
	for (size_t s = 0; s < j->file.n_systems; s++) {
		const struct dat_system *sys = &j->file.systems[s];

		if (strcmp(sys->name, system))
			continue;
		for (size_t i = 0; i < sys->n; i++)
			if (sys->formats[i].len > strlen(name) &&
			    !memcmp(sys->formats[i].data, name, strlen(name)))
				return &sys->formats[i];
	}
	return NULL;
}

/* Sets up the walk along the host's sched_switch records, where there are any. */
static int open_pids(struct job *j, struct pids *p, struct dat_buffer *b)
{
	const char *key = spool_get(j->spool, "sched_buffer");
	const struct dat_text *format = key ? format_named(j, "sched", "sched_switch") : NULL;
	struct tasks_format tf;
	const struct spool_buffer *host;
	uint64_t n;
	int ret = format ? tasks_format_parse(format->data, format->len, &tf) : -ENOENT;

	if (ret || parse_u64(key, &n))
		return ret == -ENOMEM ? ret : 0;
	host = spool_buffer(j->spool, n);
	if (!host || strcmp(host->clock, b->clock))
		return 0;
	p->layout = page_layout_default;
	p->layout.size = b->page_size;
	p->tasks = calloc(b->n_cpus, sizeof(*p->tasks));
	p->fds = calloc(b->n_cpus, sizeof(*p->fds));
	if (!p->tasks || !p->fds)
		return -ENOMEM;
	for (; p->n_cpus < b->n_cpus && p->n_cpus < host->n_cpus; p->n_cpus++) {
		struct spool_range range;
		int fd = spool_pages_open(j->spool, n, p->n_cpus, &range);

		if (fd < 0)
			return fd;
		p->fds[p->n_cpus] = fd;
		ret = tasks_new(&p->tasks[p->n_cpus], fd, range.from, host->page_size, &tf);
		if (ret) {
			close(fd);
			return ret;
		}
	}
	b->fix_page = fill_pids;
	b->fix_ctx = p;
	return 0;
}

/* ---- texts --------------------------------------------------------------------------- */

static int load_text(struct job *j, const char *name, struct buf *out, bool needed)
{
	int ret = spool_get_text(j->spool, name, out);

	if (ret == -ENOENT && !needed)
		return 0;
	if (ret)
		log_err(j->o->log, "%s/texts/%s: %s", spool_dir(j->spool), name, errno_text(ret));
	return ret;
}

static int load_texts(struct job *j)
{
	const struct {
		const char *name;
		struct buf *text;
		struct dat_text *out;
		bool needed;
	} texts[] = {
		{ "header_page", &j->header_page, &j->file.header_page, true },
		{ "header_event", &j->header_event, &j->file.header_event, true },
		{ "kallsyms", &j->kallsyms, &j->file.kallsyms, false },
		{ "printk_formats", &j->printk, &j->file.printk, false },
		{ "saved_cmdlines", &j->cmdlines, &j->file.cmdlines, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int ret = load_text(j, texts[i].name, texts[i].text, texts[i].needed);

		if (ret)
			return ret;
		*texts[i].out = (struct dat_text){ .data = texts[i].text->len ? buf_str(texts[i].text) : "",
						   .len = texts[i].text->len };
	}
	return 0;
}

/* "ftrace" goes to its own place in the file. */
static void place_formats(struct job *j)
{
	const struct spool_formats *f = &j->formats;
	bool ftrace = f->n_systems && !strcmp(f->systems[0].name, "ftrace");

	if (ftrace) {
		j->file.ftrace = f->systems[0].formats;
		j->file.n_ftrace = f->systems[0].n;
	}
	j->file.systems = f->systems + ftrace;
	j->file.n_systems = f->n_systems - ftrace;
}

/* ---- buffers --------------------------------------------------------------------------- */

static int job_add_cpu(struct job *j, size_t buffer, unsigned int cpu, struct dat_buffer *b)
{
	struct dat_cpu *c = &b->cpus[cpu];
	struct buf text = { 0 };
	struct spool_range range;
	char name[48];
	int ret;

	snprintf(name, sizeof(name), "stat.%zu.%u", buffer, cpu);
	ret = load_text(j, name, &text, false);
	c->stat = text.len ? buf_str(&text) : NULL; /* freed with the job */
	if (ret)
		return ret;
	c->fd = spool_pages_open(j->spool, buffer, cpu, &range);
	if (c->fd < 0)
		return c->fd;
	c->offset = range.from;
	c->size = range.to - range.from;
	return 0;
}

static int job_add_buffer(struct job *j, size_t i)
{
	const struct spool_buffer *s = spool_buffer(j->spool, i);
	struct dat_buffer *b = &j->file.buffers[i];
	int ret;

	*b = (struct dat_buffer){ .name = s->name, .clock = s->clock, .page_size = s->page_size };
	b->cpus = calloc(s->n_cpus, sizeof(*b->cpus));
	if (!b->cpus)
		return -ENOMEM;
	j->file.n_buffers++;
	while (b->n_cpus < s->n_cpus) {
		b->cpus[b->n_cpus].fd = -1;
		ret = job_add_cpu(j, i, b->n_cpus++, b);
		if (ret)
			return ret;
	}
	return strncmp(s->kind, "hyp-", 4) ? 0 : open_pids(j, &j->pids[i], b);
}

static int job_add_buffers(struct job *j)
{
	size_t n = spool_n_buffers(j->spool);

	j->file.buffers = calloc(n ? n : 1, sizeof(*j->file.buffers));
	j->pids = calloc(n ? n : 1, sizeof(*j->pids));
	if (!j->file.buffers || !j->pids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int ret = job_add_buffer(j, i);

		if (ret)
			return ret;
	}
	return 0;
}

/* ---- options ------------------------------------------------------------------------------ */

static int add_procmaps_of(struct job *j, const char *pid)
{
	struct buf maps = { 0 }, comm = { 0 };
	char name[64];
	int ret;

	snprintf(name, sizeof(name), "procmaps.%.20s", pid);
	ret = load_text(j, name, &maps, false);
	if (ret)
		goto out;
	snprintf(name, sizeof(name), "proccomm.%.20s", pid);
	ret = load_text(j, name, &comm, false);
	if (ret || !maps.len || !buf_str(&comm))
		goto out;
	comm.data[strcspn((char *)comm.data, "\n")] = 0;
	ret = dat_options_add_procmaps(&j->options, atoi(pid), (char *)comm.data, buf_str(&maps), maps.len);
out:
	buf_release(&maps);
	buf_release(&comm);
	return ret;
}

/* "procmaps" lists the pids whose maps were kept */
static int add_procmaps(struct job *j)
{
	const char *key = spool_get(j->spool, "procmaps");
	char *list = strdup(key ? key : ""), *save = NULL;
	int ret = list ? 0 : -ENOMEM;

	for (char *pid = list ? strtok_r(list, " ", &save) : NULL; pid && !ret;
	     pid = strtok_r(NULL, " ", &save))
		ret = add_procmaps_of(j, pid);
	free(list);
	return ret;
}

/* The text "options": those of a guest's agent, GUEST and TIME_SHIFT. */
static int add_kept_options(struct job *j)
{
	struct buf kept = { 0 };
	int ret = load_text(j, "options", &kept, false);
	struct cursor c = cursor_at(kept.data, kept.len);

	while (!ret && cursor_left(&c)) {
		uint16_t id = cursor_u16(&c);
		uint32_t len = cursor_u32(&c);
		const void *data = cursor_take(&c, len);

		ret = data ? dat_options_add(&j->options, id, data, len) : -EBADMSG;
	}
	buf_release(&kept);
	return ret;
}

/* The text "pauses": the body of the option. */
static int job_add_pauses(struct job *j)
{
	struct buf body = { 0 };
	int ret = load_text(j, "pauses", &body, false);

	if (!ret && body.len)
		ret = dat_options_add(&j->options, DAT_PAUSES, body.data, body.len);
	buf_release(&body);
	return ret;
}

static bool has_option(const struct job *j, uint16_t id)
{
	for (size_t i = 0; i < j->options.n; i++)
		if (j->options.v[i].id == id)
			return true;
	return false;
}

static int add_clock(struct job *j)
{
	const char *clock = spool_get(j->spool, "clock"), *name = spool_get(j->spool, "clock_name");
	int ret = clock ? dat_options_add_clock(&j->options, clock) : 0;

	if (ret)
		return ret;
	if (!name)
		name = clock ? clock : "";
	/* in sec.usec: stock shows ns of clocks it does not know as raw numbers ("realtime":
	 * lib/import/qemu.h) */
	if ((strcmp(name, "boot") && strcmp(name, "realtime")) || has_option(j, DAT_TSC2NSEC))
		return 0;
	return dat_options_add_tsc2nsec(&j->options, 1, 0, 0);
}

static int add_options(struct job *j)
{
	const char *date = spool_get(j->spool, "date_offset_us"), *uname = spool_get(j->spool, "uname");
	struct dat_options *o = &j->options;
	int ret = dat_options_add_traceid(o, spool_get_number(j->spool, "traceid", 0)) ?:
		  add_kept_options(j) ?:
		  add_clock(j) ?:
		  (uname ? dat_options_add_text(o, DAT_UNAME, uname) : 0) ?:
		  dat_options_add_text(o, DAT_VERSION, "hyptrace " HYPTRACE_VERSION) ?:
		  (date ? dat_options_add_date(o, strtoll(date, NULL, 10)) : 0) ?:
		  add_procmaps(j) ?:
		  job_add_pauses(j);

	j->file.options = o->v;
	j->file.n_options = o->n;
	return ret;
}

/* ---- the file ------------------------------------------------------------------------------ */

static void job_free(struct job *j)
{
	for (size_t i = 0; i < j->file.n_buffers; i++) {
		struct dat_buffer *b = &j->file.buffers[i];

		for (unsigned int c = 0; c < b->n_cpus; c++) {
			fd_close(&b->cpus[c].fd);
			free((char *)(uintptr_t)b->cpus[c].stat);
		}
		free(b->cpus);
		pids_release(&j->pids[i]);
	}
	spool_formats_release(&j->formats);
	free(j->file.buffers);
	free(j->pids);
	dat_options_release(&j->options);
	buf_release(&j->header_page);
	buf_release(&j->header_event);
	buf_release(&j->kallsyms);
	buf_release(&j->printk);
	buf_release(&j->cmdlines);
}

static int job_prepare(struct job *j)
{
	const char *compression = spool_get(j->spool, "compression");
	int ret = load_texts(j) ?: spool_formats_load(&j->formats, j->spool, j->o->log);

	if (ret)
		return ret;
	place_formats(j);
	j->file.version = (int)spool_get_number(j->spool, "version", 7);
	j->file.compression = compression ? compression : "zstd";
	j->file.page_size =
		(uint32_t)spool_get_number(j->spool, "page_size", (uint64_t)sysconf(_SC_PAGESIZE));
	j->file.progress = j->o->progress;
	j->file.progress_ctx = j->o->ctx;
	return job_add_buffers(j) ?: add_options(j);
}

static int job_write(struct job *j, const char *output)
{
	struct outfile out;
	int ret = outfile_open(&out, output, false, j->o->log);

	return ret ? ret : outfile_close(&out, dat_write(&j->file, out.fd, j->o->log));
}

int dat_from_spool(struct spool *spool, const struct dat_from_spool_opts *o)
{
	struct job j = { .spool = spool, .o = o };
	char *output = o->output ? strdup(o->output) : spool_output(spool);
	int ret = output ? spool_repair(spool, o->log) ?: job_prepare(&j) : -EBADMSG;

	if (ret)
		log_err(o->log, "'%s' cannot be made into a trace file: %s", spool_dir(spool),
			errno_text(ret));
	else
		ret = job_write(&j, output);
	job_free(&j);
	free(output);
	return ret;
}

/* ---- of a recording that goes on --------------------------------------------------------------- */

struct dat_job {
	struct job job;
	struct dat_from_spool_opts o;
};

int dat_job_open(struct dat_job **out, struct spool *spool, const struct log *log)
{
	struct dat_job *j = calloc(1, sizeof(*j));
	int ret;

	if (!j)
		return -ENOMEM;
	j->o.log = log;
	j->job.spool = spool;
	j->job.o = &j->o;
	ret = job_prepare(&j->job);
	if (ret)
		dat_job_close(j);
	else
		*out = j;
	return ret;
}

struct dat_file *dat_job_file(struct dat_job *j)
{
	return &j->job.file;
}

int dat_job_add_option(struct dat_job *j, uint16_t id, const void *data, size_t len)
{
	struct job *job = &j->job;
	int ret = dat_options_add(&job->options, id, data, len);

	job->file.options = job->options.v;
	job->file.n_options = job->options.n;
	return ret;
}

void dat_job_close(struct dat_job *j)
{
	if (!j)
		return;
	job_free(&j->job);
	free(j);
}
