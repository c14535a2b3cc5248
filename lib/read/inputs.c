// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens trace.dat files that belong together and finds out whose guest each one is. */
#include "read/inputs.h"

#include <limits.h>
#include <pthread.h>

#include "base/cursor.h"
#include "base/files.h"

/* libtraceevent has its plugins' options and some state of its parser once for the whole process. */
static pthread_mutex_t tep_lock = PTHREAD_MUTEX_INITIALIZER;

static int read_failed(const struct input *in, int ret, const struct log *log)
{
	return log_fail_errno(log, ret, "cannot read '%s'", in->path);
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
		v = array_next(&in->guests, in->n_guests, sizeof(*v));
		if (!v)
			return -ENOMEM;
		ret = offset_guest_decode(data->data, data->len, v);
		if (ret == -ENOMEM)
			return ret;
		if (ret)
			log_warn(log, "%s: one of its GUEST options makes no sense", in->path);
		else
			in->n_guests++;
	}
	return 0;
}

/* Orders threads for input_vcpu: every event may ask for its vCPU. */
static int by_pid(const void *a, const void *b)
{
	const struct vcpu_thread *x = a, *y = b;

	return ORDER(x->pid, y->pid) ?: ORDER(x->guest, y->guest); /* the first in the file comes first */
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

/* fd: the file's, which input_release closes, or the error from opening it. */
static int input_open(struct input *in, const char *path, int fd, unsigned int flags, const struct log *log)
{
	int ret = fd;

	*in = (struct input){ .path = path, .fd = fd };
	if (fd < 0)
		return log_fail_errno(log, ret, "cannot open '%s'", path);
	ret = reader_open(&in->reader, in->fd, log) ?: filetime_read(&in->time, in->reader, flags, log);
	in->tep = ret ? NULL : tep_alloc();
	if (!ret)
		reader_name(in->reader, path);
	ret = ret ?: in->tep ? read_guests(in, log) ?: sort_vcpus(in) : -ENOMEM;
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
	tepfile_release(in->tep);
	filetime_release(&in->time);
	reader_close(in->reader);
	fd_close(&in->fd);
}

#define ID_MAX 0xffff /* common_type has 16 bits */

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
		if (e->id < 0 || e->id > ID_MAX)
			continue;
		in->known[e->id] = (struct known_event){
			.event = e,
			.pid = field_load(tep_find_common_field(e, "common_pid")),
			.least = tepfile_least_size(e),
			.hyp = !strcmp(e->system, "hypervisor") || !strcmp(e->system, "hyp"),
		};
	}
	return 0;
}

const struct offset_guest *input_guest(const struct input *host, const struct input *guest)
{
	for (size_t g = 0; g < host->n_guests && host != guest && guest->trace_id; g++)
		if (host->guests[g].trace_id == guest->trace_id)
			return &host->guests[g];
	return NULL;
}

/* Name that another file gives to this file's machine; NULL: no file names it. */
static const char *guest_name(const struct inputs *all, const struct input *in)
{
	const struct offset_guest *guest = NULL;

	for (size_t i = 0; i < all->n && !guest; i++)
		guest = input_guest(&all->v[i], in);
	return guest ? guest->name : NULL;
}

const struct input *inputs_host(const struct inputs *all, const struct input *guest)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct input *host = &all->v[i];
		bool peer = host->trace_id && host->trace_id == guest->time.shift.peer;

		if (host != guest && (peer || input_guest(host, guest)))
			return host;
	}
	return NULL;
}

