// SPDX-License-Identifier: LGPL-2.1-or-later
// The timeline on its canvas: a row for each lane, the times at the top.
"use strict";

const RULER = 26, LANE = 20, LANE_GAP = 3, LEFT = 190;

class Timeline {
	constructor(data, canvas, frame, tall) {
		Object.assign(this, { data, canvas, frame, tall, context: canvas.getContext("2d") });
		this.lanes = []; // those that are shown
		this.from = 0; // shown, ns since the origin
		this.to = data.length;
		this.selection = null; // {from, to}
		this.chosen = null; // {lane, i}
		this.chain = null; // of causes that are drawn
		this.matches = null; // by label: 1: it is what was searched for
		this.onDraw = () => {};
		this.frameTime = 0; // ms that the last picture took
		this.waiting = false;
		this.palette = ["dim"]; // colours, the first of what was not searched for
		this.colours = {}; // by kind and label: an index of the palette
		for (const kind of ["cpu", "hyp", "vcpu", "task", "mark"])
			this.colours[kind] = Uint16Array.from(data.labels, (label) => this.paletteIndex(labelColour(kind, label)));
		this.unfolded = new Set(); // machines whose tasks are shown
		this.arrange();
	}

	// Decides which lanes are shown: a guest's tasks after its CPUs, if they are unfolded.
	arrange() {
		this.lanes = shownLanes(this.data, this.unfolded);
		this.tall.style.height = RULER + this.lanes.length * (LANE + LANE_GAP) + 4 + "px";
	}

	paletteIndex(colour) {
		const index = this.palette.indexOf(colour);

		return index < 0 ? this.palette.push(colour) - 1 : index;
	}

	// ---- places ----

	get plotWidth() {
		return Math.max(10, this.width - LEFT);
	}

	x(time) {
		return LEFT + (time - this.from) / (this.to - this.from) * this.plotWidth;
	}

	time(x) {
		return this.from + (x - LEFT) / this.plotWidth * (this.to - this.from);
	}

	laneTop(index) {
		return RULER + index * (LANE + LANE_GAP) - this.frame.scrollTop;
	}

	laneAt(y) {
		const index = Math.floor((y - RULER + this.frame.scrollTop) / (LANE + LANE_GAP));

		return y < RULER ? null : this.lanes[index] || null;
	}

	// Shows from..to, moved so that it lies in the recording; at least 20 ns.
	show(from, to) {
		const length = Math.min(this.data.length, Math.max(20, to - from));

		from = Math.min(Math.max(0, from + (to - from - length) / 2), this.data.length - length);
		this.from = from;
		this.to = from + length;
		this.redraw();
	}

	zoom(factor, x) {
		const at = this.time(x === undefined ? LEFT + this.plotWidth / 2 : Math.max(LEFT, x));

		this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
	}

	move(part) {
		const by = part * (this.to - this.from);

		this.show(this.from + by, this.to + by);
	}

	// The event at a place, else the span, else the sums of short ones, else the loss: {lane, event}, {lane, i},
	// {lane, bucket}, also of events a second, {lane, loss}; of a lane that unfolds its title: {lane, title}.
	find(x, y) {
		const lane = this.laneAt(y), time = this.time(x), near = this.time(x + 1.5) - time;
		let best = null;

		if (!lane || x < LEFT)
			return lane && lane.unfolds ? { lane, title: true } : null;
		const event = eventAt(this, lane, x, y, this.laneTop(this.lanes.indexOf(lane)));

		if (event)
			return { lane, event };
		for (let i = firstSpan(lane.spans, time - near); i < lane.spans.n && lane.spans.from[i] <= time + near; i++) {
			const inside = lane.spans.from[i] <= time && time < lane.spans.to[i];
			const weight = (inside ? 1e18 : 0) + lane.spans.to[i] - lane.spans.from[i];

			if (lane.spans.to[i] > time - near && (!best || weight > best.weight))
				best = { lane, i, weight };
		}
		if (best)
			return best;
		const bucket = Math.floor(time / this.data.bucket), cell = firstCell(lane.cells, bucket);

		if (lane.counts || (cell < lane.cells.n && lane.cells.bucket[cell] === bucket))
			return { lane, bucket };
		const loss = lane.losses.find((one) => one.from <= time + near && time - near < one.to);
		return loss ? { lane, loss } : { lane };
	}

	// Scrolls to a lane.
	reveal(lane) {
		const top = this.lanes.indexOf(lane) * (LANE + LANE_GAP), height = this.frame.clientHeight - RULER - LANE;

		if (top < this.frame.scrollTop || top > this.frame.scrollTop + height)
			this.frame.scrollTop = Math.max(0, top - height / 2);
	}

