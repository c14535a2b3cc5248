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
	struct hyptext *text;
	uint8_t *record; /* room for one, of raw pages */
	size_t record_size;
	struct feed_cpu *cpus;
	unsigned int n; /* of them opened */
	uint64_t bad;	/* lines of CPUs that are none of ours */
};

static int feed_open_cpu(struct remote_feed *f, struct spool *spool, size_t buffer)
{
	struct feed_cpu *c = &f->cpus[f->n];
	int ret;

	c->drain = (struct drain){ .out = spool_pages_fd(spool, buffer, f->n),
				   .stop_fd = -1,
				   .stats = &c->stats };
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
	f->record_size = r->source.page_size + 2 * HYP_RECORD_EXTRA;
	f->text = hyptext_new(&r->events);
	f->record = malloc(f->record_size);
	f->cpus = calloc(r->source.n_cpus, sizeof(*f->cpus));
	if (!f->text || !f->record || !f->cpus)
		return remote_feed_close(f, -ENOMEM, &nothing);
	while (f->n < r->source.n_cpus) {
		ret = feed_open_cpu(f, spool, buffer);
		if (ret)
			return remote_feed_close(f, ret, &nothing);
	}
	*out = f;
	return 0;
}

static int feed_line(void *ctx, const struct hyprecord *rec)
{
	struct remote_feed *f = ctx;

	if (rec->cpu >= f->n) {
		f->bad++;
		return 0;
	}
	return remote_reader_record(&f->cpus[rec->cpu].reader, rec);
}

int remote_feed_text(struct remote_feed *f, const void *text, size_t len)
{
	int ret = hyptext_feed(f->text, text, len, feed_line, f);

	return ret ? ret : remote_save_reasons(f->r);
}

int remote_feed_page(struct remote_feed *f, unsigned int cpu, const void *page, size_t len)
{
	if (cpu >= f->n)
		return -EINVAL;
	return remote_reader_page(&f->cpus[cpu].reader, page, len, f->record, f->record_size);
}

int remote_feed_close(struct remote_feed *f, int ret, struct remote_fed *out)
{
	uint64_t lost = f->text ? hyptext_pending_lost(f->text) : 0;

	*out = (struct remote_fed){ .lost = lost, .bad = f->bad };
	if (f->text)
		out->bad += hyptext_bad_lines(f->text);
	for (unsigned int i = 0; i < f->n; i++) {
		struct feed_cpu *c = &f->cpus[i];

		ret = remote_reader_close(&c->reader, ret);
		close(c->drain.out);
		out->events += c->stats.events;
		out->lost += c->stats.lost;
		out->bad += c->stats.bad;
	}
	hyptext_free(f->text);
	free(f->record);
	free(f->cpus);
	free(f);
	return ret;
}
