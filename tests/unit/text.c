// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled texts: those of libtraceevent, byte for byte, for every event format of tests/data and of the
 * trace.dat files that are given (usage: text [FILE...]).
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#include "file/dat/format.h"
#include "plugin-rig.h"
#include "read/tepfile.h"
#include "read/text.h"
#include "text-formats.h"
#include "text-judge.h"

static char **files;
static size_t n_files;

/* As a reader loads them: our decoders and stock's plugins. */
static struct plugins *text_plugins(struct tep_handle *tep)
{
	struct plugins *p;

	unsetenv("TRACEEVENT_PLUGIN_DIR");
	setenv("HOME", "/nonexistent", 1);
	assert_int_equal(plugins_load(&p, tep, NULL), 0);
	return p;
}

static void judge_file(struct judge *j, const char *path, bool with_plugins)
{
	struct tep_handle *tep = tep_alloc();
	struct plugins *plugins = with_plugins ? text_plugins(tep) : NULL;
	struct reader *r;
	size_t failed;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || reader_open(&r, fd, NULL))
		fail_msg("cannot read %s", path);
	assert_int_equal(tepfile_load(tep, reader_info(r), &failed, NULL) ?: tepfile_functions(tep), 0);
	for (int i = 0; i < tep_get_events_count(tep); i++) {
		struct tep_event *e = tep_get_event(tep, i);

		if (e->id <= UINT16_MAX && !judge_event(j, e))
			j->wrong++;
	}
	plugins_unload(plugins, tep);
	tepfile_release(tep);
	reader_close(r);
	close(fd);
}

static void test_files(void **state)
{
	struct judge j;

	(void)state;
	judge_init(&j);
	j.verbose = getenv("V") != NULL;
	for (size_t i = 0; i < n_files; i++)
		for (int k = 0; k < 2; k++) {
			size_t compiled = j.compiled, refused = j.refused;

			judge_file(&j, files[i], k);
			print_message("%s%s: %zu new formats compile, %zu do not, %zu differ\n", files[i],
				      k ? ", plugins" : "", j.compiled - compiled, j.refused - refused,
				      j.wrong);
		}
	assert_int_equal(j.wrong, 0);
	judge_release(&j);
}

/* A file's functions are libtraceevent's only once somebody asks for them, and each file has its own. */
static void test_functions(void **state)
{
	static const char one[] = "ffff000000001000 T one\nffff000000002000 T end\n";
	const struct reader_info info = { .page_size = 4096, .kallsyms = { one, sizeof(one) - 1 } };
	const struct reader_info none = { .page_size = 4096 };
	struct tep_handle *asked = tep_alloc(), *other = tep_alloc(), *empty = tep_alloc();
	size_t failed;

	(void)state;
	tep_set_loglevel(TEP_LOG_NONE);
	assert_int_equal(tepfile_load(asked, &info, &failed, NULL), 0);
	assert_int_equal(tepfile_load(other, &info, &failed, NULL), 0);
	assert_int_equal(tepfile_load(empty, &none, &failed, NULL), 0);
	for (int i = 0; i < 2; i++) /* a second call does nothing */
		assert_int_equal(tepfile_functions(asked), 0);
	assert_int_equal(tepfile_functions(empty), 0);
	assert_string_equal(tep_find_function(asked, 0xffff000000001010), "one");
	assert_int_equal(tep_find_function_address(asked, 0xffff000000001010), 0xffff000000001000);
	assert_null(tep_find_function(other, 0xffff000000001010));
	assert_null(tep_find_function(empty, 0xffff000000001010));
	tepfile_release(asked);
	tepfile_release(other);
	tepfile_release(empty);
}

/* ---- made-up formats ------------------------------------------------------------------ */

