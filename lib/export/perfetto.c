// SPDX-License-Identifier: LGPL-2.1-or-later
/* hyptrace export --perfetto: what comes first in a trace, and which part takes which record. */
#include "export/perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dat/options.h"
#include "export/perfetto-priv.h"

/* Of BuiltinClock and TracePacket.SequenceFlags. */
enum { CLOCK_ID_BOOTTIME = 6 };
enum { SEQ_INCREMENTAL_STATE_CLEARED = 1 };

/* ---- what comes first -------------------------------------------------------------- */

/* The text of UNAME: "Linux HOST RELEASE VERSION... MACHINE". */
static void split_uname(struct arena *a, char *text, Perfetto__Protos__Utsname *u)
{
	char *last = strrchr(text, ' '), *save = NULL;

	if (!last)
		return;
	*last = '\0';
	u->machine = last + 1;
	u->sysname = strtok_r(text, " ", &save);
	if (u->sysname)
		strtok_r(NULL, " ", &save); /* the host's name */
	u->release = u->sysname ? strtok_r(NULL, " ", &save) : NULL;
	u->version = u->release ? strtok_r(NULL, "", &save) : NULL;
}

static int put_system(struct perfetto *p, size_t i)
{
	const struct input *in = &p->in->v[i];
	const struct reader_option *uname = reader_option(in->reader, DAT_UNAME);
	Perfetto__Protos__SystemInfo info = PERFETTO__PROTOS__SYSTEM_INFO__INIT;
	Perfetto__Protos__Utsname u = PERFETTO__PROTOS__UTSNAME__INIT;
	struct arena *a = &p->arena;
	pf_packet packet = PF_PACKET_INIT;

	info.machine_name = arena_text(a, in->machine, strlen(in->machine));
	if (uname) {
		split_uname(a, arena_text(a, uname->data.data, uname->data.len), &u);
		info.utsname = &u;
	}
	packet.system_info = &info;
	packet.has_trusted_packet_sequence_id = true;
	packet.trusted_packet_sequence_id = p->machines[i] + 1;
	packet.has_first_packet_on_sequence = true;
	packet.first_packet_on_sequence = true;
	packet.has_sequence_flags = true;
	packet.sequence_flags = SEQ_INCREMENTAL_STATE_CLEARED;
	return pf_put(&p->out, p->machines[i], &packet);
}

/*
 * All times are the host's already: a guest's clock is the host's, which Perfetto
 * takes from two readings of both.
 */
static int put_clocks(struct perfetto *p, size_t i, uint64_t ts)
{
	Perfetto__Protos__ClockSnapshot__Clock clock = PERFETTO__PROTOS__CLOCK_SNAPSHOT__CLOCK__INIT;
	Perfetto__Protos__ClockSnapshot__Clock *clocks[] = { &clock };
	Perfetto__Protos__ClockSnapshot snap = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__RemoteClockSync__SyncedClocks pair =
		PERFETTO__PROTOS__REMOTE_CLOCK_SYNC__SYNCED_CLOCKS__INIT;
	Perfetto__Protos__RemoteClockSync__SyncedClocks *pairs[] = { &pair, &pair };
	Perfetto__Protos__RemoteClockSync sync = PERFETTO__PROTOS__REMOTE_CLOCK_SYNC__INIT;
	pf_packet packet = PF_PACKET_INIT;

	clock.has_clock_id = true;
	clock.clock_id = CLOCK_ID_BOOTTIME;
	clock.has_timestamp = true;
	clock.timestamp = ts ? ts : 1; /* 0 is taken for no reading */
	snap.n_clocks = 1;
	snap.clocks = clocks;
	if (!p->machines[i]) {
		snap.has_primary_trace_clock = true;
		snap.primary_trace_clock = CLOCK_ID_BOOTTIME;
		packet.clock_snapshot = &snap;
	} else {
		pair.client_clocks = pair.host_clocks = &snap;
		sync.n_synced_clocks = 2;
		sync.synced_clocks = pairs;
		packet.remote_clock_sync = &sync;
	}
	return pf_put(&p->out, p->machines[i], &packet);
}

