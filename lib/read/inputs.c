// SPDX-License-Identifier: LGPL-2.1-or-later
#include "read/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat/options.h"

/* ---- files ---------------------------------------------------------------------- */

static int say_unread(const struct input *in, int ret, const struct log *log)
{
	if (ret)
		log_err(log, "cannot read '%s': %s", in->path, errno_text(ret));
	return ret;
}

int input_open(struct input *in, const char *path, unsigned int flags, const struct log *log)
{
	int ret;

	*in = (struct input){ .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (in->fd < 0) {
		ret = -errno;
		log_err(log, "cannot open '%s': %s", path, errno_text(ret));
		return ret;
	}
	ret = reader_open(&in->reader, in->fd, log);
	if (!ret)
		ret = filetime_read(&in->time, in->reader, flags, log);
	if (!ret) {
		in->tep = tep_alloc();
		ret = in->tep ? 0 : -ENOMEM;
	}
	return say_unread(in, ret, log);
}

int input_load(struct input *in, const struct log *log)
{
	in->plugins = tep_load_plugins(in->tep);
	return say_unread(in, tepfile_load(in->tep, in->reader, &in->format_failures, log), log);
}

void input_release(struct input *in)
{
	for (size_t g = 0; g < in->n_guests; g++)
		offset_guest_release(&in->guests[g]);
	free(in->guests);
	free(in->machine);
	if (in->plugins)
		tep_unload_plugins(in->plugins, in->tep);
	tep_free(in->tep);
	filetime_release(&in->time);
	reader_close(in->reader);
	if (in->fd >= 0)
		close(in->fd);
}

struct merge_input input_for_merge(const struct input *in)
{
	return (struct merge_input){ .name = in->path, .reader = in->reader, .time = in->time };
}

/* ---- whose guest ------------------------------------------------------------------ */

static int add_guest(struct input *in, const struct dat_text *data)
{
	struct offset_guest *v = realloc(in->guests, (in->n_guests + 1) * sizeof(*v));
	int ret;

	if (!v)
		return -ENOMEM;
	in->guests = v;
	ret = offset_guest_decode(data->data, data->len, &v[in->n_guests]);
	if (!ret)
		in->n_guests++;
	return ret;
}

static int read_guests(struct input *in, const struct log *log)
{
	const struct reader_info *info = reader_info(in->reader);
	const struct reader_option *id = reader_option(in->reader, DAT_TRACEID);
	int ret = 0;

	if (id && id->data.len >= sizeof(in->trace_id)) {
		struct cursor c = cursor_at(id->data.data, id->data.len);

		in->trace_id = cursor_u64(&c);
	}
	for (size_t i = 0; i < info->n_options && !ret; i++) {
		if (info->options[i].id != DAT_GUEST)
			continue;
		ret = add_guest(in, &info->options[i].data);
		if (ret == -EBADMSG)
			log_err(log, "not a whole trace.dat: its GUEST");
	}
	return say_unread(in, ret, log);
}

/* What some other file calls the machine that was traced into this one; NULL: none does. */
static const char *guest_name(const struct inputs *all, const struct input *in)
{
	for (size_t i = 0; i < all->n && in->trace_id; i++) {
		const struct input *host = &all->v[i];

		for (size_t g = 0; g < host->n_guests && host != in; g++)
			if (host->guests[g].trace_id == in->trace_id)
				return host->guests[g].name;
	}
	return NULL;
}

static int name_machine(const struct inputs *all, struct input *in)
{
	const char *name = guest_name(all, in), *base = strrchr(in->path, '/');
	size_t len;

	in->guest = name || in->time.shift.n_cpus;
	if (name && *name) {
		in->machine = strdup(name);
	} else {
		base = base ? base + 1 : in->path;
		len = strlen(base);
		if (len > 4 && !strcmp(base + len - 4, ".dat"))
			len -= 4;
		in->machine = strndup(base, len);
	}
	return in->machine ? 0 : -ENOMEM;
}

int inputs_open(struct inputs *in, const struct strlist *paths, const struct log *log)
{
	int ret = 0;

	*in = (struct inputs){ .v = calloc(paths->n + 1, sizeof(*in->v)) };
	if (!in->v)
		return -ENOMEM;
	for (size_t i = 0; i < paths->n && !ret; i++) {
		in->n++;
		ret = input_open(&in->v[i], paths->v[i], 0, log);
		if (!ret)
			ret = read_guests(&in->v[i], log);
		if (!ret)
			ret = input_load(&in->v[i], log);
	}
	for (size_t i = 0; i < in->n && !ret; i++)
		ret = name_machine(in, &in->v[i]);
	return ret;
}

void inputs_release(struct inputs *in)
{
	for (size_t i = 0; i < in->n; i++)
		input_release(&in->v[i]);
	free(in->v);
	*in = (struct inputs){ 0 };
}

const struct offset_vcpu *input_vcpu(const struct input *in, int64_t tid, const struct offset_guest **guest)
{
	for (size_t g = 0; g < in->n_guests; g++)
		for (uint32_t i = 0; i < in->guests[g].n; i++)
			if (in->guests[g].vcpus[i].pid == tid) {
				*guest = &in->guests[g];
				return &in->guests[g].vcpus[i];
			}
	return NULL;
}
