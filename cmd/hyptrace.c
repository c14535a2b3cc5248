// SPDX-License-Identifier: GPL-2.0-only
/* The program: runs the command that is named, or lists them all; by the name of trace-cmd it serves some
 * lines and passes the others on. On a terminal it prints a hint for the next command. */
#include <glob.h>
#include <malloc.h>

#include "base/shim.h"
#include "cmd.h"
#include "record/guest/guest.h"
#include "record/drain/remote.h"

#define COMMAND(n, ...) { .name = #n, .run = cmd_##n, .options = &n##_table, __VA_ARGS__ },
static const struct command_row commands[] = {
#ifdef HYPTRACE_STATIC
	{ .name = "agent",
	  .run = cmd_agent,
	  .summary = "hyptrace-agent, which lets recorders trace this guest" },
#endif
#include "commands.h"
};

/* NULL: there is none of this name. */
static const struct command_row *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* ---- completion of command lines, for the shells' files (cmd/completion): options by the tables, their
 * arguments by what the system or the recordings at hand have ---- */

#define COMPLETE_TEXT_MAX (64u << 20) /* of a file of tracefs: all functions of a large kernel have 10 MB */

struct completion {
	const char *word;	 /* what has been typed of the last one */
	const struct opt *wants; /* the option before it that takes an argument; NULL: none */
	const char *event;	 /* of the last -e before it */
	bool over;		 /* options have ended */
	int tracing;		 /* the tracing directory, or -1 */
	struct inputs in;	 /* recordings at hand */
	struct strlist out;
};

static void offer(struct completion *c, const char *word)
{
	if (!strncmp(word, c->word, strlen(c->word)))
		strlist_add(&c->out, word);
}

/* A system; its events once something is typed, for they are many. */
static void offer_event(struct completion *c, const char *system, const char *event)
{
	char *both = *c->word ? str_printf("%s:%s", system, event) : NULL;

	offer(c, system);
	if (both) {
		offer(c, both);
		offer(c, event);
	}
	free(both);
}

static void live_events(struct completion *c)
{
	const char *hyp = remote_find(c->tracing);
	struct strlist names = { 0 }, hyp_names = { 0 };

	read_lines_at(c->tracing, "available_events", COMPLETE_TEXT_MAX, &names);
	for (size_t i = 0; i < names.n; i++) {
		char *colon = strchr(names.v[i], ':');

		if (!colon)
			continue;
		*colon = 0;
		offer_event(c, names.v[i], colon + 1);
	}
	if (hyp)
		list_hyp_events(c->tracing, hyp, &hyp_names);
	for (size_t i = 0; i < hyp_names.n; i++)
		offer_event(c, "hyp", hyp_names.v[i]);
	strlist_release(&names);
	strlist_release(&hyp_names);
}

static void live_buffers(struct completion *c)
{
	struct strlist names = { 0 };

	if (remote_find(c->tracing))
		offer(c, "hyp");
	read_dir_at(c->tracing, "instances", &names);
	for (size_t i = 0; i < names.n; i++)
		offer(c, names.v[i]);
	strlist_release(&names);
}

static void live_guests(struct completion *c)
{
	struct guest_opts o = { .root = getenv("HYPTRACE_ROOT") };
	struct guests all;

	if (guests_find(&all, &o))
		return;
	for (size_t i = 0; i < all.n; i++) {
		char *at = all.v[i].cid ? str_printf("%s@%u", all.v[i].name ?: "guest", all.v[i].cid) : NULL;

		if (at || all.v[i].name)
			offer(c, at ?: all.v[i].name);
		free(at);
	}
	guests_release(&all);
}

static void offer_fields(struct completion *c, const char *text, size_t len)
{
	struct event_format f;

	if (event_format_parse(text, len, &f))
		return;
	for (size_t i = 0; i < f.n_common + f.n_fields; i++) {
		char *name = i < f.n_fields ? f.fields[i].name : f.common[i - f.n_fields].name;

		name[strcspn(name, "[")] = 0;
		offer(c, name);
	}
	event_format_release(&f);
}

