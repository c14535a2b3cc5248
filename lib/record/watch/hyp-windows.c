// SPDX-License-Identifier: LGPL-2.1-or-later
/* Samples the hypervisor's share by short windows of its buffer. */
#include "record/watch/watcher.h"
#include "base/clock.h"
#include "record/drain/remote.h"
#include "spans/visits.h"

#include <math.h>
#include <signal.h>
#include <sys/time.h>

#define WINDOW_KB	1024 /* of each CPU: at 2 million events a second they last for 30 ms */
#define WINDOW_TEXT_MAX (256u << 20)
#define READ_SIZE	65536 /* more than the kernel's trace_seq holds */
#define READ_US		10000

struct window {
	struct visit *cpus;
	unsigned int n_cpus, enter, leave;
	uint64_t from, to;
	double ns[HYP_REASONS];
	bool wrong; /* times are not those of the window, or events were lost */
};

const char *hyp_windows_reason(size_t i)
{
	return i < hyp_reasons_n ? hyp_reasons[i] : "(others)";
}

/* Counts the part of a visit that lies in the window. */
static void window_visit(struct window *w, const struct span *s)
{
	uint64_t from = s->end == SPAN_BEGUN ? w->from : s->from, to = s->end == SPAN_UNENDED ? w->to : s->to;

	from = from > w->from ? from : w->from;
	to = to < w->to ? to : w->to;
	if (s->end == SPAN_LOST)
		w->wrong = true;
	else if (to > from)
		w->ns[s->why] += (double)(to - from);
}

/* hyptext_feed's callback. */
static int window_record(void *window, const struct hyprecord *r)
{
	struct window *w = window;
	struct span_point p = { .ts = r->ts, .cpu = r->cpu };
	struct span done;
	uint16_t id;

	memcpy(&id, r->data, sizeof(id));
	if (r->cpu >= w->n_cpus || (id != w->enter && id != w->leave))
		return 0;
	/* plain nVHE: the times of a loaded vCPU are early */
	w->wrong |= r->lost || r->ts + UNIT_S < w->from || r->ts > w->to + UNIT_S;
	p.kind = id == w->enter ? POINT_HYP_ENTER : POINT_HYP_EXIT;
	p.reason = r->data[HYP_HEADER_SIZE] < hyp_reasons_n ? r->data[HYP_HEADER_SIZE] : hyp_reasons_n;
	if (visit_take(&w->cpus[r->cpu], &p, &done))
		window_visit(w, &done);
	return 0;
}

int hyp_window_add(struct hyp_windows *h, struct hypevents *events, const void *text, size_t len,
		   unsigned int n_cpus, uint64_t from, uint64_t to)
{
	const struct hypevent *enter = hypevents_by_name(events, "hyp_enter", 9),
			      *leave = hypevents_by_name(events, "hyp_exit", 8);
	struct window w = { .n_cpus = n_cpus, .from = from, .to = to };
	struct hyptext *t = hyptext_new(events);
	int ret = -ENOMEM;

	w.cpus = calloc(n_cpus + 1, sizeof(*w.cpus));
	if (t && w.cpus && enter && leave) {
		w.enter = enter->id;
		w.leave = leave->id;
		ret = hyptext_feed(t, text, len, window_record, &w);
	}
	for (unsigned int cpu = 0; cpu < n_cpus && !ret; cpu++) {
		struct span done;

		if (visit_finish(&w.cpus[cpu], &done))
			window_visit(&w, &done);
	}
	if (!ret && (w.wrong || hyptext_bad_lines(t) || to <= from)) {
		h->missed++;
	} else if (!ret) {
		for (size_t i = 0; i < HYP_REASONS; i++)
			h->shares[i][h->n % HYP_WINDOWS] = w.ns[i] / (double)(to - from) / n_cpus;
		h->n++;
	}
	free(w.cpus);
	hyptext_free(t);
	return ret;
}

static void on_alarm(int sig)
{
}

