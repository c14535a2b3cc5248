// SPDX-License-Identifier: GPL-2.0-only
/* Guests: -A, command lines, `vm list`, libvirt and QMP (both faked), merging. */
#include "record/guest/guest-priv.h"
#include "base/array.h"
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

static void keep_message(void *ctx, enum log_level level, const char *msg)
{
	snprintf(ctx, 300, "%s", msg);
}

/* ---- -A ---- */

static void test_spec(void **state)
{
	static const struct {
		const char *arg;
		enum guest_addr kind;
		const char *name;
		uint32_t cid, port;
		const char *addr;
	} rows[] = {
		{ "guest@3:1000", GUEST_VSOCK, "guest", 3, 1000, NULL },
		{ "guest@3", GUEST_VSOCK, "guest", 3, 823, NULL },
		{ "3", GUEST_VSOCK, "3", 3, 823, NULL },
		{ "3:4294967294", GUEST_VSOCK, "3", 3, 4294967294u, NULL },
		{ "4294967294", GUEST_VSOCK, "4294967294", 4294967294u, 823, NULL },
		{ "a@b@3", GUEST_VSOCK, "a@b", 3, 823, NULL },
		{ "Fedora", GUEST_BY_NAME, "Fedora", 0, 823, NULL },
		{ "Fedora:5", GUEST_BY_NAME, "Fedora", 0, 5, NULL },
		{ "192.168.1.7", GUEST_TCP, "192.168.1.7", 0, 823, "192.168.1.7" },
		{ "192.168.1.7:1", GUEST_TCP, "192.168.1.7", 0, 1, "192.168.1.7" },
		{ "vm.example.org:65535", GUEST_TCP, "vm.example.org", 0, 65535, "vm.example.org" },
		{ "g@192.168.1.7:1", GUEST_TCP, "g", 0, 1, "192.168.1.7" },
		{ "g@localhost", GUEST_TCP, "g", 0, 823, "localhost" },
		{ "g@[fe80::1%eth0]:9", GUEST_TCP, "g", 0, 9, "fe80::1%eth0" },
		{ "[::1]", GUEST_TCP, "::1", 0, 823, "::1" },
		{ "::1", GUEST_TCP, "::1", 0, 823, "::1" },
		{ "fe80::1:9", GUEST_TCP, "fe80::1", 0, 9, "fe80::1" }, /* the last ':', as trace-cmd */
		{ "unix:/run/v.sock", GUEST_UNIX, "v.sock", 0, 823, "/run/v.sock" },
		{ "unix:v.sock:9", GUEST_UNIX, "v.sock", 0, 9, "v.sock" },
		{ "g@unix:/a@b:c/v.sock", GUEST_UNIX, "g", 0, 823, "/a@b:c/v.sock" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct guest_spec s;

		assert_int_equal(guest_spec_parse(&s, rows[i].arg, NULL), 0);
		assert_int_equal(s.kind, rows[i].kind);
		assert_string_equal(s.name, rows[i].name);
		assert_int_equal(s.cid, rows[i].cid);
		assert_int_equal(s.port, rows[i].port);
		if (rows[i].addr)
			assert_string_equal(s.addr, rows[i].addr);
		else
			assert_null(s.addr);
		guest_spec_release(&s);
	}
}

static void test_bad_spec(void **state)
{
	static const struct {
		const char *arg, *says;
	} rows[] = {
		{ "", "no name, CID or address" },
		{ "@3", "the name is empty" },
		{ "g@", "no CID or address after '@'" },
		{ "g@:7", "no CID or address after '@'" },
		{ ":7", "no name, CID or address" },
		{ "g@3:", "'' is no port" },
		{ "3:0", "'0' is no port" },
		{ "3:seven", "'seven' is no port" },
		{ "3:4294967295", "is no port" },
		{ "1.2.3.4:65536", "is no port (1 to 65535)" },
		{ "0", "0 is no guest's CID" },
		{ "4294967295", "no guest's CID" },
		{ "g@99999999999999999999", "no guest's CID" },
		{ "a/b@3", "no '/'" },
		{ ".g@3", "no leading '.'" },
		{ "-g@3", "no leading '.' or '-'" },
		{ "a\x1b[2J@3", "no control characters" },
		{ "a\xc2\x9b@3", "no control characters" },
		{ "a\nb@3", "the name becomes a file's name" },
		{ "unix:", "no path after 'unix:'" },
		{ "g@unix::9", "no path" },
		{ "a:b:9", "'a:b' is no address" },
		{ "[::1", "no address" },
		{ "[::1]x", "'x' is no port" },
		{ "[host]:3", "'host' is no address" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char msg[300] = "";
		struct log log = { keep_message, msg };
		struct guest_spec s;

		if (guest_spec_parse(&s, rows[i].arg, &log) != -EINVAL)
			fail_msg("'%s' is taken", rows[i].arg);
		if (!strstr(msg, rows[i].says))
			fail_msg("'%s': '%s' does not say '%s'", rows[i].arg, msg, rows[i].says);
		assert_null(s.name);
	}
}

static void test_resolve(void **state)
{
	static const struct {
		const char *arg;
		int ret;
		enum guest_addr kind;
		const char *name, *addr;
		uint32_t cid;
	} rows[] = {
		{ "web", 0, GUEST_VSOCK, "web", NULL, 5 },
		{ "5", 0, GUEST_VSOCK, "web", NULL, 5 },
		{ "mine@5", 0, GUEST_VSOCK, "mine", NULL, 5 },
		{ "7", 0, GUEST_VSOCK, "7", NULL, 7 }, /* nothing is known of it */
		{ "fc", 0, GUEST_UNIX, "fc", "/run/fc.sock", 0 },
		{ "3", 0, GUEST_VSOCK, "3", NULL, 3 }, /* the CID of a UNIX socket is no CID of ours */
		{ "unix:/run/fc.sock", 0, GUEST_UNIX, "fc", "/run/fc.sock", 0 },
		{ "vm.dot", 0, GUEST_VSOCK, "vm.dot", NULL, 6 },
		{ "no.dot", 0, GUEST_TCP, "no.dot", "no.dot", 0 },
		{ "8", 0, GUEST_VSOCK, "8", NULL, 8 }, /* its name does not fit a file's */
		{ "9", 0, GUEST_VSOCK, "9", NULL, 9 },
		{ "dumb", -ENXIO, 0, NULL, NULL, 0 },
		{ "missing", -ENOENT, 0, NULL, NULL, 0 },
	};
	static struct guest vms[] = {
		{ .name = (char *)"web", .cid = 5 },
		{ .name = (char *)"fc", .cid = 3, .uds = (char *)"/run/fc.sock" },
		{ .name = (char *)"vm.dot", .cid = 6 },
		{ .name = (char *)"\x1b]0;owned\x07", .cid = 8 },
		{ .name = (char *)"../../etc/x", .cid = 9 },
		{ .name = (char *)"dumb" },
	};
	const struct guests all = { vms, ARRAY_SIZE(vms) };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char msg[300] = "";
		struct log log = { keep_message, msg };
		struct guest *vm;
		struct guest_spec s;

		assert_int_equal(guest_spec_parse(&s, rows[i].arg, NULL), 0);
		assert_int_equal(guest_spec_resolve(&s, &all, &vm, &log), rows[i].ret);
		if (rows[i].ret) {
			assert_non_null(strstr(msg, rows[i].arg));
		} else {
			assert_int_equal(s.kind, rows[i].kind);
			assert_string_equal(s.name, rows[i].name);
			if (s.kind == GUEST_VSOCK)
				assert_int_equal(s.cid, rows[i].cid);
			else
				assert_string_equal(s.addr, rows[i].addr);
		}
		guest_spec_release(&s);
	}
}

/* ---- command lines ---- */

static void same(const char *got, const char *want)
{
	if (want)
		assert_non_null(got);
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
}

static void test_vmm_of(void **state)
{
	static const struct {
		const char *exe;
		const char *vmm; /* NULL: none */
	} rows[] = {
		{ "qemu-system-aarch64", "QEMU" },
		{ "qemu-kvm", "QEMU" },
		{ "kvm", "QEMU" },
		{ "crosvm", "crosvm" },
		{ "lkvm-static", "kvmtool" },
		{ "vm", "kvmtool" },
		{ "cloud-hypervisor", "cloud-hypervisor" },
		{ "firecracker-v1.4.1-aarch64", "Firecracker" },
		{ "stratovirt", "StratoVirt" },
		{ "qemu-img", NULL },
		{ "kvmtool-gui", NULL },
		{ "vmstat", NULL },
		{ "bash", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct guest_vmm *vmm = guest_vmm_of(rows[i].exe);

		same(vmm ? vmm->name : NULL, rows[i].vmm);
	}
}

/* A command line with '|' for the NULs. */
static size_t cmdline(const char *text, char *out, size_t size)
{
	size_t len = (size_t)snprintf(out, size, "%s|", text);

	for (size_t i = 0; i < len; i++)
		if (out[i] == '|')
			out[i] = 0;
	return len;
}

static void test_args(void **state)
{
	static const struct {
		const char *vmm;
		const char *line;
		const char *name;
		uint32_t cid;
		const char *uds, *qmp, *vhost;
	} rows[] = {
		{ "QEMU", "qemu|-name|Guest,debug-threads=on|-device|vhost-vsock-pci,guest-cid=3", "Guest", 3,
		  NULL, NULL, NULL },
		{ "QEMU",
		  "qemu|--name|debug-threads=on,guest=a,,b|--device|vhost-vsock-device,id=x,guest-"
		  "cid=7",
		  "a,b", 7, NULL, NULL, NULL },
		{ "QEMU", "qemu|-name|debug-threads=on", NULL, 0, NULL, NULL, NULL },
		{ "QEMU",
		  "qemu|-device|{\"driver\":\"vhost-vsock-pci\",\"id\":\"vsock0\",\"guest-cid\":9,"
		  "\"vhostfd\":\"30\"}",
		  NULL, 9, NULL, NULL, NULL },
		{ "QEMU", "qemu|-device|virtio-net,guest-cid=3|-append|guest-cid=4", NULL, 0, NULL, NULL,
		  NULL },
		{ "QEMU", "qemu|-qmp|unix:/run/q,,1.sock,server=on,wait=off", NULL, 0, NULL, "/run/q,1.sock",
		  NULL },
		{ "QEMU", "qemu|-qmp|tcp:localhost:4444,server", NULL, 0, NULL, NULL, NULL },
		{ "QEMU",
		  "qemu|-mon|chardev=m,mode=control|-chardev|socket,id=x,path=/"
		  "x|-chardev|socket,id=m,path=/run/m,server=on",
		  NULL, 0, NULL, "/run/m", NULL },
		{ "QEMU", "qemu|-chardev|socket,id=m,path=/run/m|-mon|m,mode=readline", NULL, 0, NULL, NULL,
		  NULL },
		{ "QEMU", "qemu|-chardev|socket,id=m,fd=31,server=on|-mon|chardev=m,mode=control", NULL, 0,
		  NULL, NULL, NULL },
		{ "QEMU", "qemu|-chardev|socket,id=v,path=/run/v4|-device|vhost-user-vsock-pci,chardev=v",
		  NULL, 0, NULL, NULL, "/run/v4" },
		{ "QEMU", "qemu|-device|vhost-vsock-pci,guest-cid=|-name|", NULL, 0, NULL, NULL, NULL },
		{ "QEMU", "qemu|-name", NULL, 0, NULL, NULL, NULL }, /* cut off */
		{ "crosvm", "crosvm|run|--name|m|--cid|2048|x", "m", 2048, NULL, NULL, NULL },
		{ "crosvm", "crosvm|run|--vsock|cid=4,device=/dev/vhost-vsock", NULL, 4, NULL, NULL, NULL },
		{ "crosvm", "crosvm|run|--vsock=5", NULL, 5, NULL, NULL, NULL },
		{ "crosvm", "crosvm|run|--vsock|6|--name=n", "n", 6, NULL, NULL, NULL },
		{ "kvmtool", "lkvm|run|--name|k|--vsock|8|-n|mode=none", "k", 8, NULL, NULL, NULL },
		{ "kvmtool", "lkvm|run|-n|mode=none|--vsock=8", NULL, 8, NULL, NULL, NULL },
		{ "kvmtool", "lkvm|run|--network|mode=none", NULL, 0, NULL, NULL, NULL },
		{ "cloud-hypervisor", "ch|--vsock|cid=3,socket=/tmp/ch.vsock", NULL, 3, "/tmp/ch.vsock", NULL,
		  NULL },
		{ "Firecracker", "firecracker|--id|fc1|--api-sock|/a", "fc1", 0, NULL, NULL, NULL },
		{ "StratoVirt",
		  "stratovirt|-name|sv|-device|vhost-vsock-pci,id=vsock-0,guest-cid=10,bus=pcie.0,addr=0x3",
		  "sv", 10, NULL, NULL, NULL },
		{ "StratoVirt",
		  "stratovirt|-machine|microvm|-device|vhost-vsock-device,id=v,guest-cid=11|-qmp|"
		  "unix:/run/sv.sock,server,nowait",
		  NULL, 11, NULL, "/run/sv.sock", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct guest_args a = { 0 };
		char line[512];
		size_t len = cmdline(rows[i].line, line, sizeof(line));

		assert_int_equal(guest_args_parse(&a, guest_vmm_named(rows[i].vmm), line, len), 0);
		same(a.name, rows[i].name);
		assert_int_equal(a.cid, rows[i].cid);
		same(a.uds, rows[i].uds);
		same(a.qmp, rows[i].qmp);
		same(a.vhost_socket, rows[i].vhost);
		guest_args_release(&a);
	}
}

/* The memory of QEMU's ivshmem device, as people and as libvirt (shmem's model) write it. */
static void test_ivshmem(void **state)
{
	static const char *const rows[][2] = {
		{ "qemu|-object|memory-backend-file,id=ht,share=on,mem-path=/dev/shm/"
		  "a,,b,size=1M|-device|ivshmem-plain,"
		  "memdev=ht",
		  "/dev/shm/a,b" },
		{ "qemu|-device|{\"driver\":\"ivshmem-plain\",\"id\":\"shmem0\",\"memdev\":\"m0\"}|-object|{"
		  "\"qom-type\":"
		  "\"memory-backend-file\",\"id\":\"m0\",\"mem-path\":\"/dev/shm/ht\",\"size\":1048576}",
		  "/dev/shm/ht" },
		{ "qemu|-object|memory-backend-file,id=ram,mem-path=/"
		  "ram|-object|memory-backend-file,id=ht,mem-path=/ht|"
		  "-device|ivshmem-plain,memdev=ht|-device|ivshmem-plain,memdev=ram",
		  "/ht" },
		{ "qemu|-object|memory-backend-file,id=ram,mem-path=/ram|-machine|memory-backend=ram", NULL },
		{ "qemu|-object|memory-backend-ram,id=ht|-device|ivshmem-plain,memdev=ht", NULL },
		{ "qemu|-object|memory-backend-file,id=ht|-device|ivshmem-plain,memdev=ht", NULL },
		{ "qemu|-object|{|-device|ivshmem-plain", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct guest_args a = { 0 };
		char line[512];
		size_t len = cmdline(rows[i][0], line, sizeof(line));

		assert_int_equal(guest_args_parse(&a, guest_vmm_named("QEMU"), line, len), 0);
		same(a.ivshmem, rows[i][1]);
		guest_args_release(&a);
	}
}

static void test_vhost_args(void **state)
{
	struct guest_args rows[2];
	char line[512];
	size_t len = cmdline("vhost-device-vsock|--vm|guest-cid=3,socket=/s3,uds-path=/u3"
			     "|--vm|guest-cid=4,uds-path=/u4,socket=/s4|--vm|guest-cid=5,socket=/"
			     "s5,uds-path=/u5",
			     line, sizeof(line));

	assert_int_equal(guest_vhost_args(line, len, rows, 2), 2);
	assert_int_equal(rows[1].cid, 4);
	assert_string_equal(rows[1].uds, "/u4");
	assert_string_equal(rows[1].vhost_socket, "/s4");
	guest_args_release(&rows[0]);
	guest_args_release(&rows[1]);
	len = cmdline("vhost-device-vsock|--guest-cid=6|--socket=/s6|--uds-path=/u6", line, sizeof(line));
	assert_int_equal(guest_vhost_args(line, len, rows, 2), 1);
	assert_int_equal(rows[0].cid, 6);
	assert_string_equal(rows[0].uds, "/u6");
	guest_args_release(&rows[0]);
}

static void test_config(void **state)
{
	static const struct {
		const char *text;
		int ret;
		uint32_t cid;
		const char *uds;
	} rows[] = {
		{ "{\"vsock\": {\"guest_cid\": 3, \"uds_path\": \"./v.sock\"}}", 0, 3, "./v.sock" },
		{ "{\"config\":{\"vsock\":{\"cid\":4,\"socket\":\"/v\"}},\"state\":\"Running\"}", 0, 4,
		  "/v" },
		{ "{\"vsock\": null}", 0, 0, NULL },
		{ "{\"boot-source\": {}}", 0, 0, NULL },
		{ "{\"vsock\": {\"guest_cid\": 99999999999}}", 0, 0, NULL },
		{ "{", -EBADMSG, 0, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct guest_args a = { 0 };

		assert_int_equal(guest_config_parse(&a, rows[i].text, strlen(rows[i].text)), rows[i].ret);
		assert_int_equal(a.cid, rows[i].cid);
		same(a.uds, rows[i].uds);
		guest_args_release(&a);
	}
}

static void test_vcpu_name(void **state)
{
	static const struct {
		const char *comm;
		int cpu; /* -1: no vCPU's */
	} rows[] = {
		{ "CPU 0/KVM", 0 },
		{ "CPU 117/KVM", 117 },
		{ "CPU 1/TCG", 1 },
		{ "crosvm_vcpu0", 0 },
		{ "crosvm_vcpu12", 12 },
		{ "vcpu3", 3 },
		{ "fc_vcpu 2", 2 },
		{ "kvm-vcpu-4", 4 },
		{ "CPU /KVM", -1 },
		{ "CPU 0/KVMx", -1 },
		{ "vcpu", -1 },
		{ "vcpu0_x", -1 },
		{ "vcpu-0", -1 },
		{ "kvm-vcpu-", -1 },
		{ "ALL CPUs/TCG", -1 },
		{ "", -1 },
		{ "vcpu99999999999", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned int cpu = 0;

		assert_int_equal(guest_vcpu_name(rows[i].comm, &cpu), rows[i].cpu >= 0);
		if (rows[i].cpu >= 0)
			assert_int_equal(cpu, rows[i].cpu);
	}
}

static void test_set_vcpu(void **state)
{
	struct guest g = { 0 };

	assert_true(guest_set_vcpu(&g, 5, 105, GUEST_HOW_NAME));
	assert_true(guest_set_vcpu(&g, 0, 100, GUEST_HOW_NAME));
	assert_true(guest_set_vcpu(&g, 3, 0, GUEST_HOW_DEBUGFS));
	assert_int_equal(guest_vcpu(&g, 3)->how, GUEST_HOW_NONE);
	assert_false(guest_set_vcpu(&g, 3, 0, GUEST_HOW_NONE));
	assert_true(guest_set_vcpu(&g, 3, 103, GUEST_HOW_TRACE));
	assert_false(guest_set_vcpu(&g, 3, 999, GUEST_HOW_TRACE)); /* known already */
	assert_false(guest_set_vcpu(&g, 4, 103, GUEST_HOW_TRACE)); /* has another number */
	assert_int_equal(g.n_vcpus, 3);
	assert_int_equal(g.vcpus[0].cpu, 0);
	assert_int_equal(g.vcpus[1].cpu, 3);
	assert_int_equal(g.vcpus[1].tid, 103);
	assert_int_equal(g.vcpus[2].cpu, 5);
	assert_null(guest_vcpu(&g, 1));
	guest_release(&g);
}

/* ---- a fake /proc/70, below a directory of its own ---- */

static char fake_root[] = "/tmp/hyptrace-unit.XXXXXX";

static void put(const char *path, const char *text)
{
	char full[200], *slash = full;

	snprintf(full, sizeof(full), "%s/%s", fake_root, path);
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = 0;
		mkdir(full, 0700);
		*slash = '/';
	}
	assert_int_equal(write_file_at(AT_FDCWD, full, text, strlen(text)), 0);
}

static void drop_tree(const char *dir)
{
	char *cmd = str_printf("rm -rf %s%s", fake_root, dir);

	assert_int_equal(system(cmd), 0);
	free(cmd);
}

/*
 * vCPU 1 is unplugged, vCPU 5 plugged in, and 0 stays, though its name is gone: of
 * a recording all three are part.
 */
static void test_hot_plug(void **state)
{
	struct guest_opts o = { .root = fake_root };
	struct guest g = { .pid = 70 };

	put("proc/70/task/71/comm", "CPU 0/KVM\n");
	put("proc/70/task/72/comm", "CPU 1/KVM\n");
	assert_true(guest_threads_changed(&g, &o));
	assert_int_equal(guest_update_vcpus(&g, &o), 2);
	assert_int_equal(g.n_vcpus, 2);
	assert_false(guest_threads_changed(&g, &o));
	put("proc/70/task/71/comm", "renamed\n");
	put("proc/70/task/80/comm", "CPU 5/KVM\n");
	assert_true(guest_threads_changed(&g, &o));
	drop_tree("/proc/70/task/72");
	assert_int_equal(guest_update_vcpus(&g, &o), 1);
	assert_int_equal(g.n_vcpus, 3);
	assert_int_equal(guest_vcpu(&g, 0)->tid, 71);
	assert_int_equal(guest_vcpu(&g, 1)->tid, 72);
	assert_int_equal(guest_vcpu(&g, 5)->tid, 80);
	assert_int_equal(guest_update_vcpus(&g, &o), 0);

	/* plugged in again: which of its two threads ran when, the map cannot say */
	put("proc/70/task/81/comm", "CPU 1/KVM\n");
	assert_int_equal(guest_update_vcpus(&g, &o), 0);
	assert_int_equal(guest_vcpu(&g, 1)->tid, 72);
	guest_release(&g);
	drop_tree("/proc");
}

static void test_vm_that_ended(void **state)
{
	struct guest_opts o = { .root = fake_root };
	struct guest g = { .pid = 70 };

	put("proc/70/task/71/comm", "CPU 0/KVM\n");
	assert_int_equal(guest_update_vcpus(&g, &o), 1);
	drop_tree("/proc");
	assert_false(guest_threads_changed(&g, &o));
	assert_int_equal(guest_update_vcpus(&g, &o), -ENOENT);
	assert_int_equal(guest_vcpu(&g, 0)->tid, 71);

	/* another VM got its pid */
	put("proc/70/task/91/comm", "CPU 0/KVM\n");
	put("proc/70/task/92/comm", "CPU 1/KVM\n");
	assert_int_equal(guest_update_vcpus(&g, &o), -ESRCH);
	assert_int_equal(g.n_vcpus, 1);
	assert_int_equal(guest_vcpu(&g, 0)->tid, 71);
	g.pid = 0;
	assert_int_equal(guest_update_vcpus(&g, &o), -ESRCH);
	assert_false(guest_threads_changed(&g, &o));
	guest_release(&g);
	drop_tree("/proc");
}

/* A VMM in a container: QMP tells the numbers of its own pid namespace. */
static void test_pid_namespace(void **state)
{
	static const char cpus[] = "{\"return\":[{\"thread-id\":7,\"cpu-index\":0},{\"thread-id\":"
				   "9,\"cpu-index\":1}]}";
	struct guest g = { 0 };
	char dir[64];
	int fd;

	put("proc/70/task/1071/status", "Name:\tx\nNSpid:\t1071\t7\nNSpgid:\t1070\t6\n");
	put("proc/70/task/1072/status", "Name:\tx\nNSpid:\t1072\t9\nNSpgid:\t1070\t6\n");
	put("proc/70/task/9/status", "Name:\tx\nNSpid:\t9\t8\nNSpgid:\t1070\t6\n");
	snprintf(dir, sizeof(dir), "%s/proc/70", fake_root);
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(guest_cpus_fast(&g, fd, cpus, strlen(cpus), GUEST_HOW_QMP), 0);
	assert_int_equal(g.n_vcpus, 2);
	assert_int_equal(g.vcpus[0].tid, 1071);
	assert_int_equal(g.vcpus[1].tid, 1072);
	assert_int_equal(guest_host_tid(fd, 1071), 0);
	close(fd);
	drop_tree("/proc");
	guest_release(&g);
}

static int make_root(void **state)
{
	return mkdtemp(fake_root) ? 0 : -1;
}

static int drop_root(void **state)
{
	drop_tree("");
	return 0;
}

/* ---- vm list ---- */

static void test_vm_list(void **state)
{
	static const struct {
		const char *text;
		int ret;
		size_t n;
		uint32_t cid;
		const char *name;
	} rows[] = {
		{ "Running VMs: []\n", 0, 0, 0, NULL },
		{ "", 0, 0, 0, NULL },
		{ "Error: no VirtualizationService\n", -EBADMSG, 0, 0, NULL },
		{ "Running VMs: [\n    VirtualMachineDebugInfo {\n        cid: 10,\n"
		  "        temporaryDirectory: \"/data/misc/virtualizationservice/10\",\n"
		  "        requesterUid: 2000,\n        requesterPid: 4127,\n    },\n]\n",
		  0, 1, 10, NULL },
		{ "Running VMs: [\n    VirtualMachineDebugInfo {\n        name: \"a \\\"b\\\" "
		  "\\u{e4}\\n\",\n"
		  "        cid: 2048,\n        temporaryDirectory: \"}],{\",\n"
		  "        hostConsoleName: Some(\n            \"/dev/pts/1\",\n        ),\n    "
		  "},\n"
		  "    VirtualMachineDebugInfo {\n        name: \"two\",\n        cid: 2049,\n"
		  "        hostConsoleName: None,\n    },\n]\n",
		  0, 2, 2048, "a \"b\" \xc3\xa4\n" },
		/* {:?}, and structs inside */
		{ "[VirtualMachineDebugInfo { x: Y { cid: 7, name: \"n\" }, cid: 8, l: [1, 2] }]", 0, 1, 8,
		  NULL },
		{ "[VirtualMachineDebugInfo { cid: -1 }, V { cid: 4294967295 }, V { cid: 0 }]", 0, 0, 0,
		  NULL },
		{ "[V { cid: 3 }, V { cid: ", -EBADMSG, 1, 3, NULL }, /* what was whole stays */
		{ "[V { cid: 3 }, 5]", -EBADMSG, 1, 3, NULL },
		{ "[V { cid }]", -EBADMSG, 0, 0, NULL },
		{ "[V { name: \"open", -EBADMSG, 0, 0, NULL },
		{ "[V { name: \"\\u{110000}\", cid: 3 }]", -EBADMSG, 0, 0, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct guests g = { 0 };

		assert_int_equal(guest_vm_list_parse(&g, rows[i].text, strlen(rows[i].text)), rows[i].ret);
		assert_int_equal(g.n, rows[i].n);
		if (g.n) {
			assert_int_equal(g.v[0].cid, rows[i].cid);
			same(g.v[0].name, rows[i].name);
			assert_string_equal(g.v[0].vmm->name, "AVF");
		}
		guests_release(&g);
	}
}

/* ---- merging ---- */

static void add(struct guests *g, const char *vmm, const char *name, pid_t pid, uint32_t cid, const char *uds)
{
	struct guest more = { .vmm = guest_vmm_named(vmm),
			      .pid = pid,
			      .cid = cid,
			      .sources = pid ? GUEST_FROM_PROC : GUEST_FROM_VM_LIST };

	more.name = name ? strdup(name) : NULL;
	more.uds = uds ? strdup(uds) : NULL;
	assert_int_equal(guests_merge(g, &more), 0);
	assert_null(more.name);
}

static void test_merge(void **state)
{
	struct guests g = { 0 };

	add(&g, "crosvm", NULL, 10, 2048, NULL);
	add(&g, "QEMU", "web", 11, 0, NULL);
	add(&g, "Firecracker", "a", 12, 3, "/a");
	add(&g, "Firecracker", "b", 13, 3, "/b"); /* the same CID, but it is the VMM's own */
	assert_int_equal(g.n, 4);
	add(&g, "AVF", "microdroid", 0, 2048, NULL); /* by CID */
	add(&g, "QEMU", "web", 0, 5, NULL);	     /* by name */
	assert_int_equal(g.n, 4);
	assert_string_equal(g.v[0].name, "microdroid");
	assert_string_equal(g.v[0].vmm->name, "crosvm");
	assert_int_equal(g.v[0].sources, GUEST_FROM_PROC | GUEST_FROM_VM_LIST);
	assert_int_equal(g.v[1].cid, 5);
	add(&g, "AVF", NULL, 0, 3, NULL);    /* a vhost CID 3 is none of the two above */
	add(&g, "QEMU", "web", 20, 6, NULL); /* another pid: another VM, whatever its name */
	assert_int_equal(g.n, 6);
	guests_release(&g);
}

/* ---- libvirt: a fake of its API with two domains ---- */

struct fake_domain {
	const char *name, *xml, *cpus;
};
static struct fake_domain fake_domains[] = {
	{ "web",
	  "<domain type='kvm' id='1'><name>web</name><devices><vsock model='virtio'>"
	  "<cid auto='yes' address='5'/><alias name='vsock0'/></vsock></devices></domain>",
	  "{\"return\":[{\"thread-id\":201,\"cpu-index\":0},{\"thread-id\":203,\"cpu-index\":2}],"
	  "\"id\":\"libvirt-7\"}" },
	{ "plain", "<domain><name>plain</name></domain>", "{\"return\":[]}" },
};
static int fake_connections, fake_writers, fake_commands;
static bool fake_down;

static virConnectPtr fake_connect(const char *uri)
{
	fake_writers++;
	fake_connections++;
	return (virConnectPtr)&fake_domains;
}

static virConnectPtr fake_connect_read_only(const char *uri)
{
	assert_string_equal(uri, "qemu:///system");
	if (fake_down)
		return NULL;
	fake_connections++;
	return (virConnectPtr)&fake_domains;
}

static int fake_close(virConnectPtr conn)
{
	return --fake_connections;
}

static int fake_list(virConnectPtr conn, virDomainPtr **domains, unsigned int flags)
{
	*domains = calloc(3, sizeof(**domains));
	for (size_t i = 0; i < ARRAY_SIZE(fake_domains); i++)
		(*domains)[i] = (virDomainPtr)&fake_domains[i];
	return ARRAY_SIZE(fake_domains);
}

static const char *fake_name(virDomainPtr domain)
{
	return ((struct fake_domain *)domain)->name;
}

static char *fake_xml(virDomainPtr domain, unsigned int flags)
{
	return strdup(((struct fake_domain *)domain)->xml);
}

static int fake_free(virDomainPtr domain)
{
	return 0;
}

static int fake_monitor(virDomainPtr domain, const char *cmd, char **result, unsigned int flags)
{
	fake_commands++;
	*result = strdup(((struct fake_domain *)domain)->cpus);
	return 0;
}

static const struct guest_libvirt fake_libvirt = {
	.connect = fake_connect,
	.connect_read_only = fake_connect_read_only,
	.close = fake_close,
	.list = fake_list,
	.name = fake_name,
	.xml = fake_xml,
	.domain_free = fake_free,
	.monitor = fake_monitor,
};

static void test_libvirt(void **state)
{
	struct guests g = { 0 };
	struct guest proc = {
		.name = strdup("web"), .pid = 200, .vmm = guest_vmm_named("QEMU"), .sources = GUEST_FROM_PROC
	};

	assert_int_equal(guests_merge(&g, &proc), 0);
	assert_int_equal(guest_libvirt_ask(&g, &fake_libvirt, "qemu:///system", NULL), 0);
	assert_int_equal(g.n, 2);
	assert_int_equal(g.v[0].cid, 5);
	assert_int_equal(g.v[0].pid, 200);
	assert_int_equal(g.v[0].sources, GUEST_FROM_PROC | GUEST_FROM_LIBVIRT);
	assert_int_equal(guest_vcpu(&g.v[0], 2)->tid, 203); /* sparse: 0 and 2 */
	assert_int_equal(guest_vcpu(&g.v[0], 2)->how, GUEST_HOW_LIBVIRT);
	assert_null(guest_vcpu(&g.v[0], 1));
	assert_string_equal(g.v[1].name, "plain");
	assert_string_equal(g.v[0].vmm->name, "QEMU");
	assert_null(g.v[1].vmm);
	assert_int_equal(g.v[1].cid, GUEST_NO_CID);
	assert_int_equal(fake_connections, 0);
	assert_int_equal(fake_writers, 1);
	fake_down = true;
	assert_int_equal(guest_libvirt_ask(&g, &fake_libvirt, "qemu:///system", NULL), 0);
	assert_int_equal(g.n, 2);
	fake_down = false;
	guests_release(&g);
}

/* A domain whose threads are known is left in peace: a monitor command taints it. */
static void test_libvirt_quiet(void **state)
{
	struct guests g = { 0 };
	struct guest web = { .name = strdup("web"), .pid = 200 },
		     plain = { .name = strdup("plain"), .pid = 300 };

	guest_set_vcpu(&web, 0, 201, GUEST_HOW_NAME);
	guest_set_vcpu(&plain, 0, 301, GUEST_HOW_NAME);
	assert_int_equal(guests_merge(&g, &web), 0);
	assert_int_equal(guests_merge(&g, &plain), 0);
	fake_commands = fake_writers = 0;
	assert_int_equal(guest_libvirt_ask(&g, &fake_libvirt, "qemu:///system", NULL), 0);
	assert_int_equal(fake_commands, 0);
	assert_int_equal(fake_writers, 0);
	guests_release(&g);
}

static void test_libvirt_cid(void **state)
{
	assert_int_equal(
		guest_libvirt_cid("<vsock model=\"virtio\">\n <cid address=\"12\" auto='no'/></vsock>"), 12);
	assert_int_equal(guest_libvirt_cid("<vsock><cid auto='yes'/></vsock>"), 0);
	assert_int_equal(guest_libvirt_cid("<vsock></vsock><cid address='3'/>"), 0);
	assert_int_equal(guest_libvirt_cid("<vsock><cid address='x'/></vsock>"), 0);
	assert_int_equal(guest_libvirt_cid("<vsock><cid address='3"), 0);
	assert_int_equal(guest_libvirt_cid(""), 0);
}

/* ---- sockets: one client each, a script of what is said ---- */

struct fake_server {
	char path[200];
	int fd;
	const char *const *say; /* after the first, each after a line was heard */
	bool stays;		/* until the client has closed, after so many ms */
	int64_t stayed;
	pthread_t thread;
};

static void *serve(void *arg)
{
	struct fake_server *s = arg;
	int fd = accept(s->fd, NULL, NULL);
	char in[512];

	for (size_t i = 0; fd >= 0 && s->say[i]; i++) {
		if (i && recv(fd, in, sizeof(in), 0) <= 0)
			break;
		if (send(fd, s->say[i], strlen(s->say[i]), MSG_NOSIGNAL) < 0)
			break;
	}
	if (fd >= 0) {
		int64_t start = msg_now();

		if (!s->stays)
			shutdown(fd, SHUT_WR);
		while (recv(fd, in, sizeof(in), 0) > 0)
			;
		s->stayed = msg_now() - start;
		close(fd);
	}
	return NULL;
}

/* Its path is too long for sun_path, so that this is seen to work. */
static void serve_start(struct fake_server *s, const char *const *say)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char dir[100] = "/tmp/hyptrace-unit.XXXXXX", cwd[4096];

	assert_non_null(mkdtemp(dir));
	snprintf(s->path, sizeof(s->path), "%s/%0*d", dir, 90, 0);
	assert_int_equal(mkdir(s->path, 0700), 0);
	s->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(s->path), 0);
	strcpy(a.sun_path, "s");
	assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(s->fd, 1), 0);
	assert_int_equal(chdir(cwd), 0);
	strcat(s->path, "/s");
	s->say = say;
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void serve_end(struct fake_server *s)
{
	pthread_join(s->thread, NULL);
	close(s->fd);
	unlink(s->path);
	for (int i = 0; i < 2; i++) {
		*strrchr(s->path, '/') = 0;
		rmdir(s->path);
	}
}

static void test_qmp(void **state)
{
	static const char *const ok[] = {
		"{\"QMP\": {\"version\": {\"qemu\": {\"major\": 7}}, \"capabilities\": "
		"[\"oob\"]}}\r\n",
		"{\"return\": {}}\r\n",
		"{\"timestamp\": {\"seconds\": 1}, \"event\": \"NIC_RX_FILTER_CHANGED\"}\r\n"
		"{\"return\": [{\"thread-id\": 41, \"props\": {\"core-id\": 0}, \"qom-path\": "
		"\"/machine\", \"cpu-index\": 0},"
		" {\"thread-id\": 0, \"cpu-index\": 1}, {\"thread-id\": 43, \"cpu-index\": "
		"3}]}\r\n",
		NULL,
	};
	static const char *const broken[] = { "{\"QMP\": {}}\n",
					      "{\"error\": {\"class\": \"GenericError\"}}\n", NULL };
	static const char *const closes[] = { "{\"QM", NULL };
	struct guest_opts o = { .timeout_ms = 5000 };
	struct fake_server s = { 0 };
	struct guest_proc p = { .dir = -1, .qmp = s.path, .o = &o };
	struct guest g = { 0 };

	serve_start(&s, ok);
	assert_int_equal(guest_ask_qmp(&g, &p), 0);
	serve_end(&s);
	assert_int_equal(g.n_vcpus, 2);
	assert_int_equal(guest_vcpu(&g, 3)->tid, 43);
	serve_start(&s, broken);
	assert_int_equal(guest_ask_qmp(&g, &p), -EPROTO);
	serve_end(&s);
	serve_start(&s, closes);
	assert_int_equal(guest_ask_qmp(&g, &p), -EPIPE);
	serve_end(&s);
	p.qmp = "/nonexistent/qmp";
	assert_int_equal(guest_ask_qmp(&g, &p), -ENOENT);
	guest_release(&g);
}

/* A monitor that somebody else holds accepts nobody: the wait has an end. */
static void test_qmp_busy(void **state)
{
	struct guest_opts o = { .timeout_ms = 30 };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct guest_proc p = { .dir = -1, .o = &o };
	struct guest g = { 0 }, vm = { 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/hyptrace-unit-%d", getpid());
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	p.qmp = vm.uds = a.sun_path;
	assert_int_equal(guest_ask_qmp(&g, &p), -ETIMEDOUT);
	assert_int_equal(guest_probe(&vm, 823, 30), GUEST_SILENT);
	close(fd);
	assert_int_equal(guest_probe(&vm, 823, 30), GUEST_REFUSED);
	unlink(a.sun_path);
	assert_int_equal(guest_probe(&vm, 823, 30), GUEST_UNREACHABLE);
}

static void test_probe_unix(void **state)
{
	static const char *const ok[] = { "", "OK 1073741824\n", NULL }, *const none[] = { "", NULL },
				 *const strange[] = { "", "220 smtp\n", NULL };
	struct fake_server s = { 0 };
	struct guest vm = { .uds = s.path };

	/* trace-cmd's agent must have noted the child that serves us before that ends */
	s.stays = true;
	serve_start(&s, ok);
	assert_int_equal(guest_probe(&vm, 823, 5000), GUEST_LISTENS);
	serve_end(&s);
	assert_in_range(s.stayed, 150, 100000);
	s.stays = false;
	serve_start(&s, ok);
	assert_int_equal(guest_probe(&vm, 823, 5000), GUEST_BUSY);
	serve_end(&s);
	serve_start(&s, none);
	assert_int_equal(guest_probe(&vm, 823, 5000), GUEST_REFUSED);
	serve_end(&s);
	serve_start(&s, strange);
	assert_int_equal(guest_probe(&vm, 823, 5000), GUEST_REFUSED);
	serve_end(&s);
}

static void test_http(void **state)
{
	static const char
		*const ok[] = { "", "HTTP/1.1 200 \r\nServer: Firecracker API\r\nContent-Length: 2\r\n\r\n{}",
				NULL },
		       *const missing[] = { "", "HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", NULL },
		       *const cut[] = { "", "HTTP/1.1 200 \r\nContent-Length: 9\r\n\r\n{}", NULL };
	struct buf body = { 0 };
	struct fake_server s = { 0 };

	serve_start(&s, ok);
	assert_int_equal(guest_http_get(s.path, "/vm/config", &body, 5000), 0);
	assert_string_equal(buf_str(&body), "{}");
	serve_end(&s);
	serve_start(&s, missing);
	assert_int_equal(guest_http_get(s.path, "/vm/config", &body, 5000), -EBADMSG);
	serve_end(&s);
	serve_start(&s, cut);
	assert_int_equal(guest_http_get(s.path, "/vm/config", &body, 5000), -EBADMSG);
	serve_end(&s);
	buf_release(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spec),	      cmocka_unit_test(test_bad_spec),
		cmocka_unit_test(test_resolve),	      cmocka_unit_test(test_vmm_of),
		cmocka_unit_test(test_args),	      cmocka_unit_test(test_ivshmem),
		cmocka_unit_test(test_vhost_args),    cmocka_unit_test(test_config),
		cmocka_unit_test(test_vcpu_name),     cmocka_unit_test(test_hot_plug),
		cmocka_unit_test(test_vm_that_ended), cmocka_unit_test(test_pid_namespace),
		cmocka_unit_test(test_set_vcpu),      cmocka_unit_test(test_vm_list),
		cmocka_unit_test(test_merge),	      cmocka_unit_test(test_libvirt),
		cmocka_unit_test(test_libvirt_quiet), cmocka_unit_test(test_libvirt_cid),
		cmocka_unit_test(test_qmp),	      cmocka_unit_test(test_qmp_busy),
		cmocka_unit_test(test_probe_unix),    cmocka_unit_test(test_http),
	};

	return cmocka_run_group_tests(tests, make_root, drop_root);
}
