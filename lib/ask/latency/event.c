// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events as words of a command line, and their ids in a file. */
#include "ask/latency/latency.h"

static bool event_name_fits(const char *name)
{
	return !name || (*name && !name[word_len(name, SIZE_MAX, "-")]);
}

int event_words_parse(struct event_words *e, const char *text, char *why, size_t size)
{
	const char *wrong;
	char *word, *of_any;
	int ret;

	*e = (struct event_words){ .text = strdup(text) };
	if (!e->text)
		return -ENOMEM;
	word = e->text;
	e->name = strsep(&word, "/");
	e->filter = word;
	word = (char *)e->name;
	e->name = strsep(&word, "@");
	e->machine = word;
	word = strchr(e->name, ':');
	if (word) {
		*word++ = '\0';
		e->system = e->name;
		e->name = word;
	}
	wrong = !event_name_fits(e->name)     ? "no name of an event"
		: !event_name_fits(e->system) ? "no name of a system"
		: e->machine && !*e->machine  ? "no machine after the '@'"
		: e->filter && !*e->filter    ? "no filter after the '/'"
					      : NULL;
	if (wrong)
		snprintf(why, size, "%s: it is [SYSTEM:]EVENT[@MACHINE][/FILTER]", wrong);
	if (wrong || !e->filter)
		return wrong ? -EINVAL : 0;
	/* the filter as libtraceevent has it, for any event */
	of_any = str_printf("%s:%s", e->name, e->filter);
	ret = of_any ? filter_syntax(of_any, why, size) : -ENOMEM;
	free(of_any);
	return ret;
}

void event_words_release(struct event_words *e)
{
	free(e->text);
	*e = (struct event_words){ 0 };
}

bool event_words_machine(const struct event_words *e, const struct input *in)
{
	if (!e->machine)
		return true;
	if (!strcmp(e->machine, "host"))
		return !in->guest;
	return in->guest && (!strcmp(e->machine, "guest") || !strcmp(e->machine, in->machine));
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
