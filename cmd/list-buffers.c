// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace list: trace buffers of the host and the hypervisor, and their events. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

#include "list-priv.h"
#include "record/remote.h"
#include "tracefs/dir.h"
#include "util/visible.h"

#define TEXT_MAX (8u << 20)

/* ---- one buffer: files that only tell ---- */

struct buffer_state {
	int dir;
	const char *name;   /* "" = the host's top buffer */
	const char *path;   /* below the tracing directory */
	const char *layout; /* the hypervisor's: how it is read; NULL: a host's buffer */
	bool on;
	uint64_t size_kb; /* per CPU; 0: not the same on all */
	unsigned int cpus;
	size_t events; /* switched on */
	char clock[32], tracer[64];
	int error; /* the first of reading all this; kernels do not have all files */
};

static void note_error(struct buffer_state *b, int ret)
{
	if (ret && ret != -ENOENT && !b->error)
		b->error = ret;
}

static void read_word(struct buffer_state *b, const char *file, char *out, size_t size)
{
	struct buf text = { 0 };
	int ret = read_file_at(b->dir, file, 65536, &text);
	const char *s = ret ? NULL : buf_str(&text);
	const char *bracket = s ? strchr(s, '[') : NULL; /* "local [boot] global" */
	size_t len;

	s = bracket ? bracket + 1 : s ? s : "";
	len = strcspn(s, bracket ? "]" : " \n");
	snprintf(out, size, "%.*s", (int)(len < size ? len : size - 1), s);
	note_error(b, ret ? ret : buf_status(&text));
	buf_release(&text);
}

/* "1408", "7 (expanded: 1408)", "2048 (loaded)", "X" */
static uint64_t read_size_kb(struct buffer_state *b)
{
	char text[32];
	uint64_t kb = 0;

	read_word(b, "buffer_size_kb", text, sizeof(text));
	return parse_u64(text, &kb) ? 0 : kb;
}

static size_t count_entries(struct buffer_state *b, const char *file)
{
	struct strlist lines = { 0 };
	size_t n = 0;

	note_error(b, read_lines_at(b->dir, file, TEXT_MAX, &lines));
	for (size_t i = 0; i < lines.n; i++)
		n += *lines.v[i] && *lines.v[i] != '#';
	strlist_release(&lines);
	return n;
}

/* ---- the hypervisor's events: events/<system>/<event>/ ---- */

/* Names of the hypervisor's events, sorted. */
int list_hyp_events(int tracing, const char *path, struct strlist *out)
{
	struct strlist names = { 0 };
	char file[600];
	int ret;

	snprintf(file, sizeof(file), "%s/events/%s", path, basename(path));
	ret = read_dir_at(tracing, file, &names);
	for (size_t i = 0; !ret && i < names.n; i++) {
		snprintf(file, sizeof(file), "%s/events/%s/%s/format", path, basename(path), names.v[i]);
		if (!faccessat(tracing, file, F_OK, 0))
			ret = strlist_add(out, names.v[i]);
		else if (errno != ENOENT && errno != ENOTDIR)
			ret = -errno;
	}
	strlist_release(&names);
	return ret;
}

/* ---- buffers ---- */

static void print_buffer(const struct list *l, const struct buffer_state *b)
{
	char size[24] = "varies";

	if (b->size_kb)
		size_text(b->size_kb * 1024, size, sizeof(size));
	fprintf(l->out, "%-20s %-5s %8s %4u %7zu  %-10s %s\n",
		b->layout  ? "(hypervisor)"
		: *b->name ? VISIBLE(b->name)
			   : "(host)",
		b->on ? "on" : "off", size, b->cpus, b->events, b->clock, b->layout ? b->layout : b->tracer);
}

static void buffer_to_json(struct json *j, const struct buffer_state *b)
{
	json_object(j);
	json_key_str(j, "kind", b->layout ? "hypervisor" : "host");
	json_key_str(j, "name", b->name);
	json_key_str(j, "path", b->path);
	if (b->layout)
		json_key_str(j, "layout", b->layout);
	json_key_bool(j, "on", b->on);
	json_key_known(j, "size_kb", b->size_kb);
	json_key_u64(j, "cpus", b->cpus);
	json_key_u64(j, "events_on", b->events);
	json_key_str(j, "clock", b->clock);
	if (!b->layout)
		json_key_str(j, "tracer", b->tracer);
	json_object_end(j);
}

static int read_hyp(struct buffer_state *b, int tracing)
{
	struct strlist names = { 0 };
	char file[600], on[8];
	int ret = list_hyp_events(tracing, b->path, &names);

	for (size_t i = 0; i < names.n; i++) {
		snprintf(file, sizeof(file), "events/%s/%s/enable", basename(b->path), names.v[i]);
		read_word(b, file, on, sizeof(on));
		b->events += *on == '1';
	}
	strlist_release(&names);
	b->layout = file_there(b->dir, "per_cpu/cpu0/trace_pipe_raw") ? "raw pages" : "text";
	return ret;
}

