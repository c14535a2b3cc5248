// SPDX-License-Identifier: GPL-2.0-only
/* The example of hypertrace(7) as a module: two events when it is loaded. */
#include <linux/module.h>

#include "hypertrace-guest.h"

static char *where;
module_param(where, charp, 0);
MODULE_PARM_DESC(where, "the ivshmem device, as lspci -D shows it (default: the first)");

static int __init example_init(void)
{
	uint64_t *data;
	int ret = hypertrace_init(where);

	if (ret)
		return ret;
	data = hypertrace_data(1);
	data[0] = 0xcafe;
	data[1] = 0xdead;
	data[2] = 0xbeef;
	hypertrace_emit(1, 1);
	pr_info("Some computation...\n");
	hypertrace_emit(1, 0);
	return 0;
}

static void __exit example_exit(void)
{
	hypertrace_fini();
}

module_init(example_init);
module_exit(example_exit);
MODULE_DESCRIPTION("example of hypertrace(7)");
MODULE_LICENSE("GPL");
