// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a FAKE of an Android device's tracefs, for tests:
 *
 *   fake-android DIR LAYOUT    LAYOUT: android15 (hyp/) or android16 (hypervisor/)
 *
 * Plain files, with a FIFO for each trace_pipe_raw of the hypervisor, which
 * feed-android fills. The host's events have ids that the hypervisor's collide
 * with; its CPU 0 holds one page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake-android.h"

/* The host's, with ids that the hypervisor's collide with; laid out with no gaps. */
static const struct host_event {
	const char *system;
	unsigned int id;
	struct event e;
} host_events[] = {
	{ "ftrace",
	  1,
	  { .name = "function",
	    .fields = "unsigned long ip;unsigned long parent_ip",
	    .print = "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip" } },
	{ "kvm",
	  2,
	  { .name = "kvm_entry",
	    .fields = "unsigned long vcpu_pc",
	    .print = "\"PC: 0x%016lx\", REC->vcpu_pc" } },
	{ "kvm",
	  3,
	  { .name = "kvm_exit",
	    .fields = "int ret;unsigned int esr_ec;unsigned long vcpu_pc",
	    .print = "\"ret %d EC 0x%04x PC: 0x%016lx\", REC->ret, REC->esr_ec, REC->vcpu_pc" } },
	{ "sched",
	  4,
	  { .name = "sched_switch",
	    .fields = "char prev_comm[16];pid_t prev_pid;int prev_prio;long prev_state;"
		      "char next_comm[16];pid_t next_pid;int next_prio",
	    .print = "\"%s:%d ==> %s:%d\", REC->prev_comm, REC->prev_pid, REC->next_comm, "
		     "REC->next_pid" } },
};

/* ---- files ------------------------------------------------------------------------- */

/* Good until the next call. */
static char *path_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *path_of(const char *fmt, ...)
{
	static char path[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return path;
}

/* The directories above a file. */
static void make_dirs(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(path, 0755) && errno != EEXIST)
			die(path);
		*p = '/';
	}
}

static void put(char *path, const void *data, size_t len)
{
	int fd;

	make_dirs(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len || close(fd))
		die(path);
}

static void put_text(char *path, const char *text)
{
	put(path, text, strlen(text));
}

static void put_line(char *path, const char *text)
{
	char line[256];

	put(path, line, (size_t)snprintf(line, sizeof(line), "%s\n", text));
}

/* ---- events ------------------------------------------------------------------------- */

static size_t add_fields(char *out, size_t size, const char *list, unsigned int offset)
{
	struct field f;
	size_t n = 0;

	while (next_field(&list, &f)) {
		n += (size_t)snprintf(out + n, size - n, "\tfield:%s %s;\toffset:%u;\tsize:%u;\tsigned:%d;\n",
				      f.type, f.name, offset, f.size, f.is_signed);
		offset += f.size;
	}
	return n + (size_t)snprintf(out + n, size - n, n ? "\n" : "");
}

/* A format file; the hypervisor's have no common field but the type. */
static void put_format(char *path, const struct event *e, unsigned int id, bool hyp)
{
	static const char host_common[] = "unsigned short common_type;unsigned char common_flags;"
					  "unsigned char common_preempt_count;int common_pid";
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text), "name: %s\nID: %u\nformat:\n", e->name, id);

	n += add_fields(text + n, sizeof(text) - n, hyp ? "unsigned short common_type" : host_common, 0);
	n += add_fields(text + n, sizeof(text) - n, e->fields, hyp ? 2 : 8);
	snprintf(text + n, sizeof(text) - n, "print fmt: %s\n", e->print);
	put_text(path, text);
}

/* "0" without its newline: a write of the two bytes the kernel wants can be told from one of one
 * byte. */
static void make_event(const char *dir, const struct event *e, unsigned int id, bool hyp)
{
	char number[16];

	put_format(path_of("%s/format", dir), e, id, hyp);
	snprintf(number, sizeof(number), "%u", id);
	put_line(path_of("%s/id", dir), number);
	put_text(path_of("%s/enable", dir), "0");
}

