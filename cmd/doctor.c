// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace doctor: what can be recorded here, what cannot, and the line that mends it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "list-priv.h"
#include "record/remote.h"
#include "usual.h"
#include "util/visible.h"

#define DOCTOR_PROBE_MS 1000

struct doctor_opts {
	bool json, quiet;
	uint32_t port;
};

struct doctor {
	const char *root;
	int root_fd; /* of root, or of / */
	int tracing; /* -1: there is none */
	uint32_t port;
	bool quiet;
	struct json *json; /* NULL: as text, into out */
	struct buf *out;
	struct strlist usual;
};

/* ---- findings ------------------------------------------------------------------------- */

static void doctor_part(struct doctor *d, const char *key, const char *title)
{
	if (d->json) {
		json_key(d->json, key);
		json_array(d->json);
	} else {
		buf_printf(d->out, "%s\n", title);
	}
}

static void doctor_part_end(struct doctor *d)
{
	if (d->json)
		json_array_end(d->json);
}

static void doctor_lines(struct buf *out, const char *before, const char *lines)
{
	for (size_t len; lines && *lines; lines += len + (lines[len] == '\n')) {
		char line[256];

		len = strcspn(lines, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)len, lines);
		buf_printf(out, "%s%s\n", before, VISIBLE(line));
	}
}

/* why: a line for each reason. why, fix: NULL where there is nothing to say. */
static void doctor_tell(struct doctor *d, const char *what, bool can, const char *why, const char *fix)
{
	if (d->json) {
		json_object(d->json);
		json_key_str(d->json, "what", what);
		json_key_bool(d->json, "can", can);
		json_key_str(d->json, "why", why);
		json_key_str(d->json, "fix", fix);
		json_object_end(d->json);
		return;
	}
	buf_printf(d->out, "  %-3s  %s\n", can ? "yes" : "no", VISIBLE(what));
	doctor_lines(d->out, "       ", why);
	doctor_lines(d->out, "       -> ", fix);
}

/* Messages of others, a finding's reasons. */
static void doctor_listen(void *ctx, enum log_level level, const char *msg)
{
	struct buf *b = ctx;

	if (level != LOG_DEBUG)
		buf_printf(b, "%s%s", b->len ? "\n" : "", msg);
}

/* ---- the host --------------------------------------------------------------------------- */

static void doctor_tracefs(struct doctor *d)
{
	struct buf why = { 0 };
	struct log log = { doctor_listen, &why };

	d->tracing = list_open_tracing(&log);
	doctor_tell(d, "tracing", d->tracing >= 0, d->tracing < 0 ? buf_str(&why) : NULL,
		    d->tracing < 0 ? "as root: mount -t tracefs tracefs /sys/kernel/tracing" : NULL);
	buf_release(&why);
}

static bool doctor_is_on(int tracing, const char *hyp)
{
	struct buf text = { 0 };
	char path[128];
	bool on;

	snprintf(path, sizeof(path), "%s/tracing_on", hyp);
	on = !read_file_at(tracing, path, 64, &text) && text.len && *buf_str(&text) == '1';
	buf_release(&text);
	return on;
}

static void doctor_hyp(struct doctor *d)
{
	static const char what[] = "hypervisor: -B hyp";
	const char *hyp = remote_find(d->tracing);
	struct buf why = { 0 };
	struct log log = { doctor_listen, &why };

	if (!hyp) {
		remote_explain(d->tracing, d->root, &log);
		doctor_tell(
			d, what, false, buf_str(&why),
			"an arm64 host with kvm-arm.mode=protected and Linux 7.1, or Android 14, or later");
	} else if (doctor_is_on(d->tracing, hyp)) {
		doctor_tell(d, what, false, "somebody has switched it on already",
			    "record --take-over, which reads it from where it is");
	} else {
		doctor_tell(d, what, true, NULL, NULL);
	}
	buf_release(&why);
}

