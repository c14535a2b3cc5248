// SPDX-License-Identifier: LGPL-2.1-or-later
/* Metadata that no file has: the hypervisor's events, by a copy of the kernel's directory or as kernels are
 * known to have them, and what a file begins with. */
#include "convert/import/import-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "record/drain/spool-to-dat.h"
#include "base/array.h"
#include "base/files.h"

#define TEXT_MAX (1u << 20)

/*
 * Only names and print formats matter in text, and the fields that they name:
 * mainline 7.1 (include/asm/kvm_hypevents.h), and Android's of 2023 to 2026.
 */
static const struct {
	const char *name, *fields, *print_fmt;
} known[] = {
	{ "hyp_enter", "u8 reason;pid_t vcpu",
	  "\"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu" },
	{ "hyp_exit", "u8 reason;pid_t vcpu",
	  "\"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu" },
	{ "host_hcall", "unsigned int id;u8 invalid", "\"id=%u invalid=%u\", REC->id, REC->invalid" },
	{ "host_smc", "u64 id;u8 forwarded", "\"id=%llu forwarded=%u\", REC->id, REC->forwarded" },
	{ "host_mem_abort", "u64 esr;u64 addr", "\"esr=0x%llx addr=0x%llx\", REC->esr, REC->addr" },
	{ "psci_mem_protect", "u64 count;u64 was", "\"count=%llu was=%llu\", REC->count, REC->was" },
	{ "vcpu_illegal_trap", "u64 esr", "\"esr_el2=%llx\", REC->esr" },
	{ "iommu_idmap", "u64 from;u64 to;int prot",
	  "\"from=0x%llx to=0x%llx prot=0x%x\", REC->from, REC->to, REC->prot" },
	{ "iommu_idmap_complete", "u8 map", "\"map=%d\", REC->map" },
	{ "power_lock", "pid_t vm;u64 device;u8 lock;int ret",
	  "\"vm=%d device=0x%llx lock=%d ret=%d\", REC->vm, REC->device, REC->lock, REC->ret" },
	{ "selftest", "u64 id", "\"id=%llu\", REC->id" },
};

const char *import_known_print(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, name))
			return known[i].print_fmt;
	return NULL;
}

static void add_known(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct buf f = { 0 };
		unsigned int at = 2;

		buf_printf(&f,
			   "name: %s\nID: %zu\nformat:\n"
			   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n",
			   known[i].name, i);
		for (const char *field = known[i].fields; *field;) {
			size_t len = strcspn(field, ";");
			unsigned int size = !strncmp(field, "u8 ", 3)	 ? 1
					    : !strncmp(field, "u64 ", 4) ? 8
									 : 4;

			buf_printf(&f, "\tfield:%.*s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", (int)len, field,
				   at, size, field[0] != 'u');
			at += size;
			field += len + (field[len] == ';');
		}
		buf_printf(&f, "\nprint fmt: %s\n", known[i].print_fmt);
		remote_events_add(out, &f);
		buf_release(&f);
	}
}

static int add_dir(struct buf *out, const char *path, size_t *n, const struct log *log)
{
	struct strlist names = { 0 };
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret = fd < 0 ? -errno : read_dir_at(fd, ".", &names);

	*n = 0;
	for (size_t i = 0; i < names.n && !ret; i++) {
		char *file = str_printf("%s/format", names.v[i]);
		struct buf format = { 0 };

		ret = file ? read_file_at(fd, file, TEXT_MAX, &format) : -ENOMEM;
		if (!ret) {
			remote_events_add(out, &format);
			++*n;
		} else if (ret == -ENOENT || ret == -ENOTDIR) {
			ret = 0; /* header_page, enable ... */
		}
		buf_release(&format);
		free(file);
	}
	strlist_release(&names);
	fd_close(&fd);
	return ret ? log_fail_errno(log, ret, "cannot read the events in '%s'", path) : 0;
}

/* events/hypervisor or events/hyp below it, when it is all of events/ */
static char *events_dir(const char *path, const char **system)
{
	static const char *const names[] = { "hypervisor", "hyp" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *below = str_printf("%s/%s", path, names[i]);

		*system = names[i];
		if (!below || (!stat(below, &st) && S_ISDIR(st.st_mode)))
			return below;
		free(below);
	}
	*system = names[0];
	return strdup(path);
}

int import_events(struct spool *spool, const char *events, bool raw, unsigned int first_id,
		  const struct log *log)
{
	const char *system = "hypervisor";
	struct buf formats = { 0 };
	int ret = 0;

	if (events) {
		char *dir = events_dir(events, &system);
		size_t n;

		ret = dir ? add_dir(&formats, dir, &n, log) : -ENOMEM;
		if (!ret && !n) {
			log_err(log, "'%s' holds no event formats (NAME/format)", dir);
			ret = -ENOENT;
		}
		free(dir);
	} else {
		add_known(&formats);
	}
	ret = ret ?: remote_events_save(spool, first_id, system, raw, &formats);
	buf_release(&formats);
	return ret;
}

/* header_page lies in events/, and in a copy beside the events or above them. */
int import_layout(const char *events, struct page_layout *out, const struct log *log)
{
	int ret = -ENOENT;

	for (int above = 0; above < 2 && ret == -ENOENT; above++) {
		char *path = str_printf("%s%s/header_page", events, above ? "/.." : "");

		ret = path ? page_layout_read(AT_FDCWD, path, out) : -ENOMEM;
		free(path);
	}
	return ret ? log_fail_errno(log, ret, "cannot use header_page in or above '%s'", events) : 0;
}

/* Every 64-bit kernel's description of its pages of IMPORT_PAGE bytes, and of records. */
static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: char overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n"
				   "\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

int import_begin(struct spool *spool)
{
	uint64_t traceid = 0;

	while (!traceid)
		if (getrandom(&traceid, sizeof(traceid), 0) < 0)
			return -errno;
	return spool_set_number(spool, "traceid", traceid) ?:
		       spool_set_number(spool, "page_size", IMPORT_PAGE) ?:
		       spool_put_text(spool, "header_page", header_page, strlen(header_page)) ?:
		       spool_put_text(spool, "header_event", header_event, strlen(header_event));
}
