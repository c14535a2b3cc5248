// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of arm64 system registers and instructions, by binary search in a sorted table. */
#include "base/decode/esr.h"
#include "base/array.h"

#include <stdio.h>

#define KEY(op0, op1, crn, crm, op2) ((uint16_t)((op0) << 14 | (op1) << 11 | (crn) << 7 | (crm) << 3 | (op2)))

struct entry {
	uint16_t key;
	const char *name;
};

#define R(op0, op1, crn, crm, op2, name) { KEY(op0, op1, crn, crm, op2), name },
static const struct entry table[] = {
#include "base/decode/sysreg-table.h"
};
#undef R

static bool key_below(const void *row, const void *key)
{
	return ((const struct entry *)row)->key < *(const uint16_t *)key;
}

const char *sysreg_name(const struct sysreg *r)
{
	uint16_t key = KEY(r->op0, r->op1, r->crn, r->crm, r->op2);
	size_t at = array_lower_bound(table, ARRAY_SIZE(table), sizeof(table[0]), key_below, &key);

	if (r->op0 > 3 || r->op1 > 7 || r->crn > 15 || r->crm > 15 || r->op2 > 7)
		return NULL;
	return at < ARRAY_SIZE(table) && table[at].key == key ? table[at].name : NULL;
}

const char *sysreg_text(const struct sysreg *r, char *out, size_t size)
{
	const char *name = sysreg_name(r);

	if (name)
		snprintf(out, size, "%s", name);
	else if (r->op0 >= 2)
		snprintf(out, size, "S%u_%u_C%u_C%u_%u", r->op0, r->op1, r->crn, r->crm, r->op2);
	else
		snprintf(out, size, "sys %u,%u,C%u,C%u,%u", r->op0, r->op1, r->crn, r->crm, r->op2);
	return out;
}
