/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEST_TEXT_JUDGE_H
#define HYPTRACE_TEST_TEXT_JUDGE_H

/* Compiled texts beside libtraceevent's, on records made up of an event's format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/text.h"
#include "base/array.h"
#include "../leaks.h"

#ifdef __SANITIZE_ADDRESS__ /* the plain program has them all */
#define JUDGE_RECORDS 50
#else
#define JUDGE_RECORDS 1000
#endif
#define JUDGE_HOSTILE 100
#define JUDGE_MAX     4096 /* bytes of a record */

struct judge {
	uint64_t state;
	struct text_scratch own;
	struct padded room;
	struct trace_seq seq;
	struct buf text;
	uint8_t *rec;
	size_t len;
	size_t compiled, refused, wrong;
	uint64_t *seen; /* of formats that were judged */
	size_t n_seen;
	bool verbose;
};

/* What takes a judge most of his time: libtraceevent asks for 4 KiB to print a word. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "max_free_fill_size=0:max_malloc_fill_size=0:quarantine_size_mb=4:allocator_release_to_os_"
	       "interval_ms=-1";
}

static inline void judge_init(struct judge *j)
{
	*j = (struct judge){ .state = 1 };
	if (text_scratch_init(&j->own) || padded_init(&j->room))
		abort();
	trace_seq_init(&j->seq);
	j->rec = malloc(JUDGE_MAX + 1);
}

static inline void judge_release(struct judge *j)
{
	text_scratch_release(&j->own);
	padded_release(&j->room);
	trace_seq_destroy(&j->seq);
	buf_release(&j->text);
	free(j->rec);
	free(j->seen);
}

static inline uint64_t judge_hash(uint64_t h, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3ull;
	return h;
}

/* Whether the same format was judged before, as captures of one kernel have it. */
static inline bool judge_knows(struct judge *j, const struct tep_event *e)
{
	uint64_t h = judge_hash(0, e->name, strlen(e->name));

	h = judge_hash(h, e->print_fmt.format, e->print_fmt.format ? strlen(e->print_fmt.format) : 0);
	h = judge_hash(h, &e->handler, sizeof(e->handler));
	h = judge_hash(h, &e->flags, sizeof(e->flags));
	for (const struct tep_format_field *f = e->format.fields; f; f = f->next) {
		h = judge_hash(h, f->name, strlen(f->name));
		h = judge_hash(h, f->type, strlen(f->type));
		h = judge_hash(h, &f->offset, sizeof(f->offset) + sizeof(f->size));
	}
	for (size_t i = 0; i < j->n_seen; i++)
		if (j->seen[i] == h)
			return true;
	if (array_push(&j->seen, &j->n_seen, &h, sizeof(h)))
		abort();
	return false;
}

/* xorshift64* */
static inline uint64_t judge_random(struct judge *j)
{
	j->state ^= j->state >> 12;
	j->state ^= j->state << 25;
	j->state ^= j->state >> 27;
	return j->state * 0x2545f4914f6cdd1dull;
}

static inline uint64_t judge_below(struct judge *j, uint64_t n)
{
	return judge_random(j) % n;
}

/* Small ones, single bits, edges, and any. */
static inline uint64_t judge_number(struct judge *j)
{
	uint64_t v = judge_random(j);

	switch (judge_below(j, 7)) {
	case 0:
		return 0;
	case 1:
		return v % 40;
	case 2:
		return 1ull << v % 64;
	case 3:
		return -(v % 40);
	case 4:
		return v & judge_random(j) & judge_random(j);
	case 5:
		return 0xffffffff80000000ull + v % 0x2000;
	default:
		return v;
	}
}

/* Letters up to a NUL, mostly; once in a while any bytes. */
static inline void judge_string(struct judge *j, uint8_t *p, size_t n)
{
	bool any = !judge_below(j, 8);
	size_t end = n ? judge_below(j, n + 1) : 0;

	for (size_t i = 0; i < n; i++)
		p[i] = any ? (uint8_t)judge_random(j) : (uint8_t)(i < end ? ' ' + judge_below(j, 95) : 0);
}

static inline size_t judge_fixed_len(const struct tep_event *e)
{
	size_t len = 8;

	for (int own = 0; own < 2; own++)
		for (const struct tep_format_field *f = own ? e->format.fields : e->format.common_fields; f;
		     f = f->next)
			if ((size_t)(f->offset + f->size) > len && f->offset + f->size < JUDGE_MAX / 2)
				len = (size_t)(f->offset + f->size);
	return len;
}

static inline void judge_field(struct judge *j, const struct tep_format_field *f, size_t fixed)
{
	uint8_t *p = j->rec + f->offset;
	uint64_t v = judge_number(j);

	if ((size_t)(f->offset + f->size) > fixed)
		return;
	if (f->flags & TEP_FIELD_IS_DYNAMIC && f->size == 4) {
		size_t at = fixed + judge_below(j, j->len - fixed + 1), n = judge_below(j, j->len - at + 1);
		size_t from = f->flags & TEP_FIELD_IS_RELATIVE ? (size_t)(f->offset + f->size) : 0;
		uint32_t loc = (uint32_t)(n << 16 | (at - from));

		judge_string(j, j->rec + at, n);
		memcpy(p, &loc, sizeof(loc));
	} else if (f->flags & TEP_FIELD_IS_ARRAY && judge_below(j, 4)) {
		judge_string(j, p, (size_t)f->size);
	} else {
		for (int i = 0; i < f->size; i += 8)
			memcpy(p + i, &v, f->size - i < 8 ? (size_t)(f->size - i) : 8);
	}
}