/* What is there when a file is. */
static const struct doctor_row {
	const char *what, *file;
	bool traced; /* file: of the tracing directory, not of the root */
	const char *why, *fix;
} doctor_rows[] = {
	{ "guests' exits: -e kvm", "events/kvm", true, "KVM has no events here",
	  "modprobe kvm_intel or kvm_amd; on arm64 a kernel with CONFIG_KVM that boots at EL2" },
	{ "tasks: -e sched", "events/sched", true, "the scheduler has no events here",
	  "a kernel with CONFIG_FTRACE=y and CONFIG_ENABLE_DEFAULT_TRACERS=y or any tracer" },
	{ "functions: -p function", "available_filter_functions", true, "no function tracer",
	  "a kernel with CONFIG_FUNCTION_TRACER=y" },
	{ "probes: -e 'p:...'", "dynamic_events", true, "no dynamic events",
	  "a kernel with CONFIG_KPROBE_EVENTS=y" },
	{ "samples: --profile", "proc/sys/kernel/perf_event_paranoid", false, "no perf events",
	  "a kernel with CONFIG_PERF_EVENTS=y" },
	{ "guests' vsock: -A", "dev/vhost-vsock", false, "no /dev/vhost-vsock",
	  "modprobe vhost_vsock; guests by TCP or a VMM's socket need none" },
#ifdef __aarch64__
	{ "guests' exact clocks", "sys/kernel/btf/vmlinux", false, "KVM's CNTVOFF cannot be seen",
	  "a kernel with CONFIG_DEBUG_INFO_BTF=y and CONFIG_FPROBE_EVENTS=y; until then exits bound them" },
#else
	{ "guests' exact clocks", "sys/kernel/debug/kvm", false, "KVM's TSC offsets cannot be seen",
	  "mount -t debugfs debugfs /sys/kernel/debug; until then exits bound them" },
#endif
};

static void doctor_host(struct doctor *d)
{
	doctor_part(d, "host", "host");
	doctor_tracefs(d);
	if (d->tracing >= 0)
		doctor_hyp(d);
	for (size_t i = 0; i < ARRAY_SIZE(doctor_rows); i++) {
		const struct doctor_row *r = &doctor_rows[i];
		bool can;

		if (r->traced && d->tracing < 0)
			continue;
		can = file_there(r->traced ? d->tracing : d->root_fd, r->file);
		doctor_tell(d, r->what, can, can ? NULL : r->why, can ? NULL : r->fix);
	}
	doctor_part_end(d);
}

/* ---- guests --------------------------------------------------------------------------------- */

static const char *doctor_vsock(enum guest_vmm vmm)
{
	static const char *const fixes[] = {
		[GUEST_VMM_QEMU] = "QEMU: -device vhost-vsock-pci,guest-cid=3",
		[GUEST_VMM_CROSVM] = "crosvm: --vsock cid=3",
		[GUEST_VMM_KVMTOOL] = "lkvm: --vsock 3",
		[GUEST_VMM_CLOUD_HYPERVISOR] = "cloud-hypervisor: --vsock cid=3,socket=/run/g.vsock",
		[GUEST_VMM_FIRECRACKER] = "Firecracker: \"vsock\" in its configuration",
	};

	return vmm < ARRAY_SIZE(fixes) && fixes[vmm] ? fixes[vmm] : "its VMM must give it a vsock device";
}

static void doctor_agent(struct doctor *d, const struct guest *g, const char *what)
{
	static const struct {
		const char *why, *fix;
	} answers[] = {
		[GUEST_UNREACHABLE] = { "its vsock is not reached",
					"modprobe vhost_vsock; is its VMM's socket there?" },
		[GUEST_REFUSED] = { "no agent listens", "in the guest, as root: hyptrace-agent -D" },
		[GUEST_SILENT] = { "no answer", "the guest is paused or boots: resume it, or try again" },
		[GUEST_LISTENS] = { "its agent listens", NULL },
	};
	enum guest_answer a;

	if (!g->cid && !g->uds) {
		doctor_tell(d, what, false, "it has no vsock", doctor_vsock(g->vmm));
		return;
	}
	a = guest_probe(g, d->port, DOCTOR_PROBE_MS);
	doctor_tell(d, what, a == GUEST_LISTENS, answers[a].why, answers[a].fix);
	if (a == GUEST_LISTENS)
		usual_guest(&d->usual, g);
}

static void doctor_vcpus(struct doctor *d, const struct guest *g, const char *what)
{
	size_t known = 0;
	char why[80];

	for (size_t i = 0; i < g->n_vcpus; i++)
		known += g->vcpus[i].tid != 0;
	if (g->n_vcpus && known == g->n_vcpus)
		return;
	snprintf(why, sizeof(why), "%zu of its %zu vCPUs' threads are known", known, g->n_vcpus);
	doctor_tell(d, what, false, why,
		    g->vmm == GUEST_VMM_QEMU ? "QEMU: -name NAME,debug-threads=on"
					     : "as root; idle vCPUs are found, busy ones by their exits");
}

