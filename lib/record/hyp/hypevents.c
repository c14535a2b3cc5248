// SPDX-License-Identifier: LGPL-2.1-or-later
/* The set of the hypervisor's events, from their format files, and the numbers of reasons. */
#include "record/hyp/hypevents.h"

#include "record/hyp/text-pattern.h"

#define ID_MAX	   32767 /* KernelShark's int16 */
#define REASON_MAX 255	 /* a u8 */

int hypevents_init(struct hypevents *e, const char *system)
{
	*e = (struct hypevents){ 0 };
	e->system = strdup(system);
	return e->system ? 0 : -ENOMEM;
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
	struct hypevent *v;
	size_t at;

	if (ret)
		return ret;
	ret = -EBADMSG;
	if (!format_ok(&ev.fmt))
		goto fail;
	ret = -EEXIST;
	if (hypevents_by_hyp_id(e, ev.fmt.id) || hypevents_by_name(e, ev.fmt.name, strlen(ev.fmt.name)))
		goto fail;
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
	v = array_grow(e->v, e->n, sizeof(*v));
	if (!v) {
		ret = -ENOMEM;
		goto fail;
	}
	e->v = v;
	at = array_lower_bound(v, e->n, sizeof(*v), hyp_event_before, &ev.fmt.id);
	memmove(v + at + 1, v + at, (e->n - at) * sizeof(*v));
	v[at] = ev;
	e->n++;
	return 0;
fail:
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