/* PROCMAPS: "PID LINES COMMAND" in hexadecimal, then so many lines. */
static int put_process(struct perfetto *p, size_t i, const struct dat_text *maps)
{
	Perfetto__Protos__ProcessTree__Process process = PERFETTO__PROTOS__PROCESS_TREE__PROCESS__INIT;
	Perfetto__Protos__ProcessTree__Process *processes[] = { &process };
	Perfetto__Protos__ProcessTree tree = PERFETTO__PROTOS__PROCESS_TREE__INIT;
	pf_packet packet = PF_PACKET_INIT;
	struct cursor c = cursor_at(maps->data, maps->len);
	unsigned int pid;
	int skip = 0;
	const char *line;
	char *text, *command;
	size_t len;

	if (!cursor_line(&c, &line, &len))
		return 0;
	text = arena_text(&p->arena, line, len);
	if (sscanf(text, "%x %*x %n", &pid, &skip) != 1 || !skip || !pid || pid > INT32_MAX)
		return 0;
	command = text + skip;
	process.has_pid = true;
	process.pid = (int32_t)pid;
	process.n_cmdline = 1;
	process.cmdline = &command;
	tree.n_processes = 1;
	tree.processes = processes;
	packet.process_tree = &tree;
	return pf_put(&p->out, p->machines[i], &packet);
}

/*
 * Names of threads, "PID COMM" a line. Which processes they belong to is not in
 * the file, so ProcessTree, which wants to know, is not for them.
 */
static int put_thread(struct perfetto *p, size_t i, uint64_t ts, const char *line, size_t len)
{
	Perfetto__Protos__GenericKernelTaskRenameEvent e =
		PERFETTO__PROTOS__GENERIC_KERNEL_TASK_RENAME_EVENT__INIT;
	char *text = arena_text(&p->arena, line, len), *comm;
	pf_packet packet = PF_PACKET_INIT;
	long tid = strtol(text, &comm, 10);

	if (tid <= 0 || tid > INT32_MAX || *comm != ' ')
		return 0;
	e.has_tid = true;
	e.tid = tid;
	e.comm = comm + 1;
	packet.generic_kernel_task_rename_event = &e;
	packet.has_timestamp = true;
	packet.timestamp = ts;
	return pf_put(&p->out, p->machines[i], &packet);
}

static int put_tasks(struct perfetto *p, size_t i, uint64_t ts)
{
	const struct reader_info *info = reader_info(p->in->v[i].reader);
	struct cursor c = cursor_at(info->cmdlines.data, info->cmdlines.len);
	const char *line;
	size_t len;
	int ret;

	for (size_t o = 0; o < info->n_options; o++) {
		if (info->options[o].id != DAT_PROCMAPS)
			continue;
		ret = put_process(p, i, &info->options[o].data);
		if (ret)
			return ret;
	}
	while (cursor_line(&c, &line, &len)) {
		arena_reset(&p->arena);
		ret = put_thread(p, i, ts, line, len);
		if (ret)
			return ret;
	}
	return 0;
}

static int put_machine(struct perfetto *p, size_t i, uint64_t ts)
{
	int ret = put_system(p, i);

	if (ret)
		return ret;
	ret = put_clocks(p, i, ts);
	return ret ? ret : put_tasks(p, i, ts);
}

/* The host comes first: Perfetto takes the first machine that it meets for the host. */
static int trace_begin(struct perfetto *p, uint64_t ts)
{
	size_t n = p->in->n;

	p->begun = true;
	for (size_t i = 0; i < 2 * n; i++) {
		bool host = i < n;
		int ret = host == !p->machines[i % n] ? put_machine(p, i % n, ts) : 0;

		if (ret)
			return ret;
	}
	return 0;
}

