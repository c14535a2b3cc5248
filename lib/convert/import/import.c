// SPDX-License-Identifier: LGPL-2.1-or-later
/* Joins a capture of a hypervisor's buffer, made without hyptrace, with a host's file, through a spool. */
#include "convert/import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/drain/spool-to-dat.h"
#include "file/dat/format.h"
#include "convert/import/import-priv.h"
#include "record/drain/system-metadata.h"
#include "record/drain/repair.h"
#include "file/dat/reader.h"
#include "base/outfile.h"
#include "base/files.h"

#define CPUS_MAX 4096
#define CLOCK	 "boot" /* of every hypervisor's buffer */

struct job {
	const struct import_opts *o;
	struct reader *reader;
	const struct reader_info *info;
	int fd;
	struct spool *spool;
	struct page_layout layout; /* of raw pages */
	unsigned int n_cpus;	   /* of the hypervisor's buffer */
};

/* ---- the host's file ------------------------------------------------------------------ */

/* Options that the writer, or dat_from_spool() by the session's keys, makes itself. */
static bool is_own(uint16_t id)
{
	return dat_writes_option(id) || id > DAT_BUFFER_TEXT || id == DAT_TRACEID || id == DAT_VERSION;
}

static int take_keys(struct job *j)
{
	const struct reader_option *id = reader_option(j->reader, DAT_TRACEID);
	const struct reader_option *o = reader_option(j->reader, DAT_TRACECLOCK);
	const char *open, *close;
	char clock[64];
	uint64_t traceid = 0;

	if (id && id->data.len >= sizeof(traceid))
		memcpy(&traceid, id->data.data, sizeof(traceid));
	/* TRACECLOCK: "local global [boot]", the one in brackets; else the first buffer's */
	snprintf(clock, sizeof(clock), "%s", j->info->n_buffers ? j->info->buffers[0].clock : "");
	open = o ? memchr(o->data.data, '[', o->data.len) : NULL;
	close = open ? memchr(open, ']', o->data.len - (size_t)(open - o->data.data)) : NULL;
	if (close)
		snprintf(clock, sizeof(clock), "%.*s", (int)(close - open - 1), open + 1);
	if (strcmp(clock, CLOCK))
		log_warn(j->o->log,
			 "the clock of '%s' is %s, the hypervisor's is " CLOCK
			 ": their times line up only where the two are the same",
			 j->o->input, *clock ? clock : "not known");
	return spool_set_number(j->spool, "version", (uint64_t)j->info->version) ?:
		       spool_set_number(j->spool, "page_size", j->info->page_size) ?:
		       spool_set(j->spool, "compression", j->info->compression) ?:
		       (*clock ? spool_set(j->spool, "clock_name", clock) : 0) ?:
		       spool_set_number(j->spool, "traceid", traceid);
}

static int copy_cpu(struct job *j, size_t buffer, size_t i)
{
	uint32_t size = j->info->buffers[buffer].page_size;
	int fd = spool_pages_fd(j->spool, buffer, j->info->buffers[buffer].cpus[i].cpu);
	struct reader_pages *pages;
	const uint8_t *page;
	int ret;

	if (fd < 0)
		return fd;
	ret = reader_pages_open(&pages, j->reader, buffer, i);
	if (ret)
		goto out;
	while ((ret = reader_pages_next(pages, &page)) == 1) {
		ret = write_all(fd, page, size);
		if (ret)
			break;
	}
	reader_pages_close(pages);
out:
	close(fd);
	return ret;
}

/* CPUSTATs stand in the order of buffers and CPUs. */
static int copy_stat(struct job *j, size_t buffer, unsigned int cpu, size_t number)
{
	char name[48];

	snprintf(name, sizeof(name), "stat.%zu.%u", buffer, cpu);
	for (size_t i = 0; i < j->info->n_options; i++) {
		const struct dat_text *t = &j->info->options[i].data;

		if (j->info->options[i].id == DAT_CPUSTAT && !number--)
			return spool_put_text(j->spool, name, t->data, strnlen(t->data, t->len));
	}
	return 0;
}

static int copy_buffer(struct job *j, size_t i, size_t *stat)
{
	const struct reader_buffer *in = &j->info->buffers[i];
	struct spool_buffer b = { .name = in->name,
				  .clock = *in->clock ? in->clock : "local",
				  .path = in->name,
				  .kind = "host",
				  .page_size = in->page_size };
	const struct reader_option *o = reader_option(j->reader, DAT_CPUCOUNT);
	uint32_t count = 0;
	int ret;

	if (o && o->data.len >= sizeof(count))
		memcpy(&count, o->data.data, sizeof(count));

	if (!strcmp(in->name, "hyp"))
		return log_fail(j->o->log, -EEXIST, "'%s' has a buffer of the hypervisor's already",
				j->o->input);
	for (size_t k = 0; k < in->n_cpus; k++)
		b.n_cpus = in->cpus[k].cpu >= b.n_cpus ? in->cpus[k].cpu + 1 : b.n_cpus;
	/* CPUs without data need not be listed */
	b.n_cpus = count > b.n_cpus ? count : b.n_cpus;
	if (b.n_cpus > CPUS_MAX)
		return -EBADMSG;
	j->n_cpus = b.n_cpus > j->n_cpus ? b.n_cpus : j->n_cpus;
	ret = spool_add_buffer(j->spool, &b);
	for (size_t k = 0; k < in->n_cpus && !ret; k++)
		ret = copy_cpu(j, i, k) ?: copy_stat(j, i, in->cpus[k].cpu, (*stat)++);
	return ret;
}

