// SPDX-License-Identifier: GPL-2.0-only
/* The grammar of record: words in, the plan (or the message) out. */
#include "record/plan/plan.h"
#include "base/array.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void dump_list(struct buf *out, const char *opt, const struct strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		buf_printf(out, " %s=%s", opt, l->v[i]);
}

static void dump_buffer(struct buf *out, const struct buffer_plan *b)
{
	buf_printf(out, "%s%s:", *b->name ? b->name : "top", b->is_hyp ? "(hyp)" : "");
	for (size_t i = 0; i < b->n_events; i++) {
		const struct event_plan *e = &b->events[i];

		buf_printf(out, " %s%s%s", e->negate ? "-" : "+", e->name, e->sdt ? "*" : "");
		if (e->define)
			buf_printf(out, "(%s%s)", e->define, e->optional ? "?" : "");
		if (e->filter)
			buf_printf(out, "{%s}", e->filter);
		for (size_t t = 0; t < e->triggers.n; t++)
			buf_printf(out, "<%s>", e->triggers.v[t]);
	}
	if (b->tracer)
		buf_printf(out, " p=%s", b->tracer);
	dump_list(out, "l", &b->funcs);
	dump_list(out, "n", &b->notrace);
	dump_list(out, "g", &b->graph);
	dump_list(out, "O", &b->options);
	if (b->clock)
		buf_printf(out, " C=%s", b->clock);
	if (b->cpumask)
		buf_printf(out, " M=%s", b->cpumask);
	if (b->size_kb)
		buf_printf(out, " b=%llu", (unsigned long long)b->size_kb);
	if (b->subbuf_kb)
		buf_printf(out, " subbuf=%llu", (unsigned long long)b->subbuf_kb);
	if (b->max_graph_depth >= 0)
		buf_printf(out, " depth=%lld", (long long)b->max_graph_depth);
	buf_addstr(out, "; ");
}

static void dump_trigger(struct buf *out, const char *name, const struct trigger_plan *t)
{
	if (t->event)
		buf_printf(out, "%s=%s", name, t->event);
	if (t->filter)
		buf_printf(out, "{%s}", t->filter);
	buf_addstr(out, t->event ? " " : "");
}

static void dump_long(struct buf *out, const struct record_plan *p)
{
	const struct {
		uint64_t n;
		const char *name;
	} numbers[] = {
		{ p->rotate_bytes, "rotate" }, { p->rotate_ms, "rotate-ms" }, { p->keep_files, "keep" },
		{ p->max_cpu_kb, "m" },	       { p->max_bytes, "max-size" },  { p->flight_ms, "flight" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i].n)
			buf_printf(out, "%s=%llu ", numbers[i].name, (unsigned long long)numbers[i].n);
	buf_addstr(out, p->ring ? "ring " : "");
	dump_trigger(out, "dump", &p->dump_on);
}

/* Everything in the plan that is not as it would be without an option. */
static void dump(struct buf *out, const struct record_plan *p)
{
	const struct {
		bool on;
		const char *name;
	} flags[] = {
		{ p->filter_command, "F" },
		{ p->follow_children, "c" },
		{ p->func_stack, "func-stack" },
		{ p->keep, "k" },
		{ p->ignore_event_errors, "i" },
		{ p->quiet, "q" },
		{ p->date, "date" },
		{ p->no_filter, "no-filter" },
		{ p->proc_map, "proc-map" },
		{ p->best_effort, "best-effort" },
		{ p->take_over, "take-over" },
	};

	for (size_t i = 0; i < p->n_buffers; i++)
		dump_buffer(out, &p->buffers[i]);
	for (size_t i = 0; i < p->n_guests; i++) {
		buf_printf(out, "guest %s", p->guests[i].spec);
		if (p->guests[i].name)
			buf_printf(out, " name=%s", p->guests[i].name);
		for (size_t a = 0; a < p->guests[i].args.n; a++)
			buf_printf(out, " %s", p->guests[i].args.v[a]);
		if (p->guests[i].profile_hz)
			buf_printf(out, " profile=%llu", (unsigned long long)p->guests[i].profile_hz);
		buf_addstr(out, "; ");
	}
	for (size_t i = 0; i < p->rings.n; i++)
		buf_printf(out, "ring=%s ", p->rings.v[i]);
	if (p->profile_hz)
		buf_printf(out, "profile=%llu ", (unsigned long long)p->profile_hz);
	dump_trigger(out, "start", &p->start_on);
	dump_trigger(out, "stop", &p->stop_on);
	if (p->output && strcmp(p->output, "trace.dat"))
		buf_printf(out, "o=%s ", p->output);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (flags[i].on)
			buf_printf(out, "%s ", flags[i].name);
	for (size_t i = 0; i < p->pids.n; i++)
		buf_printf(out, "P=%s ", p->pids.v[i]);
	if (p->sleep_us)
		buf_printf(out, "s=%llu ", (unsigned long long)p->sleep_us);
	if (p->rt_prio)
		buf_printf(out, "r=%llu ", (unsigned long long)p->rt_prio);
	if (p->user)
		buf_printf(out, "user=%s ", p->user);
	if (p->compression)
		buf_printf(out, "compression=%s ", p->compression);
	if (p->file_version)
		buf_printf(out, "v%llu ", (unsigned long long)p->file_version);
	if (p->cmdlines_size)
		buf_printf(out, "cmdlines=%llu ", (unsigned long long)p->cmdlines_size);
	if (p->guest_timeout_ms && p->guest_timeout_ms != GUEST_TIMEOUT_MS)
		buf_printf(out, "timeout=%lld ms ", (long long)p->guest_timeout_ms);
	dump_long(out, p);
	for (char **c = p->command; c && *c; c++)
		buf_printf(out, "%s%s", c == p->command ? "$ " : " ", *c);
}

