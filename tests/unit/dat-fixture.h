/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_DAT_FIXTURE_H
#define TESTS_DAT_FIXTURE_H

/*
 * For the tests that write a trace.dat: pages made by hand, a file's struct
 * around them, and the programs that judge what comes out.
 */

#include "file/dat/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stdarg.h>

#include "file/dat/options.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/files.h"

/* ids of tests/data/formats */
enum { SCHED_SWITCH = 244, KVM_EXIT = 61, KVM_ENTRY = 62, HYP_ENTER = 20001, HYP_EXIT = 20002 };
enum { GUEST_EXIT = 5, ERET_HOST = 6, ERET_GUEST = 7 };

/* ---- pages, by hand: include/linux/ring_buffer.h ----------------------------- */

struct pages {
	uint32_t size;
	int fd;
	uint8_t *page;
	size_t used;
	uint64_t last, n;
	int64_t lost; /* before the next page: -1 = some, n = how many */
};

static inline struct pages pages_new(uint32_t size)
{
	struct pages p = { .size = size, .fd = memfd_create("pages", MFD_CLOEXEC) };

	assert_true(p.fd >= 0);
	p.page = calloc(1, size);
	assert_non_null(p.page);
	return p;
}

static inline void pages_cut(struct pages *p)
{
	uint64_t commit = p->used - 16;

	if (!p->used)
		return;
	if (p->lost)
		commit |= 1u << 31;
	if (p->lost > 0) {
		commit |= 1u << 30;
		memcpy(p->page + p->used, &p->lost, 8);
	}
	memcpy(p->page + 8, &commit, 8);
	assert_int_equal(write_all(p->fd, p->page, p->size), 0);
	memset(p->page, 0, p->size);
	p->n++;
	p->used = 0;
	p->lost = 0;
}

static inline void pages_add(struct pages *p, uint64_t ts, const void *data, size_t len)
{
	uint32_t head;

	len = (len + 3) & ~(size_t)3;
	assert_true(len <= 28 * 4);
	/* 8: room for the number of lost events */
	if (p->used && (p->used + 4 + len + 8 > p->size || ts - p->last >= 1u << 27))
		pages_cut(p);
	if (!p->used) {
		memcpy(p->page, &ts, 8);
		p->last = ts;
		p->used = 16;
	}
	head = (uint32_t)(len / 4) | (uint32_t)(ts - p->last) << 5;
	memcpy(p->page + p->used, &head, 4);
	memcpy(p->page + p->used + 4, data, len);
	p->used += 4 + len;
	p->last = ts;
}

static inline void pages_free(struct pages *p)
{
	free(p->page);
	close(p->fd);
}

struct common {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
};

static inline void add_switch(struct pages *p, uint64_t ts, const char *prev, int prev_pid, const char *next,
			      int next_pid)
{
	struct {
		struct common c;
		char prev_comm[16];
		int32_t prev_pid, prev_prio;
		int64_t prev_state;
		char next_comm[16];
		int32_t next_pid, next_prio;
	} r = { .c = { .type = SCHED_SWITCH, .pid = prev_pid },
		.prev_pid = prev_pid,
		.prev_prio = 120,
		.next_pid = next_pid,
		.next_prio = 120 };

	strcpy(r.prev_comm, prev);
	strcpy(r.next_comm, next);
	pages_add(p, ts, &r, sizeof(r));
}

static inline void add_entry(struct pages *p, uint64_t ts, int pid)
{
	struct {
		struct common c;
		uint64_t pc;
	} r = { { .type = KVM_ENTRY, .pid = pid }, 0xffff800080028df0 };

	pages_add(p, ts, &r, sizeof(r));
}

static inline void add_exit(struct pages *p, uint64_t ts, int pid)
{
	struct {
		struct common c;
		int32_t ret;
		uint32_t esr_ec;
		uint64_t pc;
	} r = { { .type = KVM_EXIT, .pid = pid }, 2, 0x18, 0xffff800080028df4 };

	pages_add(p, ts, &r, sizeof(r));
}

static inline void add_hyp(struct pages *p, uint64_t ts, uint16_t type, uint8_t reason, int32_t vcpu)
{
	struct __attribute__((packed)) {
		struct common c;
		uint8_t reason;
		int32_t vcpu;
		uint8_t pad[3];
	} r = { .c = { .type = type, .pid = vcpu }, .reason = reason, .vcpu = vcpu };

	pages_add(p, ts, &r, sizeof(r));
}

