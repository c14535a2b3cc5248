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

static bool is_wanted(const char *system)
{
	return !maker.systems || !strcmp(system, "ftrace") || words_have(maker.systems, system);
}

static void take_formats(const char *path)
{
	struct reader *r;
	const struct reader_info *info;
	struct dat_system *kept;
	size_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	must(fd < 0 ? -errno : reader_open(&r, fd, NULL));
	info = reader_info(r);
	must(dat_texts(&maker.file, info));
	maker.file.version = 7;
	maker.file.compression = "none";
	for (size_t i = 0; i < info->n_formats; i++)
		if (is_wanted(info->formats[i].system))
			add_event(info->formats[i].system, info->formats[i].text);
	kept = calloc(maker.file.n_systems + 1, sizeof(*kept));
	must(kept ? 0 : -ENOMEM);
	for (size_t i = 0; i < maker.file.n_systems; i++)
		if (is_wanted(maker.file.systems[i].name))
			kept[n++] = maker.file.systems[i];
	maker.file.systems = kept;
	maker.file.n_systems = n;
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
