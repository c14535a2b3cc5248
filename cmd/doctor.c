// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace doctor: shows the features that can be recorded here, the missing ones, and the commands that fix
 * them. */
#include <limits.h>
#include <sys/utsname.h>

#include "cmd.h"
#include "record/drain/remote.h"
#include "record/guest/guest.h"

#define DOCTOR_PROBE_MS 1000
#define MODULES_MAX	(16u << 20)

struct doctor {
	/* options */
	bool quiet, check;
	enum answer_form form;
	uint32_t port;
	const char *root;
	int root_fd; /* of root, or of / */
	int tracing; /* -1: there is none */
	struct answer answer;
	struct strlist defaults;
	struct strlist asked; /* --check: keys of findings that must be there; empty: all */
	struct strlist seen;  /* keys of all findings */
	size_t missing;	      /* findings that are asked for and not there */
};

static void doctor_part(struct doctor *d, const char *key, const char *title)
{
	static const struct answer_column columns[] = { { "key", NULL, ANSWER_WORD },
							{ "what", NULL, ANSWER_WORD },
							{ "can", NULL, ANSWER_BOOL },
							{ "why", NULL, ANSWER_WORD },
							{ "fix", NULL, ANSWER_WORD } };

	answer_table(&d->answer, key, NULL, columns, ARRAY_SIZE(columns));
	answer_text(&d->answer, "%s\n", title);
}

static void doctor_lines(struct answer *a, const char *before, const char *lines)
{
	for (size_t len; lines && *lines; lines += len + (lines[len] == '\n')) {
		char line[256];

		len = strcspn(lines, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)len, lines);
		answer_text(a, "%s%s\n", before, ESCAPED(line));
	}
}

/* key: for --check. why: a line for each reason. why, fix: may be NULL. */
static void doctor_tell(struct doctor *d, const char *key, const char *what, bool can, const char *why,
			const char *fix)
{
	if (strlist_add(&d->seen, key)) /* then no key is known, and --check fails */
		d->missing++;
	d->missing += !can && (!d->asked.n || strlist_has(&d->asked, key));
	answer_row(&d->answer, (struct answer_cell[]){ CELL_WORD(key), CELL_WORD(what), CELL_N(can),
						       CELL_WORD(why), CELL_WORD(fix) });
	answer_text(&d->answer, "  %-3s  %s\n", can ? "yes" : "no", ESCAPED(what));
	doctor_lines(&d->answer, "       ", why);
	doctor_lines(&d->answer, "       -> ", fix);
}

/* Messages of others, a finding's reasons. */
static void doctor_listen(void *ctx, enum log_level level, const char *msg)
{
	struct buf *b = ctx;

	if (level != LOG_DEBUG)
		buf_printf(b, "%s%s", b->len ? "\n" : "", msg);
}

/* The command that loads a kernel's module; without one, what else is to be done. */
static void doctor_module(const struct doctor *d, const char *module, const char *config, struct buf *out)
{
	static const char *const lists[] = { "modules.builtin", "modules.dep" };
	char *name = str_printf("/%s.ko", module);
	bool listed = false;
	struct utsname u;

	uname(&u);
	for (size_t i = 0; i < ARRAY_SIZE(lists) && name; i++) {
		char *path = str_printf("lib/modules/%s/%s", u.release, lists[i]);
		struct buf text = { 0 };

		if (path && !read_file_at(d->root_fd, path, MODULES_MAX, &text) && buf_str(&text)) {
			listed = true;
			for (char *c = (char *)text.data; *c; c++) /* as modprobe takes names */
				*c = *c == '-' ? '_' : *c;
			if (strstr(buf_str(&text), name))
				buf_printf(out, i ? "modprobe %s" : "%s is built into this kernel: see dmesg",
					   module);
		}
		buf_release(&text);
		free(path);
	}
	free(name);
	if (!out->len)
		buf_printf(out,
			   listed ? "a kernel with %s: this one has no module %s"
				  : "a kernel with %s (modprobe %s)",
			   config, module);
}

