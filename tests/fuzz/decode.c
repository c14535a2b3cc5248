// SPDX-License-Identifier: LGPL-2.1-or-later
/* The decode tables with any number, their parsers with any text: the first byte chooses. */
#include <stdlib.h>
#include <string.h>

#include "base/decode/esr.h"
#include "base/decode/id-table.h"
#include "base/decode/mark-lines.h"
#include "base/array.h"
#include "base/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void numbers(const uint8_t *data, size_t size)
{
	char text[ESR_TEXT_MAX];
	struct cursor c = cursor_at(data, size);
	uint64_t n = cursor_u64(&c);

	if (strlen(esr_text(n, text, sizeof(text))) >= sizeof(text) - 1)
		abort();
	if (strlen(smccc_text((uint32_t)n, text, SMCCC_TEXT_MAX)) >= SMCCC_TEXT_MAX - 1)
		abort();
	kvm_exit_arm_name((uint32_t)n);
	ffa_error_name((int)n);
}

static void hcalls(const uint8_t *data, size_t size)
{
	struct id_table h;
	unsigned int line;
	uint32_t id = 0;

	if (hcall_names_parse(data, size, &h, &line))
		return;
	while (!hcall_name(&h, id)) /* or there would be none */
		if (++id > UINT16_MAX)
			abort();
	id_table_release(&h);
}

static void marker(const uint8_t *data, size_t size)
{
	const char *line = (const char *)data;
	struct mark_event e;
	struct crosvm_line l;
	struct crosvm_part expr, value;

	if (crosvm_line_parse(line, size, &l))
		while (crosvm_arg(&l.args, &expr, &value))
			if (expr.p < line || value.p + value.len > line + size)
				abort();
	if (mark_event_parse(line, size, &e) && (!e.n_args || e.n_args > MARK_ARGS_MAX))
		abort();
}

static void description(const uint8_t *data, size_t size)
{
	struct mark_event e = { .n_args = MARK_ARGS_MAX };
	struct mark_desc *d;
	struct buf out = { 0 };
	unsigned int line;

	if (mark_desc_parse(data, size, &d, &line))
		return;
	for (e.arg[0] = 0; e.arg[0] < 16; e.arg[0]++) {
		for (size_t i = 1; i < MARK_ARGS_MAX; i++)
			e.arg[i] = e.arg[0] * 0x8f0f0f0f0f0f0f0f;
		mark_event_text(d, &e, &out);
	}
	buf_release(&out);
	mark_desc_free(d);
}

static void hypervisor(const uint8_t *data, size_t size)
{
	static const uint64_t args[] = { 1, UINT64_MAX, 'c' };
	struct id_table f;
	struct symbols s;
	struct buf out = { 0 };
	unsigned int line;
	uint64_t offset;

	if (!symbols_parse(data, size, &s)) {
		symbols_find(&s, 0x1000, &offset);
		symbols_find(&s, UINT64_MAX, &offset);
		symbols_release(&s);
	}
	if (hyp_formats_parse(data, size, &f, &line))
		return;
	for (uint64_t id = 0; id < 16; id++)
		if (id_table_get(&f, id))
			hyp_format_print(id_table_get(&f, id), args, ARRAY_SIZE(args), &out);
	buf_release(&out);
	id_table_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parts[])(const uint8_t *data, size_t size) = {
		numbers, hcalls, marker, description, hypervisor,
	};

	if (size)
		parts[data[0] % ARRAY_SIZE(parts)](data + 1, size - 1);
	return 0;
}
