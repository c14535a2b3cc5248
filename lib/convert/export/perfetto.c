// SPDX-License-Identifier: LGPL-2.1-or-later
/* hyptrace export --perfetto: what comes first in a trace, which part takes which record, and the tracks of
 * the hypervisor. */
#include "base/files.h"
#include "convert/export/perfetto-priv.h"
#include "file/dat/options.h"

/*
 * Visits to the hypervisor of each CPU. Perfetto itself makes slices of hyp_enter and hyp_exit, gives them a
 * reason by the events between them, and none by mainline's own `reason`. So each visit is written twice: as
 * those events, for Perfetto's pkvm_hypervisor_events, and as a slice of ours that has it all.
 *
 * Perfetto takes every hyp_enter for the begin of a slice. One whose hyp_exit was lost would never end and
 * hold all later ones, so an event is passed on as one that Perfetto knows only when its counterpart is
 * there: a hyp_enter waits for what comes next on its CPU.
 */
struct pf_cpu {
	size_t input;
	struct pf_record *enter; /* the open one: in the chunk, or `waiting` */
	struct pf_record waiting;
	struct buf bytes; /* of `waiting` */
	uint64_t track;
	struct visit visit;
	struct pf_args args; /* of the open one */
};

static struct pf_cpu *get_cpu(struct perfetto *pf, size_t input, unsigned int cpu)
{
	struct pf_cpu **at = &pf->cpus[input * PERFETTO_CPUS + cpu], *c = *at;
	uint64_t parent;

	if (c)
		return c;
	c = *at = arena_alloc(&pf->kept, sizeof(*c));
	if (!c)
		return NULL;
	c->input = input;
	parent = pf_parent(pf, input, 0, PF_HYP, "Hypervisor (EL2)");
	c->track = pf_track(pf, input, parent, arena_printf(&pf->arena, "CPU %u", cpu), (int)cpu);
	return c;
}

/* A visit is over, or has no end: how long that took is unknown. */
static void put_slice(struct perfetto *pf, struct pf_cpu *c, const struct span *v, struct pf_label left)
{
	static const char *const ends[] = { [SPAN_LOST] = "lost", [SPAN_UNENDED] = "open" };
	size_t input = c->input;
	struct pf_label name;

	if (v->end == SPAN_BEGUN)
		return;
	name = pf_named(pf, input, PF_WHY, v->why);
	if (v->vcpu)
		pf_arg_number(&c->args, PF_WORD(VCPU), PF_ARG_INT, (uint64_t)v->vcpu);
	/* the form in which hyp_enter is written is known now */
	c->enter->how = v->end == SPAN_PAIRED ? PF_KNOWN : PF_GENERIC;
	if (c->enter == &c->waiting)
		pf_chunk_late(pf->chunk, c->enter);
	c->enter = NULL;
	if (v->end != SPAN_PAIRED) {
		pf_arg_text(&c->args, PF_WORD(END), ends[v->end], 4);
		pf_put(pf, input, c->track, v->from, PF_MOMENT, PF_WORD_HYP, name, &c->args);
		return;
	}
	pf_arg_label(&c->args, PF_WORD(LEFT_FOR), left);
	pf_put(pf, input, c->track, v->from, PF_BEGIN, PF_WORD_HYP, name, &c->args);
	pf_put_end(pf, input, c->track, v->to);
}

/* The hypervisor's time, by CPU. Only the hypervisor's events, m: the same; sets r->how. */
static void pf_hyp_record(struct perfetto *pf, const struct merge_record *m, struct pf_record *r)
{
	struct pf_cpu *c = get_cpu(pf, r->input, r->cpu);
	enum step_kind kind = steps_kind(pf->meanings, r->input, r->id);
	struct span done = { .end = SPAN_BEGUN };
	struct pf_label reason = { 0 };
	struct span_point p;
	uint64_t v;

	if (!c)
		return;
	if (kind != STEP_HYP_ENTER && kind != STEP_HYP_EXIT && c->visit.open) {
		/* the fields of an event in between, and what they mean */
		pf_arg_fields(&c->args, r);
		if (pf_number(&r->event->esr, r, &v))
			pf_arg_label(&c->args, PF_WORD(SYNDROME), pf_named(pf, r->input, PF_ESR, v));
		if (pf_number(&r->event->call, r, &v))
			pf_arg_label(&c->args, PF_WORD(CALL), pf_named(pf, r->input, PF_CALL, (uint32_t)v));
	}
	if (!steps_hyp_point(pf->meanings, r->input, m, 0, &p))
		return;
	if (p.reason != SPAN_UNKNOWN)
		reason = pf_named(pf, r->input, PF_REASON, pf_reason(kind, p.reason));
	if (visit_take(&c->visit, &p, &done))
		put_slice(pf, c, &done, kind == STEP_HYP_EXIT ? reason : (struct pf_label){ 0 });
	if (kind == STEP_HYP_ENTER) {
		c->args.n = c->args.bytes.len = 0;
		c->enter = r;
		r->how = PF_LEFT_OUT;
		pf_arg_label(&c->args, PF_WORD(REASON), reason);
	} else if (kind == STEP_HYP_EXIT && done.end != SPAN_PAIRED) {
		r->how = PF_GENERIC;
	}
	pf->bad |= c->args.bytes.bad;
}

