// SPDX-License-Identifier: LGPL-2.1-or-later
/* Doorbells in the host's pages become events of guests' programs. */
#include <sys/mman.h>

#include "base/cursor.h"
#include "record/drain/spool-to-dat.h"
#include "record/marks/rings.h"

struct mark_record {
	uint16_t type;
	uint8_t head[6];
	uint32_t client;
	int32_t vcpu;
	uint64_t guest_time;
	uint64_t arg[RING_ARGS];
	uint32_t guest; /* __data_loc */
} __attribute__((packed));

static const char mark_format[] =
	"\tfield:unsigned int client;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:int vcpu;\toffset:12;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 guest_time;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 arg1;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 arg2;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 arg3;\toffset:40;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 arg4;\toffset:48;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc char[] guest;\toffset:56;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"client=%u arg1=0x%llx arg2=0x%llx arg3=0x%llx arg4=0x%llx guest=%s vcpu=%d\", "
	"REC->client, REC->arg1, REC->arg2, REC->arg3, REC->arg4, __get_str(guest), REC->vcpu\n";

int mark_keep_format(struct spool *spool, unsigned int id)
{
	struct buf one = { 0 }, all = { 0 };
	int ret;

	hypevents_format_head(MARK_EVENT, id, &one);
	buf_addstr(&one, mark_format);
	formats_add(&all, MARK_SYSTEM, one.data, one.len);
	ret = buf_status(&one) ?: buf_status(&all) ?: spool_append_text(spool, "formats", all.data, all.len);
	buf_release(&one);
	buf_release(&all);
	return ret ?: spool_set_number(spool, "hypertrace_id", id);
}

size_t mark_put(uint8_t *out, unsigned int id, const uint8_t *head, const char *guest, int vcpu,
		uint32_t client, const struct ring_event *ev)
{
	size_t len = strnlen(guest, MARK_GUEST_MAX);
	struct mark_record r = {
		.type = (uint16_t)id, .client = client, .vcpu = vcpu, .guest_time = ev->time
	};

	memcpy(r.head, head + sizeof(r.type), sizeof(r.head));
	memcpy(r.arg, ev->arg, sizeof(r.arg));
	r.guest = (uint32_t)((len + 1) << 16 | sizeof(r));
	memcpy(out, &r, sizeof(r));
	memcpy(out + sizeof(r), guest, len);
	out[sizeof(r) + len] = 0;
	return sizeof(r) + len + 1;
}

/*
 * Matches a doorbell with its event in a ring. The doorbell has the client and the lower 16 bits of the
 * number; the upper bits follow from the times between which the host saw the client reach that number.
 */
#define HALF 32768 /* count of numbers that a doorbell distinguishes */

/* A spool's copy of the guests' rings (rings.h), and the event of each doorbell. */

struct entries_guest {
	char *name;
	bool has_vcpus;	   /* that are known */
	uint64_t doorbell; /* the last one received; 0: none */
	uint64_t joined;   /* events with their doorbell */
	uint64_t orphans;  /* doorbells whose event was not read in time, or does not exist */
};

struct entries_vcpu {
	int tid, cpu;
	size_t guest;
};

struct entries {
	struct entries_guest *guests;
	size_t n_guests;
	struct entries_vcpu *vcpus;
	size_t n_vcpus;

	/* private */
	const uint8_t *map;
	size_t size;
	struct entry_block *blocks; /* by guest, client and number */
	size_t n_blocks;
	uint8_t *taken; /* a bit for each event */
};

struct entry_block {
	uint64_t guest_client;	    /* the guest in the upper half */
	const struct ring_block *b; /* in the map; its events follow */
	size_t bit;		    /* of the first in `taken` */
};