	// ---- drawing ----

	redraw() {
		if (this.waiting)
			return;
		this.waiting = true;
		requestAnimationFrame(() => {
			this.waiting = false;
			this.draw();
		});
	}

	resize() {
		const ratio = window.devicePixelRatio || 1;

		this.width = this.frame.clientWidth;
		this.height = Math.min(this.tall.offsetHeight, Math.floor(window.innerHeight * 0.62));
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.width = this.width + "px";
		this.canvas.style.height = this.height + "px";
		this.tall.style.marginTop = -this.height + "px";
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.readColours();
		this.redraw();
	}

	readColours() {
		const style = getComputedStyle(document.documentElement);

		for (const name of ["paper", "ink", "faint", "line", "raised", "accent"])
			this[name] = style.getPropertyValue("--" + name).trim();
		this.hatched = this.stripes(this.faint, this.paper);
		this.stolen = this.stripes("#e69f00", this.raised);
		this.unsure = this.stripes(this.ink, "rgba(0, 0, 0, 0)");
		this.strip = new Strip(Math.ceil(this.plotWidth), LANE, this.palette.map((colour) => this.fill(colour)));
	}

	stripes(colour, ground) {
		const tile = document.createElement("canvas"), context = tile.getContext("2d");

		tile.width = tile.height = 6;
		context.fillStyle = ground;
		context.fillRect(0, 0, 6, 6);
		context.strokeStyle = colour;
		context.beginPath();
		for (const at of [-6, 0, 6]) {
			context.moveTo(at, 6);
			context.lineTo(at + 6, 0);
		}
		context.stroke();
		return this.context.createPattern(tile, "repeat");
	}

	fill(colour) {
		return { hatched: this.hatched, stolen: this.stolen, dim: this.line }[colour] || colour;
	}

	box(colour, x, y, width, height) {
		if (colour === "transparent")
			return;
		this.context.fillStyle = this.fill(colour);
		this.context.fillRect(x, y, width, height);
	}

	draw() {
		const begin = performance.now(), c = this.context;

		c.clearRect(0, 0, this.width, this.height);
		c.font = "12px system-ui, sans-serif";
		c.textBaseline = "middle";
		this.lanes.forEach((lane, index) => {
			const top = this.laneTop(index);

			if (top > RULER - LANE && top < this.height)
				this.drawLane(lane, top);
		});
		if (this.chain)
			drawChain(this, this.chain);
		this.drawSelection();
		this.drawRuler();
		this.frameTime = performance.now() - begin;
		this.onDraw();
	}

	drawLane(lane, top) {
		const c = this.context;

		c.save();
		c.beginPath();
		c.rect(LEFT, top, this.plotWidth, LANE);
		c.clip();
		this.box(this.raised, LEFT, top, this.plotWidth, LANE);
		if (lane.counts)
			drawRates(this, lane, top);
		this.drawCells(lane, top);
		for (const loss of lane.losses)
			this.box("hatched", this.x(loss.from), top, Math.max(1, this.x(loss.to) - this.x(loss.from)), LANE);
		this.drawSpans(lane, top);
		drawEvents(this, lane, top);
		c.restore();
		c.fillStyle = lane.unfolds ? this.accent : this.ink;
		c.textAlign = "left";
		c.fillText((lane.unfolds ? (this.unfolded.has(lane.machine) ? "\u25be " : "\u25b8 ") : "") + lane.title, 4, top + LANE / 2, LEFT - 10);
	}

	labelColour(colours, label) {
		return this.matches && !this.matches[label] ? 0 : colours[label];
	}

	// Bars of a bucket lie on each other, each as high as its share of the bucket. Of narrow buckets each pixel has one
	// bar, in the colour with most time.
	drawCells(lane, top) {
		const cells = lane.cells, length = this.data.bucket, colours = this.colours[lane.kind], strip = this.strip;
		const scale = this.plotWidth / (this.to - this.from), width = length * scale;
		let bottom = 0, last = -1;

		strip.begin(false);
		for (let i = firstCell(cells, Math.floor(this.from / length)); i < cells.n && cells.bucket[i] * length < this.to; i++) {
			const bucket = cells.bucket[i], index = this.labelColour(colours, cells.label[i]), part = cells.ns[i] / length;
			const x = (bucket * length - this.from) * scale;

			if (width < 3) {
				strip.add(index, x, width, part);
				continue;
			}
			bottom = (bucket === last ? bottom : top + LANE) - part * LANE;
			last = bucket;
			this.box(this.palette[index], LEFT + x, bottom, width, part * LANE);
		}
		strip.paint(this.context, LEFT, top);
	}