/* A feature that is there when a file is. */
static const struct doctor_row {
	const char *key, *what, *file;
	bool traced; /* file: of the tracing directory, not of the root */
	const char *why, *fix;
	const char *module, *config; /* NULL: no module brings it; else fix comes after */
} doctor_rows[] = {
#ifdef __aarch64__
	{ "kvm", "guests' exits: -e kvm", "events/kvm", true, "KVM has no events here",
	  "a kernel with CONFIG_KVM=y that boots at EL2", NULL, NULL },
#else
	{ "kvm", "guests' exits: -e kvm", "events/kvm", true, "KVM has no events here",
	  "on AMD's processors kvm_amd", "kvm_intel", "CONFIG_KVM" },
#endif
	{ "sched", "tasks: -e sched", "events/sched", true, "the scheduler has no events here",
	  "a kernel with CONFIG_FTRACE=y and CONFIG_ENABLE_DEFAULT_TRACERS=y or any tracer", NULL, NULL },
	{ "functions", "functions: -p function", "available_filter_functions", true, "no function tracer",
	  "a kernel with CONFIG_FUNCTION_TRACER=y", NULL, NULL },
	{ "probes", "probes: -e 'p:...'", "dynamic_events", true, "no dynamic events",
	  "a kernel with CONFIG_KPROBE_EVENTS=y", NULL, NULL },
	{ "profile", "samples: --profile", "proc/sys/kernel/perf_event_paranoid", false, "no perf events",
	  "a kernel with CONFIG_PERF_EVENTS=y", NULL, NULL },
	{ "vsock", "guests' vsock: -A", "dev/vhost-vsock", false, "no /dev/vhost-vsock",
	  "TCP and VMMs' sockets need none", "vhost_vsock", "CONFIG_VHOST_VSOCK" },
#ifdef __aarch64__
	{ "clocks", "guests' exact clocks", "sys/kernel/btf/vmlinux", false, "KVM's CNTVOFF cannot be seen",
	  "a kernel with CONFIG_DEBUG_INFO_BTF=y and CONFIG_FPROBE_EVENTS=y; until then exits bound them",
	  NULL, NULL },
#else
	{ "clocks", "guests' exact clocks", "sys/kernel/debug/kvm", false, "KVM's TSC offsets cannot be seen",
	  "on AMD's processors kvm_amd; until then exits bound them", "kvm_intel", "CONFIG_KVM" },
#endif
};

