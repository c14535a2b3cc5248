// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which tables there are. */
#include "sql/sql-priv.h"

const struct sql_table *const sql_tables[] = {
	&sql_events_table,	&sql_args_table,	  &sql_slices_table, &sql_slice_table,
	&sql_pkvm_table,	&sql_calls_table,	  &sql_exits_table,  &sql_lost_table,
	&sql_vcpu_states_table, &sql_thread_states_table,
};
const size_t sql_tables_n = ARRAY_SIZE(sql_tables);

int sql_tables_add(struct sql *s)
{
	int ret = SQLITE_OK;

	for (size_t i = 0; i < sql_tables_n && ret == SQLITE_OK; i++)
		ret = sql_table_add(s, sql_tables[i]);
	return ret;
}