	// Of narrow spans the colour with most of a pixel fills it; wide ones are drawn over them.
	drawSpans(lane, top) {
		const spans = lane.spans, colours = this.colours[lane.kind], scale = this.plotWidth / (this.to - this.from);
		const strip = this.strip, wide = [];

		strip.begin(true);
		for (let i = firstSpan(spans, this.from); i < spans.n && spans.from[i] < this.to; i++) {
			const width = (spans.to[i] - spans.from[i]) * scale;

			if (width < 1 || (width < 4 && !this.boundsShow(spans, i, scale)))
				strip.add(this.labelColour(colours, spans.label[i]), (spans.from[i] - this.from) * scale, width, 1);
			else
				wide.push(i);
		}
		strip.paint(this.context, LEFT, top);
		for (const i of wide) {
			const x = this.x(spans.from[i]), width = (spans.to[i] - spans.from[i]) * scale;
			const colour = this.palette[this.labelColour(colours, spans.label[i])];

			this.box(colour, x, top, width, LANE);
			this.drawName(lane, i, colour, x, top, width);
			this.drawBounds(spans, i, x, top, width, scale);
		}
		if (this.chosen && this.chosen.lane === lane)
			this.drawChosen(spans, this.chosen.i, top);
	}

	boundsShow(spans, i, scale) {
		const least = 0.5 / scale, from = spans.fromBound[i], to = spans.toBound[i];

		return from < 0 || to < 0 || from >= least || to >= least;
	}

	drawName(lane, i, colour, x, top, width) {
		const left = Math.max(x, LEFT) + 3, room = Math.min(x + width, LEFT + this.plotWidth) - left - 2;

		if (width < 24 || room < 20 || colour === "transparent")
			return;
		const c = this.context;

		c.save();
		c.beginPath();
		c.rect(left, top, room, LANE);
		c.clip();
		c.fillStyle = colour[0] === "#" ? textColour(colour) : this.ink;
		c.textAlign = "left";
		c.fillText(labelText(lane.kind, this.data.labels[lane.spans.label[i]]).slice(0, 80), left, top + LANE / 2);
		c.restore();
	}

	// An edge is somewhere within its bound: that much of the lane is striped. Where the bound is unknown, all of it is.
	drawBounds(spans, i, x, top, width, scale) {
		for (const [at, bound] of [[x, spans.fromBound[i]], [x + width, spans.toBound[i]]]) {
			const half = bound < 0 ? width : bound * scale;

			if (half >= 0.5)
				this.box(this.unsure, at - half, top + LANE - 6, 2 * half, 6);
		}
	}

	drawChosen(spans, i, top) {
		const x = this.x(spans.from[i]), c = this.context;

		c.strokeStyle = this.ink;
		c.lineWidth = 2;
		c.strokeRect(x, top + 1, Math.max(3, this.x(spans.to[i]) - x), LANE - 2);
		c.lineWidth = 1;
	}

	drawSelection() {
		if (!this.selection)
			return;
		const c = this.context, x = Math.max(LEFT, this.x(this.selection.from)), end = this.x(this.selection.to);

		c.globalAlpha = 0.18;
		this.box(this.accent, x, 0, Math.max(1, end - x), this.height);
		c.globalAlpha = 1;
	}

	drawRuler() {
		const c = this.context, length = this.to - this.from, step = tickStep(length / this.plotWidth * 120);
		const digits = this.data.ticks ? 0 : Math.min(9, Math.max(0, 9 - Math.floor(Math.log10(step))));
		const origin = Number(this.data.origin % BigInt(step));

		c.globalAlpha = 0.93;
		this.box(this.paper, 0, 0, this.width, RULER);
		c.globalAlpha = 1;
		c.textAlign = "left";
		c.fillStyle = this.faint;
		c.fillText(this.data.ticks ? "time in ticks" : "time in s", 4, RULER / 2);
		for (let time = Math.ceil((this.from + origin) / step) * step - origin; time < this.to; time += step) {
			const text = timeText(this.data, time), x = this.x(time);

			c.fillStyle = this.line;
			c.fillRect(x, RULER - 6, 1, this.height);
			c.fillStyle = this.faint;
			c.fillText(this.data.ticks ? text : text.slice(0, text.length - 9 + digits).replace(/\.$/, ""), x + 3, RULER / 2);
		}
	}
}

// 1, 2 or 5 times a power of ten, at least as long as that.
function tickStep(least) {
	const power = 10 ** Math.max(0, Math.floor(Math.log10(least)));

	return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) || 10 * power;
}
