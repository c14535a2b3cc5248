// SPDX-License-Identifier: LGPL-2.1-or-later
/* The records of a profile. */
#include "profile/samples.h"

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
