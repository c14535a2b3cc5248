// SPDX-License-Identifier: LGPL-2.1-or-later
// Puts the page together. Links: #t=FROM,TO shows a part of the time, #s=FROM,TO adds it up; seconds, or ticks. Of two
// recordings the names are t-a, s-a, t-b and s-b.
"use strict";

// A time of a link, as an offset to the origin.
function linkTime(data, text) {
	const [whole, part] = text.split(".");

	return Number(BigInt(whole) * (data.ticks ? 1n : 1000000000n) + BigInt(data.ticks ? 0 : (part || "").padEnd(9, "0").slice(0, 9)) - data.origin);
}

// Both times of a link's part; null: it has none.
function linkPart(data, name) {
	const found = new RegExp("[#&]" + name + data.suffix + "=([0-9]+(?:\\.[0-9]*)?),([0-9]+(?:\\.[0-9]*)?)").exec(location.hash);
	const from = found && linkTime(data, found[1]), to = found && linkTime(data, found[2]);

	return found && from < to ? { from, to } : null;
}

const links = new Map(); // the address's part of each recording, by its suffix
let active = null; // the recording whose keys are pressed

// Shows a recording; returns what tests and scripts of a reader's own may use.
function start(data) {
	const byId = (id) => partOf(data, id);
	const timeline = new Timeline(data, byId("timeline"), byId("frame"), byId("tall"));
	const search = new Search(timeline, goTo);
	let linked = 0;

	function choose(place) {
		timeline.chosen = place && place.i !== undefined ? place : null;
		timeline.chain = null;
		if (timeline.chosen)
			showSpan(data, place, why, (event) => choose({ event }));
		else if (place && place.event)
			showEvent(data, place.event);
		else if (place && place.title)
			unfold(place.lane.machine);
		timeline.redraw();
	}

	// Shows or hides the tasks of a guest.
	function unfold(machine) {
		if (!timeline.unfolded.delete(machine))
			timeline.unfolded.add(machine);
		timeline.arrange();
		timeline.resize();
	}

	// Draws the causes of a wait, all of them in the window.
	function why(waiter, parent) {
		const chain = timeline.chain = showChain(data, waiter, parent, (hop) => hop.lane && (timeline.reveal(hop.lane), timeline.redraw()));
		const begins = chain ? chain.hops.map((hop) => hop.from) : [], from = Math.min(...begins, waiter.from);

		if (chain)
			timeline.show(from - (waiter.to - from) / 10, waiter.to + (waiter.to - from) / 10);
		timeline.redraw();
	}

	// Shows a span, at its width if the part that is shown does not have it.
	function goTo(place) {
		const from = place.lane.spans.from[place.i], to = place.lane.spans.to[place.i];
		const length = Math.max(timeline.to - timeline.from, (to - from) * 1.2);

		if (from < timeline.from || to > timeline.to)
			timeline.show((from + to - length) / 2, (from + to + length) / 2);
		if (place.lane.kind === "task" && !timeline.unfolded.has(place.lane.machine))
			unfold(place.lane.machine);
		if (place.lane.kind === "task")
			place = placeOfTask(timeline.lanes, place);
		timeline.reveal(place.lane);
		choose(place);
	}

	// Shows a finding's longest stretch, at half the window's width.
	function example(part, place) {
		const length = part.to - part.from;

		timeline.show(part.from - length / 2, part.to + length / 2);
		if (place)
			timeline.reveal(place.lane);
		choose(place);
		byId("frame").scrollIntoView({ block: "nearest" });
	}

	function fit() {
		if (!timeline.chosen)
			return;
		const { lane, i } = timeline.chosen, from = lane.spans.from[i], length = lane.spans.to[i] - from;

		timeline.show(from - length / 4, from + length * 1.25);
	}

	function select(from, to) {
		timeline.selection = to > from ? { from: Math.max(0, from), to: Math.min(data.length, to) } : null;
		showSums(data, timeline.selection ? timeline.selection.from : 0, timeline.selection ? timeline.selection.to : data.length);
		timeline.redraw();
	}

	function hover(place, event) {
		const text = place ? placeText(data, place) : "", box = document.getElementById("hover");

		box.hidden = !text;
		box.textContent = text;
		box.style.left = Math.min(event.clientX + 14, window.innerWidth - 340) + "px";
		box.style.top = event.clientY + (event.clientY > window.innerHeight / 2 ? -14 - box.offsetHeight : 16) + "px";
	}

	function found(text) {
		byId("found").textContent = text;
	}

	const keys = {
		"n": () => found(search.step(1)), "N": () => found(search.step(-1)), "/": () => byId("search").focus(), "f": fit,
		"y": () => byId("why") && byId("why").click(),
		"?": () => document.getElementById("keys").showModal(), "Escape": () => { select(0, 0); choose(null); byId("search").blur(); },
	};

	function key(name) {
		if (keys[name])
			keys[name]();
		return !!keys[name];
	}

	// The address follows what is shown, so that it can be mailed.
	function link() {
		const part = (name, one) => name + data.suffix + "=" + timeText(data, one.from) + "," + timeText(data, one.to);

		clearTimeout(linked);
		links.set(data.suffix, part("t", timeline) + (timeline.selection ? "&" + part("s", timeline.selection) : ""));
		linked = setTimeout(() => history.replaceState(null, "", "#" + [...links.values()].join("&")), 300);
	}

	function follow() {
		const shown = linkPart(data, "t"), selected = linkPart(data, "s");

		if (shown)
			timeline.show(shown.from, shown.to);
		if (selected)
			select(selected.from, selected.to);
	}

	showHead(data);
	showFindings(data, byId("findings"), example);
	showLegend(data, byId("legend"));
	showQuestions(data, byId("questions"));
	showTables(data, byId("tables"), function (seconds) {
		const at = linkTime(data, String(seconds)), length = Math.min(data.length, (timeline.to - timeline.from) / 4);

		timeline.show(at - length / 2, at + length / 2);
		byId("frame").scrollIntoView({ block: "nearest" });
	});
	active = active || data;
	byId("recording").addEventListener("pointerdown", () => { active = data; }, true);
	listen(timeline, { hover, choose, select, key, active: () => active === data });
	byId("search").addEventListener("input", (event) => found(search.find(event.target.value)));
	byId("search").addEventListener("keydown", (event) => event.key === "Enter" && found(search.step(event.shiftKey ? -1 : 1)));
	byId("next").addEventListener("click", keys.n);
	byId("previous").addEventListener("click", keys.N);
	byId("whole").addEventListener("click", () => timeline.show(0, data.length));
	byId("help").addEventListener("click", keys["?"]);
	timeline.resize();
	select(0, 0);
	follow();
	timeline.onDraw = link;
	window.addEventListener("hashchange", follow);
	// times are ns since the origin
	return { data, timeline, search, choose, sums: (from, to) => windowSums(data, from, to), events: (from, to) => windowEvents(data, from, to) };
}

async function showPage() {
	const [first, ...sides] = document.getElementById("data").textContent.split(",");

	if (!sides.length) {
		window.hyptrace = start(await readData(first, ""));
		return;
	}
	const comparison = readJson(await inflate(first));

	showComparison(comparison, document.getElementById("comparison"));
	splitRecording();
	window.hyptrace = { comparison, sides: [start(await readData(sides[0], "-a")), start(await readData(sides[1], "-b"))] };
}

showPage().catch(function (error) {
	const box = document.getElementById("error");

	box.hidden = false;
	box.textContent = "cannot read the page's data: " + error.message + "; open it in Chromium 86, Firefox 113 or later";
});
