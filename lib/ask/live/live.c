// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the spool of a running recording: finds the pages that are there, writes some as a trace.dat. */
#include "ask/live/live.h"

#include <sys/mman.h>

#include "file/dat/offset.h"
#include "record/drain/spool-to-dat.h"
#include "record/guest/guest.h"

/* Pages of a buffer on their way into the file. */
struct live_buffer {
	const struct live *of;
	struct page_layout layout;
	uint64_t *taken; /* by CPU: of the records from the file's offset on */
	/* of the page that is made */
	uint8_t *to;
	unsigned int made;
};

struct live {
	struct spool *spool;
	struct dat_job *job;
	struct dat_file *file; /* the job's */
	struct live_buffer *buffers;
	uint8_t *page; /* room for the largest */
	uint64_t from; /* live_cut: records before that are left out */
	struct buf cmdlines;
	int look; /* live_write: what it writes; -1: nothing yet */
	char path[32];
};

/* ---- cutting: the pages in which the last seconds begin are written anew ------------------------ */

static int live_trim_emit(void *ctx, const void *page, size_t size)
{
	struct live_buffer *t = ctx;

	if (!t->made++)
		memcpy(t->to, page, size);
	return 0;
}

/* A dat_buffer's fix_page, of a struct live_buffer: leaves out what is before of->from. */
static int live_trim_page(void *buffer, unsigned int cpu, void *page, size_t size)
{
	struct live_buffer *t = buffer;
	struct page_writer w;
	struct page_reader r;
	struct page_event ev;
	size_t n = 0;
	int more, ret;

	if (page_reader_init(&r, &t->layout, page, size) || r.ts >= t->of->from)
		return 0;
	t->to = malloc(size);
	t->made = 0;
	ret = t->to ? page_writer_init(&w, size, live_trim_emit, t) : -ENOMEM;
	if (!ret) {
		while ((more = page_next(&r, &ev)) == 1 && !ret)
			if (ev.ts >= t->of->from) {
				ret = page_write(&w, ev.ts, ev.data, ev.len);
				n++;
			}
		/* a damaged page, or one that does not fit into one again, keeps all */
		ret = ret ?: more < 0 ? more : page_flush(&w, false);
		if (!ret && !n)
			page_set_commit(&t->layout, page, 0);
		else if (!ret && t->made == 1)
			memcpy(page, t->to, size);
		page_writer_release(&w);
	}
	free(t->to);
	return ret == -ENOMEM ? ret : 0;
}

/* All its files stay open, for a recorder that has done its work removes them. */
static int live_load(struct live *l, const char *output, const struct log *log)
{
	char *beside = str_printf("%s.spool", output);
	struct page_layout kernel;
	struct stat st;
	uint32_t max = 0;
	int ret;

	if (!beside)
		return -ENOMEM;
	ret = spool_open_live(&l->spool, stat(output, &st) || !S_ISDIR(st.st_mode) ? beside : output, log);
	free(beside);
	if (ret)
		return ret == -EBADMSG ? -EAGAIN : ret; /* keys and buffers are still being written */
	if (!spool_is_recording(l->spool))
		return spool_get(l->spool, "state") ? -ENOENT : -EAGAIN;
	ret = dat_job_open(&l->job, l->spool, NULL, log);
	if (ret)
		return ret == -ENOENT ? -EAGAIN : ret;
	l->file = dat_job_file(l->job);
	/* the page layout of each buffer: ours or the kernel's */
	ret = spool_page_layout(l->spool, &kernel);
	if (ret)
		return ret;
	l->buffers = calloc(l->file->n_buffers + 1, sizeof(*l->buffers));
	if (!l->buffers)
		return -ENOMEM;
	for (size_t i = 0; i < l->file->n_buffers; i++) {
		struct live_buffer *ours = &l->buffers[i];
		struct dat_buffer *b = &l->file->buffers[i];
		const char *kind = spool_buffer(l->spool, i)->kind;

		ours->of = l;
		ours->layout =
			!strncmp(kind, "hyp-", 4) || !strcmp(kind, "profile") ? page_layout_default : kernel;
		ours->layout.size = b->page_size;
		max = b->page_size > max ? b->page_size : max;
		b->fix_page = live_trim_page; /* the job's own takes all pages from the first on */
		b->fix_ctx = ours;
		ours->taken = calloc(b->n_cpus, sizeof(*ours->taken));
		if (!ours->taken)
			return -ENOMEM;
		for (unsigned int cpu = 0; cpu < b->n_cpus; cpu++)
			b->cpus[cpu].size = 0;
	}
	l->page = malloc(max + 1);
	return l->page ? 0 : -ENOMEM;
}

int live_open(struct live **out, const char *output, const struct log *log)
{
	struct live *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	l->look = -1;
	ret = live_load(l, output, log);
	if (ret)
		live_close(l);
	else
		*out = l;
	return ret;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	for (size_t i = 0; l->buffers && i < l->file->n_buffers; i++)
		free(l->buffers[i].taken);
	free(l->buffers);
	free(l->page);
	dat_job_close(l->job);
	spool_close(l->spool);
	buf_release(&l->cmdlines);
	fd_close(&l->look);
	free(l);
}

