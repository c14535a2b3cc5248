// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The hypervisor's events: mainline's and Android's of all generations, in the kernel's own words, followed
 * by the meaning of numbers in parentheses. In hyptrace's files their formats have the host's common header,
 * in other tools' captures the hypervisor's own one: fields are found by name.
 */
#include "base/decode/esr.h"
#include "base/decode/id-table.h"
#include "hyp-reason.h"
#include "plugin.h"
#include "base/files.h"

#define FILE_MAX (64u << 20)

enum { OPT_PLAIN, OPT_HCALLS, OPT_SYMBOLS, OPT_SYMBOLS_OFFSET, OPT_PRINTK };

static struct tep_plugin_option options[] = {
	[OPT_PLAIN] = { .name = (char *)"plain",
			.plugin_alias = (char *)"hyp",
			.description = (char *)"the kernel's text alone, without what it means" },
	[OPT_HCALLS] = { .name = (char *)"hcalls",
			 .plugin_alias = (char *)"hyp",
			 .description = (char *)"BTF or 'number name' lines of host_hcall's ids",
			 .value = "" },
	[OPT_SYMBOLS] = { .name = (char *)"symbols",
			  .plugin_alias = (char *)"hyp",
			  .description = (char *)"the hypervisor's symbols as in kallsyms",
			  .value = "" },
	[OPT_SYMBOLS_OFFSET] = { .name = (char *)"symbols_offset",
				 .plugin_alias = (char *)"hyp",
				 .description = (char *)"added to an address before it is looked up",
				 .value = "" },
	[OPT_PRINTK] = { .name = (char *)"printk",
			 .plugin_alias = (char *)"hyp",
			 .description = (char *)"'number format' lines of __hyp_printk's formats",
			 .value = "" },
	{ .name = NULL },
};

/* Files that the options name, read at the first event: options may come after the loader. */
static struct {
	bool read;
	unsigned int users;
	struct id_table hcalls;
	struct symbols symbols;
	uint64_t symbols_offset;
	struct id_table formats;
} files;

static const char *hyp_option(int i)
{
	const char *value = options[i].value;

	return value && *value ? value : NULL;
}

static bool hyp_explain(void)
{
	return !options[OPT_PLAIN].set;
}

static void read_option(int i)
{
	struct buf b = { 0 };
	unsigned int line = 0;
	int ret;

	if (!hyp_option(i))
		return;
	ret = read_file(hyp_option(i), FILE_MAX, &b);
	if (!ret)
		ret = i == OPT_HCALLS	 ? hcall_names_parse(b.data, b.len, &files.hcalls, &line)
		      : i == OPT_SYMBOLS ? symbols_parse(b.data, b.len, &files.symbols)
					 : hyp_formats_parse(b.data, b.len, &files.formats, &line);
	if (ret == -EBADMSG && line)
		plugin_warn("hyp", "cannot use %s %s: line %u is not understood", options[i].name,
			    hyp_option(i), line);
	else if (ret)
		plugin_warn("hyp", "cannot use %s %s: %s", options[i].name, hyp_option(i), errno_text(ret));
	buf_release(&b);
}

static void read_options(void)
{
	const char *offset = hyp_option(OPT_SYMBOLS_OFFSET);
	bool minus = offset && *offset == '-';

	if (files.read)
		return;
	files.read = true;
	read_option(OPT_HCALLS);
	read_option(OPT_SYMBOLS);
	read_option(OPT_PRINTK);
	if (offset && parse_u64(offset + minus, &files.symbols_offset))
		plugin_warn("hyp", "symbols_offset %s: not a number", offset);
	if (minus)
		files.symbols_offset = -files.symbols_offset;
}

/* Android's events have no fields: nothing to print, no warning. */
static int decode_switch(struct trace_seq *s, struct tep_record *record, struct tep_event *event,
			 void *context)
{
	return !event->format.nr_fields ? 0 : decode(s, record, event, context);
}

static void print_hcall(struct trace_seq *s, struct view *v)
{
	uint32_t id = (uint32_t)view_u64(v, "id");
	const char *name;

	read_options();
	name = hcall_name(&files.hcalls, id);
	if (!name)
		name = print_symbol(v->event, "id", id);
	trace_seq_printf(s, "id=%u invalid=%u", id, (unsigned int)view_u64(v, "invalid"));
	if (hyp_explain() && name)
		trace_seq_printf(s, " (%s)", name);
}

static void put_smccc(struct trace_seq *s, uint64_t id)
{
	char text[SMCCC_TEXT_MAX];

	if (hyp_explain())
		trace_seq_printf(s, " (0x%08x %s)", (uint32_t)id,
				 smccc_text((uint32_t)id, text, sizeof(text)));
}

static void print_smc(struct trace_seq *s, struct view *v)
{
	static const char *const flags[] = { "forwarded", "invalid" };
	uint64_t id = view_u64(v, "id");

	trace_seq_printf(s, "id=%" PRIu64, id);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (view_has(v, flags[i]))
			trace_seq_printf(s, " %s=%u", flags[i], (unsigned int)view_u64(v, flags[i]));
	put_smccc(s, id);
}

