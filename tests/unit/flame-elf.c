// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of a program's functions by its build id: this program's own. */
#include <link.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "ask/flame/flame-priv.h"
#include "record/profile/profile.h"

static char path[4096];
static uint8_t id[20];

/* Where in the file an address of this program is; the program comes first. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *addr)
{
	uint64_t *at = addr, in = *at - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && in >= p->p_vaddr && in - p->p_vaddr < p->p_filesz)
			*at = in - p->p_vaddr + p->p_offset;
	}
	return 1;
}

int function_to_be_found(int n);

int __attribute__((noinline)) function_to_be_found(int n)
{
	return n + getpid();
}

static void expect(const struct flame_elf_key *key, uint64_t offset, const char *expected)
{
	struct flame_elf *e = flame_elf_new(key);
	struct buf b = { 0 };

	assert_non_null(e);
	flame_elf_text(e, offset, &b);
	assert_string_equal(buf_str(&b), expected);
	buf_release(&b);
	flame_elf_free(e);
}

static void test_names(void **state)
{
	struct flame_elf_key key = { .path = path, .id = id, .path_len = strlen(path), .id_len = sizeof(id) };
	static const uint8_t other[20];
	uint64_t offset = (uint64_t)(uintptr_t)function_to_be_found;
	char plain[64];

	dl_iterate_phdr(find_offset, &offset);
	snprintf(plain, sizeof(plain), "flame-elf+0x%llx", (unsigned long long)offset);
#ifdef HYPTRACE_DW
	expect(&key, offset, "function_to_be_found");
	expect(&key, offset + 3, "function_to_be_found");
#else
	expect(&key, offset, plain);
#endif
	key.id = other; /* another file has that path by now */
	expect(&key, offset, plain);
	key.id_len = 0;
	expect(&key, offset, plain);
	key.path = "/dev/zero";
	key.path_len = strlen(key.path);
	key.id_len = 20;
	expect(&key, 0x10, "zero+0x10");
	key.path = "[vdso]";
	key.path_len = strlen(key.path);
	expect(&key, 0x10, "[vdso]+0x10");
}

/* A guest's file may name a FIFO or a device of this machine, which opening could set going. */
static void test_fifo(void **state)
{
	char dir[] = "/tmp/test-flame-elf-XXXXXX", fifo[64], seen[512];
	struct flame_elf_key key = { .path = fifo, .id = id, .id_len = sizeof(id) };
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_non_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	key.path_len = strlen(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	expect(&key, 0x10, "fifo+0x10");
	assert_int_equal(read(watch, seen, sizeof(seen)), -1); /* it was not opened */
	close(watch);
	unlink(fifo);
	rmdir(dir);
}

static void test_is(void **state)
{
	struct flame_elf_key key = { .path = "/a/b", .id = id, .path_len = 4, .id_len = 20 };
	struct flame_elf *e = flame_elf_new(&key);

	assert_true(flame_elf_is(e, &key));
	key.path_len = 3;
	assert_false(flame_elf_is(e, &key));
	key.path_len = 4;
	key.id_len = 0;
	assert_false(flame_elf_is(e, &key));
	flame_elf_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_fifo),
					    cmocka_unit_test(test_is) };
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int fd = open("/proc/self/exe", O_RDONLY);

	unsetenv("DEBUGINFOD_URLS");
	if (n < 0 || build_id_read(fd, id) != sizeof(id))
		return 1;
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
