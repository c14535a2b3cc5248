// SPDX-License-Identifier: GPL-2.0-only
/*
 * A FAKE of a guest's agent, for tests of the recorder: it serves one recorder,
 * does what the scenario says, and ends.
 *
 *   fake-agent SCENARIO PATH|tcp LOG [CPUS [TRACE-ID]]
 *   fake-agent list                  "STEP NAME" of all
 *
 * PATH: a UNIX socket as VMMs have it, that takes CONNECT for all ports; tcp: on
 * 127.0.0.1. Lines in LOG: "listening PORT", "asked TRACE-ID: ARG|ARG...", "data"
 * (all CPUs are connected), "close", "gone".
 */
#include <sys/resource.h>

#include "fake-agent.h"

enum step { AT_ACCEPT, AT_CONNECT, AT_ANSWER, AT_METADATA, AT_PORTS, AT_DATA, AT_CLOSE, AT_END, NEVER };
enum next { GO_ON, HOLD, LEAVE };

/* At this step of the conversation `act` is done instead of what is right. */
struct scenario {
	const char *name;
	enum step at;
	enum next (*act)(struct agent *a);
	uint64_t n; /* for act */
};

/* Nothing more comes until the recorder has gone. */
static enum next hold(struct agent *a)
{
	char rest[4096];

	if (a->control >= 0)
		while (recv(a->control, rest, sizeof(rest), 0) > 0)
			;
	for (uint32_t i = 0; i < a->cpus; i++)
		if (a->data[i] >= 0)
			while (recv(a->data[i], rest, sizeof(rest), 0) > 0)
				;
	return LEAVE;
}

static void wait_close(struct agent *a)
{
	uint32_t h[3];

	if (get(a->control, h, sizeof(h)) && be32toh(h[1]) == CLOSE)
		say(a, "close");
}

static void right(struct agent *a, enum step at)
{
	switch (at) {
	case AT_ACCEPT:
		a->control = accept(a->listener, NULL, NULL);
		break;
	case AT_CONNECT:
		if (a->path && (read_connect(a->control) != 823 || !put(a->control, "OK 5\n", 5)))
			die("CONNECT 823");
		break;
	case AT_ANSWER:
		answer_as(a, a->cpus, PAGE);
		break;
	case AT_METADATA:
		send_metadata(a, SOUND);
		break;
	case AT_PORTS:
		take_data(a);
		break;
	case AT_DATA:
		send_pages(a, 0, PAGES);
		break;
	case AT_CLOSE:
		send_pages(a, PAGES, 1);
		close_data(a);
		break;
	default:
		message(a, CLOSE_RESP, "", 0);
		hold(a);
	}
}

/* ---- the wrong ways ------------------------------------------------------------------ */

static enum next never(struct agent *a)
{
	pause();
	return LEAVE;
}

static enum next leave(struct agent *a)
{
	return LEAVE;
}

/* A line instead of the answer to CONNECT. */
static enum next line(struct agent *a)
{
	static const char *const lines[] = { "", "ERR no such port\n", "OK", "\xff\xfe\n" };

	read_connect(a->control);
	put(a->control, lines[a->s->n], strlen(lines[a->s->n]));
	if (a->s->n == 2)
		for (int i = 0; i < 1000; i++)
			put(a->control, "OK OK OK", 8);
	return HOLD;
}

static enum next half_head(struct agent *a)
{
	put(a->control, "\0\0\0\x40\0\0", 6);
	return a->s->n ? LEAVE : HOLD;
}

static enum next bad_size(struct agent *a)
{
	head(a, (uint32_t)a->s->n, TRACE_RESP, 40);
	return HOLD;
}

static enum next bad_fixed(struct agent *a)
{
	head(a, 60, TRACE_RESP, (uint32_t)a->s->n);
	put(a->control, header_page, 48);
	return HOLD;
}

/* Well-formed, and not what it is time for. */
static enum next other(struct agent *a)
{
	message(a, (uint32_t)a->s->n, "1234567890123456789012345678901234567890", 40);
	return HOLD;
}

static enum next refuse(struct agent *a)
{
	const char *reason = a->s->n ? "no \x1b[31msuch\nevent" : "";

	message(a, NOT_SUPP, reason, strlen(reason));
	return HOLD;
}

static enum next bad_cpus(struct agent *a)
{
	answer_as(a, (uint32_t)a->s->n, PAGE);
	return HOLD;
}

static enum next bad_page(struct agent *a)
{
	answer_as(a, a->cpus, (uint32_t)a->s->n);
	return HOLD;
}