#define MAX_ARGS 24

struct parse_case {
	const char *argv[MAX_ARGS]; /* after "record" */
	const char *want;	    /* the plan, or the message */
};

/* Parses as `request` says, writes the plan or the message to text. */
static int parse_words(const struct parse_case *c, bool request, char *text, size_t size)
{
	struct record_plan plan = { 0 };
	struct opts_error err;
	struct buf out = { 0 };
	char words[MAX_ARGS][128], *argv[MAX_ARGS + 2] = { words[0] };
	int argc = 1, ret;

	strcpy(words[0], "record");
	for (; c->argv[argc - 1]; argc++) {
		snprintf(words[argc], sizeof(words[argc]), "%s", c->argv[argc - 1]);
		argv[argc] = words[argc];
	}
	ret = request ? grammar_parse_request(&plan, argc, argv, NULL, &err)
		      : grammar_parse_line(&plan, argc, argv, &err);
	if (!ret)
		dump(&out, &plan);
	snprintf(text, size, "%s", ret ? err.text : buf_str(&out));
	buf_release(&out);
	record_plan_release(&plan);
	return ret;
}

/* clang-format off */
static const struct parse_case good[] = {
	{ { "-e", "sched/sched_switch", "-B", "hyp", "-e", "hyp/hyp_enter", "-e", "kvm:a/b" },
	  "top: +sched:sched_switch; hyp(hyp): +hyp:hyp_enter +kvm:a/b; " },
	{ { "-e", "hyp/hyp_enter", "-e", "kvm:*", "-v", "-e", "hypervisor:hyp_exit" },
	  "top: +kvm:*; hyp(hyp): +hyp:hyp_enter -hypervisor:hyp_exit; " },
	{ { "-e", "hypervisor:*", "-B", "x", "-e", "hyp:a", "-B", "hyp", "-e", "hyp_exit" },
	  "top:; x: +hyp:a; hyp(hyp): +hyp_exit +hypervisor:*; " },
	{ { "-e", "hyp", "-e", "hyper:a", "-e", "p:hyp/x do_it", "-A", "3", "-e", "hyp:a" },
	  "top: +hyp +hyper:a +hyp:x(p:hyp/x do_it); guest 3 -e hyp:a; " },
	{ { "-A", "g", "-e", "sched/sched_switch" }, "top:; guest g -e sched:sched_switch; " },
	{ { "-A", "guest@3" }, "top:; guest guest@3; " },
	{ { "-e", "kvm", "--start-on", "sched:sched_switch/next_pid == 1 / 2", "--stop-on", "kvm:kvm_exit" },
	  "top: +kvm; start=sched/sched_switch{next_pid == 1 / 2} stop=kvm/kvm_exit " },
	{ { "-B", "hyp", "--stop-on", "kvm:kvm_exit" }, "top:; hyp(hyp):; stop=kvm/kvm_exit " },
	{ { "--start-on", "a:b/x", "-B", "x", "-e", "a", "--stop-on", "a:b/y" },
	  "top:; x: +a; start=a/b{x} stop=a/b{y} " },
	{ { "-e", "kvm", "-A", "3", "-e", "x", "--start-on", "a:b/x==1", "-B", "hyp", "--stop-on", "c:d" },
	  "top: +kvm; hyp(hyp):; guest 3 -e x --start-on a:b/x==1; stop=c/d " },
	{ { "-B", "hyp", "-e", "kvm", "-A", "3", "-e", "sched", "-f", "x", "-o", "a", "-A", "b", "-b", "9", "--name", "c" },
	  "top:; hyp(hyp): +kvm; guest 3 -e sched -f x; guest b name=c -b 9; o=a " },
	{ { "-A", "3", "-e", "sched", "-B", "hyp", "-e", "hyp_enter" },
	  "top:; hyp(hyp): +hyp_enter; guest 3 -e sched; " },
	{ { "-e", "kvm", "--rotate", "100M", "--keep", "3" }, "top: +kvm; rotate=104857600 keep=3 " },
	{ { "-e", "kvm", "--rotate", "5min" }, "top: +kvm; rotate-ms=300000 " },
	{ { "-e", "kvm", "-m", "1000", "--max-size", "1G" }, "top: +kvm; m=1000 max-size=1073741824 " },
	{ { "-e", "kvm", "--flight", "2.5", "--ring" }, "top: +kvm; flight=2500 ring " },
	{ { "-e", "kvm", "--flight", "2.5", "--dump-on", "sched:sched_wakeup/pid == 1" },
	  "top: +kvm; flight=2500 dump=sched/sched_wakeup{pid == 1} " },
	{ { "-A", "3", "-e", "sched", "--guest-timeout", "2.5" }, "top:; guest 3 -e sched; timeout=2500 ms " },
	{ { "--guest-timeout=0.1", "-A", "3" }, "top:; guest 3; timeout=100 ms " },
	/* events */
	{ { "-e", "kvm" }, "top: +kvm; " },
	{ { "-ekvm", "-e", "sched:sched_switch" }, "top: +kvm +sched:sched_switch; " },
	{ { "-e", "all", "ls", "-l" }, "top: +all; $ ls -l" },
	{ { "-e", "all", "--", "ls", "--x" }, "top: +all; $ ls --x" },
	{ { "-e", "all", "--" }, "top: +all; " },
	{ { "-e", "all", "ls", "-e", "kvm" }, "top: +all; $ ls -e kvm" },
	{ { "-e", "sched:*wak*", "-v", "-e", "*stat*" }, "top: +sched:*wak* -*stat*; " },
	{ { "-e", "a", "-f", "x == 1" }, "top: +a{x == 1}; " },
	{ { "-e", "a", "-f", "x == 1", "-f", "y" }, "top: +a{(x == 1)&&(y)}; " },
	{ { "-e", "a", "-f", "1", "-f", "2", "-f", "3" }, "top: +a{((1)&&(2))&&(3)}; " },
	{ { "-e", "a", "-R", "traceoff if x > 3", "-R", "stacktrace" },
	  "top: +a<traceoff if x > 3><stacktrace>; " },
	{ { "-v", "-e", "a", "-R", "hist:keys=common_pid" }, "top: -a<hist:keys=common_pid>; " },
	{ { "-e", "a", "-e", "b", "-f", "x" }, "top: +a +b{x}; " },
	{ { "-p", "nop", "-v", "-e", "a" }, "top: -a p=nop; " },
	{ { "-B", "hyp", "-v", "-e", "a" }, "top:; hyp(hyp): -a; " },
	{ { "-v", "-A", "3", "-e", "a" }, "top:; guest 3 -e a; " },
	{ { "-A", "3", "-e", "a", "-v", "-e", "b" }, "top:; guest 3 -e a -v -e b; " },
	{ { "-A", "3", "-v", "-e", "a", "-R", "traceon" }, "top:; guest 3 -v -e a -R traceon; " },
	{ { "-A", "3", "-v" }, "top:; guest 3 -v; " },
	{ { "-e", "a", "-T" }, "top: +a O=stacktrace; " },
	{ { "-i", "-e", "a" }, "top: +a; i " },
	/* events that are made */
	{ { "-e", "p:hv/x do_it a=$arg1", "-f", "a > 3" }, "top: +hv:x(p:hv/x do_it a=$arg1){a > 3}; " },
	{ { "-B", "i", "-e", "r8:hv/x do_it", "-v", "-e", "b" }, "top:; i: +hv:x(r8:hv/x do_it) -b; " },
	{ { "-A", "3", "-e", "f:hv/x do_it", "--preset", "virtio" },
	  "top:; guest 3 -e f:hv/x do_it --preset virtio; " },
	{ { "--preset", "virtio" },
	  "top: +virtio:kick(p:virtio/kick vp_notify vq=$arg1:x64 queue=+0(+24($arg1)):string?)"
	  " +virtio:kick_mmio(p:virtio/kick_mmio vm_notify vq=$arg1:x64 queue=+0(+24($arg1)):string?)"
	  " +virtio:interrupt(p:virtio/interrupt vring_interrupt irq=$arg1:s32 vq=$arg2:x64 "
	  "queue=+0(+24($arg2)):string?)"
	  " +virtio:add(p:virtio/add virtqueue_add_sgs device=+0(+32($arg1)):s32 "
	  "queue=+0(+24($arg1)):string out=$arg3:u32 in=$arg4:u32 len0=+12(+0($arg2)):u32 "
	  "end0=+0(+0($arg2)):u8 len1=+12(+8($arg2)):u32 end1=+0(+8($arg2)):u8 len2=+12(+16($arg2)):u32 "
	  "end2=+0(+16($arg2)):u8 len3=+12(+24($arg2)):u32 end3=+0(+24($arg2)):u8?)"
	  " +virtio:add_out(p:virtio/add_out virtqueue_add_outbuf device=+0(+32($arg1)):s32 "
	  "queue=+0(+24($arg1)):string out=$arg3:u32 len0=+12($arg2):u32 len1=+44($arg2):u32 "
	  "len2=+76($arg2):u32 len3=+108($arg2):u32 len4=+140($arg2):u32 len5=+172($arg2):u32 "
	  "len6=+204($arg2):u32 len7=+236($arg2):u32?)"
	  " +virtio:add_out_premapped(p:virtio/add_out_premapped virtqueue_add_outbuf_premapped "
	  "device=+0(+32($arg1)):s32 queue=+0(+24($arg1)):string out=$arg3:u32 len0=+12($arg2):u32 "
	  "len1=+44($arg2):u32 len2=+76($arg2):u32 len3=+108($arg2):u32 len4=+140($arg2):u32 "
	  "len5=+172($arg2):u32 len6=+204($arg2):u32 len7=+236($arg2):u32?)"
	  " +virtio:add_in(p:virtio/add_in virtqueue_add_inbuf device=+0(+32($arg1)):s32 "
	  "queue=+0(+24($arg1)):string in=$arg3:u32 len0=+12($arg2):u32 len1=+44($arg2):u32 "
	  "len2=+76($arg2):u32 len3=+108($arg2):u32 len4=+140($arg2):u32 len5=+172($arg2):u32 "
	  "len6=+204($arg2):u32 len7=+236($arg2):u32?)"
	  " +virtio:add_in_ctx(p:virtio/add_in_ctx virtqueue_add_inbuf_ctx device=+0(+32($arg1)):s32 "
	  "queue=+0(+24($arg1)):string in=$arg3:u32 len0=+12($arg2):u32 len1=+44($arg2):u32 "
	  "len2=+76($arg2):u32 len3=+108($arg2):u32 len4=+140($arg2):u32 len5=+172($arg2):u32 "
	  "len6=+204($arg2):u32 len7=+236($arg2):u32?)"
	  " +virtio:add_in_premapped(p:virtio/add_in_premapped virtqueue_add_inbuf_premapped "
	  "device=+0(+32($arg1)):s32 queue=+0(+24($arg1)):string in=$arg3:u32 len0=+12($arg2):u32 "
	  "len1=+44($arg2):u32 len2=+76($arg2):u32 len3=+108($arg2):u32 len4=+140($arg2):u32 "
	  "len5=+172($arg2):u32 len6=+204($arg2):u32 len7=+236($arg2):u32?)"
	  " +virtio:add_in_cache_clean(p:virtio/add_in_cache_clean virtqueue_add_inbuf_cache_clean "
	  "device=+0(+32($arg1)):s32 queue=+0(+24($arg1)):string in=$arg3:u32 len0=+12($arg2):u32 "
	  "len1=+44($arg2):u32 len2=+76($arg2):u32 len3=+108($arg2):u32 len4=+140($arg2):u32 "
	  "len5=+172($arg2):u32 len6=+204($arg2):u32 len7=+236($arg2):u32?)"
	  " +virtio:doorbell(p:virtio/doorbell ioeventfd_write addr=$arg3:x64?)"
	  " +virtio:signal(p:virtio/signal vhost_signal dev=$arg1:x64 vq=$arg2:x64?); " },
	{ { "-e", "a", "--preset", "qemu" },
	  "top: +a +sdt_qemu:kvm_run_exit* +sdt_qemu:memory_region_ops_read* +sdt_qemu:memory_region_ops_write*"
	  " +sdt_qemu:virtio_queue_notify* +sdt_qemu:virtqueue_pop* +sdt_qemu:virtqueue_fill*"
	  " +sdt_qemu:virtio_notify* +sdt_qemu:virtio_notify_irqfd* +sdt_qemu:vm_state_notify*; " },

	/* buffers */
	{ { "-B", "hyp" }, "top:; hyp(hyp):; " },
	{ { "-B", "hyp", "-p", "function", "-l", "a*", "-n", "ab" }, "top:; hyp(hyp): p=function l=a* n=ab; " },
	{ { "-B", "remote:hypervisor" }, "top:; hyp(hyp):; " },
	{ { "-B", "remote:fw", "-e", "a", "-B", "x", "-B", "remote:fw", "-b", "9" },
	  "top:; remote:fw(hyp): +a b=9; x:; " },
	{ { "-B", "hypervisor", "-e", "kvm", "-e", "hyp_enter", "-e", "hyp:*" },
	  "top:; hyp(hyp): +kvm +hyp_enter +hyp:*; " },
	{ { "-e", "a", "-B", "hyp", "-b", "512", "-B", "x", "-e", "b", "-b", "9", "sleep", "1" },
	  "top: +a; hyp(hyp): b=512; x: +b b=9; $ sleep 1" },
	{ { "-B", "x", "-e", "a", "-B", "y", "-e", "b", "-B", "x", "-e", "c" },
	  "top:; x: +a +c; y: +b; " },
	{ { "-B", "hyp", "-B", "x", "-e", "a", "-B", "hypervisor", "-b", "64" },
	  "top:; hyp(hyp): b=64; x: +a; " },
	{ { "-B", "hyp", "-C", "boot" }, "top:; hyp(hyp): C=boot; " },
	{ { "-e", "a", "-v", "-e", "b", "-e", "c", "-o", "f" }, "top: +a -b -c; o=f " },
	{ { "-e", "a", "-C", "mono", "-C", "global" }, "top: +a C=global; " },
	{ { "-e", "a", "-M", "ff,0000000f" }, "top: +a M=ff,0000000f; " },
	{ { "-e", "a", "-M", "-1", "-B", "x", "-M", "5" }, "top: +a M=-1; x: M=5; " },
	{ { "-e", "a", "-O", "nograph-time", "-O", "sym-offset" },
	  "top: +a O=nograph-time O=sym-offset; " },
	{ { "-e", "a", "--subbuf-size", "16" }, "top: +a subbuf=16; " },
	{ { "-e", "a", "--cmdlines-size=4096" }, "top: +a; cmdlines=4096 " },

	/* functions */
	{ { "-p", "function", "-l", "kvm_*", "-l", "vgic*", "-n", "x", "-g", "y" },
	  "top: p=function l=kvm_* l=vgic* n=x g=y; " },
	{ { "-p", "  function_graph ", "--max-graph-depth", "3" },
	  "top: p=function_graph depth=3; " },
	{ { "-p", "function_graph", "--max-graph-depth", "0" }, "top: p=function_graph depth=0; " },
	{ { "-p", "nop", "-d" }, "top: p=nop O=nofunction-trace; " },
	{ { "-p", "function", "-l", "schedule", "--func-stack" },
	  "top: p=function l=schedule; func-stack " },
	{ { "-p", "function", "-B", "x", "-p", "function_graph" },
	  "top: p=function; x: p=function_graph; " },

	/* tasks */
	{ { "-e", "a", "-F", "ls" }, "top: +a; F $ ls" },
	{ { "-e", "a", "-F", "-c", "ls" }, "top: +a; F c $ ls" },
	{ { "-e", "a", "-P", "12,013", "-P", "7", "-c" }, "top: +a; c P=12 P=13 P=7 " },
	{ { "-e", "a", "-F", "-P", "1" }, "top: +a; F P=1 " },
	{ { "-e", "a", "--no-filter" }, "top: +a; no-filter " },
	{ { "-e", "a", "--user", "nobody", "id" }, "top: +a; user=nobody $ id" },
	{ { "-e", "a", "--proc-map", "id" }, "top: +a; proc-map $ id" },
	{ { "-e", "a", "--proc-map", "-P", "3" }, "top: +a; proc-map P=3 " },

	/* recording */
	{ { "-e", "a", "-o", "x.dat" }, "top: +a; o=x.dat " },
	{ { "-e", "a", "--file-version", "6" }, "top: +a; v6 " },
	{ { "-e", "a", "--file-version", "7", "--compression", "zstd" },
	  "top: +a; compression=zstd v7 " },
	{ { "-e", "a", "--file-version", "6", "--compression", "none" },
	  "top: +a; compression=none v6 " },
	{ { "-e", "a", "--compression", "none", "--compression", "any" }, "top: +a; " },
	{ { "-e", "a", "--file-version", "6", "--compression", "any" }, "top: +a; v6 " },
	{ { "-e", "a", "--date" }, "top: +a; date " },
	{ { "-e", "a", "-s", "500" }, "top: +a; s=500 " },
	{ { "-e", "a", "-s", "0" }, "top: +a; " },
	{ { "-e", "a", "-r", "99" }, "top: +a; r=99 " },
	{ { "-k", "-e", "a" }, "top: +a; k " },
	{ { "-q", "-e", "a" }, "top: +a; q " },
	{ { "--quiet", "-e", "a" }, "top: +a; q " },
	{ { "--best-effort", "-B", "hyp" }, "top:; hyp(hyp):; best-effort " },
	{ { "-qike", "a" }, "top: +a; k i q " },
	{ { "--take-over" }, "top:; take-over " }, /* alone: what runs */
	{ { "--best", "--cmdl", "9", "-e", "a" }, "top: +a; best-effort cmdlines=9 " },
	{ { "-e", "a", "-b", "8M", "-m", "1M", "-s", "2ms", "-A", "3", "-b", "1.5M", "-e", "b" },
	  "top: +a b=8192; guest 3 -b 1536 -e b; s=2000 m=1024 " },
	{ { "-e", "a", "-b", "0x10" }, "top: +a b=16; " },
	{ { "--hypertrace", "ls" }, "top:; hypertrace: +kvm:kvm_mmio C=boot; $ ls" },
	{ { "-B", "hypertrace", "-b", "8", "--hypertrace=a=/x=y", "-A", "3", "--hypertrace=b=z", "ls" },
	  "top:; hypertrace: +kvm:kvm_mmio C=boot b=8; guest 3; ring=a=/x=y ring=b=z $ ls" },
	{ { "--profile", "99" }, "top:; profile=99 " },
	{ { "--profile", "99", "-B", "hyp", "-A", "3", "--profile", "50" }, "top:; hyp(hyp):; guest 3 profile=50; profile=99 " },
	{ { "-A", "3", "--profile", "50", "-B", "hyp", "--profile", "99" }, "top:; hyp(hyp):; guest 3 profile=50; profile=99 " },
};

