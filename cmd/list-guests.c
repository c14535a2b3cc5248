// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace list: the machine's virtual machines. */
#include <string.h>

#include "guest/guest.h"
#include "list-priv.h"
#include "util/visible.h"

#define PROBE_MS 1000

static const char *probe_guest(const struct list *l, const struct guest *g)
{
	if (!l->probe || (!g->cid && !g->uds))
		return NULL;
	return guest_answer_name(guest_probe(g, l->probe, PROBE_MS));
}

static void guest_to_json(const struct list *l, const struct guest *g)
{
	static const char *const sources[] = { "proc", "libvirt", "vm list" };
	struct json *j = l->json;

	json_object(j);
	json_key_str(j, "name", g->name);
	json_key_str(j, "vmm", guest_vmm_name(g->vmm));
	json_key_known(j, "pid", (uint64_t)g->pid);
	json_key_known(j, "cid", g->cid);
	json_key_str(j, "socket", g->uds);
	json_key(j, "sources");
	json_array(j);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (g->sources & 1u << i)
			json_str(j, sources[i]);
	json_array_end(j);
	json_key(j, "vcpus");
	json_array(j);
	for (size_t i = 0; i < g->n_vcpus; i++) {
		json_object(j);
		json_key_u64(j, "cpu", g->vcpus[i].cpu);
		json_key_known(j, "tid", (uint64_t)g->vcpus[i].tid);
		json_key_str(j, "how", guest_how_name(g->vcpus[i].how));
		json_object_end(j);
	}
	json_array_end(j);
	if (l->probe)
		json_key_str(j, "agent", probe_guest(l, g));
	json_object_end(j);
}

static void print_number_or(FILE *out, const char *fmt, const char *none, uint64_t v)
{
	char text[24] = "-";

	if (v)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	fprintf(out, fmt, v ? text : none);
}

static void print_threads(FILE *out, const struct guest *g)
{
	if (!g->n_vcpus)
		fputs("-", out);
	for (size_t i = 0; i < g->n_vcpus; i++) {
		fprintf(out, "%s%u:", i ? " " : "", g->vcpus[i].cpu);
		print_number_or(out, "%s", "?", (uint64_t)g->vcpus[i].tid);
	}
}

static void list_guest(const struct list *l, const struct guest *g, int width)
{
	const char *agent = probe_guest(l, g);
	fprintf(l->out, "%-*s  %-16s ", width, VISIBLE(g->name ? g->name : "-"), guest_vmm_name(g->vmm));
	print_number_or(l->out, "%7s ", "-", (uint64_t)g->pid);
	print_number_or(l->out, "%10s  ", "-", g->cid);
	if (l->probe)
		fprintf(l->out, "%-11s  ", agent ? agent : "-");
	print_threads(l->out, g);
	fputc('\n', l->out);
	if (g->uds)
		fprintf(l->out, "%*s  vsock by unix:%s\n", width, "", VISIBLE(g->uds));
}

static void print_guests(const struct list *l, const struct guests *g)
{
	int width = 4;

	if (!g->n) {
		fputs("guests: none\n", l->out);
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].name && strlen(g->v[i].name) > (size_t)width)
			width = strlen(g->v[i].name) > 40 ? 40 : (int)strlen(g->v[i].name);
	fprintf(l->out, "%-*s  %-16s %7s %10s  %s%s\n", width, "NAME", "VMM", "PID", "CID",
		l->probe ? "AGENT        " : "", "VCPU:THREAD");
	for (size_t i = 0; i < g->n; i++)
		list_guest(l, &g->v[i], width);
}

int list_guests(struct list *l)
{
	struct guest_opts o = { .root = l->root, .log = l->log };
	struct guests all;
	int ret = guests_find(&all, &o);

	if (ret)
		return ret;
	if (l->out) {
		print_guests(l, &all);
	} else {
		json_key(l->json, "guests");
		json_array(l->json);
		for (size_t i = 0; i < all.n; i++)
			guest_to_json(l, &all.v[i]);
		json_array_end(l->json);
	}
	guests_release(&all);
	return 0;
}
