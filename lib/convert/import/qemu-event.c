// SPDX-License-Identifier: LGPL-2.1-or-later
/* QEMU's trace events: those with fields of their own, by its files trace-events; the others are a text. */
#include "convert/import/pftrace-priv.h"
#include "file/wire/hypertrace-ring.h"

#define QEMU_ARGS  10
#define QEMU_FIRST 65536 /* below are Perfetto's numbers */
#define PRINT_ITEM 3	 /* ftrace:print, with its text as value 2 */
#define PRINT_TEXT 2

/*
 * The arguments in their order, by the names that stand before them in a line. A text at the end may be
 * missing: memory_region_ops_* have it since QEMU 6. What events of vCPUs begin with is CPUState's address.
 */
static const struct qemu_kind {
	const char *system, *name;
	struct {
		const char *type, *name;
	} args[QEMU_ARGS];
} qemu_kinds[] = {
/* clang-format off */
#define ARG(type, name) { #type, #name }
/* clang-format on */
#define MEMORY_ARGS                                                                                          \
	ARG(s32, cpu), ARG(u64, mr), ARG(u64, addr), ARG(u64, value), ARG(u32, size), ARG(text, name)
	/* first, and made of memory_region_ops_write */
	{ "hypertrace", "doorbell", { ARG(u32, client), ARG(u32, seq), ARG(s32, vcpu) } },
	/* made of doorbells, as record makes it (record/marks/rings.h) */
	{ "hypertrace",
	  "guest_hypertrace",
	  { ARG(u32, client), ARG(s32, vcpu), ARG(u64, guest_time), ARG(u64, arg1), ARG(u64, arg2),
	    ARG(u64, arg3), ARG(u64, arg4), ARG(text, guest) } },
	{ "qemu", "memory_region_ops_write", { MEMORY_ARGS } },
	{ "qemu", "memory_region_ops_read", { MEMORY_ARGS } },
	{ "qemu", "guest_mem_before_exec", { ARG(u64, cpu), ARG(u64, vaddr), ARG(u32, info) } },
	{ "qemu", "guest_mem_before_trans", { ARG(u64, cpu), ARG(u32, info) } },
	{ "qemu", "guest_cpu_enter", { ARG(u64, cpu) } },
	{ "qemu", "guest_cpu_exit", { ARG(u64, cpu) } },
	{ "qemu", "guest_cpu_reset", { ARG(u64, cpu) } },
	{ "qemu",
	  "guest_user_syscall",
	  { ARG(u64, cpu), ARG(u64, num), ARG(u64, arg1), ARG(u64, arg2), ARG(u64, arg3), ARG(u64, arg4),
	    ARG(u64, arg5), ARG(u64, arg6), ARG(u64, arg7), ARG(u64, arg8) } },
	{ "qemu", "guest_user_syscall_ret", { ARG(u64, cpu), ARG(u64, num), ARG(u64, ret) } },
	/* of the hypertrace patches of 2016, as built by default */
	{ "qemu",
	  "guest_hypertrace",
	  { ARG(u64, cpu), ARG(u64, arg1), ARG(u64, arg2), ARG(u64, arg3), ARG(u64, arg4) } },
	{ "qemu", "kvm_run_exit", { ARG(s32, cpu_index), ARG(u32, reason) } },
	{ "qemu", "virtio_queue_notify", { ARG(u64, vdev), ARG(s32, n), ARG(u64, vq) } },
	{ "qemu", "virtio_notify", { ARG(u64, vdev), ARG(u64, vq) } },
};

enum { KIND_DOORBELL, KIND_MARK, KIND_WRITE };
enum { WRITE_CPU, WRITE_MR, WRITE_ADDR, WRITE_VALUE, WRITE_SIZE, WRITE_NAME };

static size_t kind_args(const struct qemu_kind *k)
{
	size_t n = 0;

	while (n < QEMU_ARGS && k->args[n].name)
		n++;
	return n;
}