/* No file of the host, as after a panic. Its buffer is there, and empty. */
static int take_no_host(struct job *j)
{
	struct spool_buffer top = { .name = "",
				    .clock = CLOCK,
				    .path = "",
				    .kind = "host",
				    .page_size = IMPORT_PAGE,
				    .n_cpus = j->n_cpus };
	int ret = spool_add_buffer(j->spool, &top) ?:
			  import_begin(j->spool) ?:
			  spool_put_text(j->spool, "formats", "", 0) ?:
			  spool_set(j->spool, "clock", CLOCK);

	for (unsigned int cpu = 0; cpu < j->n_cpus && !ret; cpu++) {
		int fd = spool_pages_fd(j->spool, 0, cpu);

		ret = fd < 0 ? fd : 0;
		fd_close(&fd);
	}
	return ret;
}

/* ---- the hypervisor's ------------------------------------------------------------------------ */

/* Calls line for each line that may be of a trace, with its newline. */
static int each_text_line(const struct job *j, int (*line)(void *ctx, const char *text, size_t len),
			  void *ctx)
{
	FILE *f = fopen(j->o->text, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	int ret;

	if (!f)
		return log_fail_errno(j->o->log, -errno, "cannot take in '%s'", j->o->text);
	while (errno = 0, (n = getline(&text, &room, f)) >= 0) {
		size_t len = (size_t)n;
		const char *p = import_trace_line(text, &len);

		ret = p ? line(ctx, p, len) : 0;
		if (ret)
			break;
	}
	ret = n < 0 ? -errno : ret;
	free(text);
	fclose(f);
	return ret ? log_fail_errno(j->o->log, ret, "cannot take in '%s'", j->o->text) : 0;
}

/* ctx: the number of CPUs, one more than the highest of the lines, which begin with "[003]". */
static int count_line(void *ctx, const char *text, size_t len)
{
	unsigned int *n_cpus = ctx, cpu = 0;
	size_t i = 1;

	if (!len || *text != '[')
		return 0;
	for (; i < len && i <= 5 && text[i] >= '0' && text[i] <= '9'; i++)
		cpu = cpu * 10 + (unsigned int)(text[i] - '0');
	if (i > 1 && i < len && text[i] == ']' && cpu < CPUS_MAX && cpu >= *n_cpus)
		*n_cpus = cpu + 1;
	return 0;
}

static int feed_text_line(void *ctx, const char *text, size_t len)
{
	return remote_feed_text(ctx, text, len) ?: remote_feed_text(ctx, "\n", 1);
}

static int feed_raw_cpu(const struct job *j, struct remote_feed *feed, unsigned int cpu, uint32_t size)
{
	char *path = str_printf("%s/cpu%u", j->o->raw, cpu);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page = malloc(size);
	int ret = !path || !page ? -ENOMEM : fd < 0 && errno != ENOENT ? -errno : 0;
	ssize_t n = 0;

	while (!ret && fd >= 0 && (n = read_all(fd, page, size)) == (ssize_t)size)
		ret = remote_feed_page(feed, cpu, page, size);
	if (!ret && n > 0)
		log_warn(j->o->log, "'%s': its last page is cut off", path);
	ret = ret ? ret : n < 0 ? (int)n : 0;
	if (ret)
		log_err(j->o->log, "cannot take in '%s': %s", path ? path : "", errno_text(ret));
	fd_close(&fd);
	free(page);
	free(path);
	return ret;
}

static int count_raw(struct job *j)
{
	bool any = false;

	for (unsigned int cpu = 0; cpu < CPUS_MAX; cpu++) {
		char *path = str_printf("%s/cpu%u", j->o->raw, cpu);

		if (!path)
			return -ENOMEM;
		if (file_there(AT_FDCWD, path)) {
			any = true;
			j->n_cpus = cpu >= j->n_cpus ? cpu + 1 : j->n_cpus;
		}
		free(path);
	}
	if (any)
		return import_layout(j->o->events, &j->layout, j->o->log);
	return log_fail(j->o->log, -ENOENT, "no files cpu0, cpu1 ... in '%s'", j->o->raw);
}

static int import_count_cpus(struct job *j)
{
	unsigned int n = 0;
	int ret;

	if (j->o->raw)
		return count_raw(j);
	ret = each_text_line(j, count_line, &n);
	if (ret)
		return ret;
	if (!n)
		return log_fail(
			j->o->log, -EBADMSG,
			"'%s' has no line of a hypervisor's trace (\"[003]   80.929138: hyp_enter ...\")",
			j->o->text);
	j->n_cpus = n > j->n_cpus ? n : j->n_cpus;
	return 0;
}

static int feed_hyp(struct job *j, struct remote *remote, const char *path, struct remote_fed *out)
{
	struct spool_buffer b = { .name = "hyp",
				  .clock = CLOCK,
				  .path = path,
				  .kind = remote->source.ops->kind,
				  .page_size = remote->source.page_size,
				  .n_cpus = j->n_cpus };
	struct remote_feed *feed;
	int ret = spool_add_buffer(j->spool, &b);

	if (ret)
		return ret;
	/* the host of a text is unknown; raw pages need no repair */
	ret = j->o->text ? spool_want_repair(j->spool) : 0;
	ret = ret ?: remote_feed_open(&feed, remote, j->spool, spool_n_buffers(j->spool) - 1);
	if (ret)
		return ret;
	if (j->o->text)
		ret = each_text_line(j, feed_text_line, feed);
	for (unsigned int cpu = 0; j->o->raw && cpu < j->n_cpus && !ret; cpu++)
		ret = feed_raw_cpu(j, feed, cpu, b.page_size);
	return remote_feed_close(feed, ret, out);
}

static int take_hyp(struct job *j, struct remote_fed *out)
{
	static const char path[] = "remotes/hypervisor";
	struct remote *remote;
	unsigned int max_id = 0;
	int ret;

	for (size_t i = 0; j->info && i < j->info->n_formats; i++) {
		const struct dat_text *t = &j->info->formats[i].text;
		struct event_format f;

		ret = event_format_parse(t->data, t->len, &f);
		if (ret == -ENOMEM)
			return ret;
		if (ret)
			continue;
		max_id = f.id > max_id ? f.id : max_id;
		event_format_release(&f);
	}
	ret = import_events(j->spool, j->o->events, j->o->raw, max_id + 1, j->o->log);
	if (ret)
		return ret;
	ret = remote_import(&remote, path, j->o->raw ? &j->layout : NULL, j->n_cpus, j->spool, j->o->log);
	if (ret)
		return log_fail_errno(j->o->log, ret, "the hypervisor's events cannot be used");
	ret = feed_hyp(j, remote, path, out);
	remote_free(remote);
	return ret;
}

/* ---- both -------------------------------------------------------------------------------------- */

static int import_open(struct job *j)
{
	struct stat in, out;
	int ret;

	j->fd = open(j->o->input, O_RDONLY | O_CLOEXEC);
	if (j->fd < 0 || fstat(j->fd, &in))
		return log_fail_errno(j->o->log, -errno, "cannot open '%s'", j->o->input);
	if (!stat(j->o->output, &out) && same_file(&in, &out))
		return log_fail(j->o->log, -EINVAL, "'%s' is the input: name another file with -o",
				j->o->output);
	ret = reader_open(&j->reader, j->fd, j->o->log);
	if (!ret)
		j->info = reader_info(j->reader);
	else
		log_err(j->o->log, "cannot read '%s': %s", j->o->input, errno_text(ret));
	return ret;
}

int import(const struct import_opts *o, struct remote_fed *out)
{
	struct job j = { .o = o, .fd = -1 };
	struct dat_from_spool_opts fo = { .output = o->output, .log = o->log };
	int ret = o->input ? import_open(&j) : 0;
	size_t stat = 0;
	char *dir;

	*out = (struct remote_fed){ 0 };
	if (ret)
		goto out;
	dir = str_printf("%s.spool", o->output);
	ret = dir ? outfile_check(o->output, o->log) ?: spool_create(&j.spool, dir, o->log) : -ENOMEM;
	free(dir);
	ret = ret ?: import_count_cpus(&j);
	if (ret)
		goto out;
	ret = o->input ? spool_keep_info(j.spool, j.info, is_own) ?: take_keys(&j) : take_no_host(&j);
	for (size_t i = 0; o->input && i < j.info->n_buffers && !ret; i++)
		ret = copy_buffer(&j, i, &stat);
	if (ret && ret != -EEXIST)
		log_err(o->log, "cannot take in '%s': %s", o->input ?: o->output, errno_text(ret));
	if (ret)
		goto out;
	ret = take_hyp(&j, out);
	if (ret)
		goto out;
	ret = spool_repair(j.spool, o->log) ?: dat_from_spool(j.spool, &fo);
out:
	if (j.spool)
		spool_remove(j.spool);
	reader_close(j.reader);
	fd_close(&j.fd);
	return ret;
}
