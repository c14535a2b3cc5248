// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the text of the kernel's histograms. */
#include "record/watch/watch-sums.h"
#include "base/cursor.h"
#include "base/escape.h"

#define STRING_WIDTH 50 /* hist_trigger_print_key() pads texts to that */

static void hist_spaces(struct cursor *c)
{
	while (cursor_accept(c, ' '))
		;
}

static bool hist_number(struct cursor *c, uint64_t *v)
{
	hist_spaces(c);
	return cursor_decimal(c, v);
}

/* Copies a task's name of up to 15 bytes, without the blanks that pad it. */
static void hist_name(const uint8_t *name, char word[HIST_WORD])
{
	size_t len = HIST_WORD - 1, n;

	while (len && name[len - 1] == ' ')
		len--;
	for (size_t i = 0; i < len; i += n) {
		n = utf8_len(name + i, len - i);
		if (n && !escape_control(name + i, len - i) && name[i] != '\n' && name[i] != '\t') {
			memcpy(word + i, name + i, n);
		} else {
			n = 1;
			word[i] = '?';
		}
	}
	word[len] = 0;
	/* kworker/3:1, kworker/u16:2: their numbers change all the time */
	if (!strncmp(word, "kworker/", 8))
		word[7] = 0;
}

static bool hist_key(struct cursor *c, struct hist_entry *e)
{
	const uint8_t *colon = memchr(c->p, ':', cursor_left(c));
	size_t len = colon ? (size_t)(colon - c->p) : 0;
	const uint8_t *name;
	uint64_t log2;

	if (cursor_word(c, "lat: ~ 2^")) {
		if (!hist_number(c, &log2) || log2 > 64)
			return false;
		e->log2 = (int)log2;
		return true;
	}
	if (!len || len >= sizeof(e->key) || *e->key)
		return false;
	memcpy(e->key, cursor_take(c, len), len);
	if (!cursor_word(c, ": "))
		return false;
	if (strcmp(e->key, "by") != 0)
		return hist_number(c, &e->number);
	name = cursor_take(c, STRING_WIDTH);
	if (name)
		hist_name(name, e->word);
	return name;
}

static bool hist_entry_read(struct cursor *c, struct hist_entry *e)
{
	*e = (struct hist_entry){ .log2 = -1 };
	if (!cursor_word(c, "{ pid:") || !hist_number(c, &e->pid))
		return false;
	for (hist_spaces(c); cursor_word(c, ", "); hist_spaces(c))
		if (!hist_key(c, e))
			return false;
	return cursor_word(c, "} hitcount:") && hist_number(c, &e->hits) && cursor_word(c, "  lat:") &&
	       hist_number(c, &e->lat);
}

int hist_text_read(const void *text, size_t len, int (*take)(void *ctx, const struct hist_entry *e),
		   void *ctx, struct hist_totals *totals)
{
	struct cursor c = cursor_at(text, len);
	const char *rest;
	size_t rest_len;
	bool filtered = false;

	do {
		struct hist_entry e;
		uint64_t n;

		if (cursor_peek(&c) == '{') {
			bool good = hist_entry_read(&c, &e);
			int ret;

			e.filtered = filtered;
			ret = good ? take(ctx, &e) : 0;
			if (ret)
				return ret;
			totals->bad += !good;
		} else if (cursor_word(&c, "# trigger info:")) {
			const uint8_t *end = memchr(c.p, '\n', cursor_left(&c));

			filtered = end && memmem(c.p, (size_t)(end - c.p), " if ", 4);
		} else if (cursor_word(&c, "    Entries:") && hist_number(&c, &n)) {
			totals->entries = n > totals->entries ? n : totals->entries;
		} else if (cursor_word(&c, "    Dropped:") && hist_number(&c, &n)) {
			totals->dropped += n;
		}
	} while (cursor_line(&c, &rest, &rest_len));
	return 0;
}
