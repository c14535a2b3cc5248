// SPDX-License-Identifier: LGPL-2.1-or-later
/* crosvm's trace points: lines in the host's trace_marker, decoded; other lines are left alone. */
#include "base/decode/mark-lines.h"
#include "plugin.h"

static void crosvm_put(struct trace_seq *s, const struct crosvm_part *p)
{
	trace_seq_printf(s, "%.*s", (int)p->len, p->p);
}

static int crosvm_print(struct trace_seq *s, struct tep_record *record, struct tep_event *event,
			void *context)
{
	struct view v = { event, record, false };
	struct relay *r = context;
	struct crosvm_line l;
	struct crosvm_part expr, value;
	const char *text, *sep = " ";
	size_t len;

	relay_retire(r);
	if (!view_text(&v, "buf", &text, &len) || !crosvm_line_parse(text, len, &l))
		return relay_pass(r, s, record, event);
	trace_seq_printf(s, "crosvm %" PRIu64 " ", l.id);
	if (l.category.len) {
		crosvm_put(s, &l.category);
		trace_seq_puts(s, " ");
	}
	trace_seq_puts(s, l.enter ? "enter " : "exit ");
	crosvm_put(s, &l.name);
	while (crosvm_arg(&l.args, &expr, &value)) {
		trace_seq_puts(s, sep);
		crosvm_put(s, &expr);
		trace_seq_puts(s, "=");
		crosvm_put(s, &value);
		sep = ", ";
	}
	return 0;
}

/* Lines may be another plugin's. */
enum event_text_answer hyptrace_plugin_text(const struct tep_event *event, const struct event_text **rows,
					    size_t *n)
{
	return EVENT_TEXT_ALONE;
}

int TEP_PLUGIN_LOADER(struct tep_handle *tep)
{
	return relay_new(tep, "ftrace", "print", crosvm_print);
}

int TEP_PLUGIN_UNLOADER(struct tep_handle *tep)
{
	relays_free(tep);
	return 0;
}