bool live_is_early(const struct live *l)
{
	return spool_wants_repair(l->spool);
}

bool live_forgets(const struct live *l)
{
	return spool_has_ranges(l->spool);
}

int live_look(struct live *l, bool *ended)
{
	bool more = false;

	*ended = !spool_is_recording(l->spool); /* before the sizes: none grows behind it */
	for (size_t i = 0; i < l->file->n_buffers; i++) {
		const struct spool_buffer *of = spool_buffer(l->spool, i);
		struct dat_buffer *b = &l->file->buffers[i];

		for (unsigned int cpu = 0; cpu < b->n_cpus; cpu++) {
			struct dat_cpu *c = &b->cpus[cpu];
			struct stat st;
			uint64_t end, from;

			if (fstat(c->fd, &st) < 0)
				return -errno;
			end = (uint64_t)st.st_size / of->page_size * of->page_size;
			/* the hypervisor's last page is written again and again as it grows */
			if (!*ended && end && !strncmp(of->kind, "hyp-", 4))
				end -= of->page_size;
			more = more || end > c->offset + c->size;
			if (end > c->offset)
				c->size = end - c->offset;
			from = live_forgets(l) ? spool_pages_from(l->spool, i, cpu) : 0;
			if (from <= c->offset)
				continue;
			/* drops the pages that the recorder has discarded */
			c->size = c->offset + c->size > from ? c->offset + c->size - from : 0;
			c->offset = from;
			l->buffers[i].taken[cpu] = 0;
		}
	}
	return more;
}

int live_write(struct live *l, const char **path, const struct log *log)
{
	if (l->look < 0)
		l->look = memfd_create("look", MFD_CLOEXEC);
	if (l->look < 0 || ftruncate(l->look, 0) < 0 || lseek(l->look, 0, SEEK_SET) < 0)
		return -errno;
	snprintf(l->path, sizeof(l->path), "/proc/self/fd/%d", l->look);
	*path = l->path;
	return dat_write(l->file, l->look, log);
}

uint64_t *live_taken(const struct live *l, const char *buffer, unsigned int cpu)
{
	for (size_t i = 0; i < l->file->n_buffers; i++)
		if (!strcmp(l->file->buffers[i].name, buffer) && cpu < l->file->buffers[i].n_cpus)
			return &l->buffers[i].taken[cpu];
	return NULL;
}

/* The page at that place of the file; -EIO: it is not there. */
static int live_page(struct live *l, size_t buffer, const struct dat_cpu *c, uint64_t at)
{
	size_t size = l->buffers[buffer].layout.size;
	ssize_t n = pread_all(c->fd, l->page, size, at);

	return n < 0 ? (int)n : (size_t)n < size ? -EIO : 0;
}

static void live_drop(struct live *l, size_t buffer, struct dat_cpu *c)
{
	c->offset += l->buffers[buffer].layout.size;
	c->size -= l->buffers[buffer].layout.size;
}

int live_drop_taken(struct live *l)
{
	for (size_t i = 0; i < l->file->n_buffers; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus; cpu++) {
			struct dat_cpu *c = &l->file->buffers[i].cpus[cpu];
			uint64_t *taken = &l->buffers[i].taken[cpu], n, last;

			while (*taken) {
				int ret = live_page(l, i, c, c->offset);

				if (ret)
					return ret;
				n = page_count(&l->buffers[i].layout, l->page, &last);
				if (n > *taken)
					break;
				*taken -= n;
				live_drop(l, i, c);
			}
		}
	return 0;
}

/* When the page at that place began. */
static int live_begin(struct live *l, size_t buffer, const struct dat_cpu *c, uint64_t at, uint64_t *ts)
{
	int ret = live_page(l, buffer, c, at);

	memcpy(ts, l->page, sizeof(*ts));
	return ret;
}

int live_drop_older(struct live *l, uint64_t ns)
{
	uint64_t newest = 0, than, ts;
	bool dropped = false;
	int ret = 0;

	for (size_t i = 0; i < l->file->n_buffers; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus && !ret; cpu++) {
			const struct dat_cpu *c = &l->file->buffers[i].cpus[cpu];

			if (!c->size)
				continue;
			ret = live_begin(l, i, c, c->offset + c->size - l->buffers[i].layout.size, &ts);
			newest = !ret && ts > newest ? ts : newest;
		}
	than = newest > ns ? newest - ns : 0;
	for (size_t i = 0; i < l->file->n_buffers; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus && !ret; cpu++) {
			struct dat_cpu *c = &l->file->buffers[i].cpus[cpu];
			size_t size = l->buffers[i].layout.size;

			while (c->size > size) {
				ret = live_begin(l, i, c, c->offset + size, &ts);
				if (ret || ts >= than)
					break;
				live_drop(l, i, c);
				dropped = true;
			}
		}
	return ret ?: dropped;
}

