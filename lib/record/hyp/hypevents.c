// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hypervisor's events, from their format files; the formats of ours; and the numbers of reasons. */
#include "record/hyp/hypevents.h"

#include "record/hyp/text-pattern.h"

#define ID_MAX	   32767 /* KernelShark's int16 */
#define REASON_MAX 255	 /* a u8 */

int hypevents_init(struct hypevents *e, const char *system)
{
	*e = (struct hypevents){ 0 };
	return str_take(&e->system, strdup(system));
}

static void event_release(struct hypevent *ev)
{
	event_format_release(&ev->fmt);
	hyptext_pattern_free(ev->pattern);
}

void hypevents_release(struct hypevents *e)
{
	for (size_t i = 0; i < e->n; i++)
		event_release(&e->v[i]);
	free(e->v);
	free(e->system);
	strlist_release(&e->extra_reasons);
	*e = (struct hypevents){ 0 };
}

/* "vcpu", "args[4]", "args[]" */
static bool is_field_name(const char *s)
{
	size_t n = strcspn(s, "[");

	if (!is_word(s, n) || isdigit((unsigned char)*s))
		return false;
	if (!s[n])
		return true;
	n += 1 + strspn(s + n + 1, "0123456789");
	return !strcmp(s + n, "]");
}

/* Words and stars, and the brackets of "__data_loc char[]". */
static bool is_type(const char *s)
{
	size_t n = strlen(s);

	if ((!strncmp(s, "__data_loc ", 11) || !strncmp(s, "__rel_loc ", 10)) && !strcmp(s + n - 2, "[]"))
		n -= 2;
	return word_len(s, n, " *") == n && (isalpha((unsigned char)*s) || *s == '_');
}

/* The header must be one that we can put ours in the place of. */
static bool format_ok(const struct event_format *f)
{
	unsigned int header = hyp_kernel_header(f);

	if (!is_word(f->name, strlen(f->name)) || f->id > UINT16_MAX || !f->n_common)
		return false;
	if (f->common[0].offset || f->common[0].size != 2 || header > HYP_HEADER_SIZE)
		return false;
	for (size_t i = 0; i < f->n_fields; i++)
		if (f->fields[i].offset < header || !is_field_name(f->fields[i].name) ||
		    !is_type(f->fields[i].type))
			return false;
	return true;
}

static bool hyp_event_before(const void *event, const void *hyp_id)
{
	return ((const struct hypevent *)event)->fmt.id < *(const unsigned int *)hyp_id;
}

int hypevents_add(struct hypevents *e, const char *format_text, size_t len)
{
	struct hypevent ev = { .vcpu_offset = -1 };
	int ret = event_format_parse(format_text, len, &ev.fmt);
	unsigned int header;
	size_t at;

	if (ret)
		return ret;
	if (!format_ok(&ev.fmt))
		ret = -EBADMSG;
	else if (hypevents_by_hyp_id(e, ev.fmt.id) || hypevents_by_name(e, ev.fmt.name, strlen(ev.fmt.name)))
		ret = -EEXIST;
	else
		ret = hyptext_pattern_new(&ev.fmt, &ev.pattern);
	if (ret)
		goto fail;
	header = hyp_kernel_header(&ev.fmt);
	for (size_t i = 0; i < ev.fmt.n_fields; i++) {
		const struct event_field *f = &ev.fmt.fields[i];

		if (f->offset + f->size - header > ev.body_len)
			ev.body_len = f->offset + f->size - header;
		if (ev.vcpu_offset < 0 && !strcmp(f->name, "vcpu") && !strcmp(f->type, "pid_t") &&
		    f->size == 4)
			ev.vcpu_offset = (int)hyp_written_offset(&ev.fmt, f);
	}
	ev.from_text = ev.pattern && ev.pattern->invertible && ev.body_len <= HYP_BODY_MAX;
	ev.as_text = !e->raw && !ev.from_text;
	if (ev.as_text)
		ev.vcpu_offset = -1;
	at = array_lower_bound(e->v, e->n, sizeof(ev), hyp_event_before, &ev.fmt.id);
	ret = array_insert(&e->v, &e->n, at, &ev, sizeof(ev));
fail:
	if (ret)
		event_release(&ev);
	return ret;
}

int hypevents_number(struct hypevents *e, unsigned int first_id)
{
	if (first_id > ID_MAX || e->n > ID_MAX - first_id)
		return -ERANGE;
	for (size_t i = 0; i < e->n; i++)
		e->v[i].id = first_id + (unsigned int)i;
	e->unknown_id = first_id + (unsigned int)e->n;
	return 0;
}

