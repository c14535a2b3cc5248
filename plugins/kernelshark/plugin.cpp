// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * KernelShark's plugin: hypervisor time on host CPUs, on tasks (vCPUs among them) and
 * on the CPUs of guests; x86's exits on vCPUs' threads and guests' CPUs; crosvm's and hypertrace's spans on
 * tasks.
 *
 * KernelShark gives plugins to the streams of the first file only, and an event's
 * handler sees its own stream. So spans are made from the rows of the model when
 * something is drawn, and streams of files that were appended get our handler then.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <kernelshark/libkshark.h>

#include "draw.hpp"
#include "row-spans.h"

/* Functions that KernelShark looks up by name. */
extern "C" {
int kshark_data_plugin_initializer(struct kshark_data_stream *stream);
int kshark_data_plugin_deinitializer(struct kshark_data_stream *stream);
void *kshark_plugin_menu_initializer(void *window);
}

namespace
{
std::vector<int> users; /* the streams KernelShark gave us */
struct scan *current;

struct kshark_context *session()
{
	struct kshark_context *ctx = nullptr;

	return kshark_instance(&ctx) ? ctx : nullptr;
}

const struct scan *scan_now(const kshark_trace_histo *histo)
{
	static bool warned;

	if (current && scan_is_of(current, histo))
		return current;
	draw_unselect();
	scan_free(current);
	current = scan_new(histo);
	if (!current && !warned) {
		fprintf(stderr, "hyptrace kernelshark: out of memory, nothing is drawn\n");
		warned = true;
	}
	return current;
}

bool is_user(int sd)
{
	return std::find(users.begin(), users.end(), sd) != users.end();
}

void draw_cpu(KsCppArgV *argv, const struct scan *scan, int sd, int cpu)
{
	const struct shown *const *v;
	int machine, pid;
	size_t n = spans_of_cpu(scan_spans(scan), scan_machine(sd), cpu, &v);

	if (scan_vcpu(scan, sd, cpu, &machine, &pid)) {
		n = spans_of_task(scan_spans(scan), machine, pid, &v);
		/* programs' are of the thread, not of what the guest does on it */
		std::vector<const struct shown *> hyp(v, v + n);
		hyp.erase(std::remove_if(hyp.begin(), hyp.end(),
					 [](const struct shown *s) {
						 return s->kind == SHOWN_CROSVM ||
							s->kind == SHOWN_HYPERTRACE;
					 }),
			  hyp.end());
		draw_spans(argv, hyp.data(), hyp.size());
		return;
	}
	draw_spans(argv, v, n);
}

void draw_graph(struct kshark_cpp_argv *argv_c, int sd, int val, int action);

bool has_handler(const struct kshark_data_stream *stream)
{
	for (const struct kshark_draw_handler *h = stream->draw_handlers; h; h = h->next)
		if (h->draw_func == draw_graph)
			return true;
	return false;
}

/* True: KernelShark lists us for that stream, enabled or not: then the user decides. */
bool is_listed(const struct kshark_data_stream *stream)
{
	for (const struct kshark_dpi_list *p = stream->plugins; p; p = p->next)
		if (p->interface->init == kshark_data_plugin_initializer)
			return true;
	return false;
}

template <class Do> void for_each_stream(struct kshark_context *ctx, Do func)
{
	int *all = kshark_all_streams(ctx);

	for (int i = 0; all && i < ctx->n_streams; i++)
		func(ctx->stream[all[i]]);
	free(all);
}

void adopt(struct kshark_context *ctx)
{
	for_each_stream(ctx, [](struct kshark_data_stream *s) {
		if (!has_handler(s) && !is_listed(s))
			kshark_register_draw_handler(s, draw_graph);
	});
}

/* Buffers of one file have rows of the same CPUs and tasks; their first one has the spans. */
bool is_repeated(struct kshark_context *ctx, int sd, int val, int action)
{
	bool found = false;

	for_each_stream(ctx, [&](struct kshark_data_stream *s) {
		if (s->stream_id >= sd || scan_machine(s->stream_id) != scan_machine(sd))
			return;
		if (action & KSHARK_CPU_DRAW)
			found |= val < s->n_cpus && !kshark_hash_id_find(s->idle_cpus, val);
		else
			found |= kshark_hash_id_find(s->tasks, val);
	});
	return found;
}

void draw_graph(struct kshark_cpp_argv *argv_c, int sd, int val, int action)
{
	KsCppArgV *argv = KS_ARGV_TO_CPP(argv_c);
	const struct scan *scan = scan_now(argv->_histo);
	struct kshark_context *ctx = session();
	const struct shown *const *v;
	size_t n;

	if (!scan || !ctx)
		return;
	adopt(ctx);
	draw_colours(argv, scan_spans(scan));
	if (is_repeated(ctx, sd, val, action))
		return;
	if (action & KSHARK_CPU_DRAW) {
		draw_cpu(argv, scan, sd, val);
	} else if ((action & KSHARK_TASK_DRAW) && val > 0) {
		n = spans_of_task(scan_spans(scan), scan_machine(sd), val, &v);
		draw_spans(argv, v, n);
	}
}

/* The last one is gone, and the library perhaps next. */
void leave()
{
	struct kshark_context *ctx = session();

	if (ctx)
		for_each_stream(ctx, [](struct kshark_data_stream *s) {
			if (has_handler(s))
				kshark_unregister_draw_handler(s, draw_graph);
		});
	scan_free(current);
	current = nullptr;
}
} // namespace

int kshark_data_plugin_initializer(struct kshark_data_stream *stream)
{
	if (is_user(stream->stream_id))
		return 1;
	users.push_back(stream->stream_id);
	kshark_register_draw_handler(stream, draw_graph);
	return 1;
}

int kshark_data_plugin_deinitializer(struct kshark_data_stream *stream)
{
	/* at KernelShark's end, with a stream that is no more than this number */
	if (stream->stream_id == KS_PLUGIN_CONTEXT_FREE)
		return 0;
	if (!is_user(stream->stream_id))
		return 0;
	users.erase(std::find(users.begin(), users.end(), stream->stream_id));
	kshark_unregister_draw_handler(stream, draw_graph);
	if (users.empty())
		leave();
	return 1;
}

void *kshark_plugin_menu_initializer(void *window)
{
	draw_init(window);
	return nullptr;
}
