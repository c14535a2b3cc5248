// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions of the files that processes ran, by libdw. */
#include "ask/flame/flame-priv.h"

#ifdef HYPTRACE_DW
#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include "base/files.h"
#endif

#define ID_MAX 20 /* bytes of SHA-1, the longest that linkers make unasked */

struct flame_elf {
	char *path;
	uint8_t id[ID_MAX];
	size_t id_len;
#ifdef HYPTRACE_DW
	bool sought;
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: not found */
#endif
};

struct flame_elf *flame_elf_new(const struct flame_elf_key *key)
{
	struct flame_elf *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->path = strndup(key->path, key->path_len);
	e->id_len = key->id_len <= ID_MAX ? key->id_len : 0;
	memcpy(e->id, key->id, e->id_len);
	if (e->path)
		return e;
	free(e);
	return NULL;
}

bool flame_elf_is(const struct flame_elf *e, const struct flame_elf_key *key)
{
	size_t id_len = key->id_len <= ID_MAX ? key->id_len : 0;

	return e->id_len == id_len && !memcmp(e->id, key->id, id_len) &&
	       !strncmp(e->path, key->path, key->path_len) && !e->path[key->path_len];
}

#ifdef HYPTRACE_DW
/*
 * From debuginfod: a descriptor, -1: not found. As libdw does, its library is loaded when it is wanted:
 * linked, it would bring HTTP and TLS into each command.
 */
static int flame_elf_fetch(const struct flame_elf *e)
{
	void *library = getenv("DEBUGINFOD_URLS") ? dlopen("libdebuginfod.so.1", RTLD_LAZY) : NULL, *client;
	void *(*begin)(void) = library ? dlsym(library, "debuginfod_begin") : NULL;
	int (*find)(void *, const unsigned char *, int, char **) =
		library ? dlsym(library, "debuginfod_find_executable") : NULL;
	void (*end)(void *) = library ? dlsym(library, "debuginfod_end") : NULL;
	int fd = -1;

	client = begin && find && end ? begin() : NULL;
	if (client) {
		fd = find(client, e->id, (int)e->id_len, NULL);
		end(client);
	}
	return fd < 0 ? -1 : fd; /* the library stays: its threads and handlers may */
}

static void flame_elf_seek(struct flame_elf *e)
{
	static const Dwfl_Callbacks callbacks = {
		.find_debuginfo = dwfl_standard_find_debuginfo, /* asks debuginfod too */
		.section_address = dwfl_offline_section_address,
	};
	const void *id;
	ssize_t n;
	bool same;
	Elf *elf;
	int fd;

	e->sought = true;
	fd = e->id_len ? open_regular(e->path) : -1;
	if (fd >= 0) { /* only the very file: another one may have that path here */
		elf_version(EV_CURRENT);
		elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
		n = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
		same = n > 0 && (size_t)n == e->id_len && !memcmp(id, e->id, e->id_len);
		elf_end(elf);
		if (!same) {
			close(fd);
			fd = -1;
		}
	}
	fd = fd < 0 && e->id_len ? flame_elf_fetch(e) : fd;
	if (fd < 0)
		return;
	e->dwfl = dwfl_begin(&callbacks);
	if (e->dwfl)
		e->module = dwfl_report_offline(e->dwfl, e->path, e->path, fd);
	if (e->dwfl)
		dwfl_report_end(e->dwfl, NULL, NULL);
	if (!e->module)
		close(fd);
}

static const char *flame_elf_function(struct flame_elf *e, uint64_t offset)
{
	GElf_Addr bias, addr = 0;
	size_t n = 0;
	GElf_Phdr p;
	Elf *elf;

	if (!e->sought)
		flame_elf_seek(e);
	elf = e->module ? dwfl_module_getelf(e->module, &bias) : NULL;
	if (elf)
		elf_getphdrnum(elf, &n);
	/* the address in memory of the byte of the file, by the segments */
	for (size_t i = 0; i < n && !addr; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && offset >= p.p_offset &&
		    offset - p.p_offset < p.p_filesz)
			addr = offset - p.p_offset + p.p_vaddr;
	return addr ? dwfl_module_addrname(e->module, addr + bias) : NULL;
}

#else
static const char *flame_elf_function(struct flame_elf *e, uint64_t offset)
{
	return NULL;
}
#endif

void flame_elf_free(struct flame_elf *e)
{
	if (!e)
		return;
#ifdef HYPTRACE_DW
	dwfl_end(e->dwfl);
#endif
	free(e->path);
	free(e);
}

void flame_elf_text(struct flame_elf *e, uint64_t offset, struct buf *out)
{
	const char *function = flame_elf_function(e, offset);

	if (function)
		buf_addstr(out, function);
	else
		buf_printf(out, "%s+0x%" PRIx64, basename(e->path), offset);
}
