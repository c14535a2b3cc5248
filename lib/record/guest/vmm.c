// SPDX-License-Identifier: LGPL-2.1-or-later
/* The VMMs: a row for each, and the command lines of those and of vhost-device-vsock. */
#include "record/guest/guest-priv.h"

#include "base/json.h"
#include "base/cursor.h"

struct argv {
	struct cursor c;
	const char *arg; /* the one at hand */
};

static void qemu_args(struct guest_args *a, struct argv *v);

/* Executables and threads: a '*' stands for the rest of the name, a '#' for the vCPU's number. */
static const struct guest_vmm vmms[] = {
	{
		.name = "QEMU",
		.exes = { "qemu-system-*", "qemu-kvm", "kvm" },
		.args = qemu_args,
		.threads = { "CPU #/KVM", "CPU #/TCG" }, /* with debug-threads=on */
		.may_lack_threads = true,
		.vsock_advice = "QEMU: -device vhost-vsock-pci,guest-cid=3",
		.threads_advice = "QEMU: -name NAME,debug-threads=on",
	},
	{
		.name = "crosvm",
		.exes = { "crosvm*" },
		.threads = { "crosvm_vcpu#" },
		.vsock_advice = "crosvm: --vsock cid=3",
	},
	{
		.name = "kvmtool",
		.exes = { "lkvm*", "vm" },
		.threads = { "kvm-vcpu-#" },
		.vsock_advice = "lkvm: --vsock 3",
	},
	{
		.name = "cloud-hypervisor",
		.exes = { "cloud-hypervisor*" },
		.threads = { "vcpu#" },
		.api = "/api/v1/vm.info",
		.vsock_advice = "cloud-hypervisor: --vsock cid=3,socket=/run/g.vsock",
	},
	{
		.name = "Firecracker",
		.exes = { "firecracker*" }, /* "firecracker-v1.4.1-x86_64" */
		.name_option = "--id",
		.threads = { "fc_vcpu #" },
		.api = "/vm/config",
		.vsock_advice = "Firecracker: \"vsock\" in its configuration",
	},
	{
		.name = "StratoVirt",
		.exes = { "stratovirt" },
		.args = qemu_args,
		.threads = { "CPU #/KVM" },
		.vsock_advice = "StratoVirt: -device vhost-vsock-pci,id=v,guest-cid=3,bus=pcie.0,addr=0x3 "
				"(microvm: vhost-vsock-device,id=v,guest-cid=3)",
	},
	{ .name = "AVF" }, /* in Android's `vm list` only, which does not name the VMM */
};

const struct guest_vmm *guest_vmm_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(vmms); i++)
		if (!strcmp(vmms[i].name, name))
			return &vmms[i];
	return NULL;
}

const char *guest_vmm_name(const struct guest_vmm *vmm)
{
	return vmm ? vmm->name : "other";
}

const struct guest_vmm *guest_vmm_of(const char *exe)
{
	for (size_t i = 0; i < ARRAY_SIZE(vmms); i++)
		for (const char *const *name = vmms[i].exes; *name; name++) {
			const size_t len = strcspn(*name, "*");

			if (!strncmp(exe, *name, len) && ((*name)[len] || !exe[len]))
				return &vmms[i];
		}
	return NULL;
}

bool guest_vcpu_name(const char *comm, unsigned int *cpu)
{
	for (size_t i = 0; i < ARRAY_SIZE(vmms); i++)
		for (const char *const *shape = vmms[i].threads; *shape; shape++) {
			const size_t len = strcspn(*shape, "#");
			unsigned long n;
			char *end;

			if (strncmp(comm, *shape, len) || comm[len] < '0' || comm[len] > '9')
				continue;
			n = strtoul(comm + len, &end, 10);
			*cpu = (unsigned int)n;
			if (!strcmp(end, *shape + len + 1) && n < UINT_MAX)
				return true;
		}
	return false;
}

void guest_args_release(struct guest_args *a)
{
	free(a->name);
	free(a->uds);
	free(a->qmp);
	free(a->vhost_socket);
	free(a->api);
	free(a->config);
	free(a->ivshmem);
	*a = (struct guest_args){ 0 };
}

static const char *argv_next(struct argv *v)
{
	return v->arg = cursor_left(&v->c) ? cursor_str(&v->c) : NULL;
}

/*
 * The value when the argument at hand is this option: "--cid 3" (takes the next
 * argument) or "--cid=3". QEMU takes one dash for two.
 */
static const char *argv_option(struct argv *v, const char *name)
{
	const char *arg = v->arg;
	size_t len = strlen(name);

	if (!arg) /* an option before this one took the last */
		return NULL;
	if (arg[0] == '-' && arg[1] == '-' && name[1] != '-')
		arg++;
	if (strncmp(arg, name, len))
		return NULL;
	if (name[1] == '-' && arg[len] == '=')
		return arg + len + 1;
	return arg[len] ? NULL : argv_next(v);
}

