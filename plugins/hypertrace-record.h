/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYPERTRACE_RECORD_H
#define HYPTRACE_HYPERTRACE_RECORD_H

#include "decode/hypertrace.h"
#include "plugin.h"

/*
 * A record of an event guest_hypertrace of any system: fields arg1, arg2, ... or an
 * array args of 64-bit numbers, and cpu and client where there are such. False: the
 * format has no arguments. v->bad: the record is shorter than its format.
 */
bool hypertrace_record(struct view *v, struct hypertrace_event *e);

#endif
