// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace list: the machine's guests, trace buffers and events. */
#include <fnmatch.h>

#include "record/guest/guest.h"
#include "record/drain/remote.h"
#include "cmd.h"

/* Each part is a table of the answer; for people it is written by hand. */
struct list {
	/* options */
	bool guests, buffers, events, verbose, quiet;
	enum answer_form form;
	const char *glob;
	uint32_t probe; /* port on which to look for an agent; 0: do not */
	struct answer answer;
	struct buf text;
	const char *root; /* prefix of /proc and the like, "" */
	int tracing;	  /* the tracing directory, or -1 */
	const struct log *log;
};

#define PROBE_MS 1000

static const char *probe_guest(const struct list *l, const struct guest *g)
{
	bool asked = l->probe && (g->cid || g->uds);

	return asked ? guest_answer_name(guest_probe(g, l->probe, PROBE_MS)) : NULL;
}

static const char *number_or(const char *none, uint64_t v, char out[24])
{
	snprintf(out, 24, "%llu", (unsigned long long)v);
	return v ? out : none;
}

static void print_guests(struct list *l, const struct guests *all)
{
	struct buf *out = &l->text;
	int width = 4;

	if (!all->n) {
		buf_addstr(out, "guests: none\n");
		return;
	}
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].name && strlen(all->v[i].name) > (size_t)width)
			width = strlen(all->v[i].name) > 40 ? 40 : (int)strlen(all->v[i].name);
	buf_printf(out, "%-*s  %-16s %7s %10s  %s%s\n", width, "NAME", "VMM", "PID", "CID",
		   l->probe ? "AGENT        " : "", "VCPU:THREAD");
	for (size_t i = 0; i < all->n; i++) {
		const struct guest *g = &all->v[i];
		char pid[24], cid[24];

		buf_printf(out, "%-*s  %-16s %7s %10s  ", width, ESCAPED(g->name ? g->name : "-"),
			   guest_vmm_name(g->vmm), number_or("-", (uint64_t)g->pid, pid),
			   number_or("-", g->cid, cid));
		if (l->probe)
			buf_printf(out, "%-11s  ", probe_guest(l, g) ?: "-");
		if (!g->n_vcpus)
			buf_addstr(out, "-");
		for (size_t k = 0; k < g->n_vcpus; k++)
			buf_printf(out, "%s%u:%s", k ? " " : "", g->vcpus[k].cpu,
				   number_or("?", (uint64_t)g->vcpus[k].tid, pid));
		buf_addstr(out, "\n");
		if (g->uds)
			buf_printf(out, "%*s  vsock by unix:%s\n", width, "", ESCAPED(g->uds));
	}
}

static void list_guest_row(struct list *l, const struct guest *g)
{
	static const char *const names[] = { "proc", "libvirt", "vm list" };
	static const struct answer_column source_columns[] = { { "source", NULL, ANSWER_WORD } },
					  vcpu_columns[] = { { "cpu", NULL, ANSWER_COUNT },
							     { "pid", NULL, ANSWER_COUNT },
							     { "how", NULL, ANSWER_WORD } };
	struct answer_cell from[ARRAY_SIZE(names)], *cells = calloc(g->n_vcpus * 3 + 1, sizeof(*cells));
	struct answer_list sources = { source_columns, 1, from, 0, false },
			   vcpus = { vcpu_columns, 3, cells, g->n_vcpus, false };

	if (!cells) {
		l->text.bad = true;
		return;
	}
	for (size_t k = 0; k < ARRAY_SIZE(names); k++)
		if (g->sources & 1u << k)
			from[sources.n++] = CELL_WORD(names[k]);
	for (size_t k = 0; k < g->n_vcpus; k++) {
		cells[k * 3] = CELL_N(g->vcpus[k].cpu);
		cells[k * 3 + 1] = CELL_NOT_0((uint64_t)g->vcpus[k].tid);
		cells[k * 3 + 2] = CELL_WORD(guest_how_name(g->vcpus[k].how));
	}
	answer_row(&l->answer, (struct answer_cell[]){ CELL_WORD(g->name), CELL_WORD(guest_vmm_name(g->vmm)),
						       CELL_NOT_0((uint64_t)g->pid), CELL_NOT_0(g->cid),
						       CELL_WORD(g->uds), CELL_LIST(&sources),
						       CELL_LIST(&vcpus), CELL_WORD(probe_guest(l, g)) });
	free(cells);
}

