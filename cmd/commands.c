// SPDX-License-Identifier: GPL-2.0-only
/* The commands of hyptrace. */
#include "cmd.h"

#define COMMAND(n, ...) { .name = #n, .run = cmd_##n, .options = &n##_table, __VA_ARGS__ },
const struct command_row commands[] = {
#ifdef HYPTRACE_STATIC
	{ .name = "agent",
	  .run = cmd_agent,
	  .summary = "hyptrace-agent, which lets recorders trace this guest" },
#endif
#include "commands.h"
};
const size_t commands_n = ARRAY_SIZE(commands);

const struct command_row *command_find(const char *name)
{
	for (size_t i = 0; i < commands_n; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}
