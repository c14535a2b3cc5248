// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace report --follow: looks at a recording that goes on once a second, and prints what is new. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/live.h"
#include "report-priv.h"
#include "util/array.h"

#define LOOK_MS 1000

/* A CPU of a buffer, in one look. */
struct follow_cpu {
	const char *buffer; /* the file's, until it is closed */
	unsigned int cpu;
	uint64_t seen, before; /* records; of those that earlier looks took */
	uint64_t taken;
	bool holds; /* one, and so all behind it */
};

/*
 * A look prints what is not newer than the newest record of the look before: what other CPUs have
 * recorded until then has come meanwhile, or is late.
 */
struct follow {
	struct live *live;
	struct follow_cpu *cpus;
	size_t n;
	uint64_t horizon;    /* until there, this look */
	uint64_t newest;     /* seen in this look */
	uint64_t from, late; /* until there was printed before; records older than that */
	uint64_t held;
	bool first, last, no_memory;
};

bool follow_is_first(const struct follow *f)
{
	return f->first;
}

static struct follow_cpu *follow_cpu(struct follow *f, const char *buffer, unsigned int cpu)
{
	struct follow_cpu c = { .buffer = buffer, .cpu = cpu };

	for (size_t i = 0; i < f->n; i++)
		if (f->cpus[i].cpu == cpu && !strcmp(f->cpus[i].buffer, buffer))
			return &f->cpus[i];
	c.before = live_taken(f->live, buffer, cpu);
	f->no_memory = f->no_memory || array_push(&f->cpus, &f->n, &c, sizeof(c));
	return f->no_memory ? NULL : &f->cpus[f->n - 1];
}

bool follow_takes(struct follow *f, const char *buffer, unsigned int cpu, const struct merge_record *m)
{
	struct follow_cpu *c = follow_cpu(f, buffer, cpu);

	if (!c)
		return false;
	if (!m->data) /* what was lost behind the last record stands before the next one as well */
		return f->last;
	if (c->seen++ < c->before)
		return false;
	f->newest = m->ts > f->newest ? m->ts : f->newest;
	c->holds = c->holds || (!f->last && m->ts > f->horizon);
	f->held += c->holds;
	if (c->holds)
		return false;
	c->taken++;
	f->late += m->ts < f->from;
	return true;
}

/* ---- one look ------------------------------------------------------------------------------ */

static int follow_print(struct follow *f, const struct report_opts *o, const struct log *log)
{
	struct report r = { .o = o, .log = log, .follow = f };
	int ret;

	r.terminal = isatty(STDOUT_FILENO);
	ret = report_print(&r);
	for (size_t i = 0; i < f->n && !ret; i++)
		ret = live_take(f->live, f->cpus[i].buffer, f->cpus[i].cpu, f->cpus[i].taken);
	report_close(&r);
	fflush(stdout);
	return ret ?: f->no_memory ? -ENOMEM : 0;
}

static int follow_look(struct follow *f, const struct report_opts *o, int fd, const struct log *log)
{
	int ret;

	f->n = f->held = f->late = 0;
	ret = live_write(f->live, fd, log) ?: follow_print(f, o, log) ?: live_drop_taken(f->live);
	if (f->late)
		log_warn(log,
			 "%" PRIu64
			 " events are printed out of order: their pages were handed over more than "
			 "%d ms after younger ones",
			 f->late, LOOK_MS);
	f->from = f->horizon;
	f->horizon = f->newest;
	f->first = false;
	return ret;
}

static int follow_looks(struct follow *f, const struct report_opts *o, int fd, const struct log *log)
{
	bool told = false;

	for (;;) {
		int ret = live_look(f->live, &f->last);

		if (ret < 0)
			return ret;
		if (ret || f->held || f->first || f->last)
			ret = follow_look(f, o, fd, log);
		if (ret < 0 || f->last || ferror(stdout))
			return ret;
		if (!told && live_is_early(f->live)) {
			log_warn(log,
				 "hyp: times of this plain-nVHE host are early by what vCPUs' counters are "
				 "behind: only the finished file has them right");
			told = true;
		}
		usleep(LOOK_MS * 1000);
	}
}

/* ---- all of them --------------------------------------------------------------------------- */

int report_follow(const struct report_opts *o, const struct log *log)
{
	struct follow f = { .first = true };
	struct report_input input = o->inputs[0];
	struct report_opts ours = *o;
	char path[48];
	int fd, ret = live_wait(&f.live, input.path, log);

	if (ret)
		return ret;
	fd = memfd_create("look", MFD_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		goto out;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	input.path = path;
	ours.inputs = &input;
	ret = follow_looks(&f, &ours, fd, log);
	close(fd);
out:
	if (ret)
		log_err(log, "cannot follow '%s': %s", o->inputs[0].path, errno_text(ret));
	free(f.cpus);
	live_close(f.live);
	return ret;
}
