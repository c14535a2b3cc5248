// SPDX-License-Identifier: LGPL-2.1-or-later
/* Command lines of VMMs and of vhost-device-vsock: what they say of a guest. */
#include "guest/guest-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/json.h"

bool guest_vmm_of(const char *exe, enum guest_vmm *vmm)
{
	static const struct {
		const char *name;
		bool prefix; /* "firecracker-v1.4.1-x86_64", "qemu-system-aarch64" */
		enum guest_vmm vmm;
	} rows[] = {
		{ "qemu-system-", true, GUEST_VMM_QEMU },
		{ "qemu-kvm", false, GUEST_VMM_QEMU },
		{ "kvm", false, GUEST_VMM_QEMU },
		{ "crosvm", true, GUEST_VMM_CROSVM },
		{ "lkvm", true, GUEST_VMM_KVMTOOL },
		{ "vm", false, GUEST_VMM_KVMTOOL },
		{ "cloud-hypervisor", true, GUEST_VMM_CLOUD_HYPERVISOR },
		{ "firecracker", true, GUEST_VMM_FIRECRACKER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].name);

		if (strncmp(exe, rows[i].name, len) || (!rows[i].prefix && exe[len]))
			continue;
		*vmm = rows[i].vmm;
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

struct argv {
	struct cursor c;
	const char *arg; /* the one at hand */
};

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
	if (arg[len])
		return NULL;
	return argv_next(v);
}

/*
 * The next of "a=1,key=2,..." (",," is a comma in QEMU), malloc'ed; NULL: it is empty.
 * *arg: the one behind it, or NULL.
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

static void set_str(char **to, char *value)
{
	if (!value)
		return;
	free(*to);
	*to = value;
}

static void set_cid(struct guest_args *a, const char *text)
{
	if (text)
		guest_cid_parse(text, &a->cid);
}

/* A key's value as a CID: "cid=3,socket=..." */
static void set_cid_of(struct guest_args *a, const char *arg, const char *key)
{
	char *value = arg_value(arg, key);

	set_cid(a, value);
	free(value);
}

/* What must be put together at the end: -chardev and -object, and the -mon, -device that use them. */
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
	if (json_parse(arg, strlen(arg), &all) || !json_member(all, key, &v))
		return NULL;
	return json_get_str(v);
}

/* memory-backend-file,id=ID,mem-path=PATH,... */
static void qemu_object(struct qemu_chardevs *q, const char *arg)
{
	if (strstr(arg, "memory-backend-file"))
		qemu_pair(&q->mems, &q->mem_paths, qemu_value(arg, "id"), qemu_value(arg, "mem-path"));
}

static void qemu_chardev(struct qemu_chardevs *q, const char *arg)
{
	if (!strncmp(arg, "socket,", 7))
		qemu_pair(&q->ids, &q->paths, arg_value(arg, "id"), arg_value(arg, "path"));
}

static void qemu_mon(struct qemu_chardevs *q, const char *arg)
{
	char *mode = arg_value(arg, "mode"), *id = arg_value(arg, "chardev");

	if (!id)
		id = first_value(arg);
	if (mode && !strcmp(mode, "control"))
		set_str(&q->mon, id);
	else
		free(id);
	free(mode);
}

/* -qmp unix:PATH,server=on,wait=off */
static void qemu_qmp(struct guest_args *a, const char *arg)
{
	const char *path = arg + 5;

	if (!strncmp(arg, "unix:", 5))
		set_str(&a->qmp, take_option(&path));
}

/* libvirt writes {"driver":"vhost-vsock-pci","guest-cid":3,...} */
static void qemu_device_json(struct guest_args *a, struct qemu_chardevs *q, const char *arg)
{
	struct json_value dev, v;
	uint64_t cid;

	if (json_parse(arg, strlen(arg), &dev))
		return;
	if (json_member(dev, "guest-cid", &v) && json_get_u64(v, &cid) && cid && cid < UINT32_MAX)
		a->cid = (uint32_t)cid;
	if (strstr(arg, "\"vhost-user-vsock") && json_member(dev, "chardev", &v))
		set_str(&q->vsock, json_get_str(v));
}

static void qemu_device(struct guest_args *a, struct qemu_chardevs *q, const char *arg)
{
	if (strstr(arg, "ivshmem-plain") && !q->memdev)
		set_str(&q->memdev, qemu_value(arg, "memdev"));
	if (*arg == '{') {
		qemu_device_json(a, q, arg);
		return;
	}
	if (!strncmp(arg, "vhost-vsock", 11))
		set_cid_of(a, arg, "guest-cid");
	else if (!strncmp(arg, "vhost-user-vsock", 16))
		set_str(&q->vsock, arg_value(arg, "chardev"));
}

