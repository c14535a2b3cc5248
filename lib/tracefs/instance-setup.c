// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes a buffer ready as its plan says: the steps, and their order. */
#include "tracefs/dir.h"
#include "tracefs/instance-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ERRORS_MAX (1u << 20)

/* What is there from before must neither be recorded nor narrow the recording. */
static int setup_quiet(struct instance *i)
{
	static const char *const lists[] = { "set_event", "set_event_pid", "set_event_notrace_pid" };
	char trace[INSTANCE_PATH];
	int ret = instance_put_file(i, "tracing_on", "0");

	for (size_t n = 0; !ret && n < ARRAY_SIZE(lists); n++)
		ret = instance_put_list(i, lists[n], "");
	if (ret)
		return ret;
	ret = instance_put_file(i, "current_tracer", "nop");
	if (ret)
		return ret;
	ret = undo_poke(i->undo, instance_file(i, trace, "trace"), "");
	if (ret)
		log_err(i->o.log, "cannot clear '%s': %s%s", trace, strerror(-ret), instance_hint(ret));
	return ret;
}

int instance_note_clock(struct instance *i)
{
	char path[INSTANCE_PATH];

	free(i->clock);
	i->clock = NULL;
	return undo_read(i->undo, instance_file(i, path, "trace_clock"), &i->clock);
}

static int setup_clock(struct instance *i)
{
	const char *wanted = i->buffer->clock ? i->buffer->clock : i->o.clock;
	char path[INSTANCE_PATH];
	int ret;

	instance_file(i, path, "trace_clock");
	ret = wanted ? instance_put(i, path, wanted, path) : 0;
	return ret ?: instance_note_clock(i);
}

/*
 * A change of the sub-buffers' size resizes the buffer, so its own size is put
 * back after it as well as before.
 */
static int setup_size(struct instance *i)
{
	char size[INSTANCE_PATH], subbuf[INSTANCE_PATH];
	int ret = 0;

	instance_file(i, size, "buffer_size_kb");
	instance_file(i, subbuf, "buffer_subbuf_size_kb");
	if (i->buffer->subbuf_kb && instance_has(i, subbuf))
		ret = undo_save(i->undo, size);
	if (ret)
		return ret;
	if (i->buffer->subbuf_kb)
		ret = instance_put_number(i, subbuf, i->buffer->subbuf_kb);
	if (ret || !i->buffer->size_kb)
		return ret;
	return instance_put_number(i, size, i->buffer->size_kb);
}

/* "3,ffffffff" for 34 CPUs */
static void full_mask(unsigned int cpus, struct buf *out)
{
	unsigned int first = cpus % 32;

	if (first || !cpus)
		buf_printf(out, "%x", (1u << first) - 1);
	for (unsigned int words = cpus / 32; words; words--)
		buf_printf(out, "%sffffffff", out->len ? "," : "");
}

static int setup_cpumask(struct instance *i)
{
	char path[INSTANCE_PATH];
	struct buf mask = { 0 };
	unsigned int cpus;
	int ret;

	if (!i->buffer->cpumask)
		return 0;
	if (strcmp(i->buffer->cpumask, "-1"))
		return instance_put_file(i, "tracing_cpumask", i->buffer->cpumask);
	ret = tracefs_cpus(undo_dirfd(i->undo), instance_file(i, path, "per_cpu"), &cpus);
	if (ret)
		return ret;
	full_mask(cpus, &mask);
	ret = buf_str(&mask) ? instance_put_file(i, "tracing_cpumask", buf_str(&mask)) : -ENOMEM;
	buf_release(&mask);
	return ret;
}

/* "x", or "nox" for clearing x; an option's own name may begin with "no". */
static int setup_option(struct instance *i, const char *name)
{
	char path[INSTANCE_PATH];
	const char *value = "1";

	instance_file(i, path, "options/%s", name);
	if (!instance_has(i, path) && !strncmp(name, "no", 2)) {
		instance_file(i, path, "options/%s", name + 2);
		value = "0";
	}
	if (!strchr(name, '/') && instance_has(i, path))
		return instance_put(i, path, value, NULL);
	log_err(i->o.log, "there is no option '%s' for %s%s in this kernel", name,
		*i->buffer->name ? "the buffer " : "the top buffer", i->buffer->name);
	return -ENOENT;
}

static int setup_options(struct instance *i)
{
	const struct strlist *o = &i->buffer->options;
	int ret = 0;

	for (size_t n = 0; !ret && n < o->n; n++)
		ret = setup_option(i, o->v[n]);
	return ret;
}

/* Files of the top directory, whatever the buffer. */
static int setup_globals(struct instance *i)
{
	int ret = 0;

	if (i->o.plan->cmdlines_size)
		ret = instance_put_number(i, "saved_cmdlines_size", i->o.plan->cmdlines_size);
	if (ret || i->buffer->max_graph_depth < 0)
		return ret;
	return instance_put_number(i, "max_graph_depth", (uint64_t)i->buffer->max_graph_depth);
}

/*
 * What the kernel logs about refused filters is passed on by then; a log that
 * was empty is left empty. What was in it cannot be put back.
 */
static bool empty_error_log(struct instance *i, bool clear)
{
	struct buf text = { 0 };
	bool empty = instance_read(i, "error_log", ERRORS_MAX, &text) || !text.len;
	char path[INSTANCE_PATH];

	if (clear && !empty)
		undo_poke(i->undo, instance_file(i, path, "error_log"), "");
	buf_release(&text);
	return empty;
}

int instance_setup(struct instance *i)
{
	static int (*const steps[])(struct instance *) = {
		setup_quiet,
		setup_clock,
		setup_size,
		setup_cpumask,
		setup_options,
		setup_globals,
		instance_setup_functions,
		instance_setup_events,
	};
	bool clean = empty_error_log(i, false);
	int ret = 0;

	for (size_t n = 0; !ret && n < ARRAY_SIZE(steps); n++)
		ret = steps[n](i);
	if (clean)
		empty_error_log(i, true);
	return ret;
}
