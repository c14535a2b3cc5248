// SPDX-License-Identifier: GPL-2.0-only
/* Text that commands print on the terminal: usage, messages, progress, the summary of a recording. */
#include <limits.h>
#include <sys/wait.h>

#include "cmd.h"
#include "convert/import/import.h"
#include "record/guest/guest.h"

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
	fprintf(stderr, "hyptrace %s: %s\n", t->command, ESCAPED(err->text));
	return EXIT_USAGE;
}

bool command_words(const struct opts_table *t, int *argc, char **argv, void *opts, int least, int most,
		   int *status)
{
	struct opts_error err;
	int ret = opts_parse(t, argc, argv, opts, &err);

	*status = EXIT_USAGE;
	if (ret) {
		*status = command_stopped(t, ret, &err);
		return false;
	}
	if (*argc > least && *argc - 1 <= most)
		return true;
	if (!most)
		fprintf(stderr, "hyptrace: %s takes no '%s'\n", t->command, argv[1]);
	command_usage(t, stderr);
	return false;
}

bool options_good(const char *who, const char *wrong)
{
	if (wrong)
		fprintf(stderr, "%s: %s\n", who, wrong);
	return !wrong;
}

int command_read(const struct opts_table *t, int argc, char **argv, void *opts, bool (*check)(void *opts),
		 int (*run)(void *opts, const struct log *log))
{
	struct files_opts *o = opts;
	struct console console = { 0 };
	struct log log = { .fn = console_log, .ctx = &console };
	int status;
	bool good = command_words(t, &argc, argv, opts, 0, INT_MAX, &status);

	for (int i = 1; i < argc && good; i++)
		good = !strlist_add(&o->files, argv[i]);
	if (good && (o->files.n || !strlist_add(&o->files, "trace.dat")) && (!check || check(opts))) {
		console.quiet = o->quiet;
		status = run(opts, &log);
		status = status > 0 ? status : console_status(&console, status);
	}
	hyptrace_close(o->handle);
	strlist_release(&o->files);
	return status;
}

static bool guests_wanted = true;

void guests_want(bool wanted)
{
	guests_wanted = wanted;
}

/* Opens them again, each with the files of its guests after it, if there are any. */
static int command_open_guests(struct hyptrace **files, const struct hyptrace_open_opts *opts,
			       const struct log *log)
{
	const struct inputs *in = handle_inputs(*files);
	struct strlist all = { 0 };
	struct buf text = { 0 };
	size_t found = 0;
	int ret = 0;

	for (size_t i = 0; i < in->n && !ret; i++) {
		size_t k = all.n + 1;

		ret = strlist_add(&all, in->v[i].path) ?: inputs_find_guests(in, &in->v[i], &all, log);
		for (; k < all.n; k++, found++)
			if (found < 4)
				buf_printf(&text, "%s%s", found ? ", " : "", all.v[k]);
	}
	if (ret)
		log_err(log, "--no-guests leaves guests' files out");
	if (!ret && found) {
		hyptrace_close(*files);
		ret = hyptrace_open(files, (const char *const *)all.v, all.n, opts);
		log_info(log, "guests' files are read too: %s%s (--no-guests leaves them out)",
			 buf_str(&text) ?: "", found > 4 ? ", ..." : "");
	}
	buf_release(&text);
	strlist_release(&all);
	return ret;
}

/* Names the command that makes a trace.dat of a file which is none. */
static void import_advise(const char *path, const struct log *log)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char data[1024], *output = str_printf("%s.dat", path);
	ssize_t n = fd < 0 ? fd : pread_all(fd, data, sizeof(data), 0);
	const char *option = n > 0 ? import_guess(data, (size_t)n) : NULL;
	struct buf line = { 0 };

	buf_printf(&line, "hyptrace import --%s", option ?: "");
	shell_word(&line, path);
	buf_addstr(&line, " -o");
	shell_word(&line, output ?: "");
	if (option)
		log_err(log, "'%s' can be imported: %s", path, buf_str(&line) ?: "");
	buf_release(&line);
	free(output);
	fd_close(&fd);
}

/* Sets the rate: ticks_only, or where a clock counts ticks, only of recordings whose clock does. */
static void command_set_hz(struct inputs *in, uint64_t hz, bool ticks_only)
{
	for (size_t i = 0; i < in->n; i++)
		ticks_only |= clock_in_ticks(in->v[i].time.clock);
	for (size_t i = 0; i < in->n; i++) {
		const struct input *host = inputs_host(in, &in->v[i]) ?: &in->v[i];

		if (!ticks_only || clock_in_ticks(host->time.clock))
			filetime_set_hz(&in->v[i].time, hz);
	}
}

int command_open(struct hyptrace **files, const struct strlist *paths, unsigned int flags,
		 const struct times_opts *times, const struct log *log)
{
	struct hyptrace_open_opts opts = { .size = sizeof(opts),
					   .flags = flags & ~(unsigned int)COMMAND_FLAGS,
					   .log = handle_log_to,
					   .log_ctx = (void *)log };
	int ret;

	if (times && !times->no_sync)
		opts.flags |= HYPTRACE_ALIGN;
	ret = hyptrace_open(files, (const char *const *)paths->v, paths->n, &opts);
	for (size_t i = 0; i < paths->n && ret == -EBADMSG; i++)
		import_advise(paths->v[i], log);
	if (!ret && times && !times->no_guests && guests_wanted)
		ret = command_open_guests(files, &opts, log);
	if (!ret && times)
		command_set_hz(handle_inputs(*files), times->hz, flags & COMMAND_TICKS_ONLY);
	if (!ret && times)
		handle_read_part(*files, &times->time);
	for (size_t i = 0; !ret && flags & COMMAND_NO_TEXTS && i < handle_inputs(*files)->n; i++)
		tep_set_flag(handle_inputs(*files)->v[i].tep, TEP_DISABLE_PLUGINS);
	return ret || flags & COMMAND_UNLOADED ? ret : handle_load(*files);
}

