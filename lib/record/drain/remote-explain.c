// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reasons for a missing hypervisor buffer: every cause that can be seen, in plain words. */
#include <sys/utsname.h>
#include <zlib.h>

#include "record/drain/remote.h"

#define CONFIG_MAX (4u << 20)

static bool mode_is(const char *mode, const char *name)
{
	return mode && !strncmp(mode, name, strlen(name));
}

/* By /proc/config.gz, else /boot/config-RELEASE: zlib reads plain text as well. */
static void explain_config(const char *root, const char *release, const struct log *log)
{
	static const char option[] = "\nCONFIG_NVHE_EL2_DEBUG=y\n";
	char path[512], chunk[16384];
	struct buf config = { 0 };
	const char *text;
	gzFile gz;
	int n;

	snprintf(path, sizeof(path), "%s/proc/config.gz", root);
	gz = gzopen(path, "rb");
	snprintf(path, sizeof(path), "%s/boot/config-%s", root, release);
	if (!gz)
		gz = gzopen(path, "rb");
	while (gz && (n = gzread(gz, chunk, sizeof(chunk))) > 0 && config.len < CONFIG_MAX)
		buf_add(&config, chunk, (size_t)n);
	if (gz)
		gzclose(gz);
	text = config.len ? buf_str(&config) : NULL;
	if (!text)
		log_info(log,
			 "the kernel's configuration cannot be read (no /proc/config.gz, no "
			 "/boot/config-%s): it must have CONFIG_NVHE_EL2_DEBUG=y",
			 release);
	else if (!strstr(text, option) && strncmp(text, option + 1, strlen(option) - 1))
		log_err(log, "this kernel was built without CONFIG_NVHE_EL2_DEBUG=y, which brings the "
			     "hypervisor's trace events");
	buf_release(&config);
}

void remote_explain(int tracing_dirfd, const char *root, const struct log *log)
{
	static const char key[] = "kvm-arm.mode=";
	unsigned int major = 0, minor = 0;
	struct buf cmdline = { 0 };
	const char *mode = NULL; /* the command line's text from there on */
	struct utsname u;
	char path[512];
	bool old;

	log_err(log, "no hypervisor buffer: none of remotes/hypervisor, hypervisor, hyp is in tracefs");
	if (uname(&u) < 0)
		return;
	if (strcmp(u.machine, "aarch64")) {
		log_err(log, "this is a %s machine: pKVM's hypervisor runs on arm64 only", u.machine);
		return;
	}
	if (tracing_dirfd < 0 || faccessat(tracing_dirfd, "events", R_OK | X_OK, 0)) {
		log_err(log, "tracefs cannot be read: %s (root is needed)", strerror(errno));
		return;
	}
	snprintf(path, sizeof(path), "%s/proc/cmdline", root);
	if (!read_file(path, 65536, &cmdline) && buf_str(&cmdline))
		mode = strstr(buf_str(&cmdline), key);
	mode = mode ? mode + strlen(key) : NULL;
	old = sscanf(u.release, "%u.%u", &major, &minor) == 2 && (major < 7 || (major == 7 && minor < 1));
	/* before 7.1 there are only kernels with the buffer of Android's, which only protected mode has */
	if (old && mode_is(mode, "protected") && !strstr(u.release, "android"))
		log_err(log,
			"kernel %s is too old: hypervisor tracing came with Linux 7.1 (and Android's 5.15 "
			"and later)",
			u.release);
	else if (old && !mode_is(mode, "protected"))
		log_err(log,
			"kernel %s, kvm-arm.mode=%.*s: before Linux 7.1 only Android's kernels (5.15 and "
			"later) and those like them have the hypervisor's buffer, and in protected mode "
			"only: boot with kvm-arm.mode=protected",
			u.release, (int)strcspn(mode ?: "(none)", " \n"), mode ?: "(none)");
	if (!old)
		explain_config(root, u.release, log);
	if (!old || mode_is(mode, "protected")) {
		if (!mode)
			log_err(log, "the kernel was booted without kvm-arm.mode=: boot with "
				     "kvm-arm.mode=protected (or nvhe), VHE has no hypervisor of its own to "
				     "trace");
		else if (!mode_is(mode, "protected") && !mode_is(mode, "nvhe"))
			log_err(log,
				"the kernel was booted with kvm-arm.mode=%.*s: it must be protected or nvhe",
				(int)strcspn(mode, " \n"), mode);
		else
			log_info(log,
				 "booted with kvm-arm.mode=%.*s; see the boot log whether KVM came up (dmesg "
				 "| grep -i kvm)",
				 (int)strcspn(mode, " \n"), mode);
	}
	buf_release(&cmdline);
}

void remote_explain_named(int tracing_dirfd, const char *name, const struct log *log)
{
	struct strlist there = { 0 };
	struct buf list = { 0 };
	char path[300];

	name += strlen(REMOTE_ANY);
	snprintf(path, sizeof(path), "remotes/%s", name);
	if (file_there(tracing_dirfd, path)) {
		log_err(log, "%s has no tracing_on: it cannot be switched on, so it is not recorded", path);
		return;
	}
	read_dir_at(tracing_dirfd, "remotes", &there);
	for (size_t i = 0; i < there.n; i++)
		buf_printf(&list, "%s %s", i ? "," : "", there.v[i]);
	if (there.n)
		log_err(log, "no remote '%s' in tracefs: there are%s", name, buf_str(&list) ?: "");
	else
		log_err(log,
			"no remote '%s' in tracefs: it has none (Linux 7.1 or later, CONFIG_TRACE_REMOTE)",
			name);
	buf_release(&list);
	strlist_release(&there);
}
