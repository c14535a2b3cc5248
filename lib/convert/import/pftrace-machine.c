// SPDX-License-Identifier: LGPL-2.1-or-later
/* A machine of a Perfetto trace: its buffers, tasks and symbols, in a spool that becomes its file. */
#include "record/drain/spool-to-dat.h"
#include "convert/import/pftrace-priv.h"

int pft_task_name(struct pft_machine *m, uint64_t pid, const void *name, size_t len, bool weak)
{
	char(**block)[16], *at;

	if (pid >= ARRAY_SIZE(m->tasks) * 1024 || !pid)
		return 0;
	block = &m->tasks[pid / 1024];
	if (!*block)
		*block = calloc(1024, sizeof(**block));
	if (!*block)
		return -ENOMEM;
	at = (*block)[pid % 1024];
	if (*at && weak)
		return 0;
	memset(at, 0, 16);
	memcpy(at, name, len < 16 ? len : 15);
	for (; *at; at++)
		if (*at == '\n') /* the lines of saved_cmdlines end there */
			*at = ' ';
	return 0;
}

static int tasks_text(const struct pft_machine *m)
{
	struct buf text = { 0 };
	int ret;

	for (unsigned int i = 0; i < ARRAY_SIZE(m->tasks) * 1024; i++) {
		char(*block)[16] = m->tasks[i / 1024];

		if (!block)
			i += 1023;
		else if (block[i % 1024][0])
			buf_printf(&text, "%u %s\n", i, block[i % 1024]);
	}
	ret = buf_status(&text) ?: spool_put_text(m->spool, "saved_cmdlines", text.data, text.len);
	buf_release(&text);
	return ret;
}

/* Numbers of different sources, and of different times, are different addresses. */
void pft_source_symbols(struct pft_machine *m, struct pft_source *s)
{
	s->symbols = (++m->n_symbols & 0x7fffffff) << 32;
}

void pft_symbol(struct pft_machine *m, const struct pft_source *s, uint64_t number, const void *name,
		size_t len)
{
	const char *text = name;

	if (len && len < 512 && word_len(text, len, ".$") == len && m->symbols.len < PFT_SYMBOLS_MAX)
		buf_printf(&m->symbols, "%016llx T %.*s\n",
			   (unsigned long long)(s->symbols | (uint32_t)number), (int)len, text);
}

static const char *machine_clock(const struct pft_machine *m)
{
	return m->clock && *m->clock ? m->clock : "boot";
}

static int add_buffer(struct pft_machine *m, const char *name, const char *kind, struct pft_buffer **out)
{
	struct spool_buffer b = { .name = name,
				  .clock = machine_clock(m),
				  .path = name,
				  .kind = kind,
				  .page_size = PFT_PAGE,
				  .n_cpus = PERFETTO_CPUS };
	int ret;

	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->machine = m;
	(*out)->number = m->n_buffers++;
	ret = spool_add_buffer(m->spool, &b);
	if (!ret)
		return 0;
	free(*out);
	*out = NULL;
	return ret;
}

struct pft_machine *pft_machine(struct pft *p, uint32_t id, int *ret)
{
	struct pft_machine *m;
	char *dir;

	*ret = 0;
	for (size_t i = 0; i < p->n_machines; i++)
		if (p->machines[i]->id == id)
			return p->machines[i];
	*ret = p->n_machines < PFT_MACHINES ? -ENOMEM : -E2BIG;
	if (*ret == -E2BIG)
		log_err(p->o->log, "'%s' has more than %d machines", p->o->input, PFT_MACHINES);
	m = *ret == -E2BIG ? NULL : calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	p->machines[p->n_machines++] = m;
	m->id = id;
	m->clock = p->clock;
	dir = id ? str_printf("%s.machine-%u.spool", p->o->output, id) : str_printf("%s.spool", p->o->output);
	*ret = dir ? spool_create(&m->spool, dir, p->o->log) : -ENOMEM;
	free(dir);
	if (*ret)
		return NULL;
	/* the top buffer comes first in a file */
	*ret = add_buffer(m, "", "host", &m->top) ?: import_begin(m->spool);
	return *ret ? NULL : m;
}

struct pft_source *pft_source(struct pft *p, struct pft_machine *m, uint32_t sequence, int *ret)
{
	struct pft_source *s;

	*ret = 0;
	for (size_t i = 0; i < m->n_sources; i++)
		if (m->sources[i].sequence == sequence)
			return &m->sources[i];
	if (m->n_sources == PFT_SOURCES) {
		*ret = log_fail(p->o->log, -E2BIG, "'%s' has more than %d sources of events on a machine",
				p->o->input, PFT_SOURCES);
		return NULL;
	}
	s = &m->sources[m->n_sources++];
	s->sequence = sequence;
	pft_source_symbols(m, s);
	return s;
}

