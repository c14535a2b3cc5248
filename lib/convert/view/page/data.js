// SPDX-License-Identifier: LGPL-2.1-or-later
// Data of the page: the head and the columns, as lib/convert/view/view-page.c writes them.
"use strict";

// Numbers of a column: groups of 7 bits, the lowest first.
function columnReader(bytes) {
	let at = 0;

	return function () {
		let number = 0, factor = 1;

		for (;;) {
			const byte = bytes[at++];

			number += (byte & 0x7f) * factor;
			if (!(byte >= 0x80)) // also behind the end
				return number;
			factor *= 128;
		}
	};
}

// Twice the amount of a difference, less one if it is negative.
function signedNumber(n) {
	return n % 2 ? -(n + 1) / 2 : n / 2;
}

// Spans of a lane, in the order of their begin; times are ns since the origin.
function readSpans(n, columns) {
	const spans = {
		n,
		from: new Float64Array(n),
		to: new Float64Array(n),
		reach: new Float64Array(n), // the latest end of this span and those before it
		label: new Uint32Array(n),
		fromBound: new Float64Array(n),
		toBound: new Float64Array(n),
		cpu: new Int32Array(n),
	};
	let at = 0;

	for (let i = 0; i < n; i++) {
		spans.from[i] = at + signedNumber(columns.gap());
		at = spans.to[i] = spans.from[i] + columns.duration();
		spans.reach[i] = Math.max(at, i ? spans.reach[i - 1] : at);
		spans.label[i] = columns.label();
		// -1: unknown
		spans.fromBound[i] = columns.fromBound() - 1;
		spans.toBound[i] = columns.toBound() - 1;
		spans.cpu[i] = columns.cpu() - 1;
	}
	return spans;
}

// Sums of short spans of a lane, in the order of their buckets.
function readCells(n, columns) {
	const cells = { n, bucket: new Uint32Array(n), label: new Uint32Array(n), ns: new Float64Array(n), count: new Uint32Array(n) };
	let bucket = 0;

	for (let i = 0; i < n; i++) {
		bucket = cells.bucket[i] = bucket + columns.bucket();
		cells.label[i] = columns.cellLabel();
		cells.ns[i] = columns.cellNs();
		cells.count[i] = columns.cellN();
	}
	return cells;
}

function readLabel(words, row) {
	const [state, by, reason, exitClass, task, pid, other, otherPid, coarse] = row;

	return {
		state: words[state],
		by: words[by],
		reason: words[reason],
		exitClass: words[exitClass],
		pid,
		task: pid || task ? (words[task] || "task") + "-" + pid : "",
		other: otherPid || other ? (words[other] || "task") + "-" + otherPid : "",
		coarse: !!coarse,
	};
}

function laneName(data, lane) {
	const machine = data.machines[lane.machine].name, number = lane.number === null ? "?" : lane.number;

	if (lane.kind === "vcpu")
		return lane.name ? lane.name + " vCPU " + number : machine + " vCPU thread " + lane.pid;
	if (lane.kind === "task")
		return machine + " " + lane.task;
	if (lane.kind === "mark")
		return machine + " " + (lane.name || lane.task) + " marks" + (number ? " +" + number : "");
	return machine + (lane.kind === "hyp" ? " hypervisor " : " CPU ") + number;
}

// Order of lanes: a machine's events first, its programs' marks last; in between what a host's CPU does beside its
// hypervisor, and a vCPU beside what its guest runs there.
function laneOrder(data, lane) {
	const guest = lane.kind === "vcpu" ? lane.guest : lane.machine;
	const isGuest = lane.kind === "vcpu" || data.machines[lane.machine].guest;
	const machine = guest === null ? data.machines.length : guest;
	const kind = { rate: 0, vcpu: 0, cpu: 1, hyp: 2, task: 3, mark: 4 }[lane.kind];
	const number = lane.number === null || lane.kind === "mark" ? Infinity : lane.number;

	return [isGuest ? 1 : 0, machine, number, kind, lane.pid, lane.name, lane.number];
}

function compareLists(a, b) {
	for (let i = 0; i < a.length; i++)
		if (a[i] !== b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

// Shows characters that a reader does not see, or that turn the direction of text, by their numbers, and cuts what is
// too long to be read.
function visibleText(key, value) {
	const text = typeof value === "string" ? value.slice(0, 1000) : "";

	return text ? text.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
		(one) => "\\u" + one.charCodeAt(0).toString(16).padStart(4, "0")) : value;
}

async function inflate(base64) {
	const text = atob(base64), packed = new Uint8Array(text.length);

	for (let i = 0; i < text.length; i++)
		packed[i] = text.charCodeAt(i);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Numbers for which 0 means unknown, and others are one more.
function known(n) {
	return n ? n - 1 : null;
}

function readLane(data, row, columns) {
	const [kind, machine, number, guest, pid, name, spans, cells] = row;
	const lane = { kind: ["cpu", "hyp", "vcpu", "task", "mark"][kind], machine, number: known(number), guest: known(guest), pid, name: data.words[name] };

	lane.spans = readSpans(spans, columns);
	lane.cells = readCells(cells, columns);
	lane.task = spans || cells ? data.labels[spans ? lane.spans.label[0] : lane.cells.label[0]].task : "";
	lane.title = laneName(data, lane);
	lane.losses = data.losses.filter((loss) => /^(cpu|hyp)$/.test(lane.kind) && loss.machine === machine && loss.cpu === lane.number
		&& loss.hyp === (lane.kind === "hyp"));
	return lane;
}

// A text of JSON.
function readJson(bytes) {
	return JSON.parse(new TextDecoder().decode(bytes), visibleText);
}

// suffix: of the ids of the parts of the page that show it.
async function readData(base64, suffix) {
	const bytes = await inflate(base64);
	const headLength = new DataView(bytes.buffer).getUint32(0, true);
	const data = readJson(bytes.subarray(4, 4 + headLength));
	const names = ["gap", "duration", "label", "fromBound", "toBound", "cpu", "bucket", "cellLabel", "cellNs", "cellN"];
	const columns = {};
	let at = 4 + headLength;

	names.forEach(function (name, i) {
		columns[name] = columnReader(bytes.subarray(at, at + data.columns[i]));
		at += data.columns[i];
	});
	data.suffix = suffix;
	data.origin = BigInt(data.origin);
	data.labels = data.labels.map((row) => readLabel(data.words, row));
	data.losses = data.losses.map(([machine, buffer, cpu, hyp, from, to, events]) => ({
		machine, buffer: data.words[buffer], cpu, hyp: !!hyp, from, to, events: known(events),
	}));
	data.lanes = data.lanes.map((row) => readLane(data, row, columns)).concat(data.rates.map((counts, machine) => rateLane(data, counts, machine)));
	data.lanes.sort((a, b) => compareLists(laneOrder(data, a), laneOrder(data, b)));
	for (const machine of data.machines.keys()) {
		const first = data.lanes.find((lane) => lane.kind === "cpu" && lane.machine === machine);

		if (first && data.lanes.some((lane) => lane.kind === "task" && lane.machine === machine))
			first.unfolds = true;
	}
	data.byCpu = readEvents(data);
	data.chains = readChains(data);
	return data;
}
