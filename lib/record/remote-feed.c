// SPDX-License-Identifier: LGPL-2.1-or-later
/* What was read from a hypervisor's buffer elsewhere goes into a spool, as a recording would have put it
 * there. */
#include "record/remote-feed.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/remote-priv.h"

struct feed_cpu {
	struct remote_reader reader;
	struct drain drain;
	struct drain_stats stats;
};

struct remote_feed {
	struct remote *r;
	struct feed_cpu *cpus; /* the text of all goes through the first one's reader */
	unsigned int n;	       /* of them opened */
	uint64_t bad;	       /* lines of CPUs that are none of ours */
};

static int feed_open_cpu(struct remote_feed *f, struct spool *spool, size_t buffer)
{
	struct feed_cpu *c = &f->cpus[f->n];
	int ret;

	c->drain = (struct drain){ .out = spool_pages_fd(spool, buffer, f->n), .stats = &c->stats };
	if (c->drain.out < 0)
		return c->drain.out;
	ret = remote_reader_open(&c->reader, f->r, f->n, &c->drain);
	if (ret)
		close(c->drain.out);
	else
		f->n++;
	return ret;
}

int remote_feed_open(struct remote_feed **out, struct remote *r, struct spool *spool, size_t buffer)
{
	struct remote_feed *f = calloc(1, sizeof(*f));
	struct remote_fed nothing;
	int ret;

	if (!f)
		return -ENOMEM;
	f->r = r;
	f->cpus = calloc(r->source.n_cpus, sizeof(*f->cpus));
	ret = f->cpus ? 0 : -ENOMEM;
	while (!ret && f->n < r->source.n_cpus)
		ret = feed_open_cpu(f, spool, buffer);
	if (ret)
		return remote_feed_close(f, ret, &nothing);
	*out = f;
	return 0;
}

static int feed_line(void *ctx, const struct hyprecord *rec)
{
	struct remote_feed *f = ctx;

	if (rec->cpu < f->n)
		return remote_reader_record(&f->cpus[rec->cpu].reader, rec);
	f->bad++;
	return 0;
}

int remote_feed_text(struct remote_feed *f, const void *text, size_t len)
{
	return hyptext_feed(f->cpus->reader.text, text, len, feed_line, f) ?: remote_save_reasons(f->r);
}

int remote_feed_page(struct remote_feed *f, unsigned int cpu, const void *page, size_t len)
{
	return cpu < f->n ? remote_reader_page(&f->cpus[cpu].reader, page, len) : -EINVAL;
}

int remote_feed_close(struct remote_feed *f, int ret, struct remote_fed *out)
{
	const struct hyptext *text = f->n ? f->cpus->reader.text : NULL;

	*out = (struct remote_fed){ .bad = f->bad };
	if (text) {
		out->lost = hyptext_pending_lost(text);
		out->bad += hyptext_bad_lines(text);
	}
	for (unsigned int i = 0; i < f->n; i++) {
		struct feed_cpu *c = &f->cpus[i];

		ret = remote_reader_close(&c->reader, ret);
		close(c->drain.out);
		out->events += c->stats.events;
		out->lost += c->stats.lost;
		out->bad += c->stats.bad;
	}
	free(f->cpus);
	free(f);
	return ret;
}
