/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands, one row each, in the order of `hyptrace -h`. COMMAND(NAME, ...): a file of cmd/ has
 * cmd_NAME() and its options NAME_table; the rest are members of struct command_row. Included by cmd.h and
 * hyptrace.c. FILES of a hint stands for what the command read, or for the argument of the option that it
 * follows.
 */
COMMAND(adb, .summary = "record on an Android phone, from this machine",
	.hint = "hyptrace adb record -- sleep 10")
COMMAND(cut, .summary = "write a part of a recording's time, or pieces of it, as trace.dat files",
	.ends = true, .after = { { "output", "hyptrace report FILES" } })
COMMAND(diff, .summary = "compare two recordings, and separate differences from noise",
	.hint = "hyptrace stat --show longest FILE, of either", .pages = true, .ends = true)
COMMAND(doctor, .summary = "show what can be recorded here, and the commands that fix the rest",
	.pages = true)
COMMAND(export, .summary = "turn recordings into Perfetto or CTF traces, or lines of JSON", .ends = true,
	.after = { { "perfetto", "open FILES in https://ui.perfetto.dev" },
		   { "ctf", "babeltrace2 FILES" },
		   { "parquet", "tables of FILES: Documentation/fleet.md has queries" } })
COMMAND(flame, .summary = "fold stacks of host, hypervisor and guests, and draw them",
	.hint = "hyptrace flame --svg flame.svg FILES", .keeps = "states spans diff", .pages = true,
	.ends = true, .after = { { "svg", "open FILES in a browser" } })
COMMAND(import, .summary = "add a capture of the hypervisor's trace_pipe to a trace.dat",
	.after = { { "output", "hyptrace report FILES" } })
COMMAND(latency, .summary = "measure the time from one event to the next",
	.hint = "hyptrace path --at SECONDS --cpu CPU FILES, of a row of --worst 5", .pages = true,
	.ends = true)
COMMAND(list, .summary = "show the machine's guests, trace buffers and events", .takes = list_takes,
	.live = true, .hint = "hyptrace doctor", .pages = true)
COMMAND(merge, .summary = "join pieces of a recording, from cut or record --rotate", .ends = true,
	.after = { { "output", "hyptrace report FILES" } })
COMMAND(path, .summary = "show why a task ran so late: causes back across guest and host",
	.hint = "hyptrace report FILES, around these times", .pages = true, .ends = true)
COMMAND(record, .summary = "record the hypervisor, the host and instances into a trace.dat",
	.takes = record_takes, .live = true, .hint = "hyptrace view FILES")
COMMAND(recover, .summary = "finish what a killed recorder left behind", .hint = "hyptrace report FILES",
	.after = { { "output", "hyptrace report FILES" } })
COMMAND(report, .summary = "print recordings as text, in the order of time", .takes = report_takes,
	.hint = "hyptrace stat FILES", .pages = true, .ends = true)
COMMAND(sql, .summary = "answer queries in SQL over recordings",
	.hint = "hyptrace-sql(1) has the tables; .schema on standard input, too", .pages = true, .ends = true)
COMMAND(stat, .summary = "count events, and add up exits and the hypervisor's time", .takes = stat_takes,
	.hint = "hyptrace path --at SECONDS --cpu CPU FILES, of a row of --show longest", .pages = true,
	.ends = true)
COMMAND(sync, .summary = "compute the guests' clock offsets, with a bound on each",
	.hint = "hyptrace sync --write FILES", .pages = true,
	.after = { { "write", "hyptrace report FILES" } })
COMMAND(top, .summary = "show exits and where the time goes while a recording runs",
	.hint = "hyptrace stat FILES", .ends = true)
COMMAND(view, .summary = "write recordings as one HTML page with a timeline and tables",
	.hint = "open trace.html in a browser", .ends = true,
	.after = { { "output", "open FILES in a browser" } })
COMMAND(watch, .summary = "count all the time who steals from which vCPU, without recording", .live = true,
	.hint = "hyptrace record -e kvm -e sched -- sleep 10, to see why")
COMMAND(why, .summary = "find the causes of a slow tail, or what took most time",
	.hint = "hyptrace why --preset wakeup FILES, or irq, timer, virtio: the causes of slow ones",
	.pages = true, .ends = true,
	.after = { { "from", "hyptrace path --at SECONDS --cpu CPU FILES, or the command of an example" },
		   { "preset", "hyptrace path --at SECONDS --cpu CPU FILES, or the command of an example" } })
