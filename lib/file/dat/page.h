/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PAGE_H
#define HYPTRACE_PAGE_H

#include "base/std.h"

/*
 * Sub-buffers ("pages") of the kernel's ring buffer, as trace_pipe_raw hands
 * them out and as trace.dat stores them: u64 time stamp (ns), local_t commit
 * (8 bytes here: 64-bit kernels only), then events. Layout: kernel
 * include/linux/ring_buffer.h, kernel/trace/ring_buffer.c and the text of
 * events/header_page. Little-endian machines only.
 */

/* Flags in the commit word, kernel/trace/ring_buffer.c RB_MISSED_*. */
#define PAGE_MISSED_EVENTS (1u << 31) /* events were lost before this page */
#define PAGE_MISSED_STORED (1u << 30) /* ... and their number (8 bytes) follows the data */

/* Layout of a page; page_layout_parse() reads it from header_page. */
struct page_layout {
	unsigned int commit_offset; /* of the commit word; normally 8 */
	unsigned int commit_size;   /* 8 (or 4 on 32-bit kernels) */
	unsigned int data_offset;   /* of the first event; normally 16 */
	unsigned int size;	    /* bytes in a whole page: data_offset + data size */
};

extern const struct page_layout page_layout_default; /* 4096-byte page of a 64-bit kernel */

/*
 * Parses the text of events/header_page. Early Android kernels leave out the
 * `overwrite` field and print "size:%lu" without ';': both are understood.
 * -EBADMSG for anything that cannot be a page.
 */
int page_layout_parse(const char *text, size_t len, struct page_layout *out);

/* The same of a file at dirfd (AT_FDCWD: a path). -ENOENT and so on as well. */
int page_layout_read(int dirfd, const char *path, struct page_layout *out);

struct page_event {
	uint64_t ts;	     /* ns, or ticks of a counter clock */
	const uint8_t *data; /* the record, inside the page; may be unaligned */
	size_t len;	     /* bytes: a host's records are padded to 4, a hypervisor's are exact */
};

/* The event's id, which comes first in every kernel's records; 0: the record is too short for one. */
static inline unsigned int page_event_id(const uint8_t *data, size_t len)
{
	return len < 2 ? 0 : (unsigned int)data[0] | (unsigned int)data[1] << 8;
}

/* Event header: type_len in the low bits (little endian), time delta above; 1 to 28: the length in words. */
#define PAGE_TYPE_BITS	  5
#define PAGE_TYPE_LEN_MAX 28

struct page_reader {
	const uint8_t *p, *end;
	uint64_t ts;
	bool missed;	       /* events were lost before this page */
	uint64_t missed_count; /* their number; 0 = not known */
};

/*
 * Begins with one page of `len` bytes. -EBADMSG when the header cannot be true
 * (commit beyond the page). An empty page is fine.
 */
int page_reader_init(struct page_reader *r, const struct page_layout *layout, const void *page, size_t len);
/*
 * 1: *ev filled in. 0: end of the page. -EBADMSG: a corrupt event; what came
 * before is good, and nothing comes after.
 */
int page_next(struct page_reader *r, struct page_event *ev);
/*
 * The same of an event like most: up to 112 bytes, less than 2^27 after the one before. False: page_next()
 * has to look; *ev is as before. Inline: there are millions.
 */
static inline bool page_next_short(struct page_reader *r, struct page_event *ev)
{
	size_t left = (size_t)(r->end - r->p);
	uint32_t head, words;

	if (left < sizeof(head))
		return false;
	memcpy(&head, r->p, sizeof(head));
	words = head & ((1u << PAGE_TYPE_BITS) - 1);
	if (words - 1 >= PAGE_TYPE_LEN_MAX || left < (words + 1) * 4)
		return false;
	ev->ts = r->ts += head >> PAGE_TYPE_BITS;
	ev->data = r->p + sizeof(head);
	ev->len = words * 4;
	r->p = ev->data + ev->len;
	return true;
}

/* Counts the events of a whole page, up to a corrupt one. *last: the time of the last one, 0: none. */
uint64_t page_count(const struct page_layout *layout, const void *page, uint64_t *last);

/*
 * Writes the commit word of a page: bytes of events, with PAGE_MISSED_EVENTS or without. What is in it stays.
 */
void page_set_commit(const struct page_layout *layout, void *page, uint32_t commit);
/* Adds PAGE_MISSED_EVENTS to it, of an unknown number. */
void page_mark_missed(const struct page_layout *layout, void *page);

/* Largest record in bytes that fits into a page of `size` bytes, next to a count of lost events. */
size_t page_max_record(size_t size);

struct page_writer {
	uint8_t *page;
	size_t size; /* of a page, bytes */
	size_t used; /* bytes, header included; 0: no page begun */
	uint64_t last_ts;
	bool missed; /* to be marked in the next page */
	uint64_t missed_count;
	bool page_missed; /* of the page begun */
	uint64_t page_missed_count;
	int (*emit)(void *ctx, const void *page, size_t size);
	void *ctx;
};

/*
 * emit gets each finished page, zero-padded to size; what it returns (-errno) is
 * passed on. -EINVAL: a page of that size cannot be.
 */
int page_writer_init(struct page_writer *w, size_t size,
		     int (*emit)(void *ctx, const void *page, size_t size), void *ctx);
/* For emit: writes the page to the descriptor that ctx points to. */
int page_emit_fd(void *fd, const void *page, size_t size);
void page_writer_release(struct page_writer *w);
/*
 * Adds a record. A time before the last one begins a new page (time stamps
 * within a page are unsigned deltas). -EMSGSIZE: longer than page_max_record.
 */
int page_write(struct page_writer *w, uint64_t ts, const void *data, size_t len);
/*
 * The next record comes after `count` lost ones (0 = unknown number): ends the current page and marks the
 * next one. Losses with no record between add up; with one of unknown number among them the sum is unknown.
 */
int page_write_lost(struct page_writer *w, uint64_t count);
/* Emits the page begun, if any. A pending loss gets an empty page of its own only if `final`. */
int page_flush(struct page_writer *w, bool final);
/*
 * The page begun as page_flush would emit it, w->size bytes, which the next call
 * changes; NULL: none begun. More records can follow it.
 */
const void *page_writer_peek(struct page_writer *w);

#endif