static int entries_load_guests(struct entries *e, const struct spool *spool)
{
	struct strlist lines = { 0 };
	struct buf text = { 0 };
	int ret = spool_get_text(spool, RINGS_GUESTS, &text);
	ret = ret ?: strlist_add_lines(&lines, text.data, text.len);
	for (size_t i = 0; i < lines.n && !ret; i++) {
		struct entries_vcpu v = { .guest = e->n_guests - 1 };
		struct entries_guest g = { 0 };

		if (sscanf(lines.v[i], "vcpu\t%d\t%d", &v.cpu, &v.tid) == 2 && e->n_guests) {
			e->guests[v.guest].has_vcpus = true;
			ret = array_push(&e->vcpus, &e->n_vcpus, &v, sizeof(v));
			continue;
		}
		if (strncmp(lines.v[i], "guest\t", 6)) {
			ret = -EBADMSG;
			break;
		}
		g.name = strdup(lines.v[i] + 6);
		ret = g.name ? array_push(&e->guests, &e->n_guests, &g, sizeof(g)) : -ENOMEM;
		if (ret)
			free(g.name);
	}
	strlist_release(&lines);
	buf_release(&text);
	return ret;
}

static int entries_map(struct entries *e, const struct spool *spool)
{
	int fd = openat(spool_dirfd(spool), "texts/" RINGS_EVENTS, O_RDONLY | O_CLOEXEC), ret = 0;
	struct stat st = { 0 };
	void *p;

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : 0;
	if (!ret && st.st_size) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		ret = p == MAP_FAILED ? -errno : 0;
		if (!ret) {
			e->map = p;
			e->size = (size_t)st.st_size;
		}
	}
	close(fd);
	return ret;
}

static int entry_compare(const void *a, const void *b)
{
	const struct entry_block *x = a, *y = b;

	return ORDER(x->guest_client, y->guest_client) ?: ORDER(x->b->first, y->b->first);
}

/* A kill may have cut the last one off. */
static int entries_load_blocks(struct entries *e)
{
	struct cursor c = cursor_at(e->map, e->size);
	const struct ring_block *b;
	size_t bits = 0;

	while ((b = cursor_take(&c, sizeof(*b)))) {
		struct entry_block x = { (uint64_t)b->guest << 32 | b->client, b, bits };

		if (!cursor_take(&c, b->events * sizeof(struct ring_event)))
			break;
		if (b->guest >= e->n_guests || (b->events && b->events != b->count))
			return -EBADMSG;
		if (b->doorbell)
			e->guests[b->guest].doorbell = b->doorbell;
		bits += b->events;
		if (array_push(&e->blocks, &e->n_blocks, &x, sizeof(x)))
			return -ENOMEM;
	}
	array_sort(e->blocks, e->n_blocks, sizeof(*e->blocks), entry_compare);
	e->taken = calloc(bits / 8 + 1, 1);
	return e->taken ? 0 : -ENOMEM;
}

/* By guest and client, then by the number at `offset`, which never falls within these. */
struct entry_key {
	uint64_t guest_client, value;
	size_t offset;
};

static bool entry_not_after(const void *entry, const void *key)
{
	const struct entry_block *x = entry;
	const struct entry_key *k = key;
	uint64_t v;

	if (x->guest_client != k->guest_client)
		return x->guest_client < k->guest_client;
	memcpy(&v, (const uint8_t *)x->b + k->offset, sizeof(v));
	return v <= k->value;
}

/* The client's last block whose number at `offset` is at most value, or NULL. */
static const struct entry_block *entry_last(const struct entries *e, uint64_t guest_client, size_t offset,
					    uint64_t value)
{
	struct entry_key k = { guest_client, value, offset };
	size_t i = array_lower_bound(e->blocks, e->n_blocks, sizeof(*e->blocks), entry_not_after, &k);

	return i && e->blocks[i - 1].guest_client == guest_client ? &e->blocks[i - 1] : NULL;
}

/*
 * Finds the guest of a thread; a thread that is no known vCPU belongs to the guest without known
 * vCPUs. false: no guest.
 */
static bool entries_guest_of(const struct entries *e, int tid, size_t *guest, int *vcpu)
{
	for (size_t i = 0; i < e->n_vcpus; i++) {
		*guest = e->vcpus[i].guest;
		*vcpu = e->vcpus[i].cpu;
		if (e->vcpus[i].tid == tid)
			return true;
	}
	*vcpu = -1;
	for (*guest = 0; *guest < e->n_guests; (*guest)++)
		if (!e->guests[*guest].has_vcpus)
			return true;
	return false;
}