#define NO_NET \
	"not sent over a network: record into a file and copy it, or use trace-cmd record -N"
#define NO_PROFILE "trace-cmd's profiles are not made: use trace-cmd profile, or --profile HZ for samples"

static const struct parse_case refused[] = {
	{ { "-a" }, "-a is not served: the formats of every system with an event switched on are "
		    "kept: name further ones with -e" },
	{ { "-D" }, "-D is not served: would switch function tracing off for everybody: use -d, or "
		    "sysctl kernel.ftrace_enabled=0" },
	{ { "-G" }, "-G is not served: " NO_PROFILE },
	{ { "-H", "a,b" }, "-H is not served: " NO_PROFILE },
	{ { "-N", "host:1" }, "-N is not served: " NO_NET },
	{ { "-S" }, "-S is not served: " NO_PROFILE },
	{ { "-V", "3:1" }, "-V is not served: " NO_NET },
	{ { "-t" }, "-t is not served: " NO_NET },
	{ { "--by-comm" }, "--by-comm is not served: " NO_PROFILE },
	{ { "--daemonize" }, "--daemonize is not served: run it in the background of the shell (&)" },
	{ { "--debug" }, "--debug is not served: messages have no levels: leave it out" },
	{ { "--fork" }, "--fork is not served: run it in the background of the shell (&)" },
	{ { "--module", "snd" }, "--module is not served: write the module after the function: "
				 "-l 'FUNC:mod:MODULE'" },
	{ { "--nofifos" }, "--nofifos is not served: guests send their data over sockets only: leave it out" },
	{ { "--nosplice" }, "--nosplice is not served: splice is used only where it works: leave it out" },
	{ { "--notimeout" }, "--notimeout is not served: --guest-timeout sets how long a guest may be silent" },
	{ { "--poll" }, "--poll is not served: -s sets how often the buffers are read" },
	{ { "--proxy", "3" }, "--proxy is not served: an agent is reached directly, with -A" },
	{ { "--stderr" }, "--stderr is not served: messages go to stderr anyway: leave it out" },
	{ { "--temp", "/tmp" }, "--temp is not served: pages are kept next to the output file while "
				"recording: choose the place with -o" },
	{ { "--ts-offset", "5" }, "--ts-offset is not served: give it to the report: "
				  "trace-cmd report --ts-offset" },
	{ { "--tsc2nsec" }, "--tsc2nsec is not served: for times in nanoseconds use -C boot or -C mono" },
	{ { "--tsync", "ptp", "-e", "kvm" }, "--tsync ptp: not one of auto counter hyp kvm ping none" },
	{ { "--guest-timeout", "x", "-e", "kvm" }, "--guest-timeout x: not a duration such as 250us, 10ms, 2s" },
	{ { "--guest-timeout", "0", "-e", "kvm" }, "--guest-timeout 0: must be at least 100ms" },
	{ { "--guest-timeout", "nan", "-e", "kvm" }, "--guest-timeout nan: not a duration such as 250us, 10ms, 2s" },
	{ { "--guest-timeout", "1e9", "-e", "kvm" }, "--guest-timeout 1e9: not a duration such as 250us, 10ms, 2s" },
	{ { "--guest-timeout", "61min", "-e", "kvm" }, "--guest-timeout 61min: must be at most 1h" },
	{ { "--tsync-interval", "x", "-e", "kvm" }, "--tsync-interval x: not a duration such as 250us, 10ms, 2s" },
	{ { "--verbose" }, "--verbose is not served: messages have no levels: leave it out, or use "
			   "-q for errors only" },
	{ { "--verbose=3" }, "--verbose is not served: messages have no levels: leave it out, or use "
			     "-q for errors only" },
	{ { "-p", "wakeup_rt" }, "-p wakeup_rt: latency tracers are not recorded by this version: "
				 "use trace-cmd record -p wakeup_rt" },
	{ { "-v", "-B", "x" }, "-v before -B x would delete that buffer, which record does not do: "
			       "remove its directory below 'instances', or give -v after -B" },
};