static void qemu_name(struct guest_args *a, const char *arg)
{
	char *name = arg_value(arg, "guest");

	set_str(&a->name, name ? name : first_value(arg));
}

static void qemu_end(struct guest_args *a, struct qemu_chardevs *q)
{
	for (size_t i = 0; i < q->ids.n && i < q->paths.n; i++) {
		if (q->mon && !a->qmp && !strcmp(q->ids.v[i], q->mon))
			set_str(&a->qmp, strdup(q->paths.v[i]));
		if (q->vsock && !strcmp(q->ids.v[i], q->vsock))
			set_str(&a->vhost_socket, strdup(q->paths.v[i]));
	}
	for (size_t i = 0; i < q->mems.n && q->memdev; i++)
		if (!strcmp(q->mems.v[i], q->memdev))
			set_str(&a->ivshmem, strdup(q->mem_paths.v[i]));
	strlist_release(&q->ids);
	strlist_release(&q->paths);
	strlist_release(&q->mems);
	strlist_release(&q->mem_paths);
	free(q->memdev);
	free(q->mon);
	free(q->vsock);
}

static void qemu_args(struct guest_args *a, struct argv *v)
{
	struct qemu_chardevs q = { 0 };
	const char *val;

	while (argv_next(v)) {
		if ((val = argv_option(v, "-name")))
			qemu_name(a, val);
		else if ((val = argv_option(v, "-device")))
			qemu_device(a, &q, val);
		else if ((val = argv_option(v, "-qmp")) || (val = argv_option(v, "-qmp-pretty")))
			qemu_qmp(a, val);
		else if ((val = argv_option(v, "-chardev")))
			qemu_chardev(&q, val);
		else if ((val = argv_option(v, "-object")))
			qemu_object(&q, val);
		else if ((val = argv_option(v, "-mon")))
			qemu_mon(&q, val);
	}
	qemu_end(a, &q);
}

/* --vsock 3, --vsock cid=3,device=..., --vsock cid=3,socket=PATH */
static void vsock_arg(struct guest_args *a, const char *arg)
{
	char *first = first_value(arg);

	if (first)
		set_cid(a, first);
	else
		set_cid_of(a, arg, "cid");
	free(first);
	set_str(&a->uds, arg_value(arg, "socket"));
}

static void other_args(struct guest_args *a, enum guest_vmm vmm, struct argv *v)
{
	const char *name = vmm == GUEST_VMM_FIRECRACKER ? "--id" : "--name", *val;

	while (argv_next(v)) {
		if ((val = argv_option(v, name)))
			set_str(&a->name, strdup(val));
		else if ((val = argv_option(v, "--cid")))
			set_cid(a, val);
		else if ((val = argv_option(v, "--vsock")))
			vsock_arg(a, val);
		else if ((val = argv_option(v, "--api-sock")))
			set_str(&a->api, strdup(val));
		else if ((val = argv_option(v, "--api-socket"))) /* [path=]PATH or fd=N */
			set_str(&a->api, strchr(val, '=') ? arg_value(val, "path") : strdup(val));
		else if ((val = argv_option(v, "--config-file")))
			set_str(&a->config, strdup(val));
	}
}

int guest_args_parse(struct guest_args *a, enum guest_vmm vmm, const char *cmdline, size_t len)
{
	struct argv v = { .c = cursor_at(cmdline, len) };

	argv_next(&v); /* its own name */
	if (vmm == GUEST_VMM_QEMU)
		qemu_args(a, &v);
	else
		other_args(a, vmm, &v);
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

static void vhost_row(struct guest_args *a, const char *arg)
{
	*a = (struct guest_args){ 0 };
	set_cid_of(a, arg, "guest-cid");
	if (!a->cid)
		set_cid_of(a, arg, "guest_cid");
	set_str(&a->vhost_socket, arg_value(arg, "socket"));
	set_str(&a->uds, arg_value(arg, "uds-path"));
	if (!a->uds)
		set_str(&a->uds, arg_value(arg, "uds_path"));
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
			if (n < max)
				vhost_row(&rows[n++], val);
		} else if ((val = argv_option(&v, "--guest-cid"))) {
			set_cid(&single, val);
		} else if ((val = argv_option(&v, "--socket"))) {
			set_str(&single.vhost_socket, strdup(val));
		} else if ((val = argv_option(&v, "--uds-path"))) {
			set_str(&single.uds, strdup(val));
		}
	}
	if (single.vhost_socket && n < max)
		rows[n++] = single;
	else
		guest_args_release(&single);
	return n;
}
