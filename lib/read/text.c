// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs for events' texts: made of print formats and of plugins' rows, kept and given up. */
#include <ctype.h>

#include "read/text.h"

#define TEXT_COUNT_MAX UINT16_MAX /* what a record may choose as a width (file/dat/print-format.c) */

static void text_conversion_push(struct text_build *b, const struct text_conversion *c)
{
	if (array_push(&b->v, &b->n, c, sizeof(*c)))
		b->ret = -ENOMEM;
}

/* Up to the next conversion. */
static const char *text_literal(struct text_build *b, const char *s)
{
	struct text_conversion c = { .is = TEXT_IS_TEXT };
	struct buf text = { 0 };

	for (; *s && (*s != '%' || s[1] == '%'); s++) {
		const char *at = strchr("n\nt\tr\r", s[1]);

		if (*s == '\\' && !s[1]) {
			text_refuse(b, "a backslash at the end");
			break;
		}
		if (*s == '\\' && isalpha((unsigned char)s[1]) && at)
			buf_add(&text, at + 1, 1);
		else
			buf_add(&text, *s == '\\' ? s + 1 : s, 1);
		s += *s == '\\' || *s == '%';
	}
	c.s = text_copy(b, buf_str(&text) ? buf_str(&text) : "", text.len);
	c.len = text.len;
	if (buf_status(&text))
		b->ret = -ENOMEM;
	buf_release(&text);
	text_conversion_push(b, &c);
	return s;
}

/* The argument in turn, which there must be: else libtraceevent takes the format for failed. */
static struct tep_print_arg *text_take(struct text_build *b, struct tep_print_arg **arg)
{
	struct tep_print_arg *taken = *arg;

	if (taken)
		*arg = taken->next;
	else
		text_refuse(b, "too few arguments");
	return taken;
}

/* At '%'. What libtraceevent does not know it shows as ">c<", and takes no argument. */
static const char *text_conversion_read(struct text_build *b, const char *s, struct tep_print_arg **arg)
{
	struct text_conversion c = { .s = s };
	char unknown[] = ">?<";

	for (s++; *s && strchr("#hlLzZ.-0123456789*", *s); s++) {
		if (*s == '*')
			c.count = text_take(b, arg);
		c.longs = *s == 'L' ? 2 : *s == 'z' || *s == 'Z' ? 1 : c.longs + (*s == 'l') - (*s == 'h');
	}
	if (!*s)
		return s;
	unknown[1] = *s;
	if (*s == 'p') {
		/* bytes of networks, hardware, uuids: libtraceevent prints them */
		if (s[1] && strchr("MmUhIi", s[1]))
			text_refuse(b, "%%p%c", s[1]);
		c.is = TEXT_IS_POINTER;
		s += s[1] && strchr("FfSs", s[1]);
	} else if (*s == 's') {
		c.is = TEXT_IS_STRING;
	} else if (strchr("duixXo", *s)) {
		c.is = TEXT_IS_INTEGER;
	} else {
		if (*s == 'c' && text_since_1_8())
			text_refuse(b, "%%c");
		c = (struct text_conversion){ .is = TEXT_IS_TEXT, .s = text_copy(b, unknown, 3), .len = 3 };
	}
	if (c.is != TEXT_IS_TEXT) {
		c.len = (size_t)(s + 1 - c.s);
		c.arg = text_take(b, arg);
	}
	text_conversion_push(b, &c);
	return s + 1;
}

static bool text_spec(struct text_build *b, const struct text_conversion *c, struct text_spec *spec)
{
	static const uint8_t bits[] = { 8, 16, 32, 64, 64 };
	const char *end = c->s + c->len;
	struct conversion *of = &spec->c;
	struct buf format = { 0 };
	bool ordered =
		conversion_scan(c->s + 1, end, of) == end && conversion_length_of(of, c->longs < 0 ? "h"
										      : c->longs   ? "lLzZ"
												   : "");

	spec->bits = c->longs >= -2 && c->longs <= 2 ? bits[c->longs + 2] : 0;
	if (!ordered || !spec->bits || (c->is == TEXT_IS_STRING && c->longs)) {
		text_refuse(b, "%.*s", (int)c->len, c->s);
		return false;
	}
	spec->plain =
		!of->left && !of->zero && !of->alternate && !of->width && of->precision < 0 && !c->count;
	/* the same conversion of a long long: "%-08.3llx" */
	buf_printf(&format, "%.*sll%c", (int)(of->length - c->s), c->s, of->letter);
	spec->format = text_copy(b, buf_str(&format) ?: "", format.len);
	buf_release(&format);
	spec->count = c->count ? text_expr(b, c->count) : NULL;
	if (spec->count && text_expr_most(spec->count) > TEXT_COUNT_MAX)
		text_refuse(b, "%.*s without a bound", (int)c->len, c->s);
	return !b->ret;
}

static enum text_piece_kind text_integer_kind(const struct text_spec *s)
{
	const struct conversion *c = &s->c;
	bool wide = c->zero && !c->left && !c->alternate && c->precision < 0 && !s->count &&
		    c->width <= TEXT_WIDTH_MAX;

