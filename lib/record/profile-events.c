// SPDX-License-Identifier: LGPL-2.1-or-later
/* The events of a profile: their formats, and their records. */
#include "record/profile-events.h"

#include "hyp/events.h"

/* ---- formats ----------------------------------------------------------------------------- */

static const char *const profile_formats[PROFILE_EVENTS] = {
	"\tfield:int tgid;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
	"\tfield:unsigned char mode;\toffset:28;\tsize:1;\tsigned:0;\n"
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

/* ---- records ----------------------------------------------------------------------------- */

struct profile_head {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
	int32_t tgid;
};

struct profile_written_sample {
	struct profile_head head;
	char comm[16];
	uint8_t mode, unused[3];
	uint64_t ip;
	uint32_t kernel, user; /* __data_loc */
};

struct profile_written_map {
	struct profile_head head;
	uint32_t unused;
	uint64_t from, len, offset;
	uint32_t build_id, path; /* __data_loc */
};

/* Copies the bytes to *at, which moves on; their __data_loc. */
static uint32_t profile_put(uint8_t *out, size_t *at, const void *data, size_t len)
{
	uint32_t loc = (uint32_t)len << 16 | (uint32_t)*at;

	if (len)
		memcpy(out + *at, data, len);
	*at += len;
	return loc;
}

static uint32_t profile_put_frames(uint8_t *out, size_t *at, const uint64_t *v, size_t n)
{
	return profile_put(out, at, v, (n < PROFILE_FRAMES_MAX ? n : PROFILE_FRAMES_MAX) * sizeof(*v));
}

size_t profile_put_sample(uint8_t *out, unsigned int first_id, const struct profile_sample *s)
{
	struct profile_written_sample w = { .head = { (uint16_t)first_id, 0, 0, s->tid, s->tgid },
					    .mode = s->mode,
					    .ip = s->ip };
	size_t at = sizeof(w);

	memcpy(w.comm, s->comm, sizeof(w.comm) - 1);
	w.kernel = profile_put_frames(out, &at, s->kernel, s->n_kernel);
	w.user = profile_put_frames(out, &at, s->user, s->n_user);
	memcpy(out, &w, sizeof(w));
	return at;
}

size_t profile_put_map(uint8_t *out, unsigned int first_id, const struct profile_map *m)
{
	struct profile_written_map w = { .head = { (uint16_t)(first_id + 1), 0, 0, m->tid, m->tgid },
					 .from = m->from,
					 .len = m->len,
					 .offset = m->offset };
	size_t at = sizeof(w);

	w.build_id = profile_put(out, &at, m->build_id, m->build_id_len);
	w.path = profile_put(out, &at, m->path,
			     m->path_len < PROFILE_PATH_MAX ? m->path_len : PROFILE_PATH_MAX);
	out[at++] = 0;
	w.path += 1u << 16; /* its end */
	memcpy(out, &w, sizeof(w));
	return at;
}
