// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a trace.dat out of the lines of scripts (trace-maker.h). A FORMATS.dat gives the formats of its
 * events.
 * Standard input (-) is read last if it is not named.
 *
 *   usage: make-trace OUT [FORMATS.dat | SCRIPT | -]...
 */
#include "trace-maker.h"

#include "dat-texts.h"

static void take_lines(FILE *in)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, in) > 0) {
		line[strcspn(line, "\n")] = 0;
		maker_line(line);
	}
}

static void take_formats(const char *path)
{
	struct reader *r;
	const struct reader_info *info;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	must(fd < 0 ? -errno : reader_open(&r, fd, NULL));
	info = reader_info(r);
	must(dat_texts(&maker.file, info));
	maker.file.version = 7;
	maker.file.compression = "none";
	for (size_t i = 0; i < info->n_formats; i++)
		add_event(info->formats[i].system, info->formats[i].text);
	maker.n_formats = maker.n_events;
}

static void take_file(const char *path)
{
	size_t len = strlen(path);
	FILE *in;

	if (len > 4 && !strcmp(path + len - 4, ".dat")) {
		take_formats(path);
		return;
	}
	in = strcmp(path, "-") != 0 ? fopen(path, "re") : stdin;
	if (!in)
		die(path);
	take_lines(in);
}

int main(int argc, char **argv)
{
	bool named = false;

	if (argc < 2)
		die("usage: make-trace OUT [FORMATS.dat | SCRIPT | -]...");
	maker_open();
	for (int i = 2; i < argc; i++) {
		named |= !strcmp(argv[i], "-");
		take_file(argv[i]);
	}
	if (!named)
		take_lines(stdin);
	maker_write(argv[1]);
	_exit(0); /* nothing was freed, for nothing needs to be */
}
