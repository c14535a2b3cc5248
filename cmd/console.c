// SPDX-License-Identifier: GPL-2.0-only
/* What commands say on the terminal: usage, messages, progress, the summary of a recording. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"

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
	fprintf(stderr, "hyptrace %s: %s\n", t->command, err->text);
	return EXIT_USAGE;
}

void progress_end(struct console *console)
{
	if (console->progress)
		fputs("\r\033[K", stderr);
	console->progress = false;
}

void console_log(void *ctx, enum log_level level, const char *msg)
{
	struct console *console = ctx;

	if (level == LOG_DEBUG || (level == LOG_INFO && console->quiet))
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
	fprintf(stderr, "\r\033[K%.1f s", so_far->seconds);
	for (size_t i = 0; i < so_far->n_buffers; i++) {
		const struct session_buffer *b = &so_far->buffers[i];

		fprintf(stderr, "  %s %s", label(b), size_text(b->bytes, size, sizeof(size)));
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

	if (console->quiet || !isatty(STDERR_FILENO) || !total)
		return;
	fprintf(stderr, "\r\033[Kwriting: %llu%%", (unsigned long long)(done * 100 / total));
	fflush(stderr);
	console->progress = true;
}

static void print_lost(const struct session_buffer *b)
{
	fprintf(stderr, "hyptrace: %s: %llu events LOST; a larger buffer would help: ", label(b),
		(unsigned long long)b->lost);
	if (b->guest)
		fprintf(stderr, "-A %s ... ", b->name);
	else if (*b->name)
		fprintf(stderr, "-B %s ", b->name);
	if (b->size_kb)
		fprintf(stderr, "-b %llu (KiB per CPU; it was %llu)\n", (unsigned long long)b->size_kb * 4,
			(unsigned long long)b->size_kb);
	else
		fprintf(stderr, "-b N (KiB per CPU)\n");
}

static void print_buffers(const struct session_summary *sum)
{
	char size[16];

	for (size_t i = 0; i < sum->n_buffers; i++) {
		const struct session_buffer *b = &sum->buffers[i];

		fprintf(stderr, "%s%s", i ? "; " : "", label(b));
		if (sum->seconds > 0) /* after a recovery nobody has counted */
			fprintf(stderr, " %llu events,", (unsigned long long)b->events);
		fprintf(stderr, " %s", size_text(b->bytes, size, sizeof(size)));
		if (sum->seconds > 0)
			fprintf(stderr, " (%llu lost)", (unsigned long long)b->lost);
	}
}

void print_summary(const struct session_summary *sum, const char *output, bool quiet)
{
	char size[16];

	if (*sum->kept) {
		fprintf(stderr,
			"hyptrace: what was recorded is kept in '%s': "
			"hyptrace recover %s -o FILE\n",
			sum->kept, sum->kept);
		return;
	}
	if (!quiet) {
		fputs("hyptrace: ", stderr);
		if (sum->seconds > 0)
			fprintf(stderr, "%.1f s: ", sum->seconds);
		print_buffers(sum);
		fprintf(stderr, ": %s, %s\n", output, size_text(sum->file_bytes, size, sizeof(size)));
	}
	for (size_t i = 0; i < sum->n_buffers; i++) {
		const struct session_buffer *b = &sum->buffers[i];

		if (b->guest_lost)
			fprintf(stderr,
				"hyptrace: guest %s was lost before the end: what it sent is in "
				"its file\n",
				b->name);
		if (b->lost)
			print_lost(b);
		if (b->bad && b->guest)
			fprintf(stderr,
				"hyptrace: guest %s: %llu pages made no sense: their events are lost\n",
				b->name, (unsigned long long)b->bad);
		else if (b->bad)
			fprintf(stderr,
				"hyptrace: %s: %llu records or pages were not understood (records "
				"with a time are kept as hyp_unknown)\n",
				label(b), (unsigned long long)b->bad);
	}
	if (sum->has_command_status && WIFSIGNALED(sum->command_status))
		fprintf(stderr, "hyptrace: the command was killed by signal %d\n",
			WTERMSIG(sum->command_status));
	else if (sum->has_command_status && WEXITSTATUS(sum->command_status))
		fprintf(stderr, "hyptrace: the command exited with status %d\n",
			WEXITSTATUS(sum->command_status));
}
