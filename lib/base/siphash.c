// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keyed hashes of names. */
#include <endian.h>

#include "base/siphash.h"

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