#define LEAVE_V_OUT "would be recorded there: leave it out (it does not mean verbose)"

#define NO_EVENT ": not SYSTEM:EVENT or SYSTEM:EVENT/FILTER (for marks of a guest's code see hypertrace(7))"
static const struct parse_case wrong[] = {
	{ { "-e", "a", "--start-on", "sched_switch" }, "--start-on sched_switch" NO_EVENT },
	{ { "-e", "a", "--start-on", "sched/sched_switch" }, "--start-on sched/sched_switch" NO_EVENT },
	{ { "-e", "a", "--stop-on", "sched:" }, "--stop-on sched:" NO_EVENT },
	{ { "-e", "a", "--stop-on", "sched:*" }, "--stop-on sched:*" NO_EVENT },
	{ { "-e", "a", "--stop-on", "sched:x/" }, "--stop-on sched:x/" NO_EVENT },
	{ { "-e", "a", "--stop-on", "" }, "--stop-on ''" NO_EVENT },
	{ { "-e", "a", "--start-on", "hypertrace:arg1==1" }, "--start-on hypertrace:arg1==1" NO_EVENT },
	{ { "-e", "a", "--start-on", "hyp:hyp_enter/reason==1" },
	  "--start-on hyp:hyp_enter/reason==1: the hypervisor's events have no triggers" },
	{ { "-e", "a", "--start-on", "a:b", "--start-on", "a:c" }, "--start-on a:c: there is one already" },
	{ { "-e", "a", "--start-on", "a:b/x", "--stop-on", "a:b/x" },
	  "--start-on and --stop-on name the same events" },
	{ { "--start-on", "a:b", "-A", "3", "-e", "x" },
	  "--start-on: nothing of the host is recorded (after -A it is the guest's)" },
	{ { "-e", "a", "--stop-on", "a:b", "--take-over" },
	  "--stop-on with --take-over: a buffer that runs already has no region" },
	{ { NULL }, "nothing to record: give events (-e), a tracer (-p), -B hyp or --profile" },
	{ { "ls" }, "nothing to record: give events (-e), a tracer (-p), -B hyp or --profile" },
	{ { "-B", "x" }, "nothing to record: give events (-e), a tracer (-p), -B hyp or --profile" },
	{ { "-v", "-e", "a", "-e", "b" }, "-v switches off the only events of the top buffer, so nothing " LEAVE_V_OUT },
	{ { "-e", "a", "-B", "x", "-v", "-e", "b" },
	  "-v switches off the only events of the buffer x, so nothing " LEAVE_V_OUT },
	{ { "-e", "a", "-A", "3", "-e", "a", "-A", "4", "-v", "-e", "b" },
	  "-v switches off the only events of the guest 4, so nothing " LEAVE_V_OUT },
	{ { "-f", "x" }, "-f x: must come after the -e that it is for" },
	{ { "-R", "x" }, "-R x: must come after the -e that it is for" },
	{ { "-e", "a", "-B", "x", "-f", "y" }, "-f y: must come after the -e that it is for" },
	{ { "-e", "" }, "-e '': empty" },
	{ { "-e", "a", "-f", "" }, "-f '': empty" },
	{ { "-e" }, "option '-e' needs an argument" },
	{ { "-e", "p:x do_it" }, "-e p:x do_it: names no GROUP/EVENT, as in p:virt/kick" },
	{ { "-e", "p: do_it" }, "-e p: do_it: names no GROUP/EVENT, as in p:virt/kick" },
	{ { "-e", "p:../x do_it" }, "-e p:../x do_it: names no GROUP/EVENT, as in p:virt/kick" },
	{ { "-e", "p:a/b/c do_it" }, "-e p:a/b/c do_it: names no GROUP/EVENT, as in p:virt/kick" },
	{ { "-e", "p:a/1b do_it" }, "-e p:a/1b do_it: names no GROUP/EVENT, as in p:virt/kick" },
	{ { "-e", "p:a/b x\np:c/d y" }, "-e p:a/b x\np:c/d y: one line is one event" },
	{ { "-v", "-e", "p:a/b x" }, "-e p:a/b x: made to be switched off: give it before -v" },
	{ { "-e", "a", "--preset", "virtio", "-f", "x" }, "-f x: must come after the -e that it is for" },
	{ { "-A", "3", "--preset", "qemu" },
	  "--preset qemu: probes of programs of the host: give it before -A" },
	{ { "--preset", "net" }, "--preset net: not one of virtio qemu" },
	{ { "--user" }, "option '--user' needs an argument" },
	{ { "--cmdlines-size", "x", "-e", "a" }, "--cmdlines-size x: not a number" },
	{ { "--cmdlines-size", "0" }, "--cmdlines-size 0: must be at least 1" },
	{ { "--date=now" }, "option '--date' takes no argument" },
	{ { "-Z" }, "unknown or ambiguous option '-Z' (see hyptrace record -h)" },
	{ { "--date", "-Zq" }, "unknown or ambiguous option '-Z' (see hyptrace record -h)" },
	{ { "--nope" }, "unknown or ambiguous option '--nope' (see hyptrace record -h)" },
	{ { "--no" }, "unknown or ambiguous option '--no' (see hyptrace record -h)" },
	{ { "-b", "0" }, "-b 0: must be at least 1K" },
	{ { "-A", "3", "-b", "8Q" }, "-b 8Q: not a size such as 64K, 8M, 2G" },
	{ { "-b", "-5" }, "-b -5: not a size such as 64K, 8M, 2G" },
	{ { "-b", "10k" }, "-b 10k: not a size such as 64K, 8M, 2G" },
	{ { "-b", "" }, "-b '': not a size such as 64K, 8M, 2G" },
	{ { "-b", "99999999999999999999" }, "-b 99999999999999999999: must be at most 9007199254740991K" },
	{ { "-b", "9007199254740992" }, "-b 9007199254740992: must be at most 9007199254740991K" },
	{ { "--subbuf-size", "0" }, "--subbuf-size 0: must be at least 1K" },
	{ { "-B", "" }, "-B '': not a name for a buffer" },
	{ { "-B", "../x" }, "-B ../x: not a name for a buffer" },
	{ { "-B", ".." }, "-B ..: not a name for a buffer" },
	{ { "-C", "" }, "-C '': empty" },
	{ { "-B", "hyp", "-C", "mono" }, "-C mono: the hypervisor's clock is always boot: for the "
					 "host's, give -C before -B" },
	{ { "-B", "hyp", "-p", "function_graph" },
	  "-p function_graph: the hypervisor has function only: give others before -B" },
	{ { "-B", "hyp", "-B", "remote:fw" }, "-B remote:fw: one remote at a time, and -B hyp is one" },
	{ { "-B", "hypervisor", "-T" }, "-T has no meaning for the hypervisor's buffer: give it before "
					"-B hyp" },
	{ { "-M", "0xff" }, "-M 0xff: not a mask: hexadecimal digits, or -1 for all CPUs" },
	{ { "-M", "" }, "-M '': not a mask: hexadecimal digits, or -1 for all CPUs" },
	{ { "-M", "-2" }, "-M -2: not a mask: hexadecimal digits, or -1 for all CPUs" },
	{ { "-O", "" }, "-O '': empty" },
	{ { "-l", "" }, "-l '': empty" },
	{ { "-p", " " }, "-p '': empty" },
	{ { "-p", "a", "-p", "b" }, "-p b: this buffer has a tracer already, and takes only one" },
	{ { "--max-graph-depth", "-1" }, "--max-graph-depth -1: not a number" },
	{ { "-p", "function", "--func-stack" }, "--func-stack needs -l before any -B: the stacks of "
						"all functions can bring the machine to a stop" },
	{ { "-P", "x" }, "-P x: not a list of process numbers" },
	{ { "-P", "1,,2" }, "-P 1,,2: not a list of process numbers" },
	{ { "-P", "0" }, "-P 0: not a list of process numbers" },
	{ { "-P", "4194305" }, "-P 4194305: not a list of process numbers" },
	{ { "-e", "a", "-c", "ls" }, "-c goes with -F or -P only" },
	{ { "-e", "a", "-F" }, "-F needs a command to trace, or -P" },
	{ { "-e", "a", "--user", "x" }, "--user needs a command to run" },
	{ { "-e", "a", "--proc-map" }, "--proc-map needs a command, or -P" },
	{ { "-A", "" }, "-A '': empty" },
	{ { "--name", "x" }, "--name x: must come after the -A that it names" },
	{ { "-A", "3", "--name", "a/b" }, "--name a/b: not a name for a guest" },
	{ { "-A", "3", "--name", "-rf" }, "--name -rf: not a name for a guest" },
	{ { "-A", "3", "--name", "a\x1b[2J" }, "--name a\x1b[2J: not a name for a guest" },
	{ { "-e", "a", "-A", "3", "-f", "x" }, "-f x: must come after the -e that it is for" },
	{ { "-A", "3", "-B", "x" }, "-B x after -A: instances in a guest are not served; give the host's -B "
				    "before -A" },
	{ { "-s", "1t" }, "-s 1t: not a duration such as 250us, 10ms, 2s" },
	{ { "--profile", "9", "-B", "profile", "-e", "a" }, "-B profile: --profile has a buffer of that name" },
	{ { "--hypertrace=/dev/shm/ht" }, "--hypertrace /dev/shm/ht: not GUEST=FILE" },
	{ { "--hypertrace==/dev/shm/ht" }, "--hypertrace =/dev/shm/ht: not GUEST=FILE" },
	{ { "--hypertrace=a=" }, "--hypertrace a=: not GUEST=FILE" },
	{ { "--hypertrace", "-C", "mono" }, "-C mono: --hypertrace has times of the clock boot" },
	{ { "--hypertrace", "-P", "1" }, "--hypertrace: with -F or -P doorbells are not seen, for they are rung by the threads of vCPUs" },
	{ { "--profile", "0" }, "--profile 0: must be at least 1" },
	{ { "--profile", "1000001" }, "--profile 1000001: must be at most 1000000" },
	{ { "-A", "3", "--profile", "often" }, "--profile often: not a number" },
	{ { "-r", "0" }, "-r 0: must be at least 1" },
	{ { "-r", "100" }, "-r 100: must be at most 99" },
	{ { "-o", "" }, "-o '': empty" },
	{ { "-o", "a", "-o", "b" }, "-o b: only one output file" },
	{ { "--file-version", "8" }, "--file-version 8: must be at most 7" },
	{ { "--file-version", "5" }, "--file-version 5: must be at least 6" },
	{ { "--compression", "zlib" }, "--compression zlib: many builds of trace-cmd cannot read it: "
				       "use zstd, none or any" },
	{ { "--compression", "lzma" }, "--compression lzma: many builds of trace-cmd cannot read it: "
				       "use zstd, none or any" },
	{ { "--compression", "gzip" }, "--compression gzip: not one of zstd none any" },
	{ { "-e", "a", "--compression", "zstd", "--file-version", "6" },
	  "--compression zstd: files of version 6 are not compressed" },
	{ { "--tsync", "exactly", "-e", "a" }, "--tsync exactly: not one of auto counter hyp kvm ping none" },
};