static int show_buffer(const struct list *l, const char *name, const char *path, bool hyp)
{
	struct buffer_state b = { .name = name, .path = path };
	char on[8];
	int ret = 0;

	b.dir = openat(l->tracing, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b.dir < 0)
		return errno == ENOENT && !hyp ? 0 : -errno; /* an instance that went away */
	read_word(&b, "tracing_on", on, sizeof(on));
	b.on = *on == '1';
	b.size_kb = read_size_kb(&b);
	note_error(&b, tracefs_cpus(b.dir, "per_cpu", &b.cpus));
	read_word(&b, "trace_clock", b.clock, sizeof(b.clock));
	if (hyp) {
		ret = read_hyp(&b, l->tracing);
	} else {
		read_word(&b, "current_tracer", b.tracer, sizeof(b.tracer));
		b.events = count_entries(&b, "set_event");
	}
	close(b.dir);
	if (ret || b.error)
		return ret ? ret : b.error;
	if (l->out)
		print_buffer(l, &b);
	else
		buffer_to_json(l->json, &b);
	return 0;
}

static int show_instances(const struct list *l)
{
	struct strlist names = { 0 };
	int ret = read_dir_at(l->tracing, "instances", &names);

	if (ret == -ENOENT) /* not there, or gone */
		ret = 0;
	for (size_t i = 0; !ret && i < names.n; i++) {
		char path[300];

		snprintf(path, sizeof(path), "instances/%s", names.v[i]);
		ret = show_buffer(l, names.v[i], path, false);
	}
	strlist_release(&names);
	return ret;
}

static int show_buffers(const struct list *l)
{
	const char *hyp = remote_find(l->tracing);
	int ret;

	if (l->out)
		fprintf(l->out, "%-20s %-5s %8s %4s %7s  %-10s %s\n", "BUFFER", "STATE", "SIZE/CPU", "CPUS",
			"EVENTS", "CLOCK", "TRACER");
	ret = hyp ? show_buffer(l, basename(hyp), hyp, true) : 0;
	if (ret)
		return ret;
	ret = show_buffer(l, "", ".", false);
	if (ret)
		return ret;
	ret = show_instances(l);
	if (!ret && !hyp && l->out)
		remote_explain(l->tracing, l->root, l->log);
	return ret;
}

int list_all_buffers(struct list *l)
{
	int ret;

	if (l->json) {
		json_key(l->json, "buffers");
		json_array(l->json);
	}
	ret = l->tracing < 0 ? 0 : show_buffers(l);
	if (l->json)
		json_array_end(l->json);
	return ret;
}

/* ---- events ---- */

static void show_event(const struct list *l, const char *glob, const char *buffer, const char *system,
		       const char *event)
{
	char full[520];

	snprintf(full, sizeof(full), "%s:%s", system, event);
	if (strchr(glob, ':') ? fnmatch(glob, full, 0) : fnmatch(glob, event, 0) && fnmatch(glob, system, 0))
		return;
	if (l->out) {
		fprintf(l->out, "%-11s %s\n", buffer, full);
		return;
	}
	json_object(l->json);
	json_key_str(l->json, "buffer", buffer);
	json_key_str(l->json, "system", system);
	json_key_str(l->json, "name", event);
	json_object_end(l->json);
}

static void show_both_events(const struct list *l, const char *glob, const char *hyp,
			     const struct strlist *hyp_names, const struct strlist *host_names)
{
	if (l->json) {
		json_key(l->json, "events");
		json_array(l->json);
	}
	for (size_t i = 0; i < hyp_names->n; i++)
		show_event(l, glob, "hypervisor", basename(hyp), hyp_names->v[i]);
	for (size_t i = 0; i < host_names->n; i++) {
		char *colon = strchr(host_names->v[i], ':');

		if (!colon)
			continue;
		*colon = 0;
		show_event(l, glob, "host", host_names->v[i], colon + 1);
	}
	if (l->json)
		json_array_end(l->json);
}

static void show_totals(const struct list *l, size_t hyp, size_t host)
{
	if (l->json) {
		json_key(l->json, "events_available");
		json_object(l->json);
		json_key_u64(l->json, "hypervisor", hyp);
		json_key_u64(l->json, "host", host);
		json_object_end(l->json);
	} else if (l->tracing >= 0) {
		fprintf(l->out, "events: %zu of the hypervisor, %zu of the host (list --events)\n", hyp,
			host);
	}
}

int list_events(struct list *l, const char *glob)
{
	const char *hyp = l->tracing < 0 ? NULL : remote_find(l->tracing);
	struct strlist hyp_names = { 0 }, host_names = { 0 };
	int ret = hyp ? list_hyp_events(l->tracing, hyp, &hyp_names) : 0;

	if (ret)
		goto out;
	if (l->tracing >= 0)
		ret = read_lines_at(l->tracing, "available_events", TEXT_MAX, &host_names);
	if (ret && ret != -ENOENT)
		goto out;
	ret = 0;
	if (glob)
		show_both_events(l, glob, hyp, &hyp_names, &host_names);
	else
		show_totals(l, hyp_names.n, host_names.n);
out:
	strlist_release(&hyp_names);
	strlist_release(&host_names);
	return ret;
}
