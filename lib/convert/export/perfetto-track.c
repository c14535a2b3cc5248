// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tracks of our own in a Perfetto trace, and the slices and arguments on them. */
#include "base/decode/esr.h"
#include "convert/export/perfetto-priv.h"

enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_CHILD_ORDERING = 11, TRACK_RANK = 12 };
enum {
	SLICE_CATEGORY_NUMBER = 3,
	SLICE_ARG = 4,
	SLICE_TYPE = 9,
	SLICE_NAME_NUMBER = 10,
	SLICE_TRACK = 11,
	SLICE_NAME = 23
};
enum { ARG_NAME_NUMBER = 1, ARG_STRING = 6, ARG_NAME = 10, ARG_STRING_NUMBER = 17 };
enum { LABEL_NUMBER = 1, LABEL_TEXT = 2 };
/* Of TrackDescriptor.ChildTracksOrdering. */
enum { ORDER_EXPLICIT = 3 };

#define ARGS_MAX   32
#define LABELS_MAX 16384

/* Track events need a sequence, and labels its state. */
static void put_sequence(struct perfetto *pf, size_t input)
{
	pb_number(&pf->chunk->packets, PACKET_SEQUENCE_ID, pf->machines[input] + 1);
}

uint64_t pf_track(struct perfetto *pf, size_t input, uint64_t parent, const char *name, int rank)
{
	struct buf *b = &pf->chunk->packets;
	size_t packet = pb_open(b, TRACE_PACKET), track;

	put_sequence(pf, input);
	track = pb_open(b, PACKET_TRACK_DESCRIPTOR);
	pb_number(b, TRACK_UUID, ++pf->last_uuid);
	pb_text(b, TRACK_NAME, name, strlen(name));
	if (parent)
		pb_number(b, TRACK_PARENT, parent);
	pb_number(b, TRACK_CHILD_ORDERING, ORDER_EXPLICIT);
	pb_number(b, TRACK_RANK, (uint64_t)rank);
	pb_close(b, track);
	pf_machine(pf, b, input);
	pb_close(b, packet);
	return pf->last_uuid;
}

struct pf_kept {
	uint64_t number, value;
	uint32_t input;
	enum pf_kept_kind kind;
};

static bool kept_same(const void *numbers, size_t i, const void *wanted)
{
	const struct pf_kept *k = (const struct pf_kept *)numbers + i, *w = wanted;

	return k->input == w->input && k->number == w->number && k->kind == w->kind;
}

static uint32_t kept_hash(const struct pf_kept *k)
{
	return map_hash((k->number * 64 + k->kind) ^ (uint64_t)k->input << 48);
}

uint64_t pf_kept(const struct perfetto *pf, size_t input, uint64_t number, enum pf_kept_kind kind)
{
	const struct pf_kept wanted = { number, 0, (uint32_t)input, kind };
	size_t i = map_find(&pf->numbers_map, kept_hash(&wanted), kept_same, pf->numbers, &wanted);

	return i == MAP_NONE ? 0 : pf->numbers[i].value;
}

uint64_t pf_keep(struct perfetto *pf, size_t input, uint64_t number, enum pf_kept_kind kind, uint64_t value)
{
	const struct pf_kept k = { number, value, (uint32_t)input, kind };

	pf->bad |=
		map_push(&pf->numbers_map, kept_hash(&k), &pf->numbers, &pf->n_numbers, &k, sizeof(k)) != 0;
	return value;
}

uint64_t pf_parent(struct perfetto *pf, size_t input, unsigned int number, enum pf_kept_kind kind,
		   const char *name)
{
	int rank = kind < PF_CROSVM ? (int)kind : PF_CROSVM;

	return pf_kept(pf, input, number, kind)
		       ?: pf_keep(pf, input, number, kind, pf_track(pf, input, 0, name, rank));
}

struct pf_text {
	enum pf_label_kind kind;
	const char *text;
};

static bool text_same(const void *texts, size_t i, const void *wanted)
{
	const struct pf_text *t = (const struct pf_text *)texts + i, *w = wanted;

	return t->kind == w->kind && !strcmp(t->text, w->text);
}

/* Writes what the number is for into an InternedData. */
static void put_label_text(struct buf *b, const struct pf_text *t, size_t number)
{
	size_t text = pb_open(b, t->kind);

	pb_number(b, LABEL_NUMBER, number);
	pb_text(b, LABEL_TEXT, t->text, strlen(t->text));
	pb_close(b, text);
}

/* Its number; 0: there are too many. *added: no packet says so far what the number is for. */
static size_t text_number(struct perfetto *pf, size_t input, struct pf_text *t, bool *added)
{
	struct pf_labels *l = &pf->labels[input];
	uint32_t hash = map_hash_bytes(t->text, strlen(t->text)) ^ t->kind;
	size_t i = map_find(&l->map, hash, text_same, l->v, t);

	*added = i == MAP_NONE && l->n < LABELS_MAX;
	if (i != MAP_NONE)
		return i + 1;
	t->text = arena_text(*added ? &pf->kept : &pf->arena, t->text, strlen(t->text));
	if (!*added)
		return 0;
	pf->bad |= map_push(&l->map, hash, &l->v, &l->n, t, sizeof(*t)) != 0;
	return l->n;
}

