// SPDX-License-Identifier: LGPL-2.1-or-later
/* Recordings as CTF traces: a source of ours in a graph of babeltrace2, whose sink.ctf.fs writes them. */
#include "base/outfile.h"
#include "convert/export/ctf-priv.h"

#define PACKET_EVENTS 4096

static int ctf_push(struct ctf_stream *s, const bt_message *m)
{
	if (!m)
		return -ENOMEM;
	s->queue[s->queued++] = m;
	return 0;
}

static int ctf_packet_begin(struct ctf_stream *s, bt_self_message_iterator *self, uint64_t ts)
{
	bt_field *context;

	s->packet = bt_packet_create(s->stream);
	if (!s->packet)
		return -ENOMEM;
	context = bt_packet_borrow_context_field(s->packet);
	bt_field_integer_unsigned_set_value(bt_field_structure_borrow_member_field_by_index(context, 0),
					    s->at->cpu);
	s->any = true;
	s->in_packet = 0;
	return ctf_push(s,
			bt_message_packet_beginning_create_with_default_clock_snapshot(self, s->packet, ts));
}

static int ctf_packet_end(struct ctf_stream *s, bt_self_message_iterator *self, uint64_t ts)
{
	int ret = ctf_push(s, bt_message_packet_end_create_with_default_clock_snapshot(self, s->packet, ts));

	bt_packet_put_ref(s->packet);
	s->packet = NULL;
	return ret;
}

/*
 * sink.ctf.fs wants lost events between two packets, from the end of the one to the end of the other: the
 * first record after a loss is a packet of its own.
 */
static int ctf_lost(struct ctf_stream *s, bt_self_message_iterator *self, uint64_t to, int64_t n)
{
	bt_message *m =
		bt_message_discarded_events_create_with_default_clock_snapshots(self, s->stream, s->last, to);

	if (m && n > 0)
		bt_message_discarded_events_set_count(m, (uint64_t)n);
	return ctf_push(s, m);
}

static int ctf_event_message(struct ctf_stream *s, bt_self_message_iterator *self,
			     const struct merge_record *m, uint64_t ts)
{
	struct ctf *c = s->of;
	const struct ctf_event *e = NULL, *raw = NULL;
	unsigned int id;
	const struct known_event *k = timeline_event(c->job->timeline, m, &id);
	bt_message *message;
	bt_event *event;

	c->job->records++;
	c->job->unknown += !k;
	if (k) {
		e = ctf_event_of(c, s->at, id, k);
		if (!e)
			return -ENOMEM;
	}
	if (!e || !ctf_event_fits(e, m)) {
		raw = ctf_event_raw(c, s->at);
		if (!raw)
			return -ENOMEM;
		c->raw += e != NULL;
	}
	message = bt_message_event_create_with_packet_and_default_clock_snapshot(
		self, raw ? raw->class : e->class, s->packet, ts);
	if (ctf_push(s, message))
		return -ENOMEM;
	s->in_packet++;
	event = bt_message_event_borrow_event(message);
	return raw ? ctf_event_fill_raw(m, event) : ctf_event_fill(e, m, timeline_pid(&k->pid, m), event);
}

/* Puts a loss before a record: no packet is open then. */
static int ctf_gap(struct ctf_stream *s, bt_self_message_iterator *self, const struct merge_record *m,
		   uint64_t ts)
{
	int ret = 0;

	if (s->packet)
		return ctf_packet_end(s, self, s->last) ?: ctf_lost(s, self, ts, m->missed);
	if (!s->any) { /* lost before the first: since when is not known */
		s->last = ts;
		ret = ctf_packet_begin(s, self, ts) ?: ctf_packet_end(s, self, ts);
	}
	return ret ?: ctf_lost(s, self, ts, m->missed);
}

static int ctf_record(struct ctf_stream *s, bt_self_message_iterator *self, const struct merge_record *m)
{
	bool back = s->any && m->ts<s->last, beyond = m->ts> INT64_MAX;
	uint64_t ts = back ? s->last : beyond ? INT64_MAX : m->ts; /* babeltrace2 takes no more ns */
	int ret = 0;

	s->of->back += back || beyond;
	if (m->missed)
		ret = ctf_gap(s, self, m, ts);
	else if (s->packet && s->in_packet == PACKET_EVENTS)
		ret = ctf_packet_end(s, self, s->last);
	if (!ret && !s->packet)
		ret = ctf_packet_begin(s, self, ts);
	if (!ret && m->len)
		ret = ctf_event_message(s, self, m, ts);
	s->last = ts;
	if (!ret && m->missed)
		ret = ctf_packet_end(s, self, ts);
	return ret;
}

