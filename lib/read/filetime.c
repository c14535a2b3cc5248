// SPDX-License-Identifier: LGPL-2.1-or-later
/* Corrected times: what the options of a trace.dat do to the time stamps in its pages. */
#include "read/filetime.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/strings.h"

#define NS_PER_SEC 1e9

/* DATE is in us, OFFSET in ns; both are texts for strtoll. Returns ns. */
static int64_t filetime_number(const struct dat_text *text, int64_t unit)
{
	char copy[32] = "";

	memcpy(copy, text->data, text->len < sizeof(copy) ? text->len : sizeof(copy) - 1);
	return (int64_t)((uint64_t)strtoll(copy, NULL, 0) * (uint64_t)unit);
}

static void filetime_add(struct filetime *t, int64_t ns)
{
	t->add = (int64_t)((uint64_t)t->add + (uint64_t)ns);
}

static int filetime_set_option(struct filetime *t, const struct reader_option *o, unsigned int flags,
			       const struct log *log)
{
	size_t len = 0;
	const char *clock = o->id == DAT_TRACECLOCK ? chosen_word(o->data.data, o->data.len, &len) : NULL;
	struct cursor c;
	int ret;

	if (clock && len && len < sizeof(t->clock)) {
		memcpy(t->clock, clock, len);
		t->clock[len] = '\0';
	}
	if (flags & FILETIME_RAW)
		return 0;
	switch (o->id) {
	case DAT_DATE:
		t->date = filetime_number(&o->data, 1000);
		if (!(flags & FILETIME_NO_DATE))
			filetime_add(t, t->date);
		return 0;
	case DAT_WALL:
		ret = wall_decode(o->data.data, o->data.len, &t->wall);
		if (ret)
			log_err(log, "not a whole trace.dat: its time of day");
		return ret;
	case DAT_OFFSET:
		filetime_add(t, filetime_number(&o->data, 1));
		return 0;
	case DAT_TIME_SHIFT:
		/* stock passes over shorter ones, and the last one counts */
		if (o->data.len < 16)
			return 0;
		offset_shift_release(&t->shift);
		ret = offset_shift_decode(o->data.data, o->data.len, &t->shift);
		if (ret == -EBADMSG)
			log_err(log, "not a whole trace.dat: its TIME_SHIFT");
		return ret;
	case DAT_TSC2NSEC:
		if (o->data.len < 16)
			return 0;
		c = cursor_at(o->data.data, o->data.len);
		t->mult = cursor_u32(&c);
		t->tsc_shift = cursor_u32(&c);
		return 0;
	default:
		return 0;
	}
}

int filetime_read(struct filetime *t, const struct reader *r, unsigned int flags, const struct log *log)
{
	static const char *const in_ns[] = { "local", "global", "uptime", "perf", "tsc2nsec", "tai" };
	const struct reader_info *info = reader_info(r);

	*t = (struct filetime){ 0 };
	for (size_t i = 0; i < info->n_options; i++) {
		int ret = filetime_set_option(t, &info->options[i], flags, log);

		if (ret) {
			filetime_release(t);
			return ret;
		}
	}
	/* in version 6 the clock stands behind the table of CPUs */
	if (!t->clock[0] && info->version == 6 && info->n_buffers)
		snprintf(t->clock, sizeof(t->clock), "%s", info->buffers[0].clock);
	t->seconds = !t->clock[0] || t->mult || (!(flags & FILETIME_RAW) && !strncmp(t->clock, "mono", 4));
	for (size_t i = 0; i < ARRAY_SIZE(in_ns) && !(flags & FILETIME_RAW); i++)
		t->seconds |= !strcmp(t->clock, in_ns[i]);
	return 0;
}

void filetime_release(struct filetime *t)
{
	offset_shift_release(&t->shift);
	*t = (struct filetime){ 0 };
}

void filetime_set_hz(struct filetime *t, uint64_t hz)
{
	if (!hz)
		return;
	t->ns_per_tick = NS_PER_SEC / (double)hz;
	t->seconds = true;
}

void filetime_take_rate(struct filetime *t, const struct filetime *from)
{
	t->mult = from->mult;
	t->tsc_shift = from->tsc_shift;
	t->ns_per_tick = from->ns_per_tick;
	t->seconds = from->seconds;
}

bool filetime_in_ticks(const struct filetime *t)
{
	return clock_in_ticks(t->clock) && !t->mult && !(t->ns_per_tick > 0);
}

static uint64_t filetime_to_ns(const struct filetime *t, uint64_t ts)
{
	if (t->ns_per_tick > 0) {
		double ns = (double)ts * t->ns_per_tick;

		return ns < 0x1p64 ? (uint64_t)ns : UINT64_MAX;
	}
	if (!t->mult)
		return ts;
	return t->tsc_shift < 128 ? (uint64_t)((unsigned __int128)ts * t->mult >> t->tsc_shift) : 0;
}

uint64_t filetime_bound(const struct filetime *t, uint64_t ts)
{
	const struct offset_table *points = t->shift.cpus;
	const uint64_t *bounds = t->shift.bounds;
	uint64_t bound; /* in ticks of the file's clock */
	size_t i;

	if (!bounds || !points || !points->n || ts < points->v[0].time)
		return UINT64_MAX;
	i = array_lower_bound(points->v, points->n, sizeof(*points->v), u64_below, &ts);
	if (i == points->n || (t->shift.n_bounds != 1 && t->shift.n_bounds != points->n))
		return UINT64_MAX;
	if (t->shift.n_bounds == 1) /* the point behind it is a copy (offset_shift_fill) */
		bound = bounds[0];
	else
		bound = ts == points->v[i].time || bounds[i] > bounds[i - 1] ? bounds[i] : bounds[i - 1];
	return bound == UINT64_MAX ? bound : filetime_to_ns(t, bound);
}

uint64_t filetime_widest_bound(const struct filetime *t)
{
	uint64_t widest = 0;

	for (uint32_t i = 0; i < t->shift.n_bounds; i++)
		if (t->shift.bounds[i] != UINT64_MAX && t->shift.bounds[i] > widest)
			widest = t->shift.bounds[i];
	return filetime_to_ns(t, widest);
}

uint64_t filetime_convert(const struct filetime *t, unsigned int cpu, uint64_t ts)
{
	return filetime_to_ns(t, offset_shift_apply(&t->shift, cpu, ts)) + (uint64_t)t->add;
}