static void doctor_host(struct doctor *d)
{
	static const char debugfs[] = "sys/kernel/debug/";
	struct buf why = { 0 };
	struct log log = { doctor_listen, &why };
	struct strlist mounted = { 0 };
	bool denied;

	doctor_part(d, "host", "host");
	d->tracing = list_open_tracing(&log);
	/* what is mounted and may not be read needs no mount */
	denied = access(getenv("HYPTRACE_TRACING_DIR") ?: "/sys/kernel/tracing", R_OK | X_OK) &&
		 errno == EACCES;
	doctor_tell(d, "tracing", "tracing", d->tracing >= 0, d->tracing < 0 ? buf_str(&why) : NULL,
		    d->tracing >= 0 ? NULL
		    : denied	    ? "as root: hyptrace doctor"
				    : "as root: mount -t tracefs tracefs /sys/kernel/tracing");
	buf_release(&why);
	if (d->tracing >= 0) {
		const char *hyp = remote_find(d->tracing), *fix = NULL;
		struct buf reason = { 0 };
		struct log quiet = { doctor_listen, &reason };
		char on[8];

		if (!hyp) {
			remote_explain(d->tracing, d->root, &quiet);
			fix = "an arm64 host with kvm-arm.mode=protected and Linux 7.1, or Android 14, "
			      "or later";
		} else if (!read_line_at(d->tracing, on, sizeof(on), "%s/tracing_on", hyp) && *on == '1') {
			buf_addstr(&reason, "somebody has switched it on already");
			fix = "record --take-over, which reads it from where it is";
		}
		doctor_tell(d, "hyp", "hypervisor: -B hyp", !fix, fix ? buf_str(&reason) : NULL, fix);
		buf_release(&reason);
	}
	/* nothing is mounted where it is empty */
	read_dir_at(d->root_fd, debugfs, &mounted);
	for (size_t i = 0; i < ARRAY_SIZE(doctor_rows); i++) {
		const struct doctor_row *r = &doctor_rows[i];
		struct buf fix = { 0 };
		bool can;

		if (r->traced && d->tracing < 0)
			continue;
		can = file_there(r->traced ? d->tracing : d->root_fd, r->file);
		if (!strncmp(r->file, debugfs, strlen(debugfs)) && !mounted.n) {
			buf_addstr(&fix,
				   "mount -t debugfs debugfs /sys/kernel/debug; until then exits bound them");
		} else {
			if (r->module)
				doctor_module(d, r->module, r->config, &fix);
			buf_printf(&fix, "%s%s", r->module ? "; " : "", r->fix);
		}
		doctor_tell(d, r->key, r->what, can, can ? NULL : r->why, can ? NULL : buf_str(&fix));
		buf_release(&fix);
	}
	strlist_release(&mounted);
	answer_table_end(&d->answer);
}

/* Shows whether the guest's agent answers, and which of its vCPUs' threads are known. */
static void doctor_guest(struct doctor *d, const struct guest *g, const char *what)
{
	const char *key = g->name ?: "";
	static const struct {
		const char *why, *fix;
	} answers[] = {
		[GUEST_UNREACHABLE] = { "its vsock is not reached",
					"see guests' vsock above; is its VMM's socket there?" },
		[GUEST_REFUSED] = { "no agent listens", "in the guest, as root: hyptrace-agent -D" },
		[GUEST_SILENT] = { "no answer", "the guest is paused or boots: resume it, or try again" },
		[GUEST_BUSY] = { "its agent closes the connection at once",
				 "end what records that guest; else start its agent again" },
		[GUEST_LISTENS] = { "its agent listens", NULL },
	};
	size_t known = 0;
	char why[80];

	if (!g->cid && !g->uds) {
		doctor_tell(d, key, what, false, "it has no vsock",
			    g->vmm && g->vmm->vsock_advice ? g->vmm->vsock_advice
							   : "its VMM must give it a vsock device");
	} else {
		enum guest_answer a = guest_probe(g, d->port, DOCTOR_PROBE_MS);

		doctor_tell(d, key, what, a == GUEST_LISTENS, answers[a].why, answers[a].fix);
		if (a == GUEST_LISTENS)
			defaults_guest(&d->defaults, g);
	}
	for (size_t i = 0; i < g->n_vcpus; i++)
		known += g->vcpus[i].tid != 0;
	if (g->n_vcpus && known == g->n_vcpus)
		return;
	snprintf(why, sizeof(why), "%zu of its %zu vCPUs' threads are known", known, g->n_vcpus);
	doctor_tell(d, key, what, false, why,
		    g->vmm && g->vmm->threads_advice
			    ? g->vmm->threads_advice
			    : "as root; idle vCPUs are found, busy ones by their exits");
}

static int doctor_guests(struct doctor *d)
{
	struct guest_opts o = { .root = d->root }; /* without its messages */
	struct guests all;
	int ret = guests_find(&all, &o);

	if (ret)
		return ret;
	doctor_part(d, "guests", all.n ? "guests" : "guests: none");
	for (size_t i = 0; i < all.n; i++) {
		const struct guest *g = &all.v[i];
		struct buf what = { 0 };

		buf_printf(&what, "%s, %s", g->name ? g->name : "(no name)", guest_vmm_name(g->vmm));
		doctor_guest(d, g, buf_str(&what));
		buf_release(&what);
	}
	answer_table_end(&d->answer);
	guests_release(&all);
	return 0;
}

