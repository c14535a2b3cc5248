/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_INPUTS_H
#define HYPTRACE_INPUTS_H

#include "read/tepfile.h"
#include "base/field.h"
#include "base/strings.h"

/*
 * The trace.dat files that are looked at together, each with what libtraceevent
 * needs to read its records, and which of them is whose guest.
 */
struct known_event {
	struct tep_event *event; /* NULL: no format has this id */
	struct field_load pid;	 /* common_pid */
	int least;		 /* bytes of a record that libtraceevent takes for granted */
	bool hyp;		 /* of the hypervisor's own events */
};

/* A host's thread, and the vCPU that it runs. */
struct vcpu_thread {
	uint32_t pid;
	const struct offset_guest *guest;
	const struct offset_vcpu *vcpu;
};

struct input {
	const char *path; /* the caller's */
	int fd;
	struct reader *reader;
	struct filetime time;
	struct tep_handle *tep;
	struct plugins *plugins;   /* NULL before inputs_load */
	size_t format_failures;	   /* formats that libtraceevent could not parse */
	struct field_load pid;	   /* common_pid of events that are not known */
	struct known_event *known; /* by id */
	size_t n_known;
	uint64_t trace_id; /* 0: none */
	char *machine;	   /* the guest's name, "host", or the NAME of "trace-NAME.dat" */
	bool guest;
	/* the guests that this file names, with the host threads of their vCPUs */
	struct offset_guest *guests;
	size_t n_guests;
	struct vcpu_thread *threads; /* for input_vcpu: by pid */
	size_t n_threads;
};

struct inputs {
	struct input *v;
	size_t n;
	uint64_t from, to; /* timelines have the records at from <= corrected time < to; to 0: all */
	/* places that were met as these were looked for, which timelines count, too; a guest's symbols */
	uint64_t damaged;
};

/*
 * In two steps: between them the caller may correct each input's time, and give its tep flags and handlers,
 * which come before the plugins and the formats that inputs_load adds. flags: FILETIME_*; paths must outlive
 * *all. -errno: the log says what is wrong with which file. *all must be released in any case, and stay where
 * it is once inputs_load has been successful: libtraceevent's plugins look there for the functions of guests.
 */
int inputs_open(struct inputs *all, char *const *paths, size_t n, unsigned int flags, const struct log *log);
int inputs_load(struct inputs *in, const struct log *log);
void inputs_release(struct inputs *in);
/*
 * Adds to paths the files of the guests that a host's file names (GUEST options) and that are not open:
 * regular files "trace-*.dat" next to "trace.dat", "trace-*.001.dat" next to "trace.001.dat", with the
 * guest's trace id. -ENOMEM; of a "trace-NAME.dat" that is there but cannot be read -errno, logged.
 */
int inputs_find_guests(const struct inputs *in, const struct input *host, struct strlist *paths,
		       const struct log *log);
/*
 * The time of day at a corrected time of an input, ns since 1970, as the file of its host has it: by
 * hyptrace's samples, else by stock's DATE. bound: in, of the time itself; out, of the time of day;
 * UINT64_MAX: unknown. False: the file does not say.
 */
bool inputs_utc(const struct inputs *all, const struct input *in, uint64_t ts, uint64_t *utc,
		uint64_t *bound);
/* Times of any of them are ticks that nothing converts (filetime_in_ticks). */
bool inputs_in_ticks(const struct inputs *in);
/* The event with this id; NULL: there is none. */
static inline const struct known_event *input_event(const struct input *in, unsigned int id)
{
	return id < in->n_known && in->known[id].event ? &in->known[id] : NULL;
}

/*
 * A table by input and event's id, with so many more places in each input: v[input][id], zeroed entries of
 * `size` bytes, of which one free() frees all. NULL: no memory.
 */
void *inputs_table(const struct inputs *in, size_t more, size_t size);

/* The vCPU that a host thread runs, by the file's GUEST options, and whose; NULL: none. */
const struct offset_vcpu *input_vcpu(const struct input *in, int64_t tid, const struct offset_guest **guest);
/* The host's GUEST option of that guest's file; NULL: it has none. */
const struct offset_guest *input_guest(const struct input *host, const struct input *guest);
/* Sets the host threads of these vCPUs of a guest, in place of those in its GUEST option. -ENOMEM. */
int input_set_vcpus(struct input *host, const struct input *guest, const struct offset_vcpu *vcpus, size_t n);
/* The file of a guest's host, by the ids in both; NULL: it is not among them. */
const struct input *inputs_host(const struct inputs *all, const struct input *guest);
/* The guest's file that is loaded, too, and which vCPU of it; NULL: none. */
const struct input *inputs_guest(const struct inputs *all, const struct input *host, int64_t tid,
				 const struct offset_vcpu **vcpu);

/* ---- ticks.c ---- */

/*
 * Gives each loaded input whose times are ticks a rate: its own estimate, or that of its host or guest, which
 * count alike. The log gets a line for each estimate, and for each file that stays in ticks. -ENOMEM.
 */
int inputs_convert_ticks(struct inputs *all, const struct log *log);

/* ---- part.c ---- */

/*
 * A part of the time of recordings, "FROM,TO": seconds as report prints them ("63.5"), "+2s" from the begin
 * and "-1s" from the end of all files together; an omitted one is the begin or the end. Units are
 * duration_units; a number without one is seconds, or ticks where the files' times are ticks.
 */
struct part_end {
	enum { PART_OPEN, PART_AT, PART_AFTER_BEGIN, PART_BEFORE_END } anchor;
	uint64_t ns, ticks; /* ticks: of a number without a unit */
	bool has_unit;
};

struct time_part {
	struct part_end from, to; /* zero-initialised: everything */
};

/* 0; -EINVAL: no "FROM,TO". */
int part_parse(const char *text, struct time_part *w);

/*
 * Times of the first and the last record of all files at from <= time < to (to 0: all), corrected; adds to
 * *damaged the damaged places that are met. -ENODATA: no records; -ENOMEM.
 */
int part_extent(const struct input *in, size_t n, uint64_t from, uint64_t to, uint64_t *first, uint64_t *last,
		uint64_t *damaged);
/* The same of one CPU, as numbered in the buffer's list: widens both. */
int part_extent_cpu(const struct input *in, size_t buffer, size_t cpu, uint64_t from, uint64_t to,
		    uint64_t *first, uint64_t *last, uint64_t *damaged);
/*
 * Sets the part of the inputs' time that their timelines read. Reads the files for their first and last
 * times. -EINVAL (logged): no record can lie in it; -ENOMEM.
 */
int part_resolve(const struct time_part *w, struct inputs *in, const struct log *log);

#endif
