/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEST_TEXT_FORMATS_H
#define HYPTRACE_TEST_TEXT_FORMATS_H

/*
 * Print formats as kernels have them (include/trace/events and drivers' own), and for each
 * conversion and function that libtraceevent knows at least one. A field's bytes stand behind '/',
 * with an 's' if it is signed; 0 bytes: the rest of the record.
 */
static const struct print_case {
	const char *fields, *print_fmt;
} print_cases[] = {
	/* integers of all kinds */
	{ "u8 a/1; s8 b/1s; u16 c/2; s16 d/2s; u32 e/4; s32 f/4s; u64 g/8; s64 h/8s",
	  "\"%u %d %u %d %u %d %llu %lld\", REC->a, REC->b, REC->c, REC->d, REC->e, REC->f, REC->g, REC->h" },
	{ "u64 a/8; s64 b/8s", "\"%x %X %o %lx %lX %lo %i %li %zu %zd %Ld\", REC->a, REC->a, REC->a, REC->b, "
			       "REC->b, REC->b, REC->b, REC->b, REC->a, REC->b, REC->b" },
	{ "u64 a/8; s32 b/4s", "\"%#x %#o %#lx %#X %#lX\", REC->b, REC->b, REC->a, REC->b, REC->a" },
	{ "u64 a/8; s32 b/4s", "\"%08x|%-8x|%8x|%08lx|%016llx|%-20lld|%20lld|%020lld|%03d|%3u|%-3o|\", "
			       "REC->b, REC->b, REC->b, REC->a, "
			       "REC->a, REC->a, REC->a, REC->a, REC->b, REC->b, REC->b" },
	{ "u64 a/8; s32 b/4s", "\"%#08x|%#-12x|%#012x|%#016llx|%#.3x|%#.3o|%#8o|%-#8o|\", REC->b, REC->b, "
			       "REC->b, REC->a, REC->b, REC->b, "
			       "REC->b, REC->b" },
	{ "u64 a/8; s32 b/4s",
	  "\"%.3d|%.0d|%.d|%8.3d|%-8.3d|%08.3d|%.12llx|%5.1o|%.0x\", REC->b, REC->b, REC->b, REC->b, "
	  "REC->b, REC->b, REC->a, REC->b, REC->b" },
	{ "s32 a/4s; s64 b/8s",
	  "\"%hhd %hhu %hhx %hd %hu %hx %hhi %ho\", REC->a, REC->a, REC->a, REC->a, REC->b, REC->b, "
	  "REC->b, REC->b" },
	{ "u16 w/2; s32 v/4s; u64 x/8",
	  "\"[%*d] [%-*d] [%0*llx] [%.*d] [%*.3u]\", REC->w & 63, REC->v, 12, REC->v, "
	  "REC->w & 31, REC->x, REC->w & 15, REC->v, 9, REC->x" },
	{ "s32 v/4s", "\"100%% of %d%%, %5%d %c %e % d %+d\\n\\t\\\\ \\q %d\", REC->v, REC->v" },
	{ "u32 dev/4; u64 ino/8; u16 mode/2", "\"dev %d,%d ino %lu mode 0%o\", ((unsigned int) ((REC->dev) "
					      ">> 20)), ((unsigned int) ((REC->dev) & ((1U << 20) - "
					      "1))), (unsigned long) REC->ino, REC->mode" },
	/* strings */
	{ "char comm[16]/16; pid_t pid/4s; int prio/4s",
	  "\"comm=%s pid=%d prio=%d [%16s] [%-20s] [%.4s] [%8.2s] [%-8.3s] [%05s]\", REC->comm, REC->pid, "
	  "REC->prio, REC->comm, "
	  "REC->comm, REC->comm, REC->comm, REC->comm, REC->comm" },
	{ "__data_loc char[] name/4; int irq/4s",
	  "\"irq=%d name=%s [%20s] [%-20.5s] [%.*s]\", REC->irq, __get_str(name), __get_str(name), "
	  "__get_str(name), REC->irq & 15, "
	  "__get_str(name)" },
	{ "__rel_loc char[] name/4; u32 x/4", "\"%s %u\", __get_rel_str(name), REC->x" },
	{ "unsigned long ip/8; char buf[]/0", "\"%ps: %s\", (void *)REC->ip, REC->buf" },
	{ "unsigned long ip/8; const char * str/8", "\"%ps: %s\", (void *)REC->ip, REC->str" },
	{ "const char * s/8", "\"%s\", REC->s" },
	{ "const char * s/8; u32 x/4", "\"0x%s %u\", REC->s, REC->x" },
	{ "u8 yes/1; char name[8]/8; __data_loc char[] other/4",
	  "\"%s %s %s\", REC->yes ? \"yes\" : \"no\", REC->yes ? REC->name : \"none\", (REC->yes & 1) ? "
	  "__get_str(other) : "
	  "REC->name" },
	{ "u32 a/4", "\"%s|%10s|%-10s|%.2s\", \"constant\", \"ten\", \"left\", \"cut off\"" },
	{ "u32 a/4", "\"%s %s\", (char *)REC->a, REC->a + 1" },
	{ "u32 a/4", "\"no argument\"" },
	{ "u32 a/4", "\"one \" \"string \" \"of three %u\", REC->a" },
	/* flags and symbols */
	{ "unsigned int vec/4", "\"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { HI_SOFTIRQ, "
				"\"HI\" }, { TIMER_SOFTIRQ, \"TIMER\" }, { "
				"NET_TX_SOFTIRQ, \"NET_TX\" }, { RCU_SOFTIRQ, \"RCU\" })" },
	{ "gfp_t gfp/4; size_t bytes/8",
	  "\"bytes=%zu gfp_flags=%s\", REC->bytes, (REC->gfp) ? __print_flags(REC->gfp, \"|\", {0x400cc0U, "
	  "\"GFP_KERNEL_ACCOUNT\"}, "
	  "{(unsigned long)0xcc0, \"GFP_KERNEL\"}, {0x20u, \"__GFP_HIGH\"}, {0x40, \"__GFP_IO\"}, {1 << 7, "
	  "\"__GFP_FS\"}) : \"none\"" },
	{ "long state/8s", "\"==> %s%s\", (REC->state & ((((0x00000000 | 0x00000001 | 0x00000002) << 1) - "
			   "1))) ? __print_flags(REC->state & 0xff, \"|\", "
			   "{ 0x00000001, \"S\" }, { 0x00000002, \"D\" }, { 0x4, \"T\" }) : \"R\", "
			   "REC->state & 0x100 ? \"+\" : \"\"" },
	{ "u32 f/4", "\"[%10s] [%-6s]\", __print_flags(REC->f, \"\", {1, \"a\"}, {2, \"b\"}, {12, \"cd\"}), "
		     "__print_symbolic(REC->f & 3, "
		     "{0, \"zero\"}, {-1, \"minus\"}, {2, \"two\"})" },
	{ "u32 f/4", "\"%s\", __print_flags(REC->f & 7, \"|\", {0, \"none\"}, {1, \"a\"}, {-1, \"empty\"}, "
		     "{4, \"c\"})" },
	{ "s32 r/4s; u64 x/8", "\"%s %s\", __print_symbolic(REC->r, { 0, \"OK\" }, { 0xfffffff4, \"ENOMEM\" "
			       "}), __print_symbolic(REC->x, "
			       "{ 1UL << 40, \"big\" }, { 3, \"three\" })" },
	{ "u32 f/4", "\"%s\", REC->f > 3 ? __print_symbolic(REC->f, {4, \"four\"}) : __print_flags(REC->f, "
		     "\",\", {1, \"x\"})" },
	/* arrays */
	{ "u8 a[16]/16; u8 n/1; __data_loc u8[] d/4; __rel_loc u8[] r/4",
	  "\"%s %s %s %s %s\", __print_hex(REC->a, 16), __print_hex(REC->a, REC->n & 31), "
	  "__print_hex_str(REC->a, 6), "
	  "__print_hex(__get_dynamic_array(d), __get_dynamic_array_len(d)), "
	  "__print_hex_str(__get_rel_dynamic_array(r), REC->n & 7)" },
	{ "u32 a[4]/16; u16 b[4]/8; u64 c[2]/16; u8 n/1; __data_loc u32[] d/4",
	  "\"%s %s %s %s %s\", __print_array(REC->a, 4, 4), __print_array(REC->b, REC->n & 3, 2), "
	  "__print_array(REC->c, 2, 8), "
	  "__print_array(__get_dynamic_array(d), __get_dynamic_array_len(d) / 4, 4), __print_array(REC->b, "
	  "8, 1)" },
	{ "u32 a[4]/16; u8 n/1", "\"%s|%s\", __print_array(REC->a, 5, 3), __print_array(REC->a, 3, REC->n)" },
	{ "u32 a[4]/16; u16 b[3]/6; u8 i/1; __data_loc u32[] d/4",
	  "\"%u %u %u %x\", REC->a[1], REC->b[REC->i & 3], ((u8 *)REC->a)[2], ((u32 "
	  "*)__get_dynamic_array(d))[REC->i & 7]" },
	{ "__data_loc u8[] d/4; u32 x/4", "\"len=%d %u\", __get_dynamic_array_len(d), REC->x" },
	{ "__data_loc unsigned long[] m/4; __data_loc cpumask_t c/4",
	  "\"mask=%s cpus=%s [%20s] [%-.5s]\", __get_bitmask(m), __get_cpumask(c), __get_bitmask(m), "
	  "__get_cpumask(c)" },
	{ "__rel_loc unsigned long[] m/4; u32 x/4", "\"mask=%s\", __get_rel_bitmask(m)" },
	/* pointers */
	{ "void * p/8; unsigned long ip/8; u32 x/4",
	  "\"%p %px %pK %20p %pS %ps %pF %pf %pSb %pB %p\", REC->p, REC->p, REC->p, REC->p, (void *)REC->ip, "
	  "(void *)REC->ip, "
	  "(void *)REC->ip, (void *)REC->ip, (void *)REC->ip, (void *)REC->ip, REC->x" },
	{ "u8 mac[6]/6; u8 five[5]/5; u32 x/4",
	  "\"%pM %pm %pMF %pMR %pmR %pM %pM\", REC->mac, REC->mac, REC->mac, REC->mac, REC->mac, REC->five, "
	  "REC->x + 1" },
	{ "__u8 saddr[4]/4; __u8 daddr[4]/4; __u8 saddr_v6[16]/16; __u16 sport/2",
	  "\"%hu %pI4 %pi4 %pI4h %pI4n %pI4l %pI4b %pI6 %pi6 %pI6c %pI4 %pI6\", REC->sport, REC->saddr, "
	  "REC->daddr, REC->saddr, REC->saddr, "
	  "REC->saddr, REC->saddr, REC->saddr_v6, REC->saddr_v6, REC->saddr_v6, REC->saddr_v6, REC->saddr" },
	{ "__u8 sa[28]/28; __u8 shorter[8]/8; __data_loc __u8[] d/4",
	  "\"%pISpc %pIS %pISc %pISp %piS %pIShc %pISpc %pISpc\", REC->sa, REC->sa, REC->sa, REC->sa, "
	  "REC->sa, REC->sa, REC->shorter, "
	  "__get_dynamic_array(d)" },
	{ "__u8 id[16]/16; __u8 other[8]/8",
	  "\"%pU %pUb %pUB %pUl %pUL %pU\", REC->id, REC->id, REC->id, REC->id, REC->id, REC->other" },
	{ "__data_loc u8[] d/4; u8 n/1; u8 a[8]/8",
	  "\"%*ph|%*phC|%*phD|%*phN|%ph|%*ph\", REC->n & 15, __get_dynamic_array(d), 5, "
	  "__get_dynamic_array(d), 6, __get_dynamic_array(d), "
	  "7, __get_dynamic_array(d), __get_dynamic_array(d), 4, REC->a" },
	/* operators, casts, choices */
	{ "u32 a/4; u32 b/4; s64 c/8s", "\"%d %d %d %d %d %d %llu %llu\", REC->a + REC->b, REC->a - REC->b, "
					"REC->a * REC->b, REC->a / 7, REC->a % 10, -REC->a, ~REC->c, "
					"REC->c << 3" },
	{ "u32 a/4; u32 b/4; s64 c/8s",
	  "\"%d %d %d %d %d %d %d %d %d %d\", REC->a < REC->b, REC->a > REC->b, REC->a <= REC->b, REC->a >= "
	  "REC->b, REC->a == REC->b, "
	  "REC->a != REC->b, REC->a && REC->b, REC->a || REC->b, !REC->a, !!(REC->c & 4)" },
	{ "u32 a/4; u64 b/8", "\"%llu %llu %llx %llx %x\", REC->b >> 12, REC->b & ~0xfff, REC->b | 1, REC->b "
			      "^ REC->a, (REC->b >> REC->a)" },
	{ "u64 a/8; s32 b/4s", "\"%u %d %x %llx %lld %u %u %llu %d\", (u8)REC->a, (s8)REC->a, (u16)REC->a, "
			       "(u32)REC->a, (s32)REC->a, (unsigned char)REC->a, (short)REC->b, "
			       "(unsigned long long)REC->b, (int)(REC->a >> 3)" },
	{ "u32 a/4; u32 b/4", "\"%d %u\", REC->a ? REC->b ? 1 : 2 : 3, REC->a > 5 ? REC->a : (u8)REC->b" },
	{ "u32 a/4", "\"%u %lu\", sizeof(unsigned long), (unsigned long)(REC->a) * 4096" },
	{ "u32 a/4; u32 b/4", "\"%d\", REC->a + REC->b * 2 - 3 << 1 & 0xff" },
	{ "int x/4s", "\"%d %d\", REC->common_pid, REC->common_type" },
	/* kernels' own, whole */
	{ "dev_t dev/4; sector_t sector/8; unsigned int nr_sector/4; int error/4s; char rwbs[8]/8; "
	  "__data_loc char[] cmd/4",
	  "\"%d,%d %s (%s) %llu + %u [%d]\", ((unsigned int) ((REC->dev) >> 20)), ((unsigned int) "
	  "((REC->dev) & ((1U << 20) - 1))), "
	  "REC->rwbs, __get_str(cmd), (unsigned long long)REC->sector, REC->nr_sector, REC->error" },
	{ "void * timer/8; void * function/8; unsigned long expires/8; unsigned long now/8; unsigned int "
	  "flags/4",
	  "\"timer=%p function=%ps expires=%lu [timeout=%ld] cpu=%u idx=%u flags=%s\", REC->timer, "
	  "REC->function, REC->expires, "
	  "(long)REC->expires - REC->now, REC->flags & 0x0003FFFF, REC->flags >> 22, "
	  "__print_flags(REC->flags & 0x00380000, \"|\", "
	  "{ 0x00040000, \"M\" }, { 0x00080000, \"D\" }, { 0x00100000, \"P\" }, { 0x00200000, \"I\" })" },
	{ "void * hrtimer/8; void * function/8; s64 expires/8s; s64 softexpires/8s; int mode/4s",
	  "\"hrtimer=%p function=%ps expires=%llu softexpires=%llu mode=%s\", REC->hrtimer, REC->function, "
	  "(unsigned long long) "
	  "REC->expires, (unsigned long long) REC->softexpires, __print_symbolic(REC->mode, { 0x00, \"ABS\" "
	  "}, { 0x01, \"REL\" }, "
	  "{ 0x02, \"ABS|PINNED\" })" },
	{ "int adapter_nr/4s; __u16 addr/2; __u16 msg_nr/2; __u16 flags/2; __u16 len/2; __data_loc __u8[] "
	  "buf/4",
	  "\"i2c-%d #%u a=%03x f=%04x l=%u [%*phD]\", REC->adapter_nr, REC->msg_nr, REC->addr, REC->flags, "
	  "REC->len, REC->len & 63, "
	  "__get_dynamic_array(buf)" },
	{ "__data_loc char[] thermal_zone/4; int id/4s; int temp_prev/4s; int temp/4s",
	  "\"thermal_zone=%s id=%d temp_prev=%d temp=%d\", __get_str(thermal_zone), REC->id, REC->temp_prev, "
	  "REC->temp" },
	{ "char name[32]/32; ino_t cgroup_ino/8; u64 ino/8; unsigned long state/8; __u32 mode/4",
	  "\"bdi %s: ino=%lu state=%s mode=0%o cgroup_ino=%lu\", REC->name, (unsigned long)REC->ino, "
	  "__print_flags(REC->state, \"|\", "
	  "{(1 << 0), \"I_DIRTY_SYNC\"}, {(1 << 1), \"I_DIRTY_DATASYNC\"}, {(1 << 2), \"I_DIRTY_PAGES\"}, "
	  "{(1 << 3), \"I_NEW\"}, "
	  "{(1 << 11), \"I_DIRTY_TIME\"}), REC->mode, (unsigned long)REC->cgroup_ino" },
	{ "dev_t dev/4; xfs_ino_t ino/8; xfs_fsize_t isize/8s; loff_t offset/8s; size_t count/8",
	  "\"dev %d:%d ino 0x%llx disize 0x%llx pos 0x%llx bytecount 0x%zx\", ((unsigned int) ((REC->dev) >> "
	  "20)), ((unsigned int) "
	  "((REC->dev) & ((1U << 20) - 1))), REC->ino, REC->isize, REC->offset, REC->count" },
	{ "u8 fsid[16]/16; u64 root_objectid/8; u64 ino/8; u64 i_size/8",
	  "\"%pU: root=%llu(%s) ino=%llu i_size=%llu\", REC->fsid, REC->root_objectid, ((REC->root_objectid "
	  "== (u64)-9ULL) || "
	  "(REC->root_objectid >= 1ULL && REC->root_objectid <= 11ULL)) ? "
	  "__print_symbolic(REC->root_objectid, { 1ULL, \"ROOT_TREE\" }, "
	  "{ 5ULL, \"FS_TREE\" }, { 7ULL, \"CSUM_TREE\" }) : \"-\", REC->ino, REC->i_size" },
	{ "char wiphy_name[32]/32; char name[16]/16; u32 ifindex/4; u8 mac[6]/6; enum nl80211_band band/4; "
	  "u32 freq/4",
	  "\"%s, netdev:%s(%d), %pM, band: %d, freq: %u\", REC->wiphy_name, REC->name, REC->ifindex, "
	  "(REC->mac), REC->band, REC->freq" },
	{ "unsigned int task_id/4; unsigned int client_id/4; u32 xid/4; int status/4s; __data_loc char[] "
	  "program/4; int version/4s; "
	  "unsigned long timeout/8",
	  "\"task:%08x@%08x xid=0x%08x status=%d prog=%sv%d timeout=%lu\", REC->task_id, REC->client_id, "
	  "REC->xid, REC->status, "
	  "__get_str(program), REC->version, REC->timeout" },
	{ "const void * skaddr/8; int oldstate/4s; int newstate/4s; __u16 sport/2; __u16 family/2; __u8 "
	  "saddr[4]/4; __u8 saddr_v6[16]/16",
	  "\"family=%s sport=%hu saddr=%pI4 saddrv6=%pI6c oldstate=%s newstate=%s\", "
	  "__print_symbolic(REC->family, { 2, \"AF_INET\" }, { "
	  "10, \"AF_INET6\" }), REC->sport, REC->saddr, REC->saddr_v6, __print_symbolic(REC->oldstate, { 1, "
	  "\"TCP_ESTABLISHED\" }, { 7, "
	  "\"TCP_CLOSE\" }), __print_symbolic(REC->newstate, { 1, \"TCP_ESTABLISHED\" }, { 7, \"TCP_CLOSE\" "
	  "})" },
	{ "unsigned int ret/4; unsigned int esr_ec/4; unsigned long vcpu_pc/8",
	  "\"%s: HSR_EC: 0x%04x (%s), PC: 0x%016lx\", __print_symbolic((REC->ret) & ~(1UL << (31)), {0, "
	  "\"IRQ\"}, {1, \"EL1_SERROR\"}, "
	  "{2, \"TRAP\" }), REC->esr_ec, __print_symbolic(REC->esr_ec, {0x00, \"UNKNOWN\"}, {0x16, "
	  "\"HVC64\"}), REC->vcpu_pc" },
	{ "unsigned long call_site/8; const void * ptr/8; size_t bytes_req/8; unsigned long gfp_flags/8; int "
	  "node/4s; bool accounted/1",
	  "\"call_site=%pS ptr=%p bytes_req=%zu gfp_flags=%s node=%d accounted=%s\", (void *)REC->call_site, "
	  "REC->ptr, REC->bytes_req, "
	  "(REC->gfp_flags) ? __print_flags(REC->gfp_flags, \"|\", {(unsigned long)0xcc0, \"GFP_KERNEL\"}, "
	  "{0x100UL, \"ZERO\"}) : "
	  "\"none\", REC->node, (1 && ((REC->gfp_flags & 0x400000U) || (REC->accounted & 0x04000000U))) ? "
	  "\"true\" : \"false\"" },
};

#endif
