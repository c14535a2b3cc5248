// SPDX-License-Identifier: LGPL-2.1-or-later
/* A Perfetto trace, packet by packet. */
#include <zlib.h>
#include <zstd.h>

#include "convert/import/pftrace-priv.h"
#include "base/outfile.h"

#define CHUNK_MAX (1u << 20) /* bytes that are read at once */

enum { INTERNED_SYMBOL = 26, INTERNED_ID = 1, INTERNED_TEXT = 2 };

/* A packet's fields that are read; number 0: it is not there. */
struct packet {
	struct wire_field ftrace, stats, processes, interned, system, zip, zstd, rename;
	uint64_t sequence, machine;
	bool cleared, dropped;
};

/* A number and the first text of a message, by their fields. */
static int take_pair(struct cursor c, unsigned int number, uint64_t *v, unsigned int name,
		     struct wire_field *text)
{
	struct wire_field f;
	int ret;

	*v = 0;
	*text = (struct wire_field){ 0 };
	while ((ret = wire_next(&c, &f)) == 1) {
		if (f.number == number && !f.is_bytes)
			*v = f.v;
		else if (f.number == name && f.is_bytes && !text->number)
			*text = f;
	}
	return ret;
}

static int take_task(struct pft_machine *m, struct cursor c, unsigned int name)
{
	struct wire_field text;
	const uint8_t *slash;
	uint64_t pid;
	int ret = take_pair(c, TASK_PID, &pid, name, &text);

	/* a command line begins with a path */
	slash = name == PROCESS_CMDLINE && text.len ? memrchr(text.data, '/', text.len) : NULL;
	if (slash) {
		text.len -= (size_t)(slash + 1 - text.data);
		text.data = slash + 1;
	}
	return ret ?: text.len ? pft_task_name(m, pid, text.data, text.len, true) : 0;
}

static int take_processes(struct pft_machine *m, struct cursor c)
{
	struct wire_field f;
	int ret = 0;

	while (ret >= 0 && (ret = wire_next(&c, &f)) == 1) {
		if (f.number == TREE_PROCESS && f.is_bytes)
			ret = take_task(m, wire_message(&f), PROCESS_CMDLINE);
		else if (f.number == TREE_THREAD && f.is_bytes)
			ret = take_task(m, wire_message(&f), TASK_COMM);
	}
	return ret;
}

static int take_interned(struct pft_machine *m, const struct pft_source *s, struct cursor c)
{
	struct wire_field f, text;
	uint64_t id;
	int ret;

	while ((ret = wire_next(&c, &f)) == 1) {
		if (f.number != INTERNED_SYMBOL || !f.is_bytes)
			continue;
		if (take_pair(wire_message(&f), INTERNED_ID, &id, INTERNED_TEXT, &text))
			return -EBADMSG;
		if (text.number)
			pft_symbol(m, s, id, text.data, text.len);
	}
	return ret;
}

/* "Linux localhost RELEASE VERSION MACHINE", as a recording has it; Perfetto keeps no name of the host. */
static int take_utsname(struct pft_machine *m, struct cursor c)
{
	struct wire_field f, v[UTS_END] = { 0 };
	int ret;

	while ((ret = wire_next(&c, &f)) == 1)
		if (f.number < ARRAY_SIZE(v) && f.is_bytes && f.len < 256 && !memchr(f.data, '\n', f.len))
			v[f.number] = f;
	if (ret || !v[UTS_RELEASE].number)
		return ret;
	return str_take(&m->uname, str_printf("%.*s localhost %.*s %.*s %.*s", (int)v[UTS_SYSNAME].len,
					      (const char *)v[UTS_SYSNAME].data, (int)v[UTS_RELEASE].len,
					      (const char *)v[UTS_RELEASE].data, (int)v[UTS_VERSION].len,
					      (const char *)v[UTS_VERSION].data, (int)v[UTS_MACHINE].len,
					      (const char *)v[UTS_MACHINE].data));
}

/* A name that can be a part of a file's. */
static int take_machine_name(struct pft_machine *m, const struct wire_field *f)
{
	const char *name = (const char *)f->data;

	if (!f->len || f->len > 64 || word_len(name, f->len, "-") != f->len)
		return 0;
	return str_take(&m->name, strndup(name, f->len));
}

static int take_system(struct pft_machine *m, struct cursor c)
{
	struct wire_field f;
	int ret = 0;

	while (ret >= 0 && (ret = wire_next(&c, &f)) == 1) {
		if (f.number == INFO_UTSNAME && f.is_bytes)
			ret = take_utsname(m, wire_message(&f));
		else if (f.number == INFO_MACHINE_NAME && f.is_bytes)
			ret = take_machine_name(m, &f);
	}
	return ret;
}

