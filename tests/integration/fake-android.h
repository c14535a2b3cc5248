/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A FAKE of Android's hypervisor tracing, for tests: no lab has these layouts.
 * What fake-android.c (the tree) and feed-android.c (the pages) both know.
 *
 * After the kernel's sources (arch/arm64/kvm/hyp_events.c, hyp_trace.c,
 * nvhe/trace.c and include/asm/kvm_hypevents.h of the Android common kernels),
 * and on purpose with none of hyptrace's own code.
 */
#ifndef FAKE_ANDROID_H
#define FAKE_ANDROID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS 3

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- events -------------------------------------------------------------------- */

#define A15 1
#define A16 2

struct event {
	int in; /* layouts that have it */
	const char *name;
	const char *fields; /* packed, in this order */
	const char *print;  /* the format file's "print fmt" */
	const char *shows;  /* the same for printf(), of 64-bit values */
};

/* In the order of their ids. */
static const struct event events[] = {
	{ A15 | A16, "hyp_enter", "", "\" \", ", "" },
	{ A15 | A16, "hyp_exit", "", "\" \", ", "" },
	{ A15 | A16, "host_hcall", "unsigned int id;u8 invalid",
	  "\"id=%u invalid=%u\", REC->id, REC->invalid", "id=%llu invalid=%llu" },
	{ A15 | A16, "host_smc", "u64 id;u8 forwarded", "\"id=%llu forwarded=%u\", REC->id, REC->forwarded",
	  "id=%llu forwarded=%llu" },
	{ A15 | A16, "host_mem_abort", "u64 esr;u64 addr", "\"esr=0x%llx addr=0x%llx\", REC->esr, REC->addr",
	  "esr=0x%llx addr=0x%llx" },
	/* the kernel does not tell its texts: hyptrace lists the fields */
	{ A15, "__hyp_printk", "u8 fmt_id;u64 a;u64 b;u64 c;u64 d", "Unknown",
	  "fmt_id=%llu a=0x%llx b=0x%llx c=0x%llx d=0x%llx" },
	{ A16, "__hyp_printk", "u16 fmt_id;u64 a;u64 b;u64 c;u64 d", "Unknown",
	  "fmt_id=%llu a=0x%llx b=0x%llx c=0x%llx d=0x%llx" },
	{ A15, "host_ffa_call", "u64 func_id;u64 res_a1;u64 res_a2;u64 res_a3;u64 res_a4;int handled;int err",
	  "\"ffa_func=0x%llx a1=0x%llx a2=0x%llx a3=0x%llx a4=%llx handled=%d err=%d\", "
	  "REC->func_id, REC->res_a1, REC->res_a2, REC->res_a3, REC->res_a4, REC->handled, "
	  "REC->err",
	  "ffa_func=0x%llx a1=0x%llx a2=0x%llx a3=0x%llx a4=%llx handled=%lld err=%lld" },
	{ A15 | A16, "psci_mem_protect", "u64 count;u64 was", "\"count=%llu was=%llu\", REC->count, REC->was",
	  "count=%llu was=%llu" },
	{ A16, "vcpu_illegal_trap", "u64 esr", "\"esr_el2=%llx\", REC->esr", "esr_el2=%llx" },
	{ A16, "selftest", "", "\" \", ", "" },
	{ A15 | A16, "iommu_idmap", "u64 from;u64 to;int prot",
	  "\"from=0x%llx to=0x%llx prot=0x%x\", REC->from, REC->to, REC->prot",
	  "from=0x%llx to=0x%llx prot=0x%llx" },
	{ A16, "iommu_idmap_complete", "bool map", "\"map=%d\", REC->map", "map=%llu" },
	{ A16, "power_lock", "pid_t vm;u64 device;bool lock;int ret",
	  "\"vm=%d device=0x%llx lock=%d ret=%d\", REC->vm, REC->device, REC->lock, REC->ret",
	  "vm=%lld device=0x%llx lock=%llu ret=%lld" },
	{ A15 | A16, "func", "unsigned long ip;unsigned long parent",
	  "\"%ps <- %ps\", (void *)REC->ip, (void *)REC->parent", "0x%llx <- 0x%llx" },
	{ A15 | A16, "func_ret", "unsigned long ip", "\"%ps\", (void *)REC->ip", "0x%llx" },
};
#define N_EVENTS (sizeof(events) / sizeof(*events))

/* ---- fields ---------------------------------------------------------------------- */

struct field {
	char type[32], name[32];
	unsigned int size;
	bool is_signed;
};

static inline void set_size(struct field *f)
{
	static const struct {
		const char *type;
		unsigned int size;
		bool is_signed;
	} types[] = {
		{ "u8", 1, false },
		{ "bool", 1, false },
		{ "char", 1, false },
		{ "u16", 2, false },
		{ "int", 4, true },
		{ "pid_t", 4, true },
		{ "unsigned int", 4, false },
		{ "u64", 8, false },
		{ "long", 8, true },
		{ "unsigned long", 8, false },
		{ "unsigned short", 2, false },
		{ "unsigned char", 1, false },
	};
	const char *bracket = strchr(f->name, '[');

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(f->type, types[i].type)) {
			f->size = types[i].size * (bracket ? (unsigned int)atoi(bracket + 1) : 1);
			f->is_signed = types[i].is_signed;
		}
}

/* Takes the next "TYPE NAME" off a list; false: no more. */
static inline bool next_field(const char **list, struct field *f)
{
	int len = (int)strcspn(*list, ";"), name = len;

	if (!len)
		return false;
	while ((*list)[name - 1] != ' ')
		name--;
	snprintf(f->type, sizeof(f->type), "%.*s", name - 1, *list);
	snprintf(f->name, sizeof(f->name), "%.*s", len - name, *list + name);
	set_size(f);
	*list += len + ((*list)[len] == ';');
	return true;
}

/* ---- layouts --------------------------------------------------------------------- */

static const struct layout {
	const char *name, *dir, *size_kb;
	int in;
	unsigned int first_id;
	unsigned int data_size; /* what of a page header_page says is data */
	const char *header_page;
} layouts[] = {
	{ "android15", "hyp", "7", A15, 1, 4048, /* a footer of 32 bytes ends its pages */
	  "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
	  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
	  "\tfield: char data;\toffset:16;\tsize:4048\tsigned:1;\n" },
	{ "android16", "hypervisor", "7 (unloaded)", A16, 0, 4080,
	  "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
	  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
	  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
	  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n" },
};

#endif
