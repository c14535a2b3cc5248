// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Regions (--start-on, --stop-on): the kernel's triggers switch the host's buffers. What has no triggers, the
 * hypervisor's buffer and the samples, is switched after one of these, which is looked at all the time.
 */
#include "record/session/session-priv.h"

static struct instance *region_gate(const struct session *s)
{
	for (size_t i = 0; i < s->n_tracks; i++)
		if (s->tracks[i].instance)
			return s->tracks[i].instance;
	return NULL;
}

static bool region_has_followers(const struct session *s)
{
	return s->remote || s->profile;
}

/* Records until the event, unless another option ends the recording. */
static bool region_ends_recording(const struct session *s)
{
	return !s->plan->start_on.event && !s->has_command;
}

bool session_region_is_watched(const struct session *s)
{
	return region_asked(s->plan) && (region_has_followers(s) || region_ends_recording(s));
}

/* By the first buffer's clock. */
void session_region_watch(struct session *s)
{
	struct instance *i = region_gate(s);
	char *text;
	int ret;

	if (!s->plan->start_on.event || !i)
		return;
	ret = watch_open(&s->region.watch, s->undo, s->plan, i->clock);
	text = ret ? NULL : watch_text(&s->region.watch);
	ret = ret ?: text ? spool_set(s->spool, "watch", text) : -ENOMEM;
	if (ret)
		log_warn(s->log, "the file will not show the pauses between its regions: %s",
			 errno_text(ret));
	free(text);
}

void session_region_keep(struct session *s)
{
	const char *text = spool_get(s->spool, "watch");
	struct watch *w = &s->region.watch;
	struct pauses pauses = { 0 };
	struct buf body = { 0 };
	bool whole = true;
	int ret;

	if (!text)
		return;
	watch_parse(w, text);
	ret = watch_read(w, s->undo, &pauses, &whole);
	if (!whole)
		log_warn(s->log, "when tracing was off between regions is not known %s: %s",
			 ret ? "at all" : "of the first ones",
			 ret ? errno_text(ret) : "there were too many of them");
	if (pauses.n) {
		pauses_encode(&pauses, spool_buffer(s->spool, 0)->clock, &body);
		if (buf_status(&body) ?: spool_put_text(s->spool, "pauses", body.data, body.len))
			log_warn(s->log, "the file does not show the pauses between its regions");
		buf_release(&body);
	}
	pauses_release(&pauses);
}

int session_region_begin(struct session *s)
{
	s->region.on = !s->plan->start_on.event;
	s->region.looked = boot_ns();
	return s->plan->start_on.event ? spool_set(s->spool, "start_on", s->plan->start_on.event) : 0;
}

bool session_region_look(struct session *s)
{
	struct session_region *r = &s->region;
	uint64_t now = boot_ns(), *late;
	int on = instance_is_on(region_gate(s));

	if (on >= 0 && on != r->on) {
		if (region_ends_recording(s))
			return true;
		for (size_t i = 0; i < s->n_tracks; i++) {
			const struct source_ops *ops = s->tracks[i].source->ops;

			if (!s->tracks[i].instance && (on ? ops->start : ops->stop)(s->tracks[i].source))
				log_warn(s->log, "%s: it does not follow the region",
					 s->tracks[i].source->name);
		}
		late = on ? &r->late_on : &r->late_off;
		if (boot_ns() - r->looked > *late)
			*late = boot_ns() - r->looked;
		r->n += on;
		r->on = on;
	}
	r->looked = now;
	return false;
}

void session_region_report(const struct session *s)
{
	const struct session_region *r = &s->region;

	if (!region_asked(s->plan) || !region_has_followers(s))
		return;
	log_info(s->log,
		 "%s: switched on in %zu regions, at most %.1f ms after their begin, and off at most %.1f ms "
		 "after their end",
		 s->remote ? "hyp" : "profile", r->n, (double)r->late_on / 1e6, (double)r->late_off / 1e6);
}
