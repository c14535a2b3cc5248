// SPDX-License-Identifier: LGPL-2.1-or-later
// Texts and tables of the page. All that comes from recordings becomes text nodes.
"use strict";

// A part of the page that shows a recording.
function partOf(data, id) {
	return document.getElementById(id + data.suffix);
}

function element(name, text, className) {
	const node = document.createElement(name);

	if (text !== undefined)
		node.textContent = text;
	if (className)
		node.className = className;
	return node;
}

// columns: {title, number: cells are sorted as numbers, text(value)}; rows: arrays of values. onRow(index): a row is clicked.
function makeTable(columns, rows, onRow) {
	const table = element("table"), head = element("tr"), body = element("tbody");
	const order = rows.map((row, index) => index);

	function fill() {
		body.replaceChildren(...order.map(function (index) {
			const line = element("tr");

			rows[index].forEach(function (value, i) {
				const text = value === null || value === undefined ? "" : columns[i].text ? columns[i].text(value) : String(value);

				line.append(element("td", text, columns[i].number ? "number" : ""));
			});
			if (onRow)
				line.addEventListener("click", () => onRow(index));
			return line;
		}));
	}
	columns.forEach(function (column, i) {
		const cell = element("th", column.title, column.number ? "number" : "");

		cell.scope = "col";
		cell.setAttribute("aria-sort", "none");
		cell.addEventListener("click", function () {
			const down = cell.getAttribute("aria-sort") !== "descending";

			for (const other of head.children)
				other.setAttribute("aria-sort", "none");
			cell.setAttribute("aria-sort", down ? "descending" : "ascending");
			order.sort(function (a, b) {
				const x = rows[a][i], y = rows[b][i];
				const less = column.number ? Number(x) - Number(y) : String(x).localeCompare(String(y));

				return down ? -less : less;
			});
			fill();
		});
		head.append(cell);
	});
	fill();
	const top = element("thead");

	top.append(head);
	table.append(top, body);
	return table;
}

// ---- the tables of stat ----

const TABLE_TITLES = {
	buffers: "Buffers", lost: "Lost events", events: "Events", exits: "Exits of guests", guest: "Guests' time between exits",
	mmio: "MMIO", ioport: "I/O ports", sysreg: "System registers", hypercall: "Hypercalls", hyp: "Time in the hypervisor",
	firmware: "Time in the firmware", vcpus: "vCPUs: where their time went", tasks: "Guests' tasks: where their time went",
	steal: "Stolen time", cpu: "CPU use by samples", spans: "Programs' spans", longest: "Longest exits and visits",
};

// A column of stat --json by its key: durations end in _ns, shares are between 0 and 1.
function statColumn(key, rows, ticks) {
	const duration = /_(ns|ticks)$/.test(key), values = rows.map((row) => row[key]);
	const column = { title: key.replace(/_(ns|ticks)$/, "").replace(/_/g, " "), number: values.some((value) => typeof value === "number") };

	if (duration)
		column.text = (value) => durationText(value, ticks);
	else if (/(^|_)share$|^(kernel|user|hypervisor|guest_kernel|guest_user)$/.test(key))
		column.text = (value) => typeof value === "number" ? (value * 100).toFixed(1) + "%" : value;
	else if (values.some((value) => value && typeof value === "object"))
		column.text = (value) => typeof value === "object" ? JSON.stringify(value) : String(value);
	return column;
}

// onTime(seconds): a row with a time leads there.
function showTables(data, parent, onTime) {
	for (const [name, rows] of Object.entries(data.tables)) {
		if (!Array.isArray(rows) || !rows.length || typeof rows[0] !== "object")
			continue;
		// columns that say something
		const keys = Object.keys(rows[0]).filter((key) => rows.some((row) => row[key] !== null && row[key] !== ""));
		const section = element("details");
		const time = ["at", "from"].find((key) => keys.includes(key) && /^[0-9.]+$/.test(String(rows[0][key])));
		const table = makeTable(keys.map((key) => statColumn(key, rows, data.ticks)), rows.map((row) => keys.map((key) => row[key])),
			time && ((index) => onTime(rows[index][time])));

		section.append(element("summary", TABLE_TITLES[name] || name), table);
		parent.append(section);
	}
	const notes = element("details");

	notes.append(element("summary", "Notes on the tables"), ...(data.tables.notes || []).map((note) => element("p", note)));
	parent.append(notes);
}