/* Some more in the queue; at the end of the stream there is nothing more. */
static int ctf_more(struct ctf_stream *s, bt_self_message_iterator *self)
{
	int ret = 1;

	s->queued = s->given = 0;
	if (s->over)
		return 0;
	if (!s->begun) {
		s->begun = true;
		return ctf_push(s, bt_message_stream_beginning_create(self, s->stream));
	}
	if (s->next == s->run.n) {
		s->next = 0;
		ret = merge_take_stream(s->of->job->timeline->merge, s->index, &s->run);
	}
	if (ret)
		return ret < 0 ? ret : ctf_record(s, self, &s->run.v[s->next++]);
	s->over = true;
	return (s->packet ? ctf_packet_end(s, self, s->last) : 0)
		       ?: ctf_push(s, bt_message_stream_end_create(self, s->stream));
}

/* Gives the next messages of an iterator. */
static bt_message_iterator_class_next_method_status ctf_stream_next(bt_self_message_iterator *self,
								    bt_message_array_const messages,
								    uint64_t capacity, uint64_t *count)
{
	struct ctf_stream *s = bt_self_message_iterator_get_data(self);

	*count = 0;
	while (*count < capacity) {
		int ret = s->given == s->queued ? ctf_more(s, self) : 0;

		if (ret) {
			for (uint64_t n = *count; n;)
				bt_message_put_ref(messages[--n]);
			s->of->ret = ret;
			return ret == -ENOMEM ? BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_MEMORY_ERROR
					      : BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_ERROR;
		}
		if (s->given == s->queued)
			break;
		messages[(*count)++] = s->queue[s->given++];
	}
	return *count ? BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK
		      : BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_END;
}

