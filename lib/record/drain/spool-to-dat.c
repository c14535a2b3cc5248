// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From a spool to a trace.dat, in the order in which the file is made: event formats, texts, buffers,
 * options; then the writer has it all. Nothing in the spool is changed.
 */
#include <zstd.h>

#include "base/cursor.h"
#include "base/outfile.h"
#include "file/dat/options.h"
#include "record/drain/spool-to-dat.h"

/* ---- the hypervisor's event formats: into the spool, out of it again, and as the file has them ---- */

void remote_events_add(struct buf *formats, const struct buf *format)
{
	buf_printf(formats, "%zu\n", format->len);
	buf_add(formats, format->data, format->len);
	formats->bad |= format->bad;
}

int remote_events_save(struct spool *spool, unsigned int first_id, const char *system, bool raw,
		       const struct buf *formats)
{
	struct buf text = { .bad = formats->bad };
	int ret;

	buf_printf(&text, "%u %s %s\n", first_id, system, raw ? "raw" : "text");
	buf_add(&text, formats->data, formats->len);
	ret = buf_status(&text) ?: spool_put_text(spool, "hyp_formats", text.data, text.len);
	buf_release(&text);
	return ret;
}

/* The next line as a C string; "" at the end, or if it is too long. */
static void short_line(struct cursor *c, char *out, size_t size)
{
	const char *line = "";
	size_t len = 0;

	cursor_line(c, &line, &len);
	snprintf(out, size, "%.*s", (int)(len < size ? len : 0), line);
}

int remote_events_load(struct hypevents *e, const struct spool *spool)
{
	struct buf text = { 0 }, reasons = { 0 };
	int ret = spool_get_text(spool, "hyp_formats", &text);
	struct cursor c = cursor_at(text.data, text.len);
	char head[128], system[64], kind[8];
	unsigned int first_id = 0;
	const char *line;
	size_t len;

	*e = (struct hypevents){ 0 };
	short_line(&c, head, sizeof(head));
	if (!ret && sscanf(head, "%u %63s %7s", &first_id, system, kind) != 3)
		ret = -EBADMSG;
	ret = ret ?: hypevents_init(e, system);
	e->raw = !ret && !strcmp(kind, "raw");
	while (!ret && cursor_left(&c)) {
		const char *format;
		uint64_t n;

		short_line(&c, head, sizeof(head));
		format = parse_u64(head, &n) ? NULL : cursor_take(&c, n);
		ret = format ? hypevents_add(e, format, n) : -EBADMSG;
	}
	ret = ret ?: hypevents_number(e, first_id);
	if (!ret) {
		ret = spool_get_text(spool, "hyp_reasons", &reasons);
		ret = ret == -ENOENT ? 0 : ret;
	}
	c = cursor_at(reasons.data, reasons.len);
	while (!ret && cursor_line(&c, &line, &len)) {
		int n = hypevents_reason(e, line, len);

		ret = n < 0 ? n : 0;
	}
	if (ret)
		hypevents_release(e);
	buf_release(&text);
	buf_release(&reasons);
	return ret;
}

uint16_t remote_cntvoff_id(const struct hypevents *e)
{
	return (uint16_t)(e->unknown_id + 1);
}

size_t remote_n_formats(const struct hypevents *e)
{
	return e->n + 2; /* hyp_unknown, hyp_cntvoff */
}

#define SAID_MAX 8 /* messages about one spool's formats */

static int formats_add_text(struct spool_formats *f, const char *data, size_t len)
{
	struct dat_text text = { .data = data, .len = len };

	return array_push(&f->texts, &f->n_texts, &text, sizeof(text));
}

/* `texts` still moves as it grows: the systems get theirs at the end. */
static int formats_add_system(struct spool_formats *f, const char *name, size_t n)
{
	struct dat_system system = { .name = strdup(name), .n = n };
	int ret = system.name ? array_push(&f->systems, &f->n_systems, &system, sizeof(system)) : -ENOMEM;

	if (ret)
		free((char *)(uintptr_t)system.name);
	return ret;
}

