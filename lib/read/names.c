// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of tasks by pid, as libtraceevent knows them. */
#include "read/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct name {
	int pid;
	const char *comm; /* libtraceevent's; NULL: a free place */
};

void names_init(struct names *n, struct tep_handle *tep)
{
	*n = (struct names){ .tep = tep };
}

void names_release(struct names *n)
{
	free(n->v);
	*n = (struct names){ 0 };
}

static struct name *name_place(const struct names *n, int pid)
{
	size_t i = ((uint32_t)pid * 2654435761u) >> 7 & (n->room - 1);

	while (n->v[i].comm && n->v[i].pid != pid)
		i = (i + 1) & (n->room - 1);
	return &n->v[i];
}

static bool names_grow(struct names *n)
{
	struct names more = { .tep = n->tep, .room = n->room ? 2 * n->room : 256, .n = n->n };

	more.v = calloc(more.room, sizeof(*more.v));
	if (!more.v)
		return false;
	for (size_t i = 0; i < n->room; i++)
		if (n->v[i].comm)
			*name_place(&more, n->v[i].pid) = n->v[i];
	free(n->v);
	*n = more;
	return true;
}

/* What libtraceevent says of a pid that is not here; once it knows a name, that stays. */
static const char *name_learn(struct names *n, int pid)
{
	const char *comm = tep_data_comm_from_pid(n->tep, pid);

	/* so it calls those that it does not know; some may be called so */
	if (!strcmp(comm, "<...>") && !tep_is_pid_registered(n->tep, pid))
		return NULL;
	if (n->n * 2 < n->room || names_grow(n)) {
		*name_place(n, pid) = (struct name){ pid, comm };
		n->n++;
	}
	return comm;
}

const char *names_find(struct names *n, int pid)
{
	struct name *at = n->room ? name_place(n, pid) : NULL;

	return at && at->comm ? at->comm : name_learn(n, pid);
}