static bt_component_class_initialize_method_status
ctf_source_init(bt_self_component_source *self, bt_self_component_source_configuration *config,
		const bt_value *params, void *data)
{
	struct ctf *c = data;

	c->streams = calloc(c->n_streams + 1, sizeof(*c->streams));
	c->ret = c->streams ? ctf_classes_open(c, bt_self_component_source_as_self_component(self)) : -ENOMEM;
	for (size_t i = 0; i < c->n_streams && !c->ret; i++) {
		struct ctf_stream *s = &c->streams[i];
		char name[32];

		s->of = c;
		s->index = i;
		s->at = merge_stream_at(c->job->timeline->merge, i);
		snprintf(name, sizeof(name), "out%zu", i);
		if (ctf_stream_open(s) || bt_self_component_source_add_output_port(self, name, s, NULL))
			c->ret = -ENOMEM;
	}
	return c->ret ? BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR
		      : BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static bt_message_iterator_class_initialize_method_status
ctf_iterator_init(bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
		  bt_self_component_port_output *port)
{
	bt_self_message_iterator_set_data(
		self,
		bt_self_component_port_get_data(bt_self_component_port_output_as_self_component_port(port)));
	return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

/* Not from directories of a user's or of the environment's: code is loaded. */
static const bt_plugin *ctf_plugin(const char *name, const struct log *log)
{
	const bt_plugin *plugin = NULL;

	if (bt_plugin_find(name, BT_FALSE, BT_FALSE, BT_TRUE, BT_TRUE, BT_FALSE, &plugin))
		log_err(log, "babeltrace2's plugin %s is not installed", name);
	return plugin;
}

struct ctf_graph {
	bt_graph *graph;
	const bt_plugin *ctf, *utils;
	bt_component_class_source *source_class;
	const bt_component_source *source;
	const bt_component_filter *muxer;
	const bt_component_sink *sink;
	bt_value *params;
};

static int ctf_graph_open(struct ctf *c, struct ctf_graph *g, const char *dir)
{
	bt_message_iterator_class *iterator;
	const bt_component_class_filter *muxer;
	const bt_component_class_sink *sink;

	g->params = bt_value_map_create();
	if (!g->params || bt_value_map_insert_string_entry(g->params, "path", dir) ||
	    bt_value_map_insert_bool_entry(g->params, "quiet", BT_TRUE) ||
	    /* 2.1 would write CTF 2, which its graphs of 2.0's kind cannot; 2.0 knows no such parameter */
	    (bt_version_get_minor() && bt_value_map_insert_string_entry(g->params, "ctf-version", "1")))
		return -ENOMEM;
	g->ctf = ctf_plugin("ctf", c->log);
	g->utils = g->ctf ? ctf_plugin("utils", c->log) : NULL;
	if (!g->utils)
		return -ENOENT;
	iterator = bt_message_iterator_class_create(ctf_stream_next);
	if (iterator && !bt_message_iterator_class_set_initialize_method(iterator, ctf_iterator_init))
		g->source_class = bt_component_class_source_create("hyptrace", iterator);
	if (g->source_class &&
	    bt_component_class_source_set_initialize_method(g->source_class, ctf_source_init))
		BT_COMPONENT_CLASS_SOURCE_PUT_REF_AND_RESET(g->source_class);
	bt_message_iterator_class_put_ref(iterator);
	g->graph = g->source_class ? bt_graph_create(0) : NULL;
	if (!g->graph)
		return -ENOMEM;
	muxer = bt_plugin_borrow_filter_component_class_by_name_const(g->utils, "muxer");
	sink = bt_plugin_borrow_sink_component_class_by_name_const(g->ctf, "fs");
	if (!muxer || !sink ||
	    bt_graph_add_source_component_with_initialize_method_data(
		    g->graph, g->source_class, "hyptrace", NULL, c, BT_LOGGING_LEVEL_NONE, &g->source) ||
	    bt_graph_add_filter_component(g->graph, muxer, "muxer", NULL, BT_LOGGING_LEVEL_NONE, &g->muxer) ||
	    bt_graph_add_sink_component(g->graph, sink, "sink", g->params, BT_LOGGING_LEVEL_NONE, &g->sink))
		return c->ret ? c->ret : -EIO;
	/* the muxer has a new port whenever one is taken */
	for (size_t i = 0; i < c->n_streams; i++)
		if (bt_graph_connect_ports(
			    g->graph, bt_component_source_borrow_output_port_by_index_const(g->source, i),
			    bt_component_filter_borrow_input_port_by_index_const(g->muxer, i), NULL))
			return -ENOMEM;
	return bt_graph_connect_ports(g->graph,
				      bt_component_filter_borrow_output_port_by_index_const(g->muxer, 0),
				      bt_component_sink_borrow_input_port_by_index_const(g->sink, 0), NULL)
		       ? -ENOMEM
		       : 0;
}

static int ctf_graph_run(struct ctf *c, const struct ctf_graph *g)
{
	bt_graph_run_once_status status;

	do {
		int ret = export_tell(c->job);

		if (ret)
			return ret;
		status = bt_graph_run_once(g->graph);
	} while (status == BT_GRAPH_RUN_ONCE_STATUS_OK || status == BT_GRAPH_RUN_ONCE_STATUS_AGAIN);
	if (status == BT_GRAPH_RUN_ONCE_STATUS_END)
		return 0;
	return c->ret ? c->ret : status == BT_GRAPH_RUN_ONCE_STATUS_MEMORY_ERROR ? -ENOMEM : -EIO;
}

int export_ctf(struct export_job *job, const char *dir, const struct log *log)
{
	struct ctf c = { .job = job, .log = log, .n_streams = merge_streams(job->timeline->merge) };
	struct ctf_graph g = { 0 };
	const bt_error *error;
	struct outfile out;
	char path[32];
	int ret = outdir_open(&out, dir, log);

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", out.fd);
	ret = ctf_graph_open(&c, &g, path) ?: ctf_graph_run(&c, &g);
	error = bt_current_thread_take_error();
	/* the innermost cause has the reason; the others the place */
	if (error && bt_error_get_cause_count(error))
		log_err(log, "babeltrace2: %s",
			bt_error_cause_get_message(bt_error_borrow_cause_by_index(error, 0)));
	if (error)
		bt_error_release(error);
	for (size_t i = 0; c.streams && i < c.n_streams; i++) {
		struct ctf_stream *s = &c.streams[i];

		for (; s->given < s->queued; s->given++)
			bt_message_put_ref(s->queue[s->given]);
		merge_run_release(&s->run);
		bt_packet_put_ref(s->packet);
		bt_stream_put_ref(s->stream);
	}
	free(c.streams);
	ctf_classes_release(&c);
	bt_graph_put_ref(g.graph);
	bt_component_class_source_put_ref(g.source_class);
	bt_plugin_put_ref(g.utils);
	bt_plugin_put_ref(g.ctf);
	bt_value_put_ref(g.params);
	arena_release(&c.kept);
	if (c.back)
		log_warn(log, "%llu records lie before the one before them: they have its time",
			 (unsigned long long)c.back);
	if (c.raw)
		log_warn(log, "%llu records end before one of their fields: they are written as bytes",
			 (unsigned long long)c.raw);
	return outdir_close(&out, ret);
}
