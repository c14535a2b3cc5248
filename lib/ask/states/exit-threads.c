// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pairs exits of each thread of a buffer, and doubts those that lost events may belong to. */
#include "ask/states/exit-threads.h"

static bool same_thread(const void *threads, size_t i, const void *wanted)
{
	const struct exit_thread *a = (const struct exit_thread *)threads + i, *b = wanted;

	return a->pid == b->pid && a->buffer == b->buffer;
}

static void thread_lost(struct exit_thread *t)
{
	const struct step lost = { .kind = STEP_LOST };
	struct span none;

	step_exit(&t->side, &lost, 0, &none);
}

int exit_threads_step(struct exit_threads *e, const struct step *s, uint64_t row, struct span *done)
{
	const struct exit_thread one = { .buffer = gaps_buffer(&e->gaps, s->stream), .pid = s->pid };
	uint32_t hash = map_hash((uint64_t)one.buffer << 32 | (uint32_t)one.pid);
	size_t i;
	int ret;

	if (s->kind == STEP_LOST || s->kind == STEP_GAP) {
		for (i = 0; i < e->n; i++)
			if (e->v[i].buffer == one.buffer)
				thread_lost(&e->v[i]);
		if (s->kind == STEP_GAP)
			gaps_start(&e->gaps, s->stream);
		else if (!s->b)
			gaps_stop(&e->gaps, s->stream);
	}
	if ((s->kind != STEP_KVM_ENTRY && s->kind != STEP_KVM_EXIT) || s->pid < 0)
		return 0;
	i = map_find(&e->by_thread, hash, same_thread, e->v, &one);
	if (i == MAP_NONE) {
		i = e->n;
		ret = map_push(&e->by_thread, hash, &e->v, &e->n, &one, sizeof(one));
		if (ret)
			return ret;
	}
	ret = step_exit(&e->v[i].side, s, row, done);
	if (gaps_any(&e->gaps, s->stream))
		thread_lost(&e->v[i]);
	return ret;
}

void exit_threads_release(struct exit_threads *e)
{
	gaps_release(&e->gaps);
	map_release(&e->by_thread);
	free(e->v);
	*e = (struct exit_threads){ 0 };
}
