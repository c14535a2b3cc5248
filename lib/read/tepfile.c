// SPDX-License-Identifier: LGPL-2.1-or-later
/* Gives a tep_handle of libtraceevent its decoders (ours, which are linked, and others' plugins, which are
 * loaded), a trace.dat's formats and records that it can read safely, and asks it for names of tasks. */
#include "read/tepfile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/queue.h>

#include "file/dat/format.h"
#include "base/cursor.h"
#include "base/strings.h"

/* libtraceevent wants its texts to end with a NUL, and some of them to be its own. */
static int tepfile_text(struct tep_handle *tep, const struct dat_text *text,
			int (*parse)(struct tep_handle *tep, const char *text))
{
	char *copy;

	if (!text->len)
		return 0;
	copy = malloc(text->len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text->data, text->len);
	copy[text->len] = '\0';
	parse(tep, copy); /* a line that makes no sense ends the table there */
	free(copy);
	return 0;
}

#define SAID_MAX 8 /* messages about one file's formats */

struct tepfile_format {
	struct checked_format f;
	const char *system;
	size_t index;
};

/* The greatest id first: libtraceevent looks for the place of each from the lowest on. */
static int tepfile_format_cmp(const void *a, const void *b)
{
	const struct tepfile_format *x = a, *y = b;

	return ORDER(y->f.id, x->f.id) ?: ORDER(x->index, y->index);
}

static void say_refused(const struct tepfile_format *v, size_t n, const struct log *log)
{
	if (n > SAID_MAX)
		return;
	if (n == SAID_MAX)
		log_warn(log, "more event formats are refused");
	else if (v->f.why)
		log_warn(log, "the print format of %s:%s %s: its fields are shown", v->system, v->f.name,
			 v->f.why);
	else
		log_warn(log, "format %zu, of system %s, is no event's: its events stay unknown", v->index,
			 v->system);
}

/* Formats that are none are left out. */
static int check_formats(const struct reader_info *info, struct tepfile_format *v, size_t *n, size_t *failed,
			 const struct log *log)
{
	for (size_t i = 0; i < info->n_formats; i++) {
		const struct reader_format *f = &info->formats[i];
		struct tepfile_format *t = &v[*n];
		int ret = format_check(f->text.data, f->text.len, &t->f);

		t->system = f->system;
		t->index = i;
		if (ret == -ENOMEM) {
			checked_format_release(&t->f);
			return ret;
		}
		if (ret || t->f.why)
			say_refused(t, (*failed)++, log);
		if (!ret)
			++*n;
	}
	return 0;
}

static int tepfile_formats(struct tep_handle *tep, const struct reader_info *info, size_t *failed,
			   const struct log *log)
{
	struct tepfile_format *v = calloc(info->n_formats + 1, sizeof(*v));
	size_t n = 0;
	int ret = v ? check_formats(info, v, &n, failed, log) : -ENOMEM;

	if (!ret) {
		qsort(v, n, sizeof(*v), tepfile_format_cmp);
		for (size_t i = 0; i < n; i++) {
			struct tep_event *e;

			if (i && v[i].f.id == v[i - 1].f.id)
				continue; /* a second one of an id is never found */
			tep_parse_event(tep, (const char *)v[i].f.text.data, v[i].f.text.len, v[i].system);
			e = tep_find_event(tep, (int)v[i].f.id);
			/* handlers of two events lack size checks: this one writes into 46 bytes */
			if (e && !strcmp(e->name, "kvm_emulate_insn"))
				e->flags |= TEP_EVENT_FL_NOHANDLE;
			if (e && (e->flags & TEP_EVENT_FL_ISBPRINT) &&
			    (!tep_find_field(e, "fmt") || !tep_find_field(e, "ip") ||
			     !tep_find_field(e, "buf")))
				e->flags |= TEP_EVENT_FL_FAILED;
		}
	}
	for (size_t i = 0; i < n; i++)
		checked_format_release(&v[i].f);
	free(v);
	return ret;
}

/*
 * `0xffff800081234567 : "text\n"`. libtraceevent takes the quotes and the newline off, and looks
 * for both in front of a text that is too short for them: all get them.
 */
static int add_printk(struct tep_handle *tep, const char *line, size_t len)
{
	const char *s = memchr(line, ':', len), *end = line + len;
	bool sound, widths[PRINT_ARGS_MAX] = { false };
	struct buf text = { 0 };
	int ret;

	if (!s)
		return 0;
	s++;
	s += s < end && *s == ' ';
	s += s < end && *s == '"';
	end -= end > s && end[-1] == '"';
	end -= end - s >= 2 && !memcmp(end - 2, "\\n", 2) ? 2 : 0;
	ret = print_conversions(s, (size_t)(end - s), widths, PRINT_ARGS_MAX);
	sound = ret >= 0 && !memchr(widths, 1, sizeof(widths));
	for (; s < end; s++)
		/* one that is no print format is a text */
		buf_add(&text, *s == '%' && !sound ? "%%" : s, *s == '%' && !sound ? 2 : 1);
	buf_addstr(&text, "\\n\"");
	ret = buf_str(&text) ? 0 : -ENOMEM;
	if (!ret && tep_register_print_string(tep, (char *)text.data, strtoull(line, NULL, 16)))
		ret = -ENOMEM;
	buf_release(&text);
	return ret;
}

