// SPDX-License-Identifier: GPL-2.0-only
/* Default events of `hyptrace record`: those that show guests, host and hypervisor at work. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "base/array.h"
#include "base/files.h"
#include "record/drain/remote.h"
#include "record/guest/guest.h"

static int defaults_add(struct strlist *words, const char *option, const char *value)
{
	return strlist_add(words, option) ?: strlist_add(words, value);
}

int defaults_host(struct strlist *words, int tracing)
{
	static const char *const systems[] = { "kvm", "sched" };
	int ret = strlist_add(words, "record");

	if (!ret && remote_find(tracing))
		ret = defaults_add(words, "-B", REMOTE_HYP);
	for (size_t i = 0; i < ARRAY_SIZE(systems) && !ret; i++) {
		char path[32];

		snprintf(path, sizeof(path), "events/%s", systems[i]);
		if (file_there(tracing, path))
			ret = defaults_add(words, "-e", systems[i]);
	}
	return ret;
}

int defaults_guest(struct strlist *words, const struct guest *g)
{
	/* a name that -A would take for something else is left out */
	const char *name = g->name && *g->name && !strpbrk(g->name, "@:/ \t\n") ? g->name : "";
	const char *at = *name ? "@" : "";
	char *address =
		g->uds ? str_printf("%s%sunix:%s", name, at, g->uds) : str_printf("%s%s%u", name, at, g->cid);
	int ret = address ? defaults_add(words, "-A", address) : -ENOMEM;

	free(address);
	return ret ?: defaults_add(words, "-e", "sched") ?: defaults_add(words, "-e", "irq");
}
