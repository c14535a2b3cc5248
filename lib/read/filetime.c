// SPDX-License-Identifier: LGPL-2.1-or-later
/* Corrected times: what the options of a trace.dat do to the time stamps in its pages. */
#include "read/filetime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define NS_PER_SEC 1e9

/* ---- options -------------------------------------------------------------------- */

/* DATE is in us, OFFSET in ns; both are texts for strtoll. */
static void filetime_add_number(struct filetime *t, const struct dat_text *text, int64_t unit)
{
	char copy[32] = "";

	memcpy(copy, text->data, text->len < sizeof(copy) ? text->len : sizeof(copy) - 1);
	t->add = (int64_t)((uint64_t)t->add + (uint64_t)strtoll(copy, NULL, 0) * (uint64_t)unit);
}

/* The word in brackets: "local [boot] mono". */
static void filetime_set_clock(struct filetime *t, const struct dat_text *text)
{
	const char *open = memchr(text->data, '[', text->len), *close;
	size_t len;

	if (!open)
		return;
	open++;
	close = memchr(open, ']', text->len - (size_t)(open - text->data));
	len = close ? (size_t)(close - open) : 0;
	if (len && len < sizeof(t->clock)) {
		memcpy(t->clock, open, len);
		t->clock[len] = '\0';
	}
}

static int filetime_set_shift(struct filetime *t, const struct dat_text *text, const struct log *log)
{
	int ret;

	/* stock passes over shorter ones, and the last one counts */
	if (text->len < 16)
		return 0;
	offset_shift_release(&t->shift);
	ret = offset_shift_decode(text->data, text->len, &t->shift);
	if (ret == -EBADMSG)
		log_err(log, "not a whole trace.dat: its TIME_SHIFT");
	return ret;
}

static void filetime_set_tsc(struct filetime *t, const struct dat_text *text)
{
	struct cursor c = cursor_at(text->data, text->len);

	if (text->len < 16)
		return;
	t->mult = cursor_u32(&c);
	t->tsc_shift = cursor_u32(&c);
}

static int filetime_set_option(struct filetime *t, const struct reader_option *o, unsigned int flags,
			       const struct log *log)
{
	if (o->id == DAT_TRACECLOCK)
		filetime_set_clock(t, &o->data);
	if (flags & FILETIME_RAW)
		return 0;
	switch (o->id) {
	case DAT_DATE:
		if (!(flags & FILETIME_NO_DATE))
			filetime_add_number(t, &o->data, 1000);
		return 0;
	case DAT_OFFSET:
		filetime_add_number(t, &o->data, 1);
		return 0;
	case DAT_TIME_SHIFT:
		return filetime_set_shift(t, &o->data, log);
	case DAT_TSC2NSEC:
		filetime_set_tsc(t, &o->data);
		return 0;
	default:
		return 0;
	}
}

static bool clock_counts_ns(const char *clock)
{
	static const char *const clocks[] = { "local", "global", "uptime", "perf", "tsc2nsec", "tai" };

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (!strcmp(clock, clocks[i]))
			return true;
	return !strncmp(clock, "mono", 4);
}

int filetime_read(struct filetime *t, const struct reader *r, unsigned int flags, const struct log *log)
{
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
	if (!t->clock[0] || t->mult)
		t->seconds = true;
	else
		t->seconds = !(flags & FILETIME_RAW) && clock_counts_ns(t->clock);
	return 0;
}

void filetime_release(struct filetime *t)
{
	offset_shift_release(&t->shift);
	*t = (struct filetime){ 0 };
}

void filetime_set_hz(struct filetime *t, uint64_t hz)
{
	t->ns_per_tick = hz ? NS_PER_SEC / (double)hz : 0;
	t->seconds = t->seconds || hz;
}

/* ---- applying --------------------------------------------------------------------- */

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

static bool knot_before(const void *entry, const void *key)
{
	return ((const struct offset_knot *)entry)->time < *(const uint64_t *)key;
}

uint64_t filetime_bound(const struct filetime *t, uint64_t ts)
{
	const struct offset_table *knots = t->shift.cpus;
	const uint64_t *bounds = t->shift.bounds;
	size_t i;

	if (!bounds || !knots || !knots->n || ts < knots->v[0].time)
		return UINT64_MAX;
	i = array_lower_bound(knots->v, knots->n, sizeof(*knots->v), knot_before, &ts);
	if (i == knots->n)
		return UINT64_MAX;
	if (t->shift.n_bounds == 1) /* the knot behind it is a copy (offset_shift_fill) */
		return bounds[0];
	if (t->shift.n_bounds != knots->n)
		return UINT64_MAX;
	return ts == knots->v[i].time || bounds[i] > bounds[i - 1] ? bounds[i] : bounds[i - 1];
}

uint64_t filetime_convert(const struct filetime *t, unsigned int cpu, uint64_t ts)
{
	return filetime_to_ns(t, offset_shift_apply(&t->shift, cpu, ts)) + (uint64_t)t->add;
}
