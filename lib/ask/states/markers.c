// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adds up the spans that programs mark in trace_marker, or guests in rings. */
#include "ask/states/markers.h"

#define NAMES_MAX 4096

/* A mark of a run; its name lies in the record, or is the description's. Or a loss. */
struct marker {
	struct mark mark;
	const char *name, *guest;
	uint32_t len, guest_len, stream;
	enum {
		MARKER_MARK,
		MISSING_ON,
		MISSING_TO,
		MISSING_LAST
	} what; /* events, from here on, or up to here */
	uint8_t kind;
};

/* False: it begins or ends nothing. */
static bool marker_of_guest(const struct mark_desc *desc, const struct mark_event *e, struct marker *to)
{
	int way = 0;

	to->kind = MARKERS_GUEST;
	to->mark.id = MARK_NO_ID;
	to->name = mark_event_name(desc, e);
	to->len = to->name ? (uint32_t)mark_span_name(to->name, &way) : 0;
	to->mark.begins = way > 0;
	return way;
}

/* False: the record is no mark. A line has no client. */
static bool marker_of(const struct markers *m, const struct step *s, const struct merge_record *r,
		      struct marker *to)
{
	struct mark_event event;
	struct mark_text text;
	const uint8_t *line;
	size_t n;

	to->mark = (struct mark){ .ts = s->ts,
				  .source = (uint32_t)s->pid,
				  .machine = s->input,
				  .buffer = gaps_buffer(&m->gaps, s->stream),
				  .cpu = s->cpu,
				  .pid = s->pid };
	if (s->kind != STEP_PRINT)
		return false;
	if (s->a == STEP_UNKNOWN) {
		if (field_load_bytes(&m->texts[s->input], r->data, r->len, &line, &n) != 1)
			return false;
		switch (mark_line((const char *)line, n, &text)) {
		case MARK_CROSVM:
			to->kind = MARKERS_CROSVM;
			to->mark.id = text.crosvm.id;
			to->mark.begins = text.crosvm.enter;
			to->name = text.crosvm.name.p;
			to->len = (uint32_t)text.crosvm.name.len;
			return true;
		case MARK_GUEST:
			return marker_of_guest(m->desc, &text.event, to);
		default:
			return false;
		}
	}
	if (!m->desc || !marks_load(&m->fields[s->input], r->data, r->len, &event, &to->guest, &n))
		return false;
	to->mark.source = mark_client_source(event.client, to->guest, n);
	to->guest_len = (uint32_t)n;
	return marker_of_guest(m->desc, &event, to);
}

static int markers_work(void *ctx, struct pass_run *run)
{
	const struct markers *m = ctx;

	for (size_t i = 0; i < run->n_steps; i++) {
		const struct step *s = &run->steps[i];
		struct marker new = { .stream = s->stream };

		if (s->kind == STEP_LOST)
			new.what = s->b ? MISSING_LAST : MISSING_TO;
		else if (s->kind == STEP_GAP)
			new.what = MISSING_ON;
		else if (!marker_of(m, s, &run->records->v[s->at], &new))
			continue;
		buf_add(run->out, &new, sizeof(new));
	}
	return buf_status(run->out);
}

static bool marker_row_same(const void *rows, size_t i, const void *wanted)
{
	const struct markers_row *r = (const struct markers_row *)rows + i;
	const struct marker *new = wanted;

	return r->input == new->mark.machine && r->kind == new->kind &&
	       !strncmp(r->name, new->name, new->len) && !r->name[new->len];
}

/*
 * With those that are open around it, from the outermost on; to the innermost its time is not its own.
 * cpu: of its end.
 */
static int marker_give(struct markers *m, size_t source, const struct span *v, uint32_t cpu)
{
	const char *client = m->clients[source].name;
	struct mark_source *of = &m->marks.v[source];
	uint64_t ns = v->to - v->from;
	struct markers_span span = { .input = v->machine,
				     .pid = v->pid,
				     .client = *client ? client : NULL,
				     .from = v->from,
				     .to = v->to,
				     .cpu = cpu,
				     .own = ns > v->detail ? ns - v->detail : 0 };
	struct mark *around[MARKS_OPEN] = { 0 };

	for (unsigned int i = 0; i < MARKS_OPEN; i++) {
		struct mark *l = &of->open[i];
		size_t at = span.n;

		if (!(of->is_open & 1u << i) || l->ts > v->from)
			continue;
		for (; at && around[at - 1]->ts > l->ts; at--)
			around[at] = around[at - 1];
		around[at] = l;
		span.n++;
	}
	if (span.n)
		around[span.n - 1]->tag += ns;
	for (size_t i = 0; i < span.n; i++)
		span.names[i] = m->rows[around[i]->name - 1].name;
	span.names[span.n++] = m->rows[v->why - 1].name;
	return m->ended(m->ctx, &span);
}

