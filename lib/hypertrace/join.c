// SPDX-License-Identifier: LGPL-2.1-or-later
/* Doorbells in the host's pages become events of guests' programs. */
#include "hypertrace/join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "dat/format.h"
#include "hypertrace/entries.h"
#include "hypertrace/mark.h"
#include "hypertrace/rings.h"
#include "record/spool-formats.h"

#define KVM_MMIO_WRITE 2 /* KVM_TRACE_MMIO_WRITE, include/trace/events/kvm.h */
#define HEAD	       8 /* common_type to common_pid */

/* Where kvm_mmio has what. */
struct mmio_format {
	unsigned int id, type, len, gpa, val; /* the four: offsets */
	size_t size;			      /* bytes up to the last one's end */
};

struct joiner {
	struct spool *spool;
	size_t number; /* of the buffer */
	struct page_layout layout;
	struct mmio_format mmio;
	unsigned int id;
	struct entries entries;
	struct page_writer writer; /* of the CPU at hand */
	int out;
};

/* ---- the format ------------------------------------------------------------------------------ */

static int mmio_field(struct mmio_format *m, const struct event_format *f, const char *name,
		      unsigned int size, unsigned int *offset)
{
	const struct event_field *x = event_format_field(f, name);

	if (!x || x->size != size)
		return -EBADMSG;
	*offset = x->offset;
	m->size = x->offset + size > m->size ? x->offset + size : m->size;
	return 0;
}

static int mmio_parse(struct mmio_format *m, const struct dat_text *t)
{
	struct event_format f;
	int ret = event_format_parse(t->data, t->len, &f);

	if (ret)
		return ret;
	*m = (struct mmio_format){ .id = f.id, .size = HEAD };
	ret = strcmp(f.name, "kvm_mmio") ? -ENOENT : 0;
	ret = ret ?: mmio_field(m, &f, "type", 4, &m->type) ?: mmio_field(m, &f, "len", 4, &m->len) ?:
		     mmio_field(m, &f, "gpa", 8, &m->gpa) ?: mmio_field(m, &f, "val", 8, &m->val);
	event_format_release(&f);
	return ret;
}

static int joiner_load_format(struct joiner *j)
{
	struct spool_formats formats = { 0 };
	int ret = spool_formats_load(&formats, j->spool, NULL), found = -ENOENT;

	for (size_t s = 0; !ret && s < formats.n_systems; s++)
		for (size_t i = 0; !strcmp(formats.systems[s].name, "kvm") && i < formats.systems[s].n; i++)
			if (found == -ENOENT)
				found = mmio_parse(&j->mmio, &formats.systems[s].formats[i]);
	spool_formats_release(&formats);
	return ret ?: found;
}

/* ---- records -------------------------------------------------------------------------------- */

static uint32_t record_u32(const struct page_event *ev, unsigned int offset)
{
	uint32_t v;

	memcpy(&v, ev->data + offset, sizeof(v));
	return v;
}

static uint64_t record_u64(const struct page_event *ev, unsigned int offset)
{
	uint64_t v;

	memcpy(&v, ev->data + offset, sizeof(v));
	return v;
}

static bool is_bell(const struct mmio_format *m, const struct page_event *ev)
{
	return ev->len >= m->size && (uint16_t)record_u32(ev, 0) == m->id &&
	       record_u32(ev, m->type) == KVM_MMIO_WRITE && record_u32(ev, m->len) == sizeof(uint32_t);
}

static int joiner_record(struct joiner *j, const struct page_event *ev)
{
	const struct mmio_format *m = &j->mmio;
	uint8_t record[MARK_RECORD_MAX];
	struct entry_bell b = { .ts = ev->ts };
	struct ring_event event;
	uint32_t client;
	size_t guest;
	int vcpu;

	if (!is_bell(m, ev))
		return 0;
	b.tid = (int)record_u32(ev, 4);
	b.gpa = record_u64(ev, m->gpa);
	b.value = (uint32_t)record_u64(ev, m->val);
	switch (entries_find(&j->entries, &b, &guest, &vcpu, &client, &event)) {
	case ENTRY_JOINED:
		return page_write(&j->writer, ev->ts, record,
				  mark_put(record, j->id, ev->data, j->entries.guests[guest].name, vcpu,
					   client, &event));
	case ENTRY_MISSING:
		return page_write_lost(&j->writer, 1);
	default:
		return 0;
	}
}