/*
 * At that time the client had come as far as `low` for certain, and no further than `high`. Where these are
 * too far apart for 16 bits it is not known which event it is.
 */
static bool entry_number(const struct entry_block *seen, const struct entry_block *newest, uint32_t value,
			 uint64_t *number)
{
	uint64_t high = newest->b->first + newest->b->count - 1,
		 low = seen ? seen->b->first + seen->b->count - 1 : 0;

	*number = high - ((high - value) & 0xffff);
	return high - low >= HALF || *number > high ? false : *number + HALF > low;
}

#define KVM_MMIO_WRITE 2 /* KVM_TRACE_MMIO_WRITE, include/trace/events/kvm.h */
#define HEAD	       8 /* common_type to common_pid */

/* Offsets of kvm_mmio's fields. */
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

/* -ENOENT: it is another event's. */
static int mmio_parse(struct mmio_format *m, const struct dat_text *t)
{
	const struct {
		const char *name;
		unsigned int size, *offset;
	} fields[] = {
		{ "type", 4, &m->type }, { "len", 4, &m->len }, { "gpa", 8, &m->gpa }, { "val", 8, &m->val }
	};
	struct event_format f;
	int ret = event_format_parse(t->data, t->len, &f);

	if (ret)
		return ret;
	*m = (struct mmio_format){ .id = f.id, .size = HEAD };
	ret = strcmp(f.name, "kvm_mmio") ? -ENOENT : 0;
	for (size_t i = 0; i < ARRAY_SIZE(fields) && !ret; i++) {
		const struct event_field *x = event_format_field(&f, fields[i].name);

		if (!x || x->size != fields[i].size) {
			ret = -EBADMSG;
			break;
		}
		*fields[i].offset = x->offset;
		m->size = x->offset + x->size > m->size ? x->offset + x->size : m->size;
	}
	event_format_release(&f);
	return ret;
}

/* A number of that many bytes. */
static uint64_t record_number(const struct page_event *ev, unsigned int offset, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, ev->data + offset, size); /* little-endian, as file/dat/page.h */
	return v;
}

/* A doorbell's event is written, and no other doorbell gets it. Other writes to devices are passed over. */
static int joiner_record(struct joiner *j, const struct page_event *ev)
{
	const struct mmio_format *m = &j->mmio;
	struct entries *e = &j->entries;
	const struct entry_block *newest, *x = NULL;
	uint8_t record[MARK_RECORD_MAX];
	uint32_t value, client;
	uint64_t key, number = 0;
	bool found = false;
	size_t guest, bit = 0;
	int vcpu; /* -1: not known */

	if (ev->len < m->size || record_number(ev, 0, 2) != m->id ||
	    record_number(ev, m->type, 4) != KVM_MMIO_WRITE ||
	    record_number(ev, m->len, 4) != sizeof(uint32_t))
		return 0;
	value = (uint32_t)record_number(ev, m->val, 8); /* hypertrace_doorbell() */
	client = value >> 16;
	if (!entries_guest_of(e, (int)record_number(ev, 4, 4), &guest, &vcpu))
		return 0;
	key = (uint64_t)guest << 32 | client;
	newest = entry_last(e, key, offsetof(struct ring_block, from), ev->ts);
	if (record_number(ev, m->gpa, 8) !=
	    (newest && newest->b->doorbell ? newest->b->doorbell : e->guests[guest].doorbell))
		return 0;
	if (newest && entry_number(entry_last(e, key, offsetof(struct ring_block, seen), ev->ts), newest,
				   value, &number)) {
		x = entry_last(e, key, offsetof(struct ring_block, first), number);
		bit = x ? x->bit + (size_t)(number - x->b->first) : 0;
		found = x && number - x->b->first < x->b->count && x->b->events &&
			!(e->taken[bit / 8] & 1 << bit % 8);
	}
	e->guests[guest].joined += found;
	e->guests[guest].orphans += !found;
	if (!found)
		return page_write_lost(&j->writer, 1);
	e->taken[bit / 8] |= (uint8_t)(1 << bit % 8);
	return page_write(&j->writer, ev->ts, record,
			  mark_put(record, j->id, ev->data, e->guests[guest].name, vcpu, client,
				   (const struct ring_event *)(x->b + 1) + (number - x->b->first)));
}