/* "SYSTEM LENGTH" lines, each followed by its text (system-metadata.c). */
static int split_formats(struct spool_formats *f)
{
	struct cursor c = cursor_at(f->kept.data, f->kept.len);

	while (cursor_left(&c)) {
		char head[160], system[128];
		const char *text;
		size_t n;
		int ret;

		short_line(&c, head, sizeof(head));
		text = sscanf(head, "%127s %zu", system, &n) == 2 ? cursor_take(&c, n) : NULL;
		if (!text)
			return -EBADMSG;
		ret = formats_add_text(f, text, n);
		if (!ret && (!f->n_systems || strcmp(f->systems[f->n_systems - 1].name, system)))
			ret = formats_add_system(f, system, 0);
		if (ret)
			return ret;
		f->systems[f->n_systems - 1].n++;
	}
	return 0;
}

/* Rewrites what libtraceevent could not parse; leaves out formats unlike any kernel's. */
static int fixup_format(struct spool_formats *f, const char *system, const struct log *log)
{
	static const char head[] = "\nprint fmt: ";
	struct dat_text *t = &f->texts[f->n_fixed];
	struct buf *b = &f->fixed[f->n_fixed++];
	const char *print_fmt = memmem(t->data, t->len, head, strlen(head)), *why;
	struct event_format e;
	int ret = print_fmt ? event_format_parse(t->data, t->len, &e) : -EBADMSG;

	if (ret)
		return ret == -ENOMEM ? ret : 0; /* anything else is kept as it is */
	buf_add(b, t->data, (size_t)(print_fmt - t->data) + strlen(head));
	ret = print_format_fixup(&e, b, &why);
	if (ret == -E2BIG) {
		log_warn(f->n_plain++ < SAID_MAX ? log : NULL, "the print format of %s:%s %s: it is left out",
			 system, e.name, why);
		ret = 1;
	}
	event_format_release(&e);
	buf_addstr(b, "\n");
	if (ret == -ENOMEM || !buf_str(b))
		return -ENOMEM;
	if (ret == 1)
		*t = (struct dat_text){ .data = (char *)b->data, .len = b->len };
	return 0;
}

static int add_hyp_formats(struct spool_formats *f, const struct spool *spool)
{
	int ret = remote_events_load(&f->hyp, spool);
	size_t n;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	n = remote_n_formats(&f->hyp);
	f->hyp_texts = calloc(n, sizeof(*f->hyp_texts));
	if (!f->hyp_texts)
		return -ENOMEM;
	ret = formats_add_system(f, f->hyp.system, n);
	for (; f->n_hyp_texts < n && !ret; f->n_hyp_texts++) {
		struct buf *b = &f->hyp_texts[f->n_hyp_texts];

		if (f->n_hyp_texts <= f->hyp.n) {
			hypevents_format(&f->hyp, f->n_hyp_texts, b);
		} else {
			hypevents_format_head("hyp_cntvoff", remote_cntvoff_id(&f->hyp), b);
			buf_addstr(b, "\tfield:int vcpu;\toffset:8;\tsize:4;\tsigned:1;\n"
				      "\tfield:s64 offset;\toffset:12;\tsize:8;\tsigned:1;\n"
				      "\tfield:u64 low;\toffset:20;\tsize:8;\tsigned:0;\n"
				      "\tfield:u64 high;\toffset:28;\tsize:8;\tsigned:0;\n"
				      "\n"
				      "print fmt: \"vcpu=%d offset=%lld low=%llu high=%llu\", REC->vcpu, "
				      "REC->offset, REC->low, REC->high\n");
		}
		ret = buf_status(b) ?: formats_add_text(f, buf_str(b), b->len);
	}
	return ret;
}

int spool_formats_load(struct spool_formats *f, const struct spool *spool, const struct log *log)
{
	const struct dat_text *t;
	int ret = spool_get_text(spool, "formats", &f->kept);
	ret = ret ?: split_formats(f);
	f->fixed = ret ? NULL : calloc(f->n_texts + 1, sizeof(*f->fixed));
	ret = ret ?: f->fixed ? 0 : -ENOMEM;
	for (size_t s = 0; s < f->n_systems; s++)
		for (size_t i = 0; i < f->systems[s].n && !ret; i++)
			ret = fixup_format(f, f->systems[s].name, log);
	if (f->n_plain > SAID_MAX)
		log_warn(log, "%zu print formats are left out in total", f->n_plain);
	ret = ret ?: add_hyp_formats(f, spool);
	t = f->texts;
	for (size_t i = 0; i < f->n_systems; t += f->systems[i++].n)
		f->systems[i].formats = t;
	return ret;
}

