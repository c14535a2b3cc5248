// SPDX-License-Identifier: LGPL-2.1-or-later
// The stacks of hyptrace flame as a graph: a frame is as wide as its share, and lies below the one that called it.
"use strict";

const FLAME_ROW = 18, FLAME_DEEPEST = 200;

// The tree of folded stacks {stack, weight}.
function flameTree(rows) {
	const root = { name: "all", weight: 0, below: new Map() };

	for (const { stack, weight } of rows) {
		let at = root;

		at.weight += weight;
		for (const name of stack.split(";").slice(0, FLAME_DEEPEST)) {
			if (!at.below.has(name))
				at.below.set(name, { name, weight: 0, below: new Map(), above: at });
			at = at.below.get(name);
			at.weight += weight;
		}
	}
	return root;
}

// Frames of a part of the tree as {frame, depth, left, width}: shares of the width; narrow ones are left out.
function flameFrames(top) {
	const frames = [];

	function add(frame, depth, left) {
		frames.push({ frame, depth, left, width: frame.weight / top.weight });
		for (const one of [...frame.below.values()].sort((a, b) => b.weight - a.weight)) {
			if (one.weight / top.weight >= 0.0005)
				add(one, depth + 1, left);
			left += one.weight / top.weight;
		}
	}
	add(top, 0, 0);
	return frames;
}

// A click on a frame makes it the widest one; a click on the first leads back.
function addFlame(parent, data) {
	const name = Object.keys(data.flame).find((key) => key !== "notes" && Array.isArray(data.flame[key])), root = flameTree(data.flame[name].map((row) => ({ stack: row.stack, weight: row[name] })));
	const text = (n) => (name === "ns" ? durationText(n, false) : n + " " + name) + ", " + (n / root.weight * 100).toFixed(1) + "%";
	const box = element("figure"), graph = element("div", undefined, "flame");

	function draw(top) {
		const frames = flameFrames(top);

		graph.style.height = (frames.reduce((deepest, one) => Math.max(deepest, one.depth), 0) + 1) * FLAME_ROW + "px";
		graph.replaceChildren(...frames.map(function ({ frame, depth, left, width }) {
			const cell = element("button", frame.name), colour = depth ? wordColour(frame.name) : "#b8bcc2";

			Object.assign(cell.style, { left: left * 100 + "%", width: width * 100 + "%", top: depth * FLAME_ROW + "px", background: colour, color: textColour(colour) });
			cell.title = frame.name + ": " + text(frame.weight);
			cell.addEventListener("click", () => draw(depth ? frame : frame.above || root));
			return cell;
		}));
	}
	draw(root);
	box.append(element("figcaption", "Which functions, or reasons of the hypervisor, took most? " + text(root.weight)), graph,
		...(data.flame.notes || []).map((note) => element("p", note)));
	parent.append(box);
}
