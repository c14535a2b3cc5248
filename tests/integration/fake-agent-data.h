/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a FAKE agent has in its guest, byte by byte: the metadata of a trace.dat
 * as trace-cmd 3.1.6's agent sends it (trace-cmd.dat.v7(5), .v6(5)), and pages of
 * events. On purpose with none of hyptrace's own code.
 */
#ifndef FAKE_AGENT_DATA_H
#define FAKE_AGENT_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define PAGE   4096u
#define EVENTS 100u /* of a page */
#define TICK   316  /* the id of the guest's event */

/* ---- bytes ----------------------------------------------------------------------- */

struct bytes {
	uint8_t *p;
	size_t n;
};

static inline void add(struct bytes *b, const void *data, size_t n)
{
	b->p = realloc(b->p, b->n + n + 1);
	if (!b->p)
		abort();
	memcpy(b->p + b->n, data, n);
	b->n += n;
}

static inline void add_text(struct bytes *b, const char *s)
{
	add(b, s, strlen(s));
}

static inline void add_str(struct bytes *b, const char *s) /* with its NUL */
{
	add(b, s, strlen(s) + 1);
}

#define ADD(b, type, v) add(b, &(type){ (type)(v) }, sizeof(type))

static inline void drop(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){ 0 };
}

/* ---- texts ------------------------------------------------------------------------- */

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n\n\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";
#define COMMON                                                                                               \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                      \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                       \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
static const char function[] =
	"name: function\nID: 1\n" COMMON "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\n"
	"print fmt: \" %ps\", (void *)REC->ip\n";
static const char guest_tick[] =
	"name: guest_tick\nID: 316\n" COMMON "\tfield:unsigned int n;\toffset:8;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"n=%u\", REC->n\n";

/* ---- metadata ------------------------------------------------------------------------- */

enum flaw {
	SOUND,
	V6,	      /* sound too: what trace-cmd record --file-version 6 asks for */
	ZIPPED,	      /* sound too: what stock's agent sends */
	PRINT_ELVIS,  /* sound but for a print format that doubles with each of its levels */
	PRINT_CALLS,  /* one of 90,000 calls that are not closed */
	PRINT_FIELDS, /* hundreds of them, each of which names its last field thousands of times */
	BENT,	      /* its compressed bytes are not what they were */
	BOMB,	      /* says it will be 4 GiB */
	NO_HEADERS,
	NO_FORMATS_END, /* more formats are announced than bytes are there */
	RING,		/* its options lead to themselves */
	BAD_SYSTEM,	/* the name of one would be two lines of the spool */
	OWN_OPTION,	/* one that only the writer of a file makes */
	GARBAGE,
	NO_DAT,
	CUT,
};

static inline void put_section(struct bytes *out, struct bytes *options, uint16_t id, struct bytes *body,
			       enum flaw flaw)
{
	bool zip = flaw == ZIPPED || flaw == BENT || flaw == BOMB || flaw == PRINT_FIELDS;
	size_t max = ZSTD_compressBound(body->n), n;
	uint8_t *to = malloc(max);

	if (flaw == NO_HEADERS && id == 16)
		goto out;
	ADD(options, uint16_t, id);
	ADD(options, uint32_t, 8);
	ADD(options, uint64_t, out->n);
	n = zip ? ZSTD_compress(to, max, body->p, body->n, 1) : body->n;
	ADD(out, uint16_t, id);
	ADD(out, uint16_t, zip);
	ADD(out, uint32_t, 0);
	ADD(out, uint64_t, n + (zip ? 8 : 0));
	if (zip) {
		ADD(out, uint32_t, n);
		ADD(out, uint32_t, flaw == BOMB ? UINT32_MAX : body->n);
	}
	if (flaw == BENT)
		for (size_t i = 0; i < n; i += 3)
			to[i] ^= 0x55;
	add(out, zip ? to : body->p, n);
out:
	free(to);
	drop(body);
}

