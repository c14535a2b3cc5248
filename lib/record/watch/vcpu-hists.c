// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes the kernel count what happens to vCPUs' threads. libtracefs writes synthetic events and their
 * triggers by the formats of this kernel's events. They go to tracefs through the undo journal, with the
 * histograms: libtracefs 1.6 makes synthetic events in the main instance only, and cannot undo anything after
 * a kill.
 */
#include "record/watch/watcher.h"
#include "base/decode/esr.h"
#include "record/tracefs/undo.h"

#include <tracefs.h>

#define WATCH_DIR     "instances/hyptrace-watch"
#define HIST_TEXT_MAX (16u << 20)
#define FORMAT_MAX    (1u << 20)
/* Threads in a filter: a line is a page at most (kernel/trace/trace_events_trigger.c). */
#define FILTER_PIDS 64

/* A time between two events of a vCPU's thread, which a synthetic event passes on as pid and lat. */
struct watch_pair {
	const char *name;	       /* of the synthetic event */
	const char *start[3], *end[3]; /* system, event, field of the thread */
	const char *with;	       /* of the start, before the filter by threads */
	const char *fields[2][2];      /* of the start, with names in the synthetic event */
	const char *end_fields[2][2];  /* of the end */
	const char *hists[3][2];       /* keys and filter */
	bool all;		       /* without a filter: only vCPUs' threads have these events */
	const char *lost;	       /* what cannot be watched without it */
};

/* The thread can still run: preempted (TASK_REPORT_MAX of the kernel), or running. The histogram of names may
 * become full, that of all does not. */
static const struct watch_pair stolen_pair = {
	.name = "hyptrace_stolen",
	.start = { "sched", "sched_switch", "prev_pid" },
	.end = { "sched", "sched_switch", "next_pid" },
	.with = "(prev_state == 256 || prev_state == 0) && (",
	.fields = { { "next_comm", "by" } },
	.hists = { { "pid,lat.log2", "" }, { "pid,by", "" } },
	.lost = "stolen time",
};

/* A vCPU that wakes up while another task has its CPU waits for that one, unless it is the idle task. */
static const struct watch_pair wakeup_pair = {
	.name = "hyptrace_wakeup",
	.start = { "sched", "sched_waking", "pid" },
	.end = { "sched", "sched_switch", "next_pid" },
	.with = "",
	.end_fields = { { "prev_comm", "by" }, { "prev_pid", "prev" } },
	.hists = { { "pid,lat.log2", "" },
		   { "pid,lat.log2", " if prev != 0" },
		   { "pid,by", " if prev != 0" } },
	.lost = "wake-ups",
};

/* ec means something of a trap only (ret 2), and a histogram has three keys at most. */
#define KVM_EXIT_PAIR                                                                                        \
	.name = "hyptrace_exit", .start = { "kvm", "kvm_exit", "common_pid" },                               \
	.end = { "kvm", "kvm_entry", "common_pid" }, .all = true, .lost = "exits"
static const struct watch_pair exit_arm64_pair = {
	KVM_EXIT_PAIR,
	.with = "",
	.fields = { { "ret", "ret" }, { "esr_ec", "ec" } },
	.hists = { { "pid,ec,lat.log2", " if ret == 2" }, { "pid,ret,lat.log2", " if ret != 2" } },
};
static const struct watch_pair exit_x86_pair = {
	KVM_EXIT_PAIR,
	.with = "",
	.fields = { { "exit_reason", "reason" } },
	.hists = { { "pid,reason,lat.log2", "" } },
};

/*
 * lines: the synthetic event, the trigger of its start, that of its end; without filters. By the commands of
 * a shell that libtracefs prints: echo 'LINE' >> FILE. -ENOENT: no such event or field, or no memory for it.
 */
static int pair_lines(struct watcher *w, const struct watch_pair *p, struct strlist *lines)
{
	struct tracefs_synth *s = tracefs_synth_alloc(w->tep, p->name, p->start[0], p->start[1], p->end[0],
						      p->end[1], p->start[2], p->end[2], NULL);
	/* the thread as a field of the end: its variable gets a name that no other trigger has */
	bool bad = !s || tracefs_synth_add_end_field(s, p->end[2], "pid") ||
		   tracefs_synth_add_compare_field(s, TRACEFS_TIMESTAMP, TRACEFS_TIMESTAMP,
						   TRACEFS_SYNTH_DELTA_END, "lat");
	struct trace_seq seq;
	char *save, *part;
	bool quoted = false;
	int ret = 0;

	for (size_t i = 0; i < 2 && !bad; i++) {
		const char *const *start = p->fields[i], *const *end = p->end_fields[i];

		bad = (*start && tracefs_synth_add_start_field(s, start[0], start[1])) ||
		      (*end && tracefs_synth_add_end_field(s, end[0], end[1]));
	}
	trace_seq_init(&seq);
	bad = bad || tracefs_synth_echo_cmd(&seq, s) || seq.state != TRACE_SEQ__GOOD;
	if (s)
		tracefs_synth_free(s);
	part = bad ? NULL : strtok_r(seq.buffer, "'", &save);
	for (; part && !ret; part = strtok_r(NULL, "'", &save), quoted = !quoted)
		ret = quoted ? strlist_add(lines, part) : 0;
	trace_seq_destroy(&seq);
	return ret ?: lines->n == 3 ? 0 : -ENOENT;
}

