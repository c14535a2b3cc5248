// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat for formats-trust.t out of the print formats in the lines of standard input:
 * events e0, e1, ... with one record each, whose numbers are all ones. COUNT: so many more
 * events without records. PRINTK: the text of its printk_formats.
 * usage: formats-trace OUT COUNT PRINTK < LINES
 */
#define MAKER_CPUS 1
#include "trace-maker.h"

#include "util/array.h"

#define FIRST_ID 100

static struct dat_text format(size_t i, const char *print_fmt)
{
	struct buf b = { 0 };

	char name[32];

	snprintf(name, sizeof(name), "e%zu", i);
	maker_format_begin(&b, name, FIRST_ID + i);
	buf_addstr(&b, "\tfield:u32 n;\toffset:8;\tsize:4;\tsigned:0;\n"
		       "\tfield:u8 mac[6];\toffset:12;\tsize:6;\tsigned:0;\n"
		       "\tfield:__data_loc char[] str;\toffset:20;\tsize:4;\tsigned:0;\n"
		       "\tfield:char tail[];\toffset:60000;\tsize:0;\tsigned:0;\n\n");
	buf_printf(&b, "print fmt: %s\n", print_fmt);
	return maker_text(b);
}

static void put_record(struct page_writer *w, size_t i)
{
	uint16_t id = (uint16_t)(FIRST_ID + i);
	uint8_t data[24];

	memset(data, 0xff, sizeof(data));
	memcpy(data, (uint8_t[]){ (uint8_t)id, (uint8_t)(id >> 8), 0, 0, 7, 0, 0, 0 }, 8);
	must(page_write(w, 1000 * (i + 1), data, sizeof(data)));
}

int main(int argc, char **argv)
{
	static char line[1 << 20];
	struct dat_text *texts = NULL;
	struct dat_system kvm = { .name = "kvm" };
	struct dat_file f = maker_file();
	struct maker_buffer *b = maker_add("");

	if (argc != 4)
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		struct dat_text t = format(kvm.n, (line[strcspn(line, "\n")] = '\0', line));

		put_record(b->w, kvm.n);
		must(array_push(&texts, &kvm.n, &t, sizeof(t)));
	}
	for (size_t more = strtoul(argv[2], NULL, 10); more; more--) {
		struct dat_text t = format(kvm.n, "\"%d\", REC->n");

		must(array_push(&texts, &kvm.n, &t, sizeof(t)));
	}
	must(dat_options_add_clock(&maker.options, "mono"));
	kvm.formats = texts;
	f.compression = "zstd";
	f.systems = &kvm;
	f.n_systems = 1;
	f.printk = (struct dat_text){ argv[3], strlen(argv[3]) };
	f.kallsyms = f.cmdlines = (struct dat_text){ "x\n", 2 };
	maker_end(&f, "mono", 1);
	maker_write(&f, argv[1]);
	return 0;
}
