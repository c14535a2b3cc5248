// SPDX-License-Identifier: LGPL-2.1-or-later
/* Joins a capture of a hypervisor's buffer, made without hyptrace, with a host's file, through a spool; its
 * event formats are given, or those of mainline. */
#include <sys/random.h>

#include "base/outfile.h"
#include "convert/import/pftrace-priv.h"
#include "file/dat/options.h"
#include "record/drain/spool-to-dat.h"

#define TEXT_MAX (1u << 20)

/*
 * Only names and print formats matter in text, and the fields that they name:
 * mainline 7.1 (include/asm/kvm_hypevents.h), and Android's of 2023 to 2026.
 */
static const struct {
	const char *name, *fields, *print_fmt;
} known[] = {
	{ "hyp_enter", "u8 reason;pid_t vcpu",
	  "\"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu" },
	{ "hyp_exit", "u8 reason;pid_t vcpu",
	  "\"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu" },
	{ "host_hcall", "unsigned int id;u8 invalid", "\"id=%u invalid=%u\", REC->id, REC->invalid" },
	{ "host_smc", "u64 id;u8 forwarded", "\"id=%llu forwarded=%u\", REC->id, REC->forwarded" },
	{ "host_mem_abort", "u64 esr;u64 addr", "\"esr=0x%llx addr=0x%llx\", REC->esr, REC->addr" },
	{ "psci_mem_protect", "u64 count;u64 was", "\"count=%llu was=%llu\", REC->count, REC->was" },
	{ "vcpu_illegal_trap", "u64 esr", "\"esr_el2=%llx\", REC->esr" },
	{ "iommu_idmap", "u64 from;u64 to;int prot",
	  "\"from=0x%llx to=0x%llx prot=0x%x\", REC->from, REC->to, REC->prot" },
	{ "iommu_idmap_complete", "u8 map", "\"map=%d\", REC->map" },
	{ "power_lock", "pid_t vm;u64 device;u8 lock;int ret",
	  "\"vm=%d device=0x%llx lock=%d ret=%d\", REC->vm, REC->device, REC->lock, REC->ret" },
	{ "selftest", "u64 id", "\"id=%llu\", REC->id" },
};

const char *import_known_print(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, name))
			return known[i].print_fmt;
	return NULL;
}

static void add_known(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct buf f = { 0 };
		unsigned int at = 2;

		buf_printf(&f,
			   "name: %s\nID: %zu\nformat:\n"
			   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n",
			   known[i].name, i);
		for (const char *field = known[i].fields; *field;) {
			size_t len = strcspn(field, ";");
			unsigned int size = !strncmp(field, "u8 ", 3)	 ? 1
					    : !strncmp(field, "u64 ", 4) ? 8
									 : 4;

			buf_printf(&f, "\tfield:%.*s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", (int)len, field,
				   at, size, field[0] != 'u');
			at += size;
			field += len + (field[len] == ';');
		}
		buf_printf(&f, "\nprint fmt: %s\n", known[i].print_fmt);
		remote_events_add(out, &f);
		buf_release(&f);
	}
}

static int add_dir(struct buf *out, const char *path, size_t *n, const struct log *log)
{
	struct strlist names = { 0 };
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret = fd < 0 ? -errno : read_dir_at(fd, ".", &names);

	*n = 0;
	for (size_t i = 0; i < names.n && !ret; i++) {
		char *file = str_printf("%s/format", names.v[i]);
		struct buf format = { 0 };

		ret = file ? read_file_at(fd, file, TEXT_MAX, &format) : -ENOMEM;
		if (!ret) {
			remote_events_add(out, &format);
			++*n;
		} else if (ret == -ENOENT || ret == -ENOTDIR) {
			ret = 0; /* header_page, enable ... */
		}
		buf_release(&format);
		free(file);
	}
	strlist_release(&names);
	fd_close(&fd);
	return ret ? log_fail_errno(log, ret, "cannot read the events in '%s'", path) : 0;
}

/* events/hypervisor or events/hyp below it, when it is all of events/ */
static char *events_dir(const char *path, const char **system)
{
	static const char *const names[] = { "hypervisor", "hyp" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *below = str_printf("%s/%s", path, names[i]);

		*system = names[i];
		if (!below || (!stat(below, &st) && S_ISDIR(st.st_mode)))
			return below;
		free(below);
	}
	*system = names[0];
	return strdup(path);
}