static int list_guests(struct list *l)
{
	static const struct answer_column columns[] = {
		{ "name", NULL, ANSWER_WORD },	 { "vmm", NULL, ANSWER_WORD },
		{ "pid", NULL, ANSWER_COUNT },	 { "cid", NULL, ANSWER_COUNT },
		{ "socket", NULL, ANSWER_WORD }, { "sources", NULL, ANSWER_LIST },
		{ "vcpus", NULL, ANSWER_LIST },	 { "agent", NULL, ANSWER_WORD },
	};
	struct guest_opts o = { .root = l->root, .log = l->log };
	struct guests all;
	int ret = guests_find(&all, &o);

	if (ret)
		return ret;
	if (l->answer.form == ANSWER_TEXT)
		print_guests(l, &all);
	answer_table(&l->answer, "guests", NULL, columns, ARRAY_SIZE(columns) - !l->probe);
	for (size_t i = 0; i < all.n && l->answer.form != ANSWER_TEXT; i++)
		list_guest_row(l, &all.v[i]);
	answer_table_end(&l->answer);
	guests_release(&all);
	return 0;
}

#define TEXT_MAX (8u << 20)

struct buffer_state {
	int dir;
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

/* name: "": the host's main buffer. path: below the tracing directory. */
static int show_buffer(struct list *l, const char *name, const char *path, bool hyp)
{
	struct buffer_state b = { 0 };
	const char *layout = NULL; /* of the hypervisor's: how it is read */
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
		layout = file_there(b.dir, "per_cpu/cpu0/trace_pipe_raw") ? "raw pages" : "text";
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
	answer_row(&l->answer, (struct answer_cell[]){
				       CELL_WORD(hyp ? "hypervisor" : "host"), CELL_WORD(*name ? name : NULL),
				       CELL_WORD(path), hyp ? CELL_WORD(layout) : CELL_LEFT_OUT, CELL_N(b.on),
				       CELL_NOT_0(b.size_kb), CELL_N(b.cpus), CELL_N(b.events),
				       CELL_WORD(b.clock), hyp ? CELL_LEFT_OUT : CELL_WORD(b.tracer) });
	if (b.size_kb)
		size_text(b.size_kb * 1024, size, sizeof(size));
	answer_text(&l->answer, "%-20s %-5s %8s %4u %7zu  %-10s %s\n",
		    hyp	    ? "(hypervisor)"
		    : *name ? ESCAPED(name)
			    : "(host)",
		    b.on ? "on" : "off", size, b.cpus, b.events, ESCAPED(b.clock),
		    hyp ? layout : ESCAPED(b.tracer));
	return 0;
}

static int list_buffers(struct list *l)
{
	static const struct answer_column columns[] = {
		{ "kind", NULL, ANSWER_WORD },	{ "name", NULL, ANSWER_WORD },
		{ "path", NULL, ANSWER_WORD },	{ "layout", NULL, ANSWER_WORD },
		{ "on", NULL, ANSWER_BOOL },	{ "size_kb", NULL, ANSWER_COUNT },
		{ "cpus", NULL, ANSWER_COUNT }, { "events_on", NULL, ANSWER_COUNT },
		{ "clock", NULL, ANSWER_WORD }, { "tracer", NULL, ANSWER_WORD },
	};
	const char *hyp = l->tracing < 0 ? NULL : remote_find(l->tracing);
	struct strlist names = { 0 };
	int ret = 0;

	answer_table(&l->answer, "buffers", NULL, columns, ARRAY_SIZE(columns));
	if (l->tracing < 0)
		goto out;
	answer_text(&l->answer, "%-20s %-5s %8s %4s %7s  %-10s %s\n", "BUFFER", "STATE", "SIZE/CPU", "CPUS",
		    "EVENTS", "CLOCK", "TRACER");
	ret = hyp ? show_buffer(l, basename(hyp), hyp, true) : 0;
	ret = ret ?: show_buffer(l, "", ".", false);
	if (ret)
		goto out;
	ret = read_dir_at(l->tracing, "instances", &names);
	if (ret == -ENOENT) /* not there, or gone */
		ret = 0;
	for (size_t i = 0; !ret && i < names.n; i++) {
		char path[300];

		snprintf(path, sizeof(path), "instances/%s", names.v[i]);
		ret = show_buffer(l, names.v[i], path, false);
	}
	strlist_release(&names);
	if (!ret && !hyp && l->answer.form == ANSWER_TEXT)
		remote_explain(l->tracing, l->root, l->log);
out:
	answer_table_end(&l->answer);
	return ret;
}

static void show_event(struct list *l, const char *buffer, const char *system, const char *event)
{
	const char *glob = l->glob;
	char full[520];

	snprintf(full, sizeof(full), "%s:%s", system, event);
	if (strchr(glob, ':') ? fnmatch(glob, full, 0) : fnmatch(glob, event, 0) && fnmatch(glob, system, 0))
		return;
	answer_text(&l->answer, "%-11s %s\n", buffer, ESCAPED(full));
	answer_row(&l->answer,
		   (struct answer_cell[]){ CELL_WORD(buffer), CELL_WORD(system), CELL_WORD(event) });
}

/* l->glob: NULL counts them only. Matches "event", "system" or "system:event". */
static int list_events(struct list *l)
{
	const char *hyp = l->tracing < 0 ? NULL : remote_find(l->tracing);
	static const struct answer_column available[] = { { "hypervisor", NULL, ANSWER_COUNT },
							  { "host", NULL, ANSWER_COUNT } },
					  columns[] = { { "buffer", NULL, ANSWER_WORD },
							{ "system", NULL, ANSWER_WORD },
							{ "event", NULL, ANSWER_WORD } };
	struct strlist hyp_names = { 0 }, host_names = { 0 };
	int ret = hyp ? list_hyp_events(l->tracing, hyp, &hyp_names) : 0;

	if (ret)
		goto out;
	if (l->tracing >= 0)
		ret = read_lines_at(l->tracing, "available_events", TEXT_MAX, &host_names);
	if (ret && ret != -ENOENT)
		goto out;
	ret = 0;
	if (!l->glob) {
		answer_object(&l->answer, "events_available", available, ARRAY_SIZE(available),
			      (struct answer_cell[]){ CELL_N(hyp_names.n), CELL_N(host_names.n) });
		if (l->tracing >= 0)
			answer_text(&l->answer,
				    "events: %zu of the hypervisor, %zu of the host (list --events)\n",
				    hyp_names.n, host_names.n);
		goto out;
	}
	answer_table(&l->answer, "events", NULL, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < hyp_names.n; i++)
		show_event(l, "hypervisor", basename(hyp), hyp_names.v[i]);
	for (size_t i = 0; i < host_names.n; i++) {
		char *colon = strchr(host_names.v[i], ':');

		if (!colon)
			continue;
		*colon = 0;
		show_event(l, "host", host_names.v[i], colon + 1);
	}
	answer_table_end(&l->answer);
out:
	strlist_release(&hyp_names);
	strlist_release(&host_names);
	return ret;
}

static int take_glob(void *ctx, const struct opt *row, const char *arg, struct opts_error *err)
{
	struct list *l = ctx;

	l->events = true;
	l->glob = arg ? arg : "*";
	return 0;
}

#define LIST(field) .off = offsetof(struct list, field)

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
	OPT_JSON("for programs", LIST(form)),
	OPT_CSV("the same; each line begins with its table", LIST(form)),
	OPT_QUIET(LIST(quiet)),
	OPT('v', "verbose", NULL, "what could not be asked, and why", opts_set_flag, LIST(verbose)),
	OPT_HELP,
};