static void put_fields(struct buf *out, const char *fields)
{
	char *copy = strdup(fields), *save = NULL;
	unsigned int at = 8;

	for (char *f = strtok_r(copy, ";", &save); f; f = strtok_r(NULL, ";", &save)) {
		char *slash = strrchr(f, '/');
		unsigned int size = (unsigned int)atoi(slash + 1);

		*slash = '\0';
		buf_printf(out, "\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", f + strspn(f, " "), at,
			   size, slash[strlen(slash + 1)] == 's');
		at += size;
	}
	free(copy);
}

/* checked: as tepfile_load would give it to libtraceevent. */
static struct tep_event *made_event(struct tep_handle *tep, const char *name, const struct print_case *c,
				    int id, bool checked)
{
	const char *sys = strncmp(name, "hyp", 3) ? "sched" : "hypervisor";
	struct checked_format f;
	struct buf text = { 0 };

	buf_printf(&text,
		   "name: %s\nID: %d\nformat:\n"
		   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		   "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		   "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		   name, id);
	put_fields(&text, c->fields);
	buf_printf(&text, "\nprint fmt: %s\n", c->print_fmt);
	if (!checked) {
		tep_parse_event(tep, buf_str(&text), text.len, sys);
	} else {
		assert_int_equal(format_check(buf_str(&text), text.len, &f), 0);
		if (f.why)
			fail_msg("%s: %s", c->print_fmt, f.why);
		tep_parse_event(tep, (char *)f.text.data, f.text.len, sys);
		checked_format_release(&f);
	}
	buf_release(&text);
	assert_non_null(tep_find_event(tep, id));
	return tep_find_event(tep, id);
}

static struct tep_event *case_event(struct tep_handle *tep, const char *name, const struct print_case *c,
				    int id)
{
	return made_event(tep, name, c, id, true);
}

/* With symbols where judge_number often points, and formats of trace_printk. */
static struct tep_handle *case_tep(void)
{
	struct tep_handle *tep = tep_alloc();
	char symbols[] =
		"ffffffff80000000 T start\nffffffff80000400 t middle\t[module]\nffffffff80001f00 T last\n";

	tep_set_long_size(tep, 8);
	tep_set_page_size(tep, 4096);
	tep_parse_kallsyms(tep, symbols);
	tep_find_function(tep, 0); /* sorts them, before there are threads */
	for (uint64_t i = 0; i < 40; i++)
		tep_register_print_string(tep, "a format of trace_printk\\n", i);
	return tep;
}

static void test_cases(void **state)
{
	struct tep_handle *tep = case_tep();
	struct judge j;

	(void)state;
	judge_init(&j);
	j.verbose = true;
	for (size_t i = 0; i < ARRAY_SIZE(print_cases); i++) {
		struct tep_event *e = case_event(tep, "made_up", &print_cases[i], 100 + (int)i);

		if (e->flags & TEP_EVENT_FL_FAILED)
			print_message("libtraceevent does not read %s\n", print_cases[i].print_fmt);
		if (!judge_event(&j, e))
			fail_msg("%s", print_cases[i].print_fmt);
	}
	print_message("%zu compile, %zu do not\n", j.compiled, j.refused);
	judge_release(&j);
	tep_free(tep);
}

/* ---- what does not compile -------------------------------------------------------------- */

static unsigned long long a_function(struct trace_seq *s, unsigned long long *args)
{
	(void)args;
	trace_seq_puts(s, "a");
	return 1;
}

