// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of the host's hypercalls, out of a kernel's BTF or a text. */
#include "base/decode/id-table.h"
#include "base/cursor.h"
#include "base/strings.h"

#define ID_MAX	      4095
#define NAME_LEN_MAX  127
#define PREFIX	      "__KVM_HOST_SMCCC_FUNC_"
#define ENUM_NAME     "__kvm_host_smccc_func"
#define SMCCC_FUNC_ID 0xc6000000u /* fast, SMC64, vendor hypervisor */

const char *hcall_name(const struct id_table *names, uint32_t id)
{
	if ((id & 0xffff0000) == SMCCC_FUNC_ID)
		id &= 0xffff;
	return id_table_get(names, id);
}

static int hcall_add(struct id_table *names, uint64_t id, const char *name)
{
	size_t len = word_len(name, SIZE_MAX, ".");

	if (id > ID_MAX || !len || len > NAME_LEN_MAX || name[len])
		return -EBADMSG;
	return id_table_set(names, id, name);
}

static int hcall_line(void *names, char *line)
{
	char *number = line + strspn(line, " \t\v\f\r"), *end = number + strcspn(number, " \t");
	char *name = end + strspn(end, " \t");
	uint64_t id;

	if (!*name)
		return -EBADMSG;
	*end = 0;
	return parse_u64(number, &id) ? -EBADMSG : hcall_add(names, id, name);
}

/* BTF: Documentation/bpf/btf.rst */
#define BTF_MAGIC  0xeb9f
#define KIND_ENUM  6
#define KIND_64	   19
#define ENTRY_MASK 0xffff

struct btf {
	struct cursor types;
	const char *strings;
	size_t strings_len;
};

static const char *btf_string(const struct btf *b, uint32_t offset)
{
	if (offset >= b->strings_len)
		return NULL;
	return memchr(b->strings + offset, 0, b->strings_len - offset) ? b->strings + offset : NULL;
}

/* Bytes behind the 12 of a type; SIZE_MAX: a kind that we do not know. */
static size_t btf_tail(unsigned int kind, size_t vlen)
{
	/* INT, ARRAY, STRUCT, UNION, ENUM, ..., FUNC_PROTO, VAR, DATASEC, ..., DECL_TAG */
	static const uint8_t fixed[] = { [1] = 4, [3] = 12, [14] = 4, [17] = 4 };
	static const uint8_t each[] = { [4] = 12, [5] = 12, [6] = 8, [13] = 8, [15] = 12, [19] = 12 };

	if (!kind || kind > KIND_64)
		return SIZE_MAX;
	return (kind < sizeof(fixed) ? fixed[kind] : 0) + vlen * each[kind];
}

/*
 * A function's name without the prefix; NULL for the rest of the enum: MIN_PKVM,
 * PKVM_ONLY and MAX mark borders and have the number of a neighbour.
 */
static const char *function_name(const char *name)
{
	const size_t prefix = strlen(PREFIX);

	if (strncmp(name, PREFIX, prefix))
		return NULL;
	for (const char *p = name + prefix; *p; p++)
		if (islower((unsigned char)*p))
			return name + prefix;
	return NULL;
}

static int add_enum(struct id_table *names, struct btf *b, struct cursor c, size_t vlen, bool wide)
{
	/* 0 is a #define of the kernel, not in the enum */
	int ret = hcall_add(names, 0, "__kvm_hyp_init");

	for (size_t i = 0; i < vlen && !ret; i++) {
		const char *name = btf_string(b, cursor_u32(&c));
		uint64_t value = cursor_u32(&c);

		if (wide)
			value |= (uint64_t)cursor_u32(&c) << 32;
		if (c.bad || !name)
			return -EBADMSG;
		name = function_name(name);
		ret = name ? hcall_add(names, value, name) : 0;
	}
	return ret;
}

static int parse_btf(struct id_table *names, const uint8_t *data, size_t len)
{
	uint32_t header, type_off, type_len, str_off, str_len;
	struct cursor c = cursor_at(data, len);
	struct btf b;

	cursor_u32(&c); /* the magic number, version, flags */
	header = cursor_u32(&c);
	type_off = cursor_u32(&c);
	type_len = cursor_u32(&c);
	str_off = cursor_u32(&c);
	str_len = cursor_u32(&c);
	if (c.bad || header > len || type_off > len - header || type_len > len - header - type_off ||
	    str_off > len - header || str_len > len - header - str_off)
		return -EBADMSG;
	b.types = cursor_at(data + header + type_off, type_len);
	b.strings = (const char *)data + header + str_off;
	b.strings_len = str_len;
	while (cursor_left(&b.types)) {
		uint32_t name_off = cursor_u32(&b.types), info = cursor_u32(&b.types);
		unsigned int kind = info >> 24 & 0x1f;
		size_t vlen = info & ENTRY_MASK, tail = btf_tail(kind, vlen);
		struct cursor entries;
		const char *name;

		cursor_u32(&b.types); /* size or type */
		entries = b.types;
		if (tail == SIZE_MAX || !cursor_take(&b.types, tail) || b.types.bad)
			return -EBADMSG;
		name = btf_string(&b, name_off);
		if ((kind == KIND_ENUM || kind == KIND_64) && name && !strcmp(name, ENUM_NAME))
			return add_enum(names, &b, entries, vlen, kind == KIND_64);
	}
	return -ENOENT;
}

int hcall_names_parse(const void *data, size_t len, struct id_table *out, unsigned int *line)
{
	struct cursor c = cursor_at(data, len);
	int ret;

	*out = (struct id_table){ 0 };
	if (cursor_u16(&c) == BTF_MAGIC)
		ret = parse_btf(out, data, len);
	else
		ret = text_lines(data, len, true, hcall_line, out, line) ?: out->n ? 0 : -EBADMSG;
	if (ret)
		id_table_release(out);
	return ret;
}