static int cpu_emit(void *ctx, const void *page, size_t size)
{
	const struct pft_cpu *c = ctx;
	int fd = spool_pages_fd(c->buffer->machine->spool, c->buffer->number, c->cpu);
	int ret = fd < 0 ? fd : write_all(fd, page, size);

	fd_close(&fd);
	return ret;
}

struct pft_cpu *pft_cpu(struct pft_machine *m, struct pft_source *s, bool hyp, unsigned int cpu, int *ret)
{
	struct pft_buffer **b = hyp ? &m->hyp : &s->buffer;
	struct pft_cpu *c;
	char name[32];

	*ret = 0;
	s->is_hyp |= hyp;
	if (!*b && hyp) {
		/* hyp-: its records get the pids of tasks that ran (record/drain/spool-to-dat.h) */
		*ret = add_buffer(m, "hyp", "hyp-raw", b);
	} else if (!*b && m->n_hosts++) {
		snprintf(name, sizeof(name), "ftrace-%zu", m->n_hosts);
		*ret = add_buffer(m, name, "host", b);
	} else if (!*b) { /* the first source's is the top one */
		*b = m->top;
	}
	if (*ret)
		return NULL;
	if ((*b)->cpus[cpu])
		return (*b)->cpus[cpu];
	c = calloc(1, sizeof(*c));
	*ret = c ? page_writer_init(&c->w, PFT_PAGE, cpu_emit, c) : -ENOMEM;
	if (*ret) {
		free(c);
		return NULL;
	}
	c->buffer = *b;
	c->cpu = cpu;
	c->pid = -1;
	(*b)->cpus[cpu] = c;
	return c;
}

static int buffer_lost(struct pft_buffer *b)
{
	int ret = 0;

	for (size_t i = 0; i < PERFETTO_CPUS && !ret; i++)
		if (b->cpus[i]) {
			b->cpus[i]->pid = -1;
			ret = page_write_lost(&b->cpus[i]->w, 0);
		}
	return ret;
}

int pft_source_lost(struct pft *p, struct pft_machine *m, struct pft_source *s)
{
	int ret = s->buffer ? buffer_lost(s->buffer) : 0;

	p->result->lost++;
	return ret ?: s->is_hyp ? buffer_lost(m->hyp) : 0;
}

enum { STATS_PHASE = 1, STATS_CPU = 2, STATS_BEGIN = 1, STATS_END = 2 };
/* Of a CPU: its number, and what stats of tracefs has. */
enum {
	STAT_CPU = 1,
	STAT_ENTRIES,
	STAT_OVERRUN,
	STAT_COMMIT,
	STAT_BYTES,
	STAT_DROPPED = 8,
	STAT_READ,
	STAT_NUMBERS
};

struct pft_stats {
	bool seen[2]; /* as the trace began, and as it ended */
	uint64_t v[2][STAT_NUMBERS];
};

int pft_source_stats(struct pft_source *s, struct cursor c)
{
	struct wire_field f, number;
	uint64_t phase = 0;
	int ret;

	if (!s->stats)
		s->stats = calloc(PERFETTO_CPUS, sizeof(*s->stats));
	if (!s->stats)
		return -ENOMEM;
	while ((ret = wire_next(&c, &f)) == 1) {
		uint64_t v[STAT_NUMBERS] = { 0 };
		struct cursor cpu;

		if (f.number == STATS_PHASE && !f.is_bytes)
			phase = f.v;
		if (f.number != STATS_CPU || !f.is_bytes)
			continue;
		cpu = wire_message(&f);
		while ((ret = wire_next(&cpu, &number)) == 1)
			if (number.number < STAT_NUMBERS && !number.is_bytes)
				v[number.number] = number.v;
		if (ret)
			return ret;
		if (v[STAT_CPU] >= PERFETTO_CPUS || (phase != STATS_BEGIN && phase != STATS_END))
			continue;
		s->stats[v[STAT_CPU]].seen[phase - STATS_BEGIN] = true;
		memcpy(s->stats[v[STAT_CPU]].v[phase - STATS_BEGIN], v, sizeof(v));
	}
	return ret;
}