// ---- the head ----

function showHead(data) {
	const body = partOf(data, "about"), kinds = new Set(data.lanes.map((lane) => lane.kind));
	const events = data.losses.reduce((sum, loss) => sum + (loss.events || 0), 0);
	const machines = data.machines.map((one) => [one.name, one.file, one.guest ? "guest" : "host", one.clock,
		one.guest ? (one.bound ? "at most " + durationText(one.bound, data.ticks) : "unknown") : "reference"]);
	const recorded = data.machines.filter((one) => one.command || !one.guest).map((one) => one.command
		? one.file + " was recorded by: " + one.command : one.file + " does not have the command that recorded it.");
	const missing = [];

	if (!data.suffix)
		document.title = document.getElementById("title").textContent = data.title;
	partOf(data, "summary").textContent = [
		data.machines.length === 1 ? "1 machine" : data.machines.length + " machines",
		durationText(data.length, data.ticks) + " from " + timeText(data, 0),
		data.losses.length ? data.losses.length + " losses" + (events ? ", " + events + " events at least" : "") : "no events lost",
	].join("; ");
	if (data.summed)
		missing.push("Spans of up to " + durationText(data.summed, data.ticks) + " are summed in buckets of " + durationText(data.bucket, data.ticks)
			+ ", drawn as shares of a bucket's height; sums of a part of a bucket are proportional. hyptrace view --full keeps every span.");
	if (!data.rates.some((counts) => counts.some((n) => n)))
		missing.push("No events: the files have none in this time.");
	if (!kinds.has("vcpu"))
		missing.push("No vCPUs: the files have no entries and exits of vCPUs (record -e kvm).");
	if (!kinds.has("hyp"))
		missing.push("No hypervisor: the files have no hyp_enter and hyp_exit (record -B hyp).");
	if (!kinds.has("cpu"))
		missing.push("No tasks: the files have no sched_switch (record -e sched).");
	for (const machine of data.machines)
		if (machine.guest && !machine.bound)
			missing.push("The clock of " + machine.name + " has no bound: its order relative to other machines is not certain.");
	if (data.left_out)
		missing.push("vCPUs and tasks beyond those that can be followed are left out.");
	if (data.losses.length === 20000)
		missing.push("Losses after the first 20000 are not drawn.");
	body.append(makeTable([{ title: "machine" }, { title: "file" }, { title: "kind" }, { title: "clock" }, { title: "error of the clock" }], machines));
	for (const text of [...recorded, ...missing])
		body.append(element("p", text));
	partOf(data, "facts").open = missing.length > 0;
}

function showLegend(data, parent) {
	const seen = new Set();

	for (const lane of data.lanes) {
		const labels = new Set([...lane.spans.label.subarray(0, 20000), ...lane.cells.label.subarray(0, 20000)]);

		for (const index of labels) {
			const label = data.labels[index], colour = labelColour(lane.kind, label);
			const name = lane.kind === "vcpu" ? label.state : lane.kind === "hyp" ? "hypervisor: " + (label.reason || "no reason") : label.state === "stolen" ? "stolen" : "";

			if (!name || seen.has(name) || seen.size > 24)
				continue;
			seen.add(name);
			parent.append(legendEntry(name, colour));
		}
	}
}

// ---- a span and sums ----

// Pairs of a fact's name and its text.
function spanFacts(data, place) {
	const { lane, i } = place, spans = lane.spans, label = data.labels[spans.label[i]];
	const facts = [
		["lane", lane.title], ["state", label.state + (label.coarse ? " (the files show no finer one)" : "")],
		["by", label.by], ["reason", label.reason], ["class of the exit", label.exitClass], ["task", label.task],
		[/^(halted|blocked)$/.test(label.state) ? "woken by" : "other task", label.other],
		["CPU of its thread", spans.cpu[i] < 0 ? "" : String(spans.cpu[i])],
		["from", timeText(data, spans.from[i])], ["to", timeText(data, spans.to[i])],
		["duration", durationText(spans.to[i] - spans.from[i], data.ticks)],
		["error of its begin", boundText(data, spans.fromBound[i])], ["error of its end", boundText(data, spans.toBound[i])],
	];

	return facts.filter(([, text]) => text);
}

