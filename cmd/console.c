// SPDX-License-Identifier: GPL-2.0-only
/* What commands say on the terminal: usage, messages, progress, the summary of a recording. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "terminal.h"
#include "util/answer.h"
#include "util/visible.h"

void command_usage(const struct opts_table *t, FILE *out)
{
	struct buf text = { 0 };

	opts_usage(t, &text);
	if (buf_str(&text))
		fputs(buf_str(&text), out);
	buf_release(&text);
}

int command_stopped(const struct opts_table *t, int ret, const struct opts_error *err)
{
	if (ret == OPTS_STOP) {
		command_usage(t, stdout);
		return EXIT_OK;
	}
	fprintf(stderr, "hyptrace %s: %s\n", t->command, VISIBLE(err->text));
	return EXIT_USAGE;
}

bool command_files(const struct opts_table *t, int argc, char **argv, void *opts, struct strlist *files,
		   int *status)
{
	struct opts_error err;
	int ret = opts_parse(t, &argc, argv, opts, &err);

	if (ret) {
		*status = command_stopped(t, ret, &err);
		return false;
	}
	*status = EXIT_USAGE;
	for (int i = 1; i < argc; i++)
		if (strlist_add(files, argv[i]))
			return false;
	return files->n || !strlist_add(files, "trace.dat");
}

static int set_form(void *ctx, const struct opt *o, enum answer_form form, struct opts_error *err)
{
	enum answer_form *set = (enum answer_form *)((char *)ctx + o->off);

	if (*set != ANSWER_TEXT && *set != form)
		return opts_error(err, "say either --json or --csv");
	*set = form;
	return 0;
}

int set_json(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return set_form(ctx, o, ANSWER_JSON, err);
}

int set_csv(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return set_form(ctx, o, ANSWER_CSV, err);
}

int print_answer(const struct buf *text, const struct log *log)
{
	int ret = buf_status(text) ?: write_all(STDOUT_FILENO, text->data, text->len);

	if (ret == -EPIPE)
		terminal_reader_gone();
	if (ret)
		log_err(log, "cannot write the output: %s", errno_text(ret));
	return ret;
}

void tell_damage(const struct log *log, uint64_t places)
{
	log_err(log, "the files are damaged in %llu places: what lay there is missing",
		(unsigned long long)places);
}

void progress_end(struct console *console)
{
	if (console->progress)
		terminal_code(stderr, CODE_WIPE);
	console->progress = false;
}

void console_log(void *ctx, enum log_level level, const char *msg)
{
	struct console *console = ctx;

	if (level == LOG_DEBUG || (level != LOG_ERROR && console->quiet))
		return;
	progress_end(console);
	console->error |= level == LOG_ERROR;
	fprintf(stderr, "hyptrace: %s%s\n", level == LOG_WARN ? "warning: " : "", msg);
}

struct log console_as_log(struct console *console)
{
	return (struct log){ .fn = console_log, .ctx = console };
}

int console_status(struct console *console, int ret)
{
	if (ret && !console->error)
		fprintf(stderr, "hyptrace: %s\n", errno_text(ret));
	return ret ? EXIT_FAILED : EXIT_OK;
}

const char *size_text(uint64_t bytes, char *out, size_t size)
{
	static const char units[] = "BKMGTP";
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 1024 && u < sizeof(units) - 2) {
		v /= 1024;
		u++;
	}
	snprintf(out, size, u && v < 10 ? "%.1f%c" : "%.0f%c", v, units[u]);
	return out;
}

static const char *label(const struct session_buffer *b)
{
	return *b->name ? b->name : "host";
}

void progress_recording(void *ctx, const struct session_summary *so_far)
{
	struct console *console = ctx;
	char size[16];

	if (console->quiet || !isatty(STDERR_FILENO))
		return;
	terminal_code(stderr, CODE_WIPE);
	fprintf(stderr, "%.1f s", so_far->seconds);
	for (size_t i = 0; i < so_far->n_buffers; i++) {
		const struct session_buffer *b = &so_far->buffers[i];

		fprintf(stderr, "  %s %s", VISIBLE(label(b)), size_text(b->bytes, size, sizeof(size)));
		if (b->events)
			fprintf(stderr, " %llu events", (unsigned long long)b->events);
		if (b->lost)
			fprintf(stderr, " %llu LOST", (unsigned long long)b->lost);
	}
	fflush(stderr);
	console->progress = true;
}

void progress_writing(void *ctx, uint64_t done, uint64_t total)
{
	struct console *console = ctx;
	int percent = total ? (int)(done * 100 / total) : 0;

	if (console->quiet || !isatty(STDERR_FILENO) || !total ||
	    (console->progress && console->percent == percent))
		return;
	terminal_code(stderr, CODE_WIPE);
	fprintf(stderr, "writing: %d%%", percent);
	console->percent = percent;
	fflush(stderr);
	console->progress = true;
}

static void print_lost(const struct session_buffer *b, const struct log *log)
{
	char option[80] = "", size[80] = "-b N (KiB per CPU)";

	if (b->profile) {
		log_err(log, "%s: %llu or more samples LOST; fewer a second would help (--profile)", label(b),
			(unsigned long long)b->lost);
		return;
	}
	if (b->joined) {
		log_err(log,
			"%s: %llu events LOST, those before it was taken over among them; its size is "
			"that which it was switched on with",
			label(b), (unsigned long long)b->lost);
		return;
	}
	if (b->guest)
		snprintf(option, sizeof(option), "-A %s ... ", b->name);
	else if (*b->name)
		snprintf(option, sizeof(option), "-B %s ", b->name);
	if (b->size_kb)
		snprintf(size, sizeof(size), "-b %llu (KiB per CPU; it was %llu)",
			 (unsigned long long)b->size_kb * 4, (unsigned long long)b->size_kb);
	log_err(log, "%s: %s%llu events LOST; a larger buffer would help: %s%s", label(b),
		b->lost_more ? "at least " : "", (unsigned long long)b->lost, option, size);
}

static void print_whole(const struct session_summary *sum, const char *output, const struct log *log)
{
	struct buf text = { 0 };
	char size[16];

	if (sum->seconds > 0)
		buf_printf(&text, "%.1f s: ", sum->seconds);
	for (size_t i = 0; i < sum->n_buffers; i++) {
		const struct session_buffer *b = &sum->buffers[i];

		buf_printf(&text, "%s%s", i ? "; " : "", label(b));
		if (sum->seconds > 0) /* after a recovery nobody has counted */
			buf_printf(&text, " %llu events,", (unsigned long long)b->events);
		buf_printf(&text, " %s", size_text(b->bytes, size, sizeof(size)));
		if (sum->seconds > 0)
			buf_printf(&text, " (%s%llu lost)", b->lost_more ? "at least " : "",
				   (unsigned long long)b->lost);
	}
	buf_printf(&text, ": %s, %s", output, size_text(sum->file_bytes, size, sizeof(size)));
	log_info(log, "%s", buf_str(&text) ?: "");
	buf_release(&text);
}