static inline void judge_make(struct judge *j, const struct tep_event *e)
{
	size_t fixed = judge_fixed_len(e);

	j->len = fixed + judge_below(j, 120);
	for (size_t i = 0; i < j->len; i++)
		j->rec[i] = (uint8_t)judge_random(j);
	for (int own = 0; own < 2; own++)
		for (const struct tep_format_field *f = own ? e->format.fields : e->format.common_fields; f;
		     f = f->next)
			judge_field(j, f, fixed);
}

/* Short, or of bytes that point anywhere. */
static inline void judge_hostile(struct judge *j, const struct tep_event *e)
{
	judge_make(j, e);
	switch (judge_below(j, 5)) {
	case 0:
		memset(j->rec, 0xff, j->len);
		break;
	case 1:
		for (size_t i = 0; i < j->len; i++)
			j->rec[i] = (uint8_t)judge_random(j);
		break;
	case 2: /* no string ends */
		for (size_t i = 8; i < j->len; i++)
			j->rec[i] |= !j->rec[i];
		break;
	default:
		break;
	}
	if (judge_below(j, 2))
		j->len = 2 + judge_below(j, j->len - 1);
}

static inline void judge_expect(struct judge *j, const struct tep_event *e)
{
	struct tep_record r = padded_record(&j->room, j->rec, j->len);

	if (r.size < tepfile_least_size(e))
		r.size = tepfile_least_size(e);
	trace_seq_reset(&j->seq);
	tep_print_event(e->tep, &j->seq, &r, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&j->seq);
}

/* Unaligned, and with nothing behind it that may be read. */
static inline bool judge_record(struct judge *j, const struct text_program *p, const struct tep_event *e)
{
	const struct tep_format_field *named = text_named(p);
	unsigned long long pid = 0;
	uint8_t *block;
	bool same;

	memcpy(j->rec, &(uint16_t){ (uint16_t)e->id }, 2);
	if (named)
		tep_read_number_field((struct tep_format_field *)named, j->rec, &pid);
	judge_expect(j, e);
	block = malloc(j->len + 1);
	memcpy(block + 1, j->rec, j->len);
	j->text.len = 0;
	/* the second time its text may be kept */
	for (int i = 0; i < 2; i++)
		text_print(p, block + 1, j->len, tep_data_comm_from_pid(e->tep, (int)pid), &j->own, &j->text);
	free(block);
	same = buf_str(&j->text) && j->text.len == 2 * (size_t)j->seq.len &&
	       !memcmp(j->text.data, j->seq.buffer, j->seq.len) &&
	       !memcmp(j->text.data + j->seq.len, j->seq.buffer, j->seq.len);
	if (!same) {
		fprintf(stderr, "# %s:%s, %zu bytes\n# print fmt: %s\n# want: %s\n# twice: %s\n# ", e->system,
			e->name, j->len, e->print_fmt.format, j->seq.buffer, buf_str(&j->text));
		for (size_t i = 0; i < j->len; i++)
			fprintf(stderr, "%02x%s", j->rec[i], i % 8 == 7 ? " " : "");
		fputc('\n', stderr);
	}
	return same;
}

/* Of an empty CPU mask, libtraceevent asks for 4 GiB, which takes ASan half a second. */
static inline int judge_every(const struct tep_event *e)
{
#ifdef __SANITIZE_ADDRESS__
	for (const struct tep_format_field *f = e->format.fields; f; f = f->next)
		if (strstr(f->type, "cpumask"))
			return 150;
#else
	(void)e;
#endif
	return 1;
}

/* All of one event; false: a text differs. */
static inline bool judge_event(struct judge *j, struct tep_event *e)
{
	struct text_program *p;
	char why[TEXT_WHY_MAX];
	int ret = text_compile(&p, e, why);
	bool ok = true;

	if (judge_knows(j, e)) {
		text_free(p);
		return true;
	}
	if (ret) {
		j->refused++;
		if (j->verbose)
			fprintf(stderr, "# %s:%s: %s\n", e->system, e->name, why);
		return ret == -ENOTSUP && *why;
	}
	j->compiled++;
	for (int i = 0; i < JUDGE_RECORDS + JUDGE_HOSTILE && ok; i += judge_every(e)) {
		if (i < JUDGE_RECORDS)
			judge_make(j, e);
		else
			judge_hostile(j, e);
		ok = judge_record(j, p, e);
	}
	j->wrong += !ok;
	memset(j->own.kept, 0, sizeof(j->own.kept));
	text_free(p);
	return ok;
}

#endif
