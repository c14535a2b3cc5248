// SPDX-License-Identifier: LGPL-2.1-or-later
/* Metadata for the file of a machine that has no file of its own. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "convert/import/import-priv.h"

/* Every 64-bit kernel's description of its pages of IMPORT_PAGE bytes, and of records. */
static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: char overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n"
				   "\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

int import_begin(struct spool *spool)
{
	uint64_t traceid = 0;

	while (!traceid)
		if (getrandom(&traceid, sizeof(traceid), 0) < 0)
			return -errno;
	return spool_set_number(spool, "traceid", traceid) ?:
		       spool_set_number(spool, "page_size", IMPORT_PAGE) ?:
		       spool_put_text(spool, "header_page", header_page, strlen(header_page)) ?:
		       spool_put_text(spool, "header_event", header_event, strlen(header_event));
}