void spool_formats_release(struct spool_formats *f)
{
	for (size_t i = 0; i < f->n_systems; i++)
		free((char *)(uintptr_t)f->systems[i].name);
	for (size_t i = 0; i < f->n_hyp_texts; i++)
		buf_release(&f->hyp_texts[i]);
	for (size_t i = 0; i < f->n_fixed; i++)
		buf_release(&f->fixed[i]);
	free(f->fixed);
	hypevents_release(&f->hyp);
	buf_release(&f->kept);
	free(f->systems);
	free(f->texts);
	free(f->hyp_texts);
	*f = (struct spool_formats){ 0 };
}

enum {
	TEXT_HEADER_PAGE,
	TEXT_HEADER_EVENT,
	TEXT_KALLSYMS,
	TEXT_PRINTK,
	TEXT_CMDLINES,
	TEXT_SYMBOLS,
	N_TEXTS
};

/* A file, and everything that it points to. */
struct dat_job {
	struct spool *spool;
	const struct dat_from_spool_opts *o; /* NULL: of a running recording */
	const struct log *log;
	struct dat_file file;
	struct buf texts[N_TEXTS];
	struct spool_formats formats;
	struct hyp_pids **pids; /* one per buffer; NULL: no records to fill in */
	struct dat_options options;
};

static int load_text(struct dat_job *j, const char *name, struct buf *out, bool needed)
{
	int ret = spool_get_text(j->spool, name, out);

	if (ret == -ENOENT && !needed)
		return 0;
	return ret ? log_fail_errno(j->log, ret, "%s/texts/%s", spool_dir(j->spool), name) : 0;
}

/* "kallsyms.zst", where the spool has it, once it is there. */
static int take_symbols(void *job, struct dat_zipped *z)
{
	struct dat_job *j = job;
	struct buf *zipped = &j->texts[TEXT_SYMBOLS];
	struct cursor c;
	int ret;

	if (j->o && j->o->symbols)
		kernel_symbols_keep(j->o->symbols, j->log);
	ret = load_text(j, "kallsyms.zst", zipped, false);
	if (ret || !zipped->len)
		return ret;
	c = cursor_at(zipped->data, zipped->len);
	z->plain = cursor_u32(&c);
	z->len = cursor_left(&c);
	z->data = cursor_take(&c, z->len);
	/* the machine may have died meanwhile */
	if (ZSTD_findFrameCompressedSize(z->data, z->len) != z->len) {
		log_warn(j->log, "%s/texts/kallsyms.zst is damaged: the kernel's symbols are left out",
			 spool_dir(j->spool));
		z->len = 0;
	}
	return 0;
}

/* For a file that is not compressed. */
static int unpack_symbols(struct dat_job *j)
{
	struct buf *text = &j->texts[TEXT_KALLSYMS];
	struct dat_zipped z = { 0 };
	int ret = take_symbols(j, &z);

	if (ret || !z.len)
		return ret;
	text->len = 0;
	if (!buf_room(text, z.plain))
		return -ENOMEM;
	if (ZSTD_decompress(text->data, z.plain, z.data, z.len) != z.plain)
		return -EBADMSG;
	text->len = z.plain;
	j->file.kallsyms = (struct dat_text){ .data = (char *)text->data, .len = text->len };
	return 0;
}

static int job_add_texts(struct dat_job *j)
{
	const struct {
		const char *name;
		struct dat_text *out;
		bool needed;
	} texts[TEXT_SYMBOLS] = {
		[TEXT_HEADER_PAGE] = { "header_page", &j->file.header_page, true },
		[TEXT_HEADER_EVENT] = { "header_event", &j->file.header_event, true },
		[TEXT_KALLSYMS] = { "kallsyms", &j->file.kallsyms, false },
		[TEXT_PRINTK] = { "printk_formats", &j->file.printk, false },
		[TEXT_CMDLINES] = { "saved_cmdlines", &j->file.cmdlines, false },
	};
	const struct spool_formats *f = &j->formats;
	bool ftrace;
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct buf *text = &j->texts[i];

		ret = load_text(j, texts[i].name, text, texts[i].needed);
		if (ret)
			return ret;
		*texts[i].out = (struct dat_text){ .data = text->len ? buf_str(text) : "", .len = text->len };
	}
	ret = spool_formats_load(&j->formats, j->spool, j->log);
	if (dat_zips(&j->file)) {
		j->file.symbols = take_symbols;
		j->file.symbols_ctx = j;
	} else {
		ret = ret ?: unpack_symbols(j);
	}
	if (ret)
		return ret;
	/* "ftrace" goes to its own place in the file */
	ftrace = f->n_systems && !strcmp(f->systems[0].name, "ftrace");
	if (ftrace) {
		j->file.ftrace = f->systems[0].formats;
		j->file.n_ftrace = f->systems[0].n;
	}
	j->file.systems = f->systems + ftrace;
	j->file.n_systems = f->n_systems - ftrace;
	return 0;
}