static void test_refused(void **state)
{
	static const struct {
		struct print_case c;
		const char *why;
	} rows[] = {
		{ { "u32 a/4", "\"%d\", SOME_NAME" }, "the symbol SOME_NAME" },
		{ { "u32 a/4", "\"%*d\", REC->a, 1" }, "%*d without a bound" },
		{ { "u32 a/4; u8 b[8]/8", "\"%s\", __print_hex(REC->b, REC->a)" }, "an array's items" },
		{ { "u8 a[4]/4", "\"%s\", __print_array(REC->a, 4, 1)" }, "an array's items" },
		{ { "__u8 saddr[4]/4", "\"%pI4\", REC->saddr" }, "%pI" },
		{ { "u8 mac[6]/6", "\"%pM\", REC->mac" }, "%pM" },
		{ { "__data_loc u8[] d/4", "\"%*phD\", 5, __get_dynamic_array(d)" }, "%ph" },
		{ { "__data_loc u8[] d/4", "\"%p\", __get_dynamic_array(d)" },
		  "an address in libtraceevent's memory" },
		{ { "u32 a/4", "\"%s\", a_function(REC->a)" }, "a function of a plugin" },
		{ { "u32 a/4", "\"%d\", a_function(REC->a)" }, "a function of a plugin" },
		{ { "u32 a/4", "\"%5-d\", REC->a" }, "%5-d" },
		{ { "u32 a/4", "\"%hld\", REC->a" }, "%hld" },
		{ { "const char * s/8", "\"0x%s\", REC->s" }, "the string at an address" },
	};
	struct tep_handle *tep = case_tep();

	(void)state;
	tep_register_print_function(tep, a_function, TEP_FUNC_ARG_INT, (char *)"a_function", TEP_FUNC_ARG_INT,
				    TEP_FUNC_ARG_VOID);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tep_event *e = made_event(tep, "made_up", &rows[i].c, 100 + (int)i, false);
		struct text_program *p;
		char why[TEXT_WHY_MAX];

		assert_int_equal(e->flags & TEP_EVENT_FL_FAILED, 0);
		assert_int_equal(text_compile(&p, e, why), -ENOTSUP);
		assert_string_equal(why, rows[i].why);
		assert_null(p);
	}
	tep_free(tep);
}

/* ---- plugins ---------------------------------------------------------------------------- */

static const struct print_case switch_case = {
	"char prev_comm[16]/16; pid_t prev_pid/4s; int prev_prio/4s; long prev_state/8s; char "
	"next_comm[16]/16; pid_t next_pid/4s; "
	"int next_prio/4s",
	"\"%s\", REC->prev_comm"
};

static void test_tasks(void **state)
{
	const struct text_task *tasks;
	struct text_program *p;
	char why[TEXT_WHY_MAX];
	struct tep_event *e;
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, true, NULL);
	e = case_event(rig.tep, "sched_switch", &switch_case, 100);
	assert_int_equal(text_compile(&p, e, why), 0);
	assert_int_equal(text_tasks(p, &tasks), 2);
	assert_string_equal(tasks[0].pid->name, "prev_pid");
	assert_string_equal(tasks[0].comm->name, "prev_comm");
	assert_string_equal(tasks[1].pid->name, "next_pid");
	assert_string_equal(tasks[1].comm->name, "next_comm");
	assert_null(text_named(p));
	text_free(p);
	e->flags |= TEP_EVENT_FL_PRINTRAW;
	assert_int_equal(text_compile(&p, e, why), -ENOTSUP);
	assert_string_equal(why, "fields as numbers");
	rig_close(&rig);
}

/*
 * A name that was not known when the record came is not in its text, even if it is by now; nor does a text
 * that is kept of a record stand for another.
 */