/* ---- a file ------------------------------------------------------------------- */

#define MAX_CPUS 4

struct fixture {
	char path[64];
	struct buf texts[8];
	struct dat_text ftrace[1], sched[1], kvm[2], hyp[2];
	struct dat_system systems[3];
	struct pages pages[3][MAX_CPUS];
	struct dat_cpu cpus[3][MAX_CPUS];
	struct dat_buffer buffers[3];
	struct dat_options options;
	struct dat_file f;
	int fds; /* open before the test */
};

static inline int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline struct dat_text format(struct fixture *x, int i, const char *name)
{
	struct buf path = { 0 };

	buf_printf(&path, "tests/data/formats/%s", name);
	if (read_file(buf_str(&path), 1 << 20, &x->texts[i]))
		fail_msg("cannot read %s; run this from the source tree", buf_str(&path));
	buf_release(&path);
	return (struct dat_text){ (char *)x->texts[i].data, x->texts[i].len };
}

static const char cmdlines[] = "87 CPU 0/KVM\n101 bash\n";
static const char printk[] = "0xffffffc000 : \"text %d\"\n";
static const char kallsyms[] = "ffff800080000000 T _text\nffff800080010000 T vfs_read\n";

static inline int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	x->fds = count_fds();
	x->f = (struct dat_file){
		.version = 7,
		.compression = "zstd",
		.page_size = 4096,
		.header_page = format(x, 0, "header_page"),
		.header_event = format(x, 1, "header_event"),
		.ftrace = x->ftrace,
		.n_ftrace = 1,
		.systems = x->systems,
		.n_systems = 3,
		.kallsyms = { kallsyms, sizeof(kallsyms) - 1 },
		.printk = { printk, sizeof(printk) - 1 },
		.cmdlines = { cmdlines, sizeof(cmdlines) - 1 },
		.buffers = x->buffers,
	};
	x->ftrace[0] = format(x, 2, "function");
	x->sched[0] = format(x, 3, "sched_switch");
	x->kvm[0] = format(x, 4, "kvm_entry");
	x->kvm[1] = format(x, 5, "kvm_exit");
	x->hyp[0] = format(x, 6, "hyp_enter");
	x->hyp[1] = format(x, 7, "hyp_exit");
	x->systems[0] = (struct dat_system){ "sched", 1, x->sched };
	x->systems[1] = (struct dat_system){ "kvm", 2, x->kvm };
	x->systems[2] = (struct dat_system){ "hyp", 2, x->hyp };
	strcpy(x->path, "/tmp/hyptrace-writer-XXXXXX.dat");
	*state = x;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *x = *state;

	for (size_t b = 0; b < x->f.n_buffers; b++)
		for (uint32_t i = 0; i < x->buffers[b].n_cpus; i++)
			pages_free(&x->pages[b][i]);
	for (size_t i = 0; i < ARRAY_SIZE(x->texts); i++)
		buf_release(&x->texts[i]);
	dat_options_release(&x->options);
	unlink(x->path);
	assert_int_equal(count_fds(), x->fds);
	free(x);
	return 0;
}

static inline struct pages *add_buffer(struct fixture *x, const char *name, uint32_t page_size,
				       uint32_t n_cpus)
{
	size_t b = x->f.n_buffers++;

	assert_true(b < ARRAY_SIZE(x->buffers));
	x->buffers[b] = (struct dat_buffer){
		.name = name, .clock = "boot", .page_size = page_size, .n_cpus = n_cpus, .cpus = x->cpus[b]
	};
	for (uint32_t i = 0; i < n_cpus; i++)
		x->pages[b][i] = pages_new(page_size);
	return x->pages[b];
}

/* The pages are complete: says where they are. */
static inline void dat_from_spool(struct fixture *x)
{
	for (size_t b = 0; b < x->f.n_buffers; b++) {
		for (uint32_t i = 0; i < x->buffers[b].n_cpus; i++) {
			struct pages *p = &x->pages[b][i];

			pages_cut(p);
			x->cpus[b][i].fd = p->n ? p->fd : -1;
			x->cpus[b][i].size = p->n * p->size;
		}
	}
	x->f.options = x->options.v;
	x->f.n_options = x->options.n;
}

