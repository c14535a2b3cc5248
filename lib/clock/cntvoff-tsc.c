// SPDX-License-Identifier: LGPL-2.1-or-later
/* x86: KVM shows the TSC's offset of each vCPU in debugfs (arch/x86/kvm/debugfs.c). */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock/cntvoff.h"

static int read_tsc_number(const char *vcpu, const char *name, int64_t *out)
{
	char *path = str_printf("%s/%s", vcpu, name);
	struct buf text = { 0 };
	int ret = path ? read_file(path, 64, &text) : -ENOMEM;

	if (!ret && (!buf_str(&text) || sscanf(buf_str(&text), "%" SCNd64, out) != 1))
		ret = -EBADMSG;
	buf_release(&text);
	free(path);
	return ret;
}

/* A guest whose TSC runs at another rate is not the host's less one number. */
static bool is_scaled(const char *vcpu)
{
	int64_t ratio, bits;

	return !read_tsc_number(vcpu, "tsc-scaling-ratio", &ratio) &&
	       !read_tsc_number(vcpu, "tsc-scaling-ratio-frac-bits", &bits) && bits >= 0 && bits < 63 &&
	       ratio != (int64_t)1 << bits;
}

static int take_vcpu(const char *vcpu, int32_t vm, unsigned int id, uint64_t time, struct cntvoff_log *log)
{
	int64_t offset, pid;

	if (is_scaled(vcpu) || read_tsc_number(vcpu, "tsc-offset", &offset))
		return 0;
	/* guest = host + offset; since when is known only as far as it was looked at */
	if (cntvoff_log_load(log, time, vm, -(uint64_t)offset, true))
		return -ENOMEM;
	return read_tsc_number(vcpu, "pid", &pid) ? 0 : cntvoff_log_vcpu(log, vm, (int32_t)pid, id);
}

static int take_vm(const char *vm_dir, int32_t vm, uint64_t time, struct cntvoff_log *log)
{
	DIR *d = opendir(vm_dir);
	struct dirent *e;
	unsigned int id;
	int ret = 0;

	while (d && !ret && (e = readdir(d))) {
		char *vcpu;

		if (sscanf(e->d_name, "vcpu%u", &id) != 1)
			continue;
		vcpu = str_printf("%s/%s", vm_dir, e->d_name);
		ret = vcpu ? take_vcpu(vcpu, vm, id, time, log) : -ENOMEM;
		free(vcpu);
	}
	if (d)
		closedir(d);
	return ret;
}

int cntvoff_tsc_read(const char *kvm_dir, uint64_t time, struct cntvoff_log *log)
{
	DIR *d = opendir(kvm_dir);
	struct dirent *e;
	int pid, fd, ret = 0;

	while (d && !ret && (e = readdir(d))) {
		char *vm;

		if (sscanf(e->d_name, "%d-%d", &pid, &fd) != 2)
			continue;
		vm = str_printf("%s/%s", kvm_dir, e->d_name);
		ret = vm ? take_vm(vm, pid, time, log) : -ENOMEM;
		free(vm);
	}
	if (d)
		closedir(d);
	return ret;
}