/* Of the event before: -e kvm:kvm_exit -f ... */
static void live_fields(struct completion *c)
{
	const char *event = c->event ? c->event : "", *sep = event + strcspn(event, ":/");
	char *path = str_printf("events/%.*s/%s/format", (int)(sep - event), event, *sep ? sep + 1 : "");
	struct buf text = { 0 };

	if (path && !read_file_at(c->tracing, path, COMPLETE_TEXT_MAX, &text))
		offer_fields(c, (char *)text.data, text.len);
	buf_release(&text);
	free(path);
}

static void recorded_events(struct completion *c)
{
	for (size_t i = 0; i < c->in.n; i++) {
		const struct reader_info *info = reader_info(c->in.v[i].reader);

		for (size_t n = 0; n < info->n_formats; n++) {
			struct event_format f;

			if (event_format_parse(info->formats[n].text.data, info->formats[n].text.len, &f))
				continue;
			offer_event(c, info->formats[n].system, f.name);
			event_format_release(&f);
		}
	}
}

static void recorded_fields(struct completion *c)
{
	static const char *const own[] = { "vcpu", "pid", "cpu", "guest" }; /* of latency --key */

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		offer(c, own[i]);
	for (size_t i = 0; i < c->in.n; i++) {
		const struct reader_info *info = reader_info(c->in.v[i].reader);

		for (size_t n = 0; n < info->n_formats; n++)
			offer_fields(c, info->formats[n].text.data, info->formats[n].text.len);
	}
}

static void recorded_buffers(struct completion *c)
{
	for (size_t i = 0; i < c->in.n; i++) {
		const struct reader_info *info = reader_info(c->in.v[i].reader);

		for (size_t n = 0; n < info->n_buffers; n++)
			if (*info->buffers[n].name)
				offer(c, info->buffers[n].name);
	}
}

static void recorded_guests(struct completion *c)
{
	for (size_t i = 0; i < c->in.n; i++)
		if (c->in.v[i].guest)
			offer(c, c->in.v[i].machine);
}

/* By how the argument's name in the table begins; of the system, and of recordings. */
static const struct kind {
	const char *arg;
	void (*live)(struct completion *c), (*file)(struct completion *c);
	const char *words; /* of the system: this file's */
	bool many;	   /* they are completed once something is typed: the first of each line */
} kinds[] = {
	{ "BUFFER", .live = live_buffers, .file = recorded_buffers },
	{ "CLOCK", .words = "trace_clock" },
	{ "EVENT", .live = live_events, .file = recorded_events },
	{ "FILTER", .live = live_fields, .file = recorded_events },
	{ "FUNC", .words = "available_filter_functions", .many = true },
	{ "GUEST", .live = live_guests, .file = recorded_guests },
	{ "KEY", .file = recorded_fields },
	{ "MOMENT", .file = recorded_events },
	{ "TRACER", .words = "available_tracers" },
	{ "[GLOB]", .live = live_events },
};

/* Context of the last word, given by the words before it. */
static void read_line(struct completion *c, const struct opts_table *t, int argc, char **argv)
{
	for (int i = 1; i + 1 < argc && !c->over; i++) {
		const char *word = argv[i];
		const struct opt *o = NULL;
		bool has;

		for (size_t k = 0; *word == '-' && !o && k < t->n; k++)
			if (word[1] == '-' ? t->rows[k].name && !strcmp(t->rows[k].name, word + 2)
					   : t->rows[k].key && t->rows[k].key == word[1] && !word[2])
				o = &t->rows[k];
		has = o && o->arg && strncmp(o->arg, "[=", 2) && (*o->arg != '[' || *argv[i + 1] != '-');

		c->over = !strcmp(word, "--") || (t->in_order && *word != '-');
		if (!has)
			continue;
		i++;
		if (o->key == 'e')
			c->event = argv[i];
		if (i + 1 == argc)
			c->wants = o;
	}
}

