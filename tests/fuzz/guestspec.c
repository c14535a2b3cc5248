// SPDX-License-Identifier: LGPL-2.1-or-later
/* The argument of -A: what is taken has a name fit for a file, an address and a port. */
#include <stdlib.h>
#include <string.h>

#include "record/guest/guest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check(const struct guest_spec *s)
{
	must(s->name && *s->name && *s->name != '.' && !strpbrk(s->name, "/\n"));
	must(s->port && s->port != UINT32_MAX);
	must((s->kind == GUEST_VSOCK) == (s->cid != GUEST_NO_CID));
	must((s->kind == GUEST_TCP || s->kind == GUEST_UNIX) == (s->addr && *s->addr));
	must(s->kind != GUEST_TCP || s->port <= 65535);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct guest vm = { .name = (char *)(uintptr_t) "web", .cid = 5 };
	const struct guests all = { &vm, 1 };
	char *arg = strndup((const char *)data, size);
	struct guest *found;
	struct guest_spec s;

	if (arg && !guest_spec_parse(&s, arg, NULL)) {
		check(&s);
		if (!guest_spec_resolve(&s, &all, &found, NULL)) {
			check(&s);
			must(s.kind != GUEST_BY_NAME);
		}
		guest_spec_release(&s);
	}
	free(arg);
	return 0;
}
