// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat for formats-trust.t out of the print formats in the lines of standard input:
 * events e0, e1, ... with one record each, whose numbers are all ones. COUNT: so many more
 * events without records. PRINTK: the text of its printk_formats.
 * usage: formats-trace OUT COUNT PRINTK < LINES
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dat/options.h"
#include "dat/page.h"
#include "dat/writer.h"
#include "util/array.h"

#define FORMATS	 "tests/data/formats"
#define FIRST_ID 100

static void must(bool ok)
{
	if (!ok)
		abort();
}

static int to_fd(void *ctx, const void *page, size_t size)
{
	return write_all(*(int *)ctx, page, size);
}

static struct dat_text file_text(const char *path)
{
	struct buf b = { 0 };

	must(!read_file(path, 1 << 20, &b));
	return (struct dat_text){ buf_str(&b), b.len };
}

static struct dat_text format(size_t i, const char *print_fmt)
{
	struct buf b = { 0 };

	buf_printf(&b, "name: e%zu\nID: %zu\nformat:\n", i, FIRST_ID + i);
	buf_addstr(&b, "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		       "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		       "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		       "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		       "\tfield:u32 n;\toffset:8;\tsize:4;\tsigned:0;\n"
		       "\tfield:u8 mac[6];\toffset:12;\tsize:6;\tsigned:0;\n"
		       "\tfield:__data_loc char[] str;\toffset:20;\tsize:4;\tsigned:0;\n"
		       "\tfield:char tail[];\toffset:60000;\tsize:0;\tsigned:0;\n\n");
	buf_printf(&b, "print fmt: %s\n", print_fmt);
	return (struct dat_text){ buf_str(&b), b.len };
}

static void put_record(struct page_writer *w, size_t i)
{
	uint16_t id = (uint16_t)(FIRST_ID + i);
	uint8_t data[24];

	memset(data, 0xff, sizeof(data));
	memcpy(data, (uint8_t[]){ (uint8_t)id, (uint8_t)(id >> 8), 0, 0, 7, 0, 0, 0 }, 8);
	must(!page_write(w, 1000 * (i + 1), data, sizeof(data)));
}

int main(int argc, char **argv)
{
	static char line[1 << 20];
	int fd = memfd_create("cpu", MFD_CLOEXEC), out;
	struct dat_cpu cpu = { .fd = fd };
	struct dat_buffer buffer = {
		.name = "", .clock = "mono", .page_size = 4096, .n_cpus = 1, .cpus = &cpu
	};
	struct dat_text *texts = NULL;
	struct dat_system kvm = { .name = "kvm" };
	struct dat_options options = { 0 };
	struct page_writer w;

	if (argc != 4)
		return 2;
	must(!page_writer_init(&w, 4096, to_fd, &fd));
	while (fgets(line, sizeof(line), stdin)) {
		struct dat_text t = format(kvm.n, (line[strcspn(line, "\n")] = '\0', line));

		put_record(&w, kvm.n);
		must(!array_push(&texts, &kvm.n, &t, sizeof(t)));
	}
	for (size_t more = strtoul(argv[2], NULL, 10); more; more--) {
		struct dat_text t = format(kvm.n, "\"%d\", REC->n");

		must(!array_push(&texts, &kvm.n, &t, sizeof(t)));
	}
	must(!page_flush(&w, true) && !dat_options_add_clock(&options, "mono"));
	cpu.size = (uint64_t)lseek(fd, 0, SEEK_END);
	kvm.formats = texts;
	out = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	must(out >= 0);
	must(!dat_write(&(struct dat_file){ .version = 7,
					    .compression = "zstd",
					    .page_size = 4096,
					    .header_page = file_text(FORMATS "/header_page"),
					    .header_event = file_text(FORMATS "/header_event"),
					    .systems = &kvm,
					    .n_systems = 1,
					    .printk = { argv[3], strlen(argv[3]) },
					    .kallsyms = { "x\n", 2 },
					    .cmdlines = { "x\n", 2 },
					    .buffers = &buffer,
					    .n_buffers = 1,
					    .options = options.v,
					    .n_options = options.n },
			out, NULL));
	return 0;
}