static void pf_hyp_lost(struct perfetto *pf, size_t input, unsigned int cpu)
{
	struct pf_cpu *c = pf->cpus[input * PERFETTO_CPUS + cpu];
	const struct span_point p = { .kind = POINT_LOST };
	struct span done;

	if (c && visit_take(&c->visit, &p, &done))
		put_slice(pf, c, &done, (struct pf_label){ 0 });
}

enum { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum { SYNC_CLOCKS = 1, SYNCED_CLIENT = 2, SYNCED_HOST = 3 };
/* Of BuiltinClock. */
enum { CLOCK_ID_BOOTTIME = 6 };

static void put_uts(struct buf *b, unsigned int field, const char *text)
{
	if (text)
		pb_text(b, field, text, strlen(text));
}

static void put_system(struct perfetto *p, size_t i)
{
	const struct input *in = &p->job->in->v[i];
	const struct reader_option *uname = reader_option(in->reader, DAT_UNAME);
	struct buf *b = &p->chunk->packets;
	size_t packet = pb_open(b, TRACE_PACKET), info, uts;
	char *text, *save = NULL, *machine, *sysname, *release, *version;

	pb_number(b, PACKET_SEQUENCE_ID, p->machines[i] + 1);
	pf_put_words(p, b, i);
	pb_number(b, PACKET_SEQUENCE_FLAGS, SEQ_INCREMENTAL_STATE_CLEARED);
	info = pb_open(b, PACKET_SYSTEM_INFO);
	if (uname) { /* "Linux HOST RELEASE VERSION... MACHINE" */
		text = arena_text(&p->arena, uname->data.data, uname->data.len);
		machine = strrchr(text, ' ');
		uts = pb_open(b, INFO_UTSNAME);
		if (machine) {
			*machine++ = '\0';
			sysname = strtok_r(text, " ", &save);
			if (sysname)
				strtok_r(NULL, " ", &save); /* the host's name */
			release = sysname ? strtok_r(NULL, " ", &save) : NULL;
			version = release ? strtok_r(NULL, "", &save) : NULL;
			put_uts(b, UTS_SYSNAME, sysname);
			put_uts(b, UTS_VERSION, version);
			put_uts(b, UTS_RELEASE, release);
			put_uts(b, UTS_MACHINE, machine);
		}
		pb_close(b, uts);
	}
	pb_text(b, INFO_MACHINE_NAME, in->machine, strlen(in->machine));
	pb_close(b, info);
	pb_number(b, PACKET_FIRST_ON_SEQUENCE, true);
	pf_machine(p, b, i);
	pb_close(b, packet);
}

/* A ClockSnapshot's content: one reading. */
static void put_clock(struct buf *b, uint64_t ts)
{
	size_t clock = pb_open(b, SNAPSHOT_CLOCK);

	pb_number(b, CLOCK_ID, CLOCK_ID_BOOTTIME);
	pb_number(b, CLOCK_TIMESTAMP, ts ? ts : 1); /* 0 is taken for no reading */
	pb_close(b, clock);
}

static void put_pair(struct buf *b, uint64_t ts)
{
	size_t pair = pb_open(b, SYNC_CLOCKS);

	for (unsigned int side = SYNCED_CLIENT; side <= SYNCED_HOST; side++) {
		size_t snapshot = pb_open(b, side);

		put_clock(b, ts);
		pb_close(b, snapshot);
	}
	pb_close(b, pair);
}

/*
 * All times are the host's already: a guest's clock is the host's, which Perfetto
 * takes from two readings of both.
 */
static void put_clocks(struct perfetto *p, size_t i, uint64_t ts)
{
	struct buf *b = &p->chunk->packets;
	size_t packet = pb_open(b, TRACE_PACKET), clocks;

	if (!p->machines[i]) {
		clocks = pb_open(b, PACKET_CLOCK_SNAPSHOT);
		put_clock(b, ts);
		pb_number(b, SNAPSHOT_PRIMARY, CLOCK_ID_BOOTTIME);
	} else {
		pf_machine(p, b, i);
		clocks = pb_open(b, PACKET_REMOTE_CLOCK_SYNC);
		put_pair(b, ts);
		put_pair(b, ts);
	}
	pb_close(b, clocks);
	pb_close(b, packet);
}

/* PROCMAPS: "PID LINES COMMAND" in hexadecimal, then so many lines. */
static void put_process(struct perfetto *p, size_t i, const struct dat_text *maps)
{
	struct buf *b = &p->chunk->packets;
	struct cursor c = cursor_at(maps->data, maps->len);
	size_t len, packet, tree, process;
	unsigned int pid;
	int skip = 0;
	const char *line;
	char *text;

	if (!cursor_line(&c, &line, &len))
		return;
	text = arena_text(&p->arena, line, len);
	if (sscanf(text, "%x %*x %n", &pid, &skip) != 1 || !skip || !pid || pid > INT32_MAX)
		return;
	packet = pb_open(b, TRACE_PACKET);
	tree = pb_open(b, PACKET_PROCESS_TREE);
	process = pb_open(b, TREE_PROCESS);
	pb_number(b, TASK_PID, pid);
	pb_text(b, PROCESS_CMDLINE, text + skip, strlen(text + skip));
	pb_close(b, process);
	pb_close(b, tree);
	pf_machine(p, b, i);
	pb_close(b, packet);
}

static void put_tasks(struct perfetto *p, size_t i, uint64_t ts)
{
	const struct reader_info *info = reader_info(p->job->in->v[i].reader);
	struct cursor c = cursor_at(info->cmdlines.data, info->cmdlines.len);
	struct buf *b = &p->chunk->packets;
	const char *name;
	uint64_t tid;
	size_t len;

	for (size_t o = 0; o < info->n_options; o++)
		if (info->options[o].id == DAT_PROCMAPS)
			put_process(p, i, &info->options[o].data);
	/*
	 * Names of threads. Which processes they belong to is not in the file, so ProcessTree, which wants to
	 * know, is not for them.
	 */
	while (reader_task(&c, &tid, &name, &len)) {
		size_t packet, rename;

		if (!tid || tid > INT32_MAX)
			continue;
		packet = pb_open(b, TRACE_PACKET);
		pb_number(b, PACKET_TIMESTAMP, ts);
		pf_machine(p, b, i);
		rename = pb_open(b, PACKET_TASK_RENAME);
		pb_number(b, TASK_PID, tid);
		pb_text(b, TASK_COMM, name, len);
		pb_close(b, rename);
		pb_close(b, packet);
	}
}

/* Fills *r from the record alone. */
static void chunk_read(const struct perfetto *p, const struct merge_record *m, struct pf_record *r)
{
	const struct merge_stream *s = merge_stream(p->job->timeline->merge, m);
	const struct known_event *e;

	*r = (struct pf_record){ .ts = m->ts,
				 .data = m->data,
				 .len = m->len,
				 .input = s->input,
				 .cpu = s->cpu,
				 .stream = m->stream,
				 .pid = -1,
				 .lost = m->missed,
				 .how = m->len ? PF_KNOWN : PF_LEFT_OUT };
	e = timeline_event(p->job->timeline, m, &r->id);
	if (e)
		r->pid = timeline_pid(&e->pid, m);
}

/* Completes *r by the records before it, and adds to the tracks. */
static void chunk_record(struct perfetto *p, const struct merge_record *m, struct pf_record *r)
{
	const struct merge_stream *s = merge_stream(p->job->timeline->merge, m);
	enum pf_role role;

	r->event = m->len < 2 ? NULL : pf_event(p, r->input, r->id);
	arena_reset(&p->arena);
	if (m->missed || m->paused) {
		/* the hypervisor's events show their instance themselves */
		if (r->event ? r->event->role == PF_OF_HYP
			     : *reader_info(p->job->in->v[s->input].reader)->buffers[s->buffer].name)
			pf_hyp_lost(p, r->input, r->cpu);
		pf_marker_lost(p, m);
		if (m->data || m->paused) /* else nothing follows */
			gaps_stop(&p->gaps, m->stream);
	}
	role = r->event ? r->event->role : PF_PLAIN;
	if (role == PF_OF_HYP)
		pf_hyp_record(p, m, r);
	else if (role == PF_PRINT || role == PF_MARK)
		pf_marker_record(p, r);
	else if (role == PF_KVM_EXIT || role == PF_KVM_FAULT)
		pf_exit_record(p, r);
	if (m->gap) {
		pf_marker_lost(p, m);
		gaps_start(&p->gaps, m->stream);
	}
	p->bad |= p->arena.bad;
	p->job->records += m->len > 0;
	p->job->unknown += m->len && !r->event;
}

static int perfetto_before(void *ctx, struct pipeline_run *run)
{
	const struct perfetto *p = ctx;

	return export_tell(p->job);
}

static int perfetto_work(void *ctx, struct pipeline_run *run)
{
	const struct perfetto *p = ctx;
	const struct merge_run *m = &run->records;
	struct pf_chunk *c = run->own = run->own ?: calloc(1, sizeof(*c));

	if (!c || !pf_chunk_begin(c, p->n_cpus, m->n))
		return -ENOMEM;
	for (; c->n < m->n; c->n++)
		chunk_read(p, &m->v[c->n], &c->v[c->n]);
	return steps_fill(p->meanings, p->job->timeline, m, STATES_STEPS, &c->steps);
}

/* The slices on all tracks. */
static int perfetto_first(void *ctx, struct pipeline_run *run, size_t number)
{
	struct perfetto *p = ctx;
	const struct merge_run *m = &run->records;
	struct pf_chunk *chunk = p->chunk = run->own;
	size_t n = p->job->in->n;
	int ret = 0;

	if (!p->begun) {
		uint64_t ts = m->n ? m->v[0].ts : 0;

		p->begun = true;
		/* the host comes first: Perfetto takes the first machine that it meets for the host */
		for (size_t i = 0; i < 2 * n; i++) {
			if ((i < n) != !p->machines[i % n])
				continue;
			put_system(p, i % n);
			put_clocks(p, i % n, ts);
			put_tasks(p, i % n, ts);
		}
		p->bad |= p->arena.bad; /* each record empties it */
		ret = states_begin(p->states, ts);
	}
	steps_learn(p->meanings, m, chunk->steps.v, chunk->steps.named);
	for (size_t i = 0, step = 0; i < m->n && !ret; i++) {
		chunk_record(p, &m->v[i], &chunk->v[i]);
		for (; step < chunk->steps.n && chunk->steps.v[step].at == i && !ret; step++)
			ret = states_step(p->states, &chunk->steps.v[step], m->v[i].raw);
	}
	if (m->n)
		states_until(p->states, m->v[m->n - 1].ts);
	/* visits that the chunk leaves open wait for the next one */
	for (size_t i = 0; i < p->n_cpus; i++) {
		struct pf_cpu *c = p->cpus[i];

		if (!c || !c->enter || c->enter == &c->waiting)
			continue;
		c->bytes.len = 0;
		buf_add(&c->bytes, c->enter->data, c->enter->len);
		p->bad |= c->bytes.bad;
		c->waiting = *c->enter;
		c->waiting.data = c->bytes.data;
		c->waiting.lost = false; /* the chunk has it */
		c->enter = &c->waiting;
	}
	return ret ?: p->bad || p->kept.bad ? -ENOMEM : 0;
}

static int perfetto_finish(void *ctx, struct pipeline_run *run)
{
	const struct perfetto *p = ctx;
	const struct pf_chunk *c = run->own;
	struct pf_writer *w = &p->writers[run->worker];

	w->packets.len = 0;
	w->packets.bad |= c->packets.bad || c->kept.bad;
	buf_add(&w->packets, c->packets.data, c->packets.len);
	pf_slices_write(p, c, &w->packets);
	pf_ftrace_write(p, c, &w->packets);
	return pf_writer_zip(w, &run->out);
}

static int perfetto_after(void *ctx, struct pipeline_run *run)
{
	const struct perfetto *p = ctx;

	return write_all(p->job->fd, run->out.data, run->out.len);
}

static const struct pipeline_job perfetto_job = {
	.before = perfetto_before,
	.work = perfetto_work,
	.first = perfetto_first,
	.n_firsts = 1,
	.finish = perfetto_finish,
	.after = perfetto_after,
	.release = pf_chunk_free,
};

static int check_cpus(const struct inputs *in, const struct log *log)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct reader_info *info = reader_info(in->v[i].reader);

