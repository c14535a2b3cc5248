// SPDX-License-Identifier: LGPL-2.1-or-later
/* Scans the conversions of print formats. */
#include "base/decode/conversion.h"

#include <ctype.h>

static bool conversion_at(const char *s, const char *end, const char *set)
{
	return s < end && *s && strchr(set, *s);
}

/* Digits or '*'. */
static const char *scan_number(const char *s, const char *end, int *number, bool *is_arg)
{
	*number = 0;
	if (conversion_at(s, end, "*")) {
		*is_arg = true;
		return s + 1;
	}
	for (; s < end && isdigit((unsigned char)*s); s++)
		*number = *number * 10 + (*s - '0') < CONVERSION_MOST ? *number * 10 + (*s - '0')
								      : CONVERSION_MOST;
	return s;
}

const char *conversion_scan(const char *s, const char *end, struct conversion *c)
{
	*c = (struct conversion){ .precision = -1 };
	for (; conversion_at(s, end, "-0#+ "); s++) {
		c->left |= *s == '-';
		c->zero |= *s == '0';
		c->alternate |= *s == '#';
		c->plus |= *s == '+' || *s == ' ';
	}
	s = scan_number(s, end, &c->width, &c->width_is_arg);
	if (conversion_at(s, end, "."))
		s = scan_number(s + 1, end, &c->precision, &c->precision_is_arg);
	c->length = s;
	while (conversion_at(s, end, "hlLzZt"))
		s++;
	c->n_length = (size_t)(s - c->length);
	if (s == end || !*s)
		return NULL;
	c->letter = *s;
	return s + 1;
}

bool conversion_length_of(const struct conversion *c, const char *letters)
{
	for (size_t i = 0; i < c->n_length; i++)
		if (!strchr(letters, c->length[i]))
			return false;
	return true;
}