void pf_put_words(struct perfetto *pf, struct buf *packet, size_t input)
{
	/* in their order */
	static const char *const words[PF_WORDS] = {
		NULL,	    "hyp",  "vcpu", "stolen",	"crosvm",   "hypertrace", "addr",
		"bound_ns", "by",   "call", "category", "class",    "client",	  "coarse",
		"cpu",	    "end",  "esr",  "id",	"left_for", "pc",	  "reason",
		"syndrome", "task", "vcpu", "woken_by"
	};
	size_t interned = pb_open(packet, PACKET_INTERNED);

	for (enum pf_word w = PF_WORD_HYP; w < PF_WORDS; w++) {
		struct pf_text t = { w <= PF_WORD_HYPERTRACE ? PF_LABEL_CATEGORY : PF_LABEL_ARG, words[w] };
		bool added;

		put_label_text(packet, &t, text_number(pf, input, &t, &added));
	}
	pb_close(packet, interned);
}

struct pf_label pf_label(struct perfetto *pf, size_t input, enum pf_label_kind kind, const char *text)
{
	struct pf_text t = { kind, text };
	struct buf *b = &pf->chunk->packets;
	size_t packet, interned, number;
	bool added;

	number = text_number(pf, input, &t, &added);
	if (added) {
		packet = pb_open(b, TRACE_PACKET);
		put_sequence(pf, input);
		interned = pb_open(b, PACKET_INTERNED);
		put_label_text(b, &t, number);
		pb_close(b, interned);
		pb_number(b, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_INCREMENTAL_STATE);
		pf_machine(pf, b, input);
		pb_close(b, packet);
	}
	return (struct pf_label){ (uint32_t)number, t.text };
}

/* "host TRAP DABT_LOW", "hypervisor hvc", "guest": by PF_STATE's number; pf's until the next call. */
static const char *state_text(struct perfetto *pf, size_t input, uint64_t number)
{
	enum state state = number >> 60;
	enum step_kind why = number >> 54 & 63;
	uint64_t reason = number & PF_STATE_REASONS;
	const char *class = steps_class(why, reason, number >> 47 & 127), *word = NULL;

	if (why != STEP_NONE &&
	    (state == STATE_HYP || state == STATE_FIRMWARE || state == STATE_HOST || state == STATE_OUTSIDE))
		word = steps_reason(pf->meanings, input, why, reason);
	pf->name.len = 0;
	buf_addstr(&pf->name, state_name(state));
	if (word)
		buf_printf(&pf->name, " %s%s%s", word, class ? " " : "", class ?: "");
	return buf_str(&pf->name) ?: "";
}

struct pf_label pf_named(struct perfetto *pf, size_t input, enum pf_kept_kind what, uint64_t number)
{
	struct pf_label l = { .number = (uint32_t)pf_kept(pf, input, number, what) };
	char room[ESR_TEXT_MAX > SMCCC_TEXT_MAX ? ESR_TEXT_MAX : SMCCC_TEXT_MAX];
	const char *text = room;

	if (l.number)
		return l;
	if (what == PF_ESR)
		esr_text(number, room, sizeof(room));
	else if (what == PF_CLASS)
		text = esr_ec_name((unsigned int)number);
	else if (what == PF_CALL)
		smccc_text((uint32_t)number, room, sizeof(room));
	else if (what == PF_REASON)
		text = steps_reason(pf->meanings, input, number >> 56, number & PF_NO_REASON);
	else if (what == PF_WHY)
		text = steps_why(pf->meanings, &pf->job->in->v[input], input, number) ?: "hyp";
	else
		text = state_text(pf, input, number);
	if (!text)
		return l;
	l = pf_label(pf, input, what == PF_WHY || what == PF_STATE ? PF_LABEL_NAME : PF_LABEL_VALUE, text);
	if (l.number)
		pf_keep(pf, input, number, what, l.number);
	return l;
}

/* Either field: of its number, or of its text. */
static void put_label(struct buf *b, unsigned int number, unsigned int text, struct pf_label l)
{
	if (l.number)
		pb_number(b, number, l.number);
	else
		pb_text(b, text, l.text, strlen(l.text));
}

/* A packet of a TrackEvent. */
struct pf_slice {
	uint64_t ts, track;
	uint32_t input, name;	/* name: its label's number; 0: it is among the arguments */
	uint32_t args, args_to; /* bytes of the chunk's */
	enum pf_point type;
	enum pf_word category;
};