/* The events into the spool, with ids from first_id on. events: import_opts.events. */
static int import_events(struct spool *spool, const char *events, bool raw, unsigned int first_id,
			 const struct log *log)
{
	const char *system = "hypervisor";
	struct buf formats = { 0 };
	int ret = 0;

	if (events) {
		char *dir = events_dir(events, &system);
		size_t n;

		ret = dir ? add_dir(&formats, dir, &n, log) : -ENOMEM;
		if (!ret && !n)
			ret = log_fail(log, -ENOENT, "'%s' holds no event formats (NAME/format)", dir);
		free(dir);
	} else {
		add_known(&formats);
	}
	ret = ret ?: remote_events_save(spool, first_id, system, raw, &formats);
	buf_release(&formats);
	return ret;
}

/* Every 64-bit kernel's description of its pages of IMPORT_PAGE bytes, and of records. */
static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: char overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n"
				   "\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

int import_begin(struct spool *spool)
{
	uint64_t traceid = 0;

	while (!traceid)
		if (getrandom(&traceid, sizeof(traceid), 0) < 0)
			return -errno;
	return spool_set_number(spool, "traceid", traceid) ?:
		       spool_set_number(spool, "page_size", IMPORT_PAGE) ?:
		       spool_put_text(spool, "header_page", header_page, strlen(header_page)) ?:
		       spool_put_text(spool, "header_event", header_event, strlen(header_event));
}

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

/* Options that the writer, or dat_from_spool() by the session's keys, makes itself, and unknown ones of
 * others. */
static bool is_own(uint16_t id)
{
	return dat_writes_option(id) || (id > DAT_BUFFER_TEXT && id < DAT_PAUSES) || id == DAT_TRACEID ||
	       id == DAT_VERSION;
}

