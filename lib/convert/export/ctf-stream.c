// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A CPU's records as messages. sink.ctf.fs wants lost events between two packets, from the end of the one
 * to the end of the other: the first record behind a loss is a packet of its own.
 */
#include <errno.h>

#include "convert/export/ctf-priv.h"

#define PACKET_EVENTS 4096

/* ---- messages ---------------------------------------------------------------------------- */

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
	if (!message)
		return -ENOMEM;
	s->in_packet++;
	s->queue[s->queued++] = message;
	event = bt_message_event_borrow_event(message);
	return raw ? ctf_event_fill_raw(m, event) : ctf_event_fill(e, m, timeline_pid(&k->pid, m), event);
}

/* ---- records ------------------------------------------------------------------------------- */

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

/* ---- the iterator ------------------------------------------------------------------------------ */

bt_message_iterator_class_next_method_status ctf_stream_next(bt_self_message_iterator *self,
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
