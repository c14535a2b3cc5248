/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_GUEST_H
#define HYPTRACE_GUEST_H

#include <sys/types.h>

#include "base/std.h"
#include "base/log.h"

/* Guests: what -A names, which virtual machines run here, and which host threads are their vCPUs. */

#define GUEST_PORT   823 /* trace-cmd's and our agent's */
#define GUEST_NO_CID 0	 /* CID 0 is the hypervisor's own and never a guest's */

enum guest_addr {
	GUEST_BY_NAME, /* a VM of this machine: guest_spec_resolve finds its address */
	GUEST_VSOCK,
	GUEST_TCP,
	GUEST_UNIX, /* a VMM's socket that takes CONNECT (Firecracker, vhost-device-vsock) */
};

struct guest_spec {
	enum guest_addr kind;
	char *name;   /* for messages and file names; never NULL, never with a '/' */
	bool named;   /* the user gave "name@" */
	uint32_t cid; /* GUEST_VSOCK */
	char *addr;   /* GUEST_TCP: host or IP address; GUEST_UNIX: path */
	uint32_t port;
};

/*
 * The argument of -A: "name@cid:port", "name@cid", "cid", "cid:port", "name", "name:port", "ADDR:PORT",
 * "name@ADDR:PORT", "unix:PATH[:PORT]", "name@unix:PATH". As trace-cmd reads it: split at the last ':', then
 * at '@'; all digits are a CID, a '.' or ':' makes an address, else it is a VM's name. IPv6 addresses may
 * stand in [brackets]. -EINVAL with a message that names the part and the fault.
 */
int guest_spec_parse(struct guest_spec *out, const char *arg, const struct log *log);
void guest_spec_release(struct guest_spec *s);

/* A program that runs VMs: a row of the table in vmm.c, which holds all that is known of it. */
struct guest_args;
struct argv;
struct guest_vmm {
	const char *name;	 /* for users */
	const char *exes[4];	 /* its executables; "qemu-system-*": and what begins so */
	const char *name_option; /* that names the VM; NULL: --name */
	void (*args)(struct guest_args *a, struct argv *v); /* reads its arguments; NULL: as most VMMs' */
	const char *threads[3];				    /* names of vCPU threads, '#' for the number */
	bool may_lack_threads; /* they may have other names, and its descriptors may not be ours to see */
	const char *api;       /* GET of this on its API socket gives its configuration as JSON; NULL: none */
	const char *vsock_advice;   /* the option that gives a VM a vsock; NULL: not known */
	const char *threads_advice; /* that gives threads their names; NULL: they have them */
};
/* NULL: there is no such row. */
const struct guest_vmm *guest_vmm_named(const char *name);
/* "QEMU"; "other" of NULL. */
const char *guest_vmm_name(const struct guest_vmm *vmm);

/* Evidence by which a vCPU's thread was found. */
enum guest_how {
	GUEST_HOW_NONE,	   /* not found: tid is 0 */
	GUEST_HOW_NAME,	   /* the thread's name */
	GUEST_HOW_DEBUGFS, /* kvm/PID-FD/vcpuN/pid; x86 has it (Linux >= 5.19), arm64 not */
	GUEST_HOW_QMP,
	GUEST_HOW_LIBVIRT,
	GUEST_HOW_SYSCALL, /* seen in ioctl(vcpu fd, KVM_RUN) */
	GUEST_HOW_TRACE,   /* for those who find it in the trace: guest_set_vcpu */
};

struct guest_vcpu {
	unsigned int cpu; /* the VMM's number; with DEBUGFS and SYSCALL KVM's id (on x86 the APIC id) */
	pid_t tid;	  /* 0: not known */
	enum guest_how how;
};

/* Sources that list a VM: bits of guest.sources. */
#define GUEST_FROM_PROC	   1u
#define GUEST_FROM_LIBVIRT 2u
#define GUEST_FROM_VM_LIST 4u