static int take_keys(struct job *j)
{
	const struct reader_option *id = reader_option(j->reader, DAT_TRACEID);
	const struct reader_option *o = reader_option(j->reader, DAT_TRACECLOCK);
	const char *chosen;
	char clock[64];
	size_t len;
	uint64_t traceid = 0;

	if (id && id->data.len >= sizeof(traceid))
		memcpy(&traceid, id->data.data, sizeof(traceid));
	/* the one that TRACECLOCK has; else the first buffer's */
	snprintf(clock, sizeof(clock), "%s", j->info->n_buffers ? j->info->buffers[0].clock : "");
	chosen = o ? chosen_word(o->data.data, o->data.len, &len) : NULL;
	if (chosen)
		snprintf(clock, sizeof(clock), "%.*s", (int)len, chosen);
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
	if (!ret) {
		while (!ret && (ret = reader_pages_next(pages, &page)) == 1)
			ret = write_all(fd, page, size);
		reader_pages_close(pages);
	}
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

/* Calls line for each line that may be of a trace, with its newline. */
static int each_text_line(const struct job *j, int (*line)(void *ctx, const char *text, size_t len),
			  void *ctx)
{
	FILE *f = fopen(j->o->text, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t n = 0;
	int ret = 0;

	if (!f)
		return log_fail_errno(j->o->log, -errno, "cannot take in '%s'", j->o->text);
	while (!ret && (errno = 0, n = getline(&text, &room, f)) >= 0) {
		size_t len = (size_t)n;
		const char *p = import_trace_line(text, &len);

		ret = p ? line(ctx, p, len) : 0;
	}
	ret = n < 0 ? -errno : ret;
	free(text);
	fclose(f);
	return ret ? log_fail_errno(j->o->log, ret, "cannot take in '%s'", j->o->text) : 0;
}

/* ctx: the number of CPUs, one more than the highest of the lines, which begin with "[003]". */
static int count_line(void *ctx, const char *text, size_t len)
{
	struct cursor c = cursor_at(text, len);
	unsigned int *n_cpus = ctx;
	uint64_t cpu = 0;
	size_t digits = cursor_accept(&c, '[') ? cursor_decimal(&c, &cpu) : 0;

	if (digits && digits <= 5 && cursor_accept(&c, ']') && cpu < CPUS_MAX && cpu >= *n_cpus)
		*n_cpus = (unsigned int)cpu + 1;
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
	const char *events = j->o->events;
	int ret = -ENOENT;

	for (unsigned int cpu = 0; cpu < CPUS_MAX; cpu++) {
		char *path = str_printf("%s/cpu%u", j->o->raw, cpu);

		if (!path)
			return -ENOMEM;
		if (file_there(AT_FDCWD, path))
			j->n_cpus = cpu + 1;
		free(path);
	}
	if (!j->n_cpus)
		return log_fail(j->o->log, -ENOENT, "no files cpu0, cpu1 ... in '%s'", j->o->raw);
	/* the layout of the pages: header_page in events/, and in a copy beside the events or above them */
	for (int above = 0; above < 2 && ret == -ENOENT; above++) {
		char *path = str_printf("%s%s/header_page", events, above ? "/.." : "");

		ret = path ? page_layout_read(AT_FDCWD, path, &j->layout) : -ENOMEM;
		free(path);
	}
	return ret ? log_fail_errno(j->o->log, ret, "cannot use header_page in or above '%s'", events) : 0;
}

static int import_count_cpus(struct job *j)
{
	int ret = j->o->raw ? count_raw(j) : each_text_line(j, count_line, &j->n_cpus);

	if (ret || j->n_cpus)
		return ret;
	return log_fail(j->o->log, -EBADMSG,
			"'%s' has no line of a hypervisor's trace (\"[003]   80.929138: hyp_enter ...\")",
			j->o->text);
}

static int take_hyp(struct job *j, struct drain_totals *out)
{
	static const char path[] = "remotes/hypervisor";
	struct spool_buffer b = { .name = "hyp", .clock = CLOCK, .path = path, .n_cpus = j->n_cpus };
	struct remote_feed *feed;
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
	b.kind = remote->source.ops->kind;
	b.page_size = remote->source.page_size;
	ret = spool_add_buffer(j->spool, &b);
	/* the host of a text is unknown; raw pages need no repair */
	if (!ret && j->o->text)
		ret = spool_want_repair(j->spool);
	ret = ret ?: remote_feed_open(&feed, remote, j->spool, spool_n_buffers(j->spool) - 1);
	if (ret)
		goto out;
	if (j->o->text)
		ret = each_text_line(j, feed_text_line, feed);
	for (unsigned int cpu = 0; j->o->raw && cpu < j->n_cpus && !ret; cpu++)
		ret = feed_raw_cpu(j, feed, cpu, b.page_size);
	ret = remote_feed_close(feed, ret, out);
out:
	remote_free(remote);
	return ret;
}

static int import_open(struct job *j)
{
	int ret;

	j->fd = open(j->o->input, O_RDONLY | O_CLOEXEC);
	if (j->fd < 0)
		return log_fail_errno(j->o->log, -errno, "cannot open '%s'", j->o->input);
	ret = reader_open(&j->reader, j->fd, j->o->log);
	if (!ret)
		j->info = reader_info(j->reader);
	else
		log_err(j->o->log, "cannot read '%s': %s", j->o->input, errno_text(ret));
	return ret;
}

int import(const struct import_opts *o, struct drain_totals *out)
{
	struct job j = { .o = o, .fd = -1 };
	struct dat_from_spool_opts fo = { .output = o->output, .log = o->log };
	int ret = o->input ? import_open(&j) : 0;
	char *dir = str_printf("%s.spool", o->output);
	size_t stat = 0;

	*out = (struct drain_totals){ 0 };
	ret = ret ?: dir ? outfile_check(o->output, o->log) : -ENOMEM;
	ret = ret ?: spool_create(&j.spool, dir, o->log) ?: import_count_cpus(&j);
	free(dir);
	if (ret)
		goto out;
	ret = o->input ? spool_keep_info(j.spool, j.info, is_own) ?: take_keys(&j) : take_no_host(&j);
	for (size_t i = 0; o->input && i < j.info->n_buffers && !ret; i++)
		ret = copy_buffer(&j, i, &stat);
	if (ret && ret != -EEXIST)
		log_err(o->log, "cannot take in '%s': %s", o->input ?: o->output, errno_text(ret));
	ret = ret ?: take_hyp(&j, out) ?: spool_repair(j.spool, o->log) ?: dat_from_spool(j.spool, &fo);
out:
	if (j.spool)
		spool_remove(j.spool);
	reader_close(j.reader);
	fd_close(&j.fd);
	return ret;
}