static bool is_text_arg(const struct qemu_kind *k, size_t i)
{
	return !strcmp(k->args[i].type, "text");
}

const struct qemu_kind *qemu_kind_of(const char *name, size_t len)
{
	for (size_t i = KIND_WRITE; i < ARRAY_SIZE(qemu_kinds); i++)
		if (strlen(qemu_kinds[i].name) == len && !memcmp(qemu_kinds[i].name, name, len))
			return &qemu_kinds[i];
	return NULL;
}

int qemu_describe(struct pft_source *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(qemu_kinds); i++) {
		const struct qemu_kind *k = &qemu_kinds[i];
		const size_t n = kind_args(k);
		struct buf fields = { 0 }, print = { 0 };
		struct perfetto_event row = { .number = QEMU_FIRST + (uint32_t)i };
		int ret;

		for (size_t a = 0; a < n; a++)
			buf_printf(&fields, "%s %s=%zu;", k->args[a].type, k->args[a].name, a + 1);
		buf_addstr(&print, "\"");
		for (size_t a = 0; a < n; a++)
			buf_printf(&print, "%s%s=%s", a ? " " : "", k->args[a].name,
				   is_text_arg(k, a)	       ? "%s"
				   : k->args[a].type[0] == 's' ? "%d"
				   : k->args[a].type[1] == '3' ? "%u"
							       : "0x%llx");
		buf_addstr(&print, "\"");
		for (size_t a = 0; a < n; a++)
			buf_printf(&print, is_text_arg(k, a) ? ", __get_str(%s)" : ", REC->%s",
				   k->args[a].name);
		row.system = strdup(k->system);
		row.name = strdup(k->name);
		row.fields = buf_str(&fields);
		row.print_fmt = buf_str(&print);
		ret = row.system && row.name && row.fields && row.print_fmt ? 0 : -ENOMEM;
		ret = ret ?: array_push(&s->rows, &s->n_rows, &row, sizeof(row));
		if (ret) {
			pft_row_free(&row);
			return ret;
		}
	}
	return 0;
}

static void skip_gap(struct cursor *c)
{
	while (cursor_peek(c) == ' ' || cursor_peek(c) == ',')
		c->p++;
}

/* %p of glibc, %d, %u, 0x%x: up to a blank or a comma. */
static bool line_number(struct cursor *c, uint64_t *v)
{
	size_t len = 0;
	char text[24];
	bool minus;

	while (len < cursor_left(c) && c->p[len] != ' ' && c->p[len] != ',')
		len++;
	if (len >= sizeof(text))
		return false;
	memcpy(text, cursor_take(c, len) ?: "", len);
	text[len] = '\0';
	minus = text[0] == '-';
	*v = 0;
	if (strcmp(text, "(nil)") && parse_u64(text + minus, v))
		return false;
	*v = minus ? -*v : *v;
	return true;
}

static bool line_text(struct cursor *c, struct pft_value *v)
{
	const uint8_t *end;

	if (!cursor_accept(c, '\''))
		return false;
	end = memchr(c->p, '\'', cursor_left(c));
	if (!end)
		return false;
	v->text = c->p;
	v->len = (size_t)(end - c->p);
	c->p = end + 1;
	return true;
}

/* "cpu 0 mr 0x55d8da19b120 addr 0x1000000c ... name 'ivshmem-mmio'", or with '=' behind each name. */
static bool line_values(const struct qemu_kind *k, struct cursor c, struct pft_value *v)
{
	for (size_t i = 0; i < kind_args(k); i++) {
		skip_gap(&c);
		if (is_text_arg(k, i) && !cursor_left(&c))
			break;
		if (!cursor_word(&c, k->args[i].name) || (!cursor_accept(&c, ' ') && !cursor_accept(&c, '=')))
			return false;
		if (!(is_text_arg(k, i) ? line_text(&c, &v[i]) : line_number(&c, &v[i].v)))
			return false;
	}
	skip_gap(&c);
	return !cursor_left(&c);
}

