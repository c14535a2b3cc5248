// SPDX-License-Identifier: LGPL-2.1-or-later
/* The processes of a recording: the recorder's own are hidden, those asked for traced, their maps kept. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "record/session/session-priv.h"
#include "base/files.h"

/*
 * Keeps the recorder's own work out of the trace. All its threads run by now: those that drain, and
 * those that sample clocks.
 */
int session_hide_recorder(struct session *s)
{
	struct buf list = { 0 };
	int ret;
	struct strlist names = { 0 };

	if (s->plan->no_filter)
		return 0;
	/* A pid a line, for set_event_notrace_pid. */
	ret = read_dir_at(AT_FDCWD, "/proc/self/task", &names);
	for (size_t i = 0; i < names.n; i++)
		buf_printf(&list, "%s\n", names.v[i]);
	strlist_release(&names);
	ret = ret ? ret : buf_str(&list) ? 0 : -ENOMEM;
	if (ret)
		log_err(s->log, "cannot list the recorder's threads: %s", errno_text(ret));
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		if (s->tracks[i].instance)
			ret = instance_hide_pids(s->tracks[i].instance, buf_str(&list));
	if (!ret && rotate_instance(s))
		ret = instance_hide_pids(rotate_instance(s), buf_str(&list));
	buf_release(&list);
	return ret;
}

int session_filter_pids(struct session *s)
{
	pid_t command = s->plan->filter_command && s->has_command ? s->command.pid : 0;
	int ret = 0;

	if (!s->plan->filter_command && !s->plan->pids.n)
		return 0;
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		if (s->tracks[i].instance)
			ret = instance_set_pids(s->tracks[i].instance, &s->plan->pids, command);
	return ret;
}

/* /proc/PID/NAME as text procNAME.PID, as long as there is such a process. */
static void keep_proc(struct session *s, const char *pid, const char *name)
{
	char path[64], key[64];
	struct buf text = { 0 };

	snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, name);
	snprintf(key, sizeof(key), "proc%s.%.20s", name, pid);
	if (!read_file(path, 16 << 20, &text) && text.len)
		spool_put_text(s->spool, key, text.data, text.len);
	buf_release(&text);
}

void session_keep_maps(struct session *s)
{
	for (size_t i = 0; i < s->procs.n; i++) {
		keep_proc(s, s->procs.v[i], "maps");
		keep_proc(s, s->procs.v[i], "comm");
	}
}

int session_choose_procs(struct session *s)
{
	struct buf list = { 0 };
	char command[24];
	int ret = 0;

	for (size_t i = 0; s->plan->proc_map && i < s->plan->pids.n && !ret; i++)
		ret = strlist_add(&s->procs, s->plan->pids.v[i]);
	snprintf(command, sizeof(command), "%d", (int)s->command.pid);
	if (!ret && s->plan->proc_map && s->has_command)
		ret = strlist_add(&s->procs, command);
	for (size_t i = 0; i < s->procs.n; i++)
		buf_printf(&list, "%s ", s->procs.v[i]);
	if (!ret && s->procs.n)
		ret = buf_str(&list) ? spool_set(s->spool, "procmaps", buf_str(&list)) : -ENOMEM;
	buf_release(&list);
	return ret;
}
