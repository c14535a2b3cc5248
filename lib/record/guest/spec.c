// SPDX-License-Identifier: LGPL-2.1-or-later
/* The argument of -A: taken apart, and completed by what runs here. */
#include "record/guest/guest-priv.h"
#include "base/escape.h"

#include <arpa/inet.h>

void guest_spec_release(struct guest_spec *s)
{
	free(s->name);
	free(s->addr);
	*s = (struct guest_spec){ 0 };
}

static bool all_digits(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

static int set_port(struct guest_spec *s, const char *arg, const char *text, const struct log *log)
{
	uint64_t port;
	/* VMADDR_PORT_ANY is no port */
	uint64_t max = s->kind == GUEST_TCP ? 65535 : UINT32_MAX - 1u;

	if (!all_digits(text) || parse_u64(text, &port) || !port || port > max)
		return log_fail(log, -EINVAL, "guest '%s': '%s' is no port (1 to %llu)", arg, text,
				(unsigned long long)max);
	s->port = (uint32_t)port;
	return 0;
}

bool guest_cid_parse(const char *s, uint32_t *cid)
{
	uint64_t v;

	if (!all_digits(s) || parse_u64(s, &v) || v == GUEST_NO_CID || v >= UINT32_MAX)
		return false;
	*cid = (uint32_t)v;
	return true;
}

static bool is_ipv6(const char *s)
{
	struct in6_addr a;
	char host[64];
	size_t len = strcspn(s, "%"); /* fe80::1%eth0 */

	if (len >= sizeof(host))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)len, s);
	return inet_pton(AF_INET6, host, &a) == 1;
}

/*
 * Finds the port: after the last ':', as in trace-cmd; but an IPv6 address may stand in brackets, or
 * without a port. Cuts the text there; NULL: no port.
 */
static char *cut_port(char *rest)
{
	char *colon = strrchr(rest, ':'), *bracket = *rest == '[' ? strchr(rest, ']') : NULL;

	if (bracket) {
		size_t len = (size_t)(bracket - rest) - 1;

		memmove(rest, rest + 1, len);
		rest[len] = 0;
		return bracket[1] == ':' ? bracket + 2 : bracket[1] ? bracket + 1 : NULL;
	}
	if (!colon)
		return NULL;
	*colon = 0;
	if (strchr(rest, ':') && !is_ipv6(rest)) {
		*colon = ':';
		if (is_ipv6(rest))
			return NULL;
		*colon = 0;
	}
	return colon + 1;
}

/* unix:PATH[:PORT] */
static int parse_unix(struct guest_spec *s, const char *arg, char *path, const struct log *log)
{
	char *colon = strrchr(path, ':');

	s->kind = GUEST_UNIX;
	if (colon && all_digits(colon + 1)) {
		*colon = 0;
		if (set_port(s, arg, colon + 1, log))
			return -EINVAL;
	}
	if (!*path)
		return log_fail(log, -EINVAL, "guest '%s': no path after 'unix:'", arg);
	s->addr = strdup(path);
	if (!s->name)
		s->name = strdup(basename(path));
	return s->addr && s->name ? 0 : -ENOMEM;
}

/* Parses the part after "name@", or all of it: a CID, an address, or a VM's name. */
static int parse_address(struct guest_spec *s, const char *arg, char *rest, const struct log *log)
{
	bool brackets = *rest == '[';
	char *port = cut_port(rest);

	if (!*rest)
		return log_fail(log, -EINVAL, "guest '%s': no %s", arg,
				s->named ? "CID or address after '@'" : "name, CID or address");
	if (!s->name)
		s->name = strdup(rest);
	if (all_digits(rest)) {
		s->kind = GUEST_VSOCK;
		if (!guest_cid_parse(rest, &s->cid))
			return log_fail(log, -EINVAL, "guest '%s': %s is no guest's CID", arg, rest);
	} else if ((brackets || strchr(rest, ':')) && !is_ipv6(rest)) {
		return log_fail(log, -EINVAL, "guest '%s': '%s' is no address", arg, rest);
	} else if (s->named || strpbrk(rest, ".:")) {
		s->kind = GUEST_TCP;
		s->addr = strdup(rest);
	} else {
		s->kind = GUEST_BY_NAME;
	}
	if (!s->name || (s->kind == GUEST_TCP && !s->addr))
		return -ENOMEM;
	return port ? set_port(s, arg, port, log) : 0;
}

int guest_spec_parse(struct guest_spec *out, const char *arg, const struct log *log)
{
	char *text = strdup(arg), *unix_at, *at, *rest;
	int ret = 0;

	*out = (struct guest_spec){ .port = GUEST_PORT };
	if (!text)
		return -ENOMEM;
	unix_at = !strncmp(text, "unix:", 5) ? text : strstr(text, "@unix:");
	at = unix_at == text ? NULL : unix_at ? unix_at : strrchr(text, '@');
	rest = at ? at + 1 : text;
	if (at) {
		*at = 0;
		out->named = true;
		ret = str_take(&out->name, strdup(text));
	}
	ret = ret ?: unix_at ? parse_unix(out, arg, rest + 5, log) : parse_address(out, arg, rest, log);
	if (!ret && !name_fits_file(out->name))
		ret = log_fail(log, -EINVAL, "guest '%s': %s", arg,
			       !*out->name ? "the name is empty"
					   : "the name becomes a file's name: no '/', no leading '.' or '-', "
					     "no control characters, at most 200 bytes");
	free(text);
	if (ret)
		guest_spec_release(out);
	return ret;
}

int guest_spec_resolve(struct guest_spec *s, const struct guests *all, struct guest **vm,
		       const struct log *log)
{
	*vm = NULL;
	for (size_t i = 0; i < all->n && !*vm; i++) {
		struct guest *g = &all->v[i];

		if (s->kind == GUEST_VSOCK  ? !g->uds && g->cid == s->cid
		    : s->kind == GUEST_UNIX ? g->uds && !strcmp(g->uds, s->addr)
					    : g->name && !strcmp(g->name, s->name))
			*vm = g;
	}
	if (s->kind == GUEST_BY_NAME && !*vm) {
		struct buf have = { 0 };

		for (size_t i = 0; i < all->n; i++)
			if (all->v[i].name)
				buf_printf(&have, "%s%s", have.len ? ", " : "", all->v[i].name);
		if (have.len)
			log_err(log, "no VM is named '%s' here; there are: %s (or give %s@CID)", s->name,
				buf_str(&have), s->name);
		else
			log_err(log, "no VM is named '%s' here: give %s@CID (hyptrace list --guests)",
				s->name, s->name);
		buf_release(&have);
		return -ENOENT;
	}
	if (!*vm)
		return 0;
	/* "vm.example" looks like an address, but may be a VM's name */
	if (s->kind == GUEST_BY_NAME || (s->kind == GUEST_TCP && !s->named)) {
		/* The address of a VM that was named. */
		if ((*vm)->uds) {
			s->kind = GUEST_UNIX;
			return str_take(&s->addr, strdup((*vm)->uds));
		}
		if (!(*vm)->cid)
			return log_fail(
				log, -ENXIO,
				"VM '%s' (pid %d) has no vsock device; add one, or give %s@ADDRESS:PORT",
				s->name, (*vm)->pid, s->name);
		s->kind = GUEST_VSOCK;
		s->cid = (*vm)->cid;
		return 0;
	}
	/* A VM's name may stand for its address in a file's name, if it is fit for one. */
	if (s->named || !(*vm)->name || !name_fits_file((*vm)->name))
		return 0;
	return str_take(&s->name, strdup((*vm)->name));
}