/* As CPUSTAT, with what was lost since the trace began. */
static int source_stat_texts(struct pft *p, struct pft_machine *m, const struct pft_source *s)
{
	const struct pft_buffer *b = s->buffer ?: s->is_hyp ? m->hyp : NULL;
	int ret = 0;

	for (unsigned int i = 0; s->stats && b && i < PERFETTO_CPUS && !ret; i++) {
		const struct pft_stats *st = &s->stats[i];
		const uint64_t *begin = st->v[0], *end = st->v[1];
		uint64_t overrun = end[STAT_OVERRUN] - begin[STAT_OVERRUN];
		char name[48], text[256];

		if (!b->cpus[i] || !st->seen[0] || !st->seen[1] || end[STAT_OVERRUN] < begin[STAT_OVERRUN])
			continue;
		p->result->counted = true;
		p->result->overrun += overrun;
		snprintf(name, sizeof(name), "stat.%zu.%u", b->number, i);
		snprintf(text, sizeof(text),
			 "CPU: %u\nentries: %llu\noverrun: %llu\ncommit overrun: %llu\nbytes: %llu\n"
			 "dropped events: %llu\nread events: %llu\n",
			 i, (unsigned long long)end[STAT_ENTRIES], (unsigned long long)overrun,
			 (unsigned long long)end[STAT_COMMIT], (unsigned long long)end[STAT_BYTES],
			 (unsigned long long)end[STAT_DROPPED], (unsigned long long)end[STAT_READ]);
		ret = spool_put_text(m->spool, name, text, strlen(text));
	}
	return ret;
}

static int buffer_finish(struct pft_machine *m, const struct pft_buffer *b)
{
	unsigned int n = 0;
	int ret = 0;

	if (!b)
		return 0;
	for (unsigned int i = 0; i < PERFETTO_CPUS && !ret; i++)
		if (b->cpus[i]) {
			n = i + 1;
			ret = page_flush(&b->cpus[i]->w, true);
		}
	/* CPUs without events have files, too: spool_drop_missing_cpus() counts these */
	for (unsigned int i = 0; i < n && !ret; i++) {
		int fd = spool_pages_fd(m->spool, b->number, i);

		ret = fd < 0 ? fd : 0;
		fd_close(&fd);
	}
	return ret;
}

static int kind_order(const void *a, const void *b)
{
	const struct pft_kind *x = *(struct pft_kind *const *)a, *y = *(struct pft_kind *const *)b;
	bool xf = !strcmp(x->system, "ftrace"), yf = !strcmp(y->system, "ftrace");

	return ORDER(yf, xf) ?: strcmp(x->system, y->system) ?: (int)x->id - (int)y->id;
}

static int formats_text(struct pft_machine *m)
{
	struct buf all = { 0 };
	int ret;

	array_sort(m->kinds.v, m->kinds.n, sizeof(struct pft_kind *), kind_order);
	for (size_t i = 0; i < m->kinds.n; i++) {
		struct buf text = { 0 };

		pft_kind_text(m->kinds.v[i], &text);
		formats_add(&all, m->kinds.v[i]->system, text.data, text.len);
		all.bad |= text.bad;
		buf_release(&text);
	}
	ret = buf_status(&all) ?: spool_put_text(m->spool, "formats", all.data, all.len);
	buf_release(&all);
	return ret;
}

int pft_machine_finish(struct pft *p, struct pft_machine *m, const char *output)
{
	struct dat_from_spool_opts o = { .output = output, .log = p->o->log };
	int ret = buffer_finish(m, m->top) ?: buffer_finish(m, m->hyp);

	for (size_t i = 0; i < m->n_sources && !ret; i++)
		ret = m->sources[i].buffer != m->top ? buffer_finish(m, m->sources[i].buffer) : 0;
	for (size_t i = 0; i < m->n_sources && !ret; i++)
		ret = source_stat_texts(p, m, &m->sources[i]);
	ret = ret ?:
	      formats_text(m) ?:
	      tasks_text(m) ?:
	      buf_status(&m->symbols) ?:
	      spool_put_text(m->spool, "kallsyms", m->symbols.data, m->symbols.len) ?:
	      (m->uname ? spool_set(m->spool, "uname", m->uname) : 0) ?:
	      spool_set_number(m->spool, "sched_buffer", m->sched_buffer) ?:
	      spool_set(m->spool, "clock", machine_clock(m));
	if (ret)
		return log_fail_errno(p->o->log, ret, "cannot make '%s'", output);
	spool_drop_missing_cpus(m->spool);
	return dat_from_spool(m->spool, &o);
}

static void buffer_free(struct pft_buffer *b)
{
	for (size_t i = 0; b && i < PERFETTO_CPUS; i++)
		if (b->cpus[i]) {
			page_writer_release(&b->cpus[i]->w);
			free(b->cpus[i]);
		}
	free(b);
}

void pft_machine_free(struct pft_machine *m)
{
	for (size_t i = 0; i < m->n_sources; i++) {
		struct pft_source *s = &m->sources[i];

		if (s->buffer != m->top)
			buffer_free(s->buffer);
		for (size_t k = 0; k < s->n_rows; k++)
			pft_row_free(&s->rows[k]);
		free(s->rows);
		free(s->stats);
	}
	buffer_free(m->top);
	buffer_free(m->hyp);
	for (size_t i = 0; i < ARRAY_SIZE(m->tasks); i++)
		free(m->tasks[i]);
	pft_kinds_release(&m->kinds);
	buf_release(&m->symbols);
	if (m->spool)
		spool_remove(m->spool);
	free(m->name);
	free(m->uname);
	free(m);
}
