// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events of a guest's programs: the calls, and the choice of the way out of the guest. */
#include "guest-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hypertrace_shape hypertrace_shape = { HYPERTRACE_CLIENTS, HYPERTRACE_ARGS };

static const struct hypertrace_way none = { .name = "none" };
static const struct hypertrace_way *way = &none;
static uint64_t *data; /* args of each client, arg1 of no use */

static const struct hypertrace_way *const ways[] = { &hypertrace_ivshmem, &hypertrace_marker,
						     &hypertrace_vmcall, &none };
#define N_WAYS	(sizeof(ways) / sizeof(ways[0]))
#define N_FOUND 2 /* the first so many are tried without being asked for */

static const struct hypertrace_way *way_named(const char *where, const char **at)
{
	for (size_t i = 0; where && i < N_WAYS; i++) {
		size_t len = strlen(ways[i]->name);

		if (strncmp(where, ways[i]->name, len) || (where[len] && where[len] != ':'))
			continue;
		*at = where[len] ? where + len + 1 : NULL;
		return ways[i];
	}
	return NULL;
}

static int way_open(const struct hypertrace_way *w, const char *at)
{
	int ret;

	hypertrace_shape = (struct hypertrace_shape){ HYPERTRACE_CLIENTS, HYPERTRACE_ARGS };
	ret = w->open ? w->open(at) : 0;
	if (!ret)
		way = w;
	return ret;
}

static int way_find(const char *where)
{
	const char *at, *env = getenv("HYPERTRACE");
	const struct hypertrace_way *w = way_named(env && *env ? env : where, &at);
	int ret = -EINVAL;

	if (w)
		return way_open(w, at);
	if (env && *env)
		return -EINVAL;
	for (size_t i = 0; i < N_FOUND && ret; i++)
		ret = way_open(ways[i], NULL);
	return ret;
}

int hypertrace_init(const char *where)
{
	int ret = data ? -EBUSY : way_find(where);

	if (!ret) {
		data = calloc((size_t)hypertrace_shape.clients * hypertrace_shape.args, sizeof(*data));
		if (!data) {
			if (way->close)
				way->close();
			way = &none;
			ret = -ENOMEM;
		}
	}
	if (ret)
		errno = -ret;
	return ret ? -1 : 0;
}

int hypertrace_fini(void)
{
	if (!data) {
		errno = EINVAL;
		return -1;
	}
	if (way->close)
		way->close();
	way = &none;
	free(data);
	data = NULL;
	return 0;
}

uint64_t hypertrace_max_clients(void)
{
	return hypertrace_shape.clients;
}

uint64_t hypertrace_num_args(void)
{
	return hypertrace_shape.args;
}

static uint64_t *client_args(uint64_t client)
{
	return data && client < hypertrace_shape.clients ? data + client * hypertrace_shape.args : NULL;
}

uint64_t *hypertrace_data(uint64_t client)
{
	uint64_t *args = client_args(client);

	return args ? args + 1 : NULL;
}

void hypertrace_emit(uint64_t client, uint64_t arg1)
{
	const uint64_t *kept = client_args(client);
	uint64_t arg[HYPERTRACE_ARGS_LIMIT];

	if (!kept || !way->emit)
		return;
	arg[0] = arg1;
	for (uint32_t i = 1; i < hypertrace_shape.args; i++)
		arg[i] = kept[i];
	way->emit((uint32_t)client, arg);
}

const char *hypertrace_where(void)
{
	return way->name;
}
