// SPDX-License-Identifier: LGPL-2.1-or-later
// Events as hyptrace report prints them: the first and the last ones of the longest cases.
"use strict";

// By machine and CPU: lists in the order of time, without those that two cases have.
function readEvents(data) {
	const byCpu = new Map();

	for (const [machine, cpu, at, bound, name, text] of data.cases.flatMap((one) => one.events)) {
		const key = machine + " " + cpu;

		if (!byCpu.has(key))
			byCpu.set(key, new Map());
		byCpu.get(key).set([at, name, text].join("\n"), { machine, cpu, at, bound: bound - 1, name, text });
	}
	for (const [key, events] of byCpu)
		byCpu.set(key, [...events.values()].sort((a, b) => a.at - b.at));
	return byCpu;
}

// Index of the first event at that time or later.
function firstEvent(events, time) {
	return firstReached(events.length, (i) => events[i].at >= time);
}

function eventsOfCpu(data, machine, cpu, from, to) {
	const events = data.byCpu.get(machine + " " + cpu) || [];

	return events.slice(firstEvent(events, from), firstEvent(events, to + 1));
}

// Events of a lane: its CPU's; of a vCPU's lane its guest's.
function eventsOfLane(data, lane, from, to) {
	if (lane.kind === "cpu" || lane.kind === "hyp")
		return eventsOfCpu(data, lane.machine, lane.number, from, to);
	return lane.kind === "vcpu" && lane.guest !== null ? eventsOfCpu(data, lane.guest, lane.number, from, to) : [];
}

// Events in a span: those of its lane, and of the CPU that its vCPU's thread is on.
function eventsOfSpan(data, place) {
	const { lane, i } = place, spans = lane.spans, from = spans.from[i], to = spans.to[i];
	const thread = lane.kind === "vcpu" && spans.cpu[i] >= 0 ? eventsOfCpu(data, lane.machine, spans.cpu[i], from, to) : [];

	return [...eventsOfLane(data, lane, from, to), ...thread].sort((a, b) => a.at - b.at);
}

// Pairs of a fact's name and its text.
function eventFacts(data, event) {
	return [
		["event", event.name], ["text", event.text], ["machine", data.machines[event.machine].name], ["CPU", String(event.cpu)],
		["time", timeText(data, event.at)], ["error of the time", boundText(data, event.bound)],
	];
}

// The event that is drawn at a place of a lane; null: none.
function eventAt(timeline, lane, x, y, top) {
	const near = timeline.time(x + 3) - timeline.time(x), time = timeline.time(x);

	if (!lane || y > top + EVENT_HEIGHT + 2)
		return null;
	return eventsOfLane(timeline.data, lane, time - near, time + near)
		.sort((a, b) => Math.abs(a.at - time) - Math.abs(b.at - time))[0] || null;
}

const EVENT_HEIGHT = 6;

// Triangles at the top of a lane, where they lie apart.
function drawEvents(timeline, lane, top) {
	const events = eventsOfLane(timeline.data, lane, timeline.from, timeline.to), c = timeline.context;

	c.fillStyle = timeline.ink;
	c.strokeStyle = timeline.paper;
	if (events.length > timeline.plotWidth / 8)
		return;
	for (const event of events) {
		const x = timeline.x(event.at);

		c.beginPath();
		c.moveTo(x - 4, top);
		c.lineTo(x + 4, top);
		c.lineTo(x, top + EVENT_HEIGHT);
		c.closePath();
		c.fill();
		c.stroke();
	}
}

// The table of events in a span, which says what is left out. onEvent(event): one is clicked.
function eventTable(data, place, onEvent) {
	const events = eventsOfSpan(data, place);
	const columns = [{ title: "time" }, { title: "CPU" }, { title: "event" }, { title: "text" }];
	const box = element("details");

	box.append(element("summary", events.length ? events.length + " events" : "No events of this span"),
		element("p", "The page has the first and the last 12 events of the 16 longest cases of each state. This command shows all events:"),
		element("code", reportCommand(data, place)));
	if (events.length)
		box.append(makeTable(columns, events.map((one) => [timeText(data, one.at), data.machines[one.machine].name + " " + one.cpu, one.name, one.text]),
			(index) => onEvent(events[index])));
	box.open = events.length > 0;
	return box;
}

// The command that prints all events of a span's time.
function reportCommand(data, place) {
	const { lane, i } = place;

	return "hyptrace report --time " + timeText(data, lane.spans.from[i]) + "," + timeText(data, lane.spans.to[i]) + " "
		+ data.machines.map((one) => shellWord(one.file)).join(" ");
}
