// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Recordings as CTF traces: for each CPU of each buffer a graph of babeltrace2, of a source of ours and
 * sink.ctf.fs, which writes a trace of that one stream. The traces of a machine's streams become one.
 */
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/outfile.h"
#include "base/workers.h"
#include "convert/export/ctf-priv.h"

#define PACKET_EVENTS 4096
#define METADATA_MAX  (16u << 20) /* bytes */

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

static int ctf_event_message(struct ctf *c, bt_self_message_iterator *self, const struct merge_record *m,
			     uint64_t ts)
{
	struct ctf_stream *s = &c->stream;
	const struct ctf_event *e = NULL, *raw = NULL;
	unsigned int id;
	const struct known_event *k = timeline_event(c->timeline, m, &id);
	bt_message *message;
	bt_event *event;

	c->counts.records++;
	c->counts.unknown += !k;
	if (k) {
		e = ctf_event_of(c, s->at, id, k);
		if (!e)
			return -ENOMEM;
	}
	if (!e || !ctf_event_fits(e, m)) {
		raw = ctf_event_raw(c, s->at);
		if (!raw)
			return -ENOMEM;
		c->counts.raw += e != NULL;
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

static int ctf_record(struct ctf *c, bt_self_message_iterator *self, const struct merge_record *m)
{
	struct ctf_stream *s = &c->stream;
	bool back = s->any && m->ts<s->last, beyond = m->ts> INT64_MAX;
	uint64_t ts = back ? s->last : beyond ? INT64_MAX : m->ts; /* babeltrace2 takes no more ns */
	int ret = 0;

	c->counts.back += back || beyond;
	if (m->missed)
		ret = ctf_gap(s, self, m, ts);
	else if (s->packet && s->in_packet == PACKET_EVENTS)
		ret = ctf_packet_end(s, self, s->last);
	if (!ret && !s->packet)
		ret = ctf_packet_begin(s, self, ts);
	if (!ret && m->len)
		ret = ctf_event_message(c, self, m, ts);
	s->last = ts;
	if (!ret && m->missed)
		ret = ctf_packet_end(s, self, ts);
	return ret;
}

/* Some more in the queue; at the end of the stream there is nothing more. */
static int ctf_more(struct ctf *c, bt_self_message_iterator *self)
{
	struct ctf_stream *s = &c->stream;
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
		ret = merge_take_stream(c->timeline->merge, s->index, &s->run);
	}
	if (ret)
		return ret < 0 ? ret : ctf_record(c, self, &s->run.v[s->next++]);
	s->over = true;
	return (s->packet ? ctf_packet_end(s, self, s->last) : 0)
		       ?: ctf_push(s, bt_message_stream_end_create(self, s->stream));
}

/* Gives the next messages. */
static bt_message_iterator_class_next_method_status ctf_stream_next(bt_self_message_iterator *self,
								    bt_message_array_const messages,
								    uint64_t capacity, uint64_t *count)
{
	struct ctf *c = bt_self_component_get_data(bt_self_message_iterator_borrow_component(self));
	struct ctf_stream *s = &c->stream;

	*count = 0;
	while (*count < capacity) {
		int ret = s->given == s->queued ? ctf_more(c, self) : 0;

		if (ret) {
			for (uint64_t n = *count; n;)
				bt_message_put_ref(messages[--n]);
			c->ret = ret;
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
	bt_self_component *component = bt_self_component_source_as_self_component(self);
	struct ctf *c = data;

	bt_self_component_set_data(component, c);
	c->ret = ctf_classes_open(c, component) ?: ctf_stream_open(c);
	if (!c->ret && bt_self_component_source_add_output_port(self, "out", NULL, NULL))
		c->ret = -ENOMEM;
	return c->ret ? BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR
		      : BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

/* An export, for all its threads. */
struct ctf_export {
	struct export_job *job;
	const struct log *log;
	struct outfile out;
	const bt_plugin **plugins; /* of each thread: babeltrace2 counts what refers to them without a lock */
	size_t n_streams;
	struct ctf_turn {
		uint64_t bytes;
		size_t stream;
	} * turns; /* taken from the end, the largest: a core that got it last would end long after the others
		    */
	atomic_size_t next;
	atomic_int ret;
	pthread_mutex_t lock; /* of job and counts */
	struct ctf_counts counts;
};

struct ctf_graph {
	bt_graph *graph;
	bt_component_class_source *source_class;
	const bt_component_source *source;
	const bt_component_sink *sink;
	bt_value *params;
};

static int ctf_graph_open(struct ctf *c, struct ctf_graph *g, const bt_plugin *plugin, const char *dir)
{
	const bt_component_class_sink *sink =
		bt_plugin_borrow_sink_component_class_by_name_const(plugin, "fs");
	bt_message_iterator_class *iterator = bt_message_iterator_class_create(ctf_stream_next);

	if (iterator)
		g->source_class = bt_component_class_source_create("hyptrace", iterator);
	bt_message_iterator_class_put_ref(iterator);
	g->params = bt_value_map_create();
	g->graph = bt_graph_create(0);
	if (!g->source_class || !g->params || !g->graph ||
	    bt_component_class_source_set_initialize_method(g->source_class, ctf_source_init) ||
	    bt_value_map_insert_string_entry(g->params, "path", dir) ||
	    bt_value_map_insert_bool_entry(g->params, "assume-single-trace", BT_TRUE) ||
	    bt_value_map_insert_bool_entry(g->params, "quiet", BT_TRUE) ||
	    /* 2.1 would write CTF 2, which its graphs of 2.0's kind cannot; 2.0 knows no such parameter */
	    (bt_version_get_minor() && bt_value_map_insert_string_entry(g->params, "ctf-version", "1")))
		return -ENOMEM;
	if (!sink ||
	    bt_graph_add_source_component_with_initialize_method_data(
		    g->graph, g->source_class, "hyptrace", NULL, c, BT_LOGGING_LEVEL_NONE, &g->source) ||
	    bt_graph_add_sink_component(g->graph, sink, "sink", g->params, BT_LOGGING_LEVEL_NONE, &g->sink))
		return c->ret ? c->ret : -EIO;
	return bt_graph_connect_ports(g->graph,
				      bt_component_source_borrow_output_port_by_index_const(g->source, 0),
				      bt_component_sink_borrow_input_port_by_index_const(g->sink, 0), NULL)
		       ? -ENOMEM
		       : 0;
}

/* One thread at a time; others go on. */
static int ctf_tell(struct ctf_export *x)
{
	int ret = 0;

	if (!pthread_mutex_trylock(&x->lock)) {
		ret = export_tell(x->job);
		pthread_mutex_unlock(&x->lock);
	}
	return ret;
}

static int ctf_graph_run(struct ctf_export *x, const struct ctf *c, const struct ctf_graph *g)
{
	bt_graph_run_once_status status;

	do {
		int ret = x->ret ?: ctf_tell(x);

		if (ret)
			return ret;
		status = bt_graph_run_once(g->graph);
	} while (status == BT_GRAPH_RUN_ONCE_STATUS_OK || status == BT_GRAPH_RUN_ONCE_STATUS_AGAIN);
	if (status == BT_GRAPH_RUN_ONCE_STATUS_END)
		return 0;
	return c->ret ? c->ret : status == BT_GRAPH_RUN_ONCE_STATUS_MEMORY_ERROR ? -ENOMEM : -EIO;
}

/* The trace of a stream, DIR/stream@NUMBER: no machine's name has an @. */
static int ctf_stream_write(struct ctf_export *x, size_t stream, const bt_plugin *plugin)
{
	struct ctf c = { .timeline = x->job->timeline,
			 .in = x->job->in,
			 .stream = { .index = stream,
				     .at = merge_stream_at(x->job->timeline->merge, stream) } };
	struct ctf_stream *s = &c.stream;
	struct ctf_graph g = { 0 };
	const bt_error *error;
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/stream@%zu", x->out.fd, stream);
	ret = ctf_graph_open(&c, &g, plugin, path) ?: ctf_graph_run(x, &c, &g);
	error = bt_current_thread_take_error();
	/* the innermost cause has the reason; the others the place */
	if (error && bt_error_get_cause_count(error))
		log_err(x->log, "babeltrace2: %s",
			bt_error_cause_get_message(bt_error_borrow_cause_by_index(error, 0)));
	if (error)
		bt_error_release(error);
	for (; s->given < s->queued; s->given++)
		bt_message_put_ref(s->queue[s->given]);
	merge_run_release(&s->run);
	bt_packet_put_ref(s->packet);
	bt_stream_put_ref(s->stream);
	ctf_classes_release(&c);
	bt_graph_put_ref(g.graph);
	bt_component_class_source_put_ref(g.source_class);
	bt_value_put_ref(g.params);
	arena_release(&c.kept);
	pthread_mutex_lock(&x->lock);
	x->job->records += c.counts.records;
	x->job->unknown += c.counts.unknown;
	x->counts.back += c.counts.back;
	x->counts.raw += c.counts.raw;
	pthread_mutex_unlock(&x->lock);
	return ret;
}

static void ctf_worker(void *ctx, size_t worker)
{
	struct ctf_export *x = ctx;

	for (size_t i; !x->ret && (i = x->next++) < x->n_streams;) {
		int ret = ctf_stream_write(x, x->turns[x->n_streams - 1 - i].stream, x->plugins[worker]);

		if (ret)
			x->ret = ret;
	}
}

#define UUID_BYTES 16

/* The trace of a machine, as far as its streams have joined it. */
struct ctf_trace {
	char dir[CTF_NAME + 16]; /* "": none has */
	uint8_t uuid[UUID_BYTES];
	struct strlist blocks; /* of its metadata */
};

/* "uuid = "01234567-89ab-..."" */
static bool ctf_uuid_read(const char *text, uint8_t uuid[UUID_BYTES])
{
	const char *at = strstr(text, "uuid = \"");

	at = at ? strchr(at, '"') + 1 : "";
	for (size_t i = 0; i < UUID_BYTES; i++, at += 2) {
		at += *at == '-';
		if (sscanf(at, "%2hhx", &uuid[i]) != 1)
			return false;
	}
	return true;
}

/*
 * Adds what no other stream's metadata had, in blocks that end with "};" and an empty line. The first of them
 * describes the trace, with the UUID that sink.ctf.fs gave it: the first stream's is the machine's.
 */
static int ctf_metadata_add(struct ctf_trace *t, char *text)
{
	static const char end[] = "};\n\n";
	bool begun = t->blocks.n;
	int ret = begun || ctf_uuid_read(text, t->uuid) ? 0 : -EIO;

	for (char *from = text, *next; !ret && (next = strstr(text, end)); text = next) {
		next += sizeof(end) - 1;
		next[-1] = '\0';
		if (!(begun && text == from) && !strlist_has(&t->blocks, text))
			ret = strlist_add(&t->blocks, text);
	}
	return ret ?: *text ? -EIO : 0;
}

/* Gives the packets of a stream's file the trace's UUID. */
static int ctf_packets_join(const struct ctf_trace *t, int dirfd, const char *path)
{
	/* what each begins with, by the metadata */
	struct __attribute__((packed)) {
		uint32_t magic;
		uint8_t uuid[UUID_BYTES];
		uint64_t stream, instance, bits;
	} head;
	int fd = openat(dirfd, path, O_RDWR | O_CLOEXEC), ret = fd < 0 ? -errno : 0;
	ssize_t n = 0;

	for (uint64_t at = 0; !ret && (n = pread_all(fd, &head, sizeof(head), at)) == sizeof(head);
	     at += le64toh(head.bits) / 8) {
		bool good = le32toh(head.magic) == 0xc1fc1fc1 && le64toh(head.bits) >= 8 * sizeof(head);

		ret = good ? pwrite_all(fd, t->uuid, UUID_BYTES, at + offsetof(typeof(head), uuid)) : -EIO;
	}
	fd_close(&fd);
	return ret ?: n ? -EIO : 0;
}

/* Its directory, of a name that no other has. */
static int ctf_trace_begin(const struct ctf_export *x, struct ctf_trace *t, const char *machine)
{
	char name[CTF_NAME];
	int ret = -EEXIST;

	snprintf(t->dir, sizeof(t->dir), "%s", ctf_name(machine, name));
	for (unsigned int i = 0; ret == -EEXIST; i++) {
		ret = mkdirat(x->out.fd, t->dir, 0755) < 0 ? -errno : 0;
		if (ret == -EEXIST)
			snprintf(t->dir, sizeof(t->dir), "%s-%u", name, i);
	}
	return ret;
}

static int ctf_stream_join(struct ctf_export *x, size_t stream, struct ctf_trace *t)
{
	struct strlist names = { 0 };
	struct buf text = { 0 };
	char own[48];
	int ret;

	snprintf(own, sizeof(own), "stream@%zu/metadata", stream);
	ret = read_file_at(x->out.fd, own, METADATA_MAX, &text);
	ret = ret ?: buf_str(&text) ? ctf_metadata_add(t, (char *)text.data) : -ENOMEM;
	unlinkat(x->out.fd, own, 0);
	snprintf(own, sizeof(own), "stream@%zu", stream);
	ret = ret ?: read_dir_at(x->out.fd, own, &names);
	for (size_t i = 0; i < names.n && !ret; i++) {
		char *from = str_printf("%s/%s", own, names.v[i]);
		char *to = str_printf("%s/%s", t->dir, names.v[i]);

		if (from && to && file_there(x->out.fd, to)) { /* buffers may have like names */
			free(to);
			to = str_printf("%s/%s-%zu", t->dir, names.v[i], stream);
		}
		ret = from && to ? ctf_packets_join(t, x->out.fd, from) : -ENOMEM;
		if (!ret && renameat(x->out.fd, from, x->out.fd, to) < 0)
			ret = -errno;
		free(from);
		free(to);
	}
	unlinkat(x->out.fd, own, AT_REMOVEDIR);
	buf_release(&text);
	strlist_release(&names);
	return ret;
}

/* Makes one trace of an input's streams. */
static int ctf_input_join(struct ctf_export *x, size_t input)
{
	struct ctf_trace t = { .dir = "" };
	struct buf metadata = { 0 };
	char path[CTF_NAME + 32];
	int ret = 0;

	for (size_t i = 0; i < x->n_streams && !ret; i++) {
		if (merge_stream_at(x->job->timeline->merge, i)->input != input)
			continue;
		ret = *t.dir ? 0 : ctf_trace_begin(x, &t, x->job->in->v[input].machine);
		ret = ret ?: ctf_stream_join(x, i, &t);
	}
	for (size_t i = 0; i < t.blocks.n; i++)
		buf_printf(&metadata, "%s\n", t.blocks.v[i]);
	snprintf(path, sizeof(path), "%s/metadata", t.dir);
	if (!ret && *t.dir)
		ret = buf_status(&metadata) ?: write_file_at(x->out.fd, path, metadata.data, metadata.len);
	if (ret == -EIO)
		log_err(x->log, "babeltrace2's %s is not as it is understood here", path);
	strlist_release(&t.blocks);
	buf_release(&metadata);
	return ret;
}

int export_ctf(struct export_job *job, const char *dir, const struct log *log)
{
	struct ctf_export x = { .job = job,
				.log = log,
				.n_streams = merge_streams(job->timeline->merge),
				.lock = PTHREAD_MUTEX_INITIALIZER };
	size_t n = pipeline_workers() < x.n_streams ? pipeline_workers() : x.n_streams;
	int ret = outdir_open(&x.out, dir, log);

	if (ret)
		return ret;
	x.plugins = calloc(n + 1, sizeof(*x.plugins));
	x.turns = calloc(x.n_streams + 1, sizeof(*x.turns));
	ret = x.plugins && x.turns ? 0 : -ENOMEM;
	for (size_t i = 0; i < x.n_streams && !ret; i++) {
		const struct merge_stream *s = merge_stream_at(job->timeline->merge, i);
		const struct reader_info *info = reader_info(job->in->v[s->input].reader);

		x.turns[i] = (struct ctf_turn){ info->buffers[s->buffer].cpus[s->index].size, i };
	}
	if (!ret)
		array_sort(x.turns, x.n_streams, sizeof(*x.turns), compare_u64);
	/* not a plugin of a user's directories or of the environment's: code is loaded */
	for (size_t i = 0; i < n && !ret; i++)
		if (bt_plugin_find("ctf", BT_FALSE, BT_FALSE, BT_TRUE, BT_TRUE, BT_FALSE, &x.plugins[i]))
			ret = log_fail(log, -ENOENT, "babeltrace2's plugin ctf is not installed");
	if (!ret && n)
		workers_share(n, ctf_worker, &x);
	ret = ret ?: x.ret;
	for (size_t i = 0; i < job->in->n && !ret; i++)
		ret = ctf_input_join(&x, i);
	for (size_t i = 0; x.plugins && i < n; i++)
		bt_plugin_put_ref(x.plugins[i]);
	free(x.plugins);
	free(x.turns);
	if (x.counts.back)
		log_warn(log, "%llu records lie before the one before them: they have its time",
			 (unsigned long long)x.counts.back);
	if (x.counts.raw)
		log_warn(log, "%llu records end before one of their fields: they are written as bytes",
			 (unsigned long long)x.counts.raw);
	return outdir_close(&x.out, ret);
}