/*
 * The next of "a=1,key=2,..." (",," is a comma in QEMU), malloc'ed; NULL if empty. *arg: the one
 * after it, or NULL.
 */
static char *take_option(const char **arg)
{
	const char *p = *arg;
	char *text = malloc(strlen(p) + 1);
	size_t len = 0;

	while (*p && !(p[0] == ',' && p[1] != ',')) {
		if (*p == ',')
			p++;
		if (text)
			text[len++] = *p;
		p++;
	}
	*arg = *p ? p + 1 : NULL;
	if (text && len) {
		text[len] = 0;
		return text;
	}
	free(text);
	return NULL;
}

/* The value of key, malloc'ed; NULL: none. */
static char *arg_value(const char *arg, const char *key)
{
	size_t len = strlen(key);
	char *found = NULL;

	while (arg && !found) {
		char *text = take_option(&arg);

		if (text && !strncmp(text, key, len) && text[len] == '=')
			found = strdup(text + len + 1);
		free(text);
	}
	return found;
}

/* The first option of the list when it has no key: "NAME,debug-threads=on". */
static char *first_value(const char *arg)
{
	char *first = take_option(&arg);

	if (first && !strchr(first, '='))
		return first;
	free(first);
	return NULL;
}

/* A key's value as a CID: "cid=3,socket=..." */
static void set_cid_of(struct guest_args *a, const char *arg, const char *key)
{
	char *value = arg_value(arg, key);

	if (value)
		guest_cid_parse(value, &a->cid);
	free(value);
}

/* Options that are combined at the end: -chardev and -object, and the -mon, -device that use them. */
struct qemu_chardevs {
	struct strlist ids, paths;
	struct strlist mems, mem_paths;
	char *mon, *vsock, *memdev;
};

/* As a pair, or not at all. Takes both. */
static void qemu_pair(struct strlist *ids, struct strlist *paths, char *id, char *path)
{
	if (id && path && !strlist_add(ids, id) && strlist_add(paths, path))
		free(ids->v[--ids->n]); /* the two lists stay even */
	free(id);
	free(path);
}

/* The value of a key, also of the JSON that libvirt writes; malloc'ed or NULL. */
static char *qemu_value(const char *arg, const char *key)
{
	struct json_value all, v;

	if (*arg != '{')
		return arg_value(arg, key);
	return json_parse(arg, strlen(arg), &all) || !json_member(all, key, &v) ? NULL : json_get_str(v);
}

/* "vhost-vsock-pci,guest-cid=3", or libvirt's {"driver":"vhost-vsock-pci","guest-cid":3,...}. */
static void qemu_device(struct guest_args *a, struct qemu_chardevs *q, const char *arg)
{
	struct json_value dev, v;
	uint64_t cid;

	if (strstr(arg, "ivshmem-plain") && !q->memdev)
		str_take(&q->memdev, qemu_value(arg, "memdev"));
	if (!strncmp(arg, "vhost-vsock", 11))
		set_cid_of(a, arg, "guest-cid");
	else if (*arg == '{' && !json_parse(arg, strlen(arg), &dev) && json_member(dev, "guest-cid", &v) &&
		 json_get_u64(v, &cid) && cid && cid < UINT32_MAX)
		a->cid = (uint32_t)cid;
	if (!strncmp(arg, "vhost-user-vsock", 16) || (*arg == '{' && strstr(arg, "\"vhost-user-vsock")))
		str_take(&q->vsock, qemu_value(arg, "chardev"));
}

static void qemu_args(struct guest_args *a, struct argv *v)
{
	struct qemu_chardevs q = { 0 };
	const char *val;

	while (argv_next(v)) {
		if ((val = argv_option(v, "-name")))
			str_take(&a->name, arg_value(val, "guest") ?: first_value(val));
		else if ((val = argv_option(v, "-device")))
			qemu_device(a, &q, val);
		else if ((val = argv_option(v, "-qmp")) || (val = argv_option(v, "-qmp-pretty"))) {
			const char *path = val + 5;

			/* -qmp unix:PATH,server=on,wait=off */
			if (!strncmp(val, "unix:", 5))
				str_take(&a->qmp, take_option(&path));
		} else if ((val = argv_option(v, "-chardev"))) {
			if (!strncmp(val, "socket,", 7))
				qemu_pair(&q.ids, &q.paths, arg_value(val, "id"), arg_value(val, "path"));
		} else if ((val = argv_option(v, "-object"))) {
			/* memory-backend-file,id=ID,mem-path=PATH,... */
			if (strstr(val, "memory-backend-file"))
				qemu_pair(&q.mems, &q.mem_paths, qemu_value(val, "id"),
					  qemu_value(val, "mem-path"));
		} else if ((val = argv_option(v, "-mon"))) {
			char *mode = arg_value(val, "mode");
			char *id = arg_value(val, "chardev") ?: first_value(val);

			if (mode && !strcmp(mode, "control"))
				str_take(&q.mon, id);
			else
				free(id);
			free(mode);
		}
	}
	for (size_t i = 0; i < q.ids.n && i < q.paths.n; i++) {
		if (q.mon && !a->qmp && !strcmp(q.ids.v[i], q.mon))
			str_take(&a->qmp, strdup(q.paths.v[i]));
		if (q.vsock && !strcmp(q.ids.v[i], q.vsock))
			str_take(&a->vhost_socket, strdup(q.paths.v[i]));
	}
	for (size_t i = 0; i < q.mems.n && q.memdev; i++)
		if (!strcmp(q.mems.v[i], q.memdev))
			str_take(&a->ivshmem, strdup(q.mem_paths.v[i]));
	strlist_release(&q.ids);
	strlist_release(&q.paths);
	strlist_release(&q.mems);
	strlist_release(&q.mem_paths);
	free(q.memdev);
	free(q.mon);
	free(q.vsock);
}