/* Journals its removal first: the instance stays while a trigger with variables is there, a synthetic event
 * while it has any trigger. */
static int trigger_put(struct watcher *w, const char *system, const char *event, const char *line)
{
	char *file = str_printf(WATCH_DIR "/events/%s/%s/trigger", system, event);
	int ret = file ? undo_poke_until_end(w->undo, file, line, str_printf("!%s", line)) : -ENOMEM;

	if (ret)
		log_err(w->o->log, "cannot write the trigger '%s' of %s:%s: %s", line, system, event,
			errno_text(ret));
	free(file);
	return ret;
}

static int trigger_of_threads(struct watcher *w, const char *const event[3], const char *line,
			      const char *with, const struct watch_vcpu *v, size_t n)
{
	struct buf b = { 0 };
	int ret;

	buf_addstr(&b, line);
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%s%s == %d", i ? " || " : " if ", i ? "" : with, event[2], (int)v[i].pid);
	buf_addstr(&b, n && *with ? ")" : "");
	ret = buf_str(&b) ? trigger_put(w, event[0], event[1], buf_str(&b)) : -ENOMEM;
	buf_release(&b);
	return ret;
}

/* n 0: of all threads. */
static int pair_follow(struct watcher *w, const struct watch_pair *p, const struct watch_vcpu *v, size_t n)
{
	struct strlist lines = { 0 };
	int ret = pair_lines(w, p, &lines);

	ret = ret ?: trigger_of_threads(w, p->start, lines.v[1], p->with, v, n);
	ret = ret ?: trigger_of_threads(w, p->end, lines.v[2], "", v, n);
	strlist_release(&lines);
	return ret;
}

/* -ENOENT: this kernel lacks an event or a field of it. */
static int pair_make(struct watcher *w, const struct watch_pair *p)
{
	struct strlist lines = { 0 };
	char *fields, *event = NULL;
	int ret = pair_lines(w, p, &lines);

	if (ret)
		goto out;
	/* "s:NAME TYPE FIELD; ...", without s: where libtracefs sees no dynamic_events */
	fields = strchr(lines.v[0], ' ');
	event = str_printf("s:%s%s", p->name, fields ? fields : "");
	ret = event ? undo_make_event(w->undo, event) : -ENOMEM;
	if (ret)
		log_err(w->o->log, "cannot make the event '%s': %s", event ? event : "", errno_text(ret));
	for (size_t i = 0; i < ARRAY_SIZE(p->hists) && p->hists[i][0] && !ret; i++) {
		char line[80];

		snprintf(line, sizeof(line), "hist:keys=%s:vals=lat%s", p->hists[i][0], p->hists[i][1]);
		ret = trigger_put(w, "synthetic", p->name, line);
	}
	if (!ret && p->all)
		ret = pair_follow(w, p, NULL, 0);
out:
	free(event);
	strlist_release(&lines);
	return ret;
}

static int journal_restore(const struct watcher_opts *o, const char *journal, const char *what)
{
	struct undo *u;
	struct stat st;
	int ret;

	if (lstat(journal, &st) < 0)
		return 0;
	/* it is believed: no other user may have written it */
	if (file_distrust(&st))
		return log_fail(o->log, -EPERM, "the journal '%s' is not used: %s", journal,
				file_distrust(&st));
	ret = undo_load(&u, o->tracing_dir, AT_FDCWD, journal, o->log);
	if (ret)
		return ret;
	if (undo_end(u, journal))
		return -EIO;
	log_warn(o->log, "a killed watch had left %s", what);
	return 0;
}

int watcher_restore(const struct watcher_opts *o)
{
	char *hyp;
	int ret;

	if (!o->journal)
		return 0;
	ret = journal_restore(o, o->journal, "its histograms: removed");
	hyp = str_printf("%s" WATCH_HYP_JOURNAL, o->journal);
	ret = ret ?: hyp ? journal_restore(o, hyp, "the hypervisor's buffer in use: put back") : -ENOMEM;
	free(hyp);
	return ret;
}