const struct opts_table list_table = {
	.command = "list",
	.usage = "usage: hyptrace list [--guests] [--buffers] [--events [GLOB]] [--probe[=PORT]]\n"
		 "                     [--json|--csv]\n"
		 "\n"
		 "Shows what there is to record: without options guests, buffers and how many events.\n"
		 "\n",
	OPT_ROWS(list_rows),
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
	struct list l = { 0 };
	struct opts_error err;
	bool is_long = false;

	for (int i = 1; i < argc; i++)
		is_long |= !strncmp(argv[i], "--", 2);
	return is_long && !opts_parse(&list_table, &argc, argv, &l, &err) && argc == 1;
}

int cmd_list(int argc, char **argv)
{
	struct console console = { 0 };
	struct list l = { .tracing = -1 };
	struct log log = { .fn = console_log, .ctx = &console };
	bool traced;
	int ret;

	if (!command_words(&list_table, &argc, argv, &l, 0, 0, &ret))
		return ret;
	if (!l.guests && !l.buffers && !l.events)
		l.guests = l.buffers = l.events = true;
	console.quiet = l.quiet;
	traced = l.buffers || l.events;
	if (l.verbose)
		log.fn = verbose_log;
	l.log = &log;
	l.root = getenv("HYPTRACE_ROOT") ?: "";
	if (traced)
		l.tracing = list_open_tracing(&log);
	answer_begin(&l.answer, l.form, &l.text);
	l.answer.indented = true;
	ret = (l.guests ? list_guests(&l) : 0) ?:
	      (l.buffers ? list_buffers(&l) : 0) ?: (l.events ? list_events(&l) : 0);
	answer_end(&l.answer);
	if (ret)
		log_err(&log, "cannot list: %s", strerror(-ret));
	if (!ret || l.form == ANSWER_TEXT)
		ret = print_answer(&l.text, &log) ?: ret;
	buf_release(&l.text);
	/* guests were shown, but what else was asked for could not be */
	if (traced && l.tracing < 0)
		ret = -ENOENT;
	fd_close(&l.tracing);
	return ret ? EXIT_FAILED : EXIT_OK;
}