static int packet_parse(struct packet *k, struct cursor c)
{
	const struct {
		uint32_t number;
		struct wire_field *to;
	} parts[] = { { PACKET_FTRACE_EVENTS, &k->ftrace },
		      { PACKET_FTRACE_STATS, &k->stats },
		      { PACKET_PROCESS_TREE, &k->processes },
		      { PACKET_INTERNED, &k->interned },
		      { PACKET_SYSTEM_INFO, &k->system },
		      { PACKET_COMPRESSED, &k->zip },
		      { PACKET_ZSTD, &k->zstd },
		      { PACKET_TASK_RENAME, &k->rename } };
	struct wire_field f;
	int ret;

	while ((ret = wire_next(&c, &f)) == 1) {
		for (size_t i = 0; i < ARRAY_SIZE(parts) && f.is_bytes; i++)
			if (parts[i].number == f.number)
				*parts[i].to = f;
		if (f.is_bytes)
			continue;
		if (f.number == PACKET_SEQUENCE_ID)
			k->sequence = f.v;
		else if (f.number == PACKET_MACHINE_ID)
			k->machine = f.v;
		k->dropped |= f.number == PACKET_DROPPED && f.v;
		k->cleared |= (f.number == PACKET_STATE_CLEARED && f.v) ||
			      (f.number == PACKET_SEQUENCE_FLAGS && f.v & SEQ_INCREMENTAL_STATE_CLEARED);
	}
	return ret;
}

/* Of a source of ftrace events. */
static int packet_events(struct pft *p, struct pft_machine *m, const struct packet *k)
{
	int ret;
	struct pft_source *s = pft_source(p, m, (uint32_t)k->sequence, &ret);

	if (!s)
		return ret;
	if (k->cleared)
		pft_source_symbols(m, s);
	/* before its first packet there is nothing to be lost from */
	if (k->dropped && (s->buffer || s->is_hyp))
		ret = pft_source_lost(p, m, s);
	ret = ret ?: take_interned(m, s, wire_message(&k->interned));
	if (!ret && k->stats.number)
		ret = pft_source_stats(s, wire_message(&k->stats));
	return ret ?: k->ftrace.number ? pft_bundle(p, m, s, wire_message(&k->ftrace)) : 0;
}

static bool has_symbols(const struct packet *k)
{
	struct cursor c = wire_message(&k->interned);
	struct wire_field f;

	while (k->interned.number && wire_next(&c, &f) == 1)
		if (f.number == INTERNED_SYMBOL)
			return true;
	return false;
}

static int packets_unpack(struct pft *p, const struct packet *k);

/* outer: one that may hold others. -EBADMSG: it makes no sense. */
static int packet_take(struct pft *p, struct cursor c, bool outer)
{
	struct packet k = { 0 };
	struct pft_machine *m;
	int ret = packet_parse(&k, c);

	if (ret)
		return ret;
	if (k.zip.number || k.zstd.number)
		return outer ? packets_unpack(p, &k) : -EBADMSG;
	if (!k.ftrace.number && !k.stats.number && !k.processes.number && !k.system.number &&
	    !k.rename.number && !has_symbols(&k))
		return 0;
	m = pft_machine(p, (uint32_t)k.machine, &ret);
	if (!m)
		return ret;
	/* fields that are not there are empty messages */
	ret = take_processes(m, wire_message(&k.processes)) ?:
	      take_system(m, wire_message(&k.system)) ?:
	      take_task(m, wire_message(&k.rename), TASK_COMM);
	if (!ret && (k.ftrace.number || k.stats.number || has_symbols(&k)))
		ret = packet_events(p, m, &k);
	return ret;
}

/* One that makes no sense is counted; the next one may. */
static int packet_or_bad(struct pft *p, struct cursor c, bool outer)
{
	int ret = packet_take(p, c, outer);

	p->result->bad += ret == -EBADMSG;
	return ret == -EBADMSG ? 0 : ret;
}

static int unzip_packets(const struct wire_field *f, struct buf *out)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)f->data, .avail_in = (unsigned int)f->len };
	int ret;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	do { /* up to 64 KiB more; 0: the end */
		z.avail_out = 65536;
		z.next_out = buf_grow(out, z.avail_out);
		if (!z.next_out) {
			ret = -ENOMEM;
			break;
		}
		ret = inflate(&z, Z_NO_FLUSH);
		out->len += 65536 - z.avail_out;
		ret = ret == Z_OK && z.avail_out < 65536 ? 1 : ret == Z_STREAM_END ? 0 : -EBADMSG;
	} while (ret == 1 && out->len < PFT_PACKET_MAX);
	inflateEnd(&z);
	return ret == 1 ? -EBADMSG : ret;
}

static int unzstd_packets(const struct wire_field *f, struct buf *out)
{
	unsigned long long size = ZSTD_getFrameContentSize(f->data, f->len);
	size_t room = size < PFT_PACKET_MAX ? (size_t)size : PFT_PACKET_MAX, n;
	void *at = buf_grow(out, room);

	if (!at)
		return -ENOMEM;
	n = ZSTD_decompress(at, room, f->data, f->len);
	if (ZSTD_isError(n))
		return -EBADMSG;
	out->len = n;
	return 0;
}

