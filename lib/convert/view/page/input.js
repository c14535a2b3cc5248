// SPDX-License-Identifier: LGPL-2.1-or-later
// Mouse, touch and keys of the timeline.
"use strict";

const CLICK = 4; // pixels that a click may move

// handlers: hover(place, event), choose(place), select(from, to or null), key(name): true if it was one, active(): whether
// keys are for this timeline.
function listen(timeline, handlers) {
	const canvas = timeline.canvas, pointers = new Map();
	let drag = null;

	function place(event) {
		const box = canvas.getBoundingClientRect();

		return { x: event.clientX - box.left, y: event.clientY - box.top };
	}

	canvas.addEventListener("wheel", function (event) {
		const { x } = place(event);

		event.preventDefault();
		if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
			timeline.move((event.deltaX || event.deltaY) / 800);
		else
			timeline.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * (event.ctrlKey ? 0.01 : 0.003)), x);
	}, { passive: false });

	canvas.addEventListener("pointerdown", function (event) {
		const at = place(event);

		canvas.setPointerCapture(event.pointerId);
		canvas.focus();
		pointers.set(event.pointerId, at);
		drag = {
			at, moved: false, selects: event.shiftKey || at.y < RULER, from: timeline.from, to: timeline.to,
			scroll: timeline.frame.scrollTop, time: timeline.time(at.x), distance: pinchDistance(),
		};
	});

	// Between two fingers; 0: there are not two.
	function pinchDistance() {
		const [a, b] = [...pointers.values()];

		return pointers.size === 2 ? Math.max(10, Math.abs(a.x - b.x)) : 0;
	}

	canvas.addEventListener("pointermove", function (event) {
		const at = place(event);

		if (!drag || !pointers.has(event.pointerId)) {
			handlers.hover(timeline.find(at.x, at.y), event);
			return;
		}
		pointers.set(event.pointerId, at);
		drag.moved = drag.moved || Math.hypot(at.x - drag.at.x, at.y - drag.at.y) > CLICK;
		if (!drag.moved)
			return;
		handlers.hover(null, event);
		if (drag.distance && pinchDistance()) {
			const length = (drag.to - drag.from) * drag.distance / pinchDistance();

			timeline.show((drag.from + drag.to - length) / 2, (drag.from + drag.to + length) / 2);
		} else if (drag.selects) {
			const time = timeline.time(Math.max(LEFT, at.x));

			handlers.select(Math.min(drag.time, time), Math.max(drag.time, time));
		} else {
			const by = (drag.at.x - at.x) / timeline.plotWidth * (drag.to - drag.from);

			timeline.frame.scrollTop = drag.scroll + drag.at.y - at.y;
			timeline.show(drag.from + by, drag.to + by);
		}
	});

	function release(event) {
		const at = place(event);

		pointers.delete(event.pointerId);
		if (drag && !drag.moved && event.type === "pointerup")
			handlers.choose(timeline.find(at.x, at.y));
		drag = null;
	}
	canvas.addEventListener("pointerup", release);
	canvas.addEventListener("pointercancel", release);
	canvas.addEventListener("pointerleave", (event) => handlers.hover(null, event));
	timeline.frame.addEventListener("scroll", () => timeline.redraw());
	window.addEventListener("resize", () => timeline.resize());
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.resize());

	document.addEventListener("keydown", function (event) {
		const moves = {
			w: () => timeline.zoom(0.7), s: () => timeline.zoom(1 / 0.7),
			a: () => timeline.move(-0.15), d: () => timeline.move(0.15),
			ArrowLeft: () => timeline.move(-0.15), ArrowRight: () => timeline.move(0.15),
			0: () => timeline.show(0, timeline.data.length),
		};
		if (!handlers.active())
			return;
		const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);

		if (event.ctrlKey || event.altKey || event.metaKey || (typing && event.key !== "Escape"))
			return;
		if (moves[event.key])
			moves[event.key]();
		else if (!handlers.key(event.key))
			return;
		event.preventDefault();
	});
}
