// SPDX-License-Identifier: LGPL-2.1-or-later
// Figures of a recording: where time went, how long states last and when, latencies of presets.
"use strict";

// Where time went in from..to: a bar of each vCPU by state, and of each CPU's hypervisor by reason.
function timeRows(data, from, to) {
	return data.lanes.filter((lane) => lane.kind === "vcpu" || lane.kind === "hyp").map(function (lane) {
		const parts = new Map();

		for (const [index, sum] of laneSums(data, lane, from, to)) {
			const label = data.labels[index], name = lane.kind === "vcpu" ? label.state : label.reason || "no reason";
			const part = parts.get(name) || { name, colour: labelColour(lane.kind, label), share: 0 };

			part.share += sum.ns / (to - from);
			parts.set(name, part);
		}
		return { title: lane.title, parts: [...parts.values()].sort((a, b) => b.share - a.share) };
	});
}

// Meanings whose durations can be drawn: states of vCPUs, visits to the hypervisor, waits of guests' tasks.
function durationKinds(data) {
	const kinds = new Map();

	for (const lane of data.lanes)
		for (let i = 0; lane.kind !== "cpu" && i < lane.spans.n; i++) {
			const label = data.labels[lane.spans.label[i]];
			const name = lane.kind === "hyp" ? "visits to the hypervisor" : { task: "guests' tasks: ", mark: "marks: ", vcpu: "vCPUs: " }[lane.kind] + label.state;

			if (!kinds.has(name))
				kinds.set(name, { name, colour: lane.kind === "hyp" ? "#d55e00" : labelColour(lane.kind, label), byLane: new Map() });
			const byLane = kinds.get(name).byLane, key = lane.kind === "task" ? data.machines[lane.machine].name : lane.title;

			if (!byLane.has(key))
				byLane.set(key, []);
			byLane.get(key).push({ from: lane.spans.from[i], ns: lane.spans.to[i] - lane.spans.from[i] });
		}
	return [...kinds.values()].sort((a, b) => [...b.byLane.values()].flat().length - [...a.byLane.values()].flat().length);
}

// "p50 187.3us, p99 1.204ms" of durations.
function percentilesText(list, ticks) {
	const row = { durations: list.map((one) => one.ns), count: list.length };

	return "p50 " + durationText(percentile(row, 0.5), ticks) + ", p99 " + durationText(percentile(row, 0.99), ticks);
}

// The distribution of a meaning by lane, and when each duration began.
function showDurations(data, kind, parent) {
	const keys = [...kind.byLane].slice(0, OTHER_COLOURS.length);
	const left = kind.byLane.size - keys.length;

	parent.replaceChildren();
	addHistogram(parent, "How long? " + kind.name, keys.map(([name, list]) => ({
		name, buckets: list.map(({ ns }) => [ns, ns + 1, 1]), note: percentilesText(list, data.ticks),
	})), data.ticks);
	addHeatMap(parent, "When, and how long? " + kind.name, data, [...kind.byLane.values()].flat(), /^#/.test(kind.colour) ? kind.colour : "#e69f00");
	if (data.summed)
		parent.append(element("p", "Spans of up to " + durationText(data.summed, data.ticks) + " are summed in this page, and not in these figures: view --full."));
	if (left > 0)
		parent.append(element("p", left + " more are not in the distribution."));
}

// A section that is filled when it is opened.
function lazySection(parent, title, fill) {
	const section = element("details"), body = element("div");

	section.append(element("summary", title), body);
	section.addEventListener("toggle", function () {
		if (section.open && !body.firstChild)
			fill(body);
	});
	parent.append(section);
	return section;
}

function showQuestions(data, parent) {
	if (data.lanes.some((lane) => lane.kind === "vcpu" || lane.kind === "hyp"))
		lazySection(parent, "Where time went", (body) => addBars(body, "Where did the time of vCPUs and hypervisors go?", timeRows(data, 0, data.length)));
	if (data.lanes.some((lane) => lane.kind !== "cpu" && lane.spans.n))
		lazySection(parent, "Durations: distribution and heat map", function (body) {
			const kinds = durationKinds(data), select = element("select"), figures = element("div"), label = element("label", "of ");

			kinds.forEach((kind, i) => select.append(new Option(kind.name, i)));
			select.addEventListener("change", () => showDurations(data, kinds[select.value], figures));
			label.append(select);
			body.append(label, figures);
			showDurations(data, kinds[0], figures);
		});
	if (data.flame)
		lazySection(parent, "Flame graph of stacks", (body) => addFlame(body, data));
	if (!data.latency)
		parent.append(element("p", "Latencies of presets, and stacks, are left out: the files have more than a million records. hyptrace view --full has them."));
	else if (data.latency.length)
		lazySection(parent, "Latencies", (body) => data.latency.forEach((one) => addHistogram(body,
			"How long? " + one.preset + ": " + one.summary, one.rows.map((row) => ({
				name: row.key, buckets: row.buckets, note: "p50 " + durationText(row.p50, data.ticks) + ", p99 " + durationText(row.p99, data.ticks),
			})), data.ticks)));
}