static void complete_argument(struct completion *c, bool live, int argc, char **argv)
{
	const char *dir = getenv("HYPTRACE_TRACING_DIR"), *arg = c->wants->arg;
	const char *comma = strstr(arg, ",...") ? strrchr(c->word, ',') : NULL;
	char *words = strdup(c->wants->words ?: islower((unsigned char)*arg) ? arg : ""), *rest;
	struct strlist files = { 0 };

	if (live)
		c->tracing =
			open(dir && *dir ? dir : "/sys/kernel/tracing", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* the recordings that the line names, else trace.dat */
	for (int i = 1; !live && i + 1 < argc; i++) {
		size_t len = strlen(argv[i]);

		if (len > 4 && !strcmp(argv[i] + len - 4, ".dat") && !access(argv[i], R_OK))
			strlist_add(&files, argv[i]);
	}
	if (!live && !files.n)
		strlist_add(&files, "trace.dat");
	if (!live && inputs_open(&c->in, files.v, files.n, 0, NULL)) {
		inputs_release(&c->in);
		c->in = (struct inputs){ 0 };
	}
	/* the row's words, or those that its argument's name consists of: "guest|vcpu"; of a list the last */
	for (char *w = words ? strtok_r(words, " \n|", &rest) : NULL; w; w = strtok_r(NULL, " \n|", &rest)) {
		char *list = str_printf("%.*s%s", comma ? (int)(comma + 1 - c->word) : 0, c->word, w);

		if (list)
			offer(c, list);
		free(list);
	}
	free(words);
	for (const struct kind *k = kinds; k < kinds + ARRAY_SIZE(kinds); k++) {
		void (*fn)(struct completion *) = live ? k->live : k->file;

		if (strncmp(arg, k->arg, strlen(k->arg)))
			continue;
		if (fn)
			fn(c);
		if (live && k->words && (*c->word || !k->many)) {
			struct strlist lines = { 0 };

			/* The first word of each line, or all words: "local [boot] ...". */
			read_lines_at(c->tracing, k->words, COMPLETE_TEXT_MAX, &lines);
			for (size_t i = 0; i < lines.n; i++) {
				char *word = strtok_r(lines.v[i], " []", &rest);

				for (; word; word = !k->many ? strtok_r(NULL, " []", &rest) : NULL)
					offer(c, word);
			}
			strlist_release(&lines);
		}
	}
	fd_close(&c->tracing);
	inputs_release(&c->in);
	strlist_release(&files);
}

/*
 * For a shell: prints the words that the last of argv[0..argc-1], typed after "hyptrace", can become, one
 * a line; none: a file's name. Reports no errors.
 */
static int complete_line(int argc, char **argv)
{
	static const char *const words[] = { "--help", "--no-pager", "--shim-dir", "--version", "-V", "-h" };
	struct completion c = { .word = argc ? argv[argc - 1] : "", .tracing = -1 };
	const struct command_row *command = argc > 1 ? command_find(argv[0]) : NULL;
	const struct opts_table *t = command ? command->options : NULL;

	if (t)
		read_line(&c, t, argc, argv);
	if (t && c.wants)
		complete_argument(&c, command->live, argc, argv);
	for (size_t i = 0; (argc < 2 || (argc == 2 && !strcmp(argv[0], "help"))) && i < ARRAY_SIZE(commands);
	     i++)
		offer(&c, commands[i].name);
	for (size_t i = 0; argc < 2 && i < ARRAY_SIZE(words) && *c.word == '-'; i++)
		offer(&c, words[i]);
	for (size_t i = 0; t && !c.wants && !c.over && *c.word == '-' && i < t->n; i++) {
		const struct opt *o = &t->rows[i];
		char letter[] = { '-', o->key, 0 }, *name = o->name ? str_printf("--%s", o->name) : NULL;

		if (o->key && !o->instead)
			offer(&c, letter);
		if (name && !o->instead)
			offer(&c, name);
		free(name);
	}
	strlist_sort(&c.out);
	for (size_t i = 0; i < c.out.n; i++)
		if (!i || strcmp(c.out.v[i], c.out.v[i - 1]))
			puts(c.out.v[i]);
	strlist_release(&c.out);
	return EXIT_OK;
}

/* ---- hints ---- */

/* A command line, as its table reads it. */
struct hint_line {
	const struct command_row *command;
	const char *words;
	const char *arg; /* of the option that has the words */
	struct strlist files;
	struct buf kept; /* the line's options that are its next command's, too */
	bool numbered;	 /* record --rotate and --flight, cut --per: FILE.NNN instead of FILE */
	bool silent;	 /* -q, -h, or for programs */
};

static int hint_option(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct hint_line *l = ctx;
	const char *name = o->name ?: "";

	if (l->command->keeps && words_have(l->command->keeps, name))
		buf_printf(&l->kept, " --%s", name);
	l->silent |= o->key == 'q' || words_have("json csv help", name);
	l->numbered |= words_have("rotate flight", name) ||
		       (!strcmp(name, "per") && !strcmp(l->command->name, "cut"));
	for (size_t i = 0; i < ARRAY_SIZE(l->command->after) && l->command->after[i].option; i++)
		if (!strcmp(name, l->command->after[i].option)) {
			l->words = l->command->after[i].hint;
			/* others are no files: --preset NAME, --from EVENT */
			l->arg = arg && !words_have("NAME EVENT", o->arg) ? arg : NULL;
		}
	/* record's -o has no long name, and its other words are the command that it runs */
	if ((o->key == 'i' && arg) || (o->key == 'o' && !strcmp(l->command->name, "record")))
		return strlist_add(&l->files, arg);
	return 0;
}

/* Of a spool the recording. */
static void hint_file(struct buf *out, const char *file)
{
	size_t len = strlen(file);
	char *name;

	len -= len > 6 && !strcmp(file + len - 6, ".spool") ? 6 : 0;
	name = strndup(file, len);
	shell_word(out, name ?: "");
	free(name);
}

/* The first of the files "trace.NNN.dat" that are there; NULL: there is none. */
static char *hint_numbered(const char *output)
{
	static const char *const numbers[] = { "[0-9][0-9][0-9]", "[0-9][0-9][0-9][0-9]" };
	size_t stem = path_stem(output);
	char *first = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !first; i++) {
		char *pattern = str_printf("%.*s.%s%s", (int)stem, output, numbers[i], output + stem);
		glob_t found = { 0 };

		if (pattern && !glob(pattern, 0, NULL, &found))
			first = strdup(found.gl_pathv[0]);
		globfree(&found);
		free(pattern);
	}
	return first;
}

