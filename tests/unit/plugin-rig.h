/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_TEST_PLUGIN_RIG_H
#define HYPTRACE_TEST_PLUGIN_RIG_H

/*
 * libtraceevent with plugins loaded as a tool loads them, and events and records
 * made from a list of fields. Include after cmocka.h.
 */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"

struct rig {
	struct tep_handle *tep;
	struct tep_plugin_list *plugins;
};

/* build/plugins, next to the test's own build/tests/unit. */
static inline const char *rig_plugins(void)
{
	static char path[PATH_MAX + 32];
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(n > 0);
	exe[n] = 0;
	snprintf(path, sizeof(path), "%s/../../plugins", dirname(exe));
	return path;
}

/* Loads from first, libtraceevent's own directory (when stock), and last; NULL: not one. */
static inline void rig_open(struct rig *r, const char *first, bool stock, const char *last)
{
	r->tep = tep_alloc();
	assert_non_null(r->tep);
	tep_set_long_size(r->tep, 8);
	tep_set_page_size(r->tep, 4096);
	unsetenv("TRACEEVENT_PLUGIN_DIR");
	setenv("HOME", "/nonexistent", 1);
	if (!stock)
		tep_set_flag(r->tep, TEP_DISABLE_SYS_PLUGINS);
	if (first)
		assert_int_equal(tep_add_plugin_path(r->tep, (char *)first, TEP_PLUGIN_FIRST), 0);
	if (last)
		assert_int_equal(tep_add_plugin_path(r->tep, (char *)last, TEP_PLUGIN_LAST), 0);
	r->plugins = tep_load_plugins(r->tep);
	assert_non_null(r->plugins);
}

static inline void rig_close(struct rig *r)
{
	tep_unload_plugins(r->plugins, r->tep);
	tep_free(r->tep);
}

/* ---- events -------------------------------------------------------------------- */

#define RIG_FIELDS_MAX 12

struct rig_event {
	const char *sys, *name;
	const char *fields;    /* "unsigned long vcpu_pc; bool is_write" */
	const char *print_fmt; /* NULL: one that shows nothing of ours */
	bool packed;	       /* as the hypervisor's; else aligned as the kernel's */
	bool short_header;     /* the hypervisor's own: a u16 type alone */
	int id;
	/* filled by rig_add */
	size_t offset[RIG_FIELDS_MAX], size[RIG_FIELDS_MAX], n, len;
};

static inline size_t rig_type_size(const char *field)
{
	static const struct {
		const char *type;
		size_t size;
	} types[] = { { "unsigned long", 8 }, { "unsigned int", 4 }, { "unsigned short", 2 },
		      { "__data_loc", 4 },    { "const char *", 8 }, { "struct", 8 },
		      { "__u32", 4 },	      { "__u64", 8 },	     { "pid_t", 4 },
		      { "bool", 1 },	      { "int", 4 },	     { "u8", 1 },
		      { "u16", 2 },	      { "u32", 4 },	     { "u64", 8 },
		      { "s64", 8 },	      { "char", 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strncmp(field, types[i].type, strlen(types[i].type)))
			return types[i].size;
	fail_msg("no size known of '%s'", field);
	return 0;
}

static inline bool rig_signed(const char *field)
{
	return !strncmp(field, "int", 3) || !strncmp(field, "pid_t", 5) || *field == 's';
}

static inline void rig_put_header(struct buf *text, const struct rig_event *e)
{
	buf_printf(text, "name: %s\nID: %d\nformat:\n", e->name, e->id);
	buf_addstr(text, "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n");
	if (!e->short_header)
		buf_addstr(text, "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
				 "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"
				 "\tsigned:0;\n"
				 "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n");
	buf_addstr(text, "\n");
}

/* The text of the format file, and the places of the fields. */
static inline void rig_format(struct rig_event *e, struct buf *text)
{
	char *fields = strdup(e->fields), *save = NULL;
	size_t at = e->short_header ? 2 : 8;

	rig_put_header(text, e);
	e->n = 0;
	for (char *f = strtok_r(fields, ";", &save); f; f = strtok_r(NULL, ";", &save)) {
		size_t size;

		f += strspn(f, " ");
		size = rig_type_size(f);
		if (!e->packed && size)
			at = (at + size - 1) / size * size;
		buf_printf(text, "\tfield:%s;\toffset:%zu;\tsize:%zu;\tsigned:%d;\n", f, at, size,
			   rig_signed(f));
		assert_true(e->n < RIG_FIELDS_MAX);
		e->offset[e->n] = at;
		e->size[e->n++] = size;
		at += size;
	}
	e->len = at;
	buf_printf(text, "\nprint fmt: %s\n", e->print_fmt ? e->print_fmt : "\"FALLBACK\"");
	free(fields);
}

static inline struct tep_event *rig_add(struct rig *r, struct rig_event *e)
{
	struct buf text = { 0 };

	rig_format(e, &text);
	tep_parse_event(r->tep, buf_str(&text), text.len, e->sys);
	buf_release(&text);
	assert_non_null(tep_find_event(r->tep, e->id));
	return tep_find_event(r->tep, e->id);
}

/* A record: the values in the fields' order, then tail (a string's bytes, say). */
static inline void rig_record(const struct rig_event *e, const uint64_t *values, const void *tail,
			      size_t tail_len, struct buf *out)
{
	uint16_t type = (uint16_t)e->id;

	out->len = 0;
	for (size_t i = 0; i < e->len; i++)
		buf_add(out, "", 1);
	memcpy(out->data, &type, sizeof(type));
	for (size_t i = 0; i < e->n; i++)
		memcpy(out->data + e->offset[i], &values[i], e->size[i]);
	if (tail_len)
		buf_add(out, tail, tail_len);
}

/* What a tool prints of it behind the event's name; owned by the next call. */
static inline const char *rig_print(struct rig *r, const void *data, size_t len)
{
	static char out[4096];
	struct tep_record rec = { .data = (void *)data, .size = (int)len };
	struct trace_seq s;

	trace_seq_init(&s);
	tep_print_event(r->tep, &s, &rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	snprintf(out, sizeof(out), "%.*s", (int)s.len, s.buffer);
	trace_seq_destroy(&s);
	return out;
}

#endif