static int job_add_buffers(struct dat_job *j)
{
	size_t n = spool_n_buffers(j->spool);

	j->file.buffers = calloc(n ? n : 1, sizeof(*j->file.buffers));
	j->pids = calloc(n ? n : 1, sizeof(struct hyp_pids *));
	if (!j->file.buffers || !j->pids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct spool_buffer *s = spool_buffer(j->spool, i);
		struct dat_buffer *b = &j->file.buffers[i];
		int ret;

		*b = (struct dat_buffer){ .name = s->name, .clock = s->clock, .page_size = s->page_size };
		b->cpus = calloc(s->n_cpus, sizeof(*b->cpus));
		if (!b->cpus)
			return -ENOMEM;
		j->file.n_buffers++;
		while (b->n_cpus < s->n_cpus) {
			unsigned int cpu = b->n_cpus++;
			struct dat_cpu *c = &b->cpus[cpu];
			struct buf text = { 0 };
			struct spool_range range;
			char name[48];

			snprintf(name, sizeof(name), "stat.%zu.%u", i, cpu);
			c->fd = -1;
			ret = load_text(j, name, &text, false);
			c->stat = text.len ? buf_str(&text) : NULL; /* freed with the job */
			if (ret)
				return ret;
			c->fd = spool_pages_open(j->spool, i, cpu, &range);
			if (c->fd < 0)
				return c->fd;
			c->offset = range.from;
			c->size = range.to - range.from;
		}
		ret = strncmp(s->kind, "hyp-", 4) ? 0 : hyp_pids_open(&j->pids[i], j->spool, &j->file, b);
		if (ret)
			return ret;
	}
	return 0;
}

/* The text "options": those of a guest's agent, GUEST and TIME_SHIFT. */
static int add_kept_options(struct dat_job *j)
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

static int add_clock(struct dat_job *j)
{
	const char *clock = spool_get(j->spool, "clock");
	const char *name = spool_get(j->spool, "clock_name") ?: clock ?: "";
	int ret = clock ? dat_options_add_clock(&j->options, clock) : 0;

	if (ret)
		return ret;
	/*
	 * in sec.usec: stock shows ns of clocks it does not know as raw numbers ("realtime":
	 * lib/convert/import/import.h)
	 */
	if (strcmp(name, "boot") && strcmp(name, "realtime"))
		return 0;
	for (size_t i = 0; i < j->options.n; i++)
		if (j->options.v[i].id == DAT_TSC2NSEC)
			return 0;
	return dat_options_add_tsc2nsec(&j->options, 1, 0, 0);
}

static int add_procmaps_of(struct dat_job *j, const char *pid)
{
	struct buf maps = { 0 }, comm = { 0 };
	char name[64];
	int ret;

	snprintf(name, sizeof(name), "procmaps.%.20s", pid);
	ret = load_text(j, name, &maps, false);
	snprintf(name, sizeof(name), "proccomm.%.20s", pid);
	ret = ret ?: load_text(j, name, &comm, false);
	if (!ret && maps.len && buf_str(&comm)) {
		comm.data[strcspn((char *)comm.data, "\n")] = 0;
		ret = dat_options_add_procmaps(&j->options, atoi(pid), (char *)comm.data, buf_str(&maps),
					       maps.len);
	}
	buf_release(&maps);
	buf_release(&comm);
	return ret;
}

