// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens trace files as KernelShark does, without its window, and says what each
 * stream (a buffer of a file) holds:
 *
 *	FILE BUFFER: N entries, E kinds of event, T tasks
 *
 * where BUFFER is "-" for the top buffer. Exit status 1: a file that cannot be
 * opened, a stream without entries, or entries out of order.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kernelshark/libkshark.h>
#include <kernelshark/libkshark-tepdata.h>

static const char usage[] = "usage: loadkshark [-e BUFFER]... FILE.dat...\n"
			    "  -e  a buffer that may be empty (- is the top buffer)\n";

#define MAX_STREAMS 64
#define MAX_EVENTS  32768

struct stream_stat {
	size_t n;
	size_t unsorted;
	int64_t last;
	bool seen[MAX_EVENTS];
	size_t kinds;
};

struct load {
	struct kshark_context *ctx;
	const char *may_be_empty[16];
	int n_may_be_empty;
};

static bool may_be_empty(const struct load *l, const char *name)
{
	for (int i = 0; i < l->n_may_be_empty; i++)
		if (!strcmp(l->may_be_empty[i], name))
			return true;
	return false;
}

static const char *stream_name(const struct kshark_data_stream *s)
{
	return !s->name || !strcmp(s->name, KS_UNNAMED) || !s->name[0] ? "-" : s->name;
}

static int open_files(struct load *l, char **files, int n)
{
	for (int i = 0; i < n; i++) {
		int sd = kshark_open(l->ctx, files[i]);

		if (sd < 0) {
			fprintf(stderr, "loadkshark: cannot open '%s'\n", files[i]);
			return 1;
		}
		if (kshark_tep_init_all_buffers(l->ctx, sd) < 0) {
			fprintf(stderr, "loadkshark: cannot open the buffers of '%s'\n", files[i]);
			return 1;
		}
	}
	return 0;
}

static void count(struct stream_stat *s, const struct kshark_entry *e)
{
	if (s->n++ && e->ts < s->last)
		s->unsorted++;
	s->last = e->ts;
	if (e->event_id >= 0 && !s->seen[e->event_id]) {
		s->seen[e->event_id] = true;
		s->kinds++;
	}
}

static int report(const struct load *l, int sd, const struct stream_stat *s)
{
	struct kshark_data_stream *stream = kshark_get_data_stream(l->ctx, sd);
	const char *name = stream_name(stream);

	printf("%s %s: %zu entries, %zu kinds of event, %zu tasks\n", stream->file, name, s->n,
	       s->kinds, stream->tasks->count);
	if (s->unsorted) {
		printf("%s %s: %zu entries are earlier than the one before\n", stream->file, name,
		       s->unsorted);
		return 1;
	}
	return !s->n && !may_be_empty(l, name);
}

static int check(const struct load *l)
{
	int *streams = kshark_all_streams(l->ctx);
	struct stream_stat *stats = calloc(MAX_STREAMS, sizeof(*stats));
	struct kshark_entry **rows = NULL;
	ssize_t n = kshark_load_all_entries(l->ctx, &rows);
	int ret = n < 0;

	if (!streams || !stats || l->ctx->n_streams > MAX_STREAMS) {
		fprintf(stderr, "loadkshark: out of memory, or too many streams\n");
		return 1;
	}
	for (ssize_t i = 0; i < n; i++) {
		count(&stats[rows[i]->stream_id], rows[i]);
		if (i && rows[i]->ts < rows[i - 1]->ts)
			ret = 1;
	}
	if (ret)
		printf("the streams together are not sorted, or could not be loaded\n");
	for (int i = 0; i < l->ctx->n_streams; i++)
		ret |= report(l, streams[i], &stats[streams[i]]);
	for (ssize_t i = 0; i < n; i++)
		free(rows[i]);
	free(rows);
	free(stats);
	free(streams);
	return ret;
}

int main(int argc, char **argv)
{
	struct load l = { 0 };
	int c, ret;

	while ((c = getopt(argc, argv, "e:")) != -1) {
		if (c != 'e' || l.n_may_be_empty == 16)
			break;
		l.may_be_empty[l.n_may_be_empty++] = optarg;
	}
	if (c != -1 || optind == argc) {
		fputs(usage, stderr);
		return 2;
	}
	if (!kshark_instance(&l.ctx)) {
		fprintf(stderr, "loadkshark: no session\n");
		return 1;
	}
	ret = open_files(&l, argv + optind, argc - optind);
	if (!ret)
		ret = check(&l);
	kshark_free(l.ctx);
	return ret;
}