static void slice_add(struct perfetto *pf, const struct pf_slice *s)
{
	struct pf_chunk *c = pf->chunk;

	pf->bad |= array_push_kept(&c->slices, &c->slices_room, &c->n_slices, s, sizeof(*s)) != 0;
}

void pf_put(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts, enum pf_point type,
	    enum pf_word category, struct pf_label name, struct pf_args *args)
{
	struct buf *all = &pf->chunk->args;
	uint32_t at = (uint32_t)all->len;

	if (!name.number)
		pb_text(&args->bytes, SLICE_NAME, name.text, strlen(name.text));
	buf_add(all, args->bytes.data, args->bytes.len);
	slice_add(pf, &(struct pf_slice){ ts, track, (uint32_t)input, name.number, at, (uint32_t)all->len,
					  type, category });
}

void pf_put_end(struct perfetto *pf, size_t input, uint64_t track, uint64_t ts)
{
	slice_add(pf,
		  &(struct pf_slice){ .ts = ts, .track = track, .input = (uint32_t)input, .type = PF_END });
}

static void slice_write(const struct perfetto *pf, const struct pf_slice *s, const struct buf *args,
			struct buf *b)
{
	uint8_t fields[8 * PB_VARINT_MAX], *end = fields;
	uint8_t head[10 * PB_VARINT_MAX], *at = pb_field(head, PACKET_TIMESTAMP, s->ts);
	size_t len = s->args_to - s->args;

	if (s->type != PF_END)
		end = pb_field(end, SLICE_CATEGORY_NUMBER, s->category);
	end = pb_field(pb_field(end, SLICE_TYPE, s->type), SLICE_TRACK, s->track);
	if (s->name)
		end = pb_field(end, SLICE_NAME_NUMBER, s->name);
	at = pb_field(at, PACKET_SEQUENCE_ID, pf->machines[s->input] + 1);
	if (pf->machines[s->input])
		at = pb_field(at, PACKET_MACHINE_ID, pf->machines[s->input]);
	if (s->type != PF_END)
		at = pb_field(at, PACKET_SEQUENCE_FLAGS, SEQ_NEEDS_INCREMENTAL_STATE);
	at = pb_head(at, PACKET_TRACK_EVENT, len + (size_t)(end - fields));
	pb_length(b, TRACE_PACKET, (size_t)(at - head) + len + (size_t)(end - fields));
	buf_add(b, head, (size_t)(at - head));
	buf_add(b, args->data + s->args, len);
	buf_add(b, fields, (size_t)(end - fields));
}

void pf_slices_write(const struct perfetto *pf, const struct pf_chunk *c, struct buf *packets)
{
	packets->bad |= c->args.bad;
	for (size_t i = 0; i < c->n_slices && !packets->bad; i++)
		slice_write(pf, &c->slices[i], &c->args, packets);
}

/* False: there are too many. */
static bool arg_open(struct pf_args *a, struct pf_label name, size_t *arg)
{
	if (a->n++ >= ARGS_MAX)
		return false;
	*arg = pb_open(&a->bytes, SLICE_ARG);
	put_label(&a->bytes, ARG_NAME_NUMBER, ARG_NAME, name);
	return true;
}

void pf_arg_number(struct pf_args *a, struct pf_label name, enum pf_arg_kind kind, uint64_t v)
{
	size_t arg;

	if (!arg_open(a, name, &arg))
		return;
	pb_number(&a->bytes, kind, v);
	pb_close(&a->bytes, arg);
}

void pf_arg_text(struct pf_args *a, struct pf_label name, const char *text, size_t len)
{
	size_t arg;

	if (!arg_open(a, name, &arg))
		return;
	pb_text(&a->bytes, ARG_STRING, text, len);
	pb_close(&a->bytes, arg);
}

void pf_arg_label(struct pf_args *a, struct pf_label name, struct pf_label text)
{
	size_t arg;

	if (!(text.number || text.text) || !arg_open(a, name, &arg))
		return;
	put_label(&a->bytes, ARG_STRING_NUMBER, ARG_STRING, text);
	pb_close(&a->bytes, arg);
}

void pf_arg_fields(struct pf_args *a, const struct pf_record *r)
{
	for (size_t i = 0; i < r->event->n_fields; i++) {
		const struct pf_field *f = &r->event->fields[i];
		const uint8_t *data;
		uint64_t v;
		size_t n;

		if (pf_number(&f->load, r, &v))
			pf_arg_number(a, f->arg,
				      f->is_hex				       ? PF_ARG_HEX
				      : f->format->flags & TEP_FIELD_IS_SIGNED ? PF_ARG_INT
									       : PF_ARG_UINT,
				      v);
		else if (f->format->flags & TEP_FIELD_IS_STRING &&
			 field_load_bytes(&f->load, r->data, r->len, &data, &n) == 1)
			pf_arg_text(a, f->arg, (const char *)data, n);
	}
}
