// SPDX-License-Identifier: LGPL-2.1-or-later
// Figures with a title, axes with names and units, a legend and a scale.
"use strict";

const FIGURE = { width: 760, height: 300, left: 64, right: 34, top: 34, bottom: 44 };

class Axis {
	// low, high: numbers of the axis; text(value); log: its numbers are logarithms to the base 10.
	constructor(name, low, high, text, log) {
		Object.assign(this, { name, low, high: high > low ? high : low + 1, text, log });
	}

	share(value) {
		return (value - this.low) / (this.high - this.low);
	}

	ticks() {
		const step = this.log ? Math.max(1, Math.ceil((this.high - this.low) / 8)) : niceStep((this.high - this.low) / 6);
		const ticks = [];

		for (let at = Math.ceil(this.low / step - 1e-9) * step; at <= this.high + step * 1e-9; at += step)
			ticks.push(at);
		return ticks;
	}
}

// 1, 2 or 5 times a power of ten, at least as long as that.
function niceStep(least) {
	const power = 10 ** Math.floor(Math.log10(least));

	return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least * (1 - 1e-9));
}

// Axis of durations from least to most, in whole decades.
function durationAxis(name, least, most, ticks) {
	const low = Math.floor(Math.log10(Math.max(1, least))), high = Math.ceil(Math.log10(Math.max(10, most)));

	return new Axis(name, low, Math.max(high, low + 1), (log) => durationText(10 ** log, ticks), true);
}

// Draws a figure now, and again when colours or the window change. paint(c, x, y): x(value), y(value) are pixels.
function addFigure(parent, title, xAxis, yAxis, legend, paint) {
	const box = element("figure"), canvas = element("canvas"), caption = element("figcaption", title), keys = element("p", undefined, "legend");

	canvas.setAttribute("role", "img");
	canvas.setAttribute("aria-label", title);
	for (const [name, colour] of legend)
		keys.append(legendEntry(name, colour));
	box.append(caption, canvas, keys);
	parent.append(box);
	function draw() {
		const ratio = window.devicePixelRatio || 1, c = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
		const width = FIGURE.width - FIGURE.left - FIGURE.right, height = FIGURE.height - FIGURE.top - FIGURE.bottom;
		const x = (value) => FIGURE.left + xAxis.share(value) * width, y = (value) => FIGURE.top + (1 - yAxis.share(value)) * height;

		canvas.width = FIGURE.width * ratio;
		canvas.height = FIGURE.height * ratio;
		canvas.style.width = FIGURE.width + "px";
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.font = "12px system-ui, sans-serif";
		c.textBaseline = "middle";
		drawAxes(c, xAxis, yAxis, x, y, (name) => style.getPropertyValue("--" + name).trim());
		c.save();
		c.beginPath();
		c.rect(FIGURE.left, FIGURE.top, width, height);
		c.clip();
		paint(c, x, y);
		c.restore();
	}
	draw();
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
	return box;
}

function drawAxes(c, xAxis, yAxis, x, y, colour) {
	const bottom = FIGURE.height - FIGURE.bottom, right = FIGURE.width - FIGURE.right;

	c.strokeStyle = colour("line");
	c.fillStyle = colour("faint");
	c.textAlign = "center";
	for (const at of xAxis.ticks()) {
		c.fillRect(x(at), bottom, 1, 4);
		c.fillText(xAxis.text(at), x(at), bottom + 13);
	}
	c.fillText(xAxis.name, (FIGURE.left + right) / 2, FIGURE.height - 9);
	c.textAlign = "right";
	for (const at of yAxis.ticks()) {
		c.beginPath();
		c.moveTo(FIGURE.left, y(at));
		c.lineTo(right, y(at));
		c.stroke();
		c.fillText(yAxis.text(at), FIGURE.left - 5, y(at));
	}
	c.textAlign = "left";
	c.fillText(yAxis.name, 4, 12);
}

function legendEntry(name, colour) {
	const entry = element("span"), box = element("canvas"), context = box.getContext("2d");

	box.width = box.height = 12;
	context.fillStyle = colour[0] === "#" ? colour : { stolen: "#e69f00", hatched: "#888888" }[colour] || "rgba(0, 0, 0, 0)";
	context.fillRect(0, 0, 12, 12);
	entry.append(box, name + (colour === "hatched" || colour === "stolen" ? " (striped)" : ""));
	return entry;
}

// ---- distributions ----

const BINS = 8; // of a decade

