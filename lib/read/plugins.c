// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decoders of events: ours, which are linked, and others' plugins of libtraceevent, which are loaded. */
#include "read/tepfile.h"
#include "base/strings.h"

#include <dlfcn.h>

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
