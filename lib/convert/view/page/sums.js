// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums of a stretch of time, by lane and meaning.
"use strict";

// Index of the first of n things that is reached, as all after it are; n: none is.
function firstReached(n, reached) {
	let low = 0, high = n;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (reached(middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

// Index of the first span that may end after a time.
function firstSpan(spans, time) {
	return firstReached(spans.n, (i) => spans.reach[i] > time);
}

// Index of the first cell of that bucket or a later one.
function firstCell(cells, bucket) {
	return firstReached(cells.n, (i) => cells.bucket[i] >= bucket);
}

// How much of a span's time within from..to lies so near to its ends that the clocks leave it open.
function undecidedPart(spans, i, from, to) {
	const fromBound = spans.fromBound[i], toBound = spans.toBound[i];

	if (fromBound < 0 || toBound < 0)
		return to - from;
	const certainFrom = Math.max(from, spans.from[i] + fromBound);
	const certainTo = Math.min(to, spans.to[i] - toBound);

	return to - from - Math.max(0, certainTo - certainFrom);
}

// Of a lane, by label: ns, spans that begin in from..to and their durations, and ns that are undecided. Times are ns since
// the origin. Of short spans that are summed, durations are unknown.
// Of a bucket that is only partly within, a proportional part.
function laneSums(data, lane, from, to) {
	const sums = new Map(), spans = lane.spans, cells = lane.cells;

	function add(label, ns, count, undecided) {
		const sum = sums.get(label) || { ns: 0, count: 0, undecided: 0, durations: [] };

		sum.ns += ns;
		sum.count += count;
		sum.undecided += undecided;
		sums.set(label, sum);
		return sum;
	}
	for (let i = firstSpan(spans, from); i < spans.n && spans.from[i] < to; i++) {
		const begin = Math.max(from, spans.from[i]), end = Math.min(to, spans.to[i]);

		if (begin >= end)
			continue;
		const starts = spans.from[i] >= from, sum = add(spans.label[i], end - begin, starts ? 1 : 0, undecidedPart(spans, i, begin, end));

		if (starts)
			sum.durations.push(spans.to[i] - spans.from[i]);
	}
	for (let i = firstCell(cells, Math.floor(from / data.bucket)); i < cells.n && cells.bucket[i] * data.bucket < to; i++) {
		const begin = cells.bucket[i] * data.bucket, end = begin + data.bucket;
		const part = Math.max(0, Math.min(to, end) - Math.max(from, begin)) / data.bucket;

		add(cells.label[i], cells.ns[i] * part, cells.count[i] * part, 0);
	}
	return sums;
}

// The duration that a share of them does not exceed; null: some are not known, or there are none.
function percentile(row, share) {
	const sorted = row.sorted = row.sorted || row.durations.sort((a, b) => a - b);

	return sorted.length && sorted.length === row.count ? sorted[Math.ceil(share * sorted.length) - 1] : null;
}

// Rows {lane, kind, machine, number, state, by, reason, task, ns, count, undecided, durations}, the longest of a lane first.
// Labels that differ only in what a row does not have are one row.
function windowSums(data, from, to) {
	const rows = [];

	for (const lane of data.lanes) {
		const byMeaning = new Map();

		for (const [index, sum] of laneSums(data, lane, from, to)) {
			const label = data.labels[index];
			const key = JSON.stringify([label.state, label.by, label.reason, label.task]);
			const row = byMeaning.get(key) || {
				lane: lane.title, kind: lane.kind, machine: data.machines[lane.machine].name, number: lane.number,
				state: label.state, by: label.by, reason: label.reason, task: label.task,
				ns: 0, count: 0, undecided: 0, durations: [],
			};

			row.ns += sum.ns;
			row.count += sum.count;
			row.undecided += sum.undecided;
			row.durations = row.durations.concat(sum.durations);
			byMeaning.set(key, row);
		}
		rows.push(...[...byMeaning.values()].sort((a, b) => b.ns - a.ns));
	}
	return rows;
}
