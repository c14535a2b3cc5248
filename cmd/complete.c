// SPDX-License-Identifier: GPL-2.0-only
/* Completion of command lines, for the shells' files (cmd/completion): options by the tables, their arguments
 * by what the system or the recordings at hand have. */
#include "cmd.h"
#include "record/guest/guest.h"
#include "record/drain/remote.h"

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

int complete_line(int argc, char **argv)
{
	static const char *const words[] = { "--help", "--no-pager", "--shim-dir", "--version", "-V", "-h" };
	struct completion c = { .word = argc ? argv[argc - 1] : "", .tracing = -1 };
	const struct command_row *command = argc > 1 ? command_find(argv[0]) : NULL;
	const struct opts_table *t = command ? command->options : NULL;

	if (t)
		read_line(&c, t, argc, argv);
	if (t && c.wants)
		complete_argument(&c, command->live, argc, argv);
	for (size_t i = 0; (argc < 2 || (argc == 2 && !strcmp(argv[0], "help"))) && i < commands_n; i++)
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