int input_set_vcpus(struct input *host, const struct input *guest, const struct offset_vcpu *vcpus, size_t n)
{
	struct offset_guest *option = (struct offset_guest *)input_guest(host, guest);
	struct offset_vcpu *v;
	size_t all = n;

	if (!option)
		return 0;
	v = calloc(n + option->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	if (n)
		memcpy(v, vcpus, n * sizeof(*v));
	for (uint32_t i = 0; i < option->n; i++) {
		size_t k = 0;

		while (k < n && v[k].cpu != option->vcpus[i].cpu)
			k++;
		if (k == n)
			v[all++] = option->vcpus[i];
	}
	free(option->vcpus);
	option->vcpus = v;
	option->n = (uint32_t)all;
	free(host->threads);
	host->threads = NULL;
	host->n_threads = 0;
	return sort_vcpus(host);
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

const struct input *inputs_guest(const struct inputs *all, const struct input *host, int64_t tid,
				 const struct offset_vcpu **vcpu)
{
	const struct offset_guest *guest;

	*vcpu = input_vcpu(host, tid, &guest);
	for (size_t i = 0; *vcpu && guest->trace_id && i < all->n; i++)
		if (all->v[i].trace_id == guest->trace_id)
			return &all->v[i];
	return NULL;
}

/*
 * tep_plugin_kvm_get_func() gets an event and nothing else: the last one of its tep, which no file has, leads
 * to the inputs.
 */
#define INPUTS_ID INT_MAX

static int inputs_lead(struct inputs *all, struct tep_handle *tep)
{
	static const char format[] = "name: inputs\nID: 2147483647\nformat:\n"
				     "\tfield:int unused;\toffset:0;\tsize:4;\tsigned:1;\n\n"
				     "print fmt: \"%d\", REC->unused\n";

	if (tep_parse_event(tep, format, strlen(format), "hyptrace"))
		return -ENOMEM;
	tep_get_event(tep, tep_get_events_count(tep) - 1)->context = all;
	return 0;
}

/*
 * Returns a guest's function; called by libtraceevent's kvm plugin on x86 and our kvm-arm64 plugin. Symbols
 * that cannot be read count as a damaged place.
 */
const char *tep_plugin_kvm_get_func(struct tep_event *event, struct tep_record *record,
				    unsigned long long *val)
{
	const struct tep_event *last = tep_get_event(event->tep, tep_get_events_count(event->tep) - 1);
	const struct input *guest = NULL; /* that the task of a host's record runs */
	const struct offset_vcpu *vcpu;
	struct inputs *all;
	const char *func;

	if (last->id != INPUTS_ID)
		return NULL;
	all = last->context;
	pthread_mutex_lock(&tep_lock);
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].tep == event->tep)
			guest = inputs_guest(all, &all->v[i], tep_data_pid(event->tep, record), &vcpu);
	all->damaged += guest && tepfile_functions(guest->tep) != 0;
	func = guest ? tep_find_function(guest->tep, *val) : NULL;
	if (func)
		*val = tep_find_function_address(guest->tep, *val);
	pthread_mutex_unlock(&tep_lock);
	return func;
}

int inputs_open(struct inputs *all, char *const *paths, size_t n, unsigned int flags, const struct log *log)
{
	size_t n_hosts = 0;

	*all = (struct inputs){ .v = calloc(n + 1, sizeof(*all->v)) };
	if (!all->v)
		return -ENOMEM;
	while (all->n < n) {
		const char *path = paths[all->n];
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		int ret = input_open(&all->v[all->n++], path, fd < 0 ? -errno : fd, flags, log);

		if (ret)
			return ret;
	}
	for (size_t i = 0; i < n; i++) {
		struct input *in = &all->v[i];

		in->guest = guest_name(all, in) || reader_option(in->reader, DAT_TIME_SHIFT);
		n_hosts += !in->guest;
	}
	/* the only machine that is no guest is "host"; where there are several, each is called by its file */
	for (size_t i = 0; i < n; i++) {
		struct input *in = &all->v[i];
		const char *name = guest_name(all, in), *base = basename(in->path);
		size_t len = strlen(base), prefix = strncmp(base, "trace-", 6) ? 0 : 6;

		/* "dir/trace-NAME.dat", as record names guests' files: NAME; of others the name without
		 * ".dat" */
		len -= len > 4 && !strcmp(base + len - 4, ".dat") ? 4 : 0;
		prefix = len > prefix ? prefix : 0;
		if (!in->guest && n_hosts == 1)
			name = "host";
		in->machine = name && *name ? strdup(name) : strndup(base + prefix, len - prefix);
		if (!in->machine)
			return -ENOMEM;
	}
	return 0;
}

#define GUESTS_MAX 64  /* of a host */
#define LOOKED_MAX 256 /* files that are opened for them */

/*
 * Adds the file to paths if it is one of the n guests', and takes that guest off the list. log: of one that
 * is there but cannot be read; NULL: such a one is of no interest. -ENOMEM, of the former any -errno.
 */
static int missing_try(const struct offset_guest **missing, size_t *n, const char *path,
		       struct strlist *paths, const struct log *log)
{
	struct input in;
	int fd = open_regular(path), ret = input_open(&in, path, fd, 0, fd == -ENOENT ? NULL : log);

	for (size_t i = 0; i < *n && !ret; i++)
		if (missing[i]->trace_id == in.trace_id) {
			missing[i] = missing[--*n];
			ret = strlist_add(paths, path);
			break;
		}
	input_release(&in);
	return ret == -ENOMEM || (log && fd != -ENOENT) ? ret : 0;
}