const struct hypevent *hypevents_by_hyp_id(const struct hypevents *e, unsigned int hyp_id)
{
	size_t i = array_lower_bound(e->v, e->n, sizeof(*e->v), hyp_event_before, &hyp_id);

	return i < e->n && e->v[i].fmt.id == hyp_id ? &e->v[i] : NULL;
}

const struct hypevent *hypevents_by_name(const struct hypevents *e, const char *name, size_t len)
{
	for (size_t i = 0; i < e->n; i++)
		if (strlen(e->v[i].fmt.name) == len && !memcmp(e->v[i].fmt.name, name, len))
			return &e->v[i];
	return NULL;
}

int hypevents_reason(struct hypevents *e, const char *s, size_t len)
{
	int ret;

	for (size_t i = 0; i < hyp_reasons_n; i++)
		if (strlen(hyp_reasons[i]) == len && !memcmp(hyp_reasons[i], s, len))
			return (int)i;
	for (size_t i = 0; i < e->extra_reasons.n; i++)
		if (strlen(e->extra_reasons.v[i]) == len && !memcmp(e->extra_reasons.v[i], s, len))
			return HYP_REASON_EXTRA + (int)i;
	if (!is_word(s, len))
		return -EINVAL;
	if (HYP_REASON_EXTRA + e->extra_reasons.n > REASON_MAX)
		return -ENOSPC;
	ret = strlist_take(&e->extra_reasons, strndup(s, len));
	return ret ? ret : HYP_REASON_EXTRA + (int)e->extra_reasons.n - 1;
}

static void print_conv(const struct pattern_item *it, const struct event_field *f, bool raw, struct buf *out)
{
	switch (it->conv) {
	case CONV_NONE:
		break;
	case CONV_CHAR: /* libtraceevent has no %c, and prints one byte as a string */
	case CONV_STRING:
		buf_addstr(out, "%s");
		break;
	case CONV_REASON:
		buf_addstr(out, raw ? "%u" : "%s");
		break;
	case CONV_POINTER:
		buf_addstr(out, "%016llx");
		break;
	case CONV_SYMBOL:
		buf_printf(out, "%%p%c", it->letter);
		break;
	default:
		buf_printf(out, "%%%s%s", it->zero ? "0" : "", it->left ? "-" : "");
		if (it->width)
			buf_printf(out, "%u", it->width);
		/* libtraceevent sign-extends by the conversion's length, not by the field's */
		if (it->wide)
			buf_addstr(out, "ll");
		else if (it->conv == CONV_SIGNED && f->is_signed && f->size != 4)
			buf_addstr(out, f->size == 1 ? "hh" : "h");
		buf_printf(out, "%c", it->letter);
	}
}

/*
 * Appends the print format as libtraceevent likes it, without "print fmt: ". Reasons are named from e, or
 * left as numbers when e->raw.
 */
static void hyptext_pattern_print(const struct hyptext_pattern *p, const struct hypevents *e,
				  const struct event_format *f, struct buf *out)
{
	buf_addstr(out, "\"");
	for (size_t i = 0; i < p->n; i++) {
		for (const char *s = p->v[i].literal; *s; s++)
			buf_printf(out, *s == '%' ? "%%%%" : "%c", *s);
		if (p->v[i].conv != CONV_NONE)
			print_conv(&p->v[i], &f->fields[p->v[i].field], e->raw, out);
	}
	buf_addstr(out, "\"");
	for (size_t i = 0; p->v[i].conv != CONV_NONE; i++) {
		const char *name = f->fields[p->v[i].field].name;
		int n = (int)strcspn(name, "[");

		buf_addstr(out, ", ");
		if (p->v[i].conv == CONV_REASON && !e->raw) {
			buf_printf(out, "__print_symbolic(REC->%s", name);
			for (size_t k = 0; k < hyp_reasons_n; k++)
				buf_printf(out, ", { %zu, \"%s\" }", k, hyp_reasons[k]);
			for (size_t k = 0; k < e->extra_reasons.n; k++)
				buf_printf(out, ", { %zu, \"%s\" }", HYP_REASON_EXTRA + k,
					   e->extra_reasons.v[k]);
			buf_addstr(out, ")");
		} else {
			buf_printf(out, "%sREC->%.*s", p->v[i].conv == CONV_SYMBOL ? "(void *)" : "", n,
				   name);
		}
	}
}

