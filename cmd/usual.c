// SPDX-License-Identifier: GPL-2.0-only
/* What is recorded when nothing is named: whatever shows guests, host and hypervisor at work. */
#include "usual.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/remote.h"

static int usual_add(struct strlist *words, const char *option, const char *value)
{
	return strlist_add(words, option) ?: strlist_add(words, value);
}

int usual_host(struct strlist *words, int tracing)
{
	static const char *const systems[] = { "kvm", "sched" };
	int ret = strlist_add(words, "record");

	if (!ret && remote_find(tracing))
		ret = usual_add(words, "-B", REMOTE_HYP);
	for (size_t i = 0; i < ARRAY_SIZE(systems) && !ret; i++) {
		char path[32];

		snprintf(path, sizeof(path), "events/%s", systems[i]);
		if (file_there(tracing, path))
			ret = usual_add(words, "-e", systems[i]);
	}
	return ret;
}

/* A name that -A would take for something else, or that is none, is left out. */
static char *usual_address(const struct guest *g)
{
	const char *name = g->name && *g->name && !strpbrk(g->name, "@:/ \t\n") ? g->name : "";
	const char *at = *name ? "@" : "";

	if (g->uds)
		return str_printf("%s%sunix:%s", name, at, g->uds);
	return str_printf("%s%s%u", name, at, g->cid);
}

int usual_guest(struct strlist *words, const struct guest *g)
{
	char *address = usual_address(g);
	int ret = address ? usual_add(words, "-A", address) : -ENOMEM;

	free(address);
	return ret ?: usual_add(words, "-e", "sched") ?: usual_add(words, "-e", "irq");
}