static int job_add_options(struct dat_job *j)
{
	const char *pids = spool_get(j->spool, "procmaps"); /* whose maps were kept */
	static const struct {
		const char *name; /* of a text that is the body of an option */
		uint16_t id;
	} bodies[] = { { "pauses", DAT_PAUSES }, { "wall", DAT_WALL } };
	char pid[24];
	int len = 0;
	const char *date = spool_get(j->spool, "date_offset_us"), *uname = spool_get(j->spool, "uname");
	const char *line = spool_get(j->spool, "line");
	struct dat_options *o = &j->options;
	int ret = dat_options_add_traceid(o, spool_get_number(j->spool, "traceid", 0)) ?:
		  add_kept_options(j) ?:
		  add_clock(j) ?:
		  (uname ? dat_options_add_text(o, DAT_UNAME, uname) : 0) ?:
		  dat_options_add_text(o, DAT_VERSION, "hyptrace " HYPTRACE_VERSION) ?:
		  (line ? dat_options_add_text(o, DAT_COMMAND, line) : 0) ?:
		  (date ? dat_options_add_date(o, strtoll(date, NULL, 10)) : 0);

	for (const char *p = pids; p && !ret && sscanf(p, " %23s%n", pid, &len) == 1; p += len)
		ret = add_procmaps_of(j, pid);
	for (size_t i = 0; i < ARRAY_SIZE(bodies) && !ret; i++) {
		struct buf body = { 0 };

		ret = load_text(j, bodies[i].name, &body, false);
		if (!ret && body.len)
			ret = dat_options_add(o, bodies[i].id, body.data, body.len);
		buf_release(&body);
	}
	j->file.options = o->v;
	j->file.n_options = o->n;
	return ret;
}

int dat_job_open(struct dat_job **out, struct spool *spool, const struct dat_from_spool_opts *o,
		 const struct log *log)
{
	struct dat_job *j = calloc(1, sizeof(*j));
	const char *compression = spool_get(spool, "compression");
	int ret;

	if (!j)
		return -ENOMEM;
	j->spool = spool;
	j->o = o;
	j->log = log;
	j->file.version = o ? (int)spool_get_number(spool, "version", 7) : 7;
	j->file.compression = !o ? "none" : compression ? compression : "zstd";
	j->file.page_size = (uint32_t)spool_get_number(spool, "page_size", (uint64_t)sysconf(_SC_PAGESIZE));
	ret = job_add_texts(j) ?: job_add_buffers(j) ?: job_add_options(j);
	if (ret)
		dat_job_close(j);
	else
		*out = j;
	return ret;
}

struct dat_file *dat_job_file(struct dat_job *j)
{
	return &j->file;
}

int dat_job_add_option(struct dat_job *j, uint16_t id, const void *data, size_t len)
{
	int ret = dat_options_add(&j->options, id, data, len);

	j->file.options = j->options.v;
	j->file.n_options = j->options.n;
	return ret;
}

void dat_job_close(struct dat_job *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->file.n_buffers; i++) {
		struct dat_buffer *b = &j->file.buffers[i];

		for (unsigned int c = 0; c < b->n_cpus; c++) {
			fd_close(&b->cpus[c].fd);
			free((char *)(uintptr_t)b->cpus[c].stat);
		}
		free(b->cpus);
		hyp_pids_close(j->pids[i]);
	}
	spool_formats_release(&j->formats);
	free(j->file.buffers);
	free(j->pids);
	dat_options_release(&j->options);
	for (size_t i = 0; i < N_TEXTS; i++)
		buf_release(&j->texts[i]);
	free(j);
}

int dat_from_spool(struct spool *spool, const struct dat_from_spool_opts *o)
{
	char *output = o->output ? strdup(o->output) : spool_output(spool);
	struct dat_job *j = NULL;
	int ret = output ? dat_job_open(&j, spool, o, o->log) : -EBADMSG;

	if (ret)
		log_err(o->log, "'%s' cannot be made into a trace file: %s", spool_dir(spool),
			errno_text(ret));
	else {
		struct outfile out;

		j->file.progress = o->progress;
		j->file.progress_ctx = o->ctx;
		ret = outfile_open(&out, output, false, o->log);
		ret = ret ? ret : outfile_close(&out, dat_write(&j->file, out.fd, o->log));
	}
	dat_job_close(j);
	free(output);
	return ret;
}
