// SPDX-License-Identifier: LGPL-2.1-or-later
#include "hyp/events.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hyp/text-pattern.h"

#define ID_MAX	     32767 /* KernelShark's int16 */
#define REASON_MAX   255   /* a u8 */
#define NAME_MAX_LEN 63

const char *const hyp_reasons[] = { "smc",	  "hvc",       "sys",	     "psci",   "host_abort",
				    "guest_exit", "eret_host", "eret_guest", "unknown" };
const size_t hyp_reasons_n = ARRAY_SIZE(hyp_reasons);

/* ---- the set -------------------------------------------------------------------- */

int hypevents_init(struct hypevents *e, const char *system)
{
	*e = (struct hypevents){ 0 };
	e->system = strdup(system);
	return e->system ? 0 : -ENOMEM;
}

static void event_release(struct hypevent *ev)
{
	free(ev->name);
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

static bool is_word(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_')
			return false;
	return len && len <= NAME_MAX_LEN;
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
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("_ *", s[i]))
			return false;
	return isalpha((unsigned char)*s) || *s == '_';
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

static size_t body_len(const struct event_format *f)
{
	unsigned int header = hyp_kernel_header(f);
	size_t end = header;

	for (size_t i = 0; i < f->n_fields; i++)
		if (f->fields[i].offset + f->fields[i].size > end)
			end = f->fields[i].offset + f->fields[i].size;
	return end - header;
}

static int vcpu_offset(const struct event_format *f)
{
	for (size_t i = 0; i < f->n_fields; i++) {
		const struct event_field *v = &f->fields[i];

		if (!strcmp(v->name, "vcpu") && !strcmp(v->type, "pid_t") && v->size == 4)
			return (int)hyp_written_offset(f, v);
	}
	return -1;
}

static int event_fill(struct hypevent *ev, bool raw)
{
	int ret = hyptext_pattern_new(&ev->fmt, &ev->pattern);

	if (ret)
		return ret;
	ev->name = strdup(ev->fmt.name);
	ev->hyp_id = ev->fmt.id;
	ev->body_len = body_len(&ev->fmt);
	ev->as_text = !raw && (!ev->pattern || !ev->pattern->invertible || ev->body_len > HYP_BODY_MAX);
	ev->vcpu_offset = ev->as_text ? -1 : vcpu_offset(&ev->fmt);
	return ev->name ? 0 : -ENOMEM;
}

static int insert(struct hypevents *e, const struct hypevent *ev)
{
	struct hypevent *v = realloc(e->v, (e->n + 1) * sizeof(*v));
	size_t at = e->n;

	if (!v)
		return -ENOMEM;
	e->v = v;
	while (at && v[at - 1].hyp_id > ev->hyp_id)
		at--;
	memmove(v + at + 1, v + at, (e->n - at) * sizeof(*v));
	v[at] = *ev;
	e->n++;
	return 0;
}

int hypevents_add(struct hypevents *e, const char *format_text, size_t len)
{
	struct hypevent ev = { 0 };
	int ret = event_format_parse(format_text, len, &ev.fmt);

	if (ret)
		return ret;
	if (!format_ok(&ev.fmt))
		ret = -EBADMSG;
	else if (hypevents_by_hyp_id(e, ev.fmt.id) || hypevents_by_name(e, ev.fmt.name, strlen(ev.fmt.name)))
		ret = -EEXIST;
	else
		ret = event_fill(&ev, e->raw);
	if (!ret)
		ret = insert(e, &ev);
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
	size_t low = 0, high = e->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (e->v[mid].hyp_id == hyp_id)
			return &e->v[mid];
		if (e->v[mid].hyp_id < hyp_id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

const struct hypevent *hypevents_by_name(const struct hypevents *e, const char *name, size_t len)
{
	for (size_t i = 0; i < e->n; i++)
		if (strlen(e->v[i].name) == len && !memcmp(e->v[i].name, name, len))
			return &e->v[i];
	return NULL;
}

int hypevents_reason(struct hypevents *e, const char *s, size_t len)
{
	char word[NAME_MAX_LEN + 1];
	int ret;

	if (!is_word(s, len))
		return -EINVAL;
	memcpy(word, s, len);
	word[len] = 0;
	for (size_t i = 0; i < hyp_reasons_n; i++)
		if (!strcmp(hyp_reasons[i], word))
			return (int)i;
	for (size_t i = 0; i < e->extra_reasons.n; i++)
		if (!strcmp(e->extra_reasons.v[i], word))
			return HYP_REASON_EXTRA + (int)i;
	if (HYP_REASON_EXTRA + e->extra_reasons.n > REASON_MAX)
		return -ENOSPC;
	ret = strlist_add(&e->extra_reasons, word);
	return ret ? ret : HYP_REASON_EXTRA + (int)e->extra_reasons.n - 1;
}

/* ---- formats ------------------------------------------------------------------------ */

/* As the kernel prints it for each of its own events. */
static void put_head(const char *name, unsigned int id, struct buf *out)
{
	buf_printf(out, "name: %s\nID: %u\nformat:\n", name, id);
	buf_addstr(out, "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n");
}

static void put_field(const char *type, const char *name, size_t offset, unsigned int size, bool is_signed,
		      struct buf *out)
{
	buf_printf(out, "\tfield:%s%s%s;\toffset:%zu;\tsize:%u;\tsigned:%d;\n", type,
		   type[strlen(type) - 1] == '*' ? "" : " ", name, offset, size, is_signed);
}

static void unknown_format(const struct hypevents *e, struct buf *out)
{
	put_head("hyp_unknown", e->unknown_id, out);
	put_field("int", "id", 8, 4, true, out);
	put_field("__data_loc char[]", "text", 12, 4, false, out);
	put_field("__data_loc u8[]", "data", 16, 4, false, out);
	buf_addstr(out, "\nprint fmt: \"id=%d %s%s\", REC->id, __get_str(text), "
			"__print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))\n");
}

static void text_format(const struct hypevent *ev, struct buf *out)
{
	put_head(ev->name, ev->id, out);
	put_field("__data_loc char[]", "text", 8, 4, false, out);
	buf_addstr(out, "\nprint fmt: \"%s\", __get_str(text)\n");
}

/* Elements of "args[4]", 0 when that is no array of whole ones. */
static unsigned int array_len(const struct event_field *f)
{
	const char *bracket = strchr(f->name, '[');
	unsigned long n = bracket ? strtoul(bracket + 1, NULL, 10) : 0;

	if (!n || n > f->size || f->size % n)
		return 0;
	return (unsigned int)n;
}

/* One field in a list of them, conversion into fmt and argument into args. */
static void list_field(const struct event_field *f, struct buf *fmt, struct buf *args)
{
	static const char *const conv[2][9] = {
		{ [1] = "%u", [2] = "%u", [4] = "%u", [8] = "0x%llx" },
		{ [1] = "%hhd", [2] = "%hd", [4] = "%d", [8] = "%lld" },
	};
	int n = (int)strcspn(f->name, "[");
	unsigned int elems = array_len(f);
	const char *sep = fmt->len ? " " : "";

	if (!strncmp(f->type, "__data_loc", 10) && strstr(f->type, "char")) {
		buf_printf(fmt, "%s%.*s=%%s", sep, n, f->name);
		buf_printf(args, ", __get_str(%.*s)", n, f->name);
	} else if (!strncmp(f->type, "__data_loc", 10)) {
		buf_printf(fmt, "%s%.*s=%%s", sep, n, f->name);
		buf_printf(args, ", __print_hex(__get_dynamic_array(%.*s), __get_dynamic_array_len(%.*s))", n,
			   f->name, n, f->name);
	} else if (elems && !strcmp(f->type, "char")) {
		buf_printf(fmt, "%s%.*s=%%s", sep, n, f->name);
		buf_printf(args, ", REC->%.*s", n, f->name);
	} else if (elems) {
		buf_printf(fmt, "%s%.*s=%%s", sep, n, f->name);
		buf_printf(args, ", __print_array(REC->%.*s, %u, %u)", n, f->name, elems, f->size / elems);
	} else if (!f->name[n] && f->size <= 8 && conv[f->is_signed][f->size]) {
		buf_printf(fmt, "%s%.*s=%s", sep, n, f->name, conv[f->is_signed][f->size]);
		buf_printf(args, ", REC->%.*s", n, f->name);
	}
}

static void print_list(const struct event_format *f, struct buf *out)
{
	struct buf fmt = { 0 }, args = { 0 };

	for (size_t i = 0; i < f->n_fields; i++)
		list_field(&f->fields[i], &fmt, &args);
	if (buf_status(&fmt) || buf_status(&args))
		out->bad = true;
	buf_printf(out, "\"%s\"%s", fmt.len ? buf_str(&fmt) : "", args.len ? buf_str(&args) : "");
	buf_release(&fmt);
	buf_release(&args);
}

static void fields_format(const struct hypevents *e, const struct hypevent *ev, struct buf *out)
{
	const struct event_format *f = &ev->fmt;

	put_head(ev->name, ev->id, out);
	for (size_t i = 0; i < f->n_fields; i++) {
		const struct event_field *v = &f->fields[i];

		/* what the text does not show is not in the record */
		if (e->raw || hyptext_pattern_has(ev->pattern, i))
			put_field(v->type, v->name, hyp_written_offset(f, v), v->size, v->is_signed, out);
	}
	/* also without fields, as the kernel's own formats: libtraceevent wants both blank lines */
	buf_addstr(out, "\nprint fmt: ");
	if (ev->pattern)
		hyptext_pattern_print(ev->pattern, e, f, out);
	else
		print_list(f, out);
	buf_addstr(out, "\n");
}

void hypevents_format(const struct hypevents *e, size_t i, struct buf *out)
{
	if (i >= e->n)
		unknown_format(e, out);
	else if (e->v[i].as_text)
		text_format(&e->v[i], out);
	else
		fields_format(e, &e->v[i], out);
}

/* ---- records of no fields -------------------------------------------------------------- */

/* __data_loc: length in the upper half, offset in the record in the lower. */
static uint32_t data_loc(size_t offset, size_t len)
{
	return (uint32_t)len << 16 | (uint32_t)offset;
}

size_t hyp_put_unknown(const struct hypevents *e, int id, const char *text, size_t len, const void *data,
		       size_t data_len, uint8_t *out)
{
	const uint16_t type = (uint16_t)e->unknown_id;
	const size_t text_at = HYP_HEADER_SIZE + 12, data_at = text_at + len + 1;
	const uint32_t body[] = { (uint32_t)id, data_loc(text_at, len + 1), data_loc(data_at, data_len) };

	memset(out, 0, HYP_HEADER_SIZE);
	memcpy(out, &type, sizeof(type));
	memcpy(out + HYP_HEADER_SIZE, body, sizeof(body));
	hyp_put_text(out + text_at, text, len);
	if (data_len)
		memcpy(out + data_at, data, data_len);
	return data_at + data_len;
}

size_t hyp_put_text_event(const struct hypevent *ev, const char *text, size_t len, uint8_t *out)
{
	const uint16_t type = (uint16_t)ev->id;
	const size_t text_at = HYP_HEADER_SIZE + 4;
	const uint32_t loc = data_loc(text_at, len + 1);

	memset(out, 0, HYP_HEADER_SIZE);
	memcpy(out, &type, sizeof(type));
	memcpy(out + HYP_HEADER_SIZE, &loc, sizeof(loc));
	hyp_put_text(out + text_at, text, len);
	return text_at + len + 1;
}

/* A C string; NUL bytes in the text become '?'. */
void hyp_put_text(uint8_t *at, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		at[i] = text[i] ? (uint8_t)text[i] : '?';
	at[len] = 0;
}
