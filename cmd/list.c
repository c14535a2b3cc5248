// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace list: the machine's guests, trace buffers and events. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/array.h"
#include "record/guest/guest.h"
#include "base/escape.h"
#include "record/drain/remote.h"
#include "record/tracefs/dir.h"
#include "base/json.h"
#include "cmd.h"

/* Each part is a table on out, or goes into json (then out is NULL). */
struct list {
	FILE *out;
	struct json *json;
	const char *root; /* prefix of /proc and the like, "" */
	int tracing;	  /* the tracing directory, or -1 */
	uint32_t probe;	  /* port on which to look for an agent; 0: do not */
	const struct log *log;
};

/* ---- guests ----------------------------------------------------------------------- */

#define PROBE_MS 1000

static const char *probe_guest(const struct list *l, const struct guest *g)
{
	if (!l->probe || (!g->cid && !g->uds))
		return NULL;
	return guest_answer_name(guest_probe(g, l->probe, PROBE_MS));
}

static void print_number_or(FILE *out, const char *fmt, const char *none, uint64_t v)
{
	char text[24] = "-";

	if (v)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	fprintf(out, fmt, v ? text : none);
}

static void print_guests(const struct list *l, const struct guests *all)
{
	int width = 4;

	if (!all->n) {
		fputs("guests: none\n", l->out);
		return;
	}
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].name && strlen(all->v[i].name) > (size_t)width)
			width = strlen(all->v[i].name) > 40 ? 40 : (int)strlen(all->v[i].name);
	fprintf(l->out, "%-*s  %-16s %7s %10s  %s%s\n", width, "NAME", "VMM", "PID", "CID",
		l->probe ? "AGENT        " : "", "VCPU:THREAD");
	for (size_t i = 0; i < all->n; i++) {
		const struct guest *g = &all->v[i];
		const char *agent = probe_guest(l, g);

		fprintf(l->out, "%-*s  %-16s ", width, ESCAPED(g->name ? g->name : "-"),
			guest_vmm_name(g->vmm));
		print_number_or(l->out, "%7s ", "-", (uint64_t)g->pid);
		print_number_or(l->out, "%10s  ", "-", g->cid);
		if (l->probe)
			fprintf(l->out, "%-11s  ", agent ? agent : "-");
		if (!g->n_vcpus)
			fputs("-", l->out);
		for (size_t k = 0; k < g->n_vcpus; k++) {
			fprintf(l->out, "%s%u:", k ? " " : "", g->vcpus[k].cpu);
			print_number_or(l->out, "%s", "?", (uint64_t)g->vcpus[k].tid);
		}
		fputc('\n', l->out);
		if (g->uds)
			fprintf(l->out, "%*s  vsock by unix:%s\n", width, "", ESCAPED(g->uds));
	}
}

static int list_guests(struct list *l)
{
	struct guest_opts o = { .root = l->root, .log = l->log };
	struct guests all;
	int ret = guests_find(&all, &o);

	if (ret)
		return ret;
	if (l->out) {
		print_guests(l, &all);
	} else {
		json_key(l->json, "guests");
		json_array(l->json);
		for (size_t i = 0; i < all.n; i++) {
			static const char *const sources[] = { "proc", "libvirt", "vm list" };
			const struct guest *g = &all.v[i];
			struct json *j = l->json;

			json_object(j);
			json_key_str(j, "name", g->name);
			json_key_str(j, "vmm", guest_vmm_name(g->vmm));
			json_key_known(j, "pid", (uint64_t)g->pid);
			json_key_known(j, "cid", g->cid);
			json_key_str(j, "socket", g->uds);
			json_key(j, "sources");
			json_array(j);
			for (size_t k = 0; k < ARRAY_SIZE(sources); k++)
				if (g->sources & 1u << k)
					json_str(j, sources[k]);
			json_array_end(j);
			json_key(j, "vcpus");
			json_array(j);
			for (size_t k = 0; k < g->n_vcpus; k++) {
				json_object(j);
				json_key_u64(j, "cpu", g->vcpus[k].cpu);
				json_key_known(j, "pid", (uint64_t)g->vcpus[k].tid);
				json_key_str(j, "how", guest_how_name(g->vcpus[k].how));
				json_object_end(j);
			}
			json_array_end(j);
			if (l->probe)
				json_key_str(j, "agent", probe_guest(l, g));
			json_object_end(j);
		}
		json_array_end(l->json);
	}
	guests_release(&all);
	return 0;
}

#define TEXT_MAX (8u << 20)

/* ---- one buffer: files that are only read ---- */