static void make_hyp(const char *dir, const struct layout *l)
{
	unsigned int id = l->first_id;
	char event[4096];

	put_line(path_of("%s/%s/tracing_on", dir, l->dir), "0");
	put_line(path_of("%s/%s/buffer_size_kb", dir, l->dir), l->size_kb);
	put_line(path_of("%s/%s/trace_clock", dir, l->dir), "[boot]");
	put_text(path_of("%s/%s/trace_pipe", dir, l->dir), "");
	put_line(path_of("%s/%s/trace", dir, l->dir), "** Reading trace not yet supported **");
	put_text(path_of("%s/%s/events/header_page", dir, l->dir), l->header_page);
	/* names of one length: a write goes over the first line only (set_ftrace_notrace cannot be read) */
	put_text(path_of("%s/%s/set_ftrace_filter", dir, l->dir), "__kvm_nvhe_a\n__kvm_nvhe_b\n");
	put_text(path_of("%s/%s/set_ftrace_notrace", dir, l->dir), "");
	for (size_t i = 0; i < N_EVENTS; i++) {
		if (!(events[i].in & l->in))
			continue;
		snprintf(event, sizeof(event), "%s/%s/events/%s/%s", dir, l->dir, l->dir, events[i].name);
		make_event(event, &events[i], id++, true);
	}
	for (int cpu = 0; cpu < CPUS; cpu++) {
		put_text(path_of("%s/%s/per_cpu/cpu%d/trace_pipe", dir, l->dir, cpu), "");
		put_text(path_of("%s/%s/per_cpu/cpu%d/trace", dir, l->dir, cpu), "");
		if (mkfifo(path_of("%s/%s/per_cpu/cpu%d/trace_pipe_raw", dir, l->dir, cpu), 0600))
			die("mkfifo");
	}
}

static const char *const host_files[][2] = {
	{ "tracing_on", "1\n" },
	{ "current_tracer", "nop\n" },
	{ "available_tracers", "function_graph function nop\n" },
	{ "trace_clock", "[local] global counter uptime perf mono mono_raw boot tai\n" },
	{ "buffer_size_kb", "7 (expanded: 1408)\n" },
	{ "buffer_subbuf_size_kb", "4\n" },
	{ "tracing_cpumask", "7\n" },
	{ "trace", "" },
	{ "set_event_pid", "" },
	{ "set_event_notrace_pid", "" },
	{ "set_ftrace_pid", "no pid\n" },
	{ "set_ftrace_notrace_pid", "no pid\n" },
	{ "set_ftrace_filter", "#### all functions enabled ####\n" },
	{ "set_ftrace_notrace", "#### no functions disabled ####\n" },
	{ "set_graph_function", "#### all functions enabled ####\n" },
	{ "set_graph_notrace", "#### no functions disabled ####\n" },
	{ "max_graph_depth", "0\n" },
	{ "saved_cmdlines", "4242 vcpu-worker\n" },
	{ "saved_cmdlines_size", "128\n" },
	{ "printk_formats", "" },
	{ "error_log", "" },
	{ "options/overwrite", "1\n" },
	{ "options/record-cmd", "1\n" },
	{ "options/event-fork", "0\n" },
	{ "events/kvm/enable", "0\n" },
	{ "events/kvm/filter", "### global filter ###\n" },
	{ "events/sched/enable", "0\n" },
	{ "events/sched/filter", "### global filter ###\n" },
	/*
	 * Plain files do not follow each other, so set_event cannot come to show what
	 * is switched on in events/. It shows both systems from the beginning, as it
	 * would if triggers kept them going ("0*").
	 */
	{ "set_event", "kvm:kvm_entry\nkvm:kvm_exit\nsched:sched_switch\n" },
	{ "events/header_page", "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n" },
	{ "events/header_event", "# compressed entry header\n"
				 "\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
				 "\tarray       :   32 bits\n\n\tpadding     : type == 29\n"
				 "\ttime_extend : type == 30\n\ttime_stamp : type == 31\n"
				 "\tdata max type_len  == 28\n" },
};

