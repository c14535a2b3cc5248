// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace adb: the static file runs on an Android phone, and what it recorded is fetched. */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/program.h"
#include "base/shim.h"
#include "cmd.h"
#include "base/outfile.h"
#include "base/signals.h"

#define STATIC_NAME "hyptrace-arm64"

/* One command on the phone. */
struct adb_job {
	/* options */
	const char *serial; /* of the phone; NULL: adb's choice */
	const char *given;  /* the static file, NULL: to be found */
	const char *parent; /* of the directory of this run */
	bool quiet;
	int stop_fd; /* of stop_signals() */
	const struct log *log;
	char *file;	     /* the static one, here */
	char *dir;	     /* of this run, on the phone; NULL: not made */
	const char *command; /* of hyptrace */
	struct buf args;     /* its arguments, quoted */
	/* record: */
	const char *output, *config;
	char base[256]; /* the last part of the output's name */
	size_t fetched; /* files */
	bool left;	/* the phone has something that is not here */
};

static int adb_shell(const struct adb_job *j, const char *line, const char *on_stop, struct buf *out);

#define WORDS_MAX  16
#define OUTPUT_MAX (64u << 10)
#define LOOK_MS	   50 /* between checks for adb's end */

/* False: there was nothing to read. */
static bool adb_read(int *fd, struct buf *out)
{
	char chunk[4096];
	ssize_t n = *fd < 0 ? -1 : read(*fd, chunk, sizeof(chunk));

	if (n > 0 && out->len < OUTPUT_MAX)
		buf_add(out, chunk, (size_t)n);
	if (n == 0)
		fd_close(fd);
	return n > 0;
}

static int adb_wait(const struct adb_job *j, pid_t pid, const char *on_stop, int *fd, struct buf *out)
{
	struct signalfd_siginfo info;
	bool ended = false;
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		struct pollfd p[2] = { { .fd = j->stop_fd, .events = POLLIN },
				       { .fd = *fd, .events = POLLIN } };

		if (poll(p, 2, LOOK_MS) <= 0)
			continue;
		if (p[1].revents)
			adb_read(fd, out);
		if (!p[0].revents)
			continue;
		while (read(j->stop_fd, &info, sizeof(info)) > 0)
			;
		ended = !on_stop;
		if (!on_stop)
			kill(pid, SIGTERM);
		else if (adb_shell(j, on_stop, NULL, NULL))
			log_err(j->log, "the recorder on the phone could not be stopped: Ctrl-C tries again");
	}
	while (adb_read(fd, out))
		;
	return ended ? -EINTR : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*
 * Runs adb with these words (NULL-ended), which prints on our streams, or into *out (at most
 * 64 KiB). At a signal the line on_stop is run in the phone's shell, as often as one comes;
 * NULL: adb is ended. Returns its exit status (128 + signal), or -errno: -EINTR if it was ended.
 */
