// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options of record whose value has a form of its own, whatever stands beside them: into the plan. */
#include "tracefs/plan-values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracefs/plan.h"

#define PID_LIMIT (4u << 20) /* PID_MAX_LIMIT of 64-bit kernels */

int plan_cpumask(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	if (strcmp(arg, "-1") && (!strcspn(arg, ",") || arg[strspn(arg, "0123456789abcdefABCDEF,")]))
		return opts_wrong(err, o, arg, "not a mask: hexadecimal digits, or -1 for all CPUs");
	return opts_set_copy(ctx, o, arg, err);
}

int plan_pids(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	const char *s = arg;

	do {
		char text[24];
		int len = (int)strcspn(s, ","), ret;
		uint64_t pid;

		snprintf(text, sizeof(text), "%.*s", len, s);
		if (parse_u64(text, &pid) || !pid || pid > PID_LIMIT)
			return opts_wrong(err, o, arg, "not a list of process numbers");
		snprintf(text, sizeof(text), "%llu", (unsigned long long)pid);
		ret = strlist_add(&((struct record_plan *)ctx)->pids, text);
		if (ret)
			return ret;
		s += len;
	} while (*s++);
	return 0;
}

int plan_compression(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *plan = ctx;

	if (!strcmp(arg, "any")) {
		free(plan->compression);
		plan->compression = NULL;
		return 0;
	}
	if (!strcmp(arg, "zlib") || !strcmp(arg, "lzma"))
		return opts_wrong(err, o, arg,
				  "many builds of trace-cmd cannot read it: use zstd, none or any");
	if (strcmp(arg, "zstd") && strcmp(arg, "none"))
		return opts_wrong(err, o, arg, "unknown: use zstd, none or any");
	return opts_set_copy(plan, o, arg, err);
}

int plan_tsync(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	static const struct {
		const char *name;
		enum tsync_method method;
	} methods[] = {
		{ "auto", TSYNC_AUTO },	    { "counter", TSYNC_COUNTER }, { "hyp", TSYNC_HYP },
		{ "kvm", TSYNC_KVM },	    { "ping", TSYNC_PING },	  { "none", TSYNC_NONE },
		{ "exact", TSYNC_COUNTER }, /* what counter was called */
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (!strcmp(arg, methods[i].name)) {
			((struct record_plan *)ctx)->tsync = methods[i].method;
			return 0;
		}
	return opts_wrong(err, o, arg, "unknown: use auto, counter, hyp, kvm, ping or none");
}

/* As in trace-cmd: 0 is the start and the end only, less than 0 none at all. */
int plan_tsync_interval(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *plan = ctx, unused;
	int ret;

	if (*arg != '-')
		return opts_set_number(plan, o, arg, err);
	ret = opts_set_number(&unused, o, arg + 1, err);
	if (!ret)
		plan->tsync = TSYNC_NONE;
	return ret;
}

/* ---- sizes and times ------------------------------------------------------------ */

static const struct unit {
	const char *name;
	uint64_t factor;
} size_units[] = { { "K", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 }, { "T", 1ull << 40 } },
  time_units[] = { { "s", 1000 }, { "min", 60000 }, { "h", 3600000 }, { "d", 86400000 } };

/* A whole number and one of four units; 0: it is none, or out of bounds. */
static uint64_t with_unit(const char *arg, const struct unit units[4])
{
	const size_t digits = strspn(arg, "0123456789");
	uint64_t n = digits && digits < 10 ? strtoull(arg, NULL, 10) : 0;

	for (size_t i = 0; i < 4; i++)
		if (!strcmp(arg + digits, units[i].name))
			return n > INT64_MAX / units[i].factor ? 0 : n * units[i].factor;
	return 0;
}

int plan_rotate(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *plan = ctx;

	plan->rotate_bytes = with_unit(arg, size_units);
	plan->rotate_ms = with_unit(arg, time_units);
	if (plan->rotate_bytes || plan->rotate_ms)
		return 0;
	return opts_wrong(err, o, arg, "neither a size (64K, 100M, 2G) nor a time (30s, 5min, 1h)");
}

int plan_max_size(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct record_plan *plan = ctx;

	plan->max_bytes = with_unit(arg, size_units);
	return plan->max_bytes ? 0 : opts_wrong(err, o, arg, "not a size: 64K, 100M, 2G");
}
