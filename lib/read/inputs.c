// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens trace.dat files that belong together and finds out whose guest each one is. */
#include "read/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat/options.h"
#include "read/plugins.h"
#include "util/array.h"

/*
 * libtraceevent keeps its plugins' options and some state of its parser once for the
 * whole process, so one thread at a time may load or unload. Likewise its plugins ask
 * the process for functions of guests, and so here is what is loaded.
 */
static pthread_mutex_t tep_lock = PTHREAD_MUTEX_INITIALIZER;
static struct inputs *loaded;

/* ---- files ---------------------------------------------------------------------- */

static int read_failed(const struct input *in, int ret, const struct log *log)
{
	log_err(log, "cannot read '%s': %s", in->path, errno_text(ret));
	return ret;
}

/* The GUEST options; one that makes no sense names no guest. */
static int read_guests(struct input *in, const struct log *log)
{
	const struct reader_info *info = reader_info(in->reader);
	const struct reader_option *id = reader_option(in->reader, DAT_TRACEID);

	if (id && id->data.len >= sizeof(in->trace_id)) {
		struct cursor c = cursor_at(id->data.data, id->data.len);

		in->trace_id = cursor_u64(&c);
	}
	for (size_t i = 0; i < info->n_options; i++) {
		const struct dat_text *data = &info->options[i].data;
		struct offset_guest *v;
		int ret;

		if (info->options[i].id != DAT_GUEST)
			continue;
		v = array_grow(in->guests, in->n_guests, sizeof(*v));
		if (!v)
			return -ENOMEM;
		in->guests = v;
		ret = offset_guest_decode(data->data, data->len, &v[in->n_guests]);
		if (ret == -ENOMEM)
			return ret;
		if (ret)
			log_warn(log, "%s: one of its GUEST options makes no sense", in->path);
		else
			in->n_guests++;
	}
	return 0;
}

/* A file says how many vCPUs there are, and every event may ask for one: by thread. */
struct vcpu_thread {
	uint32_t pid;
	const struct offset_guest *guest;
	const struct offset_vcpu *vcpu;
};

static int by_pid(const void *a, const void *b)
{
	const struct vcpu_thread *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->guest < y->guest ? -1 : x->guest > y->guest; /* the first in the file comes first */
}

static int sort_vcpus(struct input *in)
{
	size_t n = 0;

	for (size_t g = 0; g < in->n_guests; g++)
		n += in->guests[g].n;
	in->threads = calloc(n + 1, sizeof(*in->threads));
	if (!in->threads)
		return -ENOMEM;
	for (size_t g = 0; g < in->n_guests; g++)
		for (uint32_t i = 0; i < in->guests[g].n; i++) {
			const struct offset_vcpu *vcpu = &in->guests[g].vcpus[i];

			if (vcpu->pid) /* 0: not known */
				in->threads[in->n_threads++] =
					(struct vcpu_thread){ vcpu->pid, &in->guests[g], vcpu };
		}
	qsort(in->threads, in->n_threads, sizeof(*in->threads), by_pid);
	return 0;
}

