// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a spool as a killed recorder leaves it, for timing how fast it becomes a
 * file: sched_switch and kvm records of a fixed pseudo-random mix.
 * usage: mkspool DIR OUTPUT MEGABYTES
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/dat/page.h"
#include "record/spool/spool.h"
#include "base/array.h"
#include "base/files.h"

#define CPUS	4
#define FORMATS "tests/data/formats"

static uint32_t rnd(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223;
}

static int to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(*(int *)ctx, page, size);
}

/* ids of tests/data/formats */
enum { SCHED_SWITCH = 244, KVM_EXIT = 61, KVM_ENTRY = 62 };

/* Returns its length in bytes. Pids and addresses vary as real ones do. */
static size_t make_record(uint64_t rec[8], uint32_t r)
{
	static const uint16_t types[] = { SCHED_SWITCH, KVM_EXIT, KVM_ENTRY };
	static const size_t lens[] = { 64, 24, 16 };
	uint32_t pid = 100 + r % 7, type = r % 3;
	uint64_t pc = 0xffff800080000000 + (r % 64) * 0x120;

	memset(rec, 0, 64);
	rec[0] = types[type] + ((uint64_t)pid << 32);
	if (types[type] == SCHED_SWITCH) {
		memcpy(&rec[1], "CPU 0/KVM", 9);
		rec[3] = pid + (120ull << 32);
		rec[4] = r % 2;
		memcpy(&rec[5], "swapper/1", 9);
		rec[7] = 120ull << 32;
	} else if (types[type] == KVM_EXIT) {
		rec[1] = 2 + (0x18ull << 32);
		rec[2] = pc;
	} else {
		rec[1] = pc;
	}
	return lens[type];
}

static int fill_cpu(int fd, uint64_t bytes, uint32_t seed)
{
	struct page_writer w;
	uint64_t ts = 1000000000;
	int ret = page_writer_init(&w, 4096, to_fd, &fd);

	for (uint64_t done = 0; done < bytes && !ret; done += 40) {
		uint64_t rec[8];
		uint32_t r = rnd(&seed) >> 8;
		size_t len = make_record(rec, r);

		ts += 300 + r % 4000;
		ret = page_write(&w, ts, rec, len);
	}
	if (!ret)
		ret = page_flush(&w, true);
	page_writer_release(&w);
	return ret;
}

static int copy(struct spool *s, const char *name, const char *path)
{
	struct buf b = { 0 };
	int ret = read_file(path, 1 << 20, &b);

	if (!ret)
		ret = spool_put_text(s, name, b.data, b.len);
	buf_release(&b);
	return ret;
}

static int put_formats(struct spool *s)
{
	static const char *const formats[][2] = {
		{ "ftrace", FORMATS "/function" },
		{ "kvm", FORMATS "/kvm_entry" },
		{ "kvm", FORMATS "/kvm_exit" },
		{ "sched", FORMATS "/sched_switch" },
	};
	struct buf all = { 0 };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(formats) && !ret; i++) {
		struct buf b = { 0 };

		ret = read_file(formats[i][1], 1 << 20, &b);
		buf_printf(&all, "%s %zu\n", formats[i][0], b.len);
		buf_add(&all, b.data, b.len);
		buf_release(&b);
	}
	if (!ret)
		ret = spool_put_text(s, "formats", all.data, all.len);
	buf_release(&all);
	return ret;
}

int main(int argc, char **argv)
{
	struct spool_buffer top = {
		.name = "", .clock = "boot", .path = ".", .kind = "host", .page_size = 4096, .n_cpus = CPUS
	};
	struct spool *s;
	int ret;

	if (argc != 4) {
		fputs("usage: mkspool DIR OUTPUT MEGABYTES\n", stderr);
		return 2;
	}
	ret = spool_create(&s, argv[1], NULL);
	if (!ret)
		ret = spool_set(s, "output", argv[2]);
	if (!ret)
		ret = spool_set(s, "state", "drained");
	if (!ret)
		ret = spool_set(s, "clock", "boot");
	if (!ret)
		ret = copy(s, "header_page", FORMATS "/header_page");
	if (!ret)
		ret = copy(s, "header_event", FORMATS "/header_event");
	if (!ret)
		ret = put_formats(s);
	if (!ret)
		ret = spool_add_buffer(s, &top);
	for (unsigned int cpu = 0; cpu < CPUS && !ret; cpu++) {
		int fd = spool_pages_fd(s, 0, cpu);

		ret = fd < 0 ? fd : fill_cpu(fd, strtoull(argv[3], NULL, 10) * 1000000 / CPUS, cpu + 1);
	}
	if (ret)
		fprintf(stderr, "mkspool: %s\n", strerror(-ret));
	return ret ? 1 : 0;
}
