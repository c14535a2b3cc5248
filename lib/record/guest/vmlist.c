// SPDX-License-Identifier: LGPL-2.1-or-later
/* Android's `vm list`: run, and its output read. */
#include "record/guest/guest-priv.h"

#include "base/program.h"
#include "base/cursor.h"

#define VM_TOOL	    "/apex/com.android.virt/bin/vm"
#define VM_LIST_MS  5000 /* a busy phone takes its time */
#define VM_LIST_MAX (1u << 20)

/*
 * Rust's pretty-debug ("{:#?}"), of which this much is read:
 *
 *   Running VMs: [
 *       VirtualMachineDebugInfo {
 *           name: "microdroid",
 *           cid: 2048,
 *           temporaryDirectory: "/data/misc/virtualizationservice/2048",
 *           hostConsoleName: Some("/dev/pts/1"),
 *       },
 *   ]
 *
 * Fields come and go with Android's versions, so only `name` and `cid` of the
 * struct itself are taken and everything else is stepped over.
 */

/* \u{7f} */
static void unicode_escape(struct cursor *c, struct buf *out)
{
	uint32_t u = 0;

	c->bad |= !cursor_accept(c, '{');
	while (!c->bad && !cursor_accept(c, '}')) {
		int d = hex_value(cursor_u8(c));

		u = u << 4 | ((unsigned int)d & 0xf);
		c->bad |= d < 0 || u > 0x10ffff;
	}
	if (!c->bad && out)
		buf_add_utf8(out, u);
}

/* A quoted string; into out, unless that is NULL. */
static void quoted(struct cursor *c, struct buf *out)
{
	static const char letter[] = "nrt0", meant[] = "\n\r\t";

	cursor_u8(c);
	while (!c->bad && !cursor_accept(c, '"')) {
		uint8_t ch = cursor_u8(c);

		if (ch == '\\') {
			const char *at;

			if (cursor_accept(c, 'u')) {
				unicode_escape(c, out);
				continue;
			}
			ch = cursor_u8(c);
			at = ch ? strchr(letter, ch) : NULL;
			ch = at ? (uint8_t)meant[at - letter] : ch;
		}
		if (out && !c->bad)
			buf_add(out, &ch, 1);
	}
}

/* Steps over a value up to the ',' or bracket that ends it. */
static void skip_value(struct cursor *c)
{
	unsigned int depth = 0;
	int ch;

	while ((ch = cursor_peek(c)) >= 0) {
		if (ch == '"') {
			quoted(c, NULL);
			continue;
		}
		if (ch == '{' || ch == '[' || ch == '(')
			depth++;
		if (!depth && (ch == ',' || ch == '}' || ch == ']' || ch == ')'))
			return;
		if (ch == '}' || ch == ']' || ch == ')')
			depth--;
		c->p++;
	}
	c->bad = true;
}

/* Between fields: blanks and commas. */
static void skip_between(struct cursor *c)
{
	do
		cursor_blanks(c);
	while (cursor_accept(c, ','));
}

static bool rust_word(int ch)
{
	return ch == '_' || (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

/* NAME: VALUE. False: something else. */
static bool vm_field(struct cursor *c, struct guest *vm)
{
	const char *name = (const char *)c->p;
	struct buf text = { 0 };
	uint32_t cid = 0;
	size_t len;

	while (rust_word(cursor_peek(c)))
		c->p++;
	len = (size_t)((const char *)c->p - name);
	if (!len || !cursor_accept(c, ':')) {
		c->bad = true;
		return false;
	}
	skip_between(c);
	if (len == 4 && !memcmp(name, "name", 4) && cursor_peek(c) == '"') {
		quoted(c, &text);
		if (!vm->name && text.len && buf_str(&text) && !memchr(text.data, 0, text.len))
			vm->name = strdup((char *)text.data);
	} else if (len == 3 && !memcmp(name, "cid", 3)) {
		/* an i32 in AIDL: CIDs above 2^31 come out negative, and none are given */
		while (cursor_peek(c) >= '0' && cursor_peek(c) <= '9')
			buf_add(&text, c->p++, 1);
		if (text.len && buf_str(&text) && guest_cid_parse((char *)text.data, &cid))
			vm->cid = cid;
	}
	buf_release(&text);
	skip_value(c);
	return !c->bad;
}

int guest_vm_list_parse(struct guests *g, const char *text, size_t len)
{
	/* skips text before the list: a title, warnings of the tool */
	const char *list = len ? memchr(text, '[', len) : NULL;
	struct cursor c = list ? cursor_at(list + 1, len - (size_t)(list + 1 - text)) : cursor_at(text, 0);

	if (!list)
		return len ? -EBADMSG : 0;
	for (;;) {
		int ret = 0;
		struct guest vm = { .vmm = guest_vmm_named("AVF"), .sources = GUEST_FROM_VM_LIST };

		skip_between(&c);
		if (cursor_peek(&c) == ']')
			return 0;
		while (rust_word(cursor_peek(&c)) || cursor_peek(&c) == ' ')
			c.p++;
		if (!cursor_accept(&c, '{'))
			return -EBADMSG;
		do
			skip_between(&c);
		while (cursor_peek(&c) != '}' && vm_field(&c, &vm));
		if (cursor_accept(&c, '}') && vm.cid)
			ret = guests_merge(g, &vm);
		guest_release(&vm);
		if (ret || c.bad)
			return ret ? ret : -EBADMSG;
	}
}

int guests_from_vm_list(struct guests *g, const struct guest_opts *o)
{
	char *tool = str_printf("%s" VM_TOOL, guest_root(o));
	struct buf out = { 0 };
	int ret = 0;

	if (!tool)
		return -ENOMEM;
	if (!access(tool, X_OK)) {
		const char *argv[] = { tool, "list", NULL };

		ret = program_output(argv, &out, VM_LIST_MAX, VM_LIST_MS);
		if (ret >= 0) /* it may fail after its list */
			ret = guest_vm_list_parse(g, (char *)out.data, out.len);
		if (ret)
			log_debug(o ? o->log : NULL, "%s list: %s", tool, strerror(-ret));
	}
	buf_release(&out);
	free(tool);
	return ret == -ENOMEM ? ret : 0;
}
