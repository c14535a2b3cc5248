// SPDX-License-Identifier: GPL-2.0-only
/* Files that commands write their answers into: never over one of the inputs. */
#include "cmd.h"
#include "base/outfile.h"

int output_check(const char *path, const struct inputs *in, const struct log *log)
{
	struct stat st, other;

	for (size_t i = 0; !stat(path, &st) && i < in->n; i++)
		if (!fstat(in->v[i].fd, &other) && same_file(&other, &st))
			return log_fail(log, -EINVAL, "'%s' is to be read, not to be written", path);
	return 0;
}

int output_open(struct outfile *out, const char *path, bool stream, const struct inputs *in,
		const struct log *log)
{
	return output_check(path, in, log) ?: outfile_open(out, path, stream, log);
}

/* As record names a recording's files, and the pieces of --rotate. */
static char *output_name(const char *output, const struct inputs *in, size_t machine, uint64_t number)
{
	const struct input *first = in->v, *this = &in->v[machine];
	int stem = (int)path_stem(output);
	char digits[32] = "", *name;

	for (size_t i = in->n; i-- > 0;)
		if (!in->v[i].guest)
			first = &in->v[i];
	if (number)
		snprintf(digits, sizeof(digits), ".%03" PRIu64, number);
	if (this == first || (this->trace_id && this->trace_id == first->trace_id))
		return str_printf("%.*s%s%s", stem, output, digits, output + stem);
	name = str_printf("%.*s-%s%s%s", stem, output, this->machine, digits, output + stem);
	/* the name of a machine is from a file: it must not lead into another directory */
	for (char *p = name ? name + stem : NULL; p && *p; p++)
		*p = *p == '/' ? '_' : *p;
	return name;
}

int output_add(const char *output, const struct inputs *in, size_t machine, uint64_t number,
	       struct strlist *made, const struct log *log)
{
	char *name = output_name(output, in, machine, number);
	int ret = name ? output_check(name, in, log) : -ENOMEM;

	if (!ret && strlist_has(made, name))
		ret = log_fail(log, -EEXIST,
			       "two machines would be written to '%s': name files of one recording", name);
	ret = ret ?: strlist_add(made, name);
	free(name);
	return ret;
}

int output_copy(const struct dat_copy *copy, const char *name, const struct log *log)
{
	struct outfile out;

	return outfile_open(&out, name, false, log) ?: outfile_close(&out, dat_copy(copy, out.fd, name, log));
}

void output_made(struct strlist *made, int ret, const struct log *log)
{
	for (size_t i = 0; i < made->n && !ret; i++)
		log_info(log, "%s", made->v[i]);
	strlist_release(made);
}

int output_write(const char *path, const struct buf *text, const struct inputs *in, const struct log *log)
{
	struct outfile out;
	int ret = buf_status(text) ?: output_open(&out, path, true, in, log);

	return ret ? ret : outfile_close(&out, write_all(out.fd, text->data, text->len));
}

char *picture_title(const struct inputs *in, const char *question)
{
	struct buf title = { 0 };

	for (size_t i = 0; i < in->n; i++)
		buf_printf(&title, "%s%s", i ? ", " : "", basename(in->v[i].path));
	buf_printf(&title, ": %s", question);
	if (!buf_str(&title))
		buf_release(&title);
	return (char *)title.data;
}
