/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CTF_H
#define HYPTRACE_CTF_H

#include "export/export.h"

/*
 * CTF 1.8 traces below a directory, which is made, one for each machine, by babeltrace2's library and its
 * plugins: a stream for each CPU of each buffer, fields by the formats, lost events as discarded ones, all on
 * the host's clock. The timeline must be one that nothing was taken from. -ENOENT: a plugin is not installed;
 * -ENOMEM; -EIO: what babeltrace2 says, as the log does. There with HYPTRACE_CTF only.
 */
int export_ctf(struct export_job *job, const char *dir, const struct log *log);

#endif