static int marker_mark(struct markers *m, const struct marker *new)
{
	struct marker_client client = { "" };
	struct mark mark = new->mark;
	struct mark_place at;
	struct span done;
	struct markers_row row = { .input = mark.machine, .kind = new->kind };
	uint32_t hash = map_hash(mark_name(new->name, new->len) + row.input * 2 + row.kind);
	size_t i = map_find(&m->by_name, hash, marker_row_same, m->rows, new);
	int ret;

	if (i == MAP_NONE && m->n_rows == NAMES_MAX) {
		m->cut.others++;
		return 0;
	}
	if (i == MAP_NONE) {
		i = m->n_rows;
		row.name = strndup(new->name, new->len);
		if (!row.name || map_push(&m->by_name, hash, &m->rows, &m->n_rows, &row, sizeof(row))) {
			free(row.name);
			return -ENOMEM;
		}
	}
	mark.name = i + 1;
	if (mark.id == MARK_NO_ID && gaps_any(&m->gaps, new->stream)) { /* nothing is certain meanwhile */
		*(mark.begins ? &m->cut.begins : &m->cut.ends) += 1;
		return 0;
	}
	ret = marks_take(&m->marks, &mark, &at, &done);
	if (ret < 0)
		return ret;
	if (m->marks.n > m->n_clients) { /* a new source */
		if (new->guest)
			snprintf(client.name, sizeof(client.name), "%.*s client %u", (int)new->guest_len,
				 new->guest, (unsigned int)new->mark.source);
		if (array_push(&m->clients, &m->n_clients, &client, sizeof(client)))
			return -ENOMEM;
	}
	m->cut.others += at.source == MARKS_NO_SOURCE;
	if (!ret)
		return 0;
	if (done.end != SPAN_PAIRED) {
		*(done.end == SPAN_BEGUN ? &m->cut.ends : &m->cut.begins) += 1;
		return 0;
	}
	ret = histogram_add(&m->rows[done.why - 1].time, done.to - done.from);
	return ret || !m->ended ? ret : marker_give(m, at.source, &done, mark.cpu);
}

static int markers_after(void *ctx, struct pass_run *run)
{
	const struct marker *new = (const void *)run->out->data;
	struct markers *m = ctx;
	int ret = 0;

	for (size_t n = run->out->len / sizeof(*new); n && !ret; n--, new ++) {
		struct mark_place at = { 0 };
		struct span lost;

		if (new->what == MARKER_MARK) {
			ret = marker_mark(m, new);
			continue;
		}
		while (marks_lost(&m->marks, gaps_buffer(&m->gaps, new->stream), &at, &lost))
			m->cut.begins++;
		if (new->what == MISSING_ON)
			gaps_start(&m->gaps, new->stream);
		else if (new->what == MISSING_TO)
			gaps_stop(&m->gaps, new->stream);
	}
	return ret;
}

struct pass_part markers_part(struct markers *m)
{
	return (struct pass_part){
		.ctx = m, .steps = STEP_SET(STEP_PRINT), .work = markers_work, .after = markers_after
	};
}

int markers_open(struct markers **out, const struct inputs *in, const struct timeline *t,
		 const struct mark_desc *desc)
{
	struct markers *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->desc = desc;
	m->texts = calloc(in->n + 1, sizeof(*m->texts));
	m->fields = calloc(in->n + 1, sizeof(*m->fields));
	if (!m->texts || !m->fields || gaps_open(&m->gaps, t)) {
		markers_close(m);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->n; i++) {
		struct tep_event *print = tep_find_event_by_name(in->v[i].tep, "ftrace", "print");
		struct tep_event *mark = tep_find_event_by_name(in->v[i].tep, MARK_SYSTEM, MARK_EVENT);

		m->texts[i] = field_load(print ? tep_find_field(print, "buf") : NULL);
		if (mark)
			m->fields[i] = marks_fields(mark);
	}
	*out = m;
	return 0;
}

void markers_close(struct markers *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_rows; i++) {
		histogram_release(&m->rows[i].time);
		free(m->rows[i].name);
	}
	free(m->rows);
	free(m->clients);
	gaps_release(&m->gaps);
	free(m->texts);
	free(m->fields);
	marks_release(&m->marks);
	map_release(&m->by_name);
	free(m);
}

void markers_listen(struct markers *m, markers_listener *ended, void *ctx)
{
	m->ended = ended;
	m->ctx = ctx;
}

void markers_finish(struct markers *m)
{
	struct mark_place at = { 0 };
	struct span open;

	while (marks_finish(&m->marks, &at, &open))
		m->cut.begins++;
}