static inline struct bytes headers(void)
{
	struct bytes b = { 0 };

	add_str(&b, "header_page");
	ADD(&b, uint64_t, strlen(header_page));
	add_text(&b, header_page);
	add_str(&b, "header_event");
	ADD(&b, uint64_t, strlen(header_event));
	add_text(&b, header_event);
	return b;
}

static inline struct bytes ftrace_formats(enum flaw flaw)
{
	struct bytes b = { 0 };

	ADD(&b, uint32_t, flaw == NO_FORMATS_END ? 0x80000000 : 1);
	ADD(&b, uint64_t, strlen(function));
	add_text(&b, function);
	return b;
}

static inline void add_times(struct bytes *b, const char *s, unsigned int n)
{
	while (n--)
		add_text(b, s);
}

/* An event whose print format costs who reads it; its number is its name. */
static inline struct bytes costly(enum flaw flaw, unsigned int number)
{
	struct bytes b = { 0 };
	char line[200];

	snprintf(line, sizeof(line), "name: costly%u\nID: %u\n", number, 1000 + number);
	add_text(&b, line);
	add_text(&b, COMMON);
	for (unsigned int i = 0; i < (flaw == PRINT_FIELDS ? 500 : 1); i++) {
		snprintf(line, sizeof(line), "\tfield:unsigned int n%u;\toffset:8;\tsize:4;\tsigned:0;\n", i);
		add_text(&b, line);
	}
	add_text(&b, "\nprint fmt: \"%d\", ");
	if (flaw == PRINT_ELVIS) {
		add_times(&b, "(", 40);
		add_text(&b, "REC->n0");
		add_times(&b, " ?: 1)", 40);
	} else if (flaw == PRINT_CALLS) {
		add_times(&b, "str_yes_no(", 90000);
	} else {
		add_text(&b, "f(0");
		add_times(&b, ",REC->n499", 6500);
		add_text(&b, ")");
	}
	add_text(&b, "\n");
	return b;
}

static inline struct bytes formats(enum flaw flaw)
{
	unsigned int n_costly = flaw == PRINT_FIELDS ? 300 : flaw == PRINT_ELVIS || flaw == PRINT_CALLS;
	struct bytes b = { 0 };

	ADD(&b, uint32_t, 1);
	add_str(&b, flaw == BAD_SYSTEM ? "fake 1\nx\nftrace" : "fake");
	ADD(&b, uint32_t, 1 + n_costly);
	ADD(&b, uint64_t, strlen(guest_tick));
	add_text(&b, guest_tick);
	for (unsigned int i = 0; i < n_costly; i++) {
		struct bytes one = costly(flaw, i);

		ADD(&b, uint64_t, one.n);
		add(&b, one.p, one.n);
		drop(&one);
	}
	return b;
}

/* kallsyms, printk (both with a u32 length), names of tasks (u64) */
static inline struct bytes names(uint16_t id)
{
	static const char *const texts[] = { "ffff800080000000 T _text\n", "", "0 <idle>\n77 guest-task\n" };
	const char *s = texts[id - 19];
	struct bytes b = { 0 };

	if (id == 21)
		ADD(&b, uint64_t, strlen(s));
	else
		ADD(&b, uint32_t, strlen(s));
	add_text(&b, s);
	return b;
}

static inline void put_option(struct bytes *b, uint16_t id, const void *data, size_t n)
{
	ADD(b, uint16_t, id);
	ADD(b, uint32_t, n);
	add(b, data, n);
}

static inline void put_options(struct bytes *b, uint64_t trace_id, uint32_t cpus, enum flaw flaw)
{
	static const char clocks[] = "local global counter uptime perf mono mono_raw [boot] tai\n";
	static const char uname[] = "Linux guest 6.12.0 aarch64", version[] = "3.1.6 not-a-git-repo";

	put_option(b, 4, clocks, sizeof(clocks));
	put_option(b, 5, uname, sizeof(uname));
	put_option(b, 9, version, sizeof(version));
	put_option(b, 11, &trace_id, sizeof(trace_id));
	put_option(b, 8, &cpus, sizeof(cpus));
	if (flaw == OWN_OPTION)
		put_option(b, 17, "12345678", 8);
}

