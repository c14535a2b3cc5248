// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads recordings for a page: states of vCPUs and tasks, visits to the hypervisor, losses, longest cases. */
#include "base/decode/esr.h"
#include "convert/view/view-priv.h"

/* A CPU of a buffer. */
struct view_stream {
	struct visit visit;
	uint32_t *rates; /* of its machine */
	bool hyp;	 /* it has the hypervisor's events */
	bool lost;	 /* events are missing since then */
	uint64_t since;
};

struct view_reader {
	const struct view_job *job;
	const struct reading *of;
	struct view_stream *streams;
	struct view view;
	struct view_cases *cases;
};

static uint32_t view_bound(uint64_t ns)
{
	return ns == UINT64_MAX ? VIEW_NO_BOUND : ns < VIEW_BOUND_MAX ? (uint32_t)ns : VIEW_BOUND_MAX;
}

static uint32_t view_task(struct view_reader *r, size_t input, int32_t pid, uint64_t ts)
{
	return view_word(&r->view, steps_comm(r->of->steps, input, pid, ts));
}

/* A vCPU that does not run its guest, or a guest's task that has no CPU. */
static void view_state_case(struct view_reader *r, const struct state_span *s)
{
	static const uint64_t waiting = 1 << STATE_PREEMPTED | 1 << STATE_WAKING | 1 << STATE_HALTED |
					1 << STATE_BLOCKED | 1 << STATE_RUNNABLE | 1 << STATE_SLEEPING;
	static const uint64_t others =
		1 << STATE_HYP | 1 << STATE_FIRMWARE | 1 << STATE_HOST | 1 << STATE_VMM;
	const struct state_owner *o = s->owner;
	bool guest = o->kind == STATE_OF_VCPU && o->guest != STATE_NO_INPUT;

	if (o->kind != STATE_OF_TASK && (waiting | others) >> s->state & 1)
		view_cases_add(r->cases, &(struct view_case){ .kind = s->state + (o->kind != STATE_OF_VCPU) *
											 VIEW_CASE_TASK,
							      .input = o->input,
							      .cpu = s->cpu,
							      .guest = guest ? o->guest : UINT32_MAX,
							      .vcpu = o->vcpu,
							      .pid = o->pid,
							      .waits = waiting >> s->state & 1,
							      .from = s->from,
							      .to = s->to });
}

static int view_state(void *reader, const struct state_span *s)
{
	struct view_reader *r = reader;
	struct view *v = &r->view;
	const struct state_owner *o = s->owner;
	bool vcpu = o->kind == STATE_OF_VCPU, exit = s->why == STEP_KVM_EXIT && s->class < 64;
	struct view_lane lane = {
		.kind = VIEW_CPU, .input = o->input, .number = s->cpu, .guest = UINT32_MAX
	};
	struct view_label label = { .coarse = s->coarse };

	view_state_case(r, s);
	/* a CPU's lane has what runs there; a task that sleeps or waits is on none */
	if (!vcpu && s->state != STATE_RUNNING && s->state != STATE_STOLEN) {
		if (o->kind != STATE_OF_GUEST_TASK ||
		    (s->state != STATE_RUNNABLE && s->state != STATE_SLEEPING))
			return 0;
		lane.kind = VIEW_TASK;
		lane.number = UINT32_MAX;
		lane.pid = o->pid;
	}
	label.state = view_word(v, state_name(s->state));
	label.by = view_word(v, s->by == STATE_UNKNOWN ? NULL : state_name(s->by));
	label.reason = view_word(v, states_reason(r->of->states, s));
	label.class = view_word(v, exit ? esr_ec_name((unsigned int)s->class) : NULL);
	if (vcpu) {
		lane.kind = VIEW_VCPU;
		lane.number = o->vcpu;
		lane.pid = o->pid;
		lane.name = view_word(v, o->guest_name);
		lane.guest = o->guest == STATE_NO_INPUT ? UINT32_MAX : o->guest;
	} else {
		label.pid = o->pid;
		label.task = view_task(r, o->input, o->pid, s->to);
	}
	if (s->other != STATE_NO_TASK && s->other_input != STATE_NO_INPUT) {
		label.other_pid = s->other;
		label.other = view_task(r, s->other_input, s->other, s->to);
	}
	return view_add(v, &lane, &label,
			(struct view_span){ .from = s->from,
					    .to = s->to,
					    .from_bound = view_bound(s->from_bound),
					    .to_bound = view_bound(s->to_bound),
					    .cpu = vcpu ? s->cpu : UINT32_MAX });
}

/* A span that a program marks, in the lane of those with as many around them. */
static int view_mark(void *reader, const struct markers_span *s)
{
	struct view_reader *r = reader;
	struct view *v = &r->view;
	const struct view_lane lane = {
		.kind = VIEW_MARK,
		.input = (uint32_t)s->input,
		.number = (uint32_t)s->n - 1,
		.guest = UINT32_MAX,
		.pid = s->client ? 0 : s->pid,
		.name = s->client ? view_word_of(v, s->client) : 0,
	};
	const struct view_label label = { .state = view_word(v, s->names[s->n - 1]),
					  .task = s->client ? 0 : view_task(r, s->input, s->pid, s->to),
					  .pid = lane.pid };

	return s->to <= s->from
		       ? 0
		       : view_add(v, &lane, &label,
				  (struct view_span){ .from = s->from, .to = s->to, .cpu = UINT32_MAX });
}

