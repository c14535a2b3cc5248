// SPDX-License-Identifier: LGPL-2.1-or-later
/* The options of a trace.dat that its writer is given. */
#include "file/dat/options.h"
#include "base/array.h"
#include "base/cursor.h"

#include <sys/utsname.h>

void dat_options_release(struct dat_options *o)
{
	for (size_t i = 0; i < o->n; i++)
		free((void *)o->v[i].data);
	free(o->v);
	*o = (struct dat_options){ 0 };
}

int dat_options_add(struct dat_options *o, uint16_t id, const void *data, size_t len)
{
	struct dat_option *v;
	void *copy;

	if (len > INT32_MAX)
		return -EINVAL;
	v = array_next(&o->v, o->n, sizeof(*v));
	copy = v ? malloc(len ? len : 1) : NULL;
	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, data, len);
	*v = (struct dat_option){ .id = id, .data = copy, .len = (uint32_t)len };
	o->n++;
	return 0;
}

int dat_options_add_text(struct dat_options *o, uint16_t id, const char *text)
{
	return dat_options_add(o, id, text, strlen(text) + 1);
}

/* Takes the text out of b, and b with it. */
static int add_text_of(struct dat_options *o, uint16_t id, struct buf *b)
{
	const char *text = buf_str(b);
	int ret = text ? dat_options_add_text(o, id, text) : -ENOMEM;

	buf_release(b);
	return ret;
}

int dat_options_add_clock(struct dat_options *o, const char *text)
{
	struct buf b = { 0 };

	buf_printf(&b, strchr(text, '[') ? "%s" : "[%s]", text);
	return add_text_of(o, DAT_TRACECLOCK, &b);
}

int dat_options_add_tsc2nsec(struct dat_options *o, uint32_t mult, uint32_t shift, uint64_t offset)
{
	struct {
		uint32_t mult, shift;
		uint64_t offset;
	} data = { mult, shift, offset };

	return dat_options_add(o, DAT_TSC2NSEC, &data, sizeof(data));
}

int dat_options_add_traceid(struct dat_options *o, uint64_t id)
{
	return dat_options_add(o, DAT_TRACEID, &id, sizeof(id));
}

int dat_options_add_uname(struct dat_options *o)
{
	struct buf b = { 0 };
	struct utsname u;

	if (uname(&u) < 0)
		return -errno;
	buf_printf(&b, "%s %s %s %s", u.sysname, u.nodename, u.release, u.machine);
	return add_text_of(o, DAT_UNAME, &b);
}

int dat_options_add_date(struct dat_options *o, int64_t offset_us)
{
	char text[32];

	snprintf(text, sizeof(text), "%s0x%llx", offset_us < 0 ? "-" : "",
		 (unsigned long long)(offset_us < 0 ? -(uint64_t)offset_us : (uint64_t)offset_us));
	return dat_options_add_text(o, DAT_DATE, text);
}

/* "start-end perms offset dev inode   /path": -> "start end /path\n" when there is a path. */
static bool add_mapping(struct buf *out, const char *line, size_t len)
{
	unsigned long long start, end;
	char text[4096]; /* the longest line that stock reads */
	int path = 0;

	/* a longer line would cost the whole option; what we write is shorter */
	if (len >= sizeof(text))
		return false;
	memcpy(text, line, len);
	text[len] = '\0';
	if (sscanf(text, "%llx-%llx %*s %*s %*s %*s %n", &start, &end, &path) != 2 || !path ||
	    text[path] != '/')
		return false;
	buf_printf(out, "%llx %llx %s\n", start, end, text + path);
	return true;
}

int dat_options_add_procmaps(struct dat_options *o, int pid, const char *command, const char *maps,
			     size_t len)
{
	struct cursor c = cursor_at(maps, len);
	struct buf all = { 0 }, list = { 0 };
	unsigned int n = 0;
	const char *line;
	size_t line_len;
	int ret = 0;

	while (cursor_line(&c, &line, &line_len))
		n += add_mapping(&list, line, line_len);
	if (n) {
		/* stock reads one word, and drops the whole option if it is missing */
		buf_printf(&all, "%x %x %s\n", (unsigned int)pid, n, *command ? command : "-");
		buf_add(&all, list.data, list.len);
		ret = list.bad ? -ENOMEM : add_text_of(o, DAT_PROCMAPS, &all);
	}
	buf_release(&all);
	buf_release(&list);
	return ret;
}
