// SPDX-License-Identifier: LGPL-2.1-or-later
/* The VMs that libvirt knows, by its library when that is installed. */
#include "record/guest/guest-priv.h"

#include <dlfcn.h>

/*
 * libvirt, loaded when it is there. Of its API, stable since 0.9.13, by the
 * names and types of include/libvirt/libvirt-domain.h and include/libvirt/libvirt-qemu.h.
 */
#define DOMAINS_ACTIVE 1u

#ifdef HYPTRACE_LIBVIRT
#include <libvirt/libvirt-qemu.h>
#include <libvirt/virterror.h>
_Static_assert(DOMAINS_ACTIVE == VIR_CONNECT_LIST_DOMAINS_ACTIVE, "libvirt-domain.h");
/* The compiler warns of another type than the function has. */
#define SYM(lib, pointer, function) 1 ? &(pointer) : (__typeof__(&function) *)NULL, lib, #function
#else
#define SYM(lib, pointer, function) &(pointer), lib, #function
#endif

struct _virError;

/* Silences libvirt, which else prints its errors on stderr. */
static void hush(void *data, struct _virError *error)
{
}

static bool libvirt_load(void *lib, void *qemu, struct guest_libvirt *api)
{
	void (*set_error_func)(void *, void (*)(void *, struct _virError *));
	const struct {
		void *fn;
		void *lib;
		const char *name;
	} syms[] = {
		{ SYM(lib, api->connect, virConnectOpen) },
		{ SYM(lib, api->connect_read_only, virConnectOpenReadOnly) },
		{ SYM(lib, api->close, virConnectClose) },
		{ SYM(lib, api->list, virConnectListAllDomains) },
		{ SYM(lib, api->name, virDomainGetName) },
		{ SYM(lib, api->xml, virDomainGetXMLDesc) },
		{ SYM(lib, api->domain_free, virDomainFree) },
		{ SYM(lib, set_error_func, virSetErrorFunc) },
		{ SYM(qemu, api->monitor, virDomainQemuMonitorCommand) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(syms); i++) {
		void *sym = syms[i].lib ? dlsym(syms[i].lib, syms[i].name) : NULL;

		if (!sym && syms[i].lib == lib)
			return false;
		memcpy(syms[i].fn, &sym, sizeof(sym));
	}
	set_error_func(NULL, hush);
	return true;
}

/* The value of an attribute in the tag that begins at p; "" if missing. */
static void attribute(const char *p, const char *name, char *out, size_t size)
{
	const char *end = strchr(p, '>');
	size_t len = strlen(name), n = 0;

	for (; end && p < end; p++) {
		char quote = p[0] == ' ' && !strncmp(p + 1, name, len) && p[len + 1] == '=' ? p[len + 2] : 0;

		if (quote != '\'' && quote != '"')
			continue;
		for (p += len + 3; p < end && *p != quote && n + 1 < size; p++)
			out[n++] = *p;
		break;
	}
	out[n] = 0;
}

uint32_t guest_libvirt_cid(const char *xml)
{
	const char *vsock = strstr(xml, "<vsock"), *cid = vsock ? strstr(vsock, "<cid") : NULL;
	const char *end = vsock ? strstr(vsock, "</vsock>") : NULL;
	char text[16];
	uint32_t value = GUEST_NO_CID;

	if (!cid || !end || cid > end)
		return GUEST_NO_CID;
	attribute(cid, "address", text, sizeof(text));
	return guest_cid_parse(text, &value) ? value : GUEST_NO_CID;
}

/* Reads one domain. *deaf: its threads are not known and this connection cannot ask. */
static int add_domain(struct guests *g, const struct guest_libvirt *api, virDomainPtr domain, bool writable,
		      bool *deaf)
{
	struct guest vm = { .sources = GUEST_FROM_LIBVIRT };
	const char *name = api->name(domain), *tag;
	const struct guest *before = NULL;
	char *xml = api->xml(domain, 0), type[16] = "";
	bool known;
	int ret = 0;

	vm.name = name ? strdup(name) : NULL;
	if (vm.name && xml && *xml) {
		/* <domain type='kvm'>: QEMU, or whatever /proc knows better */
		tag = strstr(xml, "<domain");
		if (tag)
			attribute(tag, "type", type, sizeof(type));
		if (!strcmp(type, "kvm") || !strcmp(type, "qemu"))
			vm.vmm = guest_vmm_named("QEMU");
		vm.cid = guest_libvirt_cid(xml);
		for (size_t i = 0; i < g->n && !before; i++)
			if ((vm.cid && g->v[i].cid == vm.cid) ||
			    (g->v[i].name && !strcmp(g->v[i].name, vm.name)))
				before = &g->v[i];
		known = before && before->n_vcpus;
		for (size_t i = 0; known && i < before->n_vcpus; i++)
			known = before->vcpus[i].tid;
		if (!known) {
			char *answer = NULL;

			/*
			 * libvirt marks a domain as tainted by a monitor command ("custom-monitor"),
			 * harmless as this one is.
			 */
			if (writable &&
			    api->monitor(domain, "{\"execute\":\"query-cpus-fast\"}", &answer, 0) >= 0 &&
			    answer)
				guest_cpus_fast(&vm, -1, answer, strlen(answer), GUEST_HOW_LIBVIRT);
			*deaf |= !writable;
			free(answer);
		}
		ret = guests_merge(g, &vm);
	}
	guest_release(&vm);
	free(xml);
	return ret;
}

static int ask_connection(struct guests *g, const struct guest_libvirt *api, virConnectPtr conn,
			  bool writable, bool *deaf)
{
	virDomainPtr *domains = NULL;
	int n = api->list(conn, &domains, DOMAINS_ACTIVE), ret = 0;

	for (int i = 0; i < n; i++) {
		ret = ret ? ret : add_domain(g, api, domains[i], writable, deaf);
		api->domain_free(domains[i]);
	}
	free(domains);
	return ret;
}

int guest_libvirt_ask(struct guests *g, const struct guest_libvirt *api, const char *uri,
		      const struct log *log)
{
	virConnectPtr conn = api->connect_read_only(uri);
	bool deaf = false;
	int ret;

	if (!conn) {
		log_debug(log, "libvirt is installed but does not answer at %s",
			  uri ? uri : "its default URI");
		return 0;
	}
	ret = ask_connection(g, api, conn, false, &deaf);
	api->close(conn);
	conn = !ret && deaf && api->monitor ? api->connect(uri) : NULL;
	if (conn) {
		ret = ask_connection(g, api, conn, true, &deaf);
		api->close(conn);
	}
	return ret;
}

int guests_from_libvirt(struct guests *g, const struct guest_opts *o)
{
	/* a session's daemon would be started by asking; the system's is there or not */
	const char *uri = getenv("LIBVIRT_DEFAULT_URI") ? NULL : "qemu:///system";
	struct guest_libvirt api = { 0 };
	void *lib, *qemu;
	int ret = 0;

	if (*guest_root(o))
		return 0; /* libvirt describes this machine, not a tree */
	lib = dlopen("libvirt.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return 0;
	qemu = dlopen("libvirt-qemu.so.0", RTLD_NOW | RTLD_LOCAL);
	if (libvirt_load(lib, qemu, &api))
		ret = guest_libvirt_ask(g, &api, uri, o ? o->log : NULL);
	/* libvirt keeps threads and exit handlers: it is not unloaded */
	return ret;
}
