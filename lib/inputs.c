// SPDX-License-Identifier: LGPL-2.1-or-later
#include "inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat-options.h"

/* ---- options -------------------------------------------------------------------- */

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

static int read_options(struct input *in, const struct log *log)
{
	const struct reader_info *info = reader_info(in->reader);
	const struct reader_option *id = reader_option(in->reader, DAT_TRACEID);
	int ret = filetime_read(&in->time, in->reader, 0, log);

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
	return ret;
}

/* ---- files ---------------------------------------------------------------------- */

static int load_tep(struct input *in, const struct log *log)
{
	in->tep = tep_alloc();
	if (!in->tep)
		return -ENOMEM;
	in->plugins = tep_load_plugins(in->tep);
	return tepfile_load(in->tep, in->reader, NULL, log);
}

static int open_input(struct input *in, const struct log *log)
{
	int ret;

	in->fd = open(in->path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0) {
		ret = -errno;
		log_err(log, "cannot open '%s': %s", in->path, error_text(ret));
		return ret;
	}
	ret = reader_open(&in->reader, in->fd, log);
	if (!ret)
		ret = read_options(in, log);
	if (!ret)
		ret = load_tep(in, log);
	if (ret)
		log_err(log, "cannot read '%s': %s", in->path, error_text(ret));
	return ret;
}

/* ---- whose guest ------------------------------------------------------------------ */

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
		in->v[i] = (struct input){ .path = paths->v[i], .fd = -1 };
		in->n++;
		ret = open_input(&in->v[i], log);
	}
	for (size_t i = 0; i < in->n && !ret; i++)
		ret = name_machine(in, &in->v[i]);
	return ret;
}

void inputs_release(struct inputs *in)
{
	for (size_t i = 0; i < in->n; i++) {
		struct input *one = &in->v[i];

		for (size_t g = 0; g < one->n_guests; g++)
			offset_guest_release(&one->guests[g]);
		free(one->guests);
		free(one->machine);
		if (one->plugins)
			tep_unload_plugins(one->plugins, one->tep);
		tep_free(one->tep);
		filetime_release(&one->time);
		reader_close(one->reader);
		if (one->fd >= 0)
			close(one->fd);
	}
	free(in->v);
	*in = (struct inputs){ 0 };
}

const struct offset_vcpu *input_vcpu(const struct input *in, int64_t tid,
				     const struct offset_guest **guest)
{
	for (size_t g = 0; g < in->n_guests; g++)
		for (uint32_t i = 0; i < in->guests[g].n; i++)
			if (in->guests[g].vcpus[i].pid == tid) {
				*guest = &in->guests[g];
				return &in->guests[g].vcpus[i];
			}
	return NULL;
}
