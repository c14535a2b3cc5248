// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs a fuzz target without libFuzzer: each file given, then -n N mutations of
 * them. Always the same ones, so that what fails today fails tomorrow.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/strings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (1u << 20)

struct corpus {
	struct buf *v;
	size_t n;
};

static uint64_t rnd_state = 0x9e3779b97f4a7c15;

static uint64_t rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state;
}

static size_t below(size_t n)
{
	return n ? (size_t)(rnd() % n) : 0;
}

/* An exact copy: a byte too far is a byte out of bounds. */
static void run(const struct buf *in)
{
	uint8_t *copy = malloc(in->len ? in->len : 1);

	if (!copy)
		abort();
	if (in->len)
		memcpy(copy, in->data, in->len);
	LLVMFuzzerTestOneInput(copy, in->len);
	free(copy);
}

/* ---- mutations ------------------------------------------------------------------ */

static void flip(struct buf *b)
{
	if (b->len)
		b->data[below(b->len)] ^= (uint8_t)(1u << below(8));
}

static void set(struct buf *b)
{
	static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff, '\n', ' ', '%', '"', ':', ';', '9', '-' };

	if (b->len)
		b->data[below(b->len)] = odd[below(sizeof(odd))];
}

static void insert(struct buf *b)
{
	uint8_t byte = (uint8_t)rnd();
	size_t at;

	buf_add(b, &byte, 1);
	at = below(b->len);
	memmove(b->data + at + 1, b->data + at, b->len - at - 1);
	b->data[at] = byte;
}

static void cut(struct buf *b)
{
	size_t from = below(b->len), n = below(b->len - from + 1);

	if (!b->len)
		return;
	memmove(b->data + from, b->data + from + n, b->len - from - n);
	b->len -= n;
}

/* The start of this one, the end of another. */
static void fuzz_splice(struct buf *b, const struct buf *other)
{
	size_t from = below(other->len + 1);

	b->len = below(b->len + 1);
	if (from < other->len)
		buf_add(b, other->data + from, other->len - from);
}

static void mutate(struct buf *b, const struct corpus *c)
{
	for (size_t i = below(4) + 1; i--;) {
		switch (rnd() % 6) {
		case 0:
			b->len = below(b->len + 1);
			break;
		case 1:
			flip(b);
			break;
		case 2:
			set(b);
			break;
		case 3:
			insert(b);
			break;
		case 4:
			cut(b);
			break;
		default:
			fuzz_splice(b, &c->v[below(c->n)]);
		}
	}
}

/* ---- files ------------------------------------------------------------------------ */

static void corpus_add(struct corpus *c, const struct buf *b)
{
	c->v = realloc(c->v, (c->n + 1) * sizeof(*c->v));
	if (!c->v)
		abort();
	c->v[c->n++] = *b;
}

static int read_path(struct corpus *c, const char *path);

static int read_dir(struct corpus *c, const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort), ret = 0;

	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++) {
		char *file = str_printf("%s/%s", path, names[i]->d_name);

		if (names[i]->d_name[0] != '.' && file && !ret)
			ret = read_path(c, file);
		free(file);
		free(names[i]);
	}
	free(names);
	return ret;
}

static int read_path(struct corpus *c, const char *path)
{
	struct buf b = { 0 };
	struct stat st;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return read_dir(c, path);
	if (read_file(path, INPUT_MAX, &b)) {
		fprintf(stderr, "cannot read %s\n", path);
		return -1;
	}
	corpus_add(c, &b);
	return 0;
}

int main(int argc, char **argv)
{
	struct corpus c = { 0 };
	unsigned long n = 0;
	int ret = 0;

	corpus_add(&c, &(struct buf){ 0 });
	for (int i = 1; i < argc && !ret; i++) {
		if (!strcmp(argv[i], "-n") && i + 1 < argc)
			n = strtoul(argv[++i], NULL, 10);
		else
			ret = read_path(&c, argv[i]);
	}
	for (size_t i = 0; i < c.n && !ret; i++)
		run(&c.v[i]);
	for (unsigned long i = 0; i < n && !ret; i++) {
		const struct buf *seed = &c.v[below(c.n)];
		struct buf b = { 0 };

		buf_add(&b, seed->data, seed->len);
		mutate(&b, &c);
		run(&b);
		buf_release(&b);
	}
	if (!ret)
		printf("%zu inputs, %lu mutations\n", c.n, n);
	for (size_t i = 0; i < c.n; i++)
		buf_release(&c.v[i]);
	free(c.v);
	return ret ? 1 : 0;
}