/* Only these: tracefs_local_events() reads all of /proc/kallsyms, too. */
static int formats_read(struct watcher *w)
{
	static const char *const events[][2] = { { "sched", "sched_switch" },
						 { "sched", "sched_waking" },
						 { "kvm", "kvm_exit" },
						 { "kvm", "kvm_entry" } };
	int ret = 0;

	w->tep = tep_alloc();
	/* pairs_make() reports what is not watched without one */
	for (size_t i = 0; w->tep && i < ARRAY_SIZE(events) && (!ret || ret == -ENOENT); i++) {
		struct buf text = { 0 };
		char file[64];

		snprintf(file, sizeof(file), "events/%s/%s/format", events[i][0], events[i][1]);
		ret = read_file_at(undo_dirfd(w->undo), file, FORMAT_MAX, &text);
		if (!ret && tep_parse_event(w->tep, (char *)text.data, text.len, events[i][0]))
			ret = -ENOENT;
		buf_release(&text);
	}
	return !w->tep ? -ENOMEM : ret == -ENOENT ? 0 : ret;
}

static int instance_make(struct watcher *w)
{
	int ret = undo_mkdir(w->undo, WATCH_DIR);

	/* prepared by the administrator, or left by a kill whose journal is gone */
	if (ret == -EEXIST)
		ret = undo_lock(w->undo, WATCH_DIR);
	if (ret)
		return ret == -EBUSY
			       ? ret
			       : log_fail_errno(w->o->log, ret, "cannot make the instance '" WATCH_DIR "'");
	if (!file_there(undo_dirfd(w->undo), WATCH_DIR "/events/sched/sched_switch/hist"))
		return log_fail(
			w->o->log, -EOPNOTSUPP,
			"this kernel has no histograms of events: one with CONFIG_HIST_TRIGGERS=y and "
			"CONFIG_SYNTH_EVENTS=y is needed");
	/* nothing is recorded: no memory for it */
	return undo_write(w->undo, WATCH_DIR "/buffer_size_kb", "4");
}

static int pairs_make(struct watcher *w)
{
	struct tep_event *exit = tep_find_event_by_name(w->tep, "kvm", "kvm_exit");
	size_t n = 0;

	w->pairs[0] = &stolen_pair;
	w->pairs[1] = &wakeup_pair;
	w->pairs[2] = exit && tep_find_field(exit, "exit_reason") ? &exit_x86_pair : &exit_arm64_pair;
	for (size_t i = 0; i < ARRAY_SIZE(w->pairs); i++) {
		const struct watch_pair *p = w->pairs[i];
		size_t mark = undo_mark(w->undo);

		if (w->o->no_exits && p->all) {
			w->pairs[i] = NULL;
			continue;
		}
		if (!pair_make(w, p)) {
			n++;
			continue;
		}
		undo_to(w->undo, mark);
		w->pairs[i] = NULL;
		w->part = true;
		log_warn(w->o->log, "not watched: %s, for which the kernel lacks %s:%s or %s:%s%s", p->lost,
			 p->start[0], p->start[1], p->end[0], p->end[1],
			 p->all ? "; load KVM (modprobe kvm) and start again" : "");
	}
	return n ? 0 : log_fail(w->o->log, -EOPNOTSUPP, "nothing can be watched here; run: hyptrace doctor");
}

int vcpu_hists_open(struct watcher *w)
{
	char *kvm_amd = str_printf("%s/sys/module/kvm_amd", w->o->root);
	int ret = kvm_amd ? undo_open(&w->undo, w->o->tracing_dir, AT_FDCWD, w->o->journal, w->o->log)
			  : -ENOMEM;

	if (!ret) {
		w->amd = !access(kvm_amd, F_OK);
		tracefs_set_tracing_dir((char *)w->o->tracing_dir);
		ret = formats_read(w) ?: instance_make(w) ?: pairs_make(w);
		w->mark = undo_mark(w->undo);
	}
	free(kvm_amd);
	return ret;
}

int vcpu_hists_close(struct watcher *w)
{
	int failed = undo_end(w->undo, w->o->journal);

	if (w->tep)
		tep_free(w->tep);
	return failed ? -EIO : 0;
}

int vcpu_hists_follow(struct watcher *w)
{
	int ret = undo_to(w->undo, w->mark) ? -EIO : 0;

	for (size_t i = 0; i < ARRAY_SIZE(w->pairs); i++) {
		size_t n;

		for (size_t at = 0; w->pairs[i] && !w->pairs[i]->all && at < w->n_vcpus && !ret; at += n) {
			n = w->n_vcpus - at < FILTER_PIDS ? w->n_vcpus - at : FILTER_PIDS;
			ret = pair_follow(w, w->pairs[i], w->vcpus + at, n);
		}
	}
	return ret;
}