int command_files(struct files_opts *o, unsigned int flags, const struct inputs **in, const struct log *log)
{
	int ret = command_open(&o->handle, &o->files, flags, &o->times, log);

	*in = ret ? NULL : handle_inputs(o->handle);
	return ret;
}

int set_part(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return part_parse(arg, (struct time_part *)((char *)ctx + o->off))
		       ? opts_wrong(err, o, arg, "not FROM,TO, such as 63.5,64 or +2s,-500ms or 63.5,")
		       : 0;
}

int set_form(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	enum answer_form *set = (enum answer_form *)((char *)ctx + o->off), form = (enum answer_form)o->flags;

	if (*set != ANSWER_TEXT && *set != form)
		return opts_error(err, "specify either --json or --csv");
	*set = form;
	return 0;
}

int set_agent_port(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	uint64_t n = GUEST_PORT;

	if (arg && (parse_u64(arg, &n) || !n || n >= UINT32_MAX))
		return opts_wrong(err, o, arg, "not a port");
	*(uint32_t *)((char *)ctx + o->off) = (uint32_t)n;
	return 0;
}

int stdout_written(int ret, const struct log *log)
{
	if (ret == -EPIPE)
		terminal_reader_gone();
	return ret && ret != -EBADMSG ? log_fail_errno(log, ret, "cannot write the output") : ret;
}

int print_answer(struct buf *text, const struct log *log)
{
	int ret = buf_status(text);

	pager_start();
	ret = ret ?: write_all(STDOUT_FILENO, text->data, text->len);
	buf_release(text);
	return stdout_written(ret, log);
}

int log_damage(const struct log *log, uint64_t places)
{
	return places ? log_fail(log, -EBADMSG,
				 "the files are damaged in %llu places: what lay there is missing",
				 (unsigned long long)places)
		      : 0;
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

	for (; v >= 1024 && u < sizeof(units) - 2; u++)
		v /= 1024;
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

		fprintf(stderr, "  %s %s", ESCAPED(label(b)), size_text(b->bytes, size, sizeof(size)));
		if (b->events)
			fprintf(stderr, " %llu events", (unsigned long long)b->events);
		if (b->lost)
			fprintf(stderr, " %llu LOST", (unsigned long long)b->lost);
	}
	fflush(stderr);
	console->progress = true;
}

static void progress_percent(struct console *console, const char *doing, uint64_t done, uint64_t total)
{
	int percent = total ? (int)(done * 100 / total) : 0;

	if (console->quiet || !isatty(STDERR_FILENO) || !total ||
	    (console->progress && console->percent == percent))
		return;
	terminal_code(stderr, CODE_WIPE);
	fprintf(stderr, "%s: %d%%", doing, percent);
	console->percent = percent;
	fflush(stderr);
	console->progress = true;
}

void progress_writing(void *ctx, uint64_t done, uint64_t total)
{
	progress_percent(ctx, "writing", done, total);
}

void progress_reading(void *ctx, uint64_t done, uint64_t total)
{
	progress_percent(ctx, "reading", done, total);
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

void print_summary(const struct session_summary *sum, const char *output, const struct log *log)
{
	struct buf whole = { 0 };
	char size[16];

	if (*sum->kept) {
		log_err(log, "what was recorded is kept in '%s': hyptrace recover %s -o FILE", sum->kept,
			sum->kept);
		return;
	}
	if (sum->seconds > 0)
		buf_printf(&whole, "%.1f s: ", sum->seconds);
	for (size_t i = 0; i < sum->n_buffers; i++) {
		const struct session_buffer *b = &sum->buffers[i];

		buf_printf(&whole, "%s%s", i ? "; " : "", label(b));
		if (sum->seconds > 0) /* after a recovery there are no counts */
			buf_printf(&whole, " %llu events,", (unsigned long long)b->events);
		buf_printf(&whole, " %s", size_text(b->bytes, size, sizeof(size)));
		if (sum->seconds > 0)
			buf_printf(&whole, " (%s%llu lost)", b->lost_more ? "at least " : "",
				   (unsigned long long)b->lost);
	}
	buf_printf(&whole, ": %s, %s", output, size_text(sum->file_bytes, size, sizeof(size)));
	log_info(log, "%s", buf_str(&whole) ?: "");
	buf_release(&whole);
	for (size_t i = 0; i < sum->n_buffers; i++) {
		const struct session_buffer *b = &sum->buffers[i];

		if (b->guest_lost)
			log_err(log, "guest %s was lost before the end: what it sent is in its file",
				b->name);
		if (b->lost)
			print_lost(b, log);
		if (b->taken)
			log_err(log,
				"%s: somebody else read the buffer too: events are missing at %llu places "
				"that "
				"could be seen, which the file marks",
				label(b), (unsigned long long)b->taken);
		if (b->unread)
			log_err(log, "%s: neither its pages nor its text could be read", label(b));
		if (b->bad && b->guest)
			log_err(log, "guest %s: %llu pages made no sense: their events are lost", b->name,
				(unsigned long long)b->bad);
		else if (b->bad)
			log_err(log,
				"%s: %llu records or pages were not understood (records with a time are kept "
				"as hyp_unknown)",
				label(b), (unsigned long long)b->bad);
	}
	if (sum->has_command_status && WIFSIGNALED(sum->command_status))
		log_err(log, "the command was killed by signal %d", WTERMSIG(sum->command_status));
	else if (sum->has_command_status && WEXITSTATUS(sum->command_status))
		log_err(log, "the command exited with status %d", WEXITSTATUS(sum->command_status));
}