static inline void print_log(void *ctx, enum log_level level, const char *msg)
{
	strcpy(ctx, msg);
}

/* A new file in x->path; the one before goes. */
static inline int write_dat(struct fixture *x)
{
	char msg[1024] = "";
	struct log log = { print_log, msg };
	int fd, ret;

	unlink(x->path);
	strcpy(x->path, "/tmp/hyptrace-writer-XXXXXX.dat");
	fd = mkstemps(x->path, 4);
	assert_true(fd >= 0);
	ret = dat_write(&x->f, fd, &log);
	assert_int_equal(close(fd), 0);
	/* what no file can hold is logged; outfile_close() logs errors of the disk */
	if (!ret || ret == -EINVAL || ret == -ENOTSUP)
		assert_int_equal(!!ret, !!msg[0]);
	return ret;
}

/* ---- the judges ------------------------------------------------------------------ */

/* What a command prints on both outputs; it must end with this status. The caller frees. */
static inline char *run(int status, const char *fmt, ...)
{
	struct buf cmd = { 0 }, out = { 0 };
	char chunk[4096];
	va_list ap;
	char *args;
	size_t n;
	FILE *f;
	int ret;

	va_start(ap, fmt);
	assert_true(vasprintf(&args, fmt, ap) >= 0);
	va_end(ap);
	buf_printf(&cmd, "PATH=$PWD/tests/stock:$PATH; { %s; } 2>&1", args);
	free(args);
	f = popen(buf_str(&cmd), "r");
	assert_non_null(f);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&out, chunk, n);
	ret = pclose(f);
	if (!WIFEXITED(ret) || WEXITSTATUS(ret) != status)
		fail_msg("%s: status %#x\n%s", buf_str(&cmd), (unsigned int)ret, buf_str(&out));
	buf_release(&cmd);
	assert_non_null(buf_str(&out));
	return (char *)out.data;
}

/* Where `make O=... tools` put tests/tools: beside this program, else in $O or build. */
static inline const char *tools(void)
{
	static char dir[4096];
	const char *o = getenv("O");
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 16);
	char *slash = NULL;

	assert_true(n > 0);
	dir[n] = '\0';
	for (int i = 0; i < 2; i++) {
		slash = strrchr(dir, '/');
		assert_non_null(slash);
		*slash = '\0';
	}
	strcpy(slash, "/tools");
	if (access(dir, X_OK))
		snprintf(dir, sizeof(dir), "%s/tests/tools", o ? o : "build");
	return dir;
}

#define expect_output(expected, status, ...)                                                                 \
	do {                                                                                                 \
		char *out_ = run(status, __VA_ARGS__);                                                       \
		assert_string_equal(out_, expected);                                                         \
		free(out_);                                                                                  \
	} while (0)

static const struct form {
	int version;
	const char *compression;
} forms[] = { { 7, "zstd" }, { 7, "none" }, { 6, NULL } };

#define for_each_form(x, form)                                                                               \
	for (const struct form *form = forms; form < forms + ARRAY_SIZE(forms); form++)                      \
		if ((x)->f.version = form->version, (x)->f.compression = form->compression, 1)

/* n pages that hold one event each, `from` ns on, 1 us apart. */
static inline void add_pages(struct pages *p, uint64_t from, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		add_entry(p, from + i * 1000, 87);
		pages_cut(p);
	}
}

static inline void expect_events(struct fixture *x, const char *buffer, unsigned int n, bool kshark)
{
	char expected[16];

	snprintf(expected, sizeof(expected), "%u\n", n);
	expect_output(expected, 0, "%s/datdump %s | grep -c '^%s '", tools(), x->path, buffer);
	expect_output(expected, 0, "%s/datdump -c %s | grep -c '^%s '", tools(), x->path, buffer);
	if (kshark)
		expect_output(expected, 0, "%s/loadkshark %s | sed -n 's/.* %s: \\([0-9]*\\) .*/\\1/p'",
			      tools(), x->path, buffer);
}

static inline void drop_buffers(struct fixture *x)
{
	for (size_t b = 0; b < x->f.n_buffers; b++)
		for (uint32_t i = 0; i < x->buffers[b].n_cpus; i++)
			pages_free(&x->pages[b][i]);
	x->f.n_buffers = 0;
	unlink(x->path);
}

#endif