struct buffer_state {
	int dir;
	const char *name;   /* "" = the host's main buffer */
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

static int show_buffer(const struct list *l, const char *name, const char *path, bool hyp)
{
	struct buffer_state b = { .name = name, .path = path };
	struct strlist names = { 0 };
	char text[64], file[600], size[24] = "varies";
	int ret = 0;

	b.dir = openat(l->tracing, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b.dir < 0)
		return errno == ENOENT && !hyp ? 0 : -errno; /* an instance that went away */
	read_word(&b, "tracing_on", text, sizeof(text));
	b.on = *text == '1';
	/* "1408", "7 (expanded: 1408)", "2048 (loaded)", "X" */
	read_word(&b, "buffer_size_kb", text, sizeof(text));
	if (parse_u64(text, &b.size_kb))
		b.size_kb = 0;
	note_error(&b, tracefs_cpus(b.dir, "per_cpu", &b.cpus));
	read_word(&b, "trace_clock", b.clock, sizeof(b.clock));
	if (hyp) {
		ret = list_hyp_events(l->tracing, path, &names);
		for (size_t i = 0; i < names.n; i++) {
			snprintf(file, sizeof(file), "events/%s/%s/enable", basename(path), names.v[i]);
			read_word(&b, file, text, sizeof(text));
			b.events += *text == '1';
		}
		b.layout = file_there(b.dir, "per_cpu/cpu0/trace_pipe_raw") ? "raw pages" : "text";
	} else {
		read_word(&b, "current_tracer", b.tracer, sizeof(b.tracer));
		note_error(&b, read_lines_at(b.dir, "set_event", TEXT_MAX, &names));
		for (size_t i = 0; i < names.n; i++)
			b.events += *names.v[i] && *names.v[i] != '#';
	}
	strlist_release(&names);
	close(b.dir);
	if (ret || b.error)
		return ret ? ret : b.error;
	if (l->json) {
		json_object(l->json);
		json_key_str(l->json, "kind", b.layout ? "hypervisor" : "host");
		json_key_str(l->json, "name", *b.name ? b.name : NULL);
		json_key_str(l->json, "path", b.path);
		if (b.layout)
			json_key_str(l->json, "layout", b.layout);
		json_key_bool(l->json, "on", b.on);
		json_key_known(l->json, "size_kb", b.size_kb);
		json_key_u64(l->json, "cpus", b.cpus);
		json_key_u64(l->json, "events_on", b.events);
		json_key_str(l->json, "clock", b.clock);
		if (!b.layout)
			json_key_str(l->json, "tracer", b.tracer);
		json_object_end(l->json);
		return 0;
	}
	if (b.size_kb)
		size_text(b.size_kb * 1024, size, sizeof(size));
	fprintf(l->out, "%-20s %-5s %8s %4u %7zu  %-10s %s\n",
		hyp	? "(hypervisor)"
		: *name ? ESCAPED(name)
			: "(host)",
		b.on ? "on" : "off", size, b.cpus, b.events, b.clock, hyp ? b.layout : b.tracer);
	return 0;
}

static int show_buffers(const struct list *l)
{
	const char *hyp = remote_find(l->tracing);
	struct strlist names = { 0 };
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
	ret = read_dir_at(l->tracing, "instances", &names);
	if (ret == -ENOENT) /* not there, or gone */
		ret = 0;
	for (size_t i = 0; !ret && i < names.n; i++) {
		char path[300];

		snprintf(path, sizeof(path), "instances/%s", names.v[i]);
		ret = show_buffer(l, names.v[i], path, false);
	}
	strlist_release(&names);
	if (!ret && !hyp && l->out)
		remote_explain(l->tracing, l->root, l->log);
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
	json_key_str(l->json, "event", event);
	json_object_end(l->json);
}

/* glob: NULL counts them only. Matches "event", "system" or "system:event". */
static int list_events(struct list *l, const char *glob)
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
	if (!glob && l->json) {
		json_key(l->json, "events_available");
		json_object(l->json);
		json_key_u64(l->json, "hypervisor", hyp_names.n);
		json_key_u64(l->json, "host", host_names.n);
		json_object_end(l->json);
	} else if (!glob && l->tracing >= 0) {
		fprintf(l->out, "events: %zu of the hypervisor, %zu of the host (list --events)\n",
			hyp_names.n, host_names.n);
	}
	if (!glob)
		goto out;
	if (l->json) {
		json_key(l->json, "events");
		json_array(l->json);
	}
	for (size_t i = 0; i < hyp_names.n; i++)
		show_event(l, glob, "hypervisor", basename(hyp), hyp_names.v[i]);
	for (size_t i = 0; i < host_names.n; i++) {
		char *colon = strchr(host_names.v[i], ':');

		if (!colon)
			continue;
		*colon = 0;
		show_event(l, glob, "host", host_names.v[i], colon + 1);
	}
	if (l->json)
		json_array_end(l->json);
out:
	strlist_release(&hyp_names);
	strlist_release(&host_names);
	return ret;
}

