// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of tasks by pid, as libtraceevent knows them. */
#include "read/tepfile.h"

struct name {
	int pid;
	unsigned int age; /* of libtraceevent's knowledge when it was asked */
	const char *comm; /* libtraceevent's; NULL: it did not know it then */
};

void names_init(struct names *n, struct tep_handle *tep)
{
	*n = (struct names){ .tep = tep, .age = 1 };
}

void names_release(struct names *n)
{
	free(n->v);
	map_release(&n->by_pid);
	*n = (struct names){ 0 };
}

void names_learned(struct names *n)
{
	n->age++;
}

const char *names_ask(struct tep_handle *tep, int pid)
{
	const char *comm = tep_data_comm_from_pid(tep, pid);

	/* libtraceevent's name of tasks that it does not know; some may have that name */
	return strcmp(comm, "<...>") || tep_is_pid_registered(tep, pid) ? comm : NULL;
}

static bool same_pid(const void *names, size_t i, const void *pid)
{
	return ((const struct name *)names)[i].pid == *(const int *)pid;
}

const char *names_find(struct names *n, int pid)
{
	uint32_t hash = map_hash((uint32_t)pid);
	size_t i = map_find(&n->by_pid, hash, same_pid, n->v, &pid);
	struct name found;

	/* a name that is known stays */
	if (i != MAP_NONE && (n->v[i].comm || n->v[i].age == n->age))
		return n->v[i].comm;
	found = (struct name){ pid, n->age, names_ask(n->tep, pid) };
	if (i != MAP_NONE)
		n->v[i] = found;
	else
		map_push(&n->by_pid, hash, &n->v, &n->n, &found,
			 sizeof(found)); /* without memory it is asked again */
	return found.comm;
}