static int doctor_guests(struct doctor *d)
{
	struct buf ignored = { 0 };
	struct log log = { doctor_listen, &ignored };
	struct guest_opts o = { .root = d->root, .log = &log };
	struct guests all;
	int ret = guests_find(&all, &o);

	if (ret)
		return ret;
	doctor_part(d, "guests", all.n ? "guests" : "guests: none");
	for (size_t i = 0; i < all.n; i++) {
		const struct guest *g = &all.v[i];
		struct buf what = { 0 };

		buf_printf(&what, "%s, %s", g->name ? g->name : "(no name)", guest_vmm_name(g->vmm));
		doctor_agent(d, g, buf_str(&what));
		doctor_vcpus(d, g, buf_str(&what));
		buf_release(&what);
	}
	doctor_part_end(d);
	guests_release(&all);
	buf_release(&ignored);
	return 0;
}

/* ---- the command -------------------------------------------------------------------------------- */

static void doctor_next(struct doctor *d)
{
	struct buf line = { 0 };

	if (d->tracing < 0)
		return;
	buf_addstr(&line, "hyptrace");
	for (size_t i = 0; i < d->usual.n; i++)
		buf_printf(&line, " %s", d->usual.v[i]);
	if (d->json)
		json_key_str(d->json, "next", buf_str(&line));
	else if (!d->quiet)
		buf_printf(d->out, "next: %s\n", VISIBLE(buf_str(&line)));
	buf_release(&line);
}

static int doctor_all(struct doctor *d)
{
	int ret;

	if (d->json)
		json_object(d->json);
	doctor_host(d);
	ret = d->tracing < 0 ? 0 : usual_host(&d->usual, d->tracing);
	if (!ret)
		ret = doctor_guests(d);
	doctor_next(d);
	if (d->json)
		json_object_end(d->json);
	return ret;
}

static int doctor_set_port(void *ctx, const struct opt *row, const char *arg, struct opts_error *err)
{
	uint64_t n;

	if (parse_u64(arg, &n) || !n || n >= UINT32_MAX)
		return opts_wrong(err, row, arg, "not a port");
	((struct doctor_opts *)ctx)->port = (uint32_t)n;
	return 0;
}

static const struct opt doctor_options[] = {
	OPT('p', "port", "PORT", "where guests' agents listen (823)", doctor_set_port),
	OPT('j', "json", NULL, "for programs", opts_set_flag, .off = offsetof(struct doctor_opts, json)),
	OPT('q', "quiet", NULL, "errors only, and no advice on the next step", opts_set_flag,
	    .off = offsetof(struct doctor_opts, quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table doctor_table = {
	.command = "doctor",
	.usage = "usage: hyptrace doctor [--port PORT] [--json]\n"
		 "\n"
		 "Tells what this host and each of its guests can be recorded with, what not, and the line\n"
		 "that mends it. Changes nothing; guests' agents are called once, and hung up on.\n"
		 "\n",
	.rows = doctor_options,
	.n = ARRAY_SIZE(doctor_options),
};

int cmd_doctor(int argc, char **argv)
{
	struct doctor_opts o = { .port = GUEST_PORT };
	struct buf text = { 0 };
	struct json json = { .out = &text };
	struct doctor d = { .root = getenv("HYPTRACE_ROOT") ?: "", .tracing = -1, .out = &text };
	struct opts_error err;
	int ret = opts_parse(&doctor_table, &argc, argv, &o, &err);

	if (ret)
		return command_stopped(&doctor_table, ret, &err);
	if (argc > 1) {
		fprintf(stderr, "hyptrace: doctor takes no '%s'\n", argv[1]);
		command_usage(&doctor_table, stderr);
		return EXIT_USAGE;
	}
	d.port = o.port;
	d.quiet = o.quiet;
	d.json = o.json ? &json : NULL;
	d.root_fd = open(*d.root ? d.root : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = d.root_fd < 0 ? -errno : doctor_all(&d) ?: buf_status(&text);
	if (ret)
		fprintf(stderr, "hyptrace: cannot look: %s\n", strerror(-ret));
	else
		fputs(buf_str(&text), stdout);
	buf_release(&text);
	strlist_release(&d.usual);
	if (d.root_fd >= 0)
		close(d.root_fd);
	if (d.tracing >= 0)
		close(d.tracing);
	return ret || d.tracing < 0 ? EXIT_FAILED : EXIT_OK;
}