/*
 * All that the buffer holds, once it is off: a read of trace_pipe sleeps when it is empty, and only then ends
 * by a signal. The file trace would need none, but shows a part only.
 */
static int window_text(const struct remote *r, struct buf *text)
{
	const struct itimerval often = { { 0, READ_US }, { 0, READ_US } }, never = { 0 };
	const struct sigaction sa = { .sa_handler = on_alarm }; /* no SA_RESTART: reads return */
	int fd = openat(r->dirfd, "trace_pipe", O_RDONLY | O_CLOEXEC);
	struct sigaction old;
	ssize_t n = fd < 0 ? -1 : 1;
	int ret;

	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	while (n > 0 && text->len < WINDOW_TEXT_MAX) {
		void *room = buf_room(text, READ_SIZE);

		n = room ? read(fd, room, READ_SIZE) : 0;
		text->len += n > 0 ? (size_t)n : 0;
	}
	ret = n < 0 && errno != EINTR ? -errno : buf_status(text);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	fd_close(&fd);
	return ret;
}

int hyp_window_take(struct hyp_windows *h, const char *tracing_dir, const char *journal, uint64_t ns,
		    const struct log *log)
{
	struct event_plan events[] = { { .name = "hyp_enter" }, { .name = "hyp_exit" } };
	const struct buffer_plan b = {
		.name = REMOTE_HYP, .is_hyp = true, .events = events, .n_events = 2, .size_kb = WINDOW_KB
	};
	const struct timespec pause = { .tv_sec = (time_t)(ns / UNIT_S), .tv_nsec = (long)(ns % UNIT_S) };
	/* the first window says what is there */
	const struct log *first = h->n + h->missed ? NULL : log;
	uint64_t from, to;
	struct remote *r = NULL;
	struct undo *u = NULL;
	char on[8] = "";
	int ret = undo_open(&u, tracing_dir, AT_FDCWD, journal, first), failed;

	ret = ret ?: remote_open(&r, u, REMOTE_HYP, first);
	if (ret == -ENOENT)
		log_warn(log, "the hypervisor is not sampled: this machine shows no buffer of one; run: "
			      "hyptrace doctor");
	if (!ret && r->raw)
		ret = log_fail(log, -ENOENT, "the hypervisor is not sampled: its buffer gives pages only");
	if (!ret && !read_line_at(r->dirfd, on, sizeof(on), "tracing_on") && *on == '1')
		ret = -EBUSY;
	ret = ret ?: hypevents_number(&r->events, 1) ?: remote_setup(r, &b, false);
	if (!ret) { /* switched on for that time only */
		struct buf text = { 0 };
		int error;

		ret = r->source.ops->start(&r->source);
		from = boot_ns();
		if (!ret)
			nanosleep(&pause, NULL);
		to = boot_ns();
		error = r->source.ops->stop(&r->source);
		ret = ret ?: error ?: window_text(r, &text);
		ret = ret ?: hyp_window_add(h, &r->events, text.data, text.len, r->source.n_cpus, from, to);
		buf_release(&text);
	}
	remote_free(r);
	failed = undo_end(u, journal); /* without u the journal is another's */
	if (failed)
		return log_fail(log, -EIO,
				"the hypervisor's buffer is not as it was; run: hyptrace watch --restore");
	h->missed += ret == -EBUSY;
	return ret == -EBUSY ? 0 : ret;
}

bool hyp_windows_mean(const struct hyp_windows *h, size_t reason, double *mean, double *error)
{
	size_t n = h->n < HYP_WINDOWS ? h->n : HYP_WINDOWS;
	double sum = 0, squares = 0;

	if (n < 2)
		return false;
	for (size_t i = 0; i < n; i++)
		sum += h->shares[reason][i];
	*mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (h->shares[reason][i] - *mean) * (h->shares[reason][i] - *mean);
	*error = sqrt(squares / (double)(n - 1) / (double)n);
	return true;
}
