// SPDX-License-Identifier: LGPL-2.1-or-later
// Chains of causes, as hyptrace path finds them, of the longest waits: "why?" of a span, and the lines across the lanes.
"use strict";

const WAITS = /^(preempted|waking|halted|blocked|runnable|sleeping|stolen)$/;
const HANDLED = /^(hypervisor|firmware|host|VMM)$/;

// A time of an answer, seconds or ticks, as ns since the origin.
function answerTime(data, text) {
	return linkTime(data, String(text));
}

// The lane of a CPU: that of its tasks, else its vCPU's.
function laneOfCpu(data, machine, cpu) {
	return data.lanes.find((lane) => lane.kind === "cpu" && lane.machine === machine && lane.number === cpu)
		|| data.lanes.find((lane) => lane.kind === "vcpu" && lane.guest === machine && lane.number === cpu) || null;
}

// Chains with their causes as {lane, from, to, row, event}; row: path's own.
function readChains(data) {
	return data.cases.filter((one) => one.answer).map(function (chain) {
		const hops = chain.answer.path.map(function (row) {
			const machine = data.machines.findIndex((one) => one.name === row.machine);

			return {
				row, lane: laneOfCpu(data, machine, row.cpu), from: answerTime(data, row.from), to: answerTime(data, row.to),
				event: chain.answer.events.find((event) => event.hop === row.hop),
			};
		});

		return { ...chain, hops, end: chain.answer.end[0] };
	});
}

// The span of a lane that has most of from..to: {lane, i, common}; null: none has any of it, or there is no lane.
function spanWithMost(lane, from, to) {
	let best = null;

	for (let i = lane ? firstSpan(lane.spans, from) : 0; lane && i < lane.spans.n && lane.spans.from[i] < to; i++) {
		const common = Math.min(to, lane.spans.to[i]) - Math.max(from, lane.spans.from[i]);

		if (common > 0 && (!best || common > best.common))
			best = { lane, i, common };
	}
	return best;
}

// The thread or task that waits in a span: {machine, pid, from, to, state, lane}; null: nothing waits there.
function waiterOf(data, place) {
	const { lane, i } = place, spans = lane.spans, label = data.labels[spans.label[i]];
	const is = { from: spans.from[i], to: spans.to[i], state: label.state, machine: lane.machine, lane };

	if (label.state === "stolen") {
		// the span of the vCPU that runs this CPU of a guest
		const vcpu = spanWithMost(data.lanes.find((one) => one.kind === "vcpu" && one.guest === lane.machine && one.number === lane.number),
			is.from, is.to);

		return vcpu ? waiterOf(data, vcpu) : null;
	}
	if (!(lane.kind === "vcpu" && HANDLED.test(is.state)) && !WAITS.test(is.state))
		return null;
	return { ...is, pid: lane.kind === "task" ? lane.pid : lane.kind === "vcpu" ? lane.pid : label.pid };
}

// The chain of a wait, if the page has it.
function chainOf(data, waiter) {
	return data.chains.find((chain) => chain.machine === waiter.machine && chain.pid === waiter.pid
		&& chain.from <= waiter.from && waiter.to <= chain.to) || null;
}

// A word of a shell's command line.
function shellWord(word) {
	return /^[\w./:+-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

// Whether the page knows what a CPU of a guest ran at a time.
function ranThen(data, machine, cpu, time) {
	const lane = data.lanes.find((one) => one.kind === "cpu" && one.machine === machine && one.number === cpu);
	const i = lane ? firstSpan(lane.spans, time) : 0;

	return !!lane && i < lane.spans.n && lane.spans.from[i] <= time;
}

// The command that finds a wait's causes in the files. What an exit's handling kept waiting is the guest's task, if it is known.
function chainCommand(data, waiter) {
	const machine = data.machines[waiter.machine], files = data.machines.map((one) => shellWord(one.file)).join(" ");
	const { guest, number } = waiter.lane;
	const ofGuest = HANDLED.test(waiter.state) && guest !== null && ranThen(data, guest, number, waiter.to - 1);
	const task = ofGuest ? "--guest " + shellWord(data.machines[guest].name) + " --cpu " + number
		: (machine.guest ? "--guest " + shellWord(machine.name) + " " : "") + "--task " + waiter.pid;

	return "hyptrace path --at " + timeText(data, waiter.to - 1) + " " + task + " " + files;
}

// Fills the answer to "why?" below a span's facts. onHop(hop): a cause is clicked.
function showChain(data, waiter, parent, onHop) {
	const chain = chainOf(data, waiter), columns = [
		{ title: "cause", number: true }, { title: "took", number: true, text: (ns) => durationText(ns, data.ticks) },
		{ title: "bound", number: true, text: (ns) => durationText(ns, data.ticks) }, { title: "machine" }, { title: "CPU", number: true },
		{ title: "task" }, { title: "state" }, { title: "by" },
		{ title: "began with", text: (event) => event.event + ": " + event.text },
	];

	if (!chain) {
		parent.replaceChildren(element("p", HANDLED.test(waiter.state)
			? "Nothing waited for a CPU: its exit was handled, for the reason above. This command shows what it kept waiting:"
			: "The page has the chains of the longest waits of each state only. This command finds the causes of this one:"),
		element("code", chainCommand(data, waiter)));
		return null;
	}
	const row = (hop, i) => [i + 1, hop.to - hop.from, hop.row[data.ticks ? "bound_ticks" : "bound_ns"], hop.row.machine, hop.row.cpu,
		hop.row.task, hop.row.state, hop.row.by, hop.event];
	const table = makeTable(columns, chain.hops.map(row), (index) => onHop(chain.hops[index]));

	parent.replaceChildren(element("h3", "Why only then: the causes, the last one first"), table,
		element("p", "The chain ends (" + chain.end.end + "): " + chain.end.why + "."),
		...chain.answer.notes.map((note) => element("p", note)), element("code", chainCommand(data, waiter)));
	return chain;
}

// Draws a chain: a bar with its number for each cause, and a line to the next one's lane where it begins.
function drawChain(timeline, chain) {
	const c = timeline.context, lanes = timeline.lanes;
	const middle = (hop) => timeline.laneTop(lanes.indexOf(hop.lane)) + LANE / 2;
	let before = null;

	c.save();
	c.beginPath();
	c.rect(LEFT, RULER, timeline.plotWidth, timeline.height);
	c.clip();
	c.textAlign = "center";
	// with a rim, so that it is seen on any colour
	function stroke(path) {
		for (const [width, colour] of [[5, timeline.paper], [3, timeline.accent]]) {
			c.lineWidth = width;
			c.strokeStyle = colour;
			c.stroke(path);
		}
	}
	chain.hops.forEach(function (hop, i) {
		if (!hop.lane || lanes.indexOf(hop.lane) < 0)
			return;
		const x = timeline.x(hop.from), end = timeline.x(hop.to), y = middle(hop);

		const path = new Path2D();

		path.rect(x, y - LANE / 2 + 1.5, Math.max(2, end - x), LANE - 3);
		if (before) {
			path.moveTo(end, middle(before));
			path.lineTo(end, y);
		}
		stroke(path);
		if (end - x > 14) {
			c.fillStyle = timeline.accent;
			c.beginPath();
			c.arc(Math.max(x, LEFT) + 9, y, 8, 0, 2 * Math.PI);
			c.fill();
			c.fillStyle = timeline.paper;
			c.fillText(i + 1, Math.max(x, LEFT) + 9, y);
		}
		before = hop;
	});
	c.restore();
}