/* What a recorder may send to an agent. */
static const struct parse_case requests[] = {
	{ { NULL }, "top:; " },
	{ { "-C", "boot", "-e", "sched", "-f", "a", "-f", "b", "-R", "traceoff" }, "top: +sched{(a)&&(b)}<traceoff> C=boot; " },
	{ { "-B", "hyp", "-e", "a" }, "top:; hyp: +a; " },
	{ { "-B", "x", "-e", "a", "-T", "-d", "-M", "3", "-l", "f*" }, "top:; x: +a l=f* O=stacktrace O=nofunction-trace M=3; " },
	{ { "-p", "wakeup", "-P", "1,2", "-c", "-i", "-s", "5" }, "top: p=wakeup; c i P=1 P=2 s=5 " },
	{ { "-v", "-e", "a", "--func-stack" }, "top: -a; func-stack " },
	{ { "-e", "a", "--start-on", "b:c/d==1", "--stop-on", "b:c" }, "top: +a; start=b/c{d==1} stop=b/c " },
	/* recorders send these, and they mean nothing here */
	{ { "-a", "-D", "-S", "-q", "-r", "5", "--nosplice", "--nofifos", "--no-filter", "--notimeout", "--debug",
	    "--poll", "--date", "--proc-map", "--tsync-interval", "9", "--compression", "x", "--file-version", "y" }, "top:; " },
};