static enum next bad_ports(struct agent *a)
{
	static const struct {
		const char *text;
		size_t n;
	} ports[] = {
		{ "", 0 },
		{ "1", 2 },
		{ "one\0two", 8 },
		{ "1000\0"
		  "1001",
		  9 },
		{ "-1\0"
		  "99999999999",
		  15 },
	};

	answer_with(a, a->cpus, PAGE, ports[a->s->n].text, ports[a->s->n].n);
	return HOLD;
}

/* 1024 CPUs, all at one port whose backlog takes some; more than there may be descriptors. */
static enum next many_cpus(struct agent *a)
{
	struct rlimit many = { 4096, 4096 };
	char ports[2048];

	setrlimit(RLIMIT_NOFILE, &many);
	for (int i = 0; i < 1024; i++)
		memcpy(ports + 2 * i, "9", 2);
	answer_with(a, 1024, PAGE, ports, sizeof(ports));
	send_metadata(a, SOUND);
	for (int fd; (fd = accept(a->listener, NULL, NULL)) >= 0;)
		put(fd, "OK 1\n", 5);
	return LEAVE;
}

static enum next flawed(struct agent *a)
{
	send_metadata(a, (enum flaw)a->s->n);
	return a->s->n < BENT ? GO_ON : HOLD;
}

/* Half of it, and then nothing: silent (0), gone (1), or gone after all but the end of it (2). */
static enum next unfinished(struct agent *a)
{
	struct bytes b = metadata(a->trace_id, a->cpus, SOUND);

	if (a->s->n < 2)
		b.n /= 2;
	send_part(a, &b);
	drop(&b);
	return a->s->n ? LEAVE : HOLD;
}

#define STEPS 16 /* of a peer that is slow */

static void nap(void)
{
	usleep(20000);
}

/* ---- waiting for the host -------------------------------------------------------------- */