static int input_open(struct input *in, const char *path, unsigned int flags, const struct log *log)
{
	int ret;

	*in = (struct input){ .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (in->fd < 0) {
		ret = -errno;
		log_err(log, "cannot open '%s': %s", path, errno_text(ret));
		return ret;
	}
	ret = reader_open(&in->reader, in->fd, log);
	if (ret)
		return read_failed(in, ret, log);
	ret = filetime_read(&in->time, in->reader, flags, log);
	if (ret)
		return read_failed(in, ret, log);
	in->tep = tep_alloc();
	ret = in->tep ? read_guests(in, log) : -ENOMEM;
	if (!ret)
		ret = sort_vcpus(in);
	return ret ? read_failed(in, ret, log) : 0;
}

static void input_release(struct input *in)
{
	for (size_t g = 0; g < in->n_guests; g++)
		offset_guest_release(&in->guests[g]);
	free(in->guests);
	free(in->threads);
	free(in->known);
	free(in->machine);
	plugins_unload(in->plugins, in->tep);
	tep_free(in->tep);
	filetime_release(&in->time);
	reader_close(in->reader);
	fd_close(&in->fd);
}

/* ---- events ----------------------------------------------------------------------- */

#define ID_MAX 0xffff /* common_type has 16 bits */

static void know_event(struct known_event *k, struct tep_event *e)
{
	*k = (struct known_event){ .event = e,
				   .pid = field_load(tep_find_common_field(e, "common_pid")),
				   .least = tepfile_least_size(e),
				   .hyp = !strcmp(e->system, "hypervisor") || !strcmp(e->system, "hyp") };
}

static int know_events(struct input *in)
{
	int n = tep_get_events_count(in->tep);

	for (int i = 0; i < n; i++) {
		int id = tep_get_event(in->tep, i)->id;

		if (id <= ID_MAX && (size_t)id >= in->n_known)
			in->n_known = (size_t)id + 1;
	}
	in->known = calloc(in->n_known + 1, sizeof(*in->known));
	if (!in->known)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		struct tep_event *e = tep_get_event(in->tep, i);

		/* plugins have formats of their own, which say nothing about this file */
		if (!i && reader_info(in->reader)->n_formats)
			in->pid = field_load(tep_find_common_field(e, "common_pid"));
		if (e->id >= 0 && e->id <= ID_MAX)
			know_event(&in->known[e->id], e);
	}
	return 0;
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

	in->guest = name || reader_option(in->reader, DAT_TIME_SHIFT);
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

static bool below_pid(const void *entry, const void *tid)
{
	return ((const struct vcpu_thread *)entry)->pid < *(const int64_t *)tid;
}

const struct offset_vcpu *input_vcpu(const struct input *in, int64_t tid, const struct offset_guest **guest)
{
	size_t i = array_lower_bound(in->threads, in->n_threads, sizeof(*in->threads), below_pid, &tid);

	if (i == in->n_threads || in->threads[i].pid != tid)
		return NULL;
	*guest = in->threads[i].guest;
	return in->threads[i].vcpu;
}

/* ---- functions of guests ------------------------------------------------------------ */

static const struct input *guest_of(const struct inputs *all, const struct input *host, int pid)
{
	const struct offset_guest *guest;

	if (!input_vcpu(host, pid, &guest))
		return NULL;
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].trace_id == guest->trace_id && guest->trace_id)
			return &all->v[i];
	return NULL;
}

/* The guest that the task of a host's record runs, if both their files are loaded. */
static const struct input *guest_running(const struct tep_event *event, struct tep_record *record)
{
	const struct input *guest = NULL;

	for (const struct inputs *all = loaded; all; all = all->next)
		for (size_t i = 0; i < all->n; i++)
			if (all->v[i].tep == event->tep)
				guest = guest_of(all, &all->v[i], tep_data_pid(event->tep, record));
	return guest;
}

/* What libtraceevent's kvm plugin asks for on x86, and our kvm-arm64 plugin. */
const char *tep_plugin_kvm_get_func(struct tep_event *event, struct tep_record *record,
				    unsigned long long *val)
{
	const struct input *guest;
	const char *func;

	pthread_mutex_lock(&tep_lock); /* libtraceevent sorts the symbols when the first one is asked for */
	guest = guest_running(event, record);
	func = guest ? tep_find_function(guest->tep, *val) : NULL;
	if (func)
		*val = tep_find_function_address(guest->tep, *val);
	pthread_mutex_unlock(&tep_lock);
	return func;
}

/* ---- all of them -------------------------------------------------------------------- */

int inputs_open(struct inputs *in, char *const *paths, size_t n, unsigned int flags, const struct log *log)
{
	*in = (struct inputs){ .v = calloc(n + 1, sizeof(*in->v)) };
	if (!in->v)
		return -ENOMEM;
	for (; in->n < n; in->n++) {
		int ret = input_open(&in->v[in->n], paths[in->n], flags, log);

		if (ret) {
			in->n++;
			return ret;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (name_machine(in, &in->v[i]))
			return -ENOMEM;
	return 0;
}

int inputs_load(struct inputs *in, const struct log *log)
{
	int ret = 0;

	pthread_mutex_lock(&tep_lock);
	for (size_t i = 0; i < in->n; i++) {
		struct input *one = &in->v[i];

		one->plugins = plugins_load(one->tep);
		ret = tepfile_load(one->tep, reader_info(one->reader), &one->format_failures, log)
			      ?: know_events(one);
		if (ret) {
			read_failed(one, ret, log);
			goto out;
		}
	}
	in->next = loaded;
	loaded = in;
out:
	pthread_mutex_unlock(&tep_lock);
	return ret;
}

void inputs_release(struct inputs *in)
{
	struct inputs **at = &loaded;

	pthread_mutex_lock(&tep_lock);
	while (*at && *at != in)
		at = &(*at)->next;
	if (*at)
		*at = in->next;
	for (size_t i = 0; i < in->n; i++)
		input_release(&in->v[i]);
	pthread_mutex_unlock(&tep_lock);
	free(in->v);
	*in = (struct inputs){ 0 };
}
