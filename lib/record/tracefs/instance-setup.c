// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sets a buffer up as its plan has it: clock, size, tracer, filters, events, in the order that they need. */
#include "record/tracefs/instance.h"

#include <fnmatch.h>
#include <regex.h>

/* ---- events ---- */

/* A name of the plan stands for a path below events/: an event ("kvm/kvm_exit"), or a system ("kvm"). */

static bool has_enable(const struct instance *i, const char *what)
{
	char path[INSTANCE_PATH];

	return instance_has(i, instance_file(i, path, "events/%s/enable", what));
}

/* Adds the events of a system; without an enable file it is one of ftrace's own, for formats only. */
static int events_of(const struct instance *i, const char *system, const char *glob, struct strlist *out)
{
	struct strlist names = { 0 };
	char path[INSTANCE_PATH];
	int ret = read_dir_at(undo_dirfd(i->undo), instance_file(i, path, "events/%s", system), &names);

	for (size_t n = 0; !ret && n < names.n; n++) {
		char *event;

		if (fnmatch(glob, names.v[n], 0))
			continue;
		event = str_printf("%s/%s", system, names.v[n]);
		if (!event)
			ret = -ENOMEM;
		else if (has_enable(i, event))
			ret = strlist_add(out, event);
		free(event);
	}
	strlist_release(&names);
	return ret;
}

static int match_events(const struct instance *i, const char *system, const char *pattern,
			struct strlist *out)
{
	char what[INSTANCE_PATH];

	if (strpbrk(pattern, "*?["))
		return events_of(i, system, pattern, out);
	snprintf(what, sizeof(what), "%s/%s", system, pattern);
	return has_enable(i, what) ? strlist_add(out, what) : 0;
}

/*
 * The grammar of trace-cmd: "all", "system:event" (an empty part is "*"), or a
 * name for systems as well as for events of the other systems; globs anywhere.
 */
static int match_name(const struct instance *i, const struct strlist *systems, const char *name,
		      struct strlist *out)
{
	const char *colon = strchr(name, ':');
	char *system = strndup(name, colon ? (size_t)(colon - name) : strlen(name));
	const char *event = colon && colon[1] ? colon + 1 : "*";
	bool whole = !strcmp(event, "*");
	const char *pattern;
	int ret = 0;

	if (!system)
		return -ENOMEM;
	pattern = *system && strcmp(name, "all") ? system : "*";
	for (size_t n = 0; !ret && n < systems->n; n++) {
		bool hit = !fnmatch(pattern, systems->v[n], 0);

		if (hit && whole)
			ret = strlist_add(out, systems->v[n]);
		else if (hit || !colon)
			ret = match_events(i, systems->v[n], hit ? event : name, out);
	}
	free(system);
	return ret;
}

/*
 * Fields differ from event to event: enough that one of many takes it. Not by
 * the system's own filter file: its text belongs to all instances at once, and would remain in the others.
 */
static int put_everywhere(struct instance *i, const struct event_plan *e, const struct strlist *matches,
			  bool trigger, const char *value)
{
	const char *what = trigger ? "trigger" : "filter";
	struct strlist events = { 0 };
	size_t refused = 0;
	char path[INSTANCE_PATH];
	int why = 0, ret = 0;

	for (size_t n = 0; !ret && n < matches->n; n++)
		ret = strchr(matches->v[n], '/') ? strlist_add(&events, matches->v[n])
						 : events_of(i, matches->v[n], "*", &events);
	for (size_t n = 0; !ret && n < events.n; n++) {
		int (*put)(struct undo *, const char *, const char *) = trigger ? undo_add : undo_write;
		int one = put(i->undo, instance_file(i, path, "events/%s/%s", events.v[n], what), value);
		if (one == -EEXIST && trigger) {
			log_warn(i->o.log, "'%s' has a trigger like '%s' already", path, value);
			one = 0;
		}
		refused += one != 0;
		why = one ? one : why;
	}
	if (refused && refused < events.n) {
		log_warn(i->o.log, "-e %s: %zu of %zu events do not take the %s '%s'", e->name, refused,
			 events.n, what, value);
	} else if (refused) {
		instance_complain(i, LOG_ERROR, instance_file(i, path, "events/%s/%s", matches->v[0], what),
				  value, why, NULL);
		ret = why;
	}
	strlist_release(&events);
	return ret;
}