/* What went wrong with one buffer. */
static void print_wrong(const struct session_buffer *b, const struct log *log)
{
	if (b->guest_lost)
		log_err(log, "guest %s was lost before the end: what it sent is in its file", b->name);
	if (b->lost)
		print_lost(b, log);
	if (b->taken)
		log_err(log,
			"%s: somebody else read the buffer too: events are missing at %llu places that could "
			"be "
			"seen, which the file marks",
			label(b), (unsigned long long)b->taken);
	if (b->unread)
		log_err(log, "%s: neither its pages nor its text could be read", label(b));
	if (b->bad && b->guest)
		log_err(log, "guest %s: %llu pages made no sense: their events are lost", b->name,
			(unsigned long long)b->bad);
	else if (b->bad)
		log_err(log,
			"%s: %llu records or pages were not understood (records with a time are kept as "
			"hyp_unknown)",
			label(b), (unsigned long long)b->bad);
}

void print_summary(const struct session_summary *sum, const char *output, const struct log *log)
{
	if (*sum->kept) {
		log_err(log, "what was recorded is kept in '%s': hyptrace recover %s -o FILE", sum->kept,
			sum->kept);
		return;
	}
	print_whole(sum, output, log);
	for (size_t i = 0; i < sum->n_buffers; i++)
		print_wrong(&sum->buffers[i], log);
	if (sum->has_command_status && WIFSIGNALED(sum->command_status))
		log_err(log, "the command was killed by signal %d", WTERMSIG(sum->command_status));
	else if (sum->has_command_status && WEXITSTATUS(sum->command_status))
		log_err(log, "the command exited with status %d", WEXITSTATUS(sum->command_status));
}