/*
 * After a command has succeeded: prints "hyptrace: next: ..." on stderr; nothing with -q, -h, --json and
 * --csv. argv: as the command got it, argv[0] its name; its order changes.
 */
static void hint_print(int argc, char **argv)
{
	const struct command_row *command = command_find(argv[0]);
	bool record = !strcmp(argv[0], "record");
	struct hint_line l = { .command = command };
	struct opts_table table;
	struct opts_error err;
	int ret;

	if (!command || !command->options)
		return;
	l.words = command->hint;
	table = *command->options;
	table.dispatch = hint_option;
	ret = opts_parse(&table, &argc, argv, &l, &err);
	for (int i = 1; i < argc && !record && !ret; i++)
		ret = strlist_add(&l.files, argv[i]);
	if (!ret && !l.silent && !strcmp(argv[0], "adb") && argc > 1 && !strcmp(argv[1], "record"))
		hint_print(argc - 1, argv + 1);
	else if (!ret && !l.silent && l.words) {
		const char *words = l.words, *at = strstr(words, " FILES");
		const char *output = l.arg ? l.arg : l.files.n ? l.files.v[0] : "trace.dat";
		char *numbered = l.numbered ? hint_numbered(output) : NULL;
		const char *first = numbered ?: output;
		struct buf text = { 0 };

		buf_printf(&text, "%.*s", at ? (int)(at - words) : (int)strlen(words), words);
		if (at) {
			buf_addstr(&text, l.arg ? "" : buf_str(&l.kept) ?: "");
			hint_file(&text, first);
			for (size_t i = 1; i < l.files.n && !l.arg; i++)
				hint_file(&text, l.files.v[i]);
			buf_addstr(&text, at + 6);
		}
		if (buf_str(&text))
			fprintf(stderr, "hyptrace: next: %s\n", ESCAPED(buf_str(&text)));
		buf_release(&text);
		free(numbered);
	}
	strlist_release(&l.files);
	buf_release(&l.kept);
}

#ifdef HYPTRACE_STATIC
#define STATIC_FILE ", a static file: with the agent and its own plugins, without others and libvirt"
#else
#define STATIC_FILE ""
#endif

static void usage(FILE *out)
{
	fputs("usage: hyptrace COMMAND [OPTION...]\n\ncommands:\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\n`hyptrace help COMMAND` lists a command's options; its manual is hyptrace-COMMAND(1).\n"
	      "Recordings are read by report, and by trace-cmd report and kernelshark.\n",
	      out);
}