// The text at a place that timeline.find() has found.
function placeText(data, place) {
	if (place.i !== undefined)
		return spanFacts(data, place).map(([name, text]) => name + ": " + text).join("\n");
	if (place.event)
		return eventFacts(data, place.event).map(([name, text]) => name + ": " + text).join("\n");
	if (place.loss)
		return (place.loss.events === 0 ? "not recorded" : "events are lost") + " in " + (place.loss.buffer || "the main buffer")
			+ (place.loss.events ? ": " + place.loss.events : "") + "\n" + timeText(data, place.loss.from) + " to " + timeText(data, place.loss.to);
	if (place.bucket === undefined)
		return "";
	if (place.lane.counts)
		return place.lane.title + "\n" + timeText(data, place.bucket * data.bucket) + ": " + place.lane.counts[place.bucket] + " events in "
			+ durationText(data.bucket, data.ticks) + ", " + rateText(data, place.lane.counts[place.bucket]);
	const sums = [...laneSums(data, { spans: { n: 0 }, cells: place.lane.cells }, place.bucket * data.bucket, (place.bucket + 1) * data.bucket)];

	return place.lane.title + ": sums of short spans\n" + sums.sort((a, b) => b[1].ns - a[1].ns).slice(0, 8)
		.map(([label, sum]) => labelText(place.lane.kind, data.labels[label]) + ": " + durationText(sum.ns, data.ticks) + ", " + sum.count + " spans").join("\n");
}

function factTable(facts) {
	const table = element("table");

	for (const [name, text] of facts) {
		const line = element("tr");

		line.append(element("td", name), element("td", text));
		table.append(line);
	}
	return table;
}

// onWhy(waiter, parent): "why?" is asked of what waited in the span; onEvent(event): one of its events is clicked.
function showSpan(data, place, onWhy, onEvent) {
	const parent = partOf(data, "span"), waiter = waiterOf(data, place), answer = element("div");
	const button = element("button", "why?");

	parent.replaceChildren(element("h2", "Span"), factTable(spanFacts(data, place)));
	if (waiter) {
		button.id = "why" + data.suffix;
		button.title = "The chain of causes (Y)";
		button.addEventListener("click", () => onWhy(waiter, answer));
		parent.append(button);
	}
	partOf(data, "more").replaceChildren(answer, eventTable(data, place, onEvent));
}

function showEvent(data, event) {
	partOf(data, "more").replaceChildren();
	partOf(data, "span").replaceChildren(element("h2", "Event"), factTable(eventFacts(data, event)));
}

function showSums(data, from, to) {
	const rows = windowSums(data, from, to), parent = partOf(data, "sums");
	const events = windowEvents(data, from, to).map((one) => one.machine + " " + Math.round(one.n)).join(", ");
	const columns = [
		{ title: "lane" }, { title: "state" }, { title: "reason, or by" }, { title: "task" }, { title: "time", number: true, text: (ns) => durationText(ns, data.ticks) },
		{ title: "share", number: true, text: (share) => (share * 100).toFixed(1) + "%" },
		{ title: "begin here", number: true, text: (n) => String(Math.round(n)) },
		{ title: "p50", number: true, text: (ns) => durationText(ns, data.ticks) }, { title: "p99", number: true, text: (ns) => durationText(ns, data.ticks) },
		{ title: "undecided", number: true, text: (ns) => ns ? durationText(ns, data.ticks) : "" },
	];

	parent.replaceChildren(element("h2", "Sums from " + timeText(data, from) + " to " + timeText(data, to) + ": " + durationText(to - from, data.ticks)), element("p", "Events: " + events),
		makeTable(columns, rows.slice(0, 1000).map((row) => [row.lane, row.state, row.by || row.reason, row.task, row.ns, row.ns / (to - from), row.count, percentile(row, 0.5), percentile(row, 0.99), row.undecided])));
	if (rows.length > 1000)
		parent.append(element("p", rows.length - 1000 + " more rows: select a shorter part."));
}
