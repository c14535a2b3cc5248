// SPDX-License-Identifier: LGPL-2.1-or-later
// Lanes of guests' tasks: the waits of a task, and between them what it ran, which the CPUs' lanes have.
"use strict";

// Spans of several lanes as those of one. from: pairs of a lane's spans and an index.
function joinedSpans(places) {
	const n = places.length, spans = {
		n, from: new Float64Array(n), to: new Float64Array(n), reach: new Float64Array(n), label: new Uint32Array(n),
		fromBound: new Float64Array(n), toBound: new Float64Array(n), cpu: new Int32Array(n),
	};

	places.sort((a, b) => a[0].from[a[1]] - b[0].from[b[1]]);
	places.forEach(function ([of, i], at) {
		for (const column of ["from", "to", "label", "fromBound", "toBound", "cpu"])
			spans[column][at] = of[column][i];
		spans.reach[at] = Math.max(of.to[i], at ? spans.reach[at - 1] : 0);
	});
	return spans;
}

// Lanes of all tasks of a guest, those that ran longest first.
function taskLanes(data, machine) {
	const byTask = new Map(), ran = new Map();

	for (const lane of data.lanes)
		if (lane.machine === machine && (lane.kind === "task" || lane.kind === "cpu"))
			for (let i = 0; i < lane.spans.n; i++) {
				const label = data.labels[lane.spans.label[i]], pid = label.pid;

				if (!byTask.has(pid))
					byTask.set(pid, []);
				byTask.get(pid).push([lane.spans, i]);
				if (label.state === "running")
					ran.set(pid, (ran.get(pid) || 0) + lane.spans.to[i] - lane.spans.from[i]);
			}
	return data.lanes.filter((lane) => lane.kind === "task" && lane.machine === machine)
		.sort((a, b) => (ran.get(b.pid) || 0) - (ran.get(a.pid) || 0))
		.map((lane) => ({ ...lane, title: "    " + lane.task, spans: joinedSpans(byTask.get(lane.pid) || []) }));
}

// Lanes to show: all but those of tasks; of unfolded guests their tasks, too, after their CPUs.
function shownLanes(data, unfolded) {
	const lanes = data.lanes.filter((lane) => lane.kind !== "task");

	data.taskLanes = data.taskLanes || new Map();
	for (const machine of unfolded) {
		const last = lanes.map((lane) => lane.kind !== "vcpu" && lane.machine === machine).lastIndexOf(true);

		if (!data.taskLanes.has(machine))
			data.taskLanes.set(machine, taskLanes(data, machine));
		lanes.splice(last + 1, 0, ...data.taskLanes.get(machine));
	}
	return lanes;
}

// The same span in the lane that is shown.
function placeOfTask(lanes, { lane, i }) {
	const shown = lanes.find((one) => one.kind === "task" && one.machine === lane.machine && one.pid === lane.pid);
	const from = lane.spans.from[i], at = shown ? shown.spans.from.indexOf(from) : -1;

	return at < 0 ? { lane, i } : { lane: shown, i: at };
}