/* ---- the command -------------------------------------------------------------------- */

struct list_opts {
	bool guests, buffers, events, json, verbose, quiet;
	const char *glob;
	uint32_t probe;
};

static int take_glob(void *ctx, const struct opt *row, const char *arg, struct opts_error *err)
{
	struct list_opts *o = ctx;

	o->events = true;
	o->glob = arg ? arg : "*";
	return 0;
}

#define LIST(field) .off = offsetof(struct list_opts, field)

static const struct opt list_rows[] = {
	OPT('g', "guests", NULL, "the machine's virtual machines: VMM, pid, CID, vCPU threads", opts_set_flag,
	    LIST(guests)),
	OPT('b', "buffers", NULL, "the host's trace buffers and the hypervisor's, and their state",
	    opts_set_flag, LIST(buffers)),
	OPT('e', "events", "[GLOB]",
	    "events of the hypervisor and the host; GLOB matches an event,\n"
	    "a system, or system:event",
	    take_glob),
	OPT('p', "probe", "[=PORT]", "with the guests: does something listen on the agent's port (823)?",
	    set_agent_port, LIST(probe)),
	OPT('j', "json", NULL, "for programs", opts_set_flag, LIST(json)),
	OPT_QUIET(LIST(quiet)),
	OPT('v', "verbose", NULL, "what could not be asked, and why", opts_set_flag, LIST(verbose)),
	OPT_HELP,
};

const struct opts_table list_table = {
	.command = "list",
	.usage = "usage: hyptrace list [--guests] [--buffers] [--events [GLOB]] [--probe[=PORT]] [--json]\n"
		 "\n"
		 "Shows what there is to record: without options guests, buffers and how many events.\n"
		 "\n",
	.rows = list_rows,
	.n = ARRAY_SIZE(list_rows),
};

static void verbose_log(void *ctx, enum log_level level, const char *msg)
{
	console_log(ctx, level == LOG_DEBUG ? LOG_INFO : level, msg);
}

int list_open_tracing(const struct log *log)
{
	char *dir = tracefs_dir(getenv("HYPTRACE_TRACING_DIR"), log);
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (dir && fd < 0)
		log_err(log, "cannot open '%s': %s%s", dir, strerror(errno),
			errno == EACCES ? " (are you root?)" : "");
	free(dir);
	return fd;
}

/* By a long option, which trace-cmd's list does not have: its letters mean other things. */
bool list_takes(int argc, char **argv)
{
	struct list_opts o = { 0 };
	struct opts_error err;
	bool is_long = false;

	for (int i = 1; i < argc; i++)
		is_long |= !strncmp(argv[i], "--", 2);
	return is_long && !opts_parse(&list_table, &argc, argv, &o, &err) && argc == 1;
}

int cmd_list(int argc, char **argv)
{
	struct list_opts o = { 0 };
	struct console console = { 0 };
	struct buf text = { 0 };
	struct json json = { .out = &text };
	struct list l = { .tracing = -1 };
	struct log log = console_as_log(&console);
	bool traced;
	int ret;

	if (!command_words(&list_table, &argc, argv, &o, 0, 0, &ret))
		return ret;
	if (!o.guests && !o.buffers && !o.events)
		o.guests = o.buffers = o.events = true;
	console.quiet = o.quiet;
	traced = o.buffers || o.events;
	if (o.verbose)
		log.fn = verbose_log;
	l.log = &log;
	l.root = getenv("HYPTRACE_ROOT") ?: "";
	l.probe = o.probe;
	l.out = o.json ? NULL : stdout;
	l.json = o.json ? &json : NULL;
	if (traced)
		l.tracing = list_open_tracing(&log);
	if (o.json)
		json_document(&json);
	ret = o.guests ? list_guests(&l) : 0;
	if (!ret && o.buffers) {
		if (o.json) {
			json_key(&json, "buffers");
			json_array(&json);
		}
		ret = l.tracing < 0 ? 0 : show_buffers(&l);
		if (o.json)
			json_array_end(&json);
	}
	if (!ret && o.events)
		ret = list_events(&l, o.glob);
	if (o.json) {
		json_object_end(&json);
		ret = ret ? ret : buf_status(&text);
	}
	if (ret)
		log_err(&log, "cannot list: %s", strerror(-ret));
	else if (o.json)
		fputs(buf_str(&text), stdout);
	buf_release(&text);
	/* guests were shown, but what else was asked for could not be */
	if (traced && l.tracing < 0)
		ret = -ENOENT;
	else if (traced)
		close(l.tracing);
	return ret ? EXIT_FAILED : EXIT_OK;
}
