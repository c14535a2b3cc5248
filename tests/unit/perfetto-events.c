// SPDX-License-Identifier: GPL-2.0-only
/* The table of Perfetto's events, against Perfetto's definition of them (tests/integration/perfetto.proto).
 */
#include "base/array.h"
#include "base/buf.h"
#include "base/files.h"
#include "base/decode/perfetto-events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define NUMBER_MAX 1000

/* "message NAME {" ... "\n}" of the definition. */
static char *message_text(const char *proto, const char *name)
{
	char head[128];
	const char *at;

	snprintf(head, sizeof(head), "\nmessage %s {", name);
	at = strstr(proto, head);
	assert_non_null(at);
	at += strlen(head);
	return *at == '}' ? strdup("") : strndup(at, (size_t)(strstr(at, "\n}") - at));
}

/* The next "optional TYPE NAME = NUMBER;" of a message. */
static bool message_member(const char **at, char type[64], char name[64], unsigned int *number)
{
	const char *p = strstr(*at, "optional ");

	if (!p)
		return false;
	*at = p + 1;
	return sscanf(p, "optional %63s %63s = %u", type, name, number) == 3;
}

static const char *field_type(const struct perfetto_field *f, const char *as)
{
	if (f->kind >= PERFETTO_CHARS)
		return "string";
	if (f->size == 8) /* on the wire both are the same */
		return !strcmp(as, "int64") ? as : "uint64";
	return f->is_signed ? "int32" : "uint32";
}

static void compare_fields(const char *message, const struct perfetto_event *e)
{
	const char *at = message, *fields = e->fields;
	char type[64], name[64];
	struct perfetto_field f;
	unsigned int number;
	size_t n = 0, k = 0;

	for (; perfetto_field_next(&fields, &f); n++)
		;
	for (; message_member(&at, type, name, &number); k++) {
		bool found = false;

		for (fields = e->fields; !found && perfetto_field_next(&fields, &f);)
			found = !strcmp(f.name, name);
		if (!found)
			fail_msg("%s has no %s", e->name, name);
		assert_int_equal(f.number, number);
		assert_string_equal(field_type(&f, type), type);
	}
	assert_int_equal(k, n);
}

static void test_definition(void **state)
{
	struct buf proto = { 0 };
	char type[64], name[64], *events;
	const char *at, *own;
	unsigned int number, n = 0, written = 0;

	assert_int_equal(read_file("tests/integration/perfetto.proto", 1 << 20, &proto), 0);
	events = message_text(buf_str(&proto), "FtraceEvent");
	for (at = events; message_member(&at, type, name, &number);) {
		const struct perfetto_event *e = perfetto_event_numbered(number);
		char *message;

		if (!strncmp(type, "uint", 4) || !strcmp(name, "generic"))
			continue;
		n++;
		assert_non_null(e);
		assert_true(e->written);
		own = !strncmp(name, "hypervisor_", 11) ? name + 11 : name;
		assert_string_equal(e->name, own);
		assert_ptr_equal(perfetto_event_written(e->system, e->name), e);
		message = message_text(buf_str(&proto), type);
		compare_fields(message, e);
		free(message);
	}
	for (number = 1; number < NUMBER_MAX; number++)
		written += perfetto_event_numbered(number) && perfetto_event_numbered(number)->written;
	assert_int_equal(written, n);
	free(events);
	buf_release(&proto);
}

/* Android's first generation has the system hyp; the second has messages of its own for some events. */
static void test_generations(void **state)
{
	assert_int_equal(perfetto_event_written("hyp", "hyp_enter")->number, 476);
	assert_int_equal(perfetto_event_written("hypervisor", "hyp_enter")->number, 588);
	assert_int_equal(perfetto_event_written("hypervisor", "host_ffa_call")->number, 578);
	assert_null(perfetto_event_written("hyp", "vcpu_illegal_trap"));
	assert_null(perfetto_event_written("ipi", "ipi_entry"));
	assert_int_equal(perfetto_event_named("ipi_entry", 9)->number, 21);
	assert_null(perfetto_event_named("ipi_entr", 8));
	assert_null(perfetto_event_numbered(0));
}

static void test_fields(void **state)
{
	const char *fields = "+u64 ip=1;char16 comm=2;s8 v=3;sym f=4;text t=5;rest buf=6";
	static const struct perfetto_field want[] = {
		{ PERFETTO_NUMBER, "ip", 1, 8, false, true }, { PERFETTO_CHARS, "comm", 2, 16, false, false },
		{ PERFETTO_NUMBER, "v", 3, 1, true, false },  { PERFETTO_SYMBOL, "f", 4, 8, false, false },
		{ PERFETTO_TEXT, "t", 5, 0, false, false },   { PERFETTO_REST, "buf", 6, 0, false, false },
	};
	struct perfetto_field f;

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_true(perfetto_field_next(&fields, &f));
		assert_memory_equal(&f, &want[i], sizeof(f));
	}
	assert_false(perfetto_field_next(&fields, &f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_definition),
		cmocka_unit_test(test_generations),
		cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