// Distributions of several keys in one figure, each in shares of its own number. keys: {name, buckets: [[from, to, n]]}.
function addHistogram(parent, title, keys, ticks) {
	const ends = keys.flatMap((key) => key.buckets.flatMap(([from, to]) => [from, Math.max(from, to - 1)]));
	const xAxis = durationAxis("duration (logarithmic)", ends.reduce((a, b) => Math.min(a, b), Infinity), ends.reduce((a, b) => Math.max(a, b), 0), ticks);
	const bars = keys.map(function (key) {
		const bins = new Float64Array(Math.ceil((xAxis.high - xAxis.low) * BINS));
		let all = 0;

		for (const [from, to, n] of key.buckets) {
			const bin = Math.floor((Math.log10(Math.max(1, (from + to) / 2)) - xAxis.low) * BINS);

			bins[Math.max(0, Math.min(bins.length - 1, bin))] += n;
			all += n;
		}
		return { bins: bins.map((n) => n / all * 100), all };
	});
	const most = Math.max(...bars.map((one) => Math.max(...one.bins)));
	const legend = keys.map((key, i) => [key.name + ": " + bars[i].all + (key.note ? ", " + key.note : ""), OTHER_COLOURS[i % OTHER_COLOURS.length]]);

	return addFigure(parent, title, xAxis, new Axis("share of a key's durations, % per " + (BINS + "th of a decade"), 0, most, (n) => +n.toPrecision(3) + "%"), legend, function (c, x, y) {
		bars.forEach(function (one, i) {
			c.strokeStyle = legend[i][1];
			c.lineWidth = 2;
			c.beginPath();
			one.bins.forEach(function (share, bin) {
				c.lineTo(x(xAxis.low + bin / BINS), y(share));
				c.lineTo(x(xAxis.low + (bin + 1) / BINS), y(share));
			});
			c.stroke();
		});
	});
}

// Number of durations by time and length. durations: {from, ns}.
function addHeatMap(parent, title, data, durations, colour) {
	const columns = 120, list = durations.map((one) => one.ns);
	const yAxis = durationAxis("duration (logarithmic)", list.reduce((a, b) => Math.min(a, b), Infinity), list.reduce((a, b) => Math.max(a, b), 0), data.ticks);
	const rows = Math.ceil((yAxis.high - yAxis.low) * BINS), cells = new Uint32Array(columns * rows);
	const seconds = Number(data.origin) / 1e9, length = data.length / 1e9;

	for (const { from, ns } of durations) {
		const column = Math.min(columns - 1, Math.floor(from / data.length * columns));
		const row = Math.min(rows - 1, Math.max(0, Math.floor((Math.log10(Math.max(1, ns)) - yAxis.low) * BINS)));

		cells[row * columns + column]++;
	}
	const most = cells.reduce((a, b) => Math.max(a, b), 0), strength = (n) => n ? 0.15 + 0.85 * Math.log(n) / Math.log(Math.max(2, most)) : 0;
	const xAxis = new Axis(data.ticks ? "time (ticks / 10^9)" : "time (s)", seconds, seconds + length, (at) => String(+at.toFixed(6)));
	const box = addFigure(parent, title, xAxis, yAxis, [], function (c, x, y) {
		c.fillStyle = colour;
		cells.forEach(function (n, at) {
			const left = seconds + at % columns / columns * length, low = yAxis.low + Math.floor(at / columns) / BINS;

			c.globalAlpha = strength(n);
			c.fillRect(x(left), y(low + 1 / BINS), x(left + length / columns) - x(left) + 0.5, y(low) - y(low + 1 / BINS) + 0.5);
		});
	});
	const keys = box.querySelector(".legend");

	for (const n of new Set([1, Math.round(Math.sqrt(most)), most])) {
		const entry = legendEntry(n + (n === 1 ? " span" : " spans"), colour);

		entry.firstChild.style.opacity = strength(n);
		keys.append(entry);
	}
	return box;
}

// ---- shares ----

// A bar of each row, in parts. rows: {title, parts: [{name, colour, share}]}.
function addBars(parent, title, rows) {
	const box = element("figure"), table = element("div", undefined, "bars"), names = new Map();

	for (const row of rows) {
		const bar = element("div", undefined, "bar");

		for (const part of row.parts) {
			const piece = element("span", part.share > 0.08 ? part.name : "");

			piece.style.width = part.share * 100 + "%";
			piece.style.background = part.colour[0] === "#" ? part.colour : { stolen: "#e69f00", hatched: "#888888" }[part.colour] || "transparent";
			piece.style.color = part.colour[0] === "#" ? textColour(part.colour) : "#000000";
			piece.title = part.name + ": " + (part.share * 100).toFixed(1) + "%";
			bar.append(piece);
			names.set(part.name, part.colour);
		}
		table.append(element("span", row.title), bar);
	}
	const scale = element("div", undefined, "scale"), legend = element("p", undefined, "legend");

	scale.append(...["0%", "25%", "50%", "75%", "100% of the time"].map((text) => element("span", text)));
	table.append(element("span", ""), scale);
	legend.append(...[...names].map(([name, colour]) => legendEntry(name, colour)));
	box.append(element("figcaption", title), table, legend);
	parent.append(box);
	return box;
}
