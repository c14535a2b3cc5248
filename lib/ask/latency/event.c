// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events as words of a command line, and their ids in a file. */
#include "ask/latency/event.h"

#define EVENT_NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

static int event_wrong(char *why, size_t size, const char *what)
{
	snprintf(why, size, "%s: it is [SYSTEM:]EVENT[@MACHINE][/FILTER]", what);
	return -EINVAL;
}

static bool event_name_fits(const char *name)
{
	return *name && !name[strspn(name, EVENT_NAME_CHARS)];
}

int event_words_parse(struct event_words *e, const char *text, char *why, size_t size)
{
	char *copy = strdup(text), *word = copy, *filter, *machine, *colon, *of_any;
	int ret;

	*e = (struct event_words){ 0 };
	if (!copy)
		return -ENOMEM;
	filter = strchr(word, '/');
	if (filter)
		*filter++ = '\0';
	machine = strchr(word, '@');
	if (machine)
		*machine++ = '\0';
	colon = strchr(word, ':');
	if (colon)
		*colon++ = '\0';
	e->name = strdup(colon ? colon : word);
	e->system = colon ? strdup(word) : NULL;
	e->machine = machine ? strdup(machine) : NULL;
	e->filter = filter ? strdup(filter) : NULL;
	if (!e->name || !e->system != !colon || !e->machine != !machine || !e->filter != !filter) {
		ret = -ENOMEM;
	} else if (!event_name_fits(e->name)) {
		ret = event_wrong(why, size, "no name of an event");
	} else if (e->system && !event_name_fits(e->system)) {
		ret = event_wrong(why, size, "no name of a system");
	} else if (e->machine && !*e->machine) {
		ret = event_wrong(why, size, "no machine after the '@'");
	} else if (e->filter && !*e->filter) {
		ret = event_wrong(why, size, "no filter after the '/'");
	} else { /* the filter as libtraceevent has it, for any event */
		of_any = e->filter ? str_printf("%s:%s", e->name, e->filter) : NULL;
		ret = of_any ? filter_syntax(of_any, why, size) : e->filter ? -ENOMEM : 0;
		free(of_any);
	}
	free(copy);
	return ret;
}

void event_words_release(struct event_words *e)
{
	free(e->system);
	free(e->name);
	free(e->machine);
	free(e->filter);
	*e = (struct event_words){ 0 };
}

bool event_words_machine(const struct event_words *e, const struct input *in)
{
	if (!e->machine)
		return true;
	if (!strcmp(e->machine, "host"))
		return !in->guest;
	if (!strcmp(e->machine, "guest"))
		return in->guest;
	return in->guest && !strcmp(e->machine, in->machine);
}

int event_match_open(struct event_match *m, const struct event_words *e, const struct input *in, char *why,
		     size_t size)
{
	*m = (struct event_match){ 0 };
	if (!event_words_machine(e, in))
		return 0;
	for (unsigned int i = 0; i < in->n_known; i++) {
		const struct known_event *known = input_event(in, i);
		struct event_id id = { .id = i };
		char *text = NULL;
		int ret = 0;

		if (!known || strcmp(known->event->name, e->name) ||
		    (e->system && strcmp(known->event->system, e->system)))
			continue;
		id.event = known->event;
		id.hyp = known->hyp;
		if (e->filter) {
			text = str_printf("%s/%s:%s", id.event->system, id.event->name, e->filter);
			ret = text ? filter_open(&id.filter, in->tep, text, why, size) : -ENOMEM;
			free(text);
		}
		ret = ret ?: array_push(&m->v, &m->n, &id, sizeof(id));
		if (ret) {
			filter_free(id.filter);
			return ret;
		}
	}
	return 0;
}

void event_match_release(struct event_match *m)
{
	for (size_t i = 0; i < m->n; i++)
		filter_free(m->v[i].filter);
	free(m->v);
	*m = (struct event_match){ 0 };
}
