// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of tasks by pid, as libtraceevent knows them. */
#include "read/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct name {
	int pid;
	unsigned int age; /* when libtraceevent was asked; 0: a free place */
	const char *comm; /* libtraceevent's; NULL: it did not know it then */
};

void names_init(struct names *n, struct tep_handle *tep)
{
	*n = (struct names){ .tep = tep, .age = 1 };
}

void names_release(struct names *n)
{
	free(n->v);
	*n = (struct names){ 0 };
}

static struct name *name_place(const struct names *n, int pid)
{
	size_t i = ((uint32_t)pid * 2654435761u) >> 7 & (n->room - 1);

	while (n->v[i].age && n->v[i].pid != pid)
		i = (i + 1) & (n->room - 1);
	return &n->v[i];
}

static bool names_grow(struct names *n)
{
	struct names more = { .tep = n->tep, .room = n->room ? 2 * n->room : 256, .n = n->n, .age = n->age };

	more.v = calloc(more.room, sizeof(*more.v));
	if (!more.v)
		return false;
	for (size_t i = 0; i < n->room; i++)
		if (n->v[i].age)
			*name_place(&more, n->v[i].pid) = n->v[i];
	free(n->v);
	*n = more;
	return true;
}

void names_learned(struct names *n)
{
	n->age++;
}

/* What libtraceevent says; NULL: it does not know it. */
static const char *name_ask(const struct names *n, int pid)
{
	const char *comm = tep_data_comm_from_pid(n->tep, pid);

	/* so it calls those that it does not know; some may be called so */
	return strcmp(comm, "<...>") || tep_is_pid_registered(n->tep, pid) ? comm : NULL;
}

const char *names_find(struct names *n, int pid)
{
	struct name *at = n->room ? name_place(n, pid) : NULL;
	const char *comm;

	/* once it knows a name, that stays */
	if (at && at->age && (at->comm || at->age == n->age))
		return at->comm;
	comm = name_ask(n, pid);
	if (!at || !at->age) {
		if (n->n * 2 >= n->room && !names_grow(n))
			return comm;
		at = name_place(n, pid);
		n->n++;
	}
	*at = (struct name){ pid, n->age, comm };
	return comm;
}