static int adb_run(const struct adb_job *j, const char *const *words, const char *on_stop, struct buf *out)
{
	const char *argv[WORDS_MAX + 4] = { "adb" };
	int p[2] = { -1, -1 }, ret;
	size_t n = 1;
	pid_t pid;

	if (out && pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	if (out) /* adb may leave a server behind that holds the other end */
		fcntl(p[0], F_SETFL, O_NONBLOCK);
	if (j->serial) {
		argv[n++] = "-s";
		argv[n++] = j->serial;
	}
	for (; *words && n < WORDS_MAX; words++)
		argv[n++] = *words;
	ret = program_spawn(argv, p[1], false, &pid);
	fd_close(&p[1]);
	ret = ret ?: adb_wait(j, pid, on_stop, &p[0], out);
	fd_close(&p[0]);
	return ret;
}

/* The same for `adb shell`. */
static int adb_shell(const struct adb_job *j, const char *line, const char *on_stop, struct buf *out)
{
	const char *words[] = { "shell", line, NULL };

	return adb_run(j, words, on_stop, out);
}

#define ADB(field) .off = offsetof(struct adb_job, field)

static const struct opt adb_rows[] = {
	OPT('s', NULL, "SERIAL", "of the phone, where there are several", opts_set_text, ADB(serial)),
	OPT(0, "file", "FILE", "the static file for the phone (" STATIC_NAME " next to this program)",
	    opts_set_text, ADB(given)),
	OPT(0, "dir", "DIR", "where to work on the phone (/data/local/tmp)", opts_set_text, ADB(parent)),
	OPT('q', "quiet", NULL, "errors only, here and there", opts_set_flag, ADB(quiet)),
	OPT_HELP,
};

const struct opts_table adb_table = {
	.command = "adb",
	.usage = "usage: hyptrace adb [OPTIONS] record [-o FILE] [OPTION...] [--] [COMMAND [ARG...]]\n"
		 "       hyptrace adb [OPTIONS] list|recover [OPTION...]\n"
		 "\n"
		 "Runs hyptrace on an Android phone, and fetches what it recorded into FILE.\n"
		 "\n",
	OPT_ROWS(adb_rows),
	.in_order = true,
};

/* Each option of record for the phone, as it was given; the output stays here. */
static int adb_take_option(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct adb_job *j = ctx;
	bool config = o->name && !strcmp(o->name, "config");
	char name[32];

	if (o->key == 'o') {
		j->output = arg;
		return 0;
	}
	shell_quote(&j->args, opt_name(o, name));
	if (config)
		j->config = arg;
	if (o->arg)
		shell_quote(&j->args, config ? "../config" : arg);
	return 0;
}

static void adb_take_words(struct adb_job *j, char **words)
{
	for (; *words; words++)
		shell_quote(&j->args, *words);
}

/* The command line as `hyptrace record` here takes it or refuses it. 0, or what to exit with, +1. */
static int adb_take_record(struct adb_job *j, int argc, char **argv)
{
	struct opts_table table = grammar_table;
	char **copy = shim_copy(argc, argv);
	struct record_plan plan = { 0 };
	struct opts_error err = { "out of memory" };
	const char *base;
	int ret = copy ? 0 : -ENOMEM;

	ret = ret ?: grammar_parse_line(&plan, argc, copy, &err);
	table.dispatch = adb_take_option;
	ret = ret ?: opts_parse(&table, &argc, argv, j, &err);
	if (!ret && !plan.command && !plan.duration_ms && !plan.quiet && !j->quiet && isatty(STDERR_FILENO))
		fputs("hyptrace: Ctrl-C ends the recording\n", stderr);
	record_plan_release(&plan);
	free(copy);
	if (ret)
		return 1 + command_stopped(&grammar_table, ret, &err);
	if (argc > 1)
		shell_quote(&j->args, "--");
	adb_take_words(j, argv + 1);
	base = basename(j->output);
	if (!name_fits_file(base)) {
		log_err(j->log, "'%s' is no name for a recording", j->output);
		return 1 + EXIT_USAGE;
	}
	snprintf(j->base, sizeof(j->base), "%s", base);
	return outfile_check(j->output, j->log) ? 1 + EXIT_FAILED : 0;
}

/* The given file, or one next to this program, or in the directory of libraries next to that. */
static char *adb_find_file(const char *given, const struct log *log)
{
	static const char *const places[] = { STATIC_NAME, "../lib/hyptrace/" STATIC_NAME };
	char *path;

	if (given && !access(given, R_OK))
		return strdup(given);
	if (given) {
		log_err(log, "cannot read '%s': %s", given, strerror(errno));
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		path = shim_beside(places[i]);
		if (path && !access(path, R_OK))
			return path;
		free(path);
	}
	log_err(log, "there is no " STATIC_NAME
		     " next to this program: make it with 'make static', or name it with "
		     "--file");
	return NULL;
}

static int adb_unreached(const struct adb_job *j, int ret)
{
	if (ret == -ENOENT)
		log_err(j->log, "there is no adb: install it (Debian: apt install adb)");
	else if (ret > 0)
		log_err(j->log, "adb does not get through to the phone: 'adb devices' lists what it reaches");
	return ret < 0 ? ret : -EIO;
}

/* Checks the phone's answer, which is uid, machine and directory, and keeps the directory. */
static int adb_check(struct adb_job *j, const struct strlist *said)
{
	char **v = said->v;

	if (said->n < 2)
		return log_fail(j->log, -EPERM, "the phone's shell gives no answer");
	if (strcmp(v[0], "0"))
		return log_fail(j->log, -EPERM,
				"adb is user %s on the phone, and only root may trace: 'adb root' first, "
				"which userdebug and eng builds have",
				v[0]);
	if (strcmp(v[1], "aarch64"))
		return log_fail(j->log, -EPERM, "the phone is '%s', and hyptrace for it is aarch64 (arm64)",
				v[1]);
	if (said->n != 3 || strncmp(v[2], j->parent, strlen(j->parent)) || !strstr(v[2], "/hyptrace."))
		return log_fail(j->log, -EPERM, "cannot make a directory in '%s' on the phone", j->parent);
	j->dir = strdup(v[2]);
	return j->dir ? 0 : -ENOMEM;
}

static int adb_prepare(struct adb_job *j)
{
	struct buf line = { 0 }, said = { 0 };
	struct strlist lines = { 0 };
	int ret;

	buf_addstr(&line, "id -u; uname -m; [ \"$(id -u) $(uname -m)\" != '0 aarch64' ] || mktemp -d");
	shell_quote(&line, j->parent);
	buf_addstr(&line, "/hyptrace.XXXXXX");
	ret = buf_str(&line) ? adb_shell(j, buf_str(&line), NULL, &said) : -ENOMEM;
	/* without an answer adb itself has failed, with a message */
	ret = ret && (ret < 0 || !said.len) ? adb_unreached(j, ret)
					    : strlist_add_lines(&lines, said.data, said.len);
	for (size_t i = 0; i < lines.n; i++)
		lines.v[i][strcspn(lines.v[i], "\r")] = 0;
	ret = ret ?: adb_check(j, &lines);
	strlist_release(&lines);
	buf_release(&line);
	buf_release(&said);
	return ret;
}

static int adb_push(struct adb_job *j, const char *from, const char *name)
{
	char *to = str_printf("%s/%s", j->dir, name);
	const char *words[] = { "push", from, to, NULL };
	struct buf said = { 0 }; /* how fast it was */
	int ret = to ? adb_run(j, words, NULL, &said) : -ENOMEM;

	if (ret > 0)
		ret = log_fail(j->log, -EIO, "adb cannot copy '%s' to the phone", from);
	buf_release(&said);
	free(to);
	return ret;
}

/* A line of the phone's shell on this run's directory; returns as adb_run. */
static int adb_there(struct adb_job *j, const char *before, const char *behind, struct buf *out)
{
	struct buf line = { 0 };
	int ret;

	buf_addstr(&line, before);
	shell_quote(&line, j->dir);
	buf_addstr(&line, behind);
	ret = buf_str(&line) ? adb_shell(j, buf_str(&line), NULL, out) : -ENOMEM;
	buf_release(&line);
	return ret;
}

/* The directory of results is the recorder's own: its file has the name asked for, guests' files are next to
 * it. */
static int adb_run_there(struct adb_job *j)
{
	struct buf line = { 0 }, stop = { 0 };
	int ret;

	buf_addstr(&line, "cd");
	shell_quote(&line, j->dir);
	buf_addstr(&line,
		   " && chmod 755 hyptrace && mkdir out && cd out && echo $$ >../pid && exec ../hyptrace");
	shell_quote(&line, j->command);
	if (*j->base) {
		buf_addstr(&line, " -o");
		shell_quote(&line, j->base);
	}
	buf_add(&line, j->args.data, j->args.len);
	buf_addstr(&stop, "cd");
	shell_quote(&stop, j->dir);
	buf_addstr(&stop, " && kill -INT \"$(cat pid)\"");
	ret = buf_str(&line) && buf_str(&stop) && !j->args.bad
		      ? adb_shell(j, buf_str(&line), buf_str(&stop), NULL)
		      : -ENOMEM;
	buf_release(&line);
	buf_release(&stop);
	return ret;
}

static int adb_fetch(struct adb_job *j, const char *name)
{
	size_t dir = strlen(j->output) - strlen(j->base);
	char *from = str_printf("%s/out/%s", j->dir, name);
	char *to = str_printf("%.*s%s", (int)dir, j->output, name);
	char *part = str_printf("%.*s%s.part", (int)dir, j->output, name);
	const char *words[] = { "pull", from, part, NULL };
	struct buf said = { 0 };
	int ret = from && to && part ? adb_run(j, words, NULL, &said) : -ENOMEM;

	if (!ret && rename(part, to) < 0)
		ret = -errno;
	if (ret) {
		log_err(j->log, "cannot fetch '%s'%s%s", to ?: name, ret < 0 ? ": " : "",
			ret < 0 ? errno_text(ret) : "");
		if (part)
			unlink(part);
	}
	buf_release(&said);
	free(from);
	free(to);
	free(part);
	return ret ? -EIO : 0;
}

/* Returns what to exit with. */
static int adb_job_run(struct adb_job *j)
{
	int status, ret = adb_prepare(j) ?: adb_push(j, j->file, "hyptrace");

	if (!ret && j->config)
		ret = adb_push(j, j->config, "config");
	status = ret ? 0 : adb_run_there(j);
	ret = ret ?: status < 0 ? status : 0;
	if (!ret && *j->base) {
		struct strlist names = { 0 };
		struct buf said = { 0 };
		size_t stem = strlen(j->base);

		/* the finished files of the recording: not a spool ("NAME/"), nor one that is not whole */
		ret = adb_there(j, "cd", "/out && ls -p", &said);
		if (stem > 4 && !strcmp(j->base + stem - 4, ".dat"))
			stem -= 4;
		j->left = ret != 0;
		if (ret)
			ret = adb_unreached(j, ret);
		ret = ret ?: strlist_add_lines(&names, said.data, said.len);
		for (size_t i = 0; !ret && i < names.n; i++) {
			const char *name = names.v[i];
			size_t len = strcspn(name, "\r");

			names.v[i][len] = 0;
			if (!name_fits_file(name) || strncmp(name, j->base, stem) ||
			    (len >= 5 && !strcmp(name + len - 5, ".part")) || adb_fetch(j, name))
				j->left = true;
			else
				j->fetched++;
		}
		strlist_release(&names);
		buf_release(&said);
		ret = ret ?: j->left ? -EIO : 0;
	}
	if (!ret && !status && *j->base && !j->fetched)
		ret = log_fail(j->log, -EIO, "the phone has no recording, though it says that all went well");
	if (j->dir && j->left)
		log_warn(j->log,
			 "what is not here is on the phone, in %s/out; 'hyptrace adb recover' finishes a "
			 "spool",
			 j->dir);
	else if (j->dir)
		adb_there(j, "rm -rf", "", NULL);
	return status > 0 ? status : ret ? EXIT_FAILED : EXIT_OK;
}

int cmd_adb(int argc, char **argv)
{
	struct console console = { 0 };
	struct log log = { .fn = console_log, .ctx = &console };
	struct adb_job j = { .parent = "/data/local/tmp", .log = &log, .output = "trace.dat" };
	int ret;

	if (!command_words(&adb_table, &argc, argv, &j, 1, INT_MAX, &ret))
		return ret;
	console.quiet = j.quiet;
	if (j.quiet)
		shell_quote(&j.args, "-q");
	j.command = argv[1];
	if (!strcmp(j.command, "record")) {
		ret = adb_take_record(&j, argc - 1, argv + 1);
		if (ret) {
			ret--;
			goto out;
		}
	} else if (!strcmp(j.command, "list") || !strcmp(j.command, "recover")) {
		adb_take_words(&j, argv + 2);
	} else {
		log_err(&log, "'%s' is not run on the phone: record, list and recover are", j.command);
		ret = EXIT_USAGE;
		goto out;
	}
	j.stop_fd = stop_signals();
	j.file = adb_find_file(j.given, &log);
	ret = j.stop_fd >= 0 && j.file ? adb_job_run(&j) : EXIT_FAILED;
	fd_close(&j.stop_fd);
out:
	buf_release(&j.args);
	free(j.file);
	free(j.dir);
	return ret;
}
