// SPDX-License-Identifier: LGPL-2.1-or-later
/* A buffer of the host's tracefs as a source for the recorder. */
#include "record/drain/source.h"
#include "record/tracefs/undo.h"

struct host {
	struct source source;
	int dirfd;
	const struct log *log;
};

static struct host *host_of(struct source *s)
{
	return (struct host *)s; /* its first member */
}

static int set_tracing(struct host *h, const char *value)
{
	int ret = write_file_at(h->dirfd, "tracing_on", value, 1);

	return ret ? log_fail_errno(h->log, ret, "cannot write %s to %s/tracing_on", value, h->source.path)
		   : 0;
}

static int host_start(struct source *s)
{
	return set_tracing(host_of(s), "1");
}

static int host_stop(struct source *s)
{
	return set_tracing(host_of(s), "0");
}

static void host_close(struct source *s)
{
	close(host_of(s)->dirfd);
	free(s);
}

/* Bytes moved, 0: nothing is there now, or -errno. */
static ssize_t host_move(struct splice *m, ssize_t (*move)(struct splice *m))
{
	ssize_t n = move(m);

	return n == -EAGAIN || n == -EINTR || n == -ENODEV ? 0 : n;
}

/*
 * Moves whole sub-buffers from per_cpu/cpuN/trace_pipe_raw to the spool until d->stopping, then what is left,
 * the last one too, which is filled in part. An offline CPU's buffer (-ENODEV) is empty.
 */
static int host_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct splice m;
	unsigned int mark;
	char path[64];
	ssize_t n;
	int in;

	snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", cpu);
	in = openat(host_of(s)->dirfd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (in < 0)
		return errno == ENODEV || errno == ENXIO ? 0 : -errno;
	n = splice_open(&m, in, s->page_size, true, d);
	/* sub-buffers larger than the pipe's slots are not spliced by every kernel */
	m.copying = s->page_size != (uint32_t)sysconf(_SC_PAGESIZE);
	while (n >= 0 && !atomic_load(d->stopping)) {
		if (drain_rests(d)) {
			n = rawpipe_wait(m.in, d);
			continue;
		}
		n = host_move(&m, splice_move);
		if (!n && drain_asked(d, &mark)) {
			n = host_move(&m, splice_copy);
			atomic_store(&d->flushed, mark);
		}
		if (!n)
			n = rawpipe_wait(m.in, d);
	}
	while (n >= 0 && (n = host_move(&m, splice_move)) > 0)
		;
	while (n >= 0 && (n = host_move(&m, splice_copy)) > 0)
		;
	splice_close(&m);
	close(in);
	return (int)n;
}

static int host_count(struct source *s, unsigned int cpu, uint64_t *events, uint64_t *lost)
{
	char path[48];

	snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	return tracefs_counts(host_of(s)->dirfd, path, events, lost);
}

static int host_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out)
{
	char path[48];

	snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
	buf_printf(out, "CPU: %u\n", cpu);
	return read_file_at(host_of(s)->dirfd, path, 65536, out);
}

int source_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out)
{
	buf_printf(out,
		   "CPU: %u\nentries: 0\noverrun: %llu\ncommit overrun: 0\nbytes: 0\n"
		   "dropped events: 0\nread events: %llu\n",
		   cpu, (unsigned long long)st->lost, (unsigned long long)st->events);
	if (st->unknown)
		buf_printf(out, "losses without a number: %llu\n", (unsigned long long)st->unknown);
	return buf_status(out);
}

static const struct source_ops host_ops = {
	.kind = "host",
	.start = host_start,
	.stop = host_stop,
	.drain = host_drain,
	.count = host_count,
	.stat = host_stat,
	.close = host_close,
};

int host_open(struct source **out, int tracing_dirfd, const char *name, const char *path, const char *clock,
	      const struct log *log)
{
	int fd = openat(tracing_dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t size = (uint32_t)sysconf(_SC_PAGESIZE);
	unsigned int n_cpus;
	unsigned long kb;
	char text[16];
	struct host *h;
	int ret;

	if (fd < 0)
		return -errno;
	ret = tracefs_cpus(fd, "per_cpu", &n_cpus);
	h = ret && ret != -ENOENT ? NULL : calloc(1, sizeof(*h));
	if (!h) {
		close(fd);
		return ret ?: -ENOMEM;
	}
	/* sub-buffers may be larger than a page since Linux 6.8 */
	read_line_at(fd, text, sizeof(text), "buffer_subbuf_size_kb");
	kb = strtoul(text, NULL, 10);
	size = kb && kb <= 1024 ? (uint32_t)kb * 1024 : size;
	h->dirfd = fd;
	h->log = log;
	h->source = (struct source){ .ops = &host_ops,
				     .name = name,
				     .path = path,
				     .clock = clock,
				     .page_size = size,
				     .n_cpus = n_cpus };
	*out = &h->source;
	return 0;
}
