// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace adb: the static file runs on an Android phone, and what it recorded is fetched. */
#include "adb.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd.h"
#include "tracefs/grammar.h"
#include "util/outfile.h"
#include "util/visible.h"

#define STATIC_NAME "hyptrace-arm64"

struct adb_opts {
	const char *serial, *file, *dir;
	bool quiet;
};

/* One command on the phone. */
struct adb_job {
	struct adb adb;
	bool quiet;
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

static const struct opt adb_rows[] = {
	OPT('s', NULL, "SERIAL", "of the phone, where there are several", opts_set_text,
	    .off = offsetof(struct adb_opts, serial)),
	OPT(0, "file", "FILE", "the static file for the phone (" STATIC_NAME " beside this program)",
	    opts_set_text, .off = offsetof(struct adb_opts, file)),
	OPT(0, "dir", "DIR", "where to work on the phone (/data/local/tmp)", opts_set_text,
	    .off = offsetof(struct adb_opts, dir)),
	OPT('q', "quiet", NULL, "errors only, here and there", opts_set_flag,
	    .off = offsetof(struct adb_opts, quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table adb_table = {
	.command = "adb",
	.usage = "usage: hyptrace adb [OPTIONS] record [-o FILE] [OPTION...] [--] [COMMAND [ARG...]]\n"
		 "       hyptrace adb [OPTIONS] list|recover [OPTION...]\n"
		 "\n"
		 "Runs hyptrace on an Android phone, and fetches what it recorded into FILE.\n"
		 "\n",
	.rows = adb_rows,
	.n = ARRAY_SIZE(adb_rows),
	.in_order = true,
};

/* ---- the command's words ------------------------------------------------------------ */

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
	adb_quote(&j->args, opt_name(o, name));
	if (config)
		j->config = arg;
	if (o->arg)
		adb_quote(&j->args, config ? "../config" : arg);
	return 0;
}

static void adb_take_words(struct adb_job *j, char **words)
{
	for (; *words; words++)
		adb_quote(&j->args, *words);
}

static int adb_take_output(struct adb_job *j)
{
	const char *base = strrchr(j->output, '/') ? strrchr(j->output, '/') + 1 : j->output;

	if (!name_fits_file(base)) {
		log_err(j->log, "'%s' is no name for a recording", j->output);
		return -EINVAL;
	}
	snprintf(j->base, sizeof(j->base), "%s", base);
	return outfile_check(j->output, j->log);
}

/* The command line as `hyptrace record` here takes it or refuses it. 0, or what to exit with, +1. */
static int adb_take_record(struct adb_job *j, int argc, char **argv)
{
	struct opts_table table = grammar_table;
	char **copy = calloc((size_t)argc + 1, sizeof(*copy));
	struct record_plan plan = { 0 };
	struct opts_error err = { "out of memory" };
	int ret = copy ? 0 : -ENOMEM;

	if (copy)
		memcpy(copy, argv, (size_t)argc * sizeof(*copy));
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
		adb_quote(&j->args, "--");
	adb_take_words(j, argv + 1);
	ret = adb_take_output(j);
	return !ret ? 0 : 1 + (*j->base ? EXIT_FAILED : EXIT_USAGE);
}

/* ---- there -------------------------------------------------------------------------- */

/* The given one, or beside this program, or in the directory of libraries beside that. */
static char *adb_find_file(const char *given, const struct log *log)
{
	static const char *const places[] = { STATIC_NAME, "../lib/hyptrace/" STATIC_NAME };
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *path;

	if (given && !access(given, R_OK))
		return strdup(given);
	if (given) {
		log_err(log, "cannot read '%s': %s", given, strerror(errno));
		return NULL;
	}
	self[len > 0 ? len : 0] = 0;
	if (strrchr(self, '/'))
		*strrchr(self, '/') = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		path = str_printf("%s/%s", self, places[i]);
		if (path && !access(path, R_OK))
			return path;
		free(path);
	}
	log_err(log,
		"there is no " STATIC_NAME " beside this program: make it by 'make static', or name it with "
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

/* What the phone said of itself: uid, machine, directory. */
static int adb_take_phone(struct adb_job *j, const struct buf *said, const char *dir)
{
	struct strlist lines = { 0 };
	int ret = strlist_add_lines(&lines, said->data, said->len);

	for (size_t i = 0; i < lines.n; i++)
		lines.v[i][strcspn(lines.v[i], "\r")] = 0;
	if (ret)
		goto out;
	ret = -EPERM;
	if (lines.n < 2)
		log_err(j->log, "the phone's shell gives no answer");
	else if (strcmp(lines.v[0], "0"))
		log_err(j->log,
			"adb is user %s on the phone, and only root may trace: 'adb root' first, which "
			"userdebug "
			"and eng builds have",
			lines.v[0]);
	else if (strcmp(lines.v[1], "aarch64"))
		log_err(j->log, "the phone is '%s', and hyptrace for it is aarch64 (arm64)", lines.v[1]);
	else if (lines.n != 3 || strncmp(lines.v[2], dir, strlen(dir)) || !strstr(lines.v[2], "/hyptrace."))
		log_err(j->log, "cannot make a directory in '%s' on the phone", dir);
	else
		ret = (j->dir = strdup(lines.v[2])) ? 0 : -ENOMEM;
out:
	strlist_release(&lines);
	return ret;
}

static int adb_prepare(struct adb_job *j, const char *dir)
{
	struct buf line = { 0 }, said = { 0 };
	int ret;

	buf_addstr(&line, "id -u; uname -m; [ \"$(id -u) $(uname -m)\" != '0 aarch64' ] || mktemp -d");
	adb_quote(&line, dir);
	buf_addstr(&line, "/hyptrace.XXXXXX");
	ret = buf_str(&line) ? adb_shell(&j->adb, buf_str(&line), NULL, &said) : -ENOMEM;
	/* without an answer it is adb that failed, and has said so */
	ret = ret && (ret < 0 || !said.len) ? adb_unreached(j, ret) : adb_take_phone(j, &said, dir);
	buf_release(&line);
	buf_release(&said);
	return ret;
}

static int adb_push(struct adb_job *j, const char *from, const char *name)
{
	char *to = str_printf("%s/%s", j->dir, name);
	const char *words[] = { "push", from, to, NULL };
	struct buf said = { 0 }; /* how fast it was */
	int ret = to ? adb_run(&j->adb, words, NULL, &said) : -ENOMEM;

	if (ret > 0) {
		log_err(j->log, "adb cannot copy '%s' to the phone", from);
		ret = -EIO;
	}
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
	adb_quote(&line, j->dir);
	buf_addstr(&line, behind);
	ret = buf_str(&line) ? adb_shell(&j->adb, buf_str(&line), NULL, out) : -ENOMEM;
	buf_release(&line);
	return ret;
}

/* The directory of results is the recorder's own: its file goes by its name, guests' files beside it. */
static int adb_run_there(struct adb_job *j)
{
	struct buf line = { 0 }, stop = { 0 };
	int ret;

	buf_addstr(&line, "cd");
	adb_quote(&line, j->dir);
	buf_addstr(&line,
		   " && chmod 755 hyptrace && mkdir out && cd out && echo $$ >../pid && exec ../hyptrace");
	adb_quote(&line, j->command);
	if (*j->base) {
		buf_addstr(&line, " -o");
		adb_quote(&line, j->base);
	}
	buf_add(&line, j->args.data, j->args.len);
	buf_addstr(&stop, "cd");
	adb_quote(&stop, j->dir);
	buf_addstr(&stop, " && kill -INT \"$(cat pid)\"");
	ret = buf_str(&line) && buf_str(&stop) && !j->args.bad
		      ? adb_shell(&j->adb, buf_str(&line), buf_str(&stop), NULL)
		      : -ENOMEM;
	buf_release(&line);
	buf_release(&stop);
	return ret;
}

/* ---- back --------------------------------------------------------------------------- */

static int adb_fetch(struct adb_job *j, const char *name)
{
	size_t dir = strlen(j->output) - strlen(j->base);
	char *from = str_printf("%s/out/%s", j->dir, name);
	char *to = str_printf("%.*s%s", (int)dir, j->output, name);
	char *part = str_printf("%.*s%s.part", (int)dir, j->output, name);
	const char *words[] = { "pull", from, part, NULL };
	struct buf said = { 0 };
	int ret = from && to && part ? adb_run(&j->adb, words, NULL, &said) : -ENOMEM;

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

/* A finished file of the recording: not a spool ("NAME/", by ls -p), nor one that is not whole. */
static bool adb_is_file(const struct adb_job *j, const char *name)
{
	size_t stem = strlen(j->base), len = strlen(name);

	if (stem > 4 && !strcmp(j->base + stem - 4, ".dat"))
		stem -= 4;
	return name_fits_file(name) && !strncmp(name, j->base, stem) &&
	       (len < 5 || strcmp(name + len - 5, ".part"));
}

static int adb_fetch_all(struct adb_job *j)
{
	struct strlist names = { 0 };
	struct buf said = { 0 };
	int ret = adb_there(j, "cd", "/out && ls -p", &said);

	j->left = ret != 0;
	if (ret)
		ret = adb_unreached(j, ret);
	ret = ret ?: strlist_add_lines(&names, said.data, said.len);
	for (size_t i = 0; !ret && i < names.n; i++) {
		names.v[i][strcspn(names.v[i], "\r")] = 0;
		if (!adb_is_file(j, names.v[i]) || adb_fetch(j, names.v[i]))
			j->left = true;
		else
			j->fetched++;
	}
	strlist_release(&names);
	buf_release(&said);
	return ret ?: j->left ? -EIO : 0;
}

static void adb_leave(struct adb_job *j)
{
	if (j->dir && j->left)
		log_warn(j->log,
			 "what is not here is on the phone, in %s/out; 'hyptrace adb recover' finishes a "
			 "spool",
			 j->dir);
	else if (j->dir)
		adb_there(j, "rm -rf", "", NULL);
}

/* Returns what to exit with. */
static int adb_job_run(struct adb_job *j, const char *dir)
{
	int status, ret = adb_prepare(j, dir) ?: adb_push(j, j->file, "hyptrace");

	if (!ret && j->config)
		ret = adb_push(j, j->config, "config");
	status = ret ? 0 : adb_run_there(j);
	ret = ret ?: status < 0 ? status : 0;
	if (!ret && *j->base)
		ret = adb_fetch_all(j);
	if (!ret && !status && *j->base && !j->fetched) {
		log_err(j->log, "the phone has no recording, though it says that all went well");
		ret = -EIO;
	}
	adb_leave(j);
	return status > 0 ? status : ret ? EXIT_FAILED : EXIT_OK;
}

/* ---- the command -------------------------------------------------------------------- */

static int adb_take_command(struct adb_job *j, int argc, char **argv)
{
	j->command = argv[0];
	if (!strcmp(j->command, "record"))
		return adb_take_record(j, argc, argv);
	if (!strcmp(j->command, "list") || !strcmp(j->command, "recover")) {
		adb_take_words(j, argv + 1);
		return 0;
	}
	log_err(j->log, "'%s' is not run on the phone: record, list and recover are", j->command);
	return 1 + EXIT_USAGE;
}

int cmd_adb(int argc, char **argv)
{
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	struct adb_opts o = { .dir = "/data/local/tmp" };
	struct adb_job j = { .log = &log, .output = "trace.dat" };
	struct opts_error err;
	int ret = opts_parse(&adb_table, &argc, argv, &o, &err);

	if (ret)
		return command_stopped(&adb_table, ret, &err);
	if (argc < 2) {
		command_usage(&adb_table, stderr);
		return EXIT_USAGE;
	}
	j.quiet = console.quiet = o.quiet;
	if (o.quiet)
		adb_quote(&j.args, "-q");
	ret = adb_take_command(&j, argc - 1, argv + 1);
	if (ret) {
		ret--;
		goto out;
	}
	j.adb = (struct adb){ .serial = o.serial, .stop_fd = stop_signals(), .log = &log };
	j.file = adb_find_file(o.file, &log);
	ret = j.adb.stop_fd >= 0 && j.file ? adb_job_run(&j, o.dir) : EXIT_FAILED;
	fd_close(&j.adb.stop_fd);
out:
	buf_release(&j.args);
	free(j.file);
	free(j.dir);
	return ret;
}