/* Of the other VMMs, known or not: their options do not contradict each other. */
static void other_args(struct guest_args *a, const char *name, struct argv *v)
{
	const char *val;

	while (argv_next(v)) {
		if ((val = argv_option(v, name)))
			str_take(&a->name, strdup(val));
		else if ((val = argv_option(v, "--cid")))
			guest_cid_parse(val, &a->cid);
		else if ((val = argv_option(v, "--vsock"))) {
			char *first = first_value(val);

			/* --vsock 3, --vsock cid=3,device=..., --vsock cid=3,socket=PATH */
			if (first)
				guest_cid_parse(first, &a->cid);
			else
				set_cid_of(a, val, "cid");
			free(first);
			str_take(&a->uds, arg_value(val, "socket"));
		} else if ((val = argv_option(v, "--api-sock")))
			str_take(&a->api, strdup(val));
		else if ((val = argv_option(v, "--api-socket"))) /* [path=]PATH or fd=N */
			str_take(&a->api, strchr(val, '=') ? arg_value(val, "path") : strdup(val));
		else if ((val = argv_option(v, "--config-file")))
			str_take(&a->config, strdup(val));
	}
}

int guest_args_parse(struct guest_args *a, const struct guest_vmm *vmm, const char *cmdline, size_t len)
{
	struct argv v = { .c = cursor_at(cmdline, len) };

	argv_next(&v); /* its own name */
	if (vmm && vmm->args)
		vmm->args(a, &v);
	else
		other_args(a, vmm && vmm->name_option ? vmm->name_option : "--name", &v);
	return v.c.bad ? -EBADMSG : 0;
}

int guest_config_parse(struct guest_args *a, const char *text, size_t len)
{
	struct json_value all, config, vsock, v;
	uint64_t cid;

	if (json_parse(text, len, &all))
		return -EBADMSG;
	if (!json_member(all, "config", &config)) /* cloud-hypervisor's vm.info has it one step down */
		config = all;
	if (!json_member(config, "vsock", &vsock))
		return 0;
	if (!a->cid && (json_member(vsock, "guest_cid", &v) || json_member(vsock, "cid", &v)) &&
	    json_get_u64(v, &cid) && cid < UINT32_MAX)
		a->cid = (uint32_t)cid;
	if (!a->uds && (json_member(vsock, "uds_path", &v) || json_member(vsock, "socket", &v)))
		a->uds = json_get_str(v);
	return 0;
}

size_t guest_vhost_args(const char *cmdline, size_t len, struct guest_args *rows, size_t max)
{
	struct argv v = { .c = cursor_at(cmdline, len) };
	struct guest_args single = { 0 };
	const char *val;
	size_t n = 0;

	argv_next(&v);
	while (argv_next(&v)) {
		if ((val = argv_option(&v, "--vm"))) {
			struct guest_args *a = &rows[n];

			if (n == max)
				continue;
			n++;
			*a = (struct guest_args){ 0 };
			set_cid_of(a, val, "guest-cid");
			if (!a->cid)
				set_cid_of(a, val, "guest_cid");
			str_take(&a->vhost_socket, arg_value(val, "socket"));
			str_take(&a->uds, arg_value(val, "uds-path") ?: arg_value(val, "uds_path"));
		} else if ((val = argv_option(&v, "--guest-cid"))) {
			guest_cid_parse(val, &single.cid);
		} else if ((val = argv_option(&v, "--socket"))) {
			str_take(&single.vhost_socket, strdup(val));
		} else if ((val = argv_option(&v, "--uds-path"))) {
			str_take(&single.uds, strdup(val));
		}
	}
	if (single.vhost_socket && n < max)
		rows[n++] = single;
	else
		guest_args_release(&single);
	return n;
}
