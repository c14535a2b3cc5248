/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_AGENT_H
#define HYPTRACE_AGENT_H

#include "record/plan/plan.h"
#include "file/wire/transport.h"
#include "record/tracefs/undo.h"

/* hyptrace-agent: what its parts share. */

/* ---- log.c ------------------------------------------------------------------ */

/* Lines go to stderr; after log_to_system to syslog, or to the kernel's log. */
void agent_log(void *ctx, enum log_level level, const char *msg);
void log_to_system(void);
void log_verbose(void);

/* ---- boot.c: recordings from before the first request --------------------------- */

/*
 * Events that were switched on before the first recorder came: by --early, or
 * by the kernel's command line. The first request for that buffer takes what is
 * in it; later ones begin anew.
 */
struct boot {
	struct undo *early;	  /* --early: puts back what it changed; NULL: not used, or taken */
	bool top;		  /* the top buffer (a->own, if there is one) holds a boot trace */
	struct strlist instances; /* made by boot parameters, not yet taken */
};

struct agent;
/*
 * Begins the trace of --early, in the top buffer or a->own: events, as boot
 * parameters name them. 0 or -errno, which is logged.
 */
int boot_early(struct agent *a, const char *events);
/* Looks for what boot parameters have begun to trace, and keeps it in a->boot. */
void boot_find(struct agent *a);
/* Whether the buffer holds a boot trace; afterwards it is an ordinary one. */
bool boot_take(struct agent *a, const char *buffer);
/* Puts back what --early changed. */
void boot_end_early(struct agent *a);

/* An undo with the agent's journal, or in memory where that has no place. 0 or -errno, -EEXIST. */
int agent_undo_open(struct agent *a, struct undo **u);
/* tracefs as it was before; the journal is kept when it could not be. */
void agent_undo_end(struct agent *a, struct undo *u);
/* Undoes the changes of a journal, if there is one, and removes it. -EBUSY: its agent lives. */
int agent_recover(struct agent *a, const char *journal);

/* ---- the agent ---------------------------------------------------------------- */

/* Its working directory is the tracing directory. */
struct agent {
	struct log log;
	int proc_fd;
	const char *journal;	    /* NULL: in memory only */
	struct transport_addr addr; /* to listen on */
	struct transport_addr peer; /* TCP: who may connect */
	uint32_t cids[16];	    /* vsock: who may connect */
	size_t n_cids;
	struct strlist allow;
	bool probes;	    /* events that a recorder defines are made */
	char own[48];	    /* with --allow: "instances/" and the one that serves every request; else "" */
	int64_t timeout_ms; /* for every wait on a peer */
	int listen_fd;
	bool given;    /* listen_fd belongs to the program that started us */
	int signal_fd; /* readable: the agent is to end */
	struct boot boot;
};

/* ---- serve.c ---------------------------------------------------------------------- */

/* Serves until a->signal_fd ends the agent. 0 or -errno. */
int serve(struct agent *a);

/* ---- serving.c ---------------------------------------------------------------------- */

struct serving;

/*
 * Begins to serve a request in a thread of its own. fd and what req owns are the
 * serving's then. done_fd gets a byte when it has ended.
 */
int serving_start(struct serving **out, struct agent *a, int fd, const struct transport_addr *peer,
		  struct msg_trace_req *req, int done_fd);
/* Sends the recorder the reason why it is not served. 0 or -errno. */
int agent_refuse(const struct agent *a, int fd, const char *why, struct msg_wait w);
/* A connection to one of its ports that came through the agent's own socket. */
bool serving_offer(struct serving *s, uint32_t port, int fd);
/* Nothing but its end is left to come: it may be joined at once. */
bool serving_ending(struct serving *s);
void serving_cancel(struct serving *s);
/* Waits for its end and frees it. */
void serving_join(struct serving *s);

/* ---- request.c --------------------------------------------------------------- */

/*
 * The command line of a request, strictly: what trace-cmd record takes and what
 * makes sense in a guest. -EINVAL with *why (malloc'ed) for everything else.
 */
int request_parse(struct record_plan *plan, const struct strlist *args, const struct log *log, char **why);
/* The one buffer that is to be recorded; NULL: more than one is asked for. */
struct buffer_plan *request_buffer(struct record_plan *plan);
/* Whether it is to make an event that the recorder has defined; a preset's are not meant. */
bool request_has_probe(const struct buffer_plan *b);
/* Whether samples may be taken: hyptrace:sample is allowed, as an event. */
bool allow_samples(const struct strlist *allow);
/* Whether the events of --start-on and --stop-on may be traced. */
bool allow_region(const struct strlist *allow, const struct record_plan *plan);
/* Narrows the request to events that are allowed. -EACCES with *why: nothing is left, or it asks for more. */
int allow_apply(const struct strlist *allow, int tracing_dirfd, struct buffer_plan *b, const struct log *log,
		char **why);

/* ---- privs.c -------------------------------------------------------------------------------- */

/*
 * Gives up the capabilities and system calls that serving does not need, with or without samples; what cannot
 * be is logged.
 */
void privs_drop(const struct log *log, bool samples);

#endif