#define DOCTOR(field) .off = offsetof(struct doctor, field)

static const struct opt doctor_options[] = {
	OPT('p', "port", "PORT", "where guests' agents listen (823)", set_agent_port, DOCTOR(port)),
	OPT_JSON("for programs", DOCTOR(form)),
	OPT_CSV("the same; each line begins with its table", DOCTOR(form)),
	OPT('c', "check", NULL,
	    "exit status 1 when something is missing; with KEYs (tracing hyp kvm\n"
	    "sched functions probes profile vsock clocks, or guests' names), of these",
	    opts_set_flag, DOCTOR(check)),
	OPT('q', "quiet", NULL, "errors only, and no advice on the next step", opts_set_flag, DOCTOR(quiet)),
	OPT_HELP,
};

const struct opts_table doctor_table = {
	.command = "doctor",
	.usage = "usage: hyptrace doctor [--port PORT] [--json|--csv] [--check [KEY...]]\n"
		 "\n"
		 "Shows what can be recorded of this host and each of its guests, what is missing, and the\n"
		 "command that fixes it. Changes nothing; connects once to each guest's agent.\n"
		 "\n",
	OPT_ROWS(doctor_options),
};

int cmd_doctor(int argc, char **argv)
{
	struct buf text = { 0 }, next = { 0 };
	struct doctor d = { .port = GUEST_PORT, .root = getenv("HYPTRACE_ROOT") ?: "", .tracing = -1 };
	int ret;

	if (!command_words(&doctor_table, &argc, argv, &d, 0, INT_MAX, &ret))
		return ret;
	if (argc > 1 && !d.check) {
		fprintf(stderr, "hyptrace: doctor takes no '%s' without --check\n", ESCAPED(argv[1]));
		return EXIT_USAGE;
	}
	d.asked = (struct strlist){ .v = argv + 1, .n = (size_t)argc - 1 };
	d.root_fd = open(*d.root ? d.root : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d.root_fd < 0) {
		ret = -errno;
		goto out;
	}
	answer_begin(&d.answer, d.form, &text);
	d.answer.indented = true;
	doctor_host(&d);
	ret = d.tracing < 0 ? 0 : defaults_host(&d.defaults, d.tracing);
	ret = ret ?: doctor_guests(&d);
	buf_addstr(&next, "hyptrace");
	for (size_t i = 0; i < d.defaults.n; i++)
		buf_printf(&next, " %s", d.defaults.v[i]);
	if (d.tracing >= 0 && d.form == ANSWER_JSON)
		json_key_str(&d.answer.json, "next", buf_str(&next));
	else if (d.tracing >= 0 && !d.quiet)
		answer_text(&d.answer, "next: %s\n", ESCAPED(buf_str(&next)));
	answer_end(&d.answer);
	ret = ret ?: buf_status(&text);
out:
	if (ret)
		fprintf(stderr, "hyptrace: cannot look: %s\n", strerror(-ret));
	else
		fputs(buf_str(&text), stdout);
	buf_release(&text);
	buf_release(&next);
	strlist_release(&d.defaults);
	fd_close(&d.root_fd);
	if (d.tracing >= 0)
		close(d.tracing);
	for (size_t i = 0; i < d.asked.n; i++)
		if (!strlist_has(&d.seen, d.asked.v[i])) {
			fprintf(stderr, "hyptrace: doctor --check: there is no '%s' here\n",
				ESCAPED(d.asked.v[i]));
			d.missing++;
		}
	strlist_release(&d.seen);
	if (d.check && d.missing)
		ret = -ENOENT;
	return ret || d.tracing < 0 ? EXIT_FAILED : EXIT_OK;
}