static int joiner_page(struct joiner *j, const void *page)
{
	struct page_reader pr;
	struct page_event ev;
	int ret, more = 0;

	if (page_reader_init(&pr, &j->layout, page, j->layout.size))
		return page_write_lost(&j->writer, 0);
	ret = pr.missed ? page_write_lost(&j->writer, pr.missed_count) : 0;
	while (!ret && (more = page_next(&pr, &ev)) == 1)
		ret = joiner_record(j, &ev);
	return ret ?: more < 0 ? page_write_lost(&j->writer, 0) : 0;
}

static int joiner_emit(void *ctx, const void *page, size_t size)
{
	const struct joiner *j = ctx;

	return write_all(j->out, page, size);
}

static int joiner_pages(struct joiner *j, int in)
{
	size_t size = j->layout.size;
	void *page = malloc(size);
	int ret = page ? 0 : -ENOMEM;
	ssize_t n = 0;

	for (off_t at = 0; !ret && (n = pread(in, page, size, at)) == (ssize_t)size; at += n)
		ret = joiner_page(j, page);
	free(page);
	return n < 0 ? -errno : ret ?: page_flush(&j->writer, true);
}

static int joiner_cpu(struct joiner *j, unsigned int cpu)
{
	int in = spool_pages_fd(j->spool, j->number, cpu), ret;

	if (in < 0)
		return in;
	j->out = spool_rewrite_fd(j->spool, j->number, cpu);
	ret = j->out < 0 ? j->out : page_writer_init(&j->writer, j->layout.size, joiner_emit, j);
	if (!ret) {
		ret = joiner_pages(j, in);
		page_writer_release(&j->writer);
	}
	fd_close(&j->out);
	close(in);
	return ret;
}

/* ---- the spool -------------------------------------------------------------------------------- */

static void joiner_tell(const struct joiner *j, size_t guest, const struct log *log)
{
	const struct entries_guest *g = &j->entries.guests[guest];
	uint64_t alone, missed;

	entries_left(&j->entries, guest, spool_get_number(j->spool, "hypertrace_from", 0),
		     spool_get_number(j->spool, "hypertrace_to", 0), &alone, &missed);
	if (!alone && !missed && !g->orphans) {
		log_info(log, "hypertrace: %s: %" PRIu64 " events", g->name, g->joined);
		return;
	}
	log_warn(log,
		 "hypertrace: %s: %" PRIu64 " events, %" PRIu64 " lost: %" PRIu64
		 " overwritten before they were "
		 "read, %" PRIu64 " without their doorbell; %" PRIu64 " doorbells had no event",
		 g->name, g->joined, alone + missed, missed, alone, g->orphans);
}

static int joiner_buffer(struct joiner *j, const struct spool_buffer *b)
{
	int ret = joiner_load_format(j) ?: spool_page_layout(j->spool, &j->layout) ?: spool_rewrite_begin(j->spool);

	j->layout.size = b->page_size;
	for (unsigned int cpu = 0; cpu < b->n_cpus && !ret; cpu++)
		ret = joiner_cpu(j, cpu);
	return ret ?: spool_rewrite_end(j->spool, SPOOL_JOINED);
}

int hypertrace_join(struct spool *spool, const struct log *log)
{
	struct joiner j = { .spool = spool, .out = -1 };
	const struct spool_buffer *b;
	int ret;

	while ((b = spool_buffer(spool, j.number)) && strcmp(b->name, RINGS_BUFFER))
		j.number++;
	j.id = (unsigned int)spool_get_number(spool, "hypertrace_id", 0);
	if (!b || !j.id || spool_is_rewritten(spool, SPOOL_JOINED))
		return 0;
	ret = entries_load(&j.entries, spool) ?: joiner_buffer(&j, b);
	for (size_t i = 0; i < j.entries.n_guests && !ret; i++)
		joiner_tell(&j, i, log);
	entries_release(&j.entries);
	if (ret)
		log_err(log, "the guests' hypertrace events cannot be joined: %s", errno_text(ret));
	return ret;
}