void hypevents_format_head(const char *name, unsigned int id, struct buf *out)
{
	buf_printf(out, "name: %s\nID: %u\nformat:\n", name, id);
	buf_addstr(out, "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n");
}

static void format_field(const char *type, const char *name, size_t offset, unsigned int size, bool is_signed,
			 struct buf *out)
{
	buf_printf(out, "\tfield:%s%s%s;\toffset:%zu;\tsize:%u;\tsigned:%d;\n", type,
		   type[strlen(type) - 1] == '*' ? "" : " ", name, offset, size, is_signed);
}

/* One field in a list of them, conversion into fmt and argument into args. */
static void list_field(const struct event_field *f, struct buf *fmt, struct buf *args)
{
	static const char *const conv[2][9] = {
		{ [1] = "%u", [2] = "%u", [4] = "%u", [8] = "0x%llx" },
		{ [1] = "%hhd", [2] = "%hd", [4] = "%d", [8] = "%lld" },
	};
	int n = (int)strcspn(f->name, "[");
	unsigned long count = f->name[n] ? strtoul(f->name + n + 1, NULL, 10) : 0;
	/* of "args[4]", 0 when that is no array of whole ones */
	unsigned int elems = count && count <= f->size && !(f->size % count) ? (unsigned int)count : 0;
	bool dynamic = !strncmp(f->type, "__data_loc", 10);
	bool plain = !dynamic && !elems && !f->name[n] && f->size <= 8 && conv[f->is_signed][f->size];

	if (!dynamic && !elems && !plain)
		return;
	buf_printf(fmt, "%s%.*s=%s", fmt->len ? " " : "", n, f->name,
		   plain ? conv[f->is_signed][f->size] : "%s");
	if (dynamic && strstr(f->type, "char"))
		buf_printf(args, ", __get_str(%.*s)", n, f->name);
	else if (dynamic)
		buf_printf(args, ", __print_hex(__get_dynamic_array(%.*s), __get_dynamic_array_len(%.*s))", n,
			   f->name, n, f->name);
	else if (elems && strcmp(f->type, "char"))
		buf_printf(args, ", __print_array(REC->%.*s, %u, %u)", n, f->name, elems, f->size / elems);
	else
		buf_printf(args, ", REC->%.*s", n, f->name);
}

/* The field is in the text. */
static bool hyptext_pattern_has(const struct hyptext_pattern *p, size_t field)
{
	for (size_t i = 0; p->v[i].conv != CONV_NONE; i++)
		if (p->v[i].field == field)
			return true;
	return false;
}

void hypevents_format(const struct hypevents *e, size_t i, struct buf *out)
{
	if (i >= e->n) {
		hypevents_format_head("hyp_unknown", e->unknown_id, out);
		format_field("int", "id", 8, 4, true, out);
		format_field("__data_loc char[]", "text", 12, 4, false, out);
		format_field("__data_loc u8[]", "data", 16, 4, false, out);
		buf_addstr(out, "\nprint fmt: \"id=%d %s%s\", REC->id, __get_str(text), "
				"__print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))\n");
	} else if (e->v[i].as_text) {
		hypevents_format_head(e->v[i].fmt.name, e->v[i].id, out);
		format_field("__data_loc char[]", "text", 8, 4, false, out);
		buf_addstr(out, "\nprint fmt: \"%s\", __get_str(text)\n");
	} else {
		const struct hypevent *ev = &e->v[i];
		const struct event_format *f = &ev->fmt;

		hypevents_format_head(f->name, ev->id, out);
		for (size_t k = 0; k < f->n_fields; k++) {
			const struct event_field *v = &f->fields[k];

			/* fields that the text lacks are not in the record */
			if (e->raw || hyptext_pattern_has(ev->pattern, k))
				format_field(v->type, v->name, hyp_written_offset(f, v), v->size,
					     v->is_signed, out);
		}
		/* also without fields, as the kernel's own formats: libtraceevent wants both blank lines */
		buf_addstr(out, "\nprint fmt: ");
		if (ev->pattern) {
			hyptext_pattern_print(ev->pattern, e, f, out);
		} else {
			struct buf fmt = { 0 }, args = { 0 };

			for (size_t k = 0; k < f->n_fields; k++)
				list_field(&f->fields[k], &fmt, &args);
			if (buf_status(&fmt) || buf_status(&args))
				out->bad = true;
			buf_printf(out, "\"%s\"%s", fmt.len ? buf_str(&fmt) : "",
				   args.len ? buf_str(&args) : "");
			buf_release(&fmt);
			buf_release(&args);
		}
		buf_addstr(out, "\n");
	}
}
