// SPDX-License-Identifier: LGPL-2.1-or-later
/* The conversions in the string of a print format. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "file/dat/print-format.h"

#define WIDTH_MAX      4096
#define CONVERSION_MAX 30 /* bytes: libtraceevent's room for one */

struct conversions {
	const char *s, *end;
	bool *widths;
	size_t n, max;
};

static int conversion_takes(struct conversions *c, bool width)
{
	if (c->n == c->max)
		return -E2BIG;
	c->widths[c->n++] = width;
	return 0;
}

/* At a digit: steps over the number. */
static int conversion_width(struct conversions *c)
{
	unsigned int v = 0;

	for (; c->s < c->end && isdigit((unsigned char)*c->s); c->s++) {
		v = v * 10 + (unsigned int)(*c->s - '0');
		if (v > WIDTH_MAX)
			return -E2BIG;
	}
	return 0;
}

/*
 * Parses the rest after '%'. Letters that are no conversion to libtraceevent take no argument: it
 * shows them as ">c<".
 */
static int conversion(struct conversions *c)
{
	const char *start = c->s;
	bool is_long = false;
	int ret = 0;

	while (c->s < c->end && !ret) {
		if (c->s - start >= CONVERSION_MAX)
			return -E2BIG;
		if (isdigit((unsigned char)*c->s)) {
			ret = conversion_width(c);
			continue;
		}
		if (*c->s == '*')
			ret = conversion_takes(c, true);
		else if (!strchr("#hlLzZ.-", *c->s))
			break;
		is_long |= strchr("lLzZ", *c->s) != NULL;
		c->s++;
	}
	if (ret || c->s == c->end)
		return ret ? ret : -EINVAL; /* libtraceevent looks for the rest beyond the end */
	if (*c->s == 's' && is_long)
		return -EINVAL; /* a string of wide characters to printf */
	return strchr("pdiuxXos", *c->s++) ? conversion_takes(c, false) : 0;
}

int print_conversions(const char *s, size_t len, bool *widths, size_t max)
{
	struct conversions c = { .s = s, .end = s + len, .widths = widths, .max = max };

	while ((c.s = memchr(c.s, '%', (size_t)(c.end - c.s)))) {
		int ret = 0;

		c.s++;
		if (c.s < c.end && *c.s == '%')
			c.s++;
		else
			ret = conversion(&c);
		if (ret)
			return ret;
	}
	return (int)c.n;
}
