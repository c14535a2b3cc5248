// SPDX-License-Identifier: LGPL-2.1-or-later
/* What VMMs, their tools and their users write: `vm list`, JSON, XML, command lines. */
#include <stdlib.h>
#include <string.h>

#include "record/guest/guest-priv.h"
#include "base/json.h"
#include "base/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Every VM that is told has a CID, and none is there twice. */
static void vm_list(const char *text, size_t size)
{
	struct guests g = { 0 };

	guest_vm_list_parse(&g, text, size);
	for (size_t i = 0; i < g.n; i++) {
		must(g.v[i].cid && g.v[i].cid != UINT32_MAX && g.v[i].sources == GUEST_FROM_VM_LIST);
		for (size_t k = 0; k < i; k++)
			must(g.v[i].cid != g.v[k].cid);
	}
	guests_release(&g);
}

static void walk(struct json_value v, int depth)
{
	struct json_value item, m;
	uint64_t n;
	size_t at = 0;

	must(depth <= JSON_DEPTH + 1);
	free(json_get_str(v));
	json_get_u64(v, &n);
	json_member(v, "return", &m);
	while (json_item(v, &at, &item)) {
		must(item.p > v.p && item.p + item.len < v.p + v.len);
		walk(item, depth + 1);
	}
}

/* What we write of any bytes, we read again. */
static void write_read(const char *text, size_t size)
{
	struct buf out = { 0 };
	struct json j = { .out = &out };
	struct json_value v;

	json_object(&j);
	json_key(&j, "bytes");
	json_strn(&j, text, size);
	json_object_end(&j);
	must(!json_parse((char *)out.data, out.len, &v));
	must(json_member(v, "bytes", &v));
	buf_release(&out);
}

static void command_lines(const char *text, size_t size)
{
	static const char *const vmms[] = { "other", "QEMU", "Firecracker" };
	struct guest_args rows[4];
	size_t n = guest_vhost_args(text, size, rows, ARRAY_SIZE(rows));

	while (n--)
		guest_args_release(&rows[n]);
	for (size_t i = 0; i < ARRAY_SIZE(vmms); i++) {
		struct guest_args a = { 0 };

		guest_args_parse(&a, guest_vmm_named(vmms[i]), text, size);
		must(a.cid != UINT32_MAX);
		guest_args_release(&a);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct guest_args a = { 0 };
	struct guest g = { 0 };
	struct json_value v;
	char *copy = strndup(text, size);

	vm_list(text, size);
	if (!json_parse(text, size, &v))
		walk(v, 0);
	write_read(text, size);
	guest_config_parse(&a, text, size);
	guest_args_release(&a);
	guest_cpus_fast(&g, -1, text, size, GUEST_HOW_QMP);
	guest_release(&g);
	command_lines(text, size);
	if (copy)
		guest_libvirt_cid(copy);
	free(copy);
	return 0;
}
