// SPDX-License-Identifier: LGPL-2.1-or-later
// Events a second of each machine, counted in the buckets of time, and lanes that have no spans but these.
"use strict";

function rateLane(data, counts, machine) {
	const most = counts.reduce((a, b) => Math.max(a, b), 0);

	return {
		kind: "rate", machine, number: -1, guest: null, pid: 0, name: "", task: "", counts, most, losses: [],
		spans: readSpans(0, {}), cells: readCells(0, {}),
		title: data.machines[machine].name + " events, up to " + rateText(data, most),
	};
}

// "12.3k/s" of a bucket's count.
function rateText(data, count) {
	const rate = count / data.bucket * 1e9, power = rate >= 1e6 ? 1e6 : rate >= 1e3 ? 1e3 : 1;

	return data.ticks ? count + " a bucket" : +(rate / power).toPrecision(3) + { 1: "", 1e3: "k", 1e6: "M" }[power] + "/s";
}

// Bars as high as a bucket's share of the greatest one; of buckets narrower than a pixel the highest shows.
function drawRates(timeline, lane, top) {
	const { data } = timeline, length = data.bucket, width = Math.max(1, length / (timeline.to - timeline.from) * timeline.plotWidth);

	for (let bucket = Math.floor(timeline.from / length); bucket < lane.counts.length && bucket * length < timeline.to; bucket++) {
		const height = lane.counts[bucket] / (lane.most || 1) * LANE;

		timeline.box(timeline.accent, timeline.x(bucket * length), top + LANE - height, width, height);
	}
}

// Events of each machine in from..to; of a bucket that is only partly within, a proportional part.
function windowEvents(data, from, to) {
	const until = to < data.length ? to : data.length + 1; // the last event is at the end

	return data.lanes.filter((lane) => lane.kind === "rate").map(function (lane) {
		let n = 0;

		lane.counts.forEach(function (count, bucket) {
			const begin = bucket * data.bucket, end = Math.min(begin + data.bucket, data.length + 1);

			if (count)
				n += count * Math.max(0, Math.min(until, end) - Math.max(from, begin)) / (end - begin);
		});
		return { machine: data.machines[lane.machine].name, n };
	});
}
