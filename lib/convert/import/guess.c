// SPDX-License-Identifier: LGPL-2.1-or-later
/* Recognises files that can be imported, by their first bytes. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "convert/import/import.h"
#include "convert/import/qemu-priv.h"
#include "base/cursor.h"

/* "12@1763692800.123456:name", or "2026-11-21T02:23:57.441296Z name". */
static bool guess_qemu_line(const char *line)
{
	unsigned int n[6];
	char end;

	return (sscanf(line, "%u@%u.%u%c", &n[0], &n[1], &n[2], &end) == 4 && end == ':') ||
	       (sscanf(line, "%4u-%2u-%2uT%2u:%2u:%2u%c", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &end) ==
			7 &&
		end == '.');
}

/* "[002] 29.508246: hyp_enter", as tracefs prints the hypervisor's records, after lines that begin with #. */
static bool guess_hyp_line(const char *line)
{
	unsigned int n[3];
	char end;

	while (*line == '#' && strchr(line, '\n'))
		line = strchr(line, '\n') + 1;
	line += strcspn(line, "[\n");
	return sscanf(line, "[%u] %u.%u%c", &n[0], &n[1], &n[2], &end) == 4 && end == ':' &&
	       strstr(line, ": hyp_");
}

/* Field 1 of a Trace, a packet, begins with a field of its own. */
static bool guess_perfetto(const uint8_t *data, size_t len)
{
	size_t i = 1;

	while (i < len && i < 5 && data[i] & 0x80)
		i++;
	return len > 2 && data[0] == 0x0a && ++i < len && data[i] >> 3 && strchr("\x01\x02\x05", data[i] & 7);
}

const char *import_guess(const void *data, size_t len)
{
	struct cursor c = cursor_at(data, len);
	char text[1025];
	size_t n = len < sizeof(text) - 1 ? len : sizeof(text) - 1;

	if (cursor_u64(&c) == SIMPLE_HEADER && cursor_u64(&c) == SIMPLE_MAGIC && !c.bad)
		return "qemu-log";
	memcpy(text, data, n);
	text[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (!isprint((unsigned char)text[i]) && !isspace((unsigned char)text[i]))
			return guess_perfetto(data, len) ? "perfetto" : NULL;
	return guess_qemu_line(text) ? "qemu-log" : guess_hyp_line(text) ? "hyp" : NULL;
}