/* Whether a file of the host's (fake) tracefs begins so. */
static bool shows(const char *file, const char *text)
{
	char path[512], got[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", getenv("HYPTRACE_TRACING_DIR"), file);
	f = fopen(path, "r");
	if (!f || !fgets(got, sizeof(got), f))
		got[0] = 0;
	if (f)
		fclose(f);
	return !strncmp(got, text, strlen(text));
}

/* The data is only taken once the host traces: its clock was set after it was switched off. */
static enum next data_after_host(struct agent *a)
{
	while (!shows("trace_clock", "boot") || !shows("tracing_on", "1"))
		nap();
	right(a, AT_PORTS);
	return GO_ON;
}

/* The rest of the metadata comes once the hypervisor is traced. */
static enum next rest_after_hyp(struct agent *a)
{
	struct bytes b = metadata(a->trace_id, a->cpus, SOUND), rest = { b.p + b.n / 2, b.n - b.n / 2 };

	b.n /= 2;
	send_part(a, &b);
	while (!shows("hypervisor/tracing_on", "1"))
		nap();
	send_part(a, &rest);
	message(a, FIN_DATA, "", 0);
	drop(&b);
	return GO_ON;
}

/* For ever: as much as goes (8180), or a byte now and then, which no pause ends (1). */
static enum next endless(struct agent *a)
{
	static const char zeros[8180];

	while (message(a, SEND_DATA, zeros, a->s->n))
		if (a->s->n == 1)
			nap();
	return LEAVE;
}

/* A message of bytes that come one by one: its end does not (0), or after so many ms. */
static enum next trickle(struct agent *a)
{
	static const char size[4] = { 0, 0, 0x20, 0 }; /* 8192, and zeros */
	struct bytes b = metadata(a->trace_id, a->cpus, SOUND), rest = b;
	uint32_t h[3] = { htobe32(12 + STEPS), htobe32(SEND_DATA), 0 };

	for (size_t i = 0; !a->s->n && put(a->control, &size[i < 3 ? i : 3], 1); i++)
		usleep(200000);
	if (!a->s->n)
		return LEAVE;
	put(a->control, h, sizeof(h));
	for (int i = 0; i < STEPS; i++) {
		usleep((useconds_t)a->s->n * 1000 / STEPS);
		put(a->control, b.p + i, 1);
	}
	rest.p += STEPS;
	rest.n -= STEPS;
	send_part(a, &rest);
	message(a, FIN_DATA, "", 0);
	drop(&b);
	return GO_ON;
}

/* The pages of its last CPU come one by one, after the others' are at an end. */
static enum next slow_end(struct agent *a)
{
	uint8_t page[PAGE];

	for (uint32_t cpu = 0; cpu < a->cpus; cpu++) {
		make_page(page, PAGES * EVENTS, PAGES);
		for (int i = 0; cpu == a->cpus - 1 && i < STEPS; i++) {
			usleep((useconds_t)a->s->n * 1000 / STEPS);
			put(a->data[cpu], page + i * PAGE / STEPS, PAGE / STEPS);
		}
		if (cpu < a->cpus - 1)
			put(a->data[cpu], page, PAGE);
	}
	close_data(a);
	return GO_ON;
}

/* By the time its ports are told nobody listens there. */
static enum next nobody(struct agent *a)
{
	if (a->path)
		close(a->listener);
	for (uint32_t i = 0; !a->path && i < a->cpus; i++)
		close(a->data_listeners[i]);
	right(a, AT_ANSWER);
	right(a, AT_METADATA);
	return HOLD;
}

/* The data is never accepted (0), or CONNECT gets no answer (1). */
static enum next no_data(struct agent *a)
{
	for (int fd; a->s->n && (fd = accept(a->listener, NULL, NULL)) >= 0;)
		read_connect(fd);
	return HOLD;
}

/* In mid-capture: all goes (0), all but the data (1), all but the control (2), one CPU's data (3).
 */
static enum next lose(struct agent *a)
{
	send_pages(a, 0, PAGES / 2);
	if (!a->s->n)
		return LEAVE;
	if (a->s->n == 1) {
		close(a->control);
		a->control = -1;
	} else if (a->s->n == 2) {
		close_data(a);
	} else {
		close(a->data[0]);
		a->data[0] = -1;
	}
	return HOLD;
}

/* It cannot be told to stop, and sends on for ever, as a guest does that was paused just then. */
static enum next deaf(struct agent *a)
{
	uint8_t page[PAGE];

	right(a, AT_DATA);
	close(a->control);
	a->control = -1;
	make_page(page, 0, 0);
	while (put(a->data[0], page, PAGE))
		nap();
	return LEAVE;
}

/* As trace-cmd's does for a CPU that was never online: its data ends before it began. */
static enum next offline(struct agent *a)
{
	close(a->data[1]);
	a->data[1] = -1;
	right(a, AT_DATA);
	return GO_ON;
}

/* Instead of pages: noise (0), pages whose size cannot be (1), last events that reach beyond (2). */
static enum next bad_pages(struct agent *a)
{
	uint8_t page[PAGE];

	srand(1);
	for (uint32_t i = 0; i < PAGES; i++) {
		make_page(page, 0, i);
		for (uint32_t at = 0; !a->s->n && at < PAGE; at++)
			page[at] = (uint8_t)rand();
		if (a->s->n == 1)
			memset(page + 8, 0x7f, 2);
		if (a->s->n == 2)
			page[16 + (EVENTS - 1) * 16] |= 0x1c;
		put(a->data[0], page, PAGE);
	}
	return GO_ON;
}

static enum next partial(struct agent *a)
{
	for (uint32_t i = 0; i < a->cpus; i++)
		put(a->data[i], header_page, 150);
	close_data(a);
	return GO_ON;
}

static enum next noise(struct agent *a)
{
	put(a->control, header_page, sizeof(header_page));
	send_pages(a, 0, PAGES);
	return GO_ON;
}

/* After CLOSE: pages for ever (0; not all that goes), a byte now and then (1), or all that goes (2). */
static enum next no_end(struct agent *a)
{
	uint8_t page[PAGE];

	make_page(page, 0, PAGES);
	for (uint32_t i = 0; put(a->data[0], page, a->s->n == 1 ? 1 : PAGE); i++)
		if (a->s->n == 1 || (!a->s->n && i % 32 == 31))
			nap();
	return LEAVE;
}

/* What our agent says in the end: as it was (0), one page too many (1), half of it (2). */
static enum next tell(struct agent *a)
{
	struct {
		char mark[8];
		uint64_t started;
		uint64_t cpus[CPUS_MAX][2]; /* bytes, lost */
	} t = { .started = 0 };

	memcpy(t.mark, "hyptrace", sizeof(t.mark));
	for (uint32_t i = 0; i < a->cpus; i++)
		t.cpus[i][0] = htobe64((PAGES + 1 + (a->s->n == 1)) * PAGE);
	t.cpus[0][1] = htobe64(7);
	message(a, CLOSE_RESP, (const char *)&t, 16 + a->cpus * 16 - (a->s->n == 2 ? 8 : 0));
	return HOLD;
}

static const struct scenario scenarios[] = {
	{ "good", NEVER, hold, 0 },
	{ "good-v6", AT_METADATA, flawed, V6 },
	{ "good-zipped", AT_METADATA, flawed, ZIPPED },
	{ "good-slow-formats", AT_METADATA, trickle, 6400 },
	{ "good-slow-end", AT_CLOSE, slow_end, 6400 },
	{ "good-data-after-host", AT_PORTS, data_after_host, 0 },
	{ "good-rest-after-hyp", AT_METADATA, rest_after_hyp, 0 },
	{ "never-accepts", AT_ACCEPT, never, 0 },
	{ "accept-close", AT_CONNECT, leave, 0 },
	{ "connect-silent", AT_CONNECT, line, 0 },
	{ "connect-refused", AT_CONNECT, line, 1 },
	{ "connect-long", AT_CONNECT, line, 2 },
	{ "connect-noise", AT_CONNECT, line, 3 },
	{ "silent", AT_ANSWER, hold, 0 },
	{ "request-close", AT_ANSWER, leave, 0 },
	{ "head-half", AT_ANSWER, half_head, 0 },
	{ "head-half-close", AT_ANSWER, half_head, 1 },
	{ "size-0", AT_ANSWER, bad_size, 0 },
	{ "size-11", AT_ANSWER, bad_size, 11 },
	{ "size-8193", AT_ANSWER, bad_size, 8193 },
	{ "size-max", AT_ANSWER, bad_size, UINT32_MAX },
	{ "size-trickle", AT_ANSWER, trickle, 0 },
	{ "size-stall", AT_ANSWER, bad_size, 8192 },
	{ "fixed-beyond", AT_ANSWER, bad_fixed, 49 },
	{ "fixed-max", AT_ANSWER, bad_fixed, UINT32_MAX },
	{ "fixed-short", AT_ANSWER, bad_fixed, 8 },
	{ "other-data", AT_ANSWER, other, SEND_DATA },
	{ "other-fin", AT_ANSWER, other, FIN_DATA },
	{ "other-close", AT_ANSWER, other, CLOSE_RESP },
	{ "other-unknown", AT_ANSWER, other, 4711 },
	{ "refused", AT_ANSWER, refuse, 0 },
	{ "refused-why", AT_ANSWER, refuse, 1 },
	{ "cpus-0", AT_ANSWER, bad_cpus, 0 },
	{ "cpus-more", AT_ANSWER, bad_cpus, 3 },
	{ "cpus-max", AT_ANSWER, bad_cpus, 0x80000000 },
	{ "cpus-1024", AT_ANSWER, many_cpus, 0 },
	{ "page-0", AT_ANSWER, bad_page, 0 },
	{ "page-3", AT_ANSWER, bad_page, 3 },
	{ "page-512", AT_ANSWER, bad_page, 512 },
	{ "page-max", AT_ANSWER, bad_page, 0x80000000 },
	{ "ports-none", AT_ANSWER, bad_ports, 0 },
	{ "ports-short", AT_ANSWER, bad_ports, 1 },
	{ "ports-words", AT_ANSWER, bad_ports, 2 },
	{ "ports-no-end", AT_ANSWER, bad_ports, 3 },
	{ "ports-range", AT_ANSWER, bad_ports, 4 },
	{ "metadata-close", AT_METADATA, leave, 0 },
	{ "metadata-half", AT_METADATA, unfinished, 1 },
	{ "metadata-no-fin", AT_METADATA, unfinished, 2 },
	{ "metadata-stall", AT_METADATA, unfinished, 0 },
	{ "metadata-endless", AT_METADATA, endless, 8180 },
	{ "metadata-dribble", AT_METADATA, endless, 1 },
	{ "metadata-other", AT_METADATA, other, TRACE_RESP },
	{ "metadata-empty", AT_METADATA, other, FIN_DATA },
	{ "metadata-noise", AT_METADATA, flawed, GARBAGE },
	{ "metadata-no-dat", AT_METADATA, flawed, NO_DAT },
	{ "metadata-cut", AT_METADATA, flawed, CUT },
	{ "metadata-bent", AT_METADATA, flawed, BENT },
	{ "metadata-bomb", AT_METADATA, flawed, BOMB },
	{ "metadata-no-headers", AT_METADATA, flawed, NO_HEADERS },
	{ "metadata-formats", AT_METADATA, flawed, NO_FORMATS_END },
	{ "metadata-ring", AT_METADATA, flawed, RING },
	{ "metadata-system", AT_METADATA, flawed, BAD_SYSTEM },
	{ "metadata-option", AT_METADATA, flawed, OWN_OPTION },
	{ "print-elvis", AT_METADATA, flawed, PRINT_ELVIS },
	{ "print-calls", AT_METADATA, flawed, PRINT_CALLS },
	{ "print-fields", AT_METADATA, flawed, PRINT_FIELDS },
	{ "ports-close", AT_PORTS, leave, 0 },
	{ "data-nobody", AT_ANSWER, nobody, 0 },
	{ "data-never", AT_PORTS, no_data, 0 },
	{ "data-silent", AT_PORTS, no_data, 1 },
	{ "data-close", AT_DATA, leave, 0 },
	{ "lost-all", AT_DATA, lose, 0 },
	{ "lost-control", AT_DATA, lose, 1 },
	{ "lost-data", AT_DATA, lose, 2 },
	{ "lost-control-endless", AT_DATA, deaf, 0 },
	{ "lost-cpu", AT_DATA, lose, 3 },
	{ "cpu-offline", AT_DATA, offline, 0 },
	{ "pages-noise", AT_DATA, bad_pages, 0 },
	{ "pages-commit", AT_DATA, bad_pages, 1 },
	{ "pages-events", AT_DATA, bad_pages, 2 },
	{ "control-noise", AT_DATA, noise, 0 },
	{ "close-gone", AT_CLOSE, leave, 0 },
	{ "close-stall", AT_CLOSE, hold, 0 },
	{ "close-endless", AT_CLOSE, no_end, 0 },
	{ "close-dribble", AT_CLOSE, no_end, 1 },
	{ "close-flood", AT_CLOSE, no_end, 2 },
	{ "page-part", AT_CLOSE, partial, 0 },
	{ "no-close-resp", AT_END, leave, 0 },
	{ "never-close-resp", AT_END, hold, 0 },
	{ "tells", AT_END, tell, 0 },
	{ "tells-more", AT_END, tell, 1 },
	{ "tells-half", AT_END, tell, 2 },
};

/* ---- one recorder ------------------------------------------------------------------- */

static void converse(struct agent *a)
{
	for (enum step at = AT_ACCEPT; at < NEVER; at++) {
		enum next next = GO_ON;

		if (at == AT_ANSWER && !take_request(a))
			return;
		if (at == AT_CLOSE)
			wait_close(a);
		if (at == a->s->at)
			next = a->s->act(a);
		else
			right(a, at);
		if (next == HOLD)
			hold(a);
		if (next != GO_ON)
			return;
	}
}

static void serve(struct agent *a, const char *log)
{
	uint32_t port = 0;

	a->log = fopen(log, "w");
	if (!a->log)
		die(log);
	a->listener = a->path ? listen_unix(a->path) : listen_tcp(&port);
	for (uint32_t i = 0; i < a->cpus; i++) {
		a->ports[i] = 1000 + i;
		a->data[i] = -1;
		if (!a->path)
			a->data_listeners[i] = listen_tcp(&a->ports[i]);
	}
	say(a, "listening %u", port);
	converse(a);
	close_data(a);
	close(a->control);
	say(a, "gone");
}

int main(int argc, char **argv)
{
	struct agent a = { .control = -1, .cpus = 2, .trace_id = 0x1122334455667788 };
	size_t n = sizeof(scenarios) / sizeof(*scenarios);

	alarm(120); /* a test that hangs leaves none behind */
	for (size_t i = 0; argc == 2 && i < n; i++)
		printf("%d %s\n", scenarios[i].at, scenarios[i].name);
	if (argc == 2)
		return 0;
	for (size_t i = 0; argc >= 4 && i < n; i++)
		if (!strcmp(argv[1], scenarios[i].name))
			a.s = &scenarios[i];
	if (!a.s) {
		fprintf(stderr, "usage: fake-agent SCENARIO PATH|tcp LOG [CPUS [TRACE-ID]]\n");
		return 2;
	}
	a.path = strcmp(argv[2], "tcp") ? argv[2] : NULL;
	if (argc > 4 && atoi(argv[4]) > 0 && atoi(argv[4]) <= CPUS_MAX)
		a.cpus = (uint32_t)atoi(argv[4]);
	if (argc > 5)
		a.trace_id = strtoull(argv[5], NULL, 0);
	serve(&a, argv[3]);
	return 0;
}
