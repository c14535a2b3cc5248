// SPDX-License-Identifier: LGPL-2.1-or-later
#include "guest/guest-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VM_TOOL	    "/apex/com.android.virt/bin/vm"
#define VM_LIST_MS  5000 /* a busy phone takes its time */
#define VM_LIST_MAX (1u << 20)

extern char **environ;

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
static int peek(const struct cursor *c)
{
	return c->bad || c->p == c->end ? -1 : *c->p;
}

static void add_utf8(struct buf *out, uint32_t u)
{
	if (!out)
		return;
	if (u < 0x80)
		buf_add(out, &(uint8_t){ (uint8_t)u }, 1);
	else if (u < 0x800)
		buf_add(out, (uint8_t[]){ 0xc0 | u >> 6, 0x80 | (u & 0x3f) }, 2);
	else if (u < 0x10000)
		buf_add(out, (uint8_t[]){ 0xe0 | u >> 12, 0x80 | (u >> 6 & 0x3f), 0x80 | (u & 0x3f) }, 3);
	else
		buf_add(out,
			(uint8_t[]){ 0xf0 | (u >> 18 & 7), 0x80 | (u >> 12 & 0x3f), 0x80 | (u >> 6 & 0x3f),
				     0x80 | (u & 0x3f) },
			4);
}

/* \u{7f} */
static void unicode_escape(struct cursor *c, struct buf *out)
{
	uint32_t u = 0;
	uint8_t ch = cursor_u8(c);

	if (ch != '{')
		c->bad = true;
	while (!c->bad && (ch = cursor_u8(c)) != '}') {
		uint32_t d = ch >= '0' && ch <= '9' ? ch - (uint32_t)'0' : (ch | 0x20u) - 'a' + 10u;

		if (d > 15 || u > 0x10ffff)
			c->bad = true;
		u = u << 4 | (d & 15);
	}
	if (u > 0x10ffff)
		c->bad = true;
	else
		add_utf8(out, u);
}

/* A quoted string; into out, unless that is NULL. */
static void quoted(struct cursor *c, struct buf *out)
{
	static const char letter[] = "nrt0", meant[] = "\n\r\t";
	uint8_t ch;

	c->p++;
	while (!c->bad && (ch = cursor_u8(c)) != '"') {
		if (c->bad)
			return;
		if (ch == '\\') {
			const char *at;

			ch = cursor_u8(c);
			if (ch == 'u') {
				unicode_escape(c, out);
				continue;
			}
			at = ch ? strchr(letter, ch) : NULL;
			if (at)
				ch = (uint8_t)meant[at - letter];
		}
		if (out)
			buf_add(out, &ch, 1);
	}
}

/* Steps over a value up to the ',' or bracket that ends it. */
static void skip_value(struct cursor *c)
{
	unsigned int depth = 0;
	int ch;

	while ((ch = peek(c)) >= 0) {
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

static void blanks(struct cursor *c)
{
	int ch;

	while ((ch = peek(c)) == ' ' || ch == '\n' || ch == '\t' || ch == '\r' || ch == ',')
		c->p++;
}

static bool is_word(int ch)
{
	return ch == '_' || (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

static void field(struct cursor *c, struct guest *vm)
{
	const char *name = (const char *)c->p;
	struct buf text = { 0 };
	uint32_t cid = 0;
	size_t len;

	while (is_word(peek(c)))
		c->p++;
	len = (size_t)((const char *)c->p - name);
	if (!len || cursor_u8(c) != ':') {
		c->bad = true;
		return;
	}
	blanks(c);
	if (len == 4 && !memcmp(name, "name", 4) && peek(c) == '"') {
		quoted(c, &text);
		if (!vm->name && text.len && buf_str(&text) && !memchr(text.data, 0, text.len))
			vm->name = strdup((char *)text.data);
	} else if (len == 3 && !memcmp(name, "cid", 3)) {
		/* an i32 in AIDL: CIDs above 2^31 come out negative, and none are given */
		while (peek(c) >= '0' && peek(c) <= '9')
			buf_add(&text, c->p++, 1);
		if (text.len && buf_str(&text) && guest_cid_parse((char *)text.data, &cid))
			vm->cid = cid;
	}
	buf_release(&text);
	skip_value(c);
}

static int parse_vm(struct guests *g, struct cursor *c)
{
	struct guest vm = { .vmm = GUEST_VMM_AVF, .sources = GUEST_FROM_VM_LIST };
	int ret = 0;

	c->p++;
	blanks(c);
	while (!c->bad && peek(c) != '}') {
		field(c, &vm);
		blanks(c);
	}
	if (!c->bad) {
		c->p++;
		if (vm.cid)
			ret = guests_merge(g, &vm);
	}
	guest_release(&vm);
	return ret;
}

int guest_vm_list_parse(struct guests *g, const char *text, size_t len)
{
	struct cursor c = cursor_at(text, len);
	int ret = 0, ch;

	/* what stands before the list: a title, warnings of the tool */
	while ((ch = peek(&c)) >= 0 && ch != '[')
		c.p++;
	if (ch < 0)
		return len ? -EBADMSG : 0;
	c.p++;
	blanks(&c);
	while (!ret && !c.bad && peek(&c) != ']') {
		while (is_word(peek(&c)) || peek(&c) == ' ')
			c.p++;
		if (peek(&c) != '{')
			return -EBADMSG;
		ret = parse_vm(g, &c);
		blanks(&c);
	}
	return ret ? ret : c.bad ? -EBADMSG : 0;
}

/* ---- running it ---- */

static int spawn_list(const char *tool, pid_t *pid)
{
	char *argv[] = { (char *)tool, (char *)"list", NULL };
	posix_spawn_file_actions_t fa;
	int p[2], ret;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	ret = posix_spawn(pid, tool, &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(p[1]);
	if (!ret)
		return p[0];
	close(p[0]);
	return -ret;
}

/* Reads until its end, or until time or room runs out. */
static int read_output(int fd, struct buf *out)
{
	int64_t deadline = msg_now() + VM_LIST_MS;
	char chunk[4096];
	ssize_t n = 1;

	while (n > 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - msg_now();

		if (left <= 0 || out->len > VM_LIST_MAX)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			buf_add(out, chunk, (size_t)n);
	}
	return n < 0 ? -errno : buf_status(out);
}

static int run_list(const char *tool, struct buf *out)
{
	int fd, ret;
	pid_t pid;

	fd = spawn_list(tool, &pid);
	if (fd < 0)
		return fd;
	ret = read_output(fd, out);
	close(fd);
	if (ret)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ret;
}

int guests_from_vm_list(struct guests *g, const struct guest_opts *o)
{
	char *tool = str_printf("%s" VM_TOOL, guest_root(o));
	struct buf out = { 0 };
	int ret = tool ? 0 : -ENOMEM, asked;

	if (tool && !access(tool, X_OK)) {
		asked = run_list(tool, &out);
		if (!asked)
			asked = guest_vm_list_parse(g, (char *)out.data, out.len);
		if (asked)
			log_debug(o ? o->log : NULL, "%s list: %s", tool, strerror(-asked));
		ret = asked == -ENOMEM ? asked : 0;
	}
	buf_release(&out);
	free(tool);
	return ret;
}