	if (c->letter == 'x' && (s->plain || wide))
		return TEXT_HEX;
	if (c->letter == 'u' && (s->plain || wide))
		return TEXT_DECIMAL;
	return s->plain && strchr("di", c->letter) ? TEXT_SIGNED : TEXT_INTEGER;
}

static void text_integer_add(struct text_build *b, const struct text_conversion *c)
{
	struct text_spec spec;
	const struct text_expr *value = text_spec(b, c, &spec) ? text_expr(b, c->arg) : NULL;
	struct text_piece *p = value ? text_piece_add(b, text_integer_kind(&spec)) : NULL;

	if (!p)
		return;
	p->spec = spec;
	p->value = value;
}

/* Of %p: a function, or any other address; flags and a width change nothing. */
static void text_pointer_add(struct text_build *b, const struct text_conversion *c)
{
	char what = c->s[c->len - 1];
	const struct text_expr *value = text_expr(b, c->arg);
	struct text_piece *p;

	if (c->arg->type == TEP_PRINT_BSTRING)
		text_refuse(b, "a string of bprint's");
	p = text_piece_add(b, what == 'p' ? TEXT_POINTER : TEXT_FUNCTION);
	if (!p)
		return;
	p->value = value;
	p->offset = what == 'F' || what == 'S';
	if (what != 'p')
		b->ret = b->ret ?: tepfile_functions(b->p->event->tep);
}

static void text_string_add(struct text_build *b, const struct text_conversion *c)
{
	struct text_spec spec;
	const struct text_string *s = text_spec(b, c, &spec) ? text_string(b, c->arg) : NULL;
	struct text_piece *p;

	if (!s)
		return;
	if (s->kind == TEXT_STRING_CONST && spec.plain) {
		buf_add(&b->before, s->s, s->len);
		return;
	}
	p = text_piece_add(b, TEXT_STRING);
	if (!p)
		return;
	p->spec = spec;
	p->string = s;
}

static void text_conversion_add(struct text_build *b, const struct text_conversion *c)
{
	switch (c->is) {
	case TEXT_IS_TEXT:
		buf_add(&b->before, c->s, strlen(c->s));
		break;
	case TEXT_IS_INTEGER:
		text_integer_add(b, c);
		break;
	case TEXT_IS_POINTER:
		text_pointer_add(b, c);
		break;
	case TEXT_IS_STRING:
		text_string_add(b, c);
		break;
	}
}

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

static void text_sched_needed(struct text_build *b, const char *name, enum text_piece_kind kind, uint8_t bits)
{
	if (!text_sched_number(b, name, kind, bits))
		text_refuse(b, "%s without %s", b->p->event->name, name);
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
	text_sched_needed(b, pid, TEXT_SIGNED, 64);
}

static bool text_sched(struct text_build *b, const char *file)
{
	const char *name = b->p->event->name;
	bool wakeup = !strcmp(name, "sched_wakeup") || !strcmp(name, "sched_wakeup_new");
	size_t len;

	if (strcmp(file, "plugin_sched_switch.so") || strcmp(b->p->event->system, "sched") ||
	    (!wakeup && strcmp(name, "sched_switch")))
		return false;
	text_sched_task(b, wakeup ? "comm" : "prev_comm", wakeup ? "pid" : "prev_pid");
	buf_addstr(&b->before, " [");
	if (!wakeup) {
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
		return true;
	}
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
	if (answer == EVENT_TEXT_FUNCTIONS) {
		answer = EVENT_TEXT_CALL;
		b->ret = b->ret ?: tepfile_functions(b->p->event->tep);
	}
	if (answer == EVENT_TEXT_CALL || answer == EVENT_TEXT_TRY)
		b->p->handler = b->p->event->handler;
	if (answer != EVENT_TEXT_ALONE) /* libtraceevent fills its cache: the first use is not thread-safe */
		tep_data_pid(b->p->event->tep, &record);
	for (size_t i = 0; answer == EVENT_TEXT_ROWS && i < n && !b->ret; i++)
		text_row_add(b, &rows[i]);
	return answer == EVENT_TEXT_CALL || answer == EVENT_TEXT_ROWS;
}

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
	struct tep_print_arg *arg = event->print_fmt.args;
	const char *s = event->print_fmt.format, *file = basename(plugins_file((void *)event->handler));
	bool handled = event->handler && !(event->flags & TEP_EVENT_FL_NOHANDLE);

	if (!text_fields_sound(event->format.common_fields) || !text_fields_sound(event->format.fields))
		text_refuse(b, "a field out of reach");
	else if (event->flags & TEP_EVENT_FL_PRINTRAW)
		text_refuse(b, "fields as numbers");
	handled = handled && !b->ret && (text_sched(b, file) || text_plugin(b, file));
	if (!b->ret && !handled) {
		if (event->flags & TEP_EVENT_FL_FAILED)
			text_refuse(b, "a print format that failed");
		else if (event->flags & TEP_EVENT_FL_ISBPRINT)
			text_refuse(b, "a format in each record");
		/* parses it as libtraceevent does */
		while (s && *s && !b->ret)
			s = *s == '%' && s[1] != '%' ? text_conversion_read(b, s, &arg) : text_literal(b, s);
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
	if (s->seq.state == TRACE_SEQ__GOOD)
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
