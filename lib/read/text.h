/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEXT_H
#define HYPTRACE_TEXT_H

#include <traceevent/trace-seq.h>

#include "base/arena.h"
#include "base/decode/conversion.h"
#include "base/workers.h"
#include "read/tepfile.h"

/*
 * An event's text as a program: made once out of the tree that libtraceevent has parsed of
 * the print format, it writes the same bytes as tep_print_event(..., "%s",
 * TEP_PRINT_INFO) would, without libtraceevent, without allocating, by several threads at a time.
 */
struct text_program;

/* A task that printing a record makes known to libtraceevent: stock's sched_switch plugin does that. */
struct text_task {
	const struct tep_format_field *pid, *comm;
};

/* A short record and its text: many that follow are the same, byte for byte. */
struct text_kept {
	const struct text_program *p; /* NULL: none */
	const char *comm;
	uint64_t v[3]; /* the record, zeros behind it */
	uint8_t len, text_len;
	char text[62];
};

#define TEXT_KEPT_BITS 7

/* Memory of one thread that prints, for programs that live as long as it. Zero-initialised = empty. */
struct text_scratch {
	OWN_LINE struct padded room;
	struct trace_seq seq;
	struct text_kept kept[1 << TEXT_KEPT_BITS]; /* each where its bytes lead */
};

int text_scratch_init(struct text_scratch *s); /* -ENOMEM */
void text_scratch_release(struct text_scratch *s);

#define TEXT_WHY_MAX 96

/*
 * 0: *out, for text_free; -ENOTSUP: libtraceevent has to print this event, why says what does not compile,
 * or whose handler it has ("%pI", "handler of plugin_function.so"); -ENOMEM. What traces of machines hardly
 * have does not compile: addresses of networks and of hardware, bytes, arrays' items, fields as numbers.
 * Everything that records are read with is loaded by then: formats, symbols, plugins. The event must outlive
 * it.
 */
int text_compile(struct text_program **out, struct tep_event *event, char why[TEXT_WHY_MAX]);
void text_free(struct text_program *p);
/*
 * Appended to *out. What a record of len bytes does not have reads as zeros, as in a padded
 * record (tepfile.h). comm: the name of text_named's task, as tep_data_comm_from_pid knows it when the
 * records before are read; NULL where there is none.
 */
void text_print(const struct text_program *p, const void *data, size_t len, const char *comm,
		struct text_scratch *s, struct buf *out);
/* The pid of the task that the text names; NULL: it names none. */
const struct tep_format_field *text_named(const struct text_program *p);
/* The tasks that printing would register (tep_register_comm), in order; their number. */
size_t text_tasks(const struct text_program *p, const struct text_task **v);

/* ---- what a program consists of, and what its making and its running share: for text*.c alone ---- */

struct text_record {
	const uint8_t *data;
	size_t len;    /* what it has */
	uint32_t size; /* what libtraceevent would take for its size: not less, the rest is zeros */
};

/* Place of bytes: a field's own, or those that it points at (__data_loc, __rel_loc). */
struct text_place {
	uint32_t offset, size;
	bool dynamic, relative;
};

struct text_place text_place(const struct tep_format_field *f);

enum text_op {
	TEXT_CONST,
	TEXT_LOAD,	    /* 0 where the record ends before it */
	TEXT_LOAD_RAW,	    /* what is there of it */
	TEXT_LENGTH,	    /* of a dynamic array, in bytes */
	TEXT_INDEX,	    /* a's item */
	TEXT_INDEX_DYNAMIC, /* a counts bytes there */
	TEXT_CHOICE,	    /* a ? b : c */
	TEXT_MASK,	    /* a & value */
	TEXT_NOT,
	TEXT_INVERT,
	TEXT_OR,
	TEXT_LOGICAL_OR,
	TEXT_AND,
	TEXT_LOGICAL_AND,
	TEXT_LESS,
	TEXT_LESS_EQUAL,
	TEXT_GREATER,
	TEXT_GREATER_EQUAL,
	TEXT_EQUAL,
	TEXT_UNEQUAL,
	TEXT_SHIFT_LEFT,
	TEXT_SHIFT_RIGHT,
	TEXT_SUBTRACT,
	TEXT_ADD,
	TEXT_DIVIDE,
	TEXT_MODULO,
	TEXT_MULTIPLY,
};

struct text_expr {
	enum text_op op;
	uint32_t item; /* bytes of an array's item */
	struct text_place at;
	uint64_t value;
	const struct text_expr *a, *b, *c;
};

uint64_t text_eval(const struct text_expr *e, const struct text_record *r);

