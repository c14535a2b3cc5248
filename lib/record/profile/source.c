// SPDX-License-Identifier: LGPL-2.1-or-later
/* A profile as a source for the recorder: drains its pages, and adds its texts. */

#include "record/profile/profile.h"
#include "record/drain/spool-to-dat.h"

static const char *const profile_formats[PROFILE_EVENTS] = {
	"\tfield:int tgid;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
	"\tfield:unsigned char mode;\toffset:28;\tsize:1;\tsigned:0;\n"
	"\tfield:u16 hz;\toffset:30;\tsize:2;\tsigned:0;\n"
	"\tfield:u64 ip;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc u64[] kernel;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc u64[] user;\toffset:44;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"comm=%s tgid=%d mode=%s ip=0x%llx kernel=%s user=%s\", REC->comm, REC->tgid, "
	"__print_symbolic(REC->mode, { 1, \"kernel\" }, { 2, \"user\" }, { 3, \"hypervisor\" }, "
	"{ 4, \"guest_kernel\" }, { 5, \"guest_user\" }), REC->ip, "
	"__print_array(__get_dynamic_array(kernel), __get_dynamic_array_len(kernel) / 8, 8), "
	"__print_array(__get_dynamic_array(user), __get_dynamic_array_len(user) / 8, 8)\n",

	"\tfield:int tgid;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 from;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 len;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 offset;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc u8[] build_id;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc char[] path;\toffset:44;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"tgid=%d from=0x%llx len=0x%llx offset=0x%llx build_id=%s path=%s\", REC->tgid, "
	"REC->from, REC->len, REC->offset, "
	"__print_hex_str(__get_dynamic_array(build_id), __get_dynamic_array_len(build_id)), "
	"__get_str(path)\n",
};

void profile_format(size_t i, unsigned int first_id, struct buf *out)
{
	static const char *const names[PROFILE_EVENTS] = { PROFILE_SAMPLE, PROFILE_MAP };

	hypevents_format_head(names[i], first_id + (unsigned int)i, out);
	buf_addstr(out, profile_formats[i]);
}

static struct profile *profile_of(struct source *s)
{
	return (struct profile *)s; /* its first member */
}

static int profile_start(struct source *s)
{
	return profile_switch(profile_of(s), true);
}

static int profile_stop(struct source *s)
{
	return profile_switch(profile_of(s), false);
}

static int profile_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct profile *p = profile_of(s);
	int fd = profile_fd(p, cpu), ret;
	struct drain_writer o;
	bool last;

	if (fd < 0)
		return 0;
	ret = drain_writer_open(&o, s->page_size, d);
	if (ret)
		return ret;
	do {
		uint64_t events = d->stats->events;

		last = atomic_load(d->stopping);
		ret = profile_read(p, cpu, &o.w, d->stats);
		if (!ret && events != d->stats->events)
			ret = drain_writer_sync(&o);
		if (!ret && !last)
			ret = rawpipe_wait(fd, d);
	} while (!ret && !last);
	ret = ret ?: page_flush(&o.w, true);
	page_writer_release(&o.w);
	return ret;
}

static const struct source_ops profile_ops = {
	.kind = "profile",
	.start = profile_start,
	.stop = profile_stop,
	.drain = profile_drain,
	.stat = source_stat,
};

int profile_keep_formats(unsigned int first_id, struct spool *spool)
{
	struct buf formats = { 0 }, one = { 0 };
	int ret;

	for (size_t i = 0; i < PROFILE_EVENTS; i++) {
		one.len = 0;
		profile_format(i, first_id, &one);
		formats_add(&formats, PROFILE_SYSTEM, one.data, one.len);
		formats.bad |= one.bad;
	}
	ret = buf_status(&formats) ?: spool_append_text(spool, "formats", formats.data, formats.len);
	buf_release(&formats);
	buf_release(&one);
	return ret;
}

int profile_collect_names(struct profile *p, struct spool *spool)
{
	struct buf names = { 0 };
	int ret;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n_tasks; i++)
		if (*p->tasks[i].comm && !strchr(p->tasks[i].comm, '\n'))
			buf_printf(&names, "%d %s\n", p->tasks[i].tid, p->tasks[i].comm);
	pthread_mutex_unlock(&p->lock);
	ret = buf_status(&names);
	if (!ret && names.len)
		ret = spool_append_text(spool, "saved_cmdlines", names.data, names.len);
	buf_release(&names);
	return ret;
}

struct source *profile_source(struct profile *p)
{
	p->source.ops = &profile_ops;
	return &p->source;
}
