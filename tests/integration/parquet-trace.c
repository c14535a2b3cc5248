// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat for parquet.t: RECORDS records of a number of EVENTS, one after the other, with a
 * field n, of LEN bytes each. odd: of events whose names, fields and values are all that a file may think of,
 * one record each. usage: parquet-trace OUT EVENTS RECORDS LEN parquet-trace OUT odd
 */
#define MAKER_CPUS 1
#include "trace-maker.h"

#define FIRST_ID 100

/* ---- odd events ------------------------------------------------------------------------ */

#define LONG_20	 "a_long_name_of_twenty"
#define LONG_200 LONG_20 LONG_20 LONG_20 LONG_20 LONG_20 LONG_20 LONG_20 LONG_20 LONG_20 LONG_20

#define FIELD(type, offset, size) "\tfield:" type ";\toffset:" #offset ";\tsize:" #size ";\tsigned:0;\n"

/* Of each a record of 24 bytes, or of len: an id, a pid, and then "ABCD..." */
static const struct odd {
	const char *system, *name, *fields;
	uint32_t len;
} odd[] = {
	{ "..", "up", "", 0 },
	{ "a/../../b", "slash", "", 0 },
	{ "k=v", "equals", "", 0 },
	{ "%41", "percent", "", 0 },
	{ "x y'\"*", "blank", "", 0 },
	{ "\x1b[31m\n", "terminal", "", 0 },
	{ "\xff", "bytes", "", 0 },
	{ "\xc3\xa4", "letters", "", 0 },
	{ "__HIVE_DEFAULT_PARTITION__", "null", "", 0 },
	{ LONG_200 "1", LONG_200 "1", "", 0 },
	{ LONG_200 "2", LONG_200 "1", "", 0 },
	{ "s", LONG_200 "1", "", 0 },
	{ "s", LONG_200 "2", "", 0 },
	{ "f", "same", FIELD("u8 n", 8, 1) FIELD("u8 N", 9, 1) FIELD("u8 n_", 10, 1) FIELD("u8 n", 11, 1),
	  0 },
	{ "f", "own", FIELD("u8 ts", 8, 1) FIELD("u8 fields", 9, 1), 0 },
	{ "f", "beyond", FIELD("u64 n", 20, 8) FIELD("char s[16]", 12, 16) FIELD("u16 v[40]", 8, 80), 0 },
	{ "f", "no_nul", FIELD("char s[8]", 8, 8) FIELD("char end[]", 16, 0), 0 },
	{ "f", "pieces", FIELD("u32 v[3]", 8, 11) FIELD("u64 none[]", 24, 0), 0 },
	{ "f", "place", FIELD("__data_loc char[] s", 8, 4) FIELD("__data_loc u8[] v", 12, 4), 0 },
	{ "f", "structs", FIELD("struct thing t", 8, 12) FIELD("u8 n", 8, 1), 0 },
	{ "f", "short", FIELD("u32 n", 8, 4), 8 },
};

/* ---- formats ------------------------------------------------------------------------------- */

static struct dat_text format_of(const char *name, size_t id, const char *fields)
{
	struct buf b = { 0 };

	maker_format_begin(&b, name, id);
	buf_printf(&b, "%s\nprint fmt: \"x\"\n", fields);
	return maker_text(b);
}

static struct dat_system *make_odd(void)
{
	struct dat_system *systems = calloc(ARRAY_SIZE(odd), sizeof(*systems));
	struct dat_text *formats = calloc(ARRAY_SIZE(odd), sizeof(*formats));

	must(systems && formats ? 0 : -ENOMEM);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		formats[i] = format_of(odd[i].name, FIRST_ID + i, odd[i].fields);
		systems[i] = (struct dat_system){ odd[i].system, 1, &formats[i] };
	}
	return systems;
}

static struct dat_system *make_many(size_t n)
{
	struct dat_system *system = calloc(1, sizeof(*system));
	struct dat_text *formats = calloc(n, sizeof(*formats));

	must(system && formats ? 0 : -ENOMEM);
	for (size_t i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "e%zu", i);
		formats[i] = format_of(name, FIRST_ID + i, FIELD("u32 n", 8, 4));
	}
	*system = (struct dat_system){ "many", (uint32_t)n, formats };
	return system;
}

/* ---- records --------------------------------------------------------------------------------- */

static void put_record(struct page_writer *w, size_t id, uint64_t ts, uint32_t n, uint32_t len)
{
	uint8_t record[2048] = { 0 };
	uint16_t type = (uint16_t)id;

	memcpy(record, &type, sizeof(type));
	record[4] = 7;
	for (uint8_t i = 8; i < 24; i++)
		record[i] = (uint8_t)('A' + i - 8);
	if (n)
		memcpy(record + 8, &n, sizeof(n));
	must(len <= sizeof(record) ? page_write(w, ts, record, len) : -EINVAL);
}

int main(int argc, char **argv)
{
	bool is_odd = argc == 3 && !strcmp(argv[2], "odd");
	size_t n = is_odd ? ARRAY_SIZE(odd) : argc == 5 ? strtoul(argv[2], NULL, 0) : 0;
	size_t records = is_odd ? n : argc == 5 ? strtoul(argv[3], NULL, 0) : 0;
	uint32_t len = argc == 5 ? (uint32_t)strtoul(argv[4], NULL, 0) : 24;
	struct page_writer *w = maker_add("")->w;
	struct dat_file f = maker_file();

	if (!n)
		die("usage: parquet-trace OUT EVENTS RECORDS LEN | OUT odd");
	f.systems = is_odd ? make_odd() : make_many(n);
	f.n_systems = is_odd ? n : 1;
	f.cmdlines = (struct dat_text){ "7 task\n", 7 };
	for (size_t i = 0; i < records; i++)
		put_record(w, FIRST_ID + i % n, 1000 + i, is_odd ? 0 : (uint32_t)i + 1,
			   is_odd && odd[i].len ? odd[i].len : len);
	maker_end(&f, "boot", 1);
	maker_write(&f, argv[1]);
	_exit(0); /* nothing was freed, for nothing needs to be */
}