/* ---- records ------------------------------------------------------------------------- */

static int record_loss(struct perfetto *p, const struct timeline_record *r)
{
	int ret = 0;

	/* the hypervisor's events say themselves of which instance they are */
	if (r->hyp || (!r->event && *r->buffer->name))
		ret = pf_hyp_lost(p, r->input, r->cpu);
	if (ret)
		return ret;
	ret = pf_vcpus_lost(p, r->input);
	return ret ? ret : pf_ftrace_lost(p, r->input, r->cpu);
}

static int record_event(struct perfetto *p, const struct timeline_record *r)
{
	bool hyp = r->hyp;
	int ret = hyp ? pf_hyp_record(p, r) : pf_ftrace_add(p, r, !r->event);

	if (ret || !r->event)
		return ret;
	ret = pf_vcpus_record(p, r);
	if (ret)
		return ret;
	ret = pf_marker_record(p, r);
	if (ret)
		return ret;
	return p->arena.bad ? -ENOMEM : 0;
}

int perfetto_record(void *ctx, const struct timeline_record *r)
{
	struct perfetto *p = ctx;
	int ret;

	arena_reset(&p->arena);
	ret = p->begun ? 0 : trace_begin(p, r->ts);
	if (ret)
		return ret;
	ret = r->missed ? record_loss(p, r) : 0;
	return ret || !r->tep.size ? ret : record_event(p, r);
}

int perfetto_finish(struct perfetto *p)
{
	int ret = p->begun ? 0 : trace_begin(p, 0);

	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < p->in->n; i++)
		ret = pf_vcpus_lost(p, i);
	if (ret)
		return ret;
	ret = pf_hyp_finish(p);
	if (ret)
		return ret;
	ret = pf_ftrace_finish(p);
	return ret ? ret : pf_flush(&p->out);
}

/* ---- all of it ------------------------------------------------------------------------ */

/* The first file that is no guest's is the host's; each other one is a machine of its own. */
static void number_machines(struct perfetto *p)
{
	size_t host = 0;

	while (host < p->in->n && p->in->v[host].guest)
		host++;
	if (host == p->in->n)
		host = 0;
	for (size_t i = 0; i < p->in->n; i++)
		p->machines[i] = i == host ? 0 : (uint32_t)i + 1;
}

/* trace_processor gives up on a trace with a higher one. */
#define CPU_MAX 1023

static int check_cpus(const struct inputs *in, const struct log *log)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct reader_info *info = reader_info(in->v[i].reader);

		for (size_t b = 0; b < info->n_buffers; b++)
			for (size_t c = 0; c < info->buffers[b].n_cpus; c++) {
				unsigned int cpu = info->buffers[b].cpus[c].cpu;

				if (cpu <= CPU_MAX)
					continue;
				log_err(log, "%s has a CPU %u: Perfetto takes none above %d", in->v[i].path,
					cpu, CPU_MAX);
				return -ERANGE;
			}
	}
	return 0;
}

int perfetto_new(struct perfetto **out, int fd, const struct inputs *in, const struct hypertrace_desc *desc,
		 const struct log *log)
{
	int ret = check_cpus(in, log);
	struct perfetto *p;

	*out = NULL;
	if (ret)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->in = in;
	p->desc = desc;
	p->out.fd = fd;
	p->machines = calloc(in->n + 1, sizeof(*p->machines));
	if (!p->machines) {
		perfetto_free(p);
		return -ENOMEM;
	}
	number_machines(p);
	*out = p;
	return 0;
}

void perfetto_free(struct perfetto *p)
{
	if (!p)
		return;
	pf_ftrace_release(p);
	pf_hyp_release(p);
	pf_map_release(&p->vcpus, NULL);
	pf_map_release(&p->threads, NULL);
	pf_map_release(&p->parents, NULL);
	arena_release(&p->arena);
	pf_out_release(&p->out);
	free(p->machines);
	free(p);
}
