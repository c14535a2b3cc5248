// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens trace files as KernelShark does, without its window, and says what each
 * stream (a buffer of a file) holds:
 *
 *	FILE BUFFER: N entries, E kinds of event, T tasks
 *
 * where BUFFER is "-" for the top buffer. Exit status 1: a file that cannot be
 * opened, a stream without entries, or entries out of order.
 *
 * With -g also, as its KVM Combo plots see it, for each guest of the first file
 *
 *	guest NAME: FILE, threads PID PID...
 *
 * with -s instead of all this each visit to the hypervisor that hyptrace's plugin draws, "-" for no reason,
 *
 *	hyp CPU FROM TO REASON
 *
 * and each exit of an x86 guest, exit or halt,
 *
 *	exit THREAD FROM TO KIND
 *
 * and with -p PLUGIN whether that one takes the first file's top buffer (KVM
 * Combo's does when it has found kvm_entry and kvm_exit there).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kernelshark/libkshark.h>
#include <kernelshark/libkshark-tepdata.h>

#include "kernelshark/row-spans.h"
#include "hyp-reason.h"

static const char usage[] = "usage: loadkshark [-e BUFFER]... [-g] [-s] [-p PLUGIN.so] FILE.dat...\n"
			    "  -e  a buffer that may be empty (- is the top buffer)\n"
			    "  -g  name the guests and the host's threads of their vCPUs\n"
			    "  -s  show the plugin's visits to the hypervisor, and exits of x86's guests\n"
			    "  -p  a plugin that must take the first file's top buffer\n";

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
	bool guests, spans;
	const char *plugin;
	int n_files;
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

	printf("%s %s: %zu entries, %zu kinds of event, %zu tasks\n", stream->file, name, s->n, s->kinds,
	       stream->tasks->count);
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

/* Of the first file's machine. */
static int show_spans(const struct load *l)
{
	struct kshark_entry **rows = NULL;
	ssize_t n = kshark_load_all_entries(l->ctx, &rows);
	struct kshark_trace_histo histo = { .data = rows, .data_size = n > 0 ? (size_t)n : 0 };
	struct scan *scan = n < 0 ? NULL : scan_new(&histo);
	int cpus = kshark_get_data_stream(l->ctx, 0)->n_cpus, *tasks;
	ssize_t n_tasks = kshark_get_task_pids(l->ctx, 0, &tasks);

	if (!scan) {
		fprintf(stderr, "loadkshark: no spans\n");
		return 1;
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		const struct shown *const *v;
		size_t n_spans = spans_of_cpu(scan_spans(scan), 0, cpu, &v);

		for (size_t i = 0; i < n_spans; i++)
			printf("hyp %d %lld %lld %s\n", cpu, (long long)v[i]->start, (long long)v[i]->end,
			       v[i]->reason < 0 ? "-" : hyp_reason_names[v[i]->reason]);
	}
	for (ssize_t t = 0; t < n_tasks; t++) {
		const struct shown *const *v;
		size_t n_spans = spans_of_task(scan_spans(scan), 0, tasks[t], &v);

		for (size_t i = 0; i < n_spans; i++)
			if (v[i]->kind == SHOWN_EXIT || v[i]->kind == SHOWN_HALT)
				printf("exit %d %lld %lld %s\n", tasks[t], (long long)v[i]->start,
				       (long long)v[i]->end, v[i]->kind == SHOWN_HALT ? "halt" : "exit");
	}
	free(tasks);
	scan_free(scan);
	for (ssize_t i = 0; i < n; i++)
		free(rows[i]);
	free(rows);
	return 0;
}

static int name_guests(const struct load *l)
{
	struct kshark_host_guest_map *map = NULL;
	int n = kshark_tracecmd_get_hostguest_mapping(&map);

	for (int i = 0; i < n; i++) {
		struct kshark_data_stream *guest = kshark_get_data_stream(l->ctx, map[i].guest_id);

		printf("guest %s: %s, threads", map[i].guest_name, guest ? guest->file : "?");
		for (int cpu = 0; cpu < map[i].vcpu_count; cpu++)
			printf(" %d", map[i].cpu_pid[cpu]);
		printf("\n");
	}
	kshark_tracecmd_free_hostguest_map(map, n);
	return n != l->n_files - 1;
}

static int use_plugin(const struct load *l)
{
	struct kshark_plugin_list *plugin = kshark_register_plugin(l->ctx, "plugin", l->plugin);
	struct kshark_data_stream *s = kshark_get_data_stream(l->ctx, 0);

	if (!plugin || !plugin->process_interface) {
		fprintf(stderr, "loadkshark: no plugin '%s'\n", l->plugin);
		return 1;
	}
	kshark_register_plugin_to_stream(s, plugin->process_interface, true);
	if (kshark_handle_all_dpis(s, KSHARK_PLUGIN_INIT) == 1)
		return 0;
	fprintf(stderr, "loadkshark: the plugin does not take '%s'\n", s->file);
	return 1;
}

int main(int argc, char **argv)
{
	struct load l = { 0 };
	int c, ret;

	while ((c = getopt(argc, argv, "e:gsp:")) != -1) {
		if (c == 'g')
			l.guests = true;
		else if (c == 's')
			l.spans = true;
		else if (c == 'p')
			l.plugin = optarg;
		else if (c == 'e' && l.n_may_be_empty < 16)
			l.may_be_empty[l.n_may_be_empty++] = optarg;
		else
			break;
	}
	l.n_files = argc - optind;
	if (c != -1 || l.n_files < 1) {
		fputs(usage, stderr);
		return 2;
	}
	if (!kshark_instance(&l.ctx)) {
		fprintf(stderr, "loadkshark: no session\n");
		return 1;
	}
	ret = open_files(&l, argv + optind, argc - optind);
	if (!ret && l.plugin)
		ret = use_plugin(&l);
	if (!ret)
		ret = l.spans ? show_spans(&l) : check(&l);
	if (!ret && l.guests)
		ret = name_guests(&l);
	kshark_free(l.ctx);
	return ret;
}
