// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rules of export --anonymize. All that is not known to be harmless is hidden. */
#include <endian.h>

#include "base/field.h"
#include "base/files.h"
#include "convert/export/export.h"

#define KEY_MIN 16
#define KEY_MAX 4096

static uint64_t siphash_rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void siphash_rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = siphash_rotate(v[1], 13) ^ v[0];
		v[3] = siphash_rotate(v[3], 16) ^ v[2];
		v[0] = siphash_rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = siphash_rotate(v[3], 21) ^ v[0];
		v[1] = siphash_rotate(v[1], 17) ^ v[2];
		v[2] = siphash_rotate(v[2], 32);
	}
}

uint64_t siphash(const struct siphash_key *key, const void *data, size_t len)
{
	uint64_t v[4] = { key->v[0] ^ 0x736f6d6570736575, key->v[1] ^ 0x646f72616e646f6d,
			  key->v[0] ^ 0x6c7967656e657261, key->v[1] ^ 0x7465646279746573 };
	const uint8_t *p = data;

	/* words of eight bytes; the last one has those that are left, and the length */
	for (size_t i = 0; i <= len; i += 8) {
		uint64_t word = 0;
		bool last = len - i < 8;

		memcpy(&word, p + i, last ? len - i : 8);
		word = le64toh(word) | (last ? (uint64_t)len << 56 : 0);
		v[3] ^= word;
		siphash_rounds(v, 2);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	siphash_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int anonymize_key(struct siphash_key *key, const char *path, const struct log *log)
{
	int fd = open_regular(path), ret = fd;
	struct siphash_key first;
	struct buf text = { 0 };
	struct stat st;

	if (fd >= 0)
		ret = fstat(fd, &st) ? -errno : read_fd(fd, KEY_MAX, &text);
	if (ret) {
		log_fail_errno(log, ret, "cannot read the key '%s'", path);
	} else if (st.st_mode & (S_IRWXG | S_IRWXO)) {
		ret = log_fail(log, -EPERM,
			       "the key '%s' is no secret: others may open it; run: chmod 600 %s", path,
			       path);
	} else if (text.len < KEY_MIN) {
		ret = log_fail(log, -EINVAL,
			       "the key '%s' has fewer than %d bytes; make one: head -c 32 /dev/urandom > %s",
			       path, KEY_MIN, path);
	} else {
		/* a longer file counts with all its bytes: each half is a hash of them */
		memcpy(&first, text.data, sizeof(first));
		key->v[0] = siphash(&first, text.data, text.len);
		first.v[1] = ~first.v[1];
		key->v[1] = siphash(&first, text.data, text.len);
	}
	fd_close(&fd);
	buf_release(&text);
	return ret;
}

void anonymize_text(const struct siphash_key *key, struct buf *text, size_t begin)
{
	const char *name = buf_str(text);
	int end = 0;
	uint64_t hash;

	if (!name)
		return;
	name += begin;
	sscanf(name, "swapper/%*u%n", &end); /* the idle task of a CPU */
	if (!name[end] || words_have("host hyp <idle>", name))
		return;
	hash = siphash(key, name, text->len - begin);
	text->len = begin;
	buf_printf(text, "%016" PRIx64, hash);
}

bool anonymize_drops_field(const struct tep_format_field *f)
{
	/* counts and times; others of 64 bits may be addresses */
	static const char numbers[] = "baseclk bytes delay expires latency next_event now ns nr_sector "
				      "prev_state runtime sector softexpires vcpu_id vruntime";

	if (f->flags & TEP_FIELD_IS_STRING)
		return false; /* hashed */
	/* lists are stacks, bytes, addresses of networks */
	return !field_is_number(f) || strstr(f->name, "addr") ||
	       (f->size >= 8 && !words_have(numbers, f->name));
}

enum anonymize anonymize_column(const char *table, const char *column, bool text)
{
	static const char kept[] =
		"arch by category class clock ended esr_class flat_key key left_for method "
		"preset program reason release state system value_type";
	static const char dropped[] = "display_value int_value queue string_value text what";

	if (words_have(dropped, column))
		return ANONYMIZE_DROP;
	/* the names of events, and of reasons */
	if (!text || words_have(kept, column) ||
	    (!strcmp(column, "name") && words_have("events slices", table)))
		return ANONYMIZE_KEEP;
	return ANONYMIZE_HASH;
}
