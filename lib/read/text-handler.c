// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events that a plugin prints: stock's sched_switch as a program, our own by their handlers. */

#include "read/tepfile.h"
#include "text-priv.h"

/* A number of the plugin's; false: it would complain. */
static bool text_sched_number(struct text_build *b, const char *name, enum text_piece_kind kind, uint8_t bits)
{
	const struct tep_format_field *f = tep_find_field(b->p->event, name);
	struct text_piece *p;

	if (!f || (f->size != 1 && f->size != 2 && f->size != 4 && f->size != 8))
		return false;
	p = text_piece_add(b, kind);
	if (p) {
		p->spec.bits = bits;
		p->value = text_expr_load(b, f, true);
	}
	return true;
}

/* "comm:pid", which makes the task known. */
static void text_sched_task(struct text_build *b, const char *comm, const char *pid)
{
	const struct tep_format_field *f = tep_find_any_field(b->p->event, comm);
	struct text_string *s = text_alloc(b, sizeof(*s));
	struct text_piece *p = f && s ? text_piece_add(b, TEXT_STRING) : NULL;

	if (p) {
		*s = (struct text_string){ .kind = TEXT_STRING_FIELD, .at = text_place(f) };
		p->spec.c.precision = -1;
		p->string = s;
		buf_addstr(&b->before, ":");
		b->p->tasks[b->p->n_tasks++] =
			(struct text_task){ .pid = tep_find_field(b->p->event, pid), .comm = f };
	}
	if (!text_sched_number(b, pid, TEXT_SIGNED, 64))
		text_refuse(b, "%s without %s", b->p->event->name, pid);
}

static void text_sched_needed(struct text_build *b, const char *name, enum text_piece_kind kind, uint8_t bits)
{
	if (!text_sched_number(b, name, kind, bits))
		text_refuse(b, "%s without %s", b->p->event->name, name);
}

static void text_sched_wakeup(struct text_build *b)
{
	size_t len;

	text_sched_task(b, "comm", "pid");
	buf_addstr(&b->before, " [");
	text_sched_needed(b, "prio", TEXT_SIGNED, 64);
	buf_addstr(&b->before, "]");
	len = b->before.len;
	buf_addstr(&b->before, " success=");
	if (!text_sched_number(b, "success", TEXT_SIGNED, 64))
		b->before.len = len;
	len = b->before.len;
	buf_addstr(&b->before, " CPU:");
	if (!text_sched_number(b, "target_cpu", TEXT_DECIMAL, 64))
		b->before.len = len;
	else if (!b->ret)
		b->p->pieces[b->p->n - 1].spec.c.width = 3;
}

static void text_sched_switch(struct text_build *b)
{
	text_sched_task(b, "prev_comm", "prev_pid");
	buf_addstr(&b->before, " [");
	text_sched_needed(b, "prev_prio", TEXT_SIGNED, 32);
	buf_addstr(&b->before, "] ");
	text_sched_needed(b, "prev_state", TEXT_STATE, 32);
	if (!b->ret)
		b->p->pieces[b->p->n - 1].letters = text_since_1_8() ? "SDTtXZPI" : "SDTtZXxW";
	buf_addstr(&b->before, " ==> ");
	text_sched_task(b, "next_comm", "next_pid");
	buf_addstr(&b->before, " [");
	text_sched_needed(b, "next_prio", TEXT_SIGNED, 32);
	buf_addstr(&b->before, "]");
}

static bool text_sched(struct text_build *b, const char *file)
{
	const char *name = b->p->event->name;

	if (strcmp(file, "plugin_sched_switch.so") || strcmp(b->p->event->system, "sched"))
		return false;
	if (!strcmp(name, "sched_switch"))
		text_sched_switch(b);
	else if (!strcmp(name, "sched_wakeup") || !strcmp(name, "sched_wakeup_new"))
		text_sched_wakeup(b);
	else
		return false;
	return true;
}

static void text_row_names(struct text_build *b, struct text_piece *p)
{
	struct text_name *names = text_alloc(b, TEXT_NAMES * sizeof(*names));
	struct text_string *s = text_alloc(b, sizeof(*s));

	if (!names || !s)
		return;
	for (size_t i = 0; i < TEXT_NAMES; i++) {
		const char *name = p->row->name(b->p->event, i);

		names[i].len = name ? strlen(name) : 0;
		names[i].s = name ? text_copy(b, name, names[i].len) : NULL;
	}
	s->names = names;
	p->string = s;
}

static void text_row_add(struct text_build *b, const struct event_text *row)
{
	static const enum text_piece_kind kinds[] = {
		[EVENT_TEXT_HEX] = TEXT_HEX,	[EVENT_TEXT_SIGNED] = TEXT_SIGNED,
		[EVENT_TEXT_NAME] = TEXT_NAMED, [EVENT_TEXT_HEX_NAME] = TEXT_NAMED,
		[EVENT_TEXT_TASK] = TEXT_TASK,	[EVENT_TEXT_FUNCTION] = TEXT_GUEST,
	};
	const struct tep_format_field *f = tep_find_any_field(b->p->event, row->field);
	struct text_piece *p;

	if (f->flags & TEP_FIELD_IS_SIGNED && f->size * 8 < row->bits)
		text_refuse(b, "the sign of %s", f->name);
	buf_addstr(&b->before, row->before);
	p = text_piece_add(b, kinds[row->kind]);
	if (!p)
		return;
	p->row = row;
	p->value = text_expr_load(b, f, true);
	p->spec.bits = row->bits;
	p->spec.c.width = row->digits;
	if (kinds[row->kind] == TEXT_NAMED)
		text_row_names(b, p);
	if (row->kind == EVENT_TEXT_TASK)
		b->p->named = f;
	if (b->p->needs < (uint32_t)(f->offset + f->size))
		b->p->needs = (uint32_t)(f->offset + f->size);
}

/* True: all there is to print. */
static bool text_plugin(struct text_build *b, const char *file)
{
	uint64_t zeros[8] = { 0 };
	struct tep_record record = { .data = zeros, .size = sizeof(zeros) };
	const struct event_text *rows;
	size_t n;
	enum event_text_answer answer = plugins_ask(b->p->event, &rows, &n);

	if (answer == EVENT_TEXT_ALONE)
		text_refuse(b, "handler of %s", file);
	if (answer == EVENT_TEXT_CALL || answer == EVENT_TEXT_TRY)
		b->p->handler = b->p->event->handler;
	if (answer != EVENT_TEXT_ALONE) {
		/* makes libtraceevent fill its caches, since the first use is not thread-safe */
		tep_find_function(b->p->event->tep, 0);
		tep_data_pid(b->p->event->tep, &record);
	}
	for (size_t i = 0; answer == EVENT_TEXT_ROWS && i < n && !b->ret; i++)
		text_row_add(b, &rows[i]);
	return answer == EVENT_TEXT_CALL || answer == EVENT_TEXT_ROWS;
}

bool text_handler(struct text_build *b)
{
	const struct tep_event *event = b->p->event;
	const char *file = basename(plugins_file(event));

	if (!event->handler || event->flags & TEP_EVENT_FL_NOHANDLE)
		return false;
	return text_sched(b, file) || text_plugin(b, file);
}
