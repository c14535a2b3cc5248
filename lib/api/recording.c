// SPDX-License-Identifier: LGPL-2.1-or-later
/* The recording half of hyptrace.h: plans, recording and recovering by a session. */
#include "api/handle-priv.h"
#include "base/shim.h"
#include "record/session/session.h"

struct hyptrace_plan {
	struct strlist words; /* plan.command points into them */
	char **argv;	      /* the same, in the order of the parser */
	struct record_plan plan;
};

void hyptrace_plan_free(struct hyptrace_plan *plan)
{
	if (!plan)
		return;
	record_plan_release(&plan->plan);
	strlist_release(&plan->words);
	free(plan->argv);
	free(plan);
}

int hyptrace_plan_parse(struct hyptrace_plan **out, int argc, const char *const *argv, char *error,
			size_t error_size)
{
	struct opts_error err = { "" };
	struct hyptrace_plan *p;
	int ret = 0;

	*out = NULL;
	if (argc < 1)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	for (int i = 0; i < argc && !ret; i++)
		ret = strlist_add(&p->words, argv[i]);
	p->argv = ret ? NULL : shim_copy(argc, p->words.v);
	ret = ret ?: p->argv ? 0 : -ENOMEM;
	if (!ret) {
		ret = grammar_parse_line(&p->plan, argc, p->argv, &err);
		ret = ret != OPTS_STOP ? ret : opts_error(&err, "-h is for the command line");
	}
	if (error && error_size)
		snprintf(error, error_size, "%s", err.text);
	if (ret) {
		hyptrace_plan_free(p);
		return ret;
	}
	*out = p;
	return 0;
}

static int summary_out(const struct session_summary *s, struct hyptrace_summary *to)
{
	struct hyptrace_summary *o;
	int ret;

	if (!to)
		return 0;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->file_bytes = s->file_bytes;
	o->seconds = s->seconds;
	o->not_restored = s->not_restored;
	o->command_status = s->has_command_status ? s->command_status : -1;
	for (size_t i = 0; i < s->n_buffers; i++) {
		o->events += s->buffers[i].events;
		o->lost += s->buffers[i].lost + s->buffers[i].taken;
		o->bad += s->buffers[i].bad + s->buffers[i].unread;
		o->guests_lost += !!s->buffers[i].guest_lost;
	}
	memcpy(o->output, s->output, sizeof(o->output));
	memcpy(o->kept, s->kept, sizeof(o->kept));
	ret = tagged_write(to, o, sizeof(*o));
	free(o);
	return ret;
}

/* Records the plan, or recovers the spool when there is none. */
static int run_session(const struct record_plan *plan, const char *spool, const char *output,
		       const struct hyptrace_record_opts *opts, struct hyptrace_summary *to)
{
	struct hyptrace_record_opts o = { .stop_fd = -1 };
	struct logger logger;
	struct log log;
	struct session_opts session;
	struct session_summary *summary;
	int ret = tagged_read(&o, sizeof(o), opts), given;

	if (ret)
		return ret;
	logger = (struct logger){ o.log, o.log_ctx };
	log = (struct log){ o.log ? logger_call : NULL, &logger };
	session = (struct session_opts){
		.tracing_dir = o.tracing_dir, .dump_fd = -1, .stop_fd = o.stop_fd, .log = &log
	};
	summary = calloc(1, sizeof(*summary));
	if (!summary)
		return -ENOMEM;
	ret = plan ? session_record(plan, &session, summary)
		   : session_recover(spool, output, &session, summary);
	given = summary_out(summary, to);
	free(summary);
	return ret ? ret : given;
}

int hyptrace_record(const struct hyptrace_plan *plan, const struct hyptrace_record_opts *opts,
		    struct hyptrace_summary *summary)
{
	return run_session(&plan->plan, NULL, NULL, opts, summary);
}

int hyptrace_recover(const char *spool, const char *output, const struct hyptrace_record_opts *opts,
		     struct hyptrace_summary *summary)
{
	return run_session(NULL, spool, output, opts, summary);
}