static const struct parse_case refused_requests[] = {
	{ { "-e", "a", "reboot", "-f" }, "command: nothing is run here" },
	{ { "--preset", "qemu" }, "--preset qemu: probes of programs of the host: give it before -A" },
	{ { "-e", "a", "--", "reboot" }, "command: nothing is run here" },
	{ { "-" }, "command: nothing is run here" },
	{ { "-o", "/etc/passwd" }, "-o: this option is not for a guest" },
	{ { "-A", "3" }, "-A: this option is not for a guest" },
	{ { "-F" }, "-F: this option is not for a guest" },
	{ { "-e", "a", "--start-on", "b:../c" },
	  "--start-on b:../c: not SYSTEM:EVENT or SYSTEM:EVENT/FILTER (for marks of a guest's code see hypertrace(7))" },
	{ { "--profile", "99" }, "--profile: this option is not for a guest" },
	{ { "-k" }, "-k: this option is not for a guest" },
	{ { "-N", "x" }, "-N: this option is not for a guest" },
	{ { "-h" }, "-h: this option is not for a guest" },
	{ { "--user", "x" }, "--user: this option is not for a guest" },
	{ { "--temp", "/etc" }, "--temp: this option is not for a guest" },
	{ { "-Z" }, "option '-Z' is not known here" },
	{ { "--subbuf", "4" }, "option '--subbuf' is not known here" },
	{ { "-e" }, "option '-e' needs an argument" },
	{ { "-f", "x" }, "-f x: must come after the -e that it is for" },
	{ { "-B", "../x" }, "-B ../x: not a name for a buffer" },
	{ { "-b", "x" }, "-b x: not a size such as 64K, 8M, 2G" },
	{ { "-P", "1,x" }, "-P 1,x: not a list of process numbers" },
};
/* clang-format on */

