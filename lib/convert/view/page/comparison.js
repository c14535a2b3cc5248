// SPDX-License-Identifier: LGPL-2.1-or-later
// Two recordings side by side: the tables of hyptrace diff, and each recording below them.
"use strict";

const DIFF_TABLES = {
	causes: ["Time that vCPUs lost, by cause", true], events: ["Events a second"], exits: ["Exits a second"],
	exit_time: ["Time of handling exits, of one CPU's", true], hyp: ["Visits to the hypervisor a second"],
	hyp_time: ["Time in the hypervisor, of one CPU's", true], states: ["Time of vCPUs and stolen time, of one CPU's", true],
	tasks: ["Time of the host's tasks, of one CPU's", true],
};
const VERDICTS = { more: "\u25b2 more", less: "\u25bc less", same: "same", "too short": "too short to decide" };

function diffFigure(share) {
	return (n) => typeof n !== "number" ? "" : share ? +(n * 100).toPrecision(3) + "%" : String(Math.abs(n) >= 1000 ? Math.round(n) : +n.toPrecision(3));
}

// A table of diff: what differs by more than the noise, and all rows when asked for.
function diffTable(name, rows) {
	const [title, share] = DIFF_TABLES[name], figure = diffFigure(share), box = element("details"), all = element("button", "all " + rows.length);
	const ticks = "a_p50_ticks" in rows[0], differing = rows.filter((row) => /^(more|less)$/.test(row.verdict));
	const columns = [
		{ title: "machine" }, { title: "name" }, { title: "A", number: true, text: figure }, { title: "B", number: true, text: figure },
		{ title: "B has" }, { title: "B - A, 99 %: from", number: true, text: figure }, { title: "to", number: true, text: figure },
	];
	const durations = ["a_p50", "b_p50", "a_p99", "b_p99"].map((key) => key + (ticks ? "_ticks" : "_ns")).filter((key) => key in rows[0]);

	for (const key of durations)
		columns.push({ title: key.replace(/_(ns|ticks)$/, "").replace("_", " ").toUpperCase(), number: true, text: (n) => durationText(n, ticks) });
	const table = (shown) => makeTable(columns, shown.map((row) => [row.machine, row.name, row.a, row.b, VERDICTS[row.verdict] || row.verdict, row.low, row.high,
		...durations.map((key) => row[key])]));
	let body = table(differing);

	all.addEventListener("click", function () {
		body.replaceWith(body = table(rows));
		all.remove();
	});
	box.append(element("summary", title + ": " + differing.length + " of " + rows.length + " differ"), body);
	if (differing.length < rows.length)
		box.append(all);
	return box;
}

function showComparison({ title, diff }, parent) {
	document.title = document.getElementById("title").textContent = title;
	parent.append(element("p", "A difference counts where it exceeds the noise of both recordings; hyptrace-diff(1) has the method."));
	for (const [name, rows] of Object.entries(diff))
		if (DIFF_TABLES[name] && rows.length)
			parent.append(diffTable(name, rows));
	for (const first of [...parent.querySelectorAll("details")].slice(0, 1))
		first.open = true;
	parent.append(...(diff.notes || []).map((note) => element("p", note)));
}

// Makes a place for each of two recordings out of the one for one: the ids of its parts end in -a and -b.
function splitRecording() {
	const one = document.getElementById("recording"), parts = ["-a", "-b"].map(function (suffix) {
		const part = one.cloneNode(true);

		for (const node of [part, ...part.querySelectorAll("[id]")])
			node.id += suffix;
		part.prepend(element("h2", suffix === "-a" ? "Recording A" : "Recording B"));
		return part;
	});

	one.replaceWith(...parts);
	document.getElementById("recordings").className = "two";
}