int instance_make_events(struct undo *u, const struct buffer_plan *b, const struct log *log)
{
	struct instance top = { .undo = u, .path = (char *)".", .o = { .log = log } };
	size_t n_optional = 0, n_made = 0;
	for (size_t n = 0; n < b->n_events; n++) {
		const struct event_plan *e = &b->events[n];
		const char *event = e->define ? strchr(e->name, ':') + 1 : NULL;
		char path[INSTANCE_PATH];
		int ret = 0;

		if (event)
			snprintf(path, sizeof(path), "%.*s/%s", (int)(event - 1 - e->name), e->name, event);
		if (event && has_enable(&top, path))
			return log_fail(log, -EEXIST, "-e '%s': there is an event %s already", e->define,
					e->name);
		ret = event ? undo_make_event(u, e->define) : 0;
		if (ret)
			instance_complain(&top, e->optional ? LOG_INFO : LOG_ERROR, "dynamic_events",
					  e->define, ret, NULL);
		n_optional += e->define && e->optional;
		n_made += e->define && e->optional && !ret;
		if (ret && (!e->optional || ret == -EEXIST))
			return ret;
	}
	if (n_made || !n_optional)
		return 0;
	return log_fail(log, -ENOENT, "--preset: this kernel takes none of its probes");
}

/* Filters and triggers come before the switch, so that no event slips past them. */
static int setup_one_event(struct instance *i, const struct strlist *systems, const struct event_plan *e)
{
	struct strlist m = { 0 };
	bool path = strchr(e->name, '/'); /* "../kvm" would be found */
	int ret = path ? 0 : match_name(i, systems, e->name, &m);

	if (!ret && !m.n) {
		bool go_on = i->o.plan->ignore_event_errors || i->o.plan->best_effort;

		ret = e->optional || go_on ? 0 : -ENOENT;
		if (!e->optional)
			log_msg(i->o.log, go_on ? LOG_WARN : LOG_ERROR,
				"-e %s: no such event or system in %s%s (see trace-cmd list -e)", e->name,
				*i->buffer->name ? "the buffer " : "the top buffer", i->buffer->name);
	}
	if (!ret && e->filter && !e->negate)
		ret = put_everywhere(i, e, &m, false, e->filter);
	for (size_t n = 0; !ret && n < e->triggers.n; n++)
		ret = put_everywhere(i, e, &m, true, e->triggers.v[n]);
	for (size_t n = 0; !ret && n < m.n; n++) {
		const char *value = e->negate ? "0" : "1";
		char file[INSTANCE_PATH];
		bool grave;

		ret = undo_poke(i->undo, instance_file(i, file, "events/%s/enable", m.v[n]), value);
		grave = (m.n == 1 && strchr(m.v[n], '/')) || ret == -EACCES || ret == -EPERM ||
			ret == -ENOMEM;
		if (ret)
			instance_complain(i, grave ? LOG_ERROR : LOG_WARN, file, value, ret, NULL);
		ret = grave ? ret : 0;
	}
	strlist_release(&m);
	return ret;
}

/* As trace-cmd does: first all that is to be on, then what -v takes away again. */
static int instance_setup_events(struct instance *i)
{
	const struct buffer_plan *b = i->buffer;
	struct strlist all = { 0 }, systems = { 0 };
	char path[INSTANCE_PATH];
	int ret;

	if (!b->n_events)
		return 0;
	ret = read_dir_at(undo_dirfd(i->undo), instance_file(i, path, "events"), &all);
	if (ret)
		log_err(i->o.log, "cannot list '%s': %s", path, strerror(-ret));
	for (size_t n = 0; !ret && n < all.n; n++)
		if (strcmp(all.v[n], "ftrace") && strcmp(all.v[n], INSTANCE_OWN_EVENTS) &&
		    has_enable(i, all.v[n]))
			ret = strlist_add(&systems, all.v[n]);
	strlist_release(&all);
	for (int negate = 0; negate < 2; negate++)
		for (size_t n = 0; !ret && n < b->n_events; n++)
			if (b->events[n].negate == negate)
				ret = setup_one_event(i, &systems, &b->events[n]);
	strlist_release(&systems);
	return ret;
}