static int joiner_page(void *joiner, void *page, size_t size)
{
	struct joiner *j = joiner;
	struct page_reader pr;
	struct page_event ev;
	int ret, more = 0;
	if (page_reader_init(&pr, &j->layout, page, size))
		return page_write_lost(&j->writer, 0);
	ret = pr.missed ? page_write_lost(&j->writer, pr.missed_count) : 0;
	while (!ret && (more = page_next(&pr, &ev)) == 1)
		ret = joiner_record(j, &ev);
	return ret ?: more < 0 ? page_write_lost(&j->writer, 0) : 0;
}

static void joiner_tell(const struct joiner *j, size_t guest, const struct log *log)
{
	const struct entries *e = &j->entries;
	const struct entries_guest *g = &e->guests[guest];
	const uint64_t from = spool_get_number(j->spool, "hypertrace_from", 0);
	const uint64_t to = spool_get_number(j->spool, "hypertrace_to", 0);
	uint64_t alone = 0, missed = 0;

	/* of the blocks that were there for certain between from and to (0: no end): not joined, not read in
	 * time */
	for (size_t i = 0; i < e->n_blocks; i++) {
		const struct entry_block *x = &e->blocks[i];

		if (x->guest_client >> 32 != guest || x->b->from < from || (to && x->b->seen > to))
			continue;
		missed += x->b->events ? 0 : x->b->count;
		for (size_t k = x->bit; k < x->bit + x->b->events; k++)
			alone += !(e->taken[k / 8] & 1 << k % 8);
	}
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

int marks_join(struct spool *spool, const struct log *log)
{
	struct joiner j = { .spool = spool, .out = -1 };
	struct spool_formats formats = { 0 };
	const struct spool_buffer *b;
	int ret, found = -ENOENT;

	while ((b = spool_buffer(spool, j.number)) && strcmp(b->name, RINGS_BUFFER))
		j.number++;
	j.id = (unsigned int)spool_get_number(spool, "hypertrace_id", 0);
	if (!b || !j.id || spool_is_rewritten(spool, SPOOL_JOINED))
		return 0;
	ret = entries_load_guests(&j.entries, spool) ?: entries_map(&j.entries, spool) ?:
	      entries_load_blocks(&j.entries) ?: spool_formats_load(&formats, spool, NULL);
	for (size_t s = 0; !ret && s < formats.n_systems; s++)
		for (size_t i = 0; !strcmp(formats.systems[s].name, "kvm") && i < formats.systems[s].n; i++)
			if (found == -ENOENT)
				found = mmio_parse(&j.mmio, &formats.systems[s].formats[i]);
	spool_formats_release(&formats);
	ret = ret ?: found ?: spool_page_layout(spool, &j.layout) ?: spool_rewrite_begin(spool);
	j.layout.size = b->page_size;
	for (unsigned int cpu = 0; cpu < b->n_cpus && !ret; cpu++) {
		j.out = spool_rewrite_fd(spool, j.number, cpu);
		ret = j.out < 0 ? j.out : page_writer_init(&j.writer, j.layout.size, page_emit_fd, &j.out);
		if (!ret) {
			ret = spool_pages_walk(spool, j.number, cpu, 0, joiner_page, &j)
				      ?: page_flush(&j.writer, true);
			page_writer_release(&j.writer);
		}
		fd_close(&j.out);
	}
	ret = ret ?: spool_rewrite_end(spool, SPOOL_JOINED);
	for (size_t i = 0; i < j.entries.n_guests; i++) {
		if (!ret)
			joiner_tell(&j, i, log);
		free(j.entries.guests[i].name);
	}
	free(j.entries.guests);
	free(j.entries.vcpus);
	free(j.entries.blocks);
	free(j.entries.taken);
	if (j.entries.map)
		munmap((void *)(uintptr_t)j.entries.map, j.entries.size);
	return ret ? log_fail_errno(log, ret, "the guests' hypertrace events cannot be joined") : 0;
}