struct entries {
	struct watch_sums *sums;
	const struct watch_pair *pair;
};

static int entry_take(void *ctx, const struct hist_entry *e)
{
	const struct entries *of = ctx;
	enum watch_kind kind = !strcmp(e->key, "by")			 ? WATCH_BY
			       : *e->key				 ? WATCH_EXIT
			       : of->pair == &stolen_pair || e->filtered ? WATCH_STOLEN
									 : WATCH_WAKEUP;

	return watch_sums_add(of->sums, kind, e);
}

int vcpu_hists_read(struct watcher *w, struct hist_totals *totals)
{
	int ret = 0;

	*totals = (struct hist_totals){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(w->pairs) && !ret; i++) {
		struct entries to = { &w->sums, w->pairs[i] };
		struct buf text = { 0 };
		char file[80];

		if (!w->pairs[i])
			continue;
		snprintf(file, sizeof(file), WATCH_DIR "/events/synthetic/%s/hist", w->pairs[i]->name);
		ret = read_file_at(undo_dirfd(w->undo), file, HIST_TEXT_MAX, &text);
		if (ret)
			log_err(w->o->log, "cannot read '%s': %s", file, errno_text(ret));
		ret = ret ?: hist_text_read(text.data, text.len, entry_take, &to, totals);
		buf_release(&text);
	}
	return ret;
}

int vcpu_hists_empty(struct watcher *w)
{
	int ret = 0;

	watch_sums_emptied(&w->sums);
	w->emptied = w->dropped;
	for (size_t i = 0; i < ARRAY_SIZE(w->pairs); i++) {
		const struct watch_pair *p = w->pairs[i];

		for (size_t k = 0; p && k < ARRAY_SIZE(p->hists) && p->hists[k][0] && !ret; k++) {
			char file[80], line[80];

			snprintf(file, sizeof(file), WATCH_DIR "/events/synthetic/%s/trigger", p->name);
			snprintf(line, sizeof(line), "hist:keys=%s:vals=lat:clear%s", p->hists[k][0],
				 p->hists[k][1]);
			ret = undo_poke(w->undo, file, line);
		}
	}
	return ret;
}

/* By the event's own text: "vcpu 0 reason EPT_VIOLATION rip ..." */
static bool x86_reason(struct watcher *w, uint64_t code, char out[32])
{
	struct tep_event *event = tep_find_event_by_name(w->tep, "kvm", "kvm_exit");
	struct tep_format_field *reason = event ? tep_find_field(event, "exit_reason") : NULL,
				*isa = event ? tep_find_field(event, "isa") : NULL;
	uint8_t record[512] = { 0 };
	struct tep_record r = { .data = record, .size = sizeof(record) };
	uint32_t number = (uint32_t)code, vendor = w->amd ? 2 : 1;
	struct trace_seq seq;
	const char *name;
	uint16_t id;

	if (!reason || !isa || (size_t)reason->offset > sizeof(record) - 4 ||
	    (size_t)isa->offset > sizeof(record) - 4)
		return false;
	id = (uint16_t)event->id;
	memcpy(record, &id, sizeof(id));
	memcpy(record + isa->offset, &vendor, sizeof(vendor));
	memcpy(record + reason->offset, &number, sizeof(number));
	trace_seq_init(&seq);
	tep_print_event(w->tep, &seq, &r, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&seq);
	name = seq.state == TRACE_SEQ__GOOD ? strstr(seq.buffer, "reason ") : NULL;
	if (name)
		snprintf(out, 32, "%.*s", (int)strcspn(name + 7, " "), name + 7);
	trace_seq_destroy(&seq);
	return name && *out;
}

const char *watcher_label(struct watcher *w, const struct watch_sum *s, char out[32])
{
	const char *name = !strcmp(s->word, "ec") ? esr_ec_name((unsigned int)s->code)
						  : kvm_exit_arm_name((uint32_t)s->code);

	if (s->kind != WATCH_EXIT)
		return s->kind == WATCH_BY ? s->word : WATCH_OTHERS;
	if (!strcmp(s->word, "reason") && x86_reason(w, s->code, out))
		return out;
	if (name && strcmp(s->word, "reason") != 0)
		snprintf(out, 32, "%s", name);
	else
		snprintf(out, 32, "%s %#x", s->word, (unsigned int)s->code);
	return out;
}