static inline struct bytes metadata_v7(uint64_t trace_id, uint32_t cpus, enum flaw flaw)
{
	struct bytes out = { 0 }, options = { 0 }, b;
	uint64_t at, next;
	size_t place;

	add(&out, "\x17\x08\x44tracing7\0\0\x08", 14);
	ADD(&out, uint32_t, PAGE);
	add_str(&out, flaw == SOUND ? "none" : "zstd");
	add_str(&out, "1.5.4");
	place = out.n;
	ADD(&out, uint64_t, 0);
	for (uint16_t id = 16; id <= 21; id++) {
		b = id == 16   ? headers()
		    : id == 17 ? ftrace_formats(flaw)
		    : id == 18 ? formats(flaw)
			       : names(id);
		put_section(&out, &options, id, &b, flaw);
	}
	put_options(&options, trace_id, cpus, SOUND);
	at = out.n;
	next = flaw == RING ? at : 0;
	put_option(&options, 0, &next, sizeof(next));
	memcpy(out.p + place, &at, sizeof(at));
	add(&out, "\0\0\0\0\0\0\0\0", 8);
	ADD(&out, uint64_t, options.n);
	add(&out, options.p, options.n);
	drop(&options);
	return out;
}

static inline struct bytes metadata_v6(uint64_t trace_id, uint32_t cpus, enum flaw flaw)
{
	struct bytes out = { 0 }, b;

	add(&out, "\x17\x08\x44tracing6\0\0\x08", 14);
	ADD(&out, uint32_t, PAGE);
	for (uint16_t id = 16; id <= 21; id++) {
		b = id == 16   ? headers()
		    : id == 17 ? ftrace_formats(flaw)
		    : id == 18 ? formats(flaw)
			       : names(id);
		add(&out, b.p, b.n);
		drop(&b);
	}
	ADD(&out, uint32_t, cpus);
	add_str(&out, "options  ");
	put_options(&out, trace_id, cpus, flaw);
	ADD(&out, uint16_t, 0);
	return out;
}

static inline struct bytes metadata(uint64_t trace_id, uint32_t cpus, enum flaw flaw)
{
	struct bytes b = { 0 };

	if (flaw == V6 || flaw == OWN_OPTION)
		return metadata_v6(trace_id, cpus, flaw);
	if (flaw == NO_DAT || flaw == GARBAGE) {
		add_text(&b, flaw == NO_DAT ? "HTTP/1.1 400 Bad Request\r\n\r\n" : "");
		for (uint32_t i = 0, x = 1; flaw == GARBAGE && i < 30000; i++)
			ADD(&b, uint8_t, (x = x * 1664525 + 1013904223) >> 24);
		return b;
	}
	b = metadata_v7(trace_id, cpus, flaw);
	if (flaw == CUT)
		b.n /= 2;
	return b;
}

/* ---- pages -------------------------------------------------------------------------------- */

/* EVENTS guest_tick, 1 us apart, numbered from `first` on; page `number` begins 99.999991 s later.
 */
static inline void make_page(uint8_t page[PAGE], uint32_t first, uint64_t number)
{
	uint64_t ts = 99999991000 + number * EVENTS * 1000;
	size_t at = 16;

	memset(page, 0, PAGE);
	memcpy(page, &ts, 8);
	for (uint32_t i = 0; i < EVENTS; i++) {
		struct {
			uint32_t head;
			uint16_t type;
			uint8_t flags, preempt;
			int32_t pid;
			uint32_t n;
		} e = { .head = (i ? 1000u : 0) << 5 | 3, .type = TICK, .pid = 77, .n = first + i };

		memcpy(page + at, &e, sizeof(e));
		at += sizeof(e);
	}
	page[8] = (uint8_t)(at - 16);
	page[9] = (uint8_t)((at - 16) >> 8);
}

#endif
