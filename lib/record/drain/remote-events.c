// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hypervisor's event formats: into the spool, out of it again, and as the file has them. */
#include "record/drain/remote-events.h"
#include "base/cursor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void remote_events_add(struct buf *formats, const struct buf *format)
{
	buf_printf(formats, "%zu\n", format->len);
	buf_add(formats, format->data, format->len);
	formats->bad |= format->bad;
}

int remote_events_save(struct spool *spool, unsigned int first_id, const char *system, bool raw,
		       const struct buf *formats)
{
	struct buf text = { .bad = formats->bad };
	int ret;

	buf_printf(&text, "%u %s %s\n", first_id, system, raw ? "raw" : "text");
	buf_add(&text, formats->data, formats->len);
	ret = buf_status(&text) ?: spool_put_text(spool, "hyp_formats", text.data, text.len);
	buf_release(&text);
	return ret;
}

/* The next line as a C string; "" at the end, or if it is too long. */
static void short_line(struct cursor *c, char *out, size_t size)
{
	const char *line = "";
	size_t len = 0;

	cursor_line(c, &line, &len);
	snprintf(out, size, "%.*s", (int)(len < size ? len : 0), line);
}

static int load_formats(struct hypevents *e, struct cursor *c)
{
	char head[128], system[64], kind[8];
	unsigned int first_id;
	int ret;

	short_line(c, head, sizeof(head));
	if (sscanf(head, "%u %63s %7s", &first_id, system, kind) != 3)
		return -EBADMSG;
	ret = hypevents_init(e, system);
	e->raw = !strcmp(kind, "raw");
	while (!ret && cursor_left(c)) {
		const char *format;
		uint64_t n;

		short_line(c, head, sizeof(head));
		format = parse_u64(head, &n) ? NULL : cursor_take(c, n);
		ret = format ? hypevents_add(e, format, n) : -EBADMSG;
	}
	return ret ?: hypevents_number(e, first_id);
}

int remote_events_load(struct hypevents *e, const struct spool *spool)
{
	struct buf text = { 0 }, reasons = { 0 };
	int ret = spool_get_text(spool, "hyp_formats", &text);
	struct cursor c = cursor_at(text.data, text.len);
	const char *line;
	size_t len;

	*e = (struct hypevents){ 0 };
	ret = ret ?: load_formats(e, &c);
	if (!ret) {
		ret = spool_get_text(spool, "hyp_reasons", &reasons);
		ret = ret == -ENOENT ? 0 : ret;
	}
	c = cursor_at(reasons.data, reasons.len);
	while (!ret && cursor_line(&c, &line, &len)) {
		int n = hypevents_reason(e, line, len);

		ret = n < 0 ? n : 0;
	}
	if (ret)
		hypevents_release(e);
	buf_release(&text);
	buf_release(&reasons);
	return ret;
}

/* ---- formats for the file ------------------------------------------------------------ */

uint16_t remote_cntvoff_id(const struct hypevents *e)
{
	return (uint16_t)(e->unknown_id + 1);
}

size_t remote_n_formats(const struct hypevents *e)
{
	return e->n + 2; /* hyp_unknown, hyp_cntvoff */
}

void remote_format(const struct hypevents *e, size_t i, struct buf *out)
{
	if (i <= e->n)
		hypevents_format(e, i, out);
	else {
		hypevents_format_head("hyp_cntvoff", remote_cntvoff_id(e), out);
		buf_addstr(out, "\tfield:int vcpu;\toffset:8;\tsize:4;\tsigned:1;\n"
				"\tfield:s64 offset;\toffset:12;\tsize:8;\tsigned:1;\n"
				"\tfield:u64 low;\toffset:20;\tsize:8;\tsigned:0;\n"
				"\tfield:u64 high;\toffset:28;\tsize:8;\tsigned:0;\n"
				"\n"
				"print fmt: \"vcpu=%d offset=%lld low=%llu high=%llu\", REC->vcpu, "
				"REC->offset, REC->low, REC->high\n");
	}
}
