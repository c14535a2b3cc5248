// SPDX-License-Identifier: LGPL-2.1-or-later
/* libtraceevent's plugins: installed ones, or linked ones. */
#include "read/plugins.h"

#include <dlfcn.h>

#ifndef HYPTRACE_STATIC

struct tep_plugin_list *plugins_load(struct tep_handle *tep)
{
	return tep_load_plugins(tep);
}

void plugins_unload(struct tep_plugin_list *list, struct tep_handle *tep)
{
	if (list)
		tep_unload_plugins(list, tep);
}

const char *plugins_file(const struct tep_event *event)
{
	Dl_info info;

	return dladdr((void *)event->handler, &info) ? info.dli_fname : NULL;
}

enum event_text_answer plugins_ask(const struct tep_event *event, const struct event_text **rows, size_t *n)
{
	enum event_text_answer answer = EVENT_TEXT_ALONE;
	const char *file = plugins_file(event);
	void *plugin = file ? dlopen(file, RTLD_NOW | RTLD_NOLOAD) : NULL;
	event_text_ask *ask;

	if (!plugin)
		return answer;
	ask = (event_text_ask *)dlsym(plugin, "hyptrace_plugin_text");
	if (ask)
		answer = ask(event, rows, n);
	dlclose(plugin);
	return answer;
}

#else

/* What each plugin exports, under the names that the Makefile gives it. */
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

struct tep_plugin_list *plugins_load(struct tep_handle *tep)
{
	if (tep_test_flag(tep, TEP_DISABLE_PLUGINS))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(linked); i++)
		linked[i].load(tep);
	return (struct tep_plugin_list *)linked; /* for plugins_unload alone */
}

void plugins_unload(struct tep_plugin_list *list, struct tep_handle *tep)
{
	for (size_t i = 0; list && i < ARRAY_SIZE(linked); i++)
		linked[i].unload(tep);
}

const char *plugins_file(const struct tep_event *event)
{
	return "hyptrace";
}

/* Whose handler it is is not known, but each knows its events. */
enum event_text_answer plugins_ask(const struct tep_event *event, const struct event_text **rows, size_t *n)
{
	enum event_text_answer answer = EVENT_TEXT_ALONE;

	for (size_t i = 0; answer == EVENT_TEXT_ALONE && i < ARRAY_SIZE(linked); i++)
		answer = linked[i].ask(event, rows, n);
	return answer;
}

#endif