/* ---- functions, sizes, CPUs ---- */

/* A glob's: by trace-cmd's rule other characters make it a regular expression. */
#define GLOB_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_*?.:-"

/* "func:traceoff", but not "func:mod:name" */
static bool is_command(const char *name)
{
	return strchr(name, ':') && !strstr(name, ":mod:");
}

static void say_no_function(struct instance *i, const char *opt, const char *name, int ret)
{
	if (ret == -EINVAL || ret == -ENOENT)
		log_err(i->o.log,
			"%s %s: no function of that name can be traced "
			"(see available_filter_functions)",
			opt, name);
	else
		log_err(i->o.log, "%s %s: %s", opt, name, strerror(-ret));
}

/* Makes the names the content of a filter file; no names: clears it. */
static int put_functions(struct instance *i, const char *opt, const char *path, const struct strlist *names)
{
	struct buf lines = { 0 };
	int ret;

	if (!instance_has(i, path)) {
		if (names->n)
			log_err(i->o.log, "%s %s: this kernel has no '%s'", opt, names->v[0], path);
		return names->n ? -ENOENT : 0;
	}
	/* patterns are resolved, commands left out */
	for (size_t n = 0; n < names->n; n++) {
		if (is_command(names->v[n]))
			continue;
		ret = 0;
		if (names->v[n][strspn(names->v[n], GLOB_CHARS)])
			ret = i->o.match ? i->o.match(undo_dirfd(i->undo), names->v[n], &lines) : -EINVAL;
		else
			buf_printf(&lines, "%s\n", names->v[n]);
		if (ret) {
			say_no_function(i, opt, names->v[n], ret);
			goto out;
		}
	}
	ret = buf_str(&lines) ? 0 : -ENOMEM;
	if (ret)
		goto out;
	ret = undo_list(i->undo, path, buf_str(&lines));
	if (ret && undo_refused(i->undo))
		say_no_function(i, opt, undo_refused(i->undo), ret);
	else if (ret)
		instance_complain(i, LOG_ERROR, path, "", ret, NULL);
out:
	buf_release(&lines);
	return ret;
}

static int instance_setup_functions(struct instance *i)
{
	static const char *const pids[] = { "set_ftrace_pid", "set_ftrace_notrace_pid" };
	const struct buffer_plan *b = i->buffer;
	bool graph = b->tracer && !strcmp(b->tracer, "function_graph"), top = !strcmp(i->path, ".");
	char path[INSTANCE_PATH], choices[INSTANCE_PATH];
	int ret;

	if (!b->tracer && !b->funcs.n && !b->notrace.n && !b->graph.n)
		return 0;
	ret = put_functions(i, "-l", instance_file(i, path, "set_ftrace_filter"), &b->funcs);
	/* "schedule:traceoff:1" stands in the same file, but lives by its own rules */
	for (size_t n = 0; !ret && n < b->funcs.n; n++) {
		if (!is_command(b->funcs.v[n]))
			continue;
		ret = undo_poke_until_end(i->undo, path, b->funcs.v[n], str_printf("!%s", b->funcs.v[n]));
		if (ret)
			instance_complain(i, LOG_ERROR, path, b->funcs.v[n], ret, NULL);
	}
	/* function_graph has a file of its own for -n, in the top directory */
	instance_file(i, path, graph && top ? "set_graph_notrace" : "set_ftrace_notrace");
	ret = ret ?: put_functions(i, "-n", path, &b->notrace);
	if (!ret && (graph || b->graph.n))
		ret = put_functions(i, "-g", "set_graph_function", &b->graph);
	if (ret || !b->tracer)
		return ret;

	/* the tracer comes last: its filters must be there when it begins */
	if (i->o.plan->func_stack && top)
		ret = instance_put(i, "options/func_stack_trace", "1", NULL);
	for (size_t n = 0; !ret && n < ARRAY_SIZE(pids); n++) {
		ret = undo_list(i->undo, instance_file(i, path, "%s", pids[n]), "");
		ret = ret == -ENOENT ? 0 : ret;
	}
	if (ret)
		return ret;
	instance_file(i, choices, "available_tracers");
	return instance_put(i, instance_file(i, path, "current_tracer"), b->tracer, choices);
}