static int view_visit(struct view_reader *r, const struct span *s)
{
	struct view_lane lane = {
		.kind = VIEW_HYP, .input = s->machine, .number = s->cpu, .guest = UINT32_MAX
	};
	const char *why = steps_why(r->of->steps, &r->of->in->v[s->machine], s->machine, s->why);
	struct view_label label = { .state = view_word(&r->view, "hypervisor"),
				    .reason = view_word(&r->view, why),
				    .task = view_task(r, s->machine, s->pid, s->to),
				    .pid = s->pid > 0 ? s->pid : 0 };

	if (s->end != SPAN_PAIRED || s->to <= s->from)
		return 0;
	view_cases_add(r->cases, &(struct view_case){ .kind = VIEW_CASE_VISIT,
						      .input = s->machine,
						      .cpu = s->cpu,
						      .guest = UINT32_MAX,
						      .from = s->from,
						      .to = s->to });
	return view_add(&r->view, &lane, &label,
			(struct view_span){ .from = s->from, .to = s->to, .cpu = UINT32_MAX });
}

static int view_after(void *reader, struct pass_run *run)
{
	struct view_reader *r = reader;
	uint64_t bucket = 0, begin = UINT64_MAX, end = 0;
	struct view *v = &r->view;
	int ret = 0;

	v->records += run->records->n;
	for (const struct merge_record *m = run->records->v; m < run->records->v + run->records->n; m++) {
		if (m->ts < begin || m->ts >= end) {
			bucket = view_bucket(v, m->ts);
			begin = v->from + bucket * v->width;
			end = begin + v->width;
		}
		if (m->data)
			r->streams[m->stream].rates[bucket]++;
	}
	for (const struct step *s = run->steps; s < run->steps + run->n_steps && !ret; s++) {
		struct view_stream *stream = &r->streams[s->stream];
		struct span done;

		if (s->kind == STEP_LOST && v->n_losses < VIEW_LOSSES_MAX) {
			const struct reader_info *info = reader_info(r->of->in->v[s->input].reader);
			const struct view_loss loss = { .from = stream->lost ? stream->since : v->from,
							.to = s->ts,
							.events = s->a,
							.input = s->input,
							.buffer = view_word(v, info->buffers[s->buffer].name),
							.cpu = s->cpu,
							.stream = s->stream };

			ret = array_push(&v->losses, &v->n_losses, &loss, sizeof(loss));
		}
		if (s->kind == STEP_LOST || s->kind == STEP_GAP) {
			stream->lost = s->kind == STEP_GAP;
			stream->since = s->ts;
		}
		stream->hyp |= s->kind == STEP_HYP_ENTER || s->kind == STEP_HYP_EXIT;
		if (!ret && step_visit(&stream->visit, s, 0, &done))
			ret = view_visit(r, &done);
	}
	return ret ?: view_cases_fill(r->cases, false);
}

/* The time that the page shows: that of the records which are read. */
static int view_extent(const struct view_job *job, uint64_t *from, uint64_t *to)
{
	const struct inputs *in = job->reading->in;
	uint64_t met = 0;
	int ret = part_extent(in->v, in->n, 0, 0, from, to, &met);

	merge_damage_join(job->damaged, met);
	if (ret == -ENODATA) /* the page says what is missing */
		*from = *to = 0;
	if (ret || !in->to)
		return ret == -ENODATA ? 0 : ret;
	*from = in->from > *from ? in->from : *from;
	*to = in->to < *to ? in->to : *to;
	return 0;
}

int view_join(struct view_reader **out, const struct view_job *job)
{
	struct reading *of = job->reading;
	const struct merge *m = of->timeline->merge;
	struct view_reader *r = *out = calloc(1, sizeof(*r));
	uint64_t from, to;
	int ret = r ? view_extent(job, &from, &to) : -ENOMEM;

	if (ret)
		return ret;
	to = to > from ? to : from + 1;
	*r = (struct view_reader){ .job = job,
				   .of = of,
				   .view = { .full = job->full, .from = from, .to = to } };
	r->view.width = (to - from) / VIEW_BUCKETS + 1;
	view_word_of(&r->view, ""); /* its number is 0 */
	r->streams = calloc(merge_streams(m) + 1, sizeof(*r->streams));
	r->view.rates = calloc((of->in->n + 1) * VIEW_BUCKETS, sizeof(*r->view.rates));
	if (!r->streams || !r->view.rates)
		return -ENOMEM;
	for (size_t i = 0; i < merge_streams(m); i++)
		r->streams[i].rates = r->view.rates + merge_stream_at(m, i)->input * VIEW_BUCKETS;
	ret = reading_markers(of);
	ret = ret ?: reading_states(of, STATES_VCPUS | STATES_TASKS | STATES_GUEST_TASKS, view_state, r);
	ret = ret ?: view_cases_open(&r->cases, job);
	if (ret)
		return ret;
	markers_listen(of->markers, view_mark, r);
	reading_add(of, (struct pass_part){ .ctx = r,
					    .steps = STEP_SET(STEP_HYP_ENTER) | STEP_SET(STEP_HYP_EXIT) |
						     STEP_SET(STEP_HYP_OTHER),
					    .after = view_after });
	return 0;
}

int view_data(struct view_reader *r, struct buf *data)
{
	struct buf plain = { 0 };
	int ret;

	r->view.left_out = states_left_out(r->of->states);
	for (size_t i = 0; i < r->view.n_losses; i++)
		r->view.losses[i].hyp = r->streams[r->view.losses[i].stream].hyp;
	ret = view_cases_fill(r->cases, true) ?: view_cases_texts(r->cases) ?: view_finish(&r->view);
	ret = ret ?: view_columns_and_head(&r->view, r->job, r->cases, &plain) ?: view_pack(&plain, data);
	buf_release(&plain);
	return ret;
}

void view_leave(struct view_reader *r)
{
	if (!r)
		return;
	view_cases_close(r->cases);
	free(r->streams);
	view_release(&r->view);
	free(r);
}