int live_cut(struct live *l, uint64_t ns, uint64_t *newest)
{
	int ret = live_drop_older(l, ns);

	*newest = 0;
	for (size_t i = 0; i < l->file->n_buffers && ret >= 0; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus && ret >= 0; cpu++) {
			const struct dat_cpu *c = &l->file->buffers[i].cpus[cpu];
			uint64_t ts = 0;

			if (!c->size)
				continue;
			ret = live_page(l, i, c, c->offset + c->size - l->buffers[i].layout.size);
			if (!ret)
				page_count(&l->buffers[i].layout, l->page, &ts);
			*newest = ts > *newest ? ts : *newest;
		}
	l->from = *newest > ns ? *newest - ns : 0;
	return ret < 0 ? ret : 0;
}

static int live_name_guest(struct live *l, const struct guest *g)
{
	char pid[32];
	struct offset_guest o = { .name = g->name };
	struct offset_vcpu *v;
	struct buf body = { 0 };
	int ret;

	/* readers index the list by CPU */
	o.n = g->n_vcpus ? g->vcpus[g->n_vcpus - 1].cpu + 1 : 0;
	if (!o.n || o.n > SPOOL_CPUS_MAX)
		return 0;
	v = calloc(o.n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	o.vcpus = v;
	for (uint32_t i = 0; i < o.n; i++)
		v[i].cpu = i;
	for (size_t i = 0; i < g->n_vcpus; i++)
		v[g->vcpus[i].cpu].pid = (uint32_t)g->vcpus[i].tid;
	snprintf(pid, sizeof(pid), "VM-%d", (int)g->pid);
	if (!o.name)
		o.name = pid;
	offset_guest_encode(&o, &body);
	ret = buf_status(&body) ?: dat_job_add_option(l->job, DAT_GUEST, body.data, body.len);
	buf_release(&body);
	free(v);
	return ret;
}

void live_each_clock(const struct live *l,
		     void (*each)(void *ctx, const char *guest, int64_t offset, uint64_t bound), void *ctx)
{
	struct strlist lines = { 0 };
	struct buf text = { 0 };

	if (!spool_get_text(l->spool, SPOOL_CLOCKS, &text))
		strlist_add_lines(&lines, text.data, text.len);
	for (size_t i = 0; i < lines.n; i++) {
		/* "NAME\tOFFSET\tBOUND", as another process writes it */
		char *tab = strchr(lines.v[i], '\t'), *end;
		uint64_t bound;
		int64_t offset;

		if (!tab)
			continue;
		*tab = 0;
		errno = 0;
		offset = strtoll(tab + 1, &end, 10);
		if (!errno && end > tab + 1 && *end == '\t' && !parse_u64(end + 1, &bound))
			each(ctx, lines.v[i], offset, bound);
	}
	strlist_release(&lines);
	buf_release(&text);
}

/* "PID NAME\n" of each thread of a process, as the kernel's saved_cmdlines has it. */
static void live_name_threads(struct live *l, const char *root, const char *pid)
{
	char *dir = str_printf("%s/proc/%s/task", root, pid);
	struct strlist tids = { 0 };

	if (dir)
		read_dir_at(AT_FDCWD, dir, &tids);
	for (size_t i = 0; i < tids.n; i++) {
		char *path = str_printf("%s/%s/comm", dir, tids.v[i]);
		struct buf comm = { 0 };

		if (path && !read_file(path, 64, &comm) && buf_str(&comm))
			buf_printf(&l->cmdlines, "%s %s", tids.v[i], buf_str(&comm));
		buf_release(&comm);
		free(path);
	}
	strlist_release(&tids);
	free(dir);
}

int live_name(struct live *l, const char *root, const struct log *log)
{
	const struct guest_opts o = { .root = root, .log = log };
	struct strlist pids = { 0 };
	struct guests all = { 0 };
	char *dir;
	bool same;
	int ret = spool_is_this_boot(l->spool, &same);

	if (ret || !same)
		return ret;
	dir = str_printf("%s/proc", root ? root : "");
	if (!dir)
		return -ENOMEM;
	read_dir_at(AT_FDCWD, dir, &pids);
	for (size_t i = 0; i < pids.n; i++)
		if (strspn(pids.v[i], "0123456789") == strlen(pids.v[i]))
			live_name_threads(l, root ? root : "", pids.v[i]);
	strlist_release(&pids);
	free(dir);
	if (l->cmdlines.len && buf_str(&l->cmdlines))
		l->file->cmdlines = (struct dat_text){ buf_str(&l->cmdlines), l->cmdlines.len };
	ret = buf_status(&l->cmdlines) ?: guests_find(&all, &o);
	for (size_t i = 0; i < all.n && !ret; i++)
		ret = live_name_guest(l, &all.v[i]);
	guests_release(&all);
	return ret;
}