bool instance_runs(int tracing_dirfd, const char *path)
{
	char event[8], tracer[64];

	return (!read_line_at(tracing_dirfd, event, sizeof(event), "%s/set_event", path) && *event) ||
	       (!read_line_at(tracing_dirfd, tracer, sizeof(tracer), "%s/current_tracer", path) && *tracer &&
		strcmp(tracer, "nop") != 0);
}

/* The clock that is set, into i->clock. */
static int instance_note_clock(struct instance *i)
{
	char path[INSTANCE_PATH];

	free(i->clock);
	i->clock = NULL;
	return undo_read(i->undo, instance_file(i, path, "trace_clock"), &i->clock);
}

int instance_join(struct instance *i)
{
	const struct buffer_plan *b = i->buffer;
	char path[INSTANCE_PATH];
	int ret = undo_save(i->undo, instance_file(i, path, "tracing_on"));

	/* each event that is switched changes it */
	ret = ret ?: undo_keep_list(i->undo, instance_file(i, path, "set_event"));
	if (ret) {
		instance_complain(i, LOG_ERROR, path, "", ret, NULL);
		return ret;
	} /* these would clear the buffer, or change it for the program that switched it on */
	if (b->tracer || b->size_kb || b->subbuf_kb || b->cpumask || b->options.n || b->funcs.n ||
	    b->notrace.n || b->graph.n || b->max_graph_depth >= 0)
		log_warn(i->o.log, "%s%sthe buffer runs already: of what was asked only its events are added",
			 b->name, *b->name ? ": " : "");
	return instance_note_clock(i) ?: instance_setup_events(i);
}

#define FUNCTIONS_MAX (64u << 20)

int instance_match_functions(int tracing_dirfd, const char *pattern, struct buf *out)
{
	struct strlist lines = { 0 };
	size_t before = out->len;
	regex_t re;
	int ret;

	if (regcomp(&re, pattern, REG_ICASE | REG_NOSUB))
		return -EINVAL;
	ret = read_lines_at(tracing_dirfd, "available_filter_functions", FUNCTIONS_MAX, &lines);
	for (size_t i = 0; i < lines.n && !ret; i++) {
		char *mod = strstr(lines.v[i], " [");

		if (mod)
			*mod = 0;
		if (regexec(&re, lines.v[i], 0, NULL, 0))
			continue;
		buf_addstr(out, lines.v[i]);
		if (mod)
			buf_printf(out, ":mod:%.*s", (int)strlen(mod + 2) - 1, mod + 2);
		buf_addstr(out, "\n");
	}
	strlist_release(&lines);
	regfree(&re);
	return ret || out->len > before ? ret : -ENOENT;
}

/* Earlier events must not be recorded, and earlier settings must not narrow the recording. */
static int setup_quiet(struct instance *i)
{
	static const char *const lists[] = { "set_event", "set_event_pid", "set_event_notrace_pid" };
	char trace[INSTANCE_PATH];
	/* also where it is 0: the start writes 1 without the journal */
	int ret = undo_save(i->undo, instance_file(i, trace, "tracing_on"));

	if (ret)
		instance_complain(i, LOG_ERROR, trace, "0", ret, NULL);
	ret = ret ?: instance_put_file(i, "tracing_on", "0");
	for (size_t n = 0; !ret && n < ARRAY_SIZE(lists); n++)
		ret = instance_put_list(i, lists[n], "");
	ret = ret ?: instance_put_file(i, "current_tracer", "nop");
	if (ret)
		return ret;
	ret = undo_poke(i->undo, instance_file(i, trace, "trace"), "");
	return ret ? log_fail(i->o.log, ret, "cannot clear '%s': %s%s", trace, strerror(-ret),
			      instance_hint(ret))
		   : 0;
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
	if (!ret && i->buffer->subbuf_kb)
		ret = instance_put_number(i, subbuf, i->buffer->subbuf_kb);
	return ret || !i->buffer->size_kb ? ret : instance_put_number(i, size, i->buffer->size_kb);
}

