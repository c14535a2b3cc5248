// SPDX-License-Identifier: LGPL-2.1-or-later
// Colours of spans: those of Okabe and Ito, which most of the colour-blind tell apart.
"use strict";

const STATE_COLOURS = {
	"guest": "#009e73",
	"hypervisor": "#d55e00",
	"firmware": "#cc79a7",
	"host": "#0072b2",
	"VMM": "#56b4e9",
	"preempted": "#e69f00",
	"waking": "#f0e442",
	"halted": "#b8bcc2",
	"blocked": "#858b94",
	"not recorded": "#6f5a7a",
	"ended": "transparent",
	"lost": "hatched",
};
const TASK_COLOURS = { "running": "#009e73", "runnable": "#e69f00", "sleeping": "#b8bcc2", "stolen": "stolen" };
const OTHER_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#a6761d", "#8f86c9", "#5f9e4a", "#b56576"];
// Reasons of the hypervisor that are there on every machine.
const REASON_COLOURS = { "hvc": "#d55e00", "guest_exit": "#e69f00", "smc": "#cc79a7", "dabt": "#0072b2", "iabt": "#56b4e9", "irq": "#f0e442" };

function wordColour(word) {
	let hash = 7;

	for (let i = 0; i < word.length; i++)
		hash = (hash * 31 + word.charCodeAt(i)) >>> 0;
	return OTHER_COLOURS[hash % OTHER_COLOURS.length];
}

function labelColour(kind, label) {
	if (kind === "vcpu")
		return STATE_COLOURS[label.state] || wordColour(label.state);
	if (kind === "hyp")
		return REASON_COLOURS[label.reason] || wordColour(label.reason);
	if (kind === "mark")
		return wordColour(label.state);
	if (kind === "task")
		return TASK_COLOURS[label.state] || wordColour(label.state);
	return label.state === "stolen" ? "stolen" : wordColour(label.task.replace(/[-:/].*$/, ""));
}

// A lane's narrow parts as an image, a pixel after the other: thousands of boxes take a browser much longer.
class Strip {
	// fills: what a canvas fills with, by colour
	constructor(width, height, fills) {
		const tile = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

		this.canvas = document.createElement("canvas");
		Object.assign(this.canvas, { width, height });
		Object.assign(this, { width, height });
		this.context = this.canvas.getContext("2d");
		this.image = this.context.createImageData(width, height);
		this.words = new Uint32Array(this.image.data.buffer);
		this.of = new Float64Array(fills.length); // amounts in this pixel, by colour
		this.most = 0; // the colour with the greatest one
		this.all = 0;
		this.pixel = -1;
		// patterns repeat after 6 pixels
		this.tiles = fills.map(function (fill) {
			tile.clearRect(0, 0, 6, 6);
			tile.fillStyle = fill;
			tile.fillRect(0, 0, 6, 6);
			return new Uint32Array(tile.getImageData(0, 0, 6, 6).data.buffer);
		});
	}

	// whole: pixels are filled to the top, else as high as the parts in them
	begin(whole) {
		this.whole = whole;
		this.used = false;
	}

	// Adds a colour from x to x + width, in the order of x; part: of the height.
	add(index, x, width, part) {
		let pixel = Math.floor(x);

		for (width = Math.max(width, 1e-3); width > 0 && pixel < this.width; pixel++) {
			const within = Math.min(width, pixel + 1 - x), amount = within * part;

			if (pixel !== this.pixel)
				this.next(pixel);
			this.all += amount;
			if ((this.of[index] += amount) > this.of[this.most])
				this.most = index;
			x += within;
			width -= within;
		}
	}

	// Fills the pixel before this one.
	next(pixel) {
		const { words, width, height } = this, at = this.pixel;

		if (!this.used)
			words.fill(0);
		else if (this.all > 0 && at >= 0) {
			const tile = this.tiles[this.most];

			for (let y = this.whole ? 0 : Math.max(0, Math.min(height - 1, Math.round((1 - this.all) * height))); y < height; y++)
				words[y * width + at] = tile[y % 6 * 6 + at % 6];
		}
		this.of.fill(0);
		this.all = 0;
		this.used = true;
		this.pixel = pixel;
	}

	paint(context, x, y) {
		if (!this.used)
			return;
		this.next(-1);
		this.context.putImageData(this.image, 0, 0);
		context.imageSmoothingEnabled = false;
		context.drawImage(this.canvas, x, y);
	}
}

// Name of a span that is drawn in it.
function labelText(kind, label) {
	if (kind === "vcpu")
		return label.state + (label.reason ? " " + label.reason : "") + (label.other ? " (" + label.other + ")" : "");
	if (kind === "hyp")
		return label.reason || "hypervisor";
	if (kind === "mark")
		return label.state;
	if (kind === "task")
		return label.state + (label.by ? ": " + label.by : "") + (label.other ? " (" + label.other + ")" : "");
	return label.task + (label.state === "stolen" ? " (stolen: " + label.by + ")" : "");
}

// Black or white, by which text is read better on a colour.
function textColour(colour) {
	const n = parseInt(colour.slice(1), 16);
	const light = 0.299 * (n >> 16) + 0.587 * (n >> 8 & 255) + 0.114 * (n & 255);

	return Number.isNaN(n) || light > 140 ? "#000000" : "#ffffff";
}

// "912ns", "187.3us", "1.204ms", as the commands print durations.
function durationText(ns, ticks) {
	if (ticks)
		return Math.round(ns) + " ticks";
	if (ns < 1e3)
		return Math.round(ns) + "ns";
	if (ns < 1e6)
		return (ns / 1e3).toFixed(1) + "us";
	return ns < 1e9 ? (ns / 1e6).toFixed(3) + "ms" : (ns / 1e9).toFixed(3) + "s";
}

// A time of the timeline as the commands print it: seconds with 9 digits.
function timeText(data, offset) {
	const ns = data.origin + BigInt(Math.round(offset));

	return data.ticks ? String(ns) : ns / 1000000000n + "." + String(ns % 1000000000n).padStart(9, "0");
}

function boundText(data, bound) {
	return bound < 0 ? "unknown" : bound ? durationText(bound, data.ticks) : "none: one clock";
}
