// SPDX-License-Identifier: LGPL-2.1-or-later
/* Two plugins for one event: ours is asked first and passes on what is not its own. */
#include "plugin.h"
#include "base/strings.h"

#define DECOY_ID   0x48590000 /* ids of traces have 16 bits */
#define DECOYS_MAX 16	      /* of one event: as many plugins of ours (or copies) */
#define HIDDEN	   "hyptrace" /* the system of a decoy that has done its work */

struct relay {
	struct relay *next;
	struct tep_handle *tep;
	const char *sys, *event; /* the caller's constants */
	tep_event_handler_func func;
	struct tep_event *decoy; /* owned by the tep; handler: of who registered after us */
	tep_event_handler_func before;
	void *before_context;
	bool retired;
};

static struct relay *relays;

static int swap_system(struct tep_event *event, const char *sys)
{
	char *copy = strdup(sys);

	if (!copy)
		return -1;
	free(event->system);
	event->system = copy;
	return 0;
}

static struct tep_event *decoy_new(struct tep_handle *tep, const char *sys, const char *event)
{
	static const char format[] =
		"name: %s\nID: %d\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:int unused;\toffset:8;\tsize:4;\tsigned:1;\n\n"
		"print fmt: \"%%d\", REC->unused\n";
	struct tep_event *decoy = NULL;
	int id = DECOY_ID;
	char *text;

	while (tep_find_event(tep, id))
		id++;
	text = str_printf(format, event, id);
	if (text && !tep_parse_event(tep, text, strlen(text), sys))
		decoy = tep_find_event(tep, id);
	free(text);
	return decoy;
}

int relay_new(struct tep_handle *tep, const char *sys, const char *event, tep_event_handler_func func)
{
	struct relay *r = calloc(1, sizeof(*r));
	struct tep_event *real, *decoys[DECOYS_MAX];
	size_t n = 0;

	if (!r)
		return -1;
	*r = (struct relay){ .next = relays, .tep = tep, .sys = sys, .event = event, .func = func };
	relays = r;
	real = tep_find_event_by_name(tep, sys, event);
	if (real && real->id < DECOY_ID) { /* parsed before the plugins were loaded */
		r->before = real->handler;
		r->before_context = real->context;
		tep_register_event_handler(tep, -1, sys, event, func, r);
		return 0;
	}
	r->decoy = decoy_new(tep, sys, event);
	if (r->decoy) {
		r->before = r->decoy->handler;
		r->before_context = r->decoy->context;
		r->decoy->handler = NULL;
	}
	/* in the list, past the decoys (ours and those of our other plugins), which would take the handler */
	while (n < DECOYS_MAX) {
		struct tep_event *d = tep_find_event_by_name(tep, sys, event);

		if (!d || d->id < DECOY_ID || swap_system(d, HIDDEN))
			break;
		decoys[n++] = d;
	}
	tep_register_event_handler(tep, -1, sys, event, func, r);
	while (n--)
		swap_system(decoys[n], sys);
	return 0;
}

void relays_free(struct tep_handle *tep)
{
	struct relay **at = &relays;

	while (*at) {
		struct relay *r = *at;

		if (r->tep != tep) {
			at = &r->next;
			continue;
		}
		tep_unregister_event_handler(tep, -1, r->sys, r->event, r->func, r);
		*at = r->next;
		free(r);
	}
}

void relay_retire(struct relay *r)
{
	if (r->decoy && !r->retired)
		swap_system(r->decoy, HIDDEN);
	r->retired = true;
}

int relay_pass(struct relay *r, struct trace_seq *s, struct tep_record *record, struct tep_event *event)
{
	const unsigned int len = s->len;
	int ret = -1;

	if (r->decoy && r->decoy->handler)
		ret = r->decoy->handler(s, record, event, r->decoy->context);
	if (ret && r->before && s->len == len)
		ret = r->before(s, record, event, r->before_context);
	return ret;
}