		for (size_t b = 0; b < info->n_buffers; b++)
			for (size_t c = 0; c < info->buffers[b].n_cpus; c++) {
				unsigned int cpu = info->buffers[b].cpus[c].cpu;

				if (cpu >= PERFETTO_CPUS)
					return log_fail(log, -ERANGE,
							"%s has a CPU %u: Perfetto takes none above %d",
							in->v[i].path, cpu, PERFETTO_CPUS - 1);
			}
	}
	return 0;
}

static int perfetto_open(struct perfetto *p)
{
	size_t n = p->job->in->n, host = 0;
	int ret;

	p->n_cpus = n * PERFETTO_CPUS;
	p->machines = calloc(n + 1, sizeof(*p->machines));
	p->cpus = calloc(p->n_cpus + 1, sizeof(struct pf_cpu *));
	p->labels = calloc(n + 1, sizeof(*p->labels));
	p->events = inputs_table(p->job->in, 0, sizeof(**p->events));
	p->writers = cache_lines_new(pipeline_workers(), sizeof(*p->writers));
	if (!p->machines || !p->cpus || !p->events || !p->labels || !p->writers)
		return -ENOMEM;
	/* the first file that is no guest's is the host's; each other one is a machine of its own */
	while (host < n && p->job->in->v[host].guest)
		host++;
	if (host == n)
		host = 0;
	for (size_t i = 0; i < n; i++) {
		p->machines[i] = i == host ? 0 : (uint32_t)i + 1;
		ret = tepfile_functions(p->job->in->v[i].tep);
		if (ret)
			return ret;
	}
	return steps_open(&p->meanings, p->job->in)
		       ?: gaps_open(&p->gaps, p->job->timeline)
		       ?: states_open(&p->states, p->job->in, p->job->timeline, p->meanings,
				      STATES_VCPUS | STATES_GUEST_TASKS, pf_state_span, p);
}