struct guest {
	char *name;		     /* NULL: it has none */
	const struct guest_vmm *vmm; /* NULL: another program with KVM vCPUs */
	pid_t pid;		     /* of the VMM; 0: not known */
	uint32_t cid;		     /* GUEST_NO_CID: no vsock, or not known */
	char *uds;     /* the VMM's UNIX socket for vsock; then the CID cannot be connected to. NULL:
			  none */
	char *ivshmem; /* the file of the memory of its ivshmem device. NULL: none */
	unsigned int sources;
	struct guest_vcpu *vcpus; /* sorted by cpu; numbers may be missing (sparse, unplugged) */
	size_t n_vcpus;
	uint64_t n_threads; /* of the VMM, when it was last looked at; 0: not yet */
};

struct guests {
	struct guest *v;
	size_t n;
};

struct guest_opts {
	const char *root;      /* prefix of all paths; NULL or "": this machine. Else libvirt is not asked */
	unsigned int skip;     /* GUEST_FROM_*: sources not to ask */
	int timeout_ms;	       /* for each answer waited for; 0: 500 */
	const struct log *log; /* sources that could not be asked, as LOG_DEBUG */
};

/*
 * Every VM of the machine, sorted by pid: from /proc, libvirt (when it is installed) and Android's
 * `vm list` (when it is there); each works without the others, and their statements about one VM are
 * merged by CID and name. A missing or refusing source is not an error. -ENOMEM only.
 */
int guests_find(struct guests *out, const struct guest_opts *o);
void guests_release(struct guests *g);
void guest_release(struct guest *g);

/*
 * Looks for the threads of a VM's vCPUs once more: they come and go (hot-plug). A vCPU that has gone keeps
 * its thread, for what it did was recorded. Returns how many threads are new, or -errno, and then all is as
 * it was: -ESRCH, -ENOENT: the VM has ended, or its pid is another's by now.
 */
int guest_update_vcpus(struct guest *g, const struct guest_opts *o);
/* True if that may find something: the VMM has more or fewer threads than it had then. Cheap. */
bool guest_threads_changed(const struct guest *g, const struct guest_opts *o);
/*
 * Sets the thread of a vCPU, from whichever source. A thread that is already
 * known for this vCPU stays, and so does the number of a known thread: false then.
 */
bool guest_set_vcpu(struct guest *g, unsigned int cpu, pid_t tid, enum guest_how how);
/* NULL: the VM has no such vCPU. */
const struct guest_vcpu *guest_vcpu(const struct guest *g, unsigned int cpu);

/*
 * Completes the user's argument by the running VMs: a name gets its address, a bare address its VM's
 * name. *vm: the VM, or NULL if none matches. -ENOENT: a name that no VM has; -ENXIO: the VM has no
 * vsock; the message lists the names.
 */
int guest_spec_resolve(struct guest_spec *s, const struct guests *all, struct guest **vm,
		       const struct log *log);

const char *guest_how_name(enum guest_how how); /* "name" */

enum guest_answer {
	GUEST_UNREACHABLE, /* no vsock on this host, no such CID, no such socket */
	GUEST_REFUSED,	   /* the guest is there, nothing listens */
	GUEST_SILENT,	   /* no answer within the timeout */
	GUEST_BUSY,	   /* closed at once, as by an agent that serves another recorder */
	GUEST_LISTENS,
};

/*
 * True if something listens on the agent's port of a guest with a CID or a socket: a connection that is
 * closed again, 0.2 s later, without a byte. An agent takes it for a recorder that went away: harmless, but
 * stock's agent forks for it, and one that is recording sees a second client come and go. So do it when the
 * user asks for it, not by the way.
 */
enum guest_answer guest_probe(const struct guest *g, uint32_t port, int timeout_ms);
const char *guest_answer_name(enum guest_answer a); /* "listens" */

#endif