/* Of printf. */
struct text_spec {
	struct conversion c;
	bool plain;		       /* nothing but the letter */
	uint8_t bits;		       /* of an integer */
	const struct text_expr *count; /* of the '*' */
	const char *format;	       /* of TEXT_INTEGER, for a long long */
};

struct text_name {
	int64_t value;
	const char *s;
	size_t len;
};

enum text_string_kind {
	TEXT_STRING_NONE,
	TEXT_STRING_CONST,
	TEXT_STRING_FIELD,
	TEXT_STRING_REST,    /* a field's that takes the rest of the record */
	TEXT_STRING_DYNAMIC, /* up to its NUL, wherever that is */
	TEXT_STRING_PRINTK,
	TEXT_STRING_FLAGS,
	TEXT_STRING_SYMBOL,
	TEXT_STRING_BITMASK,
	TEXT_STRING_CPUS,
	TEXT_STRING_CHOICE,
};

struct text_string {
	enum text_string_kind kind;
	struct text_place at;
	const struct text_expr *value; /* the flags, the symbol, the condition */
	const char *s;		       /* the string, what stands between flags */
	size_t len;
	const struct text_name *names;
	size_t n;
	struct tep_format_field *field;
	const struct text_string *yes, *no;
};

enum text_piece_kind {
	TEXT_NOTHING, /* but what stands in front of it */
	TEXT_DECIMAL, /* %u and %03u of any length */
	TEXT_SIGNED,  /* %d */
	TEXT_HEX,     /* %x and %08x */
	TEXT_INTEGER, /* the others */
	TEXT_STRING,
	TEXT_POINTER,
	TEXT_FUNCTION,
	TEXT_STATE, /* of stock's sched_switch plugin */
	TEXT_NAMED, /* of our plugins: base/decode/event-text.h */
	TEXT_TASK,
	TEXT_GUEST,
};

struct text_piece {
	const char *before;
	size_t before_len;
	enum text_piece_kind kind;
	bool offset; /* of a function: +0x10 */
	struct text_spec spec;
	const struct text_expr *value;
	const struct text_string *string;
	const char *letters; /* of TEXT_STATE, from bit 0 */
	const struct event_text *row;
};

#define TEXT_NAMES 64 /* of a row's names: looked up beforehand */

#define TEXT_TASKS_MAX 2

struct text_program {
	struct arena arena;
	struct tep_event *event;
	struct text_piece *pieces;
	size_t n;
	uint32_t least;			/* bytes, as tepfile_least_size */
	tep_event_handler_func handler; /* asked first */
	struct text_task tasks[TEXT_TASKS_MAX];
	size_t n_tasks;
	const struct tep_format_field *named;
	uint32_t needs; /* bytes, for events with our plugin's rows: shorter records are too short */
};

/* Entry of the list of conversions that libtraceevent makes of a format. */
struct text_conversion {
	enum { TEXT_IS_TEXT, TEXT_IS_INTEGER, TEXT_IS_POINTER, TEXT_IS_STRING } is;
	const char *s; /* the text; "%08lx" */
	size_t len;
	struct tep_print_arg *arg, *count;
	int longs; /* as many l as h are not */
};

/* A program in the making. Without memory, or where something does not compile, ret is set. */
struct text_build {
	struct text_program *p;
	struct text_conversion *v;
	size_t n;
	struct buf before; /* text in front of the next piece */
	char *why;
	int ret;
};

/*
 * True if the loaded libtraceevent, which is not always the one it was built with, is 1.8 or newer (by a
 * call that came with it). What that prints otherwise than 1.7 does not compile there: %c. Of
 * sched_switch's states, Z, P and I are other bits.
 */
bool text_since_1_8(void);
/* Sets -ENOTSUP, and why: printf's. */
void text_refuse(struct text_build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* From the program's memory: zeros; a copy. NULL: none left. */
void *text_alloc(struct text_build *b, size_t n);
const char *text_copy(struct text_build *b, const char *s, size_t len);
/* The next piece, behind the text that is waiting. NULL: out of memory. */
struct text_piece *text_piece_add(struct text_build *b, enum text_piece_kind kind);

/* Of each field; NULL: refused or out of memory, which b says. */
const struct text_expr *text_expr(struct text_build *b, struct tep_print_arg *arg);
const struct text_expr *text_expr_load(struct text_build *b, const struct tep_format_field *f, bool raw);
/* The most that it may be. */
uint64_t text_expr_most(const struct text_expr *e);
const struct text_string *text_string(struct text_build *b, struct tep_print_arg *arg);

#define TEXT_WIDTH_MAX 19 /* digits, of a number with zeros in front */

#endif