/* The row of a command; NULL with a message: there is none of this name. */
static const struct command_row *command_of(const char *name)
{
	const struct command_row *row = command_find(name);
	struct nearest near = { .typed = name, .len = strlen(name) };

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		nearest_offer(&near, commands[i].name);
	if (!row && near.word)
		fprintf(stderr, "hyptrace: no command '%s': did you mean '%s'? (hyptrace -h lists all)\n",
			ESCAPED(name), near.word);
	else if (!row)
		fprintf(stderr, "hyptrace: no command '%s' (hyptrace -h lists all)\n", ESCAPED(name));
	return row;
}

static int command_run(int argc, char **argv, bool pages)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command_row *row;

	if (!name) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "help") && argc > 2) { /* "help stat" is "stat -h" */
		char *words[] = { argv[2], "-h", NULL };

		row = command_of(argv[2]);
		return row ? row->run(2, words) : EXIT_USAGE;
	}
	if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(name, "-V") || !strcmp(name, "--version") || !strcmp(name, "version")) {
		puts("hyptrace " HYPTRACE_VERSION STATIC_FILE);
		return EXIT_OK;
	}
	if (!strcmp(name, "--shim-dir")) {
		/* in a build, and installed (Makefile: shimdir) */
		static const char *const places[] = { "shim", "../lib/hyptrace/shim" };

		for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
			char *dir = shim_beside(places[i]),
			     *link = dir ? str_printf("%s/" SHIM_NAME, dir) : NULL;
			char *real = link && !access(link, X_OK) ? realpath(dir, NULL) : NULL;

			if (real)
				puts(real);
			free(dir);
			free(link);
			free(real);
			if (real)
				return EXIT_OK;
		}
		fputs("hyptrace: the directory with the link is neither next to this program (shim) nor in "
		      "../lib/hyptrace/shim: make install makes it\n",
		      stderr);
		return EXIT_FAILED;
	}
	if (!strcmp(name, "--complete"))
		return complete_line(argc - 2, argv + 2);
	row = command_of(name);
	if (!row)
		return EXIT_USAGE;
	pager_want(row->pages && pages);
	if (row->ends)
		memory_or_end();
	return row->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	bool shim = argc && shim_called(argv[0]), served = !shim, pages = true, hint;
	const struct command_row *command = argc > 1 ? command_find(argv[1]) : NULL;
	char **words;
	int ret;

#ifdef HYPTRACE_STATIC
	/* the agent is in the static file too: as a command, or by the name that the file has. It prints by
	 * itself, and forks */
	if (argc &&
	    (!strcmp(basename(argv[0]), "hyptrace-agent") || (shim && argc > 1 && !strcmp(argv[1], "agent"))))
		return cmd_agent(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "agent"))
		return cmd_agent(argc - 1, argv + 1);
#endif
	if (shim && command && command->takes) {
		words = shim_copy(argc, argv);
		served = words && command->takes(argc - 1, words + 1);
		free(words);
	}
	if (!served) {
		char *agent = argc > 1 && !strcmp(argv[1], "agent") ? shim_beside("hyptrace-agent") : NULL;

		/* the agent, which knows its own lines, or the real trace-cmd runs instead of this program */
		if (agent)
			execv(agent, argv);
		free(agent);
		ret = shim_exec_real(argv);
		if (ret == -ENOENT)
			fputs("hyptrace: this command line is for the real trace-cmd (hyptrace(1), "
			      "THE TRACE-CMD LINK), and PATH has none beyond hyptrace's link\n",
			      stderr);
		else
			fprintf(stderr, "hyptrace: cannot run the real trace-cmd: %s\n", strerror(-ret));
		return EXIT_NO_PROGRAM;
	}
	/* what one thread frees another takes soon: given back to the kernel, each page would cost a fault again */
	mallopt(M_TRIM_THRESHOLD, 32 << 20);
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	guests_want(!shim);
	if (!shim && argc > 1 && !strcmp(argv[1], "--no-pager")) {
		pages = false;
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	ret = terminal_open();
	if (ret) {
		fprintf(stderr, "hyptrace: %s\n", strerror(-ret));
		return EXIT_FAILED;
	}
	/* for the hint after the output, which may become a pager's: a command changes the order of its words
	 */
	hint = argc > 1 && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
	words = hint ? shim_copy(argc, argv) : NULL;
	ret = terminal_end(command_run(argc, argv, pages));
	if (words && ret == EXIT_OK)
		hint_print(argc - 1, words + 1);
	free(words);
	return ret;
}
