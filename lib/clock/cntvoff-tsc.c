// SPDX-License-Identifier: LGPL-2.1-or-later
/* x86: KVM shows the TSC's offset of each vCPU in debugfs (arch/x86/kvm/debugfs.c). */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int cntvoff_tsc_read(const char *kvm_dir, uint64_t time, struct cntvoff_log *log)
{
	char *pattern = str_printf("%s/*-*/vcpu*", kvm_dir);
	glob_t found = { 0 };
	int ret = !pattern || glob(pattern, 0, NULL, &found) == GLOB_NOSPACE ? -ENOMEM : 0;

	for (size_t i = 0; i < found.gl_pathc && !ret; i++) {
		unsigned int id;
		int pid, fd;

		if (sscanf(found.gl_pathv[i] + strlen(kvm_dir), "/%d-%d/vcpu%u", &pid, &fd, &id) == 3)
			ret = take_vcpu(found.gl_pathv[i], pid, id, time, log);
	}
	globfree(&found);
	free(pattern);
	return ret;
}