/* Files whose functions nobody has asked for: a kernel has some 200,000, most answers show none. */
struct functions {
	struct tep_handle *tep;
	const struct reader_info *info;
	LIST_ENTRY(functions) others;
};
static LIST_HEAD(functions_head, functions) functions_left;
static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

static int functions_leave(struct tep_handle *tep, const struct reader_info *info)
{
	struct functions *f = malloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	*f = (struct functions){ .tep = tep, .info = info };
	pthread_mutex_lock(&functions_lock);
	LIST_INSERT_HEAD(&functions_left, f, others);
	pthread_mutex_unlock(&functions_lock);
	return 0;
}

/* With the lock. NULL: they are known already, or tep has no file. */
static struct functions *functions_take(const struct tep_handle *tep)
{
	struct functions *f;

	for (f = LIST_FIRST(&functions_left); f && f->tep != tep; f = LIST_NEXT(f, others))
		;
	if (f)
		LIST_REMOVE(f, others);
	return f;
}

int tepfile_functions(struct tep_handle *tep)
{
	struct functions *f;
	struct dat_text text;
	int ret = 0;

	pthread_mutex_lock(&functions_lock);
	f = functions_take(tep);
	if (f) {
		ret = reader_symbols(f->info, &text) ?: tepfile_text(tep, &text, tep_parse_kallsyms);
		tep_find_function(tep, 0); /* sorts them: later calls only read */
	}
	pthread_mutex_unlock(&functions_lock);
	free(f);
	return ret;
}

void tepfile_release(struct tep_handle *tep)
{
	pthread_mutex_lock(&functions_lock);
	free(functions_take(tep));
	pthread_mutex_unlock(&functions_lock);
	tep_free(tep);
}

int tepfile_load(struct tep_handle *tep, const struct reader_info *info, size_t *failed,
		 const struct log *log)
{
	struct cursor printk = cursor_at(info->printk.len ? info->printk.data : "", info->printk.len);
	const char *line;
	size_t cpus = 0, len;
	int ret;

	*failed = 0;
	/* the reader takes no others */
	tep_set_file_bigendian(tep, TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, 8);
	tep_set_page_size(tep, (int)info->page_size);
	for (size_t i = 0; i < info->n_buffers; i++)
		cpus = info->buffers[i].n_cpus > cpus ? info->buffers[i].n_cpus : cpus;
	tep_set_cpus(tep, (int)cpus);
	tep_parse_header_page(tep, (char *)info->header_page.data, info->header_page.len, 8);
	ret = tepfile_formats(tep, info, failed, log);
	ret = ret ?: functions_leave(tep, info);
	while (!ret && cursor_line(&printk, &line, &len))
		ret = memchr(line, 0, len) ? 0 : add_printk(tep, line, len);
	return ret ?: tepfile_text(tep, &info->cmdlines, tep_parse_saved_cmdlines);
}

#define PAGE_MAX (1u << 20)
/*
 * Behind a record: a field at its end, relative to which an array begins, of
 * which 65,535 items of 8 bytes are asked for (print-format.c).
 */
#define PADDED_ROOM (PAGE_MAX + (1u << 20))

int tepfile_least_size(const struct tep_event *e)
{
	int least = 0;

	for (const struct tep_format_field *f = e->format.fields; f; f = f->next)
		if (!f->size && f->offset > least)
			least = f->offset;
	return least;
}

int padded_init(struct padded *p)
{
	p->data = p->data ?: calloc(1, PADDED_ROOM);
	return p->data ? 0 : -ENOMEM;
}

void padded_release(struct padded *p)
{
	free(p->data);
	*p = (struct padded){ 0 };
}

struct tep_record padded_record(struct padded *p, const void *data, size_t len)
{
	len = len < PAGE_MAX ? len : PAGE_MAX; /* it lay in a page */
	if (p->used > len)
		memset(p->data + len, 0, p->used - len);
	if (len)
		memcpy(p->data, data, len);
	p->used = len;
	return (struct tep_record){
		.record_size = (int)len, .size = (int)len, .data = p->data, .ref_count = 1
	};
}

struct name {
	int pid;
	unsigned int age; /* of libtraceevent's knowledge when it was asked */
	const char *comm; /* libtraceevent's; NULL: it did not know it then */
};

void names_init(struct names *n, struct tep_handle *tep)
{
	*n = (struct names){ .tep = tep, .age = 1 };
}

void names_release(struct names *n)
{
	free(n->v);
	map_release(&n->by_pid);
	*n = (struct names){ 0 };
}

void names_learned(struct names *n)
{
	n->age++;
}

const char *names_ask(struct tep_handle *tep, int pid)
{
	const char *comm = tep_data_comm_from_pid(tep, pid);

	/* libtraceevent's name of tasks that it does not know; some may have that name */
	return strcmp(comm, "<...>") || tep_is_pid_registered(tep, pid) ? comm : NULL;
}

