// SPDX-License-Identifier: LGPL-2.1-or-later
/* The build id in an ELF file's notes. */
#include <elf.h>

#include "profile/comms.h"

/* Of "GNU" notes: name size, size, type, name, bytes; both padded to 4. */
static size_t build_id_note(struct cursor c, uint8_t id[20])
{
	while (cursor_left(&c)) {
		uint32_t name_len = cursor_u32(&c), len = cursor_u32(&c), type = cursor_u32(&c);
		const void *name = cursor_take(&c, ((size_t)name_len + 3) & ~(size_t)3);
		const void *data = cursor_take(&c, ((size_t)len + 3) & ~(size_t)3);

		if (!name || !data)
			return 0;
		if (type == NT_GNU_BUILD_ID && name_len == 4 && !memcmp(name, "GNU", 4) && len && len <= 20) {
			memcpy(id, data, len);
			return len;
		}
	}
	return 0;
}

static size_t build_id_segment(int fd, const Elf64_Phdr *p, uint8_t id[20])
{
	uint8_t notes[4096];
	size_t len = p->p_filesz < sizeof(notes) ? p->p_filesz : sizeof(notes);
	ssize_t n = p->p_type == PT_NOTE ? pread_all(fd, notes, len, p->p_offset) : 0;

	return n > 0 ? build_id_note(cursor_at(notes, (size_t)n), id) : 0;
}

size_t build_id_read(int fd, uint8_t id[20])
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	size_t len = 0;

	if (pread_all(fd, &e, sizeof(e), 0) != sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(p))
		return 0;
	for (unsigned int i = 0; i < e.e_phnum && !len; i++) {
		if (pread_all(fd, &p, sizeof(p), e.e_phoff + i * sizeof(p)) != sizeof(p))
			return 0;
		len = build_id_segment(fd, &p, id);
	}
	return len;
}