static void test_named(void **state)
{
	static const struct print_case c = { "u8 reason/1; int vcpu/4s", "\"%d\", REC->reason" };
	static const struct print_case longer = { "u64 a/8; u64 b/8; u8 last/1", "\"%d\", REC->last" };
	uint8_t long_one[25] = { 102 };
	const uint8_t record[] = { 100, 0, 0, 0, 1, 0, 0, 0, 1, 7, 0, 0, 0 },
		      other[] = { 100, 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0 };
	const char *qemu = "qemu";
	struct text_scratch own;
	struct text_program *p, *q, *r;
	char why[TEXT_WHY_MAX];
	struct buf out = { 0 };
	struct tep_event *e;
	struct tep_handle *tep = case_tep();
	struct plugins *plugins = text_plugins(tep);

	(void)state;
	e = made_event(tep, "hyp_enter", &c, 100, true);
	tep_register_comm(tep, "qemu", 7);
	assert_int_equal(text_scratch_init(&own), 0);
	assert_int_equal(text_compile(&p, e, why), 0);
	assert_string_equal(text_named(p)->name, "vcpu");
	assert_int_equal(text_compile(&q, made_event(tep, "made_up", &c, 101, true), why), 0);
	assert_int_equal(text_compile(&r, made_event(tep, "longer", &longer, 102, true), why), 0);
	for (int i = 0; i < 2; i++) {
		out.len = 0;
		text_print(p, record, sizeof(record), qemu, &own, &out);
		text_print(p, record, sizeof(record), qemu, &own, &out);
		text_print(p, record, sizeof(record), NULL, &own, &out);
		text_print(p, record, sizeof(record) - 1, NULL, &own, &out);
		text_print(p, other, sizeof(other), NULL, &own, &out);
		text_print(q, other, sizeof(other), NULL, &own, &out);
		for (long_one[24] = 2; long_one[24] < 4; long_one[24]++)
			text_print(r, long_one, sizeof(long_one), NULL, &own, &out);
		assert_string_equal(buf_str(&out), "reason=hvc vcpu=7 (qemu)reason=hvc vcpu=7 (qemu)"
						   "reason=hvc vcpu=7[record too short]reason=hvc vcpu=8123");
	}
	text_free(p);
	text_free(q);
	text_free(r);
	text_scratch_release(&own);
	buf_release(&out);
	plugins_unload(plugins, tep);
	tep_free(tep);
}

/* ---- threads ------------------------------------------------------------------------------ */

#define THREADS 4

struct printer {
	struct text_program *const *programs;
	size_t n;
	struct buf out;
};

/* Every program on the same records; alone, and beside others. */
static void *print_many(void *arg)
{
	struct printer *me = arg;
	struct text_scratch own;
	struct judge j;

	judge_init(&j);
	assert_int_equal(text_scratch_init(&own), 0);
	for (int k = 0; k < 200; k++)
		for (size_t i = 0; i < me->n; i++) {
			for (j.len = 0; j.len < 200; j.len++)
				j.rec[j.len] = (uint8_t)(judge_random(&j) & judge_random(&j));
			text_print(me->programs[i], j.rec, j.len, NULL, &own, &me->out);
		}
	text_scratch_release(&own);
	judge_release(&j);
	return NULL;
}

static void test_threads(void **state)
{
	struct text_program *programs[ARRAY_SIZE(print_cases)];
	struct printer v[THREADS + 1];
	struct tep_handle *tep = case_tep();
	pthread_t threads[THREADS];
	char why[TEXT_WHY_MAX];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(print_cases); i++)
		n += !text_compile(&programs[n], case_event(tep, "made_up", &print_cases[i], 100 + (int)i),
				   why);
	for (size_t i = 0; i <= THREADS; i++)
		v[i] = (struct printer){ .programs = programs, .n = n };
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, print_many, &v[i]), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	print_many(&v[THREADS]);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(v[i].out.len, v[THREADS].out.len);
		assert_memory_equal(v[i].out.data, v[THREADS].out.data, v[i].out.len);
		buf_release(&v[i].out);
	}
	buf_release(&v[THREADS].out);
	for (size_t i = 0; i < n; i++)
		text_free(programs[i]);
	tep_free(tep);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),	  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_tasks),	  cmocka_unit_test(test_named),
		cmocka_unit_test(test_threads),	  cmocka_unit_test(test_files),
		cmocka_unit_test(test_functions),
	};
	glob_t found;
	int ret;

	glob("tests/data/*.dat", 0, NULL, &found);
	glob("tests/data/*/*.dat", GLOB_APPEND, NULL, &found);
	files = argc > 1 ? argv + 1 : found.gl_pathv;
	n_files = argc > 1 ? (size_t)argc - 1 : found.gl_pathc;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	globfree(&found);
	return ret;
}