static bool same_pid(const void *names, size_t i, const void *pid)
{
	return ((const struct name *)names)[i].pid == *(const int *)pid;
}

const char *names_find(struct names *n, int pid)
{
	uint32_t hash = map_hash((uint32_t)pid);
	size_t i = map_find(&n->by_pid, hash, same_pid, n->v, &pid);
	struct name found;

	/* a name that is known stays */
	if (i != MAP_NONE && (n->v[i].comm || n->v[i].age == n->age))
		return n->v[i].comm;
	found = (struct name){ pid, n->age, names_ask(n->tep, pid) };
	if (i != MAP_NONE)
		n->v[i] = found;
	else
		map_push(&n->by_pid, hash, &n->v, &n->n, &found,
			 sizeof(found)); /* without memory it is asked again */
	return found.comm;
}

/* Functions that each plugin exports, under the names that the Makefile gives them. */
#define LINKED(name)                                                                                         \
	int linked_##name##_loader(struct tep_handle *tep);                                                  \
	int linked_##name##_unloader(struct tep_handle *tep);                                                \
	event_text_ask linked_##name##_text
#define ROW(name)                                                                                            \
	{                                                                                                    \
		linked_##name##_loader, linked_##name##_unloader, linked_##name##_text                       \
	}

LINKED(hyp);
LINKED(kvm_arm64);
LINKED(crosvm);
LINKED(hypertrace);

/* In the order in which libtraceevent would find the files. */
static const struct {
	tep_plugin_load_func load;
	tep_plugin_unload_func unload;
	event_text_ask *ask;
} linked[] = { ROW(hyp), ROW(kvm_arm64), ROW(crosvm), ROW(hypertrace) };

struct plugins {
	void **libs; /* others' */
	size_t n;
	const struct log *log; /* while they are loaded */
};

/* Loads a file as libtraceevent does, unless it is one of ours, of whatever version. */
static void plugin_load(struct tep_handle *tep, const char *path, const char *name, void *ctx)
{
	struct plugins *p = ctx;
	char *file = str_printf("%s/%s", path, name);
	void *lib = file ? dlopen(file, RTLD_NOW | RTLD_GLOBAL) : NULL;
	const bool ours = lib && dlsym(lib, "hyptrace_plugin_text");
	void *load = lib && !ours ? dlsym(lib, TEP_PLUGIN_LOADER_NAME) : NULL;

	if (load && !array_push(&p->libs, &p->n, &lib, sizeof(lib))) {
		const char *alias = dlsym(lib, TEP_PLUGIN_ALIAS_NAME);
		struct tep_plugin_option *options = dlsym(lib, TEP_PLUGIN_OPTIONS_NAME);

		if (options)
			tep_plugin_add_options(alias ?: file, options);
		((tep_plugin_load_func)load)(tep);
	} else {
		if (!ours)
			log_warn(p->log, "left out a plugin: %s", dlerror() ?: errno_text(ENOMEM));
		if (lib)
			dlclose(lib);
	}
	free(file);
}

int plugins_load(struct plugins **out, struct tep_handle *tep, const struct log *log)
{
	void *program;

	*out = NULL;
	if (tep_test_flag(tep, TEP_DISABLE_PLUGINS))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(linked); i++)
		linked[i].load(tep);
	program = dlopen(NULL, RTLD_LAZY);
	if (program) { /* not in the static file, which can load nothing */
		(*out)->log = log;
		tep_load_plugins_hook(tep, ".so", plugin_load, *out);
		dlclose(program);
	}
	return 0;
}

void plugins_unload(struct plugins *p, struct tep_handle *tep)
{
	if (!p)
		return;
	while (p->n--) {
		void *lib = p->libs[p->n];
		tep_plugin_unload_func unload = (tep_plugin_unload_func)dlsym(lib, TEP_PLUGIN_UNLOADER_NAME);
		struct tep_plugin_option *options = dlsym(lib, TEP_PLUGIN_OPTIONS_NAME);

		if (unload)
			unload(tep);
		if (options)
			tep_plugin_remove_options(options);
		dlclose(lib);
	}
	for (size_t i = 0; i < ARRAY_SIZE(linked); i++)
		linked[i].unload(tep);
	free(p->libs);
	free(p);
}

/* dladdr() finds none in the static file, which has all. */
const char *plugins_file(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fname : "hyptrace";
}

/* Asks each of ours in turn: libtraceevent does not name a handler's owner. */
enum event_text_answer plugins_ask(const struct tep_event *event, const struct event_text **rows, size_t *n)
{
	enum event_text_answer answer = EVENT_TEXT_ALONE;

	if (plugins_file((void *)event->handler) != plugins_file((void *)linked->load))
		return answer;
	for (size_t i = 0; answer == EVENT_TEXT_ALONE && i < ARRAY_SIZE(linked); i++)
		answer = linked[i].ask(event, rows, n);
	return answer;
}
