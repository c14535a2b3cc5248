/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_GUEST_PRIV_H
#define HYPTRACE_GUEST_PRIV_H

#include "record/guest/guest.h"
#include "file/wire/transport.h"
#include "base/files.h"

#include <limits.h>

/* ms to wait for an answer; o may be NULL, here and below. */
int guest_timeout(const struct guest_opts *o);
/* The prefix of all paths, "" for this machine. */
const char *guest_root(const struct guest_opts *o);
/* Adds a VM, or merges it with the one of the same CID or name. Takes over the members of `more`. -ENOMEM. */
int guests_merge(struct guests *g, struct guest *more);

/* Options of a VMM's command line; strings are malloc'ed or NULL. */
struct guest_args {
	char *name;
	uint32_t cid;
	char *uds;	    /* as written: may be relative */
	char *qmp;	    /* path of a QMP socket */
	char *vhost_socket; /* QEMU's vhost-user-vsock: the socket of vhost-device-vsock */
	char *api;	    /* Firecracker's, cloud-hypervisor's API socket */
	char *config;	    /* Firecracker's --config-file */
	char *ivshmem;	    /* QEMU's first ivshmem-plain: the file of its memory */
};

/* By the name of the executable; NULL: no VMM we know. */
const struct guest_vmm *guest_vmm_of(const char *exe);
/* cmdline: arguments ended by NUL, as in /proc/PID/cmdline. -EBADMSG: the last one is cut off. */
int guest_args_parse(struct guest_args *a, const struct guest_vmm *vmm, const char *cmdline, size_t len);
void guest_args_release(struct guest_args *a);
/* A whole decimal number that can be a guest's CID. */
bool guest_cid_parse(const char *s, uint32_t *cid);
/*
 * Firecracker's configuration, cloud-hypervisor's vm.info: the vsock's CID and
 * socket, unless the arguments gave them. -EBADMSG: not JSON.
 */
int guest_config_parse(struct guest_args *a, const char *text, size_t len);

/*
 * vhost-device-vsock's arguments, one row per VM it serves. Returns the number
 * of rows (each to be released), at most max.
 */
size_t guest_vhost_args(const char *cmdline, size_t len, struct guest_args *rows, size_t max);

/* Merges what libvirt knows into g. -ENOMEM only: a source that fails is logged for debugging. */
int guests_from_libvirt(struct guests *g, const struct guest_opts *o);
/* The output of `vm list`: Rust's pretty-debug of the VMs. -EBADMSG: it ends in the middle. */
int guest_vm_list_parse(struct guests *g, const char *text, size_t len);

/* As libvirt's headers have them, which need not be installed. */
typedef struct _virConnect *virConnectPtr;
typedef struct _virDomain *virDomainPtr;

/* libvirt's functions in use; loaded at run time, a fake in the tests. */
struct guest_libvirt {
	virConnectPtr (*connect)(const char *uri);
	virConnectPtr (*connect_read_only)(const char *uri);
	int (*close)(virConnectPtr conn);
	int (*list)(virConnectPtr conn, virDomainPtr **domains, unsigned int flags);
	const char *(*name)(virDomainPtr domain);
	char *(*xml)(virDomainPtr domain, unsigned int flags);
	int (*domain_free)(virDomainPtr domain);
	/* NULL: libvirt-qemu is not installed */
	int (*monitor)(virDomainPtr domain, const char *cmd, char **result, unsigned int flags);
};
/* Merges the running domains of that URI (NULL: libvirt's default) into g. -ENOMEM. */
int guest_libvirt_ask(struct guests *g, const struct guest_libvirt *api, const char *uri,
		      const struct log *log);
/* The CID in a domain's XML: <vsock><cid address='3'/></vsock>. */
uint32_t guest_libvirt_cid(const char *xml);

/* Below, dir is a descriptor of /proc/PID. */

/*
 * Numbers of a directory's entries, ascending: threads (where a name is there twice, the first is the vCPU,
 * the later one inherited its name) or descriptors. Returns how many; *out is the caller's to free.
 */
size_t guest_numbers(int dir, const char *path, int **out);
/* The thread's number here, when tid is its number in the VMM's pid namespace; 0: none such. */
pid_t guest_host_tid(int dir, pid_t tid);

/* "CPU 3/KVM", "crosvm_vcpu3", "vcpu3", "kvm-vcpu-3", "fc_vcpu 3". */
bool guest_vcpu_name(const char *comm, unsigned int *cpu);
/* /proc/PID as a directory descriptor, and what is needed with it. */
struct guest_proc {
	int dir;
	const char *qmp; /* path to connect to, or NULL */
	const struct guest_opts *o;
};
/* Fills in g->vcpus, as many as can be found, and g->n_threads. */
void guest_find_vcpus(struct guest *g, const struct guest_proc *p);
/* True if the process has a KVM vCPU open. */
bool guest_has_vcpu_fd(int dir);
/* vCPUs by the answer to query-cpus-fast; dir: /proc/PID, or -1. -EBADMSG, -ENOMSG: another answer. */
int guest_cpus_fast(struct guest *g, int dir, const char *text, size_t len, enum guest_how how);
/* The same, asked at p->qmp; without one there is nothing to do: 0. -errno, logged for debugging. */
int guest_ask_qmp(struct guest *g, const struct guest_proc *p);

/* Appends the body of a GET on an HTTP server on a UNIX socket. -EBADMSG: no 200, or truncated. */
int guest_http_get(const char *path, const char *what, struct buf *body, int timeout_ms);

#endif
