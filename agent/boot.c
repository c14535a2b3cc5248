// SPDX-License-Identifier: GPL-2.0-only
/* Recordings from before the first request: by --early, or since the kernel's boot. */
#include "agent.h"

#define CMDLINE_MAX (64u << 10)
/* The clock that the hypervisor's events have too. */
#define EARLY_CLOCK "boot"

int agent_recover(struct agent *a, const char *journal)
{
	struct undo *u;
	struct stat st;
	int ret;

	/* it is believed: no other user may have written it */
	if (lstat(journal, &st) < 0 || file_distrust(&st))
		return 0;
	ret = undo_load(&u, ".", AT_FDCWD, journal, &a->log);
	if (ret == -EBUSY)
		return ret;
	if (!ret) {
		ret = undo_end(u, NULL);
		log_warn(&a->log, "put back what was changed before (%s)", ret ? "not all of it" : journal);
	}
	unlink(journal);
	return 0;
}

int agent_undo_open(struct agent *a, struct undo **u)
{
	int ret;

	/* of the recording before, which could not be put back */
	if (a->journal)
		agent_recover(a, a->journal);
	ret = undo_open(u, ".", AT_FDCWD, a->journal, &a->log);

	/* early there may be no place for it, or it may have gone with the initramfs */
	if (ret && ret != -EEXIST && a->journal) {
		log_warn(&a->log, "no journal: a kill -9 would leave tracefs as it is then");
		ret = undo_open(u, ".", AT_FDCWD, NULL, &a->log);
	}
	return ret;
}

void agent_undo_end(struct agent *a, struct undo *u)
{
	if (undo_end(u, a->journal))
		log_err(&a->log, "not everything in tracefs could be put back; %s",
			a->journal ? "it is tried again later" : "there is no journal");
}

static const char *early_file(const struct agent *a, char path[80], const char *name)
{
	snprintf(path, 80, "%s%s%s", a->own, *a->own ? "/" : "", name);
	return path;
}

int boot_early(struct agent *a, const char *events)
{
	char *copy = strdup(events), *rest = copy, *name, path[80];
	struct undo *u = NULL;
	int ret = copy ? agent_undo_open(a, &u) : -ENOMEM;

	if (ret)
		goto out;
	ret = *a->own ? undo_mkdir(u, a->own) : 0;
	if (ret && ret != -EEXIST) {
		log_err(&a->log, "--early: cannot make '%s': %s", a->own, strerror(-ret));
		goto out;
	}
	ret = undo_write(u, early_file(a, path, "trace_clock"), EARLY_CLOCK);
	if (ret)
		log_warn(&a->log, "--early: the clock is not changed: %s", strerror(-ret));
	ret = 0;
	while (!ret && (name = strsep(&rest, ","))) {
		if (*name)
			ret = undo_add(u, early_file(a, path, "set_event"),
				       strcmp(name, "all") ? name : "*:*");
		if (ret)
			log_err(&a->log, "--early %s: %s", name, strerror(-ret));
	}
	ret = ret ?: undo_write(u, early_file(a, path, "tracing_on"), "1");
out:
	free(copy);
	if (ret) {
		agent_undo_end(a, u);
		return ret;
	}
	a->boot.early = u;
	a->boot.top = true;
	log_info(&a->log, "recording %s until a recorder comes", events);
	return 0;
}

static const char *boot_value(const char *word, const char *key)
{
	size_t len = strlen(key);

	return strncmp(word, key, len) ? NULL : word + len;
}

/* Words of a kernel command line, or of /proc/bootconfig. */
static void boot_parse(struct boot *b, const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;

	/* a word of bootconfig has blanks around its '=' */
	while (rest && (word = strsep(&rest, " \n"))) {
		char *next = rest && *rest == '=' ? rest : NULL;
		const char *v;

		if (next && word + strlen(word) + 1 == next)
			word[strlen(word)] = ' ';
		/*
		 * As the kernel's Documentation/trace/boottrace.rst and kernel-parameters.txt
		 * name them; on the command line a '-' is as good as a '_'.
		 */
		if (boot_value(word, "trace_event=") || boot_value(word, "ftrace=") ||
		    boot_value(word, "kernel.trace_event ") || boot_value(word, "kernel.trace_event=") ||
		    boot_value(word, "ftrace.event.") || boot_value(word, "ftrace.events ") ||
		    boot_value(word, "ftrace.events="))
			b->top = true;
		v = boot_value(word, "trace_instance=") ?: boot_value(word, "ftrace.instance.");
		if (v) {
			char *name = strndup(v, strcspn(v, "^@,. =\""));

			/* "foo^traceoff@..,sched:*": the name of an instance. */
			if (name && *name && !strlist_has(&b->instances, name))
				strlist_add(&b->instances, name);
			free(name);
		}
	}
	free(copy);
}

void boot_find(struct agent *a)
{
	static const char *const files[] = { "cmdline", "bootconfig" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct buf text = { 0 };

		if (!read_file_at(a->proc_fd, files[i], CMDLINE_MAX, &text) && buf_str(&text))
			boot_parse(&a->boot, buf_str(&text));
		buf_release(&text);
	}
	/* with all switched off again it is over */
	a->boot.top = a->boot.top && instance_runs(AT_FDCWD, ".");
	if (a->boot.top)
		log_info(&a->log, "the kernel records since its boot: the first recorder gets it");
	for (size_t i = 0; i < a->boot.instances.n; i++)
		log_info(&a->log, "the buffer '%s' is from boot: the first recorder with -B %s gets it",
			 a->boot.instances.v[i], a->boot.instances.v[i]);
}

bool boot_holds(const struct agent *a, const char *buffer)
{
	return *buffer ? strlist_has(&a->boot.instances, buffer) : a->boot.top;
}

void boot_take(struct agent *a, const char *buffer)
{
	struct strlist *l = &a->boot.instances;

	a->boot.early = NULL;
	a->boot.top &= *buffer != 0;
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i], buffer))
			continue;
		free(l->v[i]);
		l->v[i] = l->v[--l->n];
		break;
	}
}

void boot_end_early(struct agent *a)
{
	if (!a->boot.early)
		return;
	agent_undo_end(a, a->boot.early);
	a->boot.early = NULL;
	a->boot.top = false;
}
