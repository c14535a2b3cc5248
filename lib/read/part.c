// SPDX-License-Identifier: LGPL-2.1-or-later
/* Part of recordings' time that a user asks for: its text, and its times in the files. */
#include "read/inputs.h"

#include "base/answer.h"

static int part_parse_end(const char *text, struct part_end *e)
{
	*e = (struct part_end){ .anchor = !*text	 ? PART_OPEN
					  : *text == '+' ? PART_AFTER_BEGIN
					  : *text == '-' ? PART_BEFORE_END
							 : PART_AT };
	if (!*text)
		return 0;
	text += *text == '+' || *text == '-';
	e->has_unit = parse_amount(text, duration_units, 0, &e->ns) == 0;
	/* so many ticks may be more seconds than there are ns */
	if (!e->has_unit && parse_amount(text, duration_units, UNIT_S, &e->ns) == -ERANGE)
		e->ns = UINT64_MAX;
	return e->has_unit ? 0 : parse_amount(text, duration_units, 1, &e->ticks);
}

int part_parse(const char *text, struct time_part *w)
{
	char from[64];
	const char *comma = strchr(text, ',');

	if (!comma || (size_t)(comma - text) >= sizeof(from))
		return -EINVAL;
	snprintf(from, sizeof(from), "%.*s", (int)(comma - text), text);
	return part_parse_end(from, &w->from) || part_parse_end(comma + 1, &w->to) ? -EINVAL : 0;
}

/* Part of a CPU's records. */
struct part_cpu {
	const struct input *in;
	unsigned int cpu;
	uint64_t from, to; /* records at from <= corrected time < to; to 0: all */
	struct page_layout layout;
	struct reader_pages *pages;
};

/* Widens *first and *last by the next records; one: by the next one. */
static int part_cpu_next(const struct part_cpu *c, bool one, uint64_t *first, uint64_t *last,
			 uint64_t *damaged)
{
	const uint8_t *data;
	int ret = 1;

	for (bool done = false; !done && (ret = reader_pages_next(c->pages, &data)) == 1;) {
		struct page_reader page;
		struct page_event ev;
		int more = page_reader_init(&page, &c->layout, data, c->layout.size) ?: 1;

		while (!done && more == 1 && (more = page_next(&page, &ev)) == 1) {
			uint64_t ts = filetime_apply(&c->in->time, c->cpu, ev.ts);

			if (c->to && (ts < c->from || ts >= c->to))
				continue;
			*first = ts < *first ? ts : *first;
			*last = ts > *last ? ts : *last;
			done = one;
		}
		*damaged += more < 0;
	}
	*damaged += ret < 0;
	return ret == -ENOMEM ? ret : 0;
}

int part_extent_cpu(const struct input *in, size_t buffer, size_t cpu, uint64_t from, uint64_t to,
		    uint64_t *first, uint64_t *last, uint64_t *damaged)
{
	const struct reader_info *info = reader_info(in->reader);
	const struct reader_buffer *b = &info->buffers[buffer];
	struct part_cpu c = { in, b->cpus[cpu].cpu, from, to, info->layout, NULL };
	uint64_t met = 1, end = 0;
	int ret = 0;

	c.layout.size = b->page_size;
	/* the first record and the last pages; all pages if these are damaged or have no record */
	for (int all = 0; all < 2 && !ret && (met || !end); all++) {
		c.pages = NULL;
		ret = reader_pages_open(&c.pages, in->reader, buffer, cpu);
		met = ret < 0;
		if (!ret && !all)
			ret = part_cpu_next(&c, true, first, &end, &met);
		end = 0;
		if (!ret && (all || reader_pages_seek(c.pages, READER_LAST) == 1))
			ret = part_cpu_next(&c, false, first, &end, &met);
		reader_pages_close(c.pages);
	}
	*last = end > *last ? end : *last;
	*damaged += met;
	return ret == -ENOMEM ? ret : 0;
}

int part_extent(const struct input *in, size_t n, uint64_t from, uint64_t to, uint64_t *first, uint64_t *last,
		uint64_t *damaged)
{
	int ret = 0;

	*first = UINT64_MAX;
	*last = 0;
	for (size_t i = 0; i < n; i++) {
		const struct reader_info *info = reader_info(in[i].reader);

		for (size_t b = 0; b < info->n_buffers; b++)
			for (size_t c = 0; c < info->buffers[b].n_cpus && !ret; c++)
				ret = part_extent_cpu(&in[i], b, c, from, to, first, last, damaged);
	}
	return ret ?: *first > *last ? -ENODATA : 0;
}

static uint64_t part_time(const struct part_end *e, bool ticks, uint64_t first, uint64_t last, uint64_t open)
{
	uint64_t n = ticks ? e->ticks : e->ns;

	switch (e->anchor) {
	case PART_AT:
		return n;
	case PART_AFTER_BEGIN:
		return first > UINT64_MAX - n ? UINT64_MAX : first + n;
	case PART_BEFORE_END:
		return last > n ? last - n : 0;
	default:
		return open;
	}
}

int part_resolve(const struct time_part *w, struct inputs *in, const struct log *log)
{
	uint64_t first, last, *from = &in->from, *to = &in->to;
	bool ticks = inputs_in_ticks(in);
	const struct answer as_report = { .ticks = ticks };
	char text[2][32];
	int ret = part_extent(in->v, in->n, 0, 0, &first, &last, &in->damaged);

	if (ret && ret != -ENODATA)
		return ret;
	if (in->damaged)
		log_warn(log, "the recording may begin earlier or end later: %llu pages there are damaged",
			 (unsigned long long)in->damaged);
	if (ticks && (w->from.has_unit || w->to.has_unit))
		return log_fail(log, -EINVAL,
				"times of these files are ticks, not seconds: give ticks, or their rate with "
				"--ts2secs HZ");
	*from = part_time(&w->from, ticks, first, last, 0);
	*to = part_time(&w->to, ticks, first, last, UINT64_MAX);
	if (!ret && *from<*to && * from <= last && * to> first)
		return 0;
	if (ret)
		log_err(log, "no records, so no part of their time");
	else
		log_err(log, "%s: the recording is from %s to %s",
			*from >= *to ? "the part of time ends at its begin or earlier"
				     : "no records in this part of time",
			answer_time(&as_report, first, text[0]), answer_time(&as_report, last, text[1]));
	return -EINVAL;
}