static void check_words(const struct parse_case *c, size_t n, bool request, int want_ret)
{
	char text[4096];

	for (; n--; c++) {
		int ret = parse_words(c, request, text, sizeof(text));

		if (ret != want_ret || strcmp(text, c->want)) {
			print_error("words:");
			for (int i = 0; c->argv[i]; i++)
				print_error(" '%s'", c->argv[i]);
			print_error(" (%d)\n", ret);
		}
		assert_string_equal(text, c->want);
		assert_int_equal(ret, want_ret);
	}
}

static void check_all(const struct parse_case *c, size_t n, int want_ret)
{
	check_words(c, n, false, want_ret);
}

static void test_good(void **state)
{
	check_all(good, ARRAY_SIZE(good), 0);
}

static void test_refused(void **state)
{
	check_all(refused, ARRAY_SIZE(refused), -EINVAL);
}

static void test_wrong(void **state)
{
	check_all(wrong, ARRAY_SIZE(wrong), -EINVAL);
}

static void test_requests(void **state)
{
	check_words(requests, ARRAY_SIZE(requests), true, 0);
	check_words(refused_requests, ARRAY_SIZE(refused_requests), true, -EINVAL);
}

static void test_methods(void **state)
{
	static const char *const words[] = { "counter", "exact" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		char line[4][16] = { "record", "--tsync" },
		     *argv[] = { line[0], line[1], line[2], line[3], NULL };
		struct record_plan plan = { 0 };
		struct opts_error err;

		strcpy(line[2], words[i]);
		strcpy(line[3], "-ekvm");
		assert_int_equal(grammar_parse_line(&plan, 4, argv, &err), 0);
		assert_int_equal(plan.tsync, TSYNC_COUNTER);
		record_plan_release(&plan);
	}
}

static void test_help(void **state)
{
	const struct parse_case cases[] = { { { "-h" }, "" },
					    { { "--help" }, "" },
					    { { "-e", "a", "-h", "-Z" }, "" } };
	struct buf out = { 0 };

	check_all(cases, ARRAY_SIZE(cases), OPTS_STOP);
	opts_usage(&grammar_table, &out);
	assert_non_null(strstr(
		buf_str(&out),
		"\n  -b SIZE                size of the buffer per CPU: 512K, 8M; a plain number: K\n"));
	assert_non_null(strstr(buf_str(&out), "\n  -q, --quiet            errors only\n"));
	assert_non_null(strstr(buf_str(&out), "\nRecording:\n"));
	assert_null(strstr(buf_str(&out), "--daemonize"));
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	 cmocka_unit_test(test_refused), cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_requests), cmocka_unit_test(test_methods), cmocka_unit_test(test_help),
	};

	print_message("%zu command lines\n", ARRAY_SIZE(good) + ARRAY_SIZE(refused) + ARRAY_SIZE(wrong));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