int export_perfetto(struct export_job *job, const struct mark_desc *desc, const struct log *log)
{
	struct perfetto p = { .job = job, .desc = desc };
	struct pipeline_run last = { 0 };
	struct span open;
	int ret = check_cpus(job->in, log);

	if (ret)
		return ret;
	ret = perfetto_open(&p) ?: pipeline_work(job->timeline, &perfetto_job, &p);
	/* writes what waited for a next record */
	ret = ret ?: perfetto_work(&p, &last) ?: perfetto_first(&p, &last, 0);
	for (size_t i = 0; i < p.n_cpus && !ret; i++)
		if (p.cpus[i] && visit_finish(&p.cpus[i]->visit, &open))
			put_slice(&p, p.cpus[i], &open, (struct pf_label){ 0 });
	ret = ret ?: states_end(p.states) ?: p.bad || p.kept.bad ? -ENOMEM : 0;
	ret = ret ?: perfetto_finish(&p, &last) ?: perfetto_after(&p, &last);
	pf_chunk_free(last.own);
	buf_release(&last.out);
	for (size_t i = 0; p.writers && i < pipeline_workers(); i++) {
		buf_release(&p.writers[i].packets);
		free(p.writers[i].zip);
	}
	free(p.writers);
	states_close(p.states);
	steps_close(p.meanings);
	for (size_t i = 0; p.cpus && i < p.n_cpus; i++)
		if (p.cpus[i]) {
			buf_release(&p.cpus[i]->args.bytes);
			buf_release(&p.cpus[i]->bytes);
		}
	free(p.cpus);
	free(p.numbers);
	map_release(&p.numbers_map);
	for (size_t i = 0; p.labels && i < job->in->n; i++) {
		free(p.labels[i].v);
		map_release(&p.labels[i].map);
	}
	free(p.labels);
	free(p.exits);
	marks_release(&p.marks);
	free(p.markers);
	gaps_release(&p.gaps);
	free(p.events);
	free(p.machines);
	buf_release(&p.args.bytes);
	buf_release(&p.name);
	arena_release(&p.arena);
	arena_release(&p.kept);
	return ret;
}