static void print_mem_abort(struct trace_seq *s, struct view *v)
{
	uint64_t esr = view_u64(v, "esr"), addr = view_u64(v, "addr");
	char text[ESR_TEXT_MAX];

	trace_seq_printf(s, "esr=0x%" PRIx64 " addr=0x%" PRIx64, esr, addr);
	if (hyp_explain()) /* for the host, IPA and PA are the same */
		trace_seq_printf(s, " (%s, ipa 0x%" PRIx64 ")", esr_text(esr, text, sizeof(text)), addr);
}

static void print_illegal_trap(struct trace_seq *s, struct view *v)
{
	uint64_t esr = view_u64(v, "esr");
	char text[ESR_TEXT_MAX];

	trace_seq_printf(s, "esr_el2=%" PRIx64, esr);
	if (hyp_explain())
		trace_seq_printf(s, " (%s)", esr_text(esr, text, sizeof(text)));
}

static void print_ffa_call(struct trace_seq *s, struct view *v)
{
	static const char *const args[] = { "a1", "a2", "a3", "a4" };
	static const char *const fields[] = { "res_a1", "res_a2", "res_a3", "res_a4" };
	uint64_t id = view_u64(v, "func_id");
	int err = (int)view_s64(v, "err");

	trace_seq_printf(s, "ffa_func=0x%" PRIx64, id);
	for (size_t i = 0; i < ARRAY_SIZE(args); i++)
		trace_seq_printf(s, i < 3 ? " %s=0x%" PRIx64 : " %s=%" PRIx64, args[i],
				 view_u64(v, fields[i]));
	trace_seq_printf(s, " handled=%d err=%d", (int)view_s64(v, "handled"), err);
	if (view_has(v, "exit_code"))
		trace_seq_printf(s, " exit_code=0x%" PRIx64, view_u64(v, "exit_code"));
	if (view_has(v, "vm_handle"))
		trace_seq_printf(s, " vm_handle=0x%" PRIx64, view_u64(v, "vm_handle"));
	put_smccc(s, id);
	if (hyp_explain() && ffa_error_name(err))
		trace_seq_printf(s, " (%s)", ffa_error_name(err));
}

static void print_mem_protect(struct trace_seq *s, struct view *v)
{
	trace_seq_printf(s, "count=%" PRIu64 " was=%" PRIu64, view_u64(v, "count"), view_u64(v, "was"));
}

static void print_idmap(struct trace_seq *s, struct view *v)
{
	uint64_t from = view_u64(v, "from"), to = view_u64(v, "to");

	trace_seq_printf(s, "from=0x%" PRIx64 " to=0x%" PRIx64 " prot=0x%x", from, to,
			 (unsigned int)view_u64(v, "prot"));
	if (hyp_explain() && to > from)
		trace_seq_printf(s, " (%" PRIu64 " KiB)", (to - from) / 1024);
}

static void print_idmap_complete(struct trace_seq *s, struct view *v)
{
	uint64_t map = view_u64(v, "map");

	trace_seq_printf(s, "map=%u", (unsigned int)map);
	if (hyp_explain())
		trace_seq_puts(s, map ? " (mapped)" : " (unmapped)");
}

static void print_power_lock(struct trace_seq *s, struct view *v)
{
	trace_seq_printf(s, "vm=%d device=0x%" PRIx64 " lock=%u ret=%d", (int)view_s64(v, "vm"),
			 view_u64(v, "device"), (unsigned int)view_u64(v, "lock"), (int)view_s64(v, "ret"));
	if (hyp_explain())
		view_put_task(s, v, "vm");
}

static void put_symbol(struct trace_seq *s, struct view *v, uint64_t addr)
{
	uint64_t offset = 0;
	const char *name;

	read_options();
	name = symbols_find(&files.symbols, addr + files.symbols_offset, &offset);
	if (!name) {
		name = tep_find_function(v->event->tep, addr);
		offset = addr - tep_find_function_address(v->event->tep, addr);
	}
	if (!name)
		trace_seq_printf(s, "0x%" PRIx64, addr);
	else if (offset)
		trace_seq_printf(s, "%s+0x%" PRIx64, name, offset);
	else
		trace_seq_puts(s, name);
}

static void print_func(struct trace_seq *s, struct view *v)
{
	put_symbol(s, v, view_u64(v, "ip"));
	if (!view_has(v, "parent"))
		return;
	trace_seq_puts(s, " <- ");
	put_symbol(s, v, view_u64(v, "parent"));
}

static void put_message(struct trace_seq *s, uint64_t id, const uint64_t *args, size_t n)
{
	const char *fmt;
	struct buf b = { 0 };

	read_options();
	fmt = id_table_get(&files.formats, id);
	if (fmt) {
		hyp_format_print(fmt, args, n, &b);
		if (buf_str(&b))
			trace_seq_puts(s, buf_str(&b));
		buf_release(&b);
		return;
	}
	trace_seq_printf(s, "fmt_id=%" PRIu64, id);
	for (size_t i = 0; i < n; i++)
		trace_seq_printf(s, "%s0x%" PRIx64, i ? " " : " args=", args[i]);
}