static int packets_unpack(struct pft *p, const struct packet *k)
{
	struct buf trace = { 0 };
	struct wire_field f;
	int ret = k->zip.number ? unzip_packets(&k->zip, &trace) : unzstd_packets(&k->zstd, &trace);
	struct cursor c = cursor_at(trace.data, trace.len);

	while (!ret && (ret = wire_next(&c, &f)) == 1)
		ret = f.number == TRACE_PACKET && f.is_bytes ? packet_or_bad(p, wire_message(&f), false) : 0;
	buf_release(&trace);
	return ret;
}

/* 1: a number; 0: the end; -EBADMSG. */
static int read_varint(FILE *in, uint64_t *v)
{
	int byte = 0;

	*v = 0;
	for (unsigned int shift = 0; shift < 35; shift += 7) {
		byte = getc(in);
		if (byte == EOF)
			return shift ? -EBADMSG : 0;
		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return 1;
	}
	return -EBADMSG;
}

/* len bytes, of which no more is believed than comes. */
static int read_packet(FILE *in, size_t len, struct buf *out)
{
	out->len = 0;
	while (out->len < len) {
		size_t step = len - out->len < CHUNK_MAX ? len - out->len : CHUNK_MAX, n;
		void *at = buf_room(out, step);

		if (!at)
			return -ENOMEM;
		n = fread(at, 1, step, in);
		out->len += n;
		if (n < step)
			return ferror(in) ? -EIO : -EBADMSG;
	}
	return 0;
}

/* *packets: how many were whole. -EBADMSG: what follows is none. */
static int read_trace(struct pft *p, FILE *in, uint64_t *packets)
{
	struct buf b = { 0 };
	uint64_t tag, len;
	int ret = 0;

	while (!ret && (ret = read_varint(in, &tag)) == 1) {
		ret = tag == (TRACE_PACKET << 3 | 2) ? read_varint(in, &len) : -EBADMSG;
		ret = ret == 1 ? len <= PFT_PACKET_MAX ? read_packet(in, len, &b) : -EBADMSG : -EBADMSG;
		ret = ret ?: packet_or_bad(p, cursor_at(b.data, b.len), true);
		*packets += !ret;
	}
	buf_release(&b);
	return ferror(in) ? -EIO : ret;
}

static int read_input(struct pft *p)
{
	const struct pftrace_opts *o = p->o;
	FILE *in = fopen(o->input, "re");
	uint64_t packets = 0;
	int ret = in ? 0 : -errno;

	ret = ret ?: read_trace(p, in, &packets);
	if (ret == -EBADMSG && packets) {
		log_warn(o->log, "'%s' ends with what is no whole packet: what is before it was read",
			 o->input);
		ret = 0;
	} else if (ret == -EBADMSG || (!ret && !packets)) {
		log_err(o->log, "'%s' is no Perfetto trace", o->input);
		ret = -EBADMSG;
	} else if (ret && ret != -E2BIG && ret != -EEXIST) { /* these were logged */
		log_err(o->log, "cannot import '%s': %s", o->input, errno_text(ret));
	}
	if (in)
		fclose(in);
	return ret;
}

static int write_machine(struct pft *p, struct pft_machine *m)
{
	const char *host = p->o->output;
	size_t stem = path_stem(host);
	char *output;
	int ret;

	if (!m->events)
		return 0;
	/* "out.dat" and "vm1" make "out-vm1.dat", as a recording's files are called */
	output = !m->id	   ? strdup(host)
		 : m->name ? str_printf("%.*s-%s%s", (int)stem, host, m->name, host + stem)
			   : str_printf("%.*s-machine-%u%s", (int)stem, host, m->id, host + stem);
	ret = output ? pft_machine_finish(p, m, output) : -ENOMEM;
	ret = ret ?: strlist_add(&p->result->files, output);
	if (!ret && m->clock && strcmp(m->clock, "boot"))
		log_warn(p->o->log, "the clock of %s is %s, not boot", output,
			 *m->clock ? m->clock : "not known");
	free(output);
	return ret;
}

int pftrace_import(const struct pftrace_opts *o, struct pftrace_result *r)
{
	struct pft p = { .o = o, .result = r };
	struct buf text = { 0 };
	int ret = outfile_check(o->output, o->log);

	*r = (struct pftrace_result){ 0 };
	if (!ret && o->formats) {
		ret = read_dir_at(AT_FDCWD, o->formats, &p.systems);
		if (ret)
			log_err(o->log, "cannot read '%s': %s", o->formats, errno_text(ret));
	}
	ret = ret ?: read_input(&p);
	for (size_t i = 0; i < p.n_left_out; i++)
		buf_printf(&text, "%s%s (%llu)", i ? ", " : "", p.left_out[i].name,
			   (unsigned long long)p.left_out[i].n);
	if (p.n_left_out && buf_str(&text))
		log_warn(o->log, "events that are not known are left out: %s", (char *)text.data);
	buf_release(&text);
	if (!ret && !r->events)
		ret = log_fail(o->log, -ENODATA, "'%s' has no events of a kernel or hypervisor", o->input);
	for (size_t i = 0; i < p.n_machines && !ret; i++)
		ret = write_machine(&p, p.machines[i]);
	for (size_t i = 0; i < p.n_machines; i++)
		pft_machine_free(p.machines[i]);
	strlist_release(&p.systems);
	free(p.items);
	return ret;
}