static void make_host_event(const char *dir, const struct host_event *h)
{
	char event[4096];

	snprintf(event, sizeof(event), "%s/events/%s/%s", dir, h->system, h->e.name);
	make_event(event, &h->e, h->id, false);
	put_text(path_of("%s/enable", event), "0*\n");
	put_text(path_of("%s/filter", event), "none\n");
	put_text(path_of("%s/trigger", event), "");
	if (!strcmp(h->system, "ftrace")) /* formats only */
		unlink(path_of("%s/enable", event));
}

/* ---- the host's page --------------------------------------------------------------- */

/* A record of the host: 4-byte words, their number in the event's header. */
static size_t add_record(uint8_t *page, size_t at, uint32_t delta, const void *data, size_t len)
{
	uint32_t head = delta << 5 | (uint32_t)(len / 4);

	memcpy(page + at, &head, 4);
	memcpy(page + at + 4, data, len);
	return at + 4 + len;
}

/*
 * At 99.999990 s the CPU switches from the idle task to vcpu-worker, which enters
 * and leaves a guest: ids 4, 2, 3, that the hypervisor uses too.
 */
static void make_host_page(const char *dir)
{
	struct {
		uint16_t type;
		uint8_t flags, preempt;
		int32_t pid;
		char prev_comm[16];
		int32_t prev_pid, prev_prio;
		int64_t prev_state;
		char next_comm[16];
		int32_t next_pid, next_prio;
	} sw = { .type = 4, .prev_comm = "swapper/0", .next_comm = "vcpu-worker", .next_pid = 4242 };
	struct {
		uint16_t type;
		uint8_t flags, preempt;
		int32_t pid;
		uint64_t pc;
	} entry = { .type = 2, .pid = 4242, .pc = 0x80081234 };
	struct {
		uint16_t type;
		uint8_t flags, preempt;
		int32_t pid;
		int32_t ret;
		uint32_t ec;
		uint64_t pc;
	} leave = { .type = 3, .pid = 4242, .ret = 2, .ec = 0x16, .pc = 0x80081238 };
	uint64_t head[2] = { 99999990000, 0 };
	static uint8_t page[4096];
	size_t n = sizeof(head);

	n = add_record(page, n, 0, &sw, sizeof(sw));
	n = add_record(page, n, 5000, &entry, sizeof(entry));
	n = add_record(page, n, 4000, &leave, sizeof(leave));
	head[1] = n - sizeof(head);
	memcpy(page, head, sizeof(head));
	put(path_of("%s/per_cpu/cpu0/trace_pipe_raw", dir), page, sizeof(page));
}

static void make_host(const char *dir)
{
	static const char stats[] = "entries: 0\noverrun: 0\ncommit overrun: 0\nbytes: 0\n"
				    "oldest event ts:     0.000000\nnow ts:   100.000000\n"
				    "dropped events: 0\nread events: %d\n";
	char text[512];

	for (size_t i = 0; i < sizeof(host_files) / sizeof(*host_files); i++)
		put_text(path_of("%s/%s", dir, host_files[i][0]), host_files[i][1]);
	for (size_t i = 0; i < sizeof(host_events) / sizeof(*host_events); i++)
		make_host_event(dir, &host_events[i]);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		snprintf(text, sizeof(text), stats, cpu ? 0 : 3);
		put_text(path_of("%s/per_cpu/cpu%d/stats", dir, cpu), text);
		put_text(path_of("%s/per_cpu/cpu%d/trace_pipe_raw", dir, cpu), "");
	}
	make_host_page(dir);
	make_dirs(path_of("%s/instances/", dir));
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof(layouts) / sizeof(*layouts); i++)
		if (!strcmp(argv[2], layouts[i].name)) {
			make_host(argv[1]);
			make_hyp(argv[1], &layouts[i]);
			return 0;
		}
	fprintf(stderr, "usage: fake-android DIR android15|android16\n");
	return 2;
}
