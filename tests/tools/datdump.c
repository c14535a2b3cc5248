// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints every record of a trace.dat as trace-cmd's own library reads it:
 *
 *	BUFFER cpu ns event: fields
 *
 * where BUFFER is "-" for the top buffer. Lost events are a line of their own
 * before the record that follows them. Exit status 1: the file cannot be read.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trace-cmd.h>

static const char usage[] = "usage: datdump [-c] [-p] [-P] FILE\n"
			    "  -c  one CPU after the other instead of by time\n"
			    "  -p  the task's pid after the cpu\n"
			    "  -P  with libtraceevent's plugins; without, the print format alone decides\n";

struct dump {
	const char *buffer;
	bool pid;
	struct trace_seq seq;
};

static void print_lost(const struct dump *d, const struct tep_record *r)
{
	printf("%s %d %llu ", d->buffer, r->cpu, r->ts);
	if (r->missed_events > 0)
		printf("[%lld events lost]\n", (long long)r->missed_events);
	else
		printf("[events lost]\n");
}

static int print_record(struct tracecmd_input *handle, struct tep_record *r, int cpu, void *ctx)
{
	struct tep_handle *tep = tracecmd_get_tep(handle);
	struct tep_event *event = tep_find_event_by_record(tep, r);
	struct dump *d = ctx;

	if (r->missed_events)
		print_lost(d, r);
	printf("%s %d ", d->buffer, r->cpu);
	if (d->pid)
		printf("%d ", tep_data_pid(tep, r));
	printf("%llu ", r->ts);
	if (!event) {
		printf("[unknown event %d, %d bytes]\n", tep_data_type(tep, r), r->size);
		return 0;
	}
	trace_seq_reset(&d->seq);
	tep_print_event(tep, &d->seq, r, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&d->seq);
	printf("%s: %s\n", event->name, d->seq.buffer);
	return 0;
}

static void dump_by_cpu(struct tracecmd_input *handle, struct dump *d)
{
	int cpus = tep_get_cpus(tracecmd_get_tep(handle));

	for (int cpu = 0; cpu < cpus; cpu++) {
		struct tep_record *r = tracecmd_read_cpu_first(handle, cpu);

		while (r) {
			print_record(handle, r, cpu, d);
			tracecmd_free_record(r);
			r = tracecmd_read_data(handle, cpu);
		}
	}
}

static void dump_buffer(struct tracecmd_input *handle, struct dump *d, bool by_cpu)
{
	if (by_cpu)
		dump_by_cpu(handle, d);
	else
		tracecmd_iterate_events(handle, NULL, 0, print_record, d);
}

static int dump_file(struct tracecmd_input *handle, struct dump *d, bool by_cpu)
{
	int ret = 0;

	d->buffer = "-";
	dump_buffer(handle, d, by_cpu);
	for (int i = 0; i < tracecmd_buffer_instances(handle); i++) {
		struct tracecmd_input *instance = tracecmd_buffer_instance_handle(handle, i);

		d->buffer = tracecmd_buffer_instance_name(handle, i);
		if (!instance) {
			fprintf(stderr, "datdump: cannot read buffer '%s'\n", d->buffer);
			ret = 1;
			continue;
		}
		dump_buffer(instance, d, by_cpu);
		tracecmd_close(instance);
	}
	return ret;
}

int main(int argc, char **argv)
{
	int flags = TRACECMD_FL_LOAD_NO_PLUGINS, c, ret;
	struct tracecmd_input *handle;
	struct dump d = { 0 };
	bool by_cpu = false;

	while ((c = getopt(argc, argv, "cpP")) != -1) {
		if (c == 'c')
			by_cpu = true;
		else if (c == 'p')
			d.pid = true;
		else if (c == 'P')
			flags = 0;
		else
			break;
	}
	if (c != -1 || optind != argc - 1) {
		fputs(usage, stderr);
		return 2;
	}
	handle = tracecmd_open(argv[optind], flags);
	if (!handle) {
		fprintf(stderr, "datdump: cannot read '%s'\n", argv[optind]);
		return 1;
	}
	trace_seq_init(&d.seq);
	ret = dump_file(handle, &d, by_cpu);
	trace_seq_destroy(&d.seq);
	tracecmd_close(handle);
	return ret;
}
