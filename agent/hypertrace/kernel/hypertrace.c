// SPDX-License-Identifier: GPL-2.0-only
/*
 * hypertrace(7)'s calls for a guest's kernel code: events in the rings of an ivshmem-plain device, each
 * announced by its doorbell. Programs of the guest may mark at the same time.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "area.h"
#include "hypertrace-guest.h"

static DEFINE_MUTEX(ht_mutex); /* of init and fini */
static unsigned int ht_users;
static struct pci_dev *ht_device;
static void __iomem *ht_registers;
static struct area ht_area;
static uint64_t *ht_data; /* args of each client, arg1 of no use */

/* The one of that name, as lspci -D shows it, or the first. */
static struct pci_dev *ht_find(const char *where)
{
	struct pci_dev *dev = NULL;

	do
		dev = pci_get_device(HYPERTRACE_IVSHMEM_VENDOR, HYPERTRACE_IVSHMEM_DEVICE, dev);
	while (dev && where && strcmp(where, pci_name(dev)));
	return dev;
}

static void ht_rest(void)
{
	cond_resched();
}

static void ht_close(void)
{
	kfree(ht_data);
	if (ht_registers)
		pci_iounmap(ht_device, ht_registers);
	if (ht_area.at)
		memunmap(ht_area.at);
	pci_disable_device(ht_device); /* but for mastering, it stays as it is: programs may use it */
	pci_dev_put(ht_device);
	ht_data = NULL;
	ht_registers = NULL;
	ht_device = NULL;
	memset(&ht_area, 0, sizeof(ht_area));
}

/* No region is requested: that would keep programs from mapping the device. */
static int ht_open(const char *where)
{
	int ret;

	ht_device = ht_find(where);
	if (!ht_device)
		return -ENODEV;
	ret = pci_enable_device(ht_device);
	if (ret) {
		pci_dev_put(ht_device);
		return ret;
	}
	/* The host's mapping is cached, so on arm64 this has to be. x86 takes what it grants besides. */
	ht_area.at = memremap(pci_resource_start(ht_device, 2), pci_resource_len(ht_device, 2),
			      MEMREMAP_WB | MEMREMAP_WC);
	ht_registers = pci_iomap(ht_device, 0, 0);
	ret = !ht_area.at || !ht_registers ? -ENOMEM : 0;
	if (!ret)
		ret = area_open(&ht_area, pci_resource_len(ht_device, 2),
				pci_resource_start(ht_device, 0) + HYPERTRACE_IVSHMEM_DOORBELL, ht_rest);
	if (!ret) {
		ht_data = kcalloc((size_t)ht_area.clients * ht_area.args, sizeof(*ht_data), GFP_KERNEL);
		ret = ht_data ? 0 : -ENOMEM;
	}
	if (ret)
		ht_close();
	return ret;
}

int hypertrace_init(const char *where)
{
	int ret = 0;

	mutex_lock(&ht_mutex);
	if (!ht_users)
		ret = ht_open(where);
	if (!ret)
		ht_users++;
	mutex_unlock(&ht_mutex);
	return ret;
}
EXPORT_SYMBOL_GPL(hypertrace_init);

int hypertrace_fini(void)
{
	int ret = 0;

	mutex_lock(&ht_mutex);
	if (!ht_users)
		ret = -EINVAL;
	else if (!--ht_users)
		ht_close();
	mutex_unlock(&ht_mutex);
	return ret;
}
EXPORT_SYMBOL_GPL(hypertrace_fini);

uint64_t hypertrace_max_clients(void)
{
	return ht_area.clients;
}
EXPORT_SYMBOL_GPL(hypertrace_max_clients);

uint64_t hypertrace_num_args(void)
{
	return ht_area.args;
}
EXPORT_SYMBOL_GPL(hypertrace_num_args);

static uint64_t *ht_args(uint64_t client)
{
	return ht_data && client < ht_area.clients ? ht_data + client * ht_area.args : NULL;
}

uint64_t *hypertrace_data(uint64_t client)
{
	uint64_t *args = ht_args(client);

	return args ? args + 1 : NULL;
}
EXPORT_SYMBOL_GPL(hypertrace_data);

void hypertrace_emit(uint64_t client, uint64_t arg1)
{
	const uint64_t *kept = ht_args(client);
	uint64_t arg[HYPERTRACE_ARGS_LIMIT];
	uint32_t bell;

	if (!kept)
		return;
	arg[0] = arg1;
	for (uint32_t i = 1; i < ht_area.args; i++)
		arg[i] = kept[i];
	bell = area_put(&ht_area, (uint32_t)client, ktime_get_boot_fast_ns(), arg);
	wmb(); /* the event is there when the host sees the doorbell */
	writel_relaxed(bell, ht_registers + HYPERTRACE_IVSHMEM_DOORBELL);
}
EXPORT_SYMBOL_GPL(hypertrace_emit);

const char *hypertrace_where(void)
{
	return ht_users ? "ivshmem" : "none";
}
EXPORT_SYMBOL_GPL(hypertrace_where);

MODULE_DESCRIPTION("marks of a guest's kernel on the host's timeline");
MODULE_LICENSE("GPL");