int inputs_find_guests(const struct inputs *in, const struct input *host, struct strlist *paths,
		       const struct log *log)
{
	const char *path = host->path, *slash = strrchr(path, '/');
	size_t dir = slash ? (size_t)(slash + 1 - path) : 0, stem = path_stem(path), digits = stem, n = 0;
	const struct offset_guest *missing[GUESTS_MAX];
	struct strlist names = { 0 };
	char *file = NULL;
	int ret = 0;

	for (size_t g = 0; g < host->n_guests && n < GUESTS_MAX; g++) {
		bool there = !host->guests[g].trace_id;

		for (const struct input *i = in->v; i < in->v + in->n; i++)
			there |= i->trace_id == host->guests[g].trace_id ||
				 (i < host && !strcmp(i->path, path));
		if (!there)
			missing[n++] = &host->guests[g];
	}
	while (digits > dir && isdigit((unsigned char)path[digits - 1]))
		digits--;
	if (digits < stem && digits > dir && path[digits - 1] == '.')
		stem = digits - 1;
	/* the guest's name comes before other names, which copies have */
	for (size_t g = 0; g < host->n_guests && n && !ret; g++) {
		file = str_printf("%.*s-%s%s", (int)stem, path, host->guests[g].name, path + stem);
		ret = file ? 0 : -ENOMEM;
		if (file && !strchr(file + dir, '/'))
			ret = missing_try(missing, &n, file, paths, log);
		free(file);
	}
	if (n && !ret) {
		file = dir ? strndup(path, dir) : strdup(".");
		ret = file && read_dir_at(AT_FDCWD, file, &names) != -ENOMEM ? 0 : -ENOMEM;
		free(file);
	}
	for (size_t i = 0, looked = 0; i < names.n && n && looked < LOOKED_MAX && !ret; i++) {
		const char *name = names.v[i], *end = path + stem;
		size_t len = strlen(name);

		if (strncmp(name, path + dir, stem - dir) || name[stem - dir] != '-' ||
		    len < stem - dir + strlen(end) || strcmp(name + len - strlen(end), end))
			continue;
		file = str_printf("%.*s%s", (int)dir, path, name);
		ret = file ? missing_try(missing, &n, file, paths, NULL) : -ENOMEM;
		free(file);
		looked++;
	}
	strlist_release(&names);
	return ret;
}

int inputs_load(struct inputs *in, const struct log *log)
{
	int ret = 0;

	pthread_mutex_lock(&tep_lock);
	for (size_t i = 0; i < in->n && !ret; i++) {
		struct input *one = &in->v[i];

		ret = plugins_load(&one->plugins, one->tep, log)
			      ?: tepfile_load(one->tep, reader_info(one->reader), &one->format_failures, log)
			      ?: know_events(one);
		if (!ret && in->n > 1) /* a file by itself has no guests */
			ret = inputs_lead(in, one->tep);
		if (ret)
			read_failed(one, ret, log);
	}
	pthread_mutex_unlock(&tep_lock);
	return ret;
}

bool inputs_utc(const struct inputs *all, const struct input *in, uint64_t ts, uint64_t *utc, uint64_t *bound)
{
	const struct input *host = in->guest ? inputs_host(all, in) : NULL;
	const struct filetime *t = host ? &host->time : &in->time;
	uint64_t of_wall = UINT64_MAX;

	ts -= (uint64_t)t->add;
	*utc = t->wall.n ? wall_at(&t->wall, ts, &of_wall) : ts + (uint64_t)t->date;
	if (__builtin_add_overflow(*bound, of_wall, bound))
		*bound = UINT64_MAX;
	return t->wall.n || t->date;
}

bool inputs_in_ticks(const struct inputs *in)
{
	for (size_t i = 0; i < in->n; i++)
		if (filetime_in_ticks(&in->v[i].time))
			return true;
	return false;
}

void inputs_release(struct inputs *in)
{
	pthread_mutex_lock(&tep_lock);
	for (size_t i = 0; i < in->n; i++)
		input_release(&in->v[i]);
	pthread_mutex_unlock(&tep_lock);
	free(in->v);
	*in = (struct inputs){ 0 };
}

void *inputs_table(const struct inputs *in, size_t more, size_t size)
{
	size_t head = (in->n + 1) * sizeof(void *), n = 0;
	char **v, *at;

	head += -head % _Alignof(max_align_t);
	for (size_t i = 0; i < in->n; i++)
		n += in->v[i].n_known + more;
	v = calloc(1, head + n * size);
	if (!v)
		return NULL;
	at = (char *)v + head;
	for (size_t i = 0; i < in->n; at += (in->v[i++].n_known + more) * size)
		v[i] = at;
	return v;
}