static int setup_cpumask(struct instance *i)
{
	char path[INSTANCE_PATH];
	struct buf mask = { 0 };
	unsigned int cpus, first;
	int ret;

	if (!i->buffer->cpumask)
		return 0;
	if (strcmp(i->buffer->cpumask, "-1"))
		return instance_put_file(i, "tracing_cpumask", i->buffer->cpumask);
	ret = tracefs_cpus(undo_dirfd(i->undo), instance_file(i, path, "per_cpu"), &cpus);
	if (ret)
		return ret;
	/* "3,ffffffff" for 34 CPUs */
	first = cpus % 32;
	if (first || !cpus)
		buf_printf(&mask, "%x", (1u << first) - 1);
	for (unsigned int words = cpus / 32; words; words--)
		buf_printf(&mask, "%sffffffff", mask.len ? "," : "");
	ret = buf_str(&mask) ? instance_put_file(i, "tracing_cpumask", buf_str(&mask)) : -ENOMEM;
	buf_release(&mask);
	return ret;
}

/* "x", or "nox" for clearing x; an option's own name may begin with "no". */
static int setup_options(struct instance *i)
{
	const struct strlist *o = &i->buffer->options;
	char path[INSTANCE_PATH];
	int ret = 0;

	/* the kernel's default, which may have been changed */
	if (i->o.plan->ring && instance_has(i, instance_file(i, path, "options/overwrite")))
		ret = instance_put(i, path, "1", NULL);
	for (size_t n = 0; !ret && n < o->n; n++) {
		const char *name = o->v[n], *value = "1";

		instance_file(i, path, "options/%s", name);
		if (!instance_has(i, path) && !strncmp(name, "no", 2)) {
			instance_file(i, path, "options/%s", name + 2);
			value = "0";
		}
		if (!strchr(name, '/') && instance_has(i, path))
			ret = instance_put(i, path, value, NULL);
		else
			ret = log_fail(i->o.log, -ENOENT, "there is no option '%s' for %s%s in this kernel",
				       name, *i->buffer->name ? "the buffer " : "the top buffer",
				       i->buffer->name);
	}
	return ret;
}

/*
 * Refused filters have been reported by then, so a log that was empty is emptied. Earlier entries
 * cannot be restored.
 */
static bool empty_error_log(struct instance *i, bool clear)
{
	struct buf text = { 0 };
	bool empty = instance_read_errors(i, &text) || !text.len;
	char path[INSTANCE_PATH];

	if (clear && !empty)
		undo_poke(i->undo, instance_file(i, path, "error_log"), "");
	buf_release(&text);
	return empty;
}

int instance_setup(struct instance *i)
{
	const char *clock = i->buffer->clock ? i->buffer->clock : i->o.clock;
	bool clean = empty_error_log(i, false);
	char path[INSTANCE_PATH];
	int ret = setup_quiet(i);

	instance_file(i, path, "trace_clock");
	if (!ret && clock)
		ret = instance_put(i, path, clock, path);
	ret = ret ?: instance_note_clock(i) ?: setup_size(i) ?: setup_cpumask(i) ?: setup_options(i);

	/* files of the top directory, whatever the buffer */
	if (!ret && i->o.plan->cmdlines_size)
		ret = instance_put_number(i, "saved_cmdlines_size", i->o.plan->cmdlines_size);
	if (!ret && i->buffer->max_graph_depth >= 0)
		ret = instance_put_number(i, "max_graph_depth", (uint64_t)i->buffer->max_graph_depth);
	ret = ret ?: instance_setup_functions(i) ?: instance_setup_events(i);
	if (clean)
		empty_error_log(i, true);
	return ret;
}