static bool simple_values(const struct qemu_kind *k, struct cursor c, struct pft_value *v)
{
	for (size_t i = 0; i < kind_args(k); i++) {
		if (!is_text_arg(k, i)) {
			v[i].v = cursor_u64(&c);
		} else if (cursor_left(&c)) {
			v[i].len = cursor_u32(&c);
			v[i].text = cursor_take(&c, v[i].len);
		}
	}
	return !c.bad && !cursor_left(&c);
}

/* BAR 0 of an ivshmem device has 256 bytes, and lies at a multiple of them. */
static bool is_doorbell_write(const struct qemu_kind *k, const struct pft_value *v)
{
	static const char region[] = "ivshmem-mmio";

	return k == &qemu_kinds[KIND_WRITE] && (v[WRITE_ADDR].v & 0xff) == HYPERTRACE_IVSHMEM_DOORBELL &&
	       v[WRITE_SIZE].v == 4 && v[WRITE_NAME].len == strlen(region) &&
	       !memcmp(v[WRITE_NAME].text, region, strlen(region));
}

size_t qemu_values(const struct qemu_event *e, bool simple, struct pft_item *item, struct pft_value *v,
		   struct buf *buf)
{
	const struct qemu_kind *k = qemu_kind_of(e->name, e->name_len);
	struct cursor c = cursor_at(e->args, e->args_len);

	for (size_t i = 0; k && i < kind_args(k); i++)
		v[i] = (struct pft_value){ .number = (uint32_t)i + 1,
					   .is_text = is_text_arg(k, i),
					   .text = (const uint8_t *)"" };
	if (k && (simple ? simple_values(k, c, v) : line_values(k, c, v))) {
		if (is_doorbell_write(k, v)) { /* hypertrace_doorbell() */
			uint64_t value = v[WRITE_VALUE].v, cpu = v[WRITE_CPU].v;

			v[DOORBELL_CLIENT].v = value >> 16 & 0xffff;
			v[DOORBELL_SEQ].v = value & 0xffff;
			v[DOORBELL_VCPU].v = cpu;
			k = &qemu_kinds[KIND_DOORBELL];
		}
		item->number = QEMU_FIRST + (uint32_t)(k - qemu_kinds);
		return kind_args(k);
	}
	buf->len = 0;
	buf_add(buf, e->name, e->name_len);
	/* the simple back end's file does not describe the arguments: their raw words */
	while (simple && cursor_left(&c) >= sizeof(uint64_t))
		buf_printf(buf, " 0x%llx", (unsigned long long)cursor_u64(&c));
	if (simple && cursor_left(&c))
		buf_addstr(buf, " ");
	while (simple && cursor_left(&c))
		buf_printf(buf, "%02x", cursor_u8(&c));
	if (!simple)
		buf_add(buf, e->args, e->args_len);
	item->number = PRINT_ITEM;
	v[0] = (struct pft_value){
		.number = PRINT_TEXT, .is_text = true, .text = buf->data, .len = buf->len
	};
	return !buf_status(buf);
}

size_t qemu_mark_values(const struct ring_event *mark, const char *guest, struct pft_item *item,
			struct pft_value *v)
{
	const struct qemu_kind *k = &qemu_kinds[KIND_MARK];
	uint64_t numbers[QEMU_ARGS] = { v[DOORBELL_CLIENT].v, v[DOORBELL_VCPU].v, mark->time };
	size_t n = kind_args(k);

	memcpy(&numbers[3], mark->arg, sizeof(mark->arg));
	for (size_t i = 0; i < n; i++)
		v[i] = (struct pft_value){ .number = (uint32_t)i + 1, .v = numbers[i] };
	v[n - 1] = (struct pft_value){
		.number = (uint32_t)n, .is_text = true, .text = (const uint8_t *)guest, .len = strlen(guest)
	};
	item->number = QEMU_FIRST + KIND_MARK;
	return n;
}

bool qemu_is_doorbell(const struct pft_item *item)
{
	return item->number == QEMU_FIRST + KIND_DOORBELL;
}
