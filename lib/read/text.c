// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs for events' texts: made, kept and given up. */
#include "read/text.h"

#include <errno.h>
#include <stdlib.h>

#include "text-priv.h"

#define TEXT_FIELD_MAX (1 << 20) /* bytes: where a field may lie, and end */

/* Fields that no kernel has could not be added up. */
static bool text_fields_sound(const struct tep_format_field *f)
{
	for (; f; f = f->next)
		if (f->offset < 0 || f->offset > TEXT_FIELD_MAX || f->size < 0 || f->size > TEXT_FIELD_MAX)
			return false;
	return true;
}

static void text_build(struct text_build *b)
{
	struct tep_event *event = b->p->event;

	if (!text_fields_sound(event->format.common_fields) || !text_fields_sound(event->format.fields))
		text_refuse(b, "a field out of reach");
	else if (event->flags & TEP_EVENT_FL_PRINTRAW)
		text_refuse(b, "fields as numbers");
	if (!b->ret && !text_handler(b)) {
		if (event->flags & TEP_EVENT_FL_FAILED)
			text_refuse(b, "a print format that failed");
		else if (event->flags & TEP_EVENT_FL_ISBPRINT)
			text_refuse(b, "a format in each record");
		text_conversions(b);
		for (size_t i = 0; i < b->n && !b->ret; i++)
			text_conversion_add(b, &b->v[i]);
	}
	if (b->before.len && !b->ret)
		text_piece_add(b, TEXT_NOTHING);
}

int text_compile(struct text_program **out, struct tep_event *event, char why[TEXT_WHY_MAX])
{
	struct text_build b = { .p = calloc(1, sizeof(*b.p)), .why = why };

	*out = NULL;
	*why = '\0';
	if (!b.p)
		return -ENOMEM;
	b.p->event = event;
	b.p->least = (uint32_t)tepfile_least_size(event);
	text_build(&b);
	if (b.before.bad || b.p->arena.bad)
		b.ret = -ENOMEM;
	buf_release(&b.before);
	free(b.v);
	if (b.ret)
		text_free(b.p);
	else
		*out = b.p;
	return b.ret;
}

void text_free(struct text_program *p)
{
	if (!p)
		return;
	arena_release(&p->arena);
	free(p->pieces);
	free(p);
}

size_t text_tasks(const struct text_program *p, const struct text_task **v)
{
	*v = p->tasks;
	return p->n_tasks;
}

const struct tep_format_field *text_named(const struct text_program *p)
{
	return p->named;
}

int text_scratch_init(struct text_scratch *s)
{
	*s = (struct text_scratch){ 0 };
	trace_seq_init(&s->seq);
	if (!padded_init(&s->room) && s->seq.state == TRACE_SEQ__GOOD)
		return 0;
	text_scratch_release(s);
	return -ENOMEM;
}

void text_scratch_release(struct text_scratch *s)
{
	if (s->seq.buffer)
		trace_seq_destroy(&s->seq);
	padded_release(&s->room);
	*s = (struct text_scratch){ 0 };
}