static void print_printk4(struct trace_seq *s, struct view *v)
{
	const uint64_t args[] = { view_u64(v, "a"), view_u64(v, "b"), view_u64(v, "c"), view_u64(v, "d") };

	put_message(s, view_u64(v, "fmt_id"), args, ARRAY_SIZE(args));
}

static void print_printk(struct trace_seq *s, struct view *v)
{
	const uint8_t *data;
	uint64_t args[8];
	size_t len, n = 0;

	view_bytes(v, "args", &data, &len);
	for (; len >= 8 && n < ARRAY_SIZE(args); data += 8, len -= 8)
		args[n++] = tep_read_number(v->event->tep, data, 8);
	if (v->bad)
		trace_seq_puts(s, "[record too short] ");
	put_message(s, view_u64(v, "fmt_id"), args, n);
}

#define SWITCH_ROWS                                                                                          \
	{ "reason=", "reason", EVENT_TEXT_NAME, 64, 0, hyp_reason_name },                                    \
		{ " vcpu=", "vcpu", EVENT_TEXT_SIGNED, 32, 0, NULL },                                        \
	{                                                                                                    \
		"", "vcpu", EVENT_TEXT_TASK, 32, 0, NULL                                                     \
	}

static const struct row_decoder switches[] = {
	{ { "hyp_enter", NULL, { "reason", "vcpu" } }, { SWITCH_ROWS }, &options[OPT_PLAIN] },
	{ { "hyp_exit", NULL, { "reason", "vcpu" } }, { SWITCH_ROWS }, &options[OPT_PLAIN] },
};

static const struct decoder decoders[] = {
	{ "host_hcall", print_hcall, { "id", "invalid" } },
	{ "host_smc", print_smc, { "id" } },
	{ "host_mem_abort", print_mem_abort, { "esr", "addr" } },
	{ "host_ffa_call",
	  print_ffa_call,
	  { "func_id", "res_a1", "res_a2", "res_a3", "res_a4", "handled", "err" } },
	{ "guest_ffa_call",
	  print_ffa_call,
	  { "func_id", "res_a1", "res_a2", "res_a3", "res_a4", "handled", "err" } },
	{ "psci_mem_protect", print_mem_protect, { "count", "was" } },
	{ "iommu_idmap", print_idmap, { "from", "to", "prot" } },
	{ "iommu_idmap_complete", print_idmap_complete, { "map" } },
	{ "vcpu_illegal_trap", print_illegal_trap, { "esr" } },
	{ "power_lock", print_power_lock, { "vm", "device", "lock", "ret" } },
	{ "func", print_func, { "ip" } },
	{ "func_ret", print_func, { "ip" } },
	{ "__hyp_printk", print_printk4, { "fmt_id", "a", "b", "c", "d" } },
	{ "hyp_printk", print_printk, { "fmt_id" } },
};

static const char *const systems[] = { "hypervisor", "hyp" };

enum event_text_answer hyptrace_plugin_text(const struct tep_event *event, const struct event_text **rows,
					    size_t *n)
{
	const struct decoder *d =
		decoder_find(&switches->d, ARRAY_SIZE(switches), sizeof(*switches), event->name);
	enum event_text_answer answer;

	if (d && !event->format.nr_fields)
		return EVENT_TEXT_CALL;
	if (!strcmp(event->name, "power_lock"))
		return EVENT_TEXT_ALONE; /* it names a task, known from an earlier record */
	read_options();			 /* before other threads do */
	if (!d)
		d = decoder_find(decoders, ARRAY_SIZE(decoders), sizeof(*decoders), event->name);
	answer = decoder_text(d, event, rows, n);
	return answer == EVENT_TEXT_CALL && d->print == print_func ? EVENT_TEXT_FUNCTIONS : answer;
}

static void change_all(handler_change *change, struct tep_handle *tep)
{
	for (size_t i = 0; i < ARRAY_SIZE(systems); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(switches); k++)
			change(tep, -1, systems[i], switches[k].d.event, decode_switch, (void *)&switches[k]);
		decoders_change(change, tep, systems[i], decoders, ARRAY_SIZE(decoders));
	}
}

int TEP_PLUGIN_LOADER(struct tep_handle *tep)
{
	options[OPT_PLAIN].set = 0; /* a bare word switches it again for each tep */
	tep_plugin_add_options("hyp", options);
	files.users++;
	change_all(tep_register_event_handler, tep);
	return 0;
}

int TEP_PLUGIN_UNLOADER(struct tep_handle *tep)
{
	tep_plugin_remove_options(options);
	change_all(tep_unregister_event_handler, tep);
	if (--files.users)
		return 0;
	id_table_release(&files.hcalls);
	symbols_release(&files.symbols);
	id_table_release(&files.formats);
	memset(&files, 0, sizeof(files));
	return 0;
}
